"""Files are replaced as a whole; devices, pipes and links are written through and stay."""

import errno
import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import umpteen as um
from umpteen.data import Samples, read, write
from umpteen.errors import NotWritableError, UmpteenError
from umpteen.writing import check_writable, open_to_write

posix = pytest.mark.skipif(os.name != "posix", reason="is about files of Unix")
not_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere"
)
CONTENT = b"some bytes " * 50_000


def put(path, content=CONTENT):
    with open_to_write(path) as file:
        file.write(content)


def received(path):
    """A thread that reads all of a pipe, and where it puts it."""
    got = []
    reader = threading.Thread(target=lambda: got.append(Path(path).read_bytes()))
    reader.start()
    return reader, got


def node(path, kind, numbers):
    try:
        os.mknod(path, kind | 0o666, os.makedev(*numbers))
        with open(path, "wb"):
            pass
    except OSError as problem:
        pytest.skip(f"devices cannot be made here: {problem}")


def test_a_file_is_replaced_once_all_is_written(tmp_path):
    path = tmp_path / "out"
    put(path, b"old")
    with open_to_write(path) as file:
        file.write(CONTENT)
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == CONTENT
    half = (part for part in [b"half", None])
    with pytest.raises(TypeError), open_to_write(path) as file:
        file.writelines(half)
    assert path.read_bytes() == CONTENT
    assert os.listdir(tmp_path) == ["out"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_stay(tmp_path, mode):
    path = tmp_path / "out"
    path.touch()
    path.chmod(mode)
    with open_to_write(path) as file:
        (draft,) = set(tmp_path.iterdir()) - {path}
        assert stat.S_IMODE(draft.stat().st_mode) == mode  # no one else may look meanwhile
        file.write(b"secret")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        put(tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


@posix
def test_the_owner_stays(tmp_path):
    path = tmp_path / "out"
    path.touch()
    try:
        os.chown(path, 12345, 12345)
    except OSError as problem:
        pytest.skip(f"owners cannot be changed here: {problem}")
    put(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


def test_a_name_as_long_as_names_may_be(tmp_path):
    put(tmp_path / ("a" * 255))
    assert (tmp_path / ("a" * 255)).read_bytes() == CONTENT


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, exists):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "target"
    if exists:
        target.write_bytes(b"old")
        target.chmod(0o600)
    (tmp_path / "second").symlink_to("far/target")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    put(tmp_path / "first")
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert target.read_bytes() == CONTENT
    assert not target.is_symlink()
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "far") == ["target"]


@posix
def test_a_pipe_is_written_through(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        reader, got = received(tmp_path / "pipe")
        put(tmp_path / name)
        reader.join(60)
        assert got == [CONTENT]
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


@posix
@pytest.mark.parametrize("kind", ["jsonl", "csv.gz", "ft.zst", "parquet", "jsonl.xz"])
def test_every_format_goes_through_a_pipe(tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs umpteen[parquet]")
    os.mkfifo(tmp_path / f"pipe.{kind}")
    samples = Samples(texts=["a", "b"], labels=[["x"], ["y"]])
    reader, got = received(tmp_path / f"pipe.{kind}")
    write(samples, tmp_path / f"pipe.{kind}")
    reader.join(60)
    name = kind.partition(".")[0].replace("ft", "fasttext")
    again = read(io.BytesIO(got[0]), format=name)
    assert (again.texts, again.labels) == (samples.texts, samples.labels)


@posix
def test_a_device_stays_a_device(tmp_path):
    node(tmp_path / "null", stat.S_IFCHR, (1, 3))
    (tmp_path / "link").symlink_to("null")
    for name in ("null", "link"):
        put(tmp_path / name)
        found = (tmp_path / "null").stat()
        assert stat.S_ISCHR(found.st_mode)
        assert found.st_rdev == os.makedev(1, 3)
    assert sorted(os.listdir(tmp_path)) == ["link", "null"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("name", ["full", "full.gz", "full.xz", "full.zst"])
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_full_disk_is_our_error(tmp_path, name, size):
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(NotWritableError, match=f"{name} cannot be written: no space") as caught:
        write(Samples(texts=["a"] * size), tmp_path / name, format="jsonl")
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@posix
def test_open_files_are_gone_on_with(tmp_path):
    """`{ umpteen ... -o /dev/stdout; echo done; } > log` has both in the log."""
    code = (
        "import os, sys; from umpteen.writing import open_to_write\n"
        "print('first')\n"
        "for name in sys.argv[1:]:\n"
        "    with open_to_write(name) as file: file.write(name.encode() + b'\\n')\n"
        "os.write(1, b'last\\n')"
    )
    names = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", str(tmp_path / "link")]
    names = [name for name in names if name.startswith("/dev") or os.path.exists("/proc/self/fd")]
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "log").write_text("before\n")
    with (tmp_path / "log").open("a") as log:
        subprocess.run([sys.executable, "-c", code, *names], stdout=log, check=True, timeout=60)
    expected = ["before", "first", *names, "last"]
    assert (tmp_path / "log").read_text().splitlines() == expected


def refusals(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    yield tmp_path / "folder", "is a folder; give the name of a file in it"
    yield (
        tmp_path / "gone" / "out",
        "written: the folder .*gone does not exist; create it",
    )
    yield tmp_path / "file" / "out", "cannot be written: Not a directory|does not exist"
    if os.name == "posix":
        (tmp_path / "round").symlink_to("about")
        (tmp_path / "about").symlink_to("round")
        (tmp_path / "astray").symlink_to("gone/out")
        yield tmp_path / "round", "its links form a loop"
        yield tmp_path / "astray", "astray cannot be written: the folder .*gone does not exist"
        yield "/dev/fd/987", "/dev/fd/987 cannot be written: it is not open for writing"


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(NotWritableError, match="null"):
        put(tmp_path / "a\0b")


def test_what_cannot_be_written_is_refused_and_left_alone(tmp_path):
    for path, message in refusals(tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(NotWritableError, match=message):
            put(path)
        if not str(path).startswith("/dev"):
            with pytest.raises(NotWritableError, match=message):
                check_writable(path)
        assert sorted(tmp_path.iterdir()) == before


@posix
@not_root
def test_what_is_read_only_stays(tmp_path):
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(b"precious")
    path.chmod(0o400)
    with pytest.raises(NotWritableError, match="file is read-only"):
        put(path)
    path.chmod(0o600)
    path.parent.chmod(0o500)
    for name in ("file", "new"):
        with pytest.raises(NotWritableError, match=r"you may not create files in .*folder"):
            put(path.with_name(name))
    path.parent.chmod(0o700)
    assert path.read_bytes() == b"precious"


@posix
def test_a_reader_that_has_enough_is_no_error_of_the_file(tmp_path):
    out, into = os.pipe()
    os.close(out)
    try:
        with pytest.raises(BrokenPipeError):
            put(f"/dev/fd/{into}")
    finally:
        os.close(into)


@posix
def test_what_is_wrong_with_the_input_is_not_said_of_the_output(tmp_path):
    with pytest.raises(OSError, match="elsewhere") as caught, open_to_write(tmp_path / "out"):
        raise OSError(errno.EIO, "elsewhere")
    assert not isinstance(caught.value, UmpteenError)
    assert os.listdir(tmp_path) == []


@posix
@pytest.mark.parametrize("what", ["page", "picture", "description"])
def test_reports_and_pictures_are_written_the_same_way(tmp_path, what):
    if what != "page":
        pytest.importorskip("matplotlib", reason="needs umpteen[plots]")
    report = um.evaluate(um.TopK([[0], [1]], [[0.9], [0.8]]), np.eye(2), ks=[1])
    data = um.data.make_extreme(n_samples=20, n_features=9, n_labels=5)
    save = {
        "page": report.to_html,
        "picture": report.plot,
        "description": data.describe().plot,
    }[what]
    target = tmp_path / "target.png"
    target.write_bytes(b"old")
    target.chmod(0o600)
    (tmp_path / "link.png").symlink_to(target)
    save(tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(target.read_bytes()) > 500
    with pytest.raises(NotWritableError, match="does not exist"):
        save(tmp_path / "gone" / "a.png")
    assert sorted(os.listdir(tmp_path)) == ["link.png", "target.png"]

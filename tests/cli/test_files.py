"""Files pass through in parts, and nothing shows where the parts were."""

import gzip
import os
import shlex
import subprocess
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import umpteen as um
from umpteen.cli import convert, live
from umpteen.cli.reading import Reading
from umpteen.data import Samples

from .conftest import COMMAND, run

ANY = Reading(None, {})
WORDS = st.text("abc {}[]\"'é", min_size=1, max_size=12).filter(str.strip)


def read_in_pieces(content, cuts, reading=ANY):
    """What `_stream_stdin` makes of bytes that arrive in pieces."""
    out, into = os.pipe()
    edges = sorted({0, *(cut % (len(content) + 1) for cut in cuts), len(content)})

    def send():
        with open(into, "wb", buffering=0) as pipe:
            for first, end in pairwise(edges):
                pipe.write(content[first:end])

    sender = threading.Thread(target=send)
    sender.start()
    try:
        return [text for part in live._stream_stdin(out, reading) for text in part.texts]
    finally:
        sender.join()
        os.close(out)


@given(st.lists(WORDS, max_size=20), st.lists(st.integers(0, 500), max_size=8))
def test_lines_arrive_whole_however_they_are_cut(lines, cuts):
    texts = ["plain " + line for line in lines]
    content = "".join(text + "\n" for text in texts).encode()
    assert read_in_pieces(content, cuts) == texts
    assert read_in_pieces(content.removesuffix(b"\n"), cuts) == texts


@given(st.lists(WORDS, min_size=1, max_size=20), st.lists(st.integers(0, 900), max_size=8))
def test_stdin_is_read_as_a_file_is(texts, cuts):
    file = _Bytes()
    um.data.write(Samples(texts=texts, labels=[["x"]] * len(texts)), file, format="jsonl")
    assert read_in_pieces(bytes(file.content), cuts) == texts


class _Bytes:
    def __init__(self):
        self.content = bytearray()

    def write(self, part):
        self.content += part


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl.zst", "ft", "tsv"])
def test_stdin_of_other_formats(folder, tmp_path, kind):
    samples = um.data.read(folder / "test.jsonl")
    um.data.write(samples, tmp_path / f"x.{kind}")
    reading = Reading("tsv", {}) if kind == "tsv" else ANY
    assert read_in_pieces((tmp_path / f"x.{kind}").read_bytes(), [7], reading) == samples.texts


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_converting_in_parts_is_converting_at_once(call, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(convert, "BATCH", 2)
    source = tmp_path / "in.jsonl"
    lines = ['{"text": "no\\nlabels"}', *['{"text": "a, b", "labels": ["x"]}'] * 3, '{"text": ""}']
    source.write_text("\n".join(lines) + '\n{"id": 7, "text": "with an id"}\n')
    call("convert", source, tmp_path / f"parts.{kind}")
    um.data.write(um.data.read(source), tmp_path / f"whole.{kind}")
    parts, whole = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("parts", "whole"))
    if kind == "jsonl.gz":  # the same samples, in other blocks
        parts, whole = gzip.decompress(parts), gzip.decompress(whole)
    assert parts == whole


def test_converting_there_and_back(call, folder, tmp_path):
    call("convert", folder / "train.jsonl", tmp_path / "a.csv")
    call("convert", tmp_path / "a.csv", tmp_path / "b.jsonl.xz")
    call("convert", tmp_path / "b.jsonl.xz", tmp_path / "c.jsonl")
    assert (tmp_path / "c.jsonl").read_bytes() == _plain(folder / "train.jsonl")


def _plain(path):
    file = _Bytes()
    um.data.write(um.data.read(path), file, format="jsonl")
    return bytes(file.content)


def test_converting_matrices(call, folder, tmp_path):
    call("convert", folder / "train.xmc.txt", tmp_path / "a.svm")
    call("convert", tmp_path / "a.svm", tmp_path / "b.xmc.txt")
    first, second = (um.data.read(p) for p in (folder / "train.xmc.txt", tmp_path / "b.xmc.txt"))
    assert (first.X != second.X).nnz == 0
    assert (first.Y != second.Y).nnz == 0


def test_converting_through_pipes(folder):
    content = (folder / "test.jsonl").read_bytes()
    out, err = run("convert", "-", "-", "--to", "fasttext", stdin=content)
    assert out.splitlines()[0].startswith("__label__")
    assert err == "umpteen: 40 samples\n"


def test_an_empty_file_stays_one(call, tmp_path):
    (tmp_path / "in.jsonl").write_text("")
    call("convert", tmp_path / "in.jsonl", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == b"text,labels\r\n"


def test_a_line_of_stdin_without_an_end_is_left(model, monkeypatch):
    content = b"a loaf\n" * 3 + b"a" * 3_000_000
    monkeypatch.setenv("UMPTEEN_MAX_LINE", "1MB")
    _, err = run("predict", model, "-", stdin=content, code=1)
    assert err.startswith("umpteen: error: stdin, line 4: longer than 1MB, the limit; ")
    assert err.endswith("set the environment variable UMPTEEN_MAX_LINE=1GB\n")
    _, err = run("explain", model, "-", stdin=content, code=1)
    assert err.startswith("umpteen: error: the text of stdin is longer than 1MB")


def in_bash(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)


def test_answers_go_into_a_process_of_the_shell(folder, model, tmp_path):
    predict = f"{shlex.join(COMMAND)} predict {model} {folder}/test.jsonl -k 1"
    done = in_bash(
        f"set -o pipefail; {predict} -o >(sort > {tmp_path}/out; echo > {tmp_path}/end) "
        f"&& until [ -e {tmp_path}/end ]; do sleep 0.1; done"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    expected = in_bash(f"{predict} -o /dev/stdout | sort").stdout
    assert expected.count(b"\n") == 40
    assert (tmp_path / "out").read_bytes() == expected


def test_a_page_and_the_table_share_a_log_in_their_order(folder, model, tmp_path):
    evaluate = f"{shlex.join(COMMAND)} evaluate {model} {folder}/test.jsonl --html /dev/stdout"
    done = in_bash(f"{{ {evaluate}; echo done; }} > {tmp_path}/log")
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text()
    page, table = log.split("</html>\n")
    assert page.startswith("<!doctype html>")
    assert table.startswith("{")
    assert "precision@1" in table
    assert table.endswith("done\n")


def test_a_page_replaces_what_its_link_leads_to(call, folder, model, tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    call("evaluate", model, folder / "test.jsonl", "--html", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert "<html" in (tmp_path / "real.html").read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["predict", "evaluate", "convert"])
def test_a_full_disk_names_the_file(call, folder, model, command):
    arguments = {
        "predict": ["predict", model, folder / "test.jsonl", "-o", "/dev/full"],
        "evaluate": ["evaluate", model, folder / "test.jsonl", "--html", "/dev/full"],
        "convert": ["convert", folder / "test.jsonl", "/dev/full", "--to", "csv"],
    }[command]
    _, err = call(*arguments, code=1)
    assert err.startswith("umpteen: error: /dev/full cannot be written: no space is left")
    assert err.count("\n") == 1


def test_a_model_is_not_fitted_for_a_link_that_leads_nowhere(call, folder, tmp_path):
    (tmp_path / "model").symlink_to("nowhere")
    _, err = call("fit", folder / "none.jsonl", "-o", tmp_path / "model", code=1)
    assert "is a broken link" in err

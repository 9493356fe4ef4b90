"""Very many rows: nothing is lost, done twice or half done, whatever is killed."""

import gzip
import json
import os
import signal
import sys
import threading

import pytest

import umpteen as um
from tests.cluster.kills import exit_code_of_kill
from umpteen.errors import (
    DatasetNotFoundError,
    NotWritableError,
    ParameterError,
    ShardsError,
)

WORDS = {"bread": "dough loaf crust", "soup": "broth ladle stock", "coffee": "beans crema filter"}
N_SHARDS, N_ROWS = 3, 1200  # more rows than are predicted at a time


def rows(n, shift=0):
    for i in range(n):
        label = sorted(WORDS)[(i + shift) % 3]
        yield {"id": f"r{shift}-{i}", "text": f"{WORDS[label]} number {i % 7} and {shift}"}


def write_rows(path, items):
    text = "".join(json.dumps(item) + "\n" for item in items).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("offline") / "model"
    items = [(text, label) for label, text in WORDS.items() for text in text.split() * 3]
    texts, labels = zip(*items, strict=True)
    um.Tagger(language=None).fit(list(texts), [[label] for label in labels]).save(place)
    return place


@pytest.fixture
def shards(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(N_SHARDS):
        write_rows(tmp_path / "in" / f"{number}.jsonl", rows(N_ROWS, number))
    return tmp_path / "in"


def contents(folder):
    """What a person sees in a folder: names and bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: held for name, held in named.items() if ".umpteen/" not in name}


def predict(model, shards, output, **options):
    return um.cluster.predict(model, f"{shards}/*", output, verbose=False, **options)


def test_the_same_answers_as_for_all_rows_in_one_file(call, model, shards, tmp_path):
    joined = tmp_path / "all.jsonl"
    joined.write_bytes(b"".join(path.read_bytes() for path in sorted(shards.iterdir())))
    expected, _ = call("predict", model, joined, "-k", "2")
    out, err = call("predict", model, f"{shards}/*.jsonl", "-o", f"{tmp_path}/out/", "-k", "2")
    assert b"".join(contents(tmp_path / "out").values()).decode() == expected
    figures = json.loads(out)
    assert (figures["files_predicted"], figures["rows"]) == (N_SHARDS, N_SHARDS * N_ROWS)
    assert err == ""
    files = sorted(shards.iterdir())
    assert call("predict", model, *files, "-k", "2")[0] == expected  # without a folder: in a row


def test_files_of_any_format_get_answers_of_theirs(call, model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    place = tmp_path / "in"
    (place / "deep").mkdir(parents=True)
    write_rows(place / "a.jsonl", rows(20))
    write_rows(place / "b.jsonl.gz", rows(20))
    for name in ("c.parquet", "d.csv", "e.jsonl.zst", "deep/a.jsonl"):
        um.data.write(um.data.read(place / "a.jsonl"), place / name)
    (place / "f.txt").write_text("".join(f"{row['text']}\n" for row in rows(20)))
    call("predict", model, f"{place}/**/*.*", "-o", f"{tmp_path}/out")
    found = contents(tmp_path / "out")
    names = {"a.jsonl", "b.jsonl.gz", "c.parquet", "d.jsonl", "e.jsonl.zst", "f.txt.jsonl"}
    assert set(found) == names | {"deep/a.jsonl"}
    assert gzip.decompress(found["b.jsonl.gz"]) == found["a.jsonl"] == found["deep/a.jsonl"]
    table = parquet.read_table(tmp_path / "out" / "c.parquet").to_pylist()
    lines = [json.loads(line) for line in found["a.jsonl"].splitlines()]
    assert [row["text"] for row in table] == [line["text"] for line in lines]
    assert [row["labels"] for row in table] == [
        [tag["label"] for tag in line["labels"]] for line in lines
    ]
    call("predict", model, f"{place}/*.gz", "-o", f"{tmp_path}/more", "--to", "parquet")
    assert set(contents(tmp_path / "more")) == {"b.parquet"}


def test_matrices_too(call, tmp_path):
    text = "6 4 3\n0 0:1\n0 0:1 3:1\n1 1:1\n1 1:1 3:1\n2 2:1\n2 2:1 3:1\n"
    (tmp_path / "a.xmc.txt").write_text(text)
    call("fit", tmp_path / "a.xmc.txt", "-o", tmp_path / "model")
    expected, _ = call("predict", tmp_path / "model", tmp_path / "a.xmc.txt")
    call("predict", tmp_path / "model", f"{tmp_path}/*.xmc.txt", "-o", tmp_path / "out")
    assert contents(tmp_path / "out") == {"a.jsonl": expected.encode()}


def test_what_is_finished_is_not_done_again(model, shards, tmp_path):
    assert predict(model, shards, tmp_path / "out").predicted == N_SHARDS
    before = contents(tmp_path / "out")
    again = predict(model, shards, tmp_path / "out")
    assert (again.predicted, again.skipped, again.rows) == (0, N_SHARDS, 0)
    write_rows(shards / "9.jsonl", rows(5))
    assert predict(model, shards, tmp_path / "out").predicted == 1
    assert contents(tmp_path / "out").items() > before.items()


def test_another_file_another_model_or_another_option_is_predicted_again(model, shards, tmp_path):
    out = tmp_path / "out"
    predict(model, shards, out)
    write_rows(shards / "1.jsonl", rows(7))
    assert predict(model, shards, out).predicted == 1
    assert len(contents(out)["1.jsonl"].splitlines()) == 7
    stamp = (shards / "0.jsonl").stat()
    write_rows(shards / "0.jsonl", reversed(list(rows(N_ROWS))))  # as many bytes, later
    assert (shards / "0.jsonl").stat().st_size == stamp.st_size
    assert predict(model, shards, out).predicted == 1
    assert predict(model, shards, out, k=1).predicted == N_SHARDS
    assert predict(model, shards, out, k=1, texts=False).predicted == N_SHARDS
    changed = um.load(model).remove_labels(["soup"])
    changed.save(tmp_path / "model")
    assert predict(tmp_path / "model", shards, out, k=1, texts=False).predicted == N_SHARDS
    assert b"soup" not in b"".join(contents(out).values())


def test_a_copied_folder_still_counts_and_a_touched_file_does_not(model, shards, tmp_path):
    out = tmp_path / "out"
    predict(model, shards, out)
    os.utime(out / "0.jsonl")  # as `cp -r` leaves it
    assert predict(model, shards, out).skipped == N_SHARDS
    content = bytearray((out / "1.jsonl").read_bytes())
    content[-20] ^= 1
    (out / "1.jsonl").write_bytes(content)  # somebody else's, of the same size
    (out / "2.jsonl").write_bytes(content[:-100])
    for name in ("1.jsonl", "2.jsonl"):
        with pytest.raises(NotWritableError, match=f"{name} is there, but not as"):
            predict(model, shards, out)
        (out / name).unlink()
    assert predict(model, shards, out).predicted == 2


def test_files_of_others_are_replaced_only_if_asked(call, model, shards, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "1.jsonl").write_text("dear diary")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    arguments = ("predict", model, f"{shards}/*.jsonl", "-o", tmp_path / "out")
    _, err = call(*arguments, code=1)
    assert "--overwrite" in err
    assert contents(tmp_path / "out") == {"1.jsonl": b"dear diary", "notes.txt": b"mine"}
    call(*arguments, "--overwrite")
    assert len(contents(tmp_path / "out")["1.jsonl"].splitlines()) == N_ROWS
    assert contents(tmp_path / "out")["notes.txt"] == b"mine"


def test_inputs_are_never_the_output(model, shards, tmp_path):
    before = contents(shards)
    with pytest.raises(ParameterError, match="in the output folder"):
        predict(model, shards, shards, overwrite=True)
    for _ in range(2):  # answers below the inputs are not inputs of the next run
        um.cluster.predict(model, f"{shards}/**/*.jsonl", shards / "out")
    assert {name for name in contents(shards) if name.startswith("out")} == {
        f"out/{name}" for name in before
    }
    assert contents(shards / "out").keys() == before.keys()
    (tmp_path / "other").mkdir()
    write_rows(tmp_path / "other" / "0.jsonl", rows(2))
    with pytest.raises(ParameterError, match=r"would both be 0\.jsonl"):
        um.cluster.predict(model, [shards / "0.jsonl", tmp_path / "other/0.jsonl"], tmp_path / "o")


def test_a_model_or_a_file_is_not_the_output(model, shards, tmp_path):
    before = contents(model)
    with pytest.raises(NotWritableError, match="holds a model"):
        predict(model, shards, model)
    assert contents(model) == before
    with pytest.raises(
        NotWritableError, match=r"0\.jsonl is a file, but many answers need a folder"
    ):
        predict(model, shards, shards / "0.jsonl")


def test_bad_files_are_named_and_the_others_are_predicted(call, model, shards, tmp_path):
    pytest.importorskip("pyarrow")
    um.data.write(um.data.read(shards / "0.jsonl"), shards / "cut.parquet")
    (shards / "cut.parquet").write_bytes((shards / "cut.parquet").read_bytes()[:-200])
    with (shards / "1.jsonl").open("ab") as file:
        file.write(b'{"text": null}\n')
    arguments = ("predict", model, f"{shards}/*", "-o", tmp_path / "out")
    out, err = call(*arguments, code=1)
    assert f"{shards / '1.jsonl'}, line {N_ROWS + 1:,} (read as jsonl): 'text' is None" in err
    assert f"{shards / 'cut.parquet'} (read as parquet): not a sound Parquet file" in err
    assert "2 of 4 files could not be predicted (1.jsonl, cut.parquet)" in err
    figures = json.loads(out)
    assert (figures["files_predicted"], figures["files_failed"]) == (2, 2)
    assert set(contents(tmp_path / "out")) == {"0.jsonl", "2.jsonl"}
    write_rows(shards / "1.jsonl", [{"txt": "a"}])
    for message in call(*arguments, code=1):  # the summary speaks of options, as the error does
        assert "did you mean --text-column 'txt'" in message.replace("\\", "")
    write_rows(shards / "1.jsonl", rows(3))
    (shards / "cut.parquet").unlink()
    assert json.loads(call(*arguments)[0])["files_skipped"] == 2
    assert not list((tmp_path / "out" / ".umpteen").glob("*.part"))


def test_it_gives_up_if_nothing_can_be_read(call, model, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(15):
        (tmp_path / "in" / f"{number}.csv").write_text("title\na loaf\n")
    arguments = ("predict", model, f"{tmp_path}/in/*", "-o", tmp_path / "out")
    _, err = call(*arguments, code=1)
    assert err.count("no 'text' among 'title'") == 10
    assert "5 more were not tried" in err
    assert "--text-column" in err
    assert json.loads(call(*arguments, "--text-column", "title")[0])["files_predicted"] == 15


def test_empty_files_get_empty_answers(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    um.data.write(um.data.Samples(texts=[]), tmp_path / "in" / "b.parquet")
    (tmp_path / "in" / "c.csv").write_text("text\n")
    assert predict(model, tmp_path / "in", tmp_path / "out").predicted == 3
    found = contents(tmp_path / "out")
    assert (found["a.jsonl"], found["c.jsonl"]) == (b"", b"")
    assert parquet.read_table(tmp_path / "out" / "b.parquet").num_rows == 0
    assert predict(model, tmp_path / "in", tmp_path / "out").skipped == 3


def test_advice_where_nothing_matches(call, model, shards, tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"in holds 0\.jsonl, 1\.jsonl, 2\.jsonl; check"):
        um.cluster.predict(model, f"{shards}/*.parquet", tmp_path / "out")
    _, err = call("predict", model, f"{tmp_path}/none/*.jsonl", "-o", tmp_path / "out", code=1)
    assert "there is no folder" in err
    assert not (tmp_path / "out").exists()
    _, err = call("predict", model, shards, "-o", f"{tmp_path}/out/", code=1)
    assert "/*.jsonl'" in err
    _, err = call("predict", model, shards / "0.jsonl", "--cluster", "local", code=1)
    assert "--cluster needs a folder" in err
    asked = ["predict", model, f"{shards}/*", "-o", f"{tmp_path}/out", "--threshold", "micro_f1"]
    _, err = call(*asked, code=1)
    assert "umpteen tune" in err
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------- kills


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
def test_a_kill_at_any_moment_leaves_whole_files_and_a_restart_completes_them(
    model, shards, tmp_path
):
    (shards / "0.jsonl").unlink()
    n_shards = N_SHARDS - 1
    predict(model, shards, tmp_path / "expected")
    expected = contents(tmp_path / "expected")
    seen, moment = set(), 0
    while True:
        out = tmp_path / f"out{moment}"
        code = exit_code_of_kill(moment, model, f"{shards}/*", out)
        there = contents(out) if out.exists() else {}
        assert there.items() <= expected.items()  # whole or not there
        again = predict(model, shards, out)
        assert (again.skipped, again.predicted) == (len(there), n_shards - len(there))
        assert contents(out) == expected
        assert not list((out / ".umpteen").glob("*.part"))
        seen.add(len(there))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        moment += 1
    assert seen == set(range(n_shards + 1))
    assert moment > 10 * n_shards


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
def test_a_kill_while_answers_are_replaced(model, shards, tmp_path):
    """With another model: old answers or new ones, and those never mixed up."""
    um.load(model).remove_labels(["soup"]).save(tmp_path / "other")
    old, new = tmp_path / "old", tmp_path / "new"
    predict(model, shards, old)
    predict(tmp_path / "other", shards, new)
    old_files, new_files = contents(old), contents(new)
    out = tmp_path / "out"
    for moment in range(3, 39, 5):
        predict(model, shards, out)
        code = exit_code_of_kill(moment, tmp_path / "other", f"{shards}/*", out)
        assert code == -signal.SIGKILL
        there = contents(out)
        assert all(held in (old_files[name], new_files[name]) for name, held in there.items())
        predict(tmp_path / "other", shards, out)
        assert contents(out) == new_files


def test_two_runs_at_once_wait_for_each_other(model, shards, tmp_path):
    found = []
    runs = [
        threading.Thread(target=lambda: found.append(predict(model, shards, tmp_path / "out")))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(summary.predicted for summary in found) == [0, N_SHARDS]


def test_a_file_that_changes_while_it_is_read_is_not_finished(model, shards, tmp_path, monkeypatch):
    from umpteen.cluster import offline_answers

    answer = offline_answers.answer

    def slowly(*arguments):
        os.utime(shards / "1.jsonl")
        return answer(*arguments)

    monkeypatch.setattr(offline_answers, "answer", slowly)
    with (
        pytest.warns(UserWarning, match="was changed while it was read"),
        pytest.raises(ShardsError) as raised,
    ):
        predict(model, shards, tmp_path / "out")
    assert raised.value.summary.predicted == N_SHARDS - 1
    monkeypatch.undo()
    assert predict(model, shards, tmp_path / "out").predicted == 1


def test_fit_learns_from_many_files(call, tmp_path):
    (tmp_path / "in").mkdir()
    items = [row | {"labels": [row["text"].split()[0]]} for row in rows(300)]
    write_rows(tmp_path / "all.jsonl", items)
    write_rows(tmp_path / "in" / "a.jsonl", items[:120])
    write_rows(tmp_path / "in" / "b.jsonl.gz", items[120:])
    (tmp_path / "in" / "c.jsonl").touch()
    call("fit", tmp_path / "all.jsonl", "-o", tmp_path / "one")
    call("fit", f"{tmp_path}/in/*", "-o", tmp_path / "many")
    files = sorted((tmp_path / "in").iterdir())
    call("fit", *files, "-o", tmp_path / "named")
    texts = [row["text"] for row in rows(30, 1)]
    expected = um.load(tmp_path / "one").predict(texts)
    assert um.load(tmp_path / "many").predict(texts) == expected
    assert um.load(tmp_path / "named").predict(texts) == expected


def test_fit_learns_from_matrices_in_several_files(call, tmp_path):
    header, *lines = "6 4 3\n0 0:1\n0 0:1 3:1\n1 1:1\n1 1:1 3:1\n2 2:1\n2 2:1 3:1\n".splitlines()
    (tmp_path / "all.xmc").write_text("\n".join([header, *lines]) + "\n")
    (tmp_path / "a.xmc.txt").write_text("\n".join(["4 4 2", *lines[:4]]) + "\n")
    (tmp_path / "b.xmc.txt").write_text("\n".join(["2 4 3", *lines[4:]]) + "\n")
    call("fit", tmp_path / "all.xmc", "-o", tmp_path / "one")
    call("fit", f"{tmp_path}/*.xmc.txt", "-o", tmp_path / "many")
    asked = [call("predict", tmp_path / name, tmp_path / "all.xmc")[0] for name in ("one", "many")]
    assert asked[0] == asked[1]
    for name in ("a.svm", "b.svm"):
        (tmp_path / name).write_text("0 1:1\n")
    _, err = call("fit", f"{tmp_path}/*.svm", "-o", tmp_path / "svm", code=1)
    assert "--zero-based" in err

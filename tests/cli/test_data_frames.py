"""A frame of pandas or polars goes through the command line by Parquet, and comes back."""

import pytest

import umpteen as um
from umpteen.cluster import offline_writing

from .conftest import made_up

pd = pytest.importorskip("pandas", reason="needs umpteen[test]")
pl = pytest.importorskip("polars", reason="needs umpteen[test]")

LIBRARIES = {
    "pandas": (pd.DataFrame, lambda frame, path: frame.to_parquet(path), pd.read_parquet),
    "polars": (pl.DataFrame, lambda frame, path: frame.write_parquet(path), pl.read_parquet),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_in_and_out(call, model, tmp_path, monkeypatch, library):
    monkeypatch.setattr(offline_writing, "_ROWS_AT_ONCE", 7)  # several parts
    build, write, read = LIBRARIES[library]
    items = list(made_up(40, seed=3))
    write(build(items), tmp_path / "new.parquet")
    call("predict", model, tmp_path / "new.parquet", "-k", "2", "-o", tmp_path / "found.parquet")
    found = read(tmp_path / "found.parquet")
    assert list(found.columns) == ["id", "text", "labels", "scores"]
    expected = um.load(model).predict([item["text"] for item in items], k=2)
    tags = [
        list(zip(labels, scores, strict=True))
        for labels, scores in zip(found["labels"], found["scores"], strict=True)
    ]
    assert tags == expected
    assert list(found["text"]) == [item["text"] for item in items]
    # ... and in again: labels of earlier answers are not in the way
    call("predict", model, tmp_path / "found.parquet", "-o", tmp_path / "again.parquet")
    write(build(items), tmp_path / "train.parquet")
    call("fit", tmp_path / "train.parquet", "-o", tmp_path / "model")
    assert um.load(tmp_path / "model").labels == sorted({n for i in items for n in i["labels"]})


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_text_in_a_frame_is_named_by_its_row(call, tmp_path, library):
    build, write, _ = LIBRARIES[library]
    write(build({"text": ["a", None], "labels": [["x"], ["y"]]}), tmp_path / "x.parquet")
    _, err = call("fit", tmp_path / "x.parquet", "-o", tmp_path / "model", code=1)
    assert "row 1 has the text None" in err


def test_answers_without_texts_and_without_rows(call, model, folder, tmp_path):
    call("predict", model, folder / "test.jsonl", "--no-text", "-o", tmp_path / "a.parquet")
    assert list(pd.read_parquet(tmp_path / "a.parquet").columns) == ["id", "labels", "scores"]
    (tmp_path / "none.jsonl").write_text("")
    call("predict", model, tmp_path / "none.jsonl", "-o", tmp_path / "none.parquet")
    assert len(pd.read_parquet(tmp_path / "none.parquet")) == 0

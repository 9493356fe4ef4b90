"""Texts that stay in their files: the same model as from lists, to the byte."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import umpteen as um
from tests.cluster.models import texts as made_texts
from tests.engines import OtherProcesses
from umpteen import parallel
from umpteen.cli import main
from umpteen.data import read_shards
from umpteen.errors import (
    DataFormatError,
    DatasetNotFoundError,
    ParameterError,
    ShardsError,
)
from umpteen.shards import TextShards, lengths_of, texts_at
from umpteen.text import Vectorizer


def write_files(folder, texts, labels, sizes=(37, 0, 200, 1)):
    """Write jsonl files, the last with all the rest; return a pattern for all of them."""
    folder.mkdir()
    ends = np.append(np.cumsum(sizes), len(texts)).tolist()
    for i, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        lines = [
            json.dumps({"text": text, "labels": own}) + "\n"
            for text, own in zip(texts[first:last], labels[first:last], strict=True)
        ]
        (folder / f"{i}.jsonl").write_text("".join(lines))
    return str(folder / "*.jsonl")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Have several batches in a file, and several blocks in a batch."""
    monkeypatch.setattr("umpteen.data.shards._AT_ONCE", 50)
    monkeypatch.setattr("umpteen.text.reading._BLOCK", 1000)


@pytest.fixture
def shards(tmp_path):
    return read_shards(write_files(tmp_path / "in", *made_texts()))


@pytest.fixture(scope="module")
def other_processes():
    engine = OtherProcesses()
    yield engine
    engine.close()


def saved(model, folder):
    """What a model has on disk, but for the random beginning of its files' names."""
    model.save(folder)
    return contents(folder)


def contents(folder):
    return {path.name.split("-")[-1]: path.read_bytes() for path in folder.glob("*.npy")}


def test_labels_and_texts_are_those_of_the_files(shards):
    texts, labels = made_texts()
    assert shards.labels == labels
    assert list(shards.texts) == texts
    assert len(shards) == len(texts)
    assert lengths_of(shards.texts).tolist() == lengths_of(texts).tolist()
    rows = np.array([599, 0, 36, 37, 236, 237, 238, 0])
    assert texts_at(shards.texts, rows) == [texts[row] for row in rows]
    assert shards.texts[-1] == texts[-1]
    assert shards.texts[3:500:7] == texts[3:500:7]
    with pytest.raises(IndexError):
        shards.texts[600]


@pytest.mark.parametrize("keep_texts", [False, True])
def test_a_tagger_is_the_same_to_the_byte(shards, keep_texts, other_processes, tmp_path):
    """Otherwise a model would depend on how its texts were stored."""
    texts, labels = made_texts()

    def fitted(given, name):
        tree = um.LabelTree(max_leaf=8, branching=4)
        tagger = um.Tagger(tree, keep_texts=keep_texts, replay=100).fit(given, labels)
        return saved(tagger, tmp_path / name)

    expected = fitted(texts, "lists")
    assert fitted(shards.texts, "threads") == expected
    with parallel.engine(other_processes):
        assert fitted(shards.texts, "processes") == expected


MIXED = [
    "the cats are on the mat with a dog", "die Katzen sind auf der Matte mit einem Hund",
    "the dogs were in the house of a friend", "", "die Hunde waren in dem Haus eines Freundes",
] * 30  # fmt: skip


@pytest.mark.parametrize(
    "vectorizer",
    [
        Vectorizer(),
        Vectorizer(hashing=64),
        Vectorizer(ngrams=3, min_df=3, max_features=40),
        Vectorizer(language="en"),
        Vectorizer(language="auto", forms="both"),
    ],
    ids=["words", "hashing", "fewer", "stems", "languages"],
)
def test_features_are_the_same_to_the_bit(vectorizer, tmp_path):
    pattern = write_files(tmp_path / "in", MIXED, [[] for _ in MIXED], (60, 0, 31))
    X = vectorizer.fit_transform(MIXED)
    names = None if vectorizer.hashing else vectorizer.get_feature_names_out().tolist()
    found = vectorizer.fit_transform(read_shards(pattern).texts)
    for array in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, array), getattr(X, array))
    assert names is None or vectorizer.get_feature_names_out().tolist() == names


def test_counts_of_a_file_are_added_before_they_travel(shards):
    """Otherwise what the tasks return would be larger than the texts."""
    returned = []

    class Watched(OtherProcesses):
        def map(self, function, items, shared):
            for result in super().map(function, items, shared):
                if function.__name__ == "_counted":
                    returned.append(result)
                yield result

    engine = Watched()
    try:
        with parallel.engine(engine):
            Vectorizer().fit(shards.texts)
    finally:
        engine.close()
    assert len(returned) == 5
    for (ngrams, _), (hashes, lines) in returned:
        assert len(set(ngrams[0].tolist())) == len(ngrams[0])
        assert len(set(hashes.tolist())) == len(hashes) == lines.tobytes().count(b"\n")


def test_files_that_cannot_be_used_are_named(tmp_path):
    pattern = write_files(tmp_path / "in", *made_texts())
    texts = read_shards(pattern).texts
    first = tmp_path / "in" / "0.jsonl"
    first.write_text(first.read_text() + '{"text": "one more"}\n')
    with pytest.raises(ShardsError, match=r"0\.jsonl was changed"):
        texts[0]
    first.write_text('{"text": "no end\n')
    with pytest.raises(DataFormatError, match=r"0\.jsonl"):
        read_shards(pattern)
    (tmp_path / "a.xmc.txt").write_text("1 2 2\n0 0:1\n")
    with pytest.raises(DataFormatError, match="holds matrices"):
        read_shards(tmp_path / "a.xmc.txt")
    with pytest.raises(DatasetNotFoundError):
        read_shards(str(tmp_path / "none" / "*.jsonl"))


def other_words(file):
    samples = map(json.loads, file.read_text().splitlines())
    changed = [{**sample, "text": sample["text"][::-1]} for sample in samples]
    file.write_text("".join(json.dumps(sample) + "\n" for sample in changed))


def one_long_line(file):
    size = file.stat().st_size
    file.write_text(json.dumps({"text": "x" * (size - 13)}) + "\n")


@pytest.mark.parametrize("change", [other_words, one_long_line, Path.unlink])
def test_files_that_change_after_they_were_counted_are_named(change, tmp_path):
    """Otherwise the rows of X would not be those of the labels."""
    pattern = write_files(tmp_path / "in", *made_texts())
    texts = read_shards(pattern).texts
    size = (tmp_path / "in" / "2.jsonl").stat().st_size
    change(tmp_path / "in" / "2.jsonl")
    if change is not Path.unlink:
        assert (tmp_path / "in" / "2.jsonl").stat().st_size == size
    with pytest.raises(ShardsError, match=r"2\.jsonl"):
        Vectorizer().fit(texts)
    with pytest.raises(ShardsError, match=r"2\.jsonl"):
        list(texts)
    if change is one_long_line:
        with pytest.raises(ShardsError, match=r"2\.jsonl"):
            texts[236]


def test_a_pipe_is_refused(tmp_path):
    """It can be read once, and a second reader would wait for ever."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataFormatError, match="pipe"):
        read_shards(tmp_path / "pipe.jsonl")


@pytest.mark.parametrize("nothing", [None, 5, [5], b"train.jsonl"])
def test_what_names_no_file_is_refused(nothing):
    with pytest.raises(ParameterError, match="names no file"):
        read_shards(nothing)


@pytest.mark.parametrize("names", ["", ["a.jsonl", ""]])
def test_an_empty_name_is_not_the_root_of_the_disk(names):
    with pytest.raises(ParameterError, match="name of an input file is empty"):
        read_shards(names)


@pytest.mark.parametrize("option", ["text_field", "labels_field"])
@pytest.mark.parametrize("value", [3, ["text"], True, {}])
def test_the_name_of_a_field_is_a_text(tmp_path, option, value):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "labels": ["x"]}\n')
    with pytest.raises(ParameterError, match=f"{option}=.*use a single text"):
        read_shards(tmp_path / "a.jsonl", **{option: value})


def test_groups_are_refused_rather_than_dropped(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "page": "p1", "labels": ["x"]}\n')
    with pytest.raises(ParameterError, match="texts of groups cannot stay in their files"):
        read_shards(tmp_path / "a.jsonl", group_field="page")


def test_files_without_labels_have_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "b.jsonl").write_text('{"text": "b", "labels": ["x"]}\n')
    assert read_shards([tmp_path / "a.jsonl"]).labels is None
    assert read_shards(str(tmp_path / "*.jsonl")).labels == [[], ["x"]]


def test_a_slice_is_read_once(shards, monkeypatch):
    """Two functions look at the same texts to find the language."""
    first = shards.texts[::5]
    monkeypatch.setattr(TextShards, "take", None)
    assert shards.texts[::5] == first


def test_the_command_line_streams(tmp_path):
    pattern = write_files(tmp_path / "in", *made_texts())
    for name, more in {"lists": [], "stream": ["--stream"]}.items():
        with pytest.raises(SystemExit) as ended:
            main(["fit", pattern, "-o", str(tmp_path / name), *more])
        assert ended.value.code == 0
    assert len(contents(tmp_path / "stream")) > 20
    assert contents(tmp_path / "stream") == contents(tmp_path / "lists")


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [(["-"], [], "several times"), (["{}"], ["--group", "page"], "single texts")],
)
def test_the_command_line_refuses(files, options, says, tmp_path, capsys):
    pattern = write_files(tmp_path / "in", *made_texts())
    named = [file.format(pattern) for file in files]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *named, "-o", str(tmp_path / "model"), "--stream", *options])
    assert ended.value.code != 0
    assert says in capsys.readouterr().err

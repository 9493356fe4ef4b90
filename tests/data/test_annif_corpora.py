"""Corpora of Annif are read as Annif reads them, and what we write it reads as we meant it."""

import gzip
import json
import os
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umpteen as um
from umpteen.data import Concept, LabelVocabulary, Samples, read_annif, write_annif
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError

DOG, CAT = "http://example.org/dog", "http://example.org/cat"
VOCABULARY = LabelVocabulary.of(
    [Concept("d", "dogs", uri=DOG, notation="1.2"), Concept("c", "cats", uri=CAT)]
)
SAMPLES = Samples(
    texts=["a barking pet", "", 'both, "quoted"'],
    labels=[[DOG], [], [DOG, CAT]],
    ids=["a", "b", "c"],
)
TSV = f'a barking pet\t<{DOG}>\n\t\nboth, "quoted"\t<{DOG}> {CAT}\n'
CSV = f'document_id,text,subject_uris,title\na,a barking pet,<{DOG}>,x\nb,,,x\nc,"both, ""quoted""",{DOG} {CAT},x\n'  # noqa: E501
JSONL = "".join(
    json.dumps(item) + "\n"
    for item in (
        {"document_id": "a", "text": "a barking pet", "subjects": [{"uri": DOG, "label": "dogs"}]},
        {"document_id": "b", "text": "", "subjects": [], "metadata": {"year": 2020}},
        {"document_id": "c", "text": 'both, "quoted"', "subjects": [{"uri": DOG}, {"uri": CAT}]},
    )
)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("kind", "content"), [("tsv", TSV), ("csv", CSV), ("jsonl", JSONL)])
def test_files_are_read(tmp_path, kind, content, packed):
    path = tmp_path / f"x.{kind}{'.gz' * packed}"
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode("utf-8-sig"))
    for found in (read_annif(path), um.data.read(path, format="annif")):
        assert found.texts == SAMPLES.texts
        assert found.labels == SAMPLES.labels
        assert found.ids == (None if kind == "tsv" else SAMPLES.ids)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "corpus"
    place.mkdir()
    (place / "a.txt").write_bytes(b"\xef\xbb\xbfa barking pet")
    (place / "a.tsv").write_text(f"<{DOG}>\tdogs\t1.2\n")
    (place / "a.key").write_text("not looked at, as there is a .tsv\n")
    (place / "b.txt").write_bytes(b"bytes \xff that are no UTF-8")
    (place / "b.key").write_text("cats\n\n  dogs  \n")
    (place / "c.txt").write_text("no subjects")
    (place / "d.json").write_text('{"text": "of JSON", "subjects": [{"uri": "' + CAT + '"}]}')
    (place / "notes.md").write_text("passed over")
    return place


def test_folders_are_read(folder):
    found = read_annif(folder)
    assert found.ids == ["a", "b", "c", "d"]
    assert found.texts == [
        "a barking pet",
        "bytes \ufffd that are no UTF-8",
        "no subjects",
        "of JSON",
    ]
    assert found.labels == [[DOG], ["cats", "dogs"], [], [CAT]]


def test_a_vocabulary_turns_uris_and_names_into_its_labels(folder):
    assert read_annif(folder, VOCABULARY).labels == [["d"], ["c", "d"], [], ["c"]]
    only_dogs = LabelVocabulary.of([Concept("d", "dogs", uri=DOG)])
    with pytest.warns(UserWarning, match=r"2 subjects are not in the vocabulary.*1 times"):
        assert read_annif(folder, only_dogs).labels == [["d"], ["d"], [], []]


def test_lines_without_a_tab_are_left_out_as_annif_does(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(f"a\t<{DOG}>\nbroken\n\nb\t<{CAT}>\nbroken too\n")
    with pytest.warns(UserWarning, match="2 lines without a tab.*the first is line 2"):
        assert read_annif(path).texts == ["a", "b"]


def test_a_file_without_any_tab_has_texts_only(tmp_path):
    (tmp_path / "x.tsv").write_text("one text\nanother\n")
    found = read_annif(tmp_path / "x.tsv")
    assert found.texts == ["one text", "another"]
    assert found.labels is None


@pytest.mark.parametrize(
    "name", ["x.tsv", "x.tsv.gz", "x.csv", "x.csv.gz", "x.jsonl", "x.jsonl.gz", "x"]
)
def test_what_is_written_is_read_again(tmp_path, name):
    named = Samples(texts=SAMPLES.texts, labels=[["d"], [], ["d", "c"]], ids=SAMPLES.ids)
    write_annif(named, tmp_path / name, VOCABULARY)
    found = read_annif(tmp_path / name)
    assert found.texts == SAMPLES.texts
    assert found.labels == SAMPLES.labels
    assert read_annif(tmp_path / name, VOCABULARY).labels == named.labels
    assert found.ids == (None if "tsv" in name else SAMPLES.ids)


def test_folders_may_have_names_only(tmp_path):
    named = Samples(texts=["x", "y"], labels=[["d"], ["rye bread"]], ids=["../escape", "ok"])
    write_annif(named, tmp_path / "keys", VOCABULARY, subjects="key")
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == [
        "document-0.key", "document-0.txt", "ok.key", "ok.txt",
    ]  # fmt: skip
    assert read_annif(tmp_path / "keys").labels == [["dogs"], ["rye bread"]]
    assert not list(tmp_path.glob("escape*"))


texts = st.text(st.characters(codec="utf-8"), max_size=30)
uris = st.lists(st.from_regex(r"http://example\.org/[a-z0-9]{1,5}", fullmatch=True), unique=True)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, uris), max_size=5), st.sampled_from(["csv", "jsonl"]))
def test_any_text_survives_csv_and_json(tmp_path_factory, documents, kind):
    samples = Samples(texts=[text for text, _ in documents], labels=[own for _, own in documents])
    path = tmp_path_factory.mktemp("any") / f"x.{kind}"
    write_annif(samples, path)
    found = read_annif(path)
    newlines = [text.replace("\r\n", "\n").replace("\r", "\n") for text in samples.texts]
    assert found.texts == samples.texts or found.texts == newlines
    assert (found.labels or []) == samples.labels


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, uris), min_size=1, max_size=5))
def test_in_tsv_a_text_is_one_line(tmp_path_factory, documents):
    samples = Samples(texts=[text for text, _ in documents], labels=[own for _, own in documents])
    path = tmp_path_factory.mktemp("tsv") / "x.tsv"
    write_annif(samples, path)
    found = read_annif(path)
    assert [text.split() for text in found.texts] == [text.split() for text in samples.texts]
    assert found.labels == samples.labels


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("x.csv", "title,subject_uris\na,b\n", "no column 'text'"),
     ("x.csv", "text,subject_uris\na\n", "1 cells, but the header has 2"),
     ("x.csv", "text,text,subject_uris\na,b,c\n", "both called 'text'"),
     ("x.jsonl", '{"text": ["a"], "subjects": []}\n', "line 1.*'text' is"),
     ("x.jsonl", '{"text": "a", "subjects": ["dog"]}\n', "expected subjects such as"),
     ("x.jsonl", '{"text": "a", "subjects": {"uri": "b"}}\n', "expected subjects such as")],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataFormatError, match=message):
        read_annif(tmp_path / name)


def test_what_annif_cannot_hold_is_refused(tmp_path):
    plain = Samples(texts=["a"], labels=[["rye bread"]])
    for name in ("x.tsv", "x.csv", "x.jsonl", "folder"):
        with pytest.raises(DataFormatError, match="'rye bread', which cannot be a URI"):
            write_annif(plain, tmp_path / name)
    assert not (tmp_path / "x.tsv").exists()
    with pytest.raises(DataFormatError, match=r"use \.tsv, \.csv, \.jsonl"):
        write_annif(plain, tmp_path / "x.parquet")
    with pytest.raises(ParameterError, match="use 'tsv' or 'key'"):
        write_annif(plain, tmp_path / "folder", subjects="csv")
    with pytest.raises(DatasetNotFoundError):
        read_annif(tmp_path / "nowhere.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataFormatError, match="has no documents"):
        read_annif(tmp_path / "empty")


def test_a_document_that_is_no_file_or_too_large_is_refused(folder, monkeypatch):
    (folder / "e.txt").mkdir()
    with pytest.raises(DataFormatError, match="not a regular file"):
        read_annif(folder)
    (folder / "e.txt").rmdir()
    monkeypatch.setenv("UMPTEEN_MAX_LINE", "100kB")
    (folder / "e.txt").write_text("x" * 200_000)
    with pytest.raises(DataFormatError, match="longer than 100kB"):
        read_annif(folder)


def test_vocabularies_go_to_annif_and_back(tmp_path):
    um.data.write_annif_vocabulary(VOCABULARY, tmp_path / "v.tsv")
    assert (tmp_path / "v.tsv").read_text() == f"<{DOG}>\tdogs\t1.2\n<{CAT}>\tcats\n"
    found = um.data.read_vocabulary(tmp_path / "v.tsv")
    assert [concept.name for concept in found.values()] == ["dogs", "cats"]
    assert found[DOG].notation == "1.2"


def test_no_document_of_a_folder_replaces_another(tmp_path):
    ids = ["document-1", "../x", "a", "A", "a", "document-4"]
    texts = [f"text {i}" for i in range(len(ids))]
    write_annif(Samples(texts=texts, labels=[["u"]] * len(ids), ids=ids), tmp_path / "corpus")
    found = read_annif(tmp_path / "corpus")
    assert sorted(found.texts) == texts
    assert len({name.casefold() for name in found.ids}) == len(ids)


def test_names_that_are_not_utf_8_and_half_characters(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a text")
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    assert read_annif(tmp_path).ids == ["\ufffd"]
    for content in ('{"text": "\\ud800"}', '{"text": "a", "document_id": "\\udfff"}'):
        (tmp_path / "a.json").write_text(content)
        with pytest.raises(DataFormatError, match="half a character"):
            read_annif(tmp_path)


def test_subjects_that_are_no_file_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "a.tsv").mkdir()
    with pytest.raises(DataFormatError, match="not a regular file"):
        read_annif(tmp_path)


def test_labels_that_begin_late_are_warned_of():
    content = b"a text of some words\n" * 20_000 + b"another\t<http://example.org/1>\n"
    with pytest.warns(UserWarning, match="first 20,000 texts have no tab"):
        assert len(read_annif(BytesIO(content))) == 20_001

"""If these fail, ids no longer mean the same label in train and test, and every score is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.data import read, write
from umpteen.data.dataset import Dataset
from umpteen.data.samples import Samples
from umpteen.errors import (
    DatasetNotFoundError,
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    ParameterError,
    TextsError,
)

label_lists = st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=4), min_size=1)


def samples(labels, **more):
    return Samples(texts=["text"] * len(labels), labels=labels, **more)


@pytest.fixture
def dataset():
    return Dataset.from_samples(
        samples([["b", "a"], ["b"], []], ids=["x", "y", "z"]),
        test=samples([["a", "0"]]),
        label_texts={"a": "first letter", "new": "not used yet"},
        name="letters",
    )


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (["fruit", "metal"], r"labels\[0\] is 'fruit', a str; expected a list"),
        ([["fruit"], None], r"labels\[1\] is None"),
        ([["fruit"], 7], r"labels\[1\] is 7"),
        ("fruit", "labels is 'fruit', a str"),
        (iter([["fruit"], ["metal"]]), "labels is .*, a list_iterator"),
    ],
)
def test_a_name_in_place_of_a_list_is_not_read_letter_by_letter(labels, match):
    with pytest.raises(LabelsError, match=match):
        Samples(texts=["apple", "iron"], labels=labels)
    with pytest.raises(TextsError, match="single text 'apple'"):
        Samples(texts="apple")


def test_ids_are_those_of_train_then_of_test_then_of_texts(dataset):
    assert dataset.label_names == ["a", "b", "0", "new"]
    assert dataset.label_texts == ["first letter", "", "", "not used yet"]
    assert dataset.train.Y.toarray().tolist() == [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert dataset.test.Y.toarray().tolist() == [[1, 0, 1, 0]]


@given(train=label_lists, test=label_lists)
def test_names_survive_numbering(train, test):
    dataset = Dataset.from_samples(samples(train), test=samples(test))
    for part, given_labels in ((dataset.train, train), (dataset.test, test)):
        assert [set(names) for names in part.labels] == [set(names) for names in given_labels]


@given(train=label_lists, test=label_lists, seed=st.randoms())
def test_order_of_samples_does_not_change_ids(train, test, seed):
    before = Dataset.from_samples(samples(train), test=samples(test))
    seed.shuffle(train)
    seed.shuffle(test)
    assert Dataset.from_samples(samples(train), test=samples(test)).label_names == (
        before.label_names
    )


def test_unlabelled_test_has_empty_rows_but_unlabelled_train_is_refused(dataset):
    unlabelled = Samples(texts=["a", "b"])
    assert Dataset.from_samples(samples([["a"]]), test=unlabelled).test.labels == [[], []]
    with pytest.raises(LabelsError, match="nothing to learn"):
        Dataset.from_samples(unlabelled)


def test_numbers_of_narrower_parts_are_widened():
    dataset = Dataset.from_samples(
        Samples(X=csr_matrix(np.eye(2)), Y=csr_matrix([[1], [1]])),
        test=Samples(X=csr_matrix([[0, 0, 5]]), Y=csr_matrix([[0, 0, 0, 1]])),
        label_texts={"3": "three"},
    )
    assert dataset.train.X.shape == (2, 3)
    assert dataset.train.Y.shape == (2, 4)
    assert dataset.test.labels == [["3"]]
    assert dataset.label_texts == ["", "", "", "three"]


def test_mixtures_that_cannot_be_meant_are_refused():
    names, numbers = samples([["a"]]), Samples(X=np.eye(1), Y=csr_matrix([[1]]))
    with pytest.raises(LabelsError, match="use one of the two"):
        Dataset.from_samples(names, test=numbers)
    with pytest.raises(LabelsError, match="use one of the two"):
        Dataset.from_samples(numbers, test=names)
    with pytest.raises(FeaturesError, match="different shapes"):
        Dataset.from_samples(numbers, test=Samples(X=np.eye(2)))
    with pytest.raises(LabelsShapeError, match="2 samples but 1 rows"):
        Dataset.from_samples(Samples(X=np.eye(2), Y=csr_matrix([[1]])))


def test_y_is_for_one_label_per_sample(dataset):
    assert Dataset.from_samples(samples([["b"], ["a"]])).train.y.tolist() == [1, 0]
    with pytest.raises(LabelsError, match="sample 0 has 2 labels"):
        _ = dataset.train.y


@given(n=st.integers(2, 50), share=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_split_loses_and_repeats_nothing(n, share, seed):
    ids = [str(i) for i in range(n)]
    dataset = Dataset.from_samples(samples([[i] for i in ids], ids=ids))
    splits = dataset.split(dev=share, random_state=seed).splits
    assert sorted(splits["train"].ids + splits["dev"].ids) == sorted(ids)
    assert all(len(part) for part in splits.values())
    for part in splits.values():
        assert [[i] for i in part.ids] == part.labels
    assert splits["dev"].ids == dataset.split(dev=share, random_state=seed).dev.ids


def test_split_refuses_what_it_cannot_do(dataset):
    with pytest.raises(ParameterError, match="share between 0"):
        dataset.split(dev=3)
    with pytest.raises(ParameterError, match="has a dev split already"):
        dataset.split(dev=0.4).split()


def test_labels_of_fewer_texts_are_refused():
    """Otherwise the labels of a fit are those of other texts, or missing, much later."""
    with pytest.raises(LabelsShapeError, match="2 texts but 1 labels"):
        Samples(texts=["a", "b"], labels=[["x"]])


def test_texts_that_can_be_read_once_are_refused():
    with pytest.raises(TextsError, match=r"a generator, .* expected a list: list\(texts\)"):
        Samples(texts=(text for text in "ab"), labels=[["x"], ["y"]])


@pytest.mark.parametrize("given", [["a", "b"], (["a"], [["x"]]), Dataset])
def test_what_is_no_samples_is_refused(given, tmp_path):
    with pytest.raises(ParameterError, match=r"train is a .* expected umpteen.data.Samples\(texts"):
        Dataset.from_samples(given)
    with pytest.raises(ParameterError, match=r"samples is a .* expected umpteen.data.Samples"):
        write(given, tmp_path / "new.jsonl")


def test_one_file_is_read_at_a_time(tmp_path):
    with pytest.raises(ParameterError, match=r"a list is not a path; .*read_shards takes names"):
        read(["a.jsonl", "b.jsonl"])
    with pytest.raises(DatasetNotFoundError, match="read_shards takes patterns"):
        read(tmp_path / "*.jsonl")

"""If these fail, people judge a data set, and choose a method for it, by wrong figures."""

import numpy as np
import pytest

from umpteen.data.dataset import Dataset
from umpteen.data.describe import zipf_exponent
from umpteen.data.samples import Samples


@pytest.fixture
def description():
    labels = [["a", "b"], ["a"], ["a", "c"], []]
    return Dataset.from_samples(
        Samples(texts=["one two", "three", "four", "five"], labels=labels),
        test=Samples(texts=["six"], labels=[["new"]]),
        name="counted",
    ).describe()


def test_figures_are_those_counted_by_hand(description):
    train = description.to_dict()["splits"]["train"]
    assert train == {
        "n_samples": 4,
        "words_per_text": 1.25,
        "n_labels": 3,
        "labels_per_sample_mean": 1.25,
        "labels_per_sample_median": 1.5,
        "labels_per_sample_max": 2,
        "samples_per_label_mean": pytest.approx(5 / 3),
        "samples_per_label_median": 1.0,
        "samples_per_label_max": 3,
        "share_of_labels_with_1_sample": pytest.approx(2 / 3),
        "share_of_labels_with_5_or_fewer": 1.0,
        "share_of_samples_in_top_tenth": 0.75,
        "zipf_exponent": pytest.approx(np.log2(3)),
    }
    assert description.to_dict()["splits"]["test"]["n_labels_not_in_train"] == 1


def test_prints_as_a_table(description):
    printed = str(description)
    assert "counted: 4 labels" in printed
    assert "66.7 %" in printed


def test_plot_is_written(description, tmp_path):
    pytest.importorskip("matplotlib")
    description.plot(tmp_path / "tail.png")
    assert (tmp_path / "tail.png").stat().st_size > 1000


def test_empty_part_has_figures():
    dataset = Dataset.from_samples(
        Samples(texts=["a"], labels=[["x"]]), test=Samples(texts=[], labels=[])
    )
    assert dataset.describe().to_dict()["splits"]["test"]["n_samples"] == 0
    assert "samples" in str(dataset.describe())


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_zipf_exponent_finds_the_power(exponent):
    counts = 1e6 * np.arange(1.0, 1000) ** -exponent
    assert zipf_exponent(counts) == pytest.approx(exponent, abs=1e-6)

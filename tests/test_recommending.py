"""A person with a file gets the method that is best on it, and honest words about why."""

from types import SimpleNamespace

import pytest

import umpteen as um
from tests.tagger.made_up import make_up
from umpteen import recommending
from umpteen.linear.resources import Estimate

TEXTS, LABELS = make_up(300)


class Fake:
    """A candidate whose quality is given."""

    classifier = None

    def __init__(self, precision, ndcg):
        self.metrics = {"precision@1": precision, "nDCG@5": ndcg}

    def fit(self, texts, labels, label_texts):
        assert 240 <= len(texts) == len(labels) < 280
        self.learned = set(texts)
        return self

    def evaluate(self, texts, labels, ks, n_examples):
        assert 20 < len(texts) <= 60
        return SimpleNamespace(metrics=self.metrics)


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setattr(um.Tagger, "estimate", lambda self, *data: Estimate(2_000_000, 1_000, 3.0))

    def use(**qualities):
        made = {name: Fake(*quality) for name, quality in qualities.items()}
        monkeypatch.setattr(
            recommending, "_CANDIDATES", {name: lambda seed, f=f: f for name, f in made.items()}
        )

    return use


def test_the_best_candidate_is_recommended(fakes):
    fakes(default=(0.5, 0.50), better=(0.6, 0.52), best=(0.4, 0.53))
    found = um.recommend(TEXTS, LABELS)
    assert found.code == "best"
    assert found.tagger().metrics["nDCG@5"] == 0.53
    assert [trial.code for trial in found.trials] == ["default", "better", "best"]
    assert "3.0 points of nDCG@5 over the default" in str(found)
    assert "300 texts with 24 labels" in str(found)
    assert "2 MB" in str(found)
    assert "the model has about 1 MB" in str(found)  # not 0 MB


def test_a_hair_is_no_reason_to_leave_the_default(fakes):
    fakes(default=(0.5, 0.50), slower=(0.6, 0.504))
    assert um.recommend(TEXTS, LABELS).code == "default"


def test_what_was_not_tried_is_said(fakes):
    fakes(default=(0.5, 0.5), other=(0.9, 0.9))
    found = um.recommend(TEXTS, LABELS, max_seconds=0)
    assert found.code == "default"
    assert found.reasons[-1] == "not tried, as the time was up: other"


def test_few_texts_are_not_compared(fakes):
    fakes(**{"um.Tagger()": (0.5, 0.5)})
    found = um.recommend(TEXTS[:99], LABELS[:99])
    assert found.trials == []
    assert found.code == "um.Tagger()"
    assert "99 texts" in str(found)


def test_texts_of_the_test_part_are_not_learned(monkeypatch, fakes):
    fakes(default=(0.5, 0.5))
    tested = []
    numbered = [f"text {i}" for i in range(300)]
    monkeypatch.setattr(
        Fake,
        "evaluate",
        lambda self, texts, labels, **_: (
            tested.append((self.learned, set(texts))) or SimpleNamespace(metrics=self.metrics)
        ),
    )
    um.recommend(numbered, LABELS)
    ((learned, unseen),) = tested
    assert learned.isdisjoint(unseen)
    assert learned | unseen == set(numbered)


def test_near_copies_are_on_the_same_side(monkeypatch, fakes):
    """Otherwise a method that remembers texts looks better than it will be."""
    fakes(default=(0.5, 0.5))
    tested = []
    copies = [f"{text} copy{i}" for text in TEXTS[:75] for i in range(4)]
    monkeypatch.setattr(
        Fake,
        "evaluate",
        lambda self, texts, labels, **_: (
            tested.extend(texts) or SimpleNamespace(metrics=self.metrics)
        ),
    )
    um.recommend(copies, [labels for labels in LABELS[:75] for _ in range(4)])
    originals = [text.rpartition(" ")[0] for text in tested]
    assert tested
    assert all(originals.count(text) % 4 == 0 for text in originals)


def test_texts_that_are_all_alike_can_be_compared(fakes):
    fakes(default=(0.5, 0.5))
    assert um.recommend(["the same"] * 300, LABELS).code == "default"


@pytest.mark.parametrize("labels", [[[]] * 300, [["a"]] * 299])
def test_bad_labels_are_refused(labels):
    with pytest.raises(um.errors.UmpteenError):
        um.recommend(TEXTS, labels)


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1"])
def test_bad_seconds_are_refused(seconds):
    with pytest.raises(um.errors.ParameterError, match="max_seconds"):
        um.recommend(TEXTS, LABELS, max_seconds=seconds)


def test_real_candidates_on_real_texts():
    found = um.recommend(TEXTS, LABELS, random_state=1)
    assert len(found.trials) == 3
    assert all(trial.precision_at_1 > 0.8 for trial in found.trials)
    assert found.seconds > 0
    assert found.to_dict()["trials"][0]["code"] == "um.Tagger()"
    assert found.tagger().fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.9
    same = um.recommend(TEXTS, LABELS, random_state=1)
    assert (same.code, [trial.ndcg_at_5 for trial in same.trials]) == (
        found.code,
        [trial.ndcg_at_5 for trial in found.trials],
    )


def test_the_command_says_the_same(capsys, tmp_path, fakes):
    from umpteen.cli.app import run

    fakes(default=(0.5, 0.50), best=(0.4, 0.53))
    um.data.write(um.data.Samples(texts=TEXTS, labels=LABELS), tmp_path / "train.jsonl")
    assert run(["recommend", str(tmp_path / "train.jsonl"), "--table"]) == 0
    assert capsys.readouterr().out.startswith("Use best\n- 300 texts with 24 labels")
    assert run(["recommend", str(tmp_path / "train.jsonl"), "--json"]) == 0
    assert '"code": "best"' in capsys.readouterr().out


def test_the_command_reads_label_texts(tmp_path, fakes, monkeypatch):
    from umpteen.cli.app import run

    fakes(default=(0.5, 0.50))
    given = []
    monkeypatch.setattr(
        Fake, "fit", lambda self, texts, labels, label_texts: given.append(label_texts) or self
    )
    um.data.write(um.data.Samples(texts=TEXTS, labels=LABELS), tmp_path / "train.jsonl")
    (tmp_path / "labels.jsonl").write_text('{"label": "a", "text": "apples"}\n')
    label_texts = ["--label-texts", str(tmp_path / "labels.jsonl")]
    assert run(["recommend", str(tmp_path / "train.jsonl"), *label_texts]) == 0
    assert given == [{"a": "apples"}]

"""A threshold that misses its promise costs a reviewer hours, or a customer trust."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import ParameterError
from umpteen.tagger import Tagger, thresholds
from umpteen.tagger.thresholds import Thresholds, ValidatedAnswers, tune

from .made_up import make_up

N_LABELS = 7


def validated_answers(seed, n=30, k=4, digits=2):
    """Answers with probabilities that tie often, and labels that are never answered."""
    random = np.random.default_rng(seed)
    labels = np.argsort(random.random((n, N_LABELS - 1)), axis=1)[:, :k]
    p = -np.sort(-random.random((n, k)).round(digits), axis=1).astype(np.float32)
    gone = np.arange(k) >= random.integers(0, k + 1, n)[:, None]
    gone[0] = False  # at least one answer
    top = TopK(np.where(gone, -1, labels), np.where(gone, -np.inf, p))
    Y = csr_matrix((random.random((n, N_LABELS)) < 0.3).astype(np.float32))
    return ValidatedAnswers.of(top, Y), top, Y.toarray() > 0


def given_from(top, least):
    """(samples, labels): the answers from a threshold on, as a set of pairs."""
    return {
        (row, int(label))
        for row in range(len(top))
        for label, p in zip(top.labels[row], top.scores[row], strict=True)
        if label >= 0 and p >= least
    }


def counts(top, relevant, least):
    pairs = given_from(top, least)
    return sum(relevant[pair] for pair in pairs), len(pairs), relevant.sum()


def f1(right, n_given, n_relevant):
    return 2 * right / (n_given + n_relevant)


def all_thresholds(top):
    return sorted(set(top.scores[top.labels >= 0].tolist()), reverse=True)


seeds = st.integers(0, 100_000)
digits = st.sampled_from([1, 2, 6])


@given(seeds, digits)
def test_micro_f1_is_the_best_of_all_thresholds(seed, digits):
    validated, top, relevant = validated_answers(seed, digits=digits)
    found = tune("micro_f1", validated)
    values = [f1(*counts(top, relevant, least)) for least in all_thresholds(top)]
    assert found.reached == pytest.approx(max(values))
    assert found.reached == pytest.approx(f1(*counts(top, relevant, found.least)))
    assert found.per_label is None


@given(seeds, digits, st.sampled_from(["0.2", ".4", "0.6", "0.75", "1", "1.0"]))
def test_precision_gives_as_many_labels_as_hold_the_promise(seed, digits, share):
    validated, top, relevant = validated_answers(seed, digits=digits)
    table = [(least, *counts(top, relevant, least)) for least in all_thresholds(top)]
    enough = [row for row in table if row[1] / row[2] >= float(share)]
    if not enough:
        best = max(right / n for _, right, n, _ in table)
        with pytest.raises(ParameterError, match=f"cannot be reached.*the best is {best:.3f}"):
            tune(f"precision@{share}", validated)
        return
    found = tune(f"precision@{share}", validated)
    least, right, n_given, _ = max(enough, key=lambda row: row[2])
    assert found.least == least
    assert found.reached == pytest.approx(right / n_given)


@given(seeds, digits, st.sampled_from(["0.1", "0.3", "0.5"]))
def test_recall_gives_as_few_labels_as_are_needed(seed, digits, share):
    validated, top, relevant = validated_answers(seed, digits=digits)
    table = [(least, *counts(top, relevant, least)) for least in all_thresholds(top)]
    enough = [row for row in table if row[1] / row[3] >= float(share)]
    if not enough:
        with pytest.raises(ParameterError, match="cannot be reached"):
            tune(f"recall@{share}", validated)
        return
    found = tune(f"recall@{share}", validated)
    least, right, _, n_relevant = min(enough, key=lambda row: row[2])
    assert found.least == least
    assert found.reached == pytest.approx(right / n_relevant)


@settings(max_examples=60)
@given(seeds, digits)
def test_macro_f1_chooses_for_each_label_alone(seed, digits):
    """Right answers count half as seen, half as promised; what is reached counts as seen."""
    validated, top, relevant = validated_answers(seed, digits=digits)
    found = tune("macro_f1", validated)
    best, reached = {}, {}
    for label in range(N_LABELS):
        rows, ranks = np.nonzero(top.labels == label)
        p, hits = top.scores[rows, ranks].astype(float), relevant[rows, label]
        n_relevant = relevant[:, label].sum()
        softly = {
            least: f1(
                ((hits + p)[p >= least] / 2).sum(), (p >= least).sum(), (n_relevant + p.sum()) / 2
            )
            for least in sorted(set(p), reverse=True)
        }
        if softly:
            value = max(softly.values())
            best[label] = [least for least, f in softly.items() if f >= value - 1e-12]
            assert found.per_label[label] in np.float32(best[label])
            given_ = p >= found.per_label[label]
            reached[label] = f1(hits[given_].sum(), given_.sum(), n_relevant)
    median = np.median([found.per_label[label] for label in best])
    assert found.least == pytest.approx(median)
    never = [label for label in range(N_LABELS) if label not in best]
    np.testing.assert_allclose(found.per_label[never], median, rtol=1e-6)
    counted = [label for label in range(N_LABELS) if relevant[:, label].any()]
    macro = sum(reached.get(label, 0) for label in counted) / len(counted)
    assert found.reached == pytest.approx(macro)


def test_equal_probabilities_are_given_together():
    """Both answers have 0.5: there is no threshold that gives only the right one."""
    top = TopK([[0], [0]], [[0.5], [0.5]])
    found = tune("macro_f1", ValidatedAnswers.of(top, csr_matrix([[1.0], [0.0]])))
    assert found.reached == pytest.approx(2 / 3)


@given(seeds, digits, st.floats(0, 1, width=32))
def test_cut_leaves_what_is_high_enough_at_the_front(seed, digits, least):
    _, top, _ = validated_answers(seed, digits=digits)
    found = top.cut(least)
    for row in range(len(top)):
        kept = [
            (label, p)
            for label, p in zip(top.labels[row].tolist(), top.scores[row].tolist(), strict=True)
            if label >= 0 and p >= least
        ]
        rest = [(-1, -np.inf)] * (top.k - len(kept))
        pairs = zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True)
        assert list(pairs) == kept + rest


@given(seeds)
def test_cut_takes_a_threshold_for_every_label(seed):
    _, top, _ = validated_answers(seed)
    per_label = np.random.default_rng(seed).random(N_LABELS).astype(np.float32)
    found = Thresholds("macro_f1", 0.5, 0.5, per_label).apply(top)
    expected = {pair for pair in given_from(top, 0) if _score(top, pair) >= per_label[pair[1]]}
    assert given_from(found, 0) == expected


def _score(top, pair):
    return top.scores[pair[0]][top.labels[pair[0]] == pair[1]][0]


@given(seeds, st.sampled_from(["micro_f1", "macro_f1", "recall@0.1"]))
def test_what_was_promised_is_what_is_given(seed, metric):
    """The thresholds applied to the same answers give the labels that were counted."""
    validated, top, relevant = validated_answers(seed)
    found = tune(metric, validated)
    pairs = given_from(found.apply(top), 0)
    right, n_relevant = sum(relevant[pair] for pair in pairs), relevant.sum()
    if metric == "micro_f1":
        assert found.reached == pytest.approx(f1(right, len(pairs), n_relevant))
    elif metric == "recall@0.1":
        assert found.reached == pytest.approx(right / n_relevant)
    else:
        mine = [[pair for pair in pairs if pair[1] == label] for label in range(N_LABELS)]
        values = [
            f1(sum(relevant[pair] for pair in mine[label]), len(mine[label]), n)
            for label, n in enumerate(relevant.sum(axis=0))
            if n
        ]
        assert found.reached == pytest.approx(np.mean(values))


@pytest.mark.parametrize("metric", ["f1", "precision", "precision@2", "recall@1.5", "recall@x", ""])
def test_unknown_metrics_are_named_with_those_that_are_known(metric):
    with pytest.raises(ParameterError, match=r"micro_f1, macro_f1, precision@0\.9"):
        tune(metric, validated_answers(0)[0])


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "precision@0.9", "recall@0.8"])
def test_nothing_to_tune_on_is_said(metric):
    nothing = TopK(np.full((3, 2), -1), np.full((3, 2), -np.inf))
    with pytest.raises(ParameterError, match="no text to tune on"):
        tune(metric, ValidatedAnswers.of(nothing, csr_matrix(np.ones((3, 2), np.float32))))


def test_a_perfect_promise_that_cannot_be_kept_says_what_can():
    top = TopK([[0], [0]], [[0.9], [0.9]])
    validated = ValidatedAnswers.of(top, csr_matrix([[1.0], [0.0]]))
    with pytest.raises(ParameterError, match=r"precision@1\.0 cannot be reached.*0\.500"):
        tune("precision@1.0", validated)


def test_thresholds_say_what_they_reached():
    text = str(tune("macro_f1", validated_answers(0)[0]))
    assert text.startswith("macro_f1 0.")
    assert "for each label" in text


def test_a_metric_is_tuned_once(monkeypatch):
    texts, labels = make_up(300)
    tagger = Tagger().fit(texts, labels)
    first = tagger.predict(texts[:20], threshold="macro_f1")
    monkeypatch.setattr(thresholds, "tune", None)
    assert tagger.predict(texts[:20], threshold="macro_f1") == first
    monkeypatch.undo()
    gone = first[0][0][0]
    tagger.remove_labels(gone)
    assert gone not in {
        name for tags in tagger.predict(texts, threshold="macro_f1") for name in tags
    }

"""If these fail, every number we report about a model is in doubt.

Three witnesses: the formulas as plain loops, napkinXC, and properties that must hold.
"""

from math import log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from umpteen import TopK, metrics
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError

N_LABELS = 8
KS = (1, 2, 3, 4, 5)
PER_SAMPLE = ["precision_at_k", "recall_at_k", "f1_at_k", "ndcg_at_k"]
PER_LABEL = ["coverage_at_k", "macro_precision_at_k", "macro_recall_at_k", "macro_f1_at_k"]
RANKING = PER_SAMPLE + PER_LABEL
SCORED = ["psp_at_k", "psndcg_at_k"]


def to_top(rankings, k=5):
    labels = np.full((len(rankings), k), -1)
    for row, ranking in zip(labels, rankings, strict=True):
        row[: len(ranking)] = ranking
    return TopK(labels, np.where(labels < 0, -np.inf, -np.arange(k, dtype=float)))


def indicator(rows):
    Y = np.zeros((len(rows), N_LABELS))
    for values, row in zip(Y, rows, strict=True):
        values[row] = 1
    return csr_array(Y)


def call(name, rows, rankings, k, propensity):
    extra = [propensity] if name in SCORED else []
    return getattr(metrics, name)(indicator(rows), to_top(rankings), k, *extra)


def literal(name, rows, rankings, k, propensity):
    """The definitions, one sample at a time."""
    samples = [(set(row), ranking[:k]) for row, ranking in zip(rows, rankings, strict=True)]
    labelled = [(t, p) for t, p in samples if t]
    counted = sorted(set().union(*(t for t, _ in samples)))

    def mean(values):
        values = list(values)
        return sum(values) / len(values) if values else 0.0

    def dcg(t, p, worth=lambda label: 1.0):
        return sum(worth(label) / log2(r + 2) for r, label in enumerate(p) if label in t)

    def ideal(t):
        return sum(1 / log2(r + 2) for r in range(min(k, len(t))))

    def worth(label):
        return 1 / propensity[label]

    def best(t):
        return sorted(t, key=worth, reverse=True)[:k]

    def per_label(value):
        return mean(
            value(
                sum(label in t and label in p for t, p in samples),
                sum(label in p for _, p in samples),
                sum(label in t for t, _ in samples),
            )
            for label in counted
        )

    def share(part, whole):
        return part / whole if whole else 0.0

    formulas = {
        "precision_at_k": lambda: mean(len(t & set(p)) / k for t, p in samples),
        "recall_at_k": lambda: mean(len(t & set(p)) / len(t) for t, p in labelled),
        "f1_at_k": lambda: mean(2 * len(t & set(p)) / (k + len(t)) for t, p in samples),
        "ndcg_at_k": lambda: mean(dcg(t, p) / ideal(t) for t, p in labelled),
        "coverage_at_k": lambda: mean(any(c in t & set(p) for t, p in samples) for c in counted),
        "macro_precision_at_k": lambda: per_label(lambda hit, said, true: share(hit, said)),
        "macro_recall_at_k": lambda: per_label(lambda hit, said, true: share(hit, true)),
        "macro_f1_at_k": lambda: per_label(lambda hit, said, true: 2 * hit / (said + true)),
        "psp_at_k": lambda: share(
            sum(sum(worth(label) for label in t & set(p)) for t, p in samples),
            sum(sum(worth(label) for label in best(t)) for t, _ in samples),
        ),
        "psndcg_at_k": lambda: share(
            sum(dcg(t, p, worth) / ideal(t) for t, p in labelled),
            sum(dcg(t, best(t), worth) / ideal(t) for t, _ in labelled),
        ),
    }
    return formulas[name]()


label_sets = st.lists(st.integers(0, N_LABELS - 1), unique=True, max_size=6)
problems = st.lists(st.tuples(label_sets, label_sets.map(lambda r: r[:5])), max_size=8)
chances = st.lists(st.floats(0.01, 1.0), min_size=N_LABELS, max_size=N_LABELS).map(np.array)


@pytest.mark.parametrize("name", RANKING + SCORED)
@settings(max_examples=60, deadline=None)
@given(problem=problems, propensity=chances)
def test_metrics_are_their_definitions(name, problem, propensity):
    rows, rankings = [row for row, _ in problem], [ranking for _, ranking in problem]
    values = call(name, rows, rankings, KS, propensity)
    assert values == pytest.approx(
        [literal(name, rows, rankings, k, propensity) for k in KS], abs=1e-12
    )
    assert np.all((values >= 0) & (values <= 1))  # so no NaN either


@pytest.mark.parametrize("name", RANKING + SCORED)
@settings(max_examples=25, deadline=None)
@given(problem=problems, propensity=chances, seed=st.integers(0, 999))
def test_order_of_samples_and_numbering_of_labels_do_not_matter(name, problem, propensity, seed):
    rng = np.random.default_rng(seed)
    names = rng.permutation(N_LABELS)
    renamed = np.empty(N_LABELS)
    renamed[names] = propensity
    rows, rankings = [row for row, _ in problem], [ranking for _, ranking in problem]
    order = rng.permutation(len(rows))
    changed = call(
        name,
        [names[rows[i]].tolist() for i in order],
        [names[rankings[i]].tolist() for i in order],
        KS,
        renamed,
    )
    assert changed == pytest.approx(call(name, rows, rankings, KS, propensity), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(label_sets.filter(len), min_size=1, max_size=8), propensity=chances)
def test_perfect_answers_score_one(rows, propensity):
    perfect = [sorted(row, key=lambda label: propensity[label]) for row in rows]
    top = to_top(perfect, k=6)
    for name in SCORED:
        values = getattr(metrics, name)(indicator(rows), top, range(1, 7), propensity)
        assert values == pytest.approx(np.ones(6))
    assert metrics.ndcg_at_k(indicator(rows), top, KS) == pytest.approx(np.ones(5))
    assert metrics.recall_at_k(indicator(rows), top, 6) == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(problem=problems.map(lambda p: [(t, r) for t, r in p if t]), propensity=chances)
def test_at_one_ndcg_is_precision_and_psndcg_is_psp(problem, propensity):
    rows, rankings = [row for row, _ in problem], [ranking for _, ranking in problem]
    one = {name: call(name, rows, rankings, 1, propensity) for name in RANKING + SCORED}
    assert one["ndcg_at_k"] == pytest.approx(one["precision_at_k"])
    assert one["psndcg_at_k"] == pytest.approx(one["psp_at_k"])


@pytest.fixture(scope="module")
def drawn():
    """Samples with at least one label, every label relevant somewhere: no convention differs."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(30, rng.integers(1, 8), replace=False).tolist() for _ in range(200)]
    rows += [[label] for label in range(30)]
    answers = [[*rng.choice(row, 2), *rng.integers(0, 30, 5)] for row in rows]
    rankings = [list(dict.fromkeys(rng.permutation(row).tolist()))[:5] for row in answers]
    for ranking in rankings[::7]:
        del ranking[3:]
    return rows, rankings


@pytest.fixture
def napkin():
    return pytest.importorskip("napkinxc.metrics")


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("precision_at_k", "precision_at_k"),
        ("recall_at_k", "recall_at_k"),
        ("ndcg_at_k", "ndcg_at_k"),
        ("coverage_at_k", "coverage_at_k"),
        ("macro_precision_at_k", "macro_precision_at_k"),
        ("macro_recall_at_k", "macro_recall_at_k"),
        ("macro_f1_at_k", "macro_f1_measure_at_k"),
    ],
)
def test_napkinxc_agrees(name, theirs, drawn, napkin):
    rows, rankings = drawn
    ours = getattr(metrics, name)(rows, to_top(rankings), KS)
    assert ours == pytest.approx(getattr(napkin, theirs)(rows, rankings, k=5), abs=1e-9)


@pytest.mark.parametrize("constants", [(0.55, 1.5), *metrics.PROPENSITY_CONSTANTS.values()])
def test_napkinxc_agrees_on_propensity(constants, drawn, napkin):
    rows, rankings = drawn
    chance = metrics.propensity(rows, *constants)
    inverse = napkin.Jain_et_al_inverse_propensity(rows, *constants)
    assert chance == pytest.approx(1 / inverse, abs=1e-12)
    for name, theirs in [
        ("psp_at_k", "psprecision_at_k"),
        ("psndcg_at_k", "psndcg_at_k"),
    ]:
        ours = getattr(metrics, name)(rows, to_top(rankings), KS, chance)
        assert ours == pytest.approx(
            getattr(napkin, theirs)(rows, rankings, inverse, k=5), abs=1e-9
        )


def test_samples_without_labels(drawn, napkin):
    """napkinXC counts them as zero in recall and nDCG; here they are left out of these two."""
    rows, rankings = drawn
    padded, answers = [*rows, [], []], [*rankings, [1], []]
    share = len(rows) / len(padded)
    for name in ("precision_at_k", "f1_at_k"):
        metric = getattr(metrics, name)
        assert metric(padded, to_top(answers), 3) == pytest.approx(
            share * metric(rows, to_top(rankings), 3)
        )
    for name in ("recall_at_k", "ndcg_at_k"):
        metric = getattr(metrics, name)
        ours = metric(padded, to_top(answers), KS)
        assert ours == pytest.approx(metric(rows, to_top(rankings), KS))
        assert share * ours == pytest.approx(getattr(napkin, name)(padded, answers, k=5), abs=1e-9)


@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=6), n=st.integers(0, 30))
@settings(max_examples=50, deadline=None)
def test_propensity_grows_with_frequency(counts, n):
    n_samples = max([n, *counts])
    Y = np.zeros((n_samples, len(counts)))
    for label, count in enumerate(counts):
        Y[:count, label] = 1
    chance = metrics.propensity(csr_array(Y))
    assert np.all((chance > 0) & (chance <= 1))
    assert np.all(np.diff(chance[np.argsort(counts, kind="stable")]) >= 0)
    if n_samples >= 3:
        inverse = [1 + (log(n_samples) - 1) * 2.5**0.55 * (c + 1.5) ** -0.55 for c in counts]
        assert chance == pytest.approx(1 / np.array(inverse))


def test_k_decides_what_comes_back():
    top = to_top([[0], [1]])
    assert type(metrics.precision_at_k([[0], [2]], top, np.int64(1))) is float
    assert metrics.precision_at_k([[0], [2]], top, np.array([1, 2])).tolist() == [0.5, 0.25]


def test_sparse_scores_are_ranked():
    scores = csr_array([[0.1, 0.9, 0.0], [0.0, 0.0, -0.5]])
    assert metrics.precision_at_k([[1], [2]], scores, (1, 3)) == pytest.approx([1, 1 / 3])


def test_an_answer_given_twice_counts_once():
    assert metrics.recall_at_k([[4]], to_top([[4, 4]]), (1, 2)).tolist() == [1, 1]
    assert metrics.precision_at_k([[4]], to_top([[4, 4]]), 2) == 0.5


def test_ids_may_be_fewer_than_the_model_knows():
    assert metrics.precision_at_k([[0], [1]], to_top([[0], [900_000]]), 1) == 0.5
    assert metrics.coverage_at_k(np.array([0, 1]), to_top([[0], [7]]), 1) == 0.5


@pytest.mark.parametrize("name", RANKING)
def test_without_samples_or_labels_all_is_zero(name):
    for Y in (csr_array((0, 3)), csr_array((2, 3))):
        top = to_top([[0]] * Y.shape[0])
        assert getattr(metrics, name)(Y, top, 5) == 0


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("scores", [False, True])
def test_answers_of_all_labels_are_measured_at_any_k(name, scores):
    """A model of three labels answers three, and precision at 5 is still a fifth of the hits."""
    rows, top = [[0, 2], [1], [], [2, 4]], TopK([[2, 0, 1]] * 4, [[0.9, 0.5, 0.1]] * 4)
    narrow, metric = top.to_csr(3) if scores else top, getattr(metrics, name)
    assert metric(rows, narrow, 5) == metric(rows, top.padded(5), 5)
    assert metric(rows, narrow, (1, 9)).tolist() == metric(rows, top.padded(9), (1, 9)).tolist()
    assert 0 <= metric(rows, narrow, 10**9) <= 1


@pytest.mark.parametrize("metric", [metrics.psp_at_k, metrics.psndcg_at_k])
def test_propensities_of_answers_of_all_labels_are_measured_at_any_k(metric):
    rows, top = [[0, 2], [1], [], [2, 4, 3, 1]], TopK([[2, 0, 1]] * 4, [[0.9, 0.5, 0.1]] * 4)
    chances = [0.5, 0.2, 0.9, 0.4, 0.3]
    assert metric(rows, top, 5, chances) == metric(rows, top.padded(5), 5, chances)
    assert 0 < metric(rows, top, 10**9, chances) < 1


@pytest.mark.parametrize(
    ("arguments", "error", "advice"),
    [
        (([[0]], to_top([[7]]), 6), ParameterError, "predict with k=6"),
        (([[0]], to_top([[0]]), ()), ParameterError, "empty"),
        (([[0]], to_top([[0]]), 0), ParameterError, "k=0"),
        (([[0], [1]], to_top([[0]]), 1), LabelsShapeError, "2 rows but top has 1"),
        ((csr_array([[1, 0]]), to_top([[2]]), 1), LabelsShapeError, "Y has 2 columns"),
        ((to_top([[0]]), [[0]], 1), LabelsError, r"\(Y, top, k\)"),
        (([[0]], np.eye(1), 1), LabelsError, "expected what predict_topk answers"),
    ],
)
def test_what_cannot_be_measured(arguments, error, advice):
    with pytest.raises(error, match=advice):
        metrics.precision_at_k(*arguments)


@pytest.mark.parametrize(
    ("propensity", "error", "advice"),
    [
        ([0.5], LabelsShapeError, "2 labels"),
        ([0.0, 0.5], ParameterError, "above 0"),
        ([2.0, 5.0], ParameterError, "inverse"),
        ([0.5, np.nan], ParameterError, "nan"),
    ],
)
def test_propensities_are_chances(propensity, error, advice):
    with pytest.raises(error, match=advice):
        metrics.psp_at_k(csr_array([[1, 0]]), to_top([[0]]), 1, propensity)


def test_constants_of_propensity_are_checked():
    with pytest.raises(ParameterError, match="b above 0"):
        metrics.propensity([[0]], b=0)

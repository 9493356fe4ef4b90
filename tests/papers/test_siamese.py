"""If these fail, the page on SiameseXML compares the wrong samples, labels or inequalities."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix

from papers.contents import Table
from papers.siamese import lemmas, newcomers, quality, surrogates, tasks
from umpteen.base import TopK
from umpteen.centroid import NearestCentroid
from umpteen.siamese import SiameseRecipe, SiameseXML

N_LABELS = 20
SMALL = {"dim": 32, "epochs": 3, "recipe": SiameseRecipe(refine_epochs=1), "verbose": False}


def small_task(n=400, n_test=100):
    """Four words for each label, of which samples have two, and one word of no meaning."""
    random = np.random.default_rng(0)
    labels = np.arange(n + n_test) % N_LABELS
    X = np.zeros((n + n_test, 4 * N_LABELS + 5), np.float32)
    for row, label in enumerate(labels):
        X[row, 4 * label + random.permutation(4)[:2]] = 1
        X[row, 4 * N_LABELS + random.integers(5)] = 1
    texts = np.zeros((N_LABELS, X.shape[1]), np.float32)
    for label in range(N_LABELS):
        texts[label, 4 * label : 4 * label + 4] = 1
    Y = csr_matrix(np.eye(N_LABELS, dtype=np.float32)[labels])
    return tasks.Task(
        "small", csr_matrix(X[:n]), Y[:n], csr_matrix(X[n:]), Y[n:], csr_matrix(texts),
        [f"label {j}" for j in range(N_LABELS)], [f"text {i}" for i in range(n_test)],
    )  # fmt: skip


def test_rows_of_the_table_are_of_their_models():
    chosen = small_task()
    rows = {
        "SiameseXML": quality.Entry(lambda seed: SiameseXML(**SMALL, random_state=seed)),
        "own vector": quality.Entry("SiameseXML", changes={"recipe__alpha": 1.0}),
        "centroid": quality.Entry(lambda _: NearestCentroid(), described=False, main=True),
    }
    found = quality.measured(chosen, rows, 2)
    assert [len(found[name]) for name in rows] == [1, 1, 2]
    assert found["SiameseXML"][0].model.recipe.alpha == 0.5  # changed back
    table = quality.precisions(found)
    assert table.columns[1:4] == ["P@1", "P@3", "P@5"]
    hits = found["centroid"][0].top.labels[:, 0] == chosen.Y_test.indices
    assert table.rows[2][1].ours == pytest.approx(100 * hits.mean())
    assert quality.table6(found).rows[0][1].paper == 39.43
    assert found["SiameseXML"][0].megabytes > 0
    parts = list(quality.shortlists(chosen, found["SiameseXML"][0], found["centroid"][0]))
    recalls = [[cell.ours for cell in row[1:]] for row in parts[0].rows]
    assert all(np.diff(row).min() >= 0 for row in recalls)


def test_hidden_labels_are_hidden():
    chosen = small_task()
    case = newcomers.hidden(chosen)
    assert case.n_learned == N_LABELS - N_LABELS // 10
    assert case.learned.shape == (400, case.n_learned)
    assert case.wanted.shape[1] == N_LABELS
    assert (case.wanted.getnnz(axis=1) > 0).all()
    assert case.wanted[:, : case.n_learned].nnz == 0
    # Each label is on as many samples as before, so its column moved with its text.
    words = case.task.label_features.argmax(axis=1).A1 // 4
    np.testing.assert_array_equal(np.sort(words), np.arange(N_LABELS))
    np.testing.assert_array_equal(case.task.Y.toarray(), chosen.Y.toarray()[:, words])


def test_new_labels_are_found_by_their_texts_and_never_by_a_tree():
    case = newcomers.hidden(small_task())
    tree = NearestCentroid()  # knows as little of them
    tops = newcomers.answers(case, SiameseXML(**SMALL), tree, 50)
    scores = {name: newcomers.scores(case, top) for name, top in tops.items()}
    assert scores["SiameseXML, among all labels"][0] > 50
    assert scores["SiameseXML, among the new ones"][0] > 80
    assert not scores["LabelTree"].any()


def test_inequalities_hold_where_they_are_proven():
    found = surrogates.tried(400, 0.26, 0.99)
    assert len(found) == 5
    assert all(values.min() > -1e-9 for values in found.values())


def test_claim_18_says_nothing_for_small_c():
    found = surrogates.tried(400, 0.01, 0.24)
    assert found["Corollary 19: contrastive / ln(4c) ≥ precision loss"].min() < 0
    assert found["Claim 21: contrastive ≥ d · hinge"].min() > -1e-9


def test_losses_by_hand():
    case = surrogates.Case(np.array([0.5, 0.9, -1.0]), np.array([True, False, True]), 2, 0.9, 1.5)
    assert surrogates.precision_loss(case) == 0.5
    assert surrogates.ramp_loss(case, 0.1) == 1
    assert surrogates.hinge_loss(case, 1, 0.8) == pytest.approx(0.5 + 2 + 0.1)
    expected = 2 * np.log(1 / 0.9) + 1.5 * 2.5 - np.log(1 - 0.9 * np.exp(-0.15))
    assert surrogates.contrastive_loss(case) == pytest.approx(expected)


def test_slopes_stay_below_their_bounds():
    for c, d in ((0.9, 1.5), (0.75, 3.0)):
        own, others = surrogates.slopes(c, d)
        assert own == pytest.approx(d, rel=1e-5)
        assert 0.99 * d * c / (1 - c) < others <= d * c / (1 - c) + 1e-6


def test_the_chapter_on_bounds_can_be_measured():
    section = surrogates.sections(True)[0]
    tables = [part for part in section.measure() if isinstance(part, Table)]
    assert tables[0].rows[0][1].startswith("0 of")


def test_module_3_begins_where_module_1_ends_if_the_objectives_are_the_same():
    problem = lemmas.SmallProblem(0)
    module1, begins, ends = problem.losses(0.9, 1.5)
    assert begins == pytest.approx(module1)
    assert ends < 0.95 * begins
    _, begins, _ = problem.losses(0.75, 3.0)
    assert abs(begins - module1) > 1


def test_a_normalisation_with_nu_is_not_idempotent():
    rows = np.array([[3.0, 4.0]])
    np.testing.assert_allclose(lemmas.normalised(rows, 12.0), [[3 / 13, 4 / 13, 12 / 13]])
    assert np.ptp(lemmas.twice_normalised(0.0)) < 1e-12
    assert np.ptp(lemmas.twice_normalised(0.5)) > 0.01


def test_models_that_are_near_have_near_losses():
    random = np.random.default_rng(1)
    shares = [lemmas.lipschitz_shares(random) for _ in range(100)]
    assert all(share <= 1 + 1e-9 for case in shares for share in case.values())
    loose, tight = ([case[name] for case in shares] for name in shares[0] if "11" in name)
    assert max(loose) > 0.1
    assert max(tight) > 0.4  # half of the bound is reached by any two vectors of equal length
    assert all(a <= b for a, b in zip(loose, tight, strict=True))  # a smaller constant


def test_drawn_entries_stand_for_a_matrix():
    """The bound holds, and is above what happens where it says something."""
    share, bound = lemmas.maurey_tail(0, 500, 0.05, 200)
    assert share <= bound < 1
    assert lemmas.maurey_tail(0, 20, 0.1, 200)[0] > 0.1  # so that a wrong estimate would show
    share, bound = lemmas.uniform_maurey_tail(0, 500, 0.1, 200)
    assert share <= bound < 1
    assert lemmas.uniform_maurey_tail(0, 20, 0.1, 200)[0] > 0.1


def test_the_price_of_new_labels_is_what_the_others_lose():
    case = newcomers.hidden(small_task())
    Y, n = case.everyone.Y_test, case.n_learned
    right = Y.indices[:, None].astype(np.int32)
    scores = np.ones_like(right, np.float32)
    assert newcomers.Price.of(case, TopK(right, scores).padded(5)) == newcomers.Price(100, 100, 100)
    wrong = np.where(right >= n, right, n).astype(np.int32)  # answers new labels only
    found = newcomers.Price.of(case, TopK(wrong, scores).padded(5))
    assert found.precision == pytest.approx(100 * (right >= n).mean())
    assert (found.learned_precision, found.learned_ndcg) == (0, 0)
    assert case.task.X_test.shape[0] == (right >= n).sum() < case.everyone.X_test.shape[0]

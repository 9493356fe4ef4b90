"""New labels and new samples: what a user gets without hours of learning everything again."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.svm import LinearSVC

import umpteen as um
from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.linear import updating
from umpteen.linear.chunks import split
from umpteen.linear.search import Search
from umpteen.linear.training import ChunkTrainer, Solver, learn_trust, train_tree
from umpteen.linear.updating import add_labels, refit_labels
from umpteen.progress import Bar
from umpteen.trees import grow, label_representation

from .random_trees import dense_weights, random_csr

SOLVER = Solver(
    logistic=False, cost=1.0, positive_weight=2.0, tolerance=0.1, max_epochs=20, prune=0.05,
    hard_negatives=3, seed=5,
)  # fmt: skip
N_OLD, N_NEW = 40, 6


def solver(**changes) -> Solver:
    return Solver(**{**vars(SOLVER), **changes})


def search(**changes) -> Search:
    return Search(8, 0.35, False, 1)._replace(**changes)


def problem(n_samples=300, n_labels=N_OLD + N_NEW, seed=0):
    """Samples that look like the sum of their labels, some of them without any."""
    Y = random_csr(n_samples, n_labels, 0.05, values=(1.0,), seed=seed)
    looks = random_csr(n_labels, 30, 0.2, values=(1.0,), seed=seed + 1)
    X = Y @ looks + random_csr(n_samples, 30, 0.05, values=(1.0,), seed=seed + 2)
    return csr_matrix(X, dtype=np.float32), Y


X, Y = problem()
IDS = np.arange(N_OLD, N_OLD + N_NEW)
OLD, NEW = csr_matrix(Y[:, :N_OLD]), csr_matrix(Y[:, N_OLD:])
shapes = pytest.mark.parametrize(
    ("branching", "max_leaf"), [(4, 4), (12, 4), (4, 100)], ids=["deep", "wide", "flat"]
)
losses = pytest.mark.parametrize("logistic", [False, True], ids=["hinge", "logistic"])


def tree_over(Y, branching=4, max_leaf=4, solver=SOLVER):
    hierarchy = grow(label_representation(X, Y), branching=branching, max_leaf=max_leaf, n_jobs=1)
    return train_tree(X, Y, hierarchy, solver, 1, Bar())


def assert_same(tree, other):
    for ours, theirs in zip(tree.arrays, other.arrays, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def links(margins, logistic):
    if logistic:
        return -np.logaddexp(0, -margins)
    return -(np.maximum(0, 1 - margins) ** 3) - 0.01 * np.maximum(0, 2 - margins)


def scores_of_leaves(tree, logistic=False):
    """(samples, leaves): the product of all probabilities on the way, no beam in between."""
    hierarchy = tree.hierarchy
    margins = X.toarray() @ dense_weights(tree, X.shape[1]).T + tree.bias
    logs = np.zeros((X.shape[0], hierarchy.n_nodes))
    parents = hierarchy.parents()
    for node in range(1, hierarchy.n_nodes):
        logs[:, node] = logs[:, parents[node]] + links(margins[:, node - 1], logistic)
    leaves = hierarchy.layers()[-1]
    return np.exp(logs[:, leaves.start : leaves.stop])


def best_leaves(scores, k):
    """`scores` with everything but each row's best `k` set to zero."""
    kept = np.zeros_like(scores)
    for row, places in enumerate(np.argsort(-scores, axis=1, kind="stable")[:, :k]):
        kept[row, places] = scores[row, places]
    return kept


def leaf_of(tree, label):
    number = tree.hierarchy.path(label)[-1]
    return tree.hierarchy.parents()[number] - tree.hierarchy.layers()[-1].start


# --- refit_labels


@shapes
@losses
@pytest.mark.parametrize("hard_negatives", [0, 3])
def test_all_labels_refitted_make_the_tree_that_training_makes(
    branching, max_leaf, logistic, hard_negatives
):
    how = solver(logistic=logistic, hard_negatives=hard_negatives)
    tree = tree_over(OLD, branching, max_leaf, how)
    spoiled = tree_over(OLD, branching, max_leaf, how)
    spoiled.weight[:] = 7
    spoiled.bias[:] = -3
    found = refit_labels(
        spoiled, X, OLD, np.arange(N_OLD), how, search(logistic=logistic), max_leaf
    )
    assert_same(found, tree)


def test_a_model_refitted_on_its_own_samples_answers_the_same():
    model = um.LabelTree(max_leaf=4, branching=4).fit(X, OLD)
    before = model.predict_topk(X)
    assert model.refit_labels(X, OLD, range(N_OLD)).predict_topk(X) == before


@shapes
def test_what_does_not_lead_to_a_refitted_label_stays(branching, max_leaf):
    tree = tree_over(OLD, branching, max_leaf)
    learn_trust(tree, X, OLD, search(), tree.hierarchy.label_order)
    labels = np.array([3, 17, 18])
    other = csr_matrix(OLD[::-1])  # samples whose labels are all wrong now
    found = refit_labels(tree, X, other, labels, SOLVER, search(), max_leaf)
    concerned = {number - 1 for label in labels for number in tree.hierarchy.path(label)}
    stays = np.array([number not in concerned for number in range(len(tree.bias))])
    before, after = dense_weights(tree, X.shape[1]), dense_weights(found, X.shape[1])
    np.testing.assert_array_equal(found.bias[stays], tree.bias[stays])
    units = np.repeat(np.maximum(tree.chunk_scale, found.chunk_scale), np.diff(tree.chunk_child))
    assert (np.abs(before - after)[stays] <= units[stays, None]).all()
    assert not np.allclose(before[~stays], after[~stays], atol=0.1)
    refitted = np.isin(tree.hierarchy.label_order, labels)
    np.testing.assert_array_equal(found.log_trust, np.where(refitted, 0, tree.log_trust))
    untouched = [
        chunk
        for chunk, first in enumerate(tree.chunk_child[:-1])
        if stays[first - 1 : tree.chunk_child[chunk + 1] - 1].all()
    ]
    assert untouched or branching * max_leaf > N_OLD
    ours, theirs = split(tree), split(found)
    for chunk in untouched:
        for a, b in zip(ours[chunk], theirs[chunk], strict=True):
            np.testing.assert_array_equal(a, b)


@losses
def test_a_refitted_label_learns_what_is_new(logistic):
    """Its words were others before: only the new samples can tell."""
    rows = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]] * 8, np.float32)
    labels = np.tile([0, 1, 2], 8)
    model = um.LabelTree(loss="logistic" if logistic else "squared_hinge").fit(rows, labels)
    strange = np.array([[0, 0, 0, 1]], np.float32)
    more, Y_more = np.vstack([rows, np.repeat(strange, 8, 0)]), np.append(labels, [2] * 8)
    model.refit_labels(more, Y_more, [2])
    assert model.predict_topk(strange, k=1).labels[0, 0] == 2
    assert (model.predict_topk(rows, k=1).labels.ravel() == labels).all()


# --- add_labels


def placed(Y_new, tree, k, logistic=False, most=10_000):
    """The leaf of each new label, by the definition."""
    sizes = [len(tree.hierarchy.labels_below(leaf)) for leaf in tree.hierarchy.layers()[-1]]
    totals = Y_new.toarray().T @ best_leaves(scores_of_leaves(tree, logistic), k)
    chosen = []
    for label in range(Y_new.shape[1]):
        free = [leaf for leaf in np.argsort(-totals[label]) if sizes[leaf] < most]
        leaf = next((leaf for leaf in free if totals[label, leaf] > 0), int(np.argmin(sizes)))
        sizes[leaf] += 1
        chosen.append(leaf)
    return chosen


@shapes
@losses
def test_a_new_label_goes_to_the_leaf_that_its_samples_like_best(branching, max_leaf, logistic):
    how = solver(logistic=logistic)
    tree = tree_over(OLD, branching, max_leaf, how)
    grown = add_labels(tree, X, NEW, IDS, how, search(logistic=logistic), 100)
    expected = placed(NEW, tree, 8, logistic)
    assert [leaf_of(grown, N_OLD + i) for i in range(N_NEW)] == expected
    assert len(set(expected)) > 1 or max_leaf == 100


def test_crowded_leaves_are_passed_over():
    tree = tree_over(OLD)
    same = csr_matrix(hstack([NEW[:, :1]] * 12))  # all want the same leaf
    max_leaf = 4
    grown = add_labels(tree, X, same, N_OLD + np.arange(12), SOLVER, search(), max_leaf)
    leaves = [leaf_of(grown, N_OLD + i) for i in range(12)]
    assert leaves == placed(same, tree, 8, most=2 * max_leaf)
    assert len(set(leaves)) >= 2
    first_child = grown.hierarchy.first_child
    assert np.diff(first_child[grown.hierarchy.layers()[-1].start :]).max() <= 2 * max_leaf


def test_where_all_leaves_are_crowded_the_emptiest_takes_the_label():
    tree = tree_over(OLD)
    grown = add_labels(tree, X, NEW, IDS, SOLVER, search(), max_leaf=1)
    assert [leaf_of(grown, N_OLD + i) for i in range(N_NEW)] == placed(NEW, tree, 8, most=2)


def samples_of_leaf(tree, leaf, members, k=8):
    """Who is sent to a leaf among the best `k`, and who has one of its new labels."""
    reached = best_leaves(scores_of_leaves(tree), k)[:, leaf] > 0
    return np.flatnonzero(reached | (members.sum(axis=1) > 0)).astype(np.int32)


@shapes
def test_a_new_classifier_learns_its_samples_against_those_that_reach_its_leaf(branching, max_leaf):
    tree = tree_over(OLD, branching, max_leaf)
    grown = add_labels(tree, X, NEW, IDS, SOLVER, search(), 100)
    weights = dense_weights(grown, X.shape[1])
    leaves = np.array([leaf_of(grown, N_OLD + i) for i in range(N_NEW)])
    for leaf in np.unique(leaves):
        mine = np.flatnonzero(leaves == leaf)
        members = NEW.toarray()[:, mine]
        samples = samples_of_leaf(tree, leaf, members)
        trainer = ChunkTrainer(X, SOLVER)
        chunk = trainer.train(samples, csr_matrix(members), 0, len(mine), int(mine[0]))
        features = np.repeat(chunk.feature, np.diff(chunk.entry))
        expected = np.zeros((len(mine), X.shape[1]))
        expected[chunk.child, features] = chunk.weight
        numbers = [grown.hierarchy.path(N_OLD + label)[-1] - 1 for label in mine]
        np.testing.assert_allclose(weights[numbers], expected, atol=np.abs(expected).max() / 6e4)
        np.testing.assert_array_equal(grown.bias[numbers], chunk.bias)


def test_a_new_classifier_is_the_support_vector_machine_of_its_leaf():
    """The same by another solver, to the end."""
    how = solver(tolerance=1e-4, max_epochs=3000, prune=0.0)
    tree = tree_over(OLD, 12, 4)
    grown = add_labels(tree, X, NEW, IDS, how, search(), 100)
    weights = dense_weights(grown, X.shape[1])
    leaves = np.array([leaf_of(grown, N_OLD + i) for i in range(N_NEW)])
    for label in range(N_NEW):
        members = NEW.toarray()[:, leaves == leaves[label]]
        rows = samples_of_leaf(tree, leaves[label], members)
        targets = NEW.toarray()[rows, label]
        machine = LinearSVC(C=1.0, class_weight={0: 1.0, 1: 2.0}, tol=1e-8, max_iter=100_000)
        machine.fit(X[rows], targets)
        number = grown.hierarchy.path(N_OLD + label)[-1] - 1
        np.testing.assert_allclose(weights[number], machine.coef_[0], atol=5e-3)
        assert grown.bias[number] == pytest.approx(machine.intercept_[0], abs=5e-3)


def test_without_negatives_in_the_leaf_all_samples_speak_against_a_label():
    """Two kinds of samples, far apart; the newcomer has all of one kind."""
    rows = np.repeat(np.eye(2, dtype=np.float32), 6, axis=0)
    old = csr_matrix(np.repeat(np.eye(2, dtype=np.float32), 6, axis=0))
    new = csr_matrix(np.repeat([[1], [0]], 6, axis=0).astype(np.float32))
    features = csr_matrix(rows)
    hierarchy = grow(label_representation(features, old), branching=2, max_leaf=1, n_jobs=1)
    how = solver(hard_negatives=0)
    tree = train_tree(features, old, hierarchy, how, 1, Bar())
    grown = add_labels(tree, features, new, np.array([2]), how, search(beam_width=1), 1)
    number = grown.hierarchy.path(2)[-1]
    margins = rows @ dense_weights(grown, 2)[number - 1] + grown.bias[number - 1]
    assert (margins[:6] > 0.5).all()
    assert (margins[6:] < -0.5).all()


def test_more_newcomers_than_a_chunk_can_hold():
    """Fifty times the same labels have fifty times the same classifiers."""
    how = solver(tolerance=1e-4, max_epochs=3000, prune=0.0)
    many, ids = csr_matrix(hstack([NEW] * 50)), N_OLD + np.arange(50 * N_NEW)
    tree = tree_over(OLD, 4, 100)
    grown = add_labels(tree, X, many, ids, how, search(), 1000)
    assert grown.hierarchy.label_order[N_OLD:].tolist() == ids.tolist()
    few = add_labels(tree, X, NEW, IDS, how, search(), 1000)
    expected = np.tile(dense_weights(few, X.shape[1])[N_OLD:], (50, 1))
    np.testing.assert_allclose(dense_weights(grown, X.shape[1])[N_OLD:], expected, atol=5e-3)


# --- LabelTree as a user meets it


def model_of(**parameters):
    return um.LabelTree(**{"max_leaf": 4, "branching": 4, **parameters}).fit(X, OLD)


def answers(model):
    """(sample, label) -> score, everything that the model can say."""
    top = model.predict_topk(X, k=N_OLD + N_NEW, beam_width=1000)
    rows, ranks = np.nonzero(top.labels >= 0)
    keys = zip(rows.tolist(), top.labels[rows, ranks].tolist(), strict=True)
    return dict(zip(keys, top.scores[rows, ranks].tolist(), strict=True))


VARIANTS = [{}, {"n_trees": 3}, {"loss": "logistic"}, {"max_leaf": 100}, {"trust": False}]


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_new_labels_are_found_and_old_ones_keep_their_bits(parameters):
    model = model_of(**parameters)
    before = answers(model)
    model.add_labels(X, NEW)
    assert model.n_labels_ == N_OLD + N_NEW
    after = answers(model)
    assert {key: after[key] for key in before} == before
    found = model.predict_topk(X, k=5).labels
    rows, labels = NEW.nonzero()
    recall = np.mean([N_OLD + label in found[row] for row, label in zip(rows, labels, strict=True)])
    assert recall > 0.8
    wrong = [row for row in range(X.shape[0]) if NEW[row].nnz == 0 and found[row, 0] >= N_OLD]
    assert len(wrong) < 0.05 * X.shape[0]


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_scores_stay_within_0_and_1_with_newcomers(parameters):
    """They are read as probabilities, and compared with other labels' scores."""
    model = model_of(**parameters).add_labels(X, NEW)
    top = model.predict_topk(X, k=10)
    given = top.scores[top.labels >= 0]
    assert ((given > 0) & (given <= 1)).all()
    for row in range(0, 300, 30):
        why = model.explain(X[row], top.labels[row, 0])
        assert why.score == pytest.approx(top.scores[row, 0], abs=1e-5)


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_removed_labels_are_never_answered(parameters):
    model = model_of(**parameters)
    before = answers(model)
    model.remove_labels([3, 4, 39])
    assert answers(model) == {key: v for key, v in before.items() if key[1] not in (3, 4, 39)}
    assert model.n_labels_ == N_OLD


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_threads_do_not_change_a_bit(parameters):
    models = [model_of(n_jobs=n, **parameters) for n in (1, 2)]
    for model in models:
        model.add_labels(X, NEW).refit_labels(X, Y, [1, 2, N_OLD]).remove_labels([5])
    for trees in zip(*(model.trees_ for model in models), strict=True):
        assert_same(*trees)


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_a_changed_model_is_saved_as_it_is(parameters, tmp_path):
    model = model_of(**parameters).add_labels(X, NEW).remove_labels([0, 1, N_OLD])
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert answers(again) == answers(model)
    for one in (model, again):  # arrays that are mapped from files
        one.refit_labels(X, Y, [7]).add_labels(X, NEW[:, :2]).remove_labels([8])
    assert answers(again) == answers(model)


FEATURES = random_csr(N_OLD + N_NEW, X.shape[1], 0.2, values=(1.0,), seed=1)  # the labels' looks


@pytest.mark.parametrize("n_trees", [1, 2])
def test_features_of_new_labels_count_as_those_of_old_ones(n_trees):
    model = um.LabelTree(max_leaf=4, branching=4, n_trees=n_trees, features_in_score=0.3)
    model.fit(X, OLD, label_features=FEATURES[:N_OLD])
    before = answers(model)
    model.add_labels(X, NEW, label_features=FEATURES[N_OLD:])
    after = answers(model)
    assert {key: after[key] for key in before} == before
    assert all(
        model.explain(X[row], N_OLD).score == pytest.approx(after[row, N_OLD], abs=1e-5)
        for row in range(20)
    )
    cosine = model.explain(FEATURES[N_OLD], N_OLD).cosine
    assert cosine == pytest.approx(1)


def test_new_labels_without_features_have_none():
    model = um.LabelTree(max_leaf=4, features_in_score=0.3)
    model.fit(X, OLD, label_features=FEATURES[:N_OLD]).add_labels(X, NEW)
    assert model.explain(FEATURES[N_OLD], N_OLD).cosine == 0
    assert model.explain(FEATURES[0], 0).cosine == pytest.approx(1)


def test_features_of_removed_labels_do_not_bring_them_back():
    model = um.LabelTree(max_leaf=4, features_in_score=0.5)
    model.fit(X, OLD, label_features=FEATURES[:N_OLD]).remove_labels([2])
    assert 2 not in model.predict_topk(FEATURES[2], k=N_OLD).labels


def test_a_new_label_without_samples_is_not_predicted():
    """As after `fit`: nothing is known of it."""
    nothing = csr_matrix(hstack([NEW[:, :1], csr_matrix((300, 1))]), dtype=np.float32)
    model = model_of().add_labels(X, nothing)
    assert model.n_labels_ == N_OLD + 2
    assert N_OLD + 1 not in model.predict_topk(X, k=N_OLD + 2, beam_width=1000).labels
    assert N_OLD in model.predict_topk(X, k=N_OLD + 2, beam_width=1000).labels


@pytest.mark.parametrize("when", ["never seen", "added without samples", "removed"])
def test_labels_without_a_place_get_one_when_they_are_fitted(when):
    Y_old = OLD
    if when == "never seen":
        Y_old = csr_matrix(hstack([OLD, csr_matrix((300, 1))]), dtype=np.float32)
    model = um.LabelTree(max_leaf=4, branching=4).fit(X, Y_old)
    label = N_OLD
    if when == "added without samples":
        nothing = csr_matrix((300, 1), dtype=np.float32)
        model.add_labels(X, csr_matrix(hstack([nothing, NEW[:, :1]]), dtype=np.float32))
    elif when == "removed":
        model.remove_labels([0])
        label = 0
    wide = np.zeros((300, model.n_labels_), np.float32)
    wide[:, :N_OLD] = OLD.toarray()
    wide[:, label] = NEW[:, 2].toarray().ravel()
    model.refit_labels(X, wide, [label, 1])
    found = (model.predict_topk(X, k=5).labels == label).any(axis=1)
    assert found[wide[:, label] > 0].mean() > 0.8


def test_a_label_on_every_sample_is_refused():
    everywhere = np.ones((300, 2), np.float32)
    everywhere[0, 0] = 0
    model = model_of()
    with pytest.raises(LabelsError, match="new label 1 is on every sample"):
        model.add_labels(X, everywhere)
    assert model.n_labels_ == N_OLD


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda model: model.add_labels(X, csr_matrix((300, 2))), "no relevant label"),
        (lambda model: model.add_labels(X, NEW[:-1]), "off by one"),
        (lambda model: model.refit_labels(X, Y, [0]), "46 columns, but 40 labels"),
        (lambda model: model.refit_labels(X, OLD, [40]), "does not exist"),
        (lambda model: model.remove_labels([-1]), "does not exist"),
        (lambda model: model.remove_labels(["a"]), "not a label id"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(change, match):
    model = model_of()
    before = model.predict_topk(X)
    with pytest.raises(LabelsError, match=match):
        change(model)
    assert model.predict_topk(X) == before


def test_label_features_of_other_labels_are_refused():
    model = um.LabelTree(max_leaf=4).fit(X, OLD, label_features=FEATURES[:N_OLD])
    with pytest.raises(LabelsShapeError, match="label_features has 2 rows"):
        model.add_labels(X, NEW, label_features=FEATURES[:2])


def test_unfitted_trees_do_not_grow():
    for change in ("add_labels", "refit_labels"):
        with pytest.raises(um.errors.NotFittedError):
            getattr(um.LabelTree(), change)(X, Y, *([[0]] if change == "refit_labels" else []))
    with pytest.raises(um.errors.NotFittedError):
        um.LabelTree().remove_labels([0])


def test_one_label_more_than_one():
    """The smallest tree there is."""
    model = um.LabelTree().fit(np.eye(2), [[0], []])
    model.add_labels(np.eye(2), [[], [0]])
    assert model.predict_topk(np.eye(2), k=1).labels.ravel().tolist() == [0, 1]


def test_the_oracles_see_what_the_code_sees():
    """Otherwise the tests above compare nothing."""
    tree = tree_over(OLD)
    sent = updating._leaves_of(tree, X, 8, search())
    np.testing.assert_allclose(
        sent.toarray(), best_leaves(scores_of_leaves(tree), 8), rtol=1e-3, atol=1e-6
    )

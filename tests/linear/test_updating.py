"""New labels and new samples: what a user gets without hours of learning everything again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, hstack, vstack
from scipy.sparse.linalg import norm
from sklearn.svm import LinearSVC

import umpteen as um
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.linear import TreeRecipe, updating
from umpteen.linear.chunks import MAX_CHUNK, packed, split, upper_tree, upper_view
from umpteen.linear.search import Search, best_leaf, merged, search_newcomers
from umpteen.linear.training import ChunkTrainer, Solver, learn_trust, train_tree
from umpteen.linear.updating import add_labels, refit_labels
from umpteen.progress import Bar
from umpteen.trees import Hierarchy, grow, label_representation

from .random_trees import COARSE, dense_weights, random_csr, random_hierarchy, random_tree

SOLVER = Solver(
    logistic=False, cost=1.0, positive_weight=2.0, tolerance=0.1, max_epochs=20, prune=0.05,
    hard_negatives=3, seed=5,
)  # fmt: skip
N_OLD, N_NEW = 40, 6


def solver(**changes) -> Solver:
    return Solver(**{**vars(SOLVER), **changes})


def to_the_end(**changes) -> Solver:
    """Other solvers and other orders of the same samples find the same weights."""
    return solver(tolerance=1e-4, max_epochs=3000, prune=0.0, **changes)


def search(**changes) -> Search:
    return Search(8, 0.35, False, 1)._replace(**changes)


def problem(n_samples=300, n_labels=N_OLD + N_NEW, seed=0):
    """Samples that look like the sum of their labels, some of them without any."""
    Y = random_csr(n_samples, n_labels, 0.05, values=(1.0,), seed=seed)
    looks = random_csr(n_labels, 30, 0.2, values=(1.0,), seed=seed + 1)
    X = Y @ looks + random_csr(n_samples, 30, 0.05, values=(1.0,), seed=seed + 2)
    X = csr_matrix(X, dtype=np.float32)
    X.sort_indices()  # as models see it: sums in another order have other bits
    return X, Y


X, Y = problem()
IDS = np.arange(N_OLD, N_OLD + N_NEW)
OLD, NEW = csr_matrix(Y[:, :N_OLD]), csr_matrix(Y[:, N_OLD:])
MANY = csr_matrix(hstack([NEW] * 50))  # 300 newcomers, more than two chunks hold
shapes = pytest.mark.parametrize(
    ("branching", "max_leaf"), [(4, 4), (12, 4), (4, 100)], ids=["deep", "wide", "flat"]
)
losses = pytest.mark.parametrize("logistic", [False, True], ids=["hinge", "logistic"])


def tree_over(Y, branching=4, max_leaf=4, solver=SOLVER):
    hierarchy = grow(label_representation(X, Y), branching=branching, max_leaf=max_leaf, n_jobs=1)
    return train_tree(X, Y, hierarchy, solver, 1, Bar())[0]


def assert_same(tree, other):
    for ours, theirs in zip(tree.arrays, other.arrays, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def assert_same_chunks(chunks, others):
    for ours, theirs in zip(chunks, others, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


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
    found = refit_labels(spoiled, X, OLD, np.arange(N_OLD), how, search(logistic=logistic))
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
    found = refit_labels(tree, X, other, labels, SOLVER, search())
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
    model = um.LabelTree(recipe=TreeRecipe(loss="logistic" if logistic else "squared_hinge"))
    model.fit(rows, labels)
    strange = np.array([[0, 0, 0, 1]], np.float32)
    more, Y_more = np.vstack([rows, np.repeat(strange, 8, 0)]), np.append(labels, [2] * 8)
    model.refit_labels(more, Y_more, [2])
    assert model.predict_topk(strange, k=1).labels[0, 0] == 2
    assert (model.predict_topk(rows, k=1).labels.ravel() == labels).all()


# --- add_labels: what newcomers learn from


@pytest.fixture
def few_samples(monkeypatch):
    """Newcomers look at 20 samples and 5 drawn ones, or 3 per positive, so that some are left."""
    for name, number in (("_NEAREST", 20), ("_PER_POSITIVE", 3), ("_DRAWN", 5)):
        monkeypatch.setattr(updating, name, number)


def rough(n_samples=300):
    """`X` with noise: no two samples are equally like a centre."""
    noise = np.random.default_rng(9).uniform(0.5, 1.5, (n_samples, X.shape[1]))
    return csr_matrix(X.toarray()[:n_samples] * noise, dtype=np.float32)


def literal_samples(X, members, seed, nearest, per_positive, drawn):
    """By the definition, in loops: (samples, columns) of a chunk -> rows it learns from."""
    rows = X.toarray().astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(lengths > 0, lengths, 1)
    centre = np.zeros(rows.shape[1])
    for label in range(members.shape[1]):
        mean = unit[members[:, label] > 0].sum(axis=0)
        centre += mean / np.linalg.norm(mean)
    positive = [row for row in range(len(rows)) if members[row].any()]
    by_likeness = sorted(range(len(rows)), key=lambda row: (-(rows[row] @ centre), row))
    most = max(nearest, per_positive * len(positive))
    by_chance = np.random.default_rng(seed).permutation(len(rows))[:drawn]
    return sorted({*positive, *by_likeness[:most], *by_chance.tolist()})


@pytest.mark.parametrize("columns", [[0], [0, 3], [5, 1, 2, 4]], ids=str)
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("nearest", "per_positive", "drawn"), [(20, 3, 5), (90, 0, 0), (0, 0, 9)])
def test_newcomers_learn_from_their_samples_those_most_like_them_and_some_drawn(
    monkeypatch, columns, seed, nearest, per_positive, drawn
):
    for name, number in zip(
        ("_NEAREST", "_PER_POSITIVE", "_DRAWN"), (nearest, per_positive, drawn), strict=True
    ):
        monkeypatch.setattr(updating, name, number)
    features, member = rough(), csr_matrix(NEW[:, columns])
    centre = csr_matrix(label_representation(features, member).sum(axis=0))
    found = updating._samples_of(features, centre, member, seed)
    expected = literal_samples(features, member.toarray(), seed, nearest, per_positive, drawn)
    assert found.dtype == np.int32
    assert found.tolist() == expected
    assert len(expected) < 300


def test_few_samples_are_all_learned_from():
    centre = csr_matrix(label_representation(X, NEW).sum(axis=0))
    assert updating._samples_of(X, centre, NEW, 0).tolist() == list(range(300))


@losses
def test_newcomers_are_what_training_on_these_samples_gives(few_samples, logistic):
    """To the bit."""
    features, how = rough(), solver(logistic=logistic)
    tree = add_labels(None, features, NEW, IDS, how, 1)
    samples = np.array(literal_samples(features, NEW.toarray(), how.seed, 20, 3, 5), np.int32)
    chunk = ChunkTrainer(features, how).train(features, NEW, samples, 0, N_NEW, 0)
    assert tree.hierarchy.n_nodes == 1
    assert tree.hierarchy.label_order.tolist() == IDS.tolist()
    assert_same_chunks(split(tree), [packed(chunk, X.shape[1])])
    assert (tree.log_trust == 0).all()


@pytest.mark.parametrize("negative_weight", [1.0, 4.0])
def test_newcomers_are_the_support_vector_machines_of_these_samples(few_samples, negative_weight):
    """The same by another solver, to the end; only errors on negatives cost more by the weight."""
    features = rough()
    how = to_the_end(cost=negative_weight, positive_weight=2 / negative_weight)
    tree = add_labels(None, features, NEW, IDS, how, 1)
    weights = dense_weights(tree, X.shape[1])
    rows = literal_samples(features, NEW.toarray(), how.seed, 20, 3, 5)
    lengths = norm(features, axis=1)
    cost = 1 / np.mean(lengths[lengths > 0] ** 2)  # a cost is meant for rows of unit length
    for label in range(N_NEW):
        weights_of = {0: negative_weight, 1: 2.0}
        machine = LinearSVC(C=cost, class_weight=weights_of, tol=1e-8, max_iter=100_000)
        machine.fit(features[rows], NEW.toarray()[rows, label])
        np.testing.assert_allclose(weights[label], machine.coef_[0], atol=5e-3)
        assert tree.bias[label] == pytest.approx(machine.intercept_[0], abs=5e-3)


# --- add_labels: chunks


def test_a_few_newcomers_share_a_chunk():
    for n in (1, MAX_CHUNK):
        rows = random_csr(n, 30, 0.3, seed=n)
        assert [part.tolist() for part in updating._similar(rows, 0, 1)] == [list(range(n))]


@pytest.mark.parametrize("n", [MAX_CHUNK + 1, 300, 1000])
def test_many_newcomers_are_cut_into_groups_of_at_most_a_chunk(n):
    groups = updating._similar(random_csr(n, 30, 0.3, seed=n), 3, 1)
    assert len(groups) == -(-n // MAX_CHUNK)
    assert max(len(group) for group in groups) <= MAX_CHUNK
    assert all((np.diff(group) > 0).all() for group in groups)
    assert sorted(np.concatenate(groups)) == list(range(n))


def test_groups_hold_similar_newcomers():
    kinds = np.random.default_rng(0).permutation(np.repeat([0, 1], 100))
    rows = csr_matrix(np.eye(2, dtype=np.float32)[kinds])
    found = {tuple(group.tolist()) for group in updating._similar(rows, 0, 1)}
    assert found == {tuple(np.flatnonzero(kinds == kind).tolist()) for kind in (0, 1)}


def test_each_group_learns_from_samples_of_its_own(few_samples):
    features, ids = rough(), 1000 + np.arange(300)
    tree = add_labels(None, features, MANY, ids, SOLVER, 1)
    groups = updating._similar(label_representation(features, MANY), SOLVER.seed, 1)
    assert tree.hierarchy.label_order.tolist() == (1000 + np.concatenate(groups)).tolist()
    expected, trainer, looked_at = [], ChunkTrainer(features, SOLVER), set()
    for group in groups:
        member = csr_matrix(MANY[:, group])
        samples = literal_samples(features, member.toarray(), SOLVER.seed, 20, 3, 5)
        looked_at.add(tuple(samples))
        chunk = trainer.train(
            features, member, np.array(samples, np.int32), 0, len(group), int(group[0])
        )
        expected.append(packed(chunk, X.shape[1]))
    assert len(looked_at) > 1
    assert_same_chunks(split(tree), expected)


def test_the_same_labels_fifty_times_have_the_same_classifiers_fifty_times():
    tree = add_labels(None, X, MANY, N_OLD + np.arange(300), to_the_end(), 1)
    few = add_labels(None, X, NEW, IDS, to_the_end(), 1)
    kinds = (tree.hierarchy.label_order - N_OLD) % N_NEW
    expected = dense_weights(few, X.shape[1])[kinds]
    np.testing.assert_allclose(dense_weights(tree, X.shape[1]), expected, atol=5e-3)


@pytest.mark.parametrize("second", [NEW[:, 3:], MANY], ids=["few", "many"])
def test_whoever_came_first_keeps_their_bits_when_others_come(second):
    first = add_labels(None, X, csr_matrix(NEW[:, :3]), IDS[:3], SOLVER, 1)
    first.log_trust[:] = [-0.1, -0.2, -0.3]
    ids = N_OLD + 3 + np.arange(second.shape[1])
    both = add_labels(first, X, csr_matrix(second), ids, SOLVER, 1)
    alone = add_labels(None, X, csr_matrix(second), ids, SOLVER, 1)
    assert_same_chunks(split(both), split(first) + split(alone))
    order = [*IDS[:3].tolist(), *alone.hierarchy.label_order.tolist()]
    assert both.hierarchy.label_order.tolist() == order
    assert both.hierarchy.first_child.tolist() == [1, 1 + len(order)]
    assert both.node_chunk.tolist() == [0, len(split(both))]
    trust = np.append(first.log_trust, np.zeros(len(ids), np.float32))
    assert both.log_trust.tobytes() == trust.tobytes()


# --- search: newcomers beside the tree

DEPTHS = {1: (9, 4, 20), 2: (40, 8, 5), 3: (90, 5, 4)}  # labels, branching, max_leaf
N_FEATURES, EVERYTHING = 12, 10_000
depths = pytest.mark.parametrize("depth", DEPTHS)


def any_tree(depth, **how):
    tree = random_tree(random_hierarchy(*DEPTHS[depth]), N_FEATURES, **how)
    assert len(tree.hierarchy.layers()) == depth
    return tree


def any_newcomers(n, **how):
    """Labels from 100 on, in any order."""
    order = 100 + np.random.default_rng(n).permutation(n).astype(np.int32)
    return random_tree(Hierarchy(np.array([1, 1 + n], np.int32), order), N_FEATURES, **how)


def any_samples(n=20, **how):
    """One without features is among them."""
    nothing = csr_matrix((1, N_FEATURES), dtype=np.float32)
    return csr_matrix(vstack([nothing, random_csr(n - 1, N_FEATURES, 0.4, **how)]))


@depths
def test_what_stands_above_a_layer_is_seen_without_a_copy(depth):
    tree = any_tree(depth)
    for layer in tree.hierarchy.layers()[1:]:
        view = upper_view(tree, layer)
        assert_same(view, upper_tree(tree, layer, split(tree)))
        assert np.shares_memory(view.weight, tree.weight)


def logs_of(tree, X, logistic):
    """(samples, tree numbers without the root): the logarithm of every step's probability."""
    margins = X.toarray() @ dense_weights(tree, X.shape[1]).T + tree.bias
    if logistic:
        return -np.logaddexp(0, -margins)
    below_one, below_two = np.maximum(0, 1 - margins), np.maximum(0, 2 - margins)
    return -below_one * below_one * below_one - np.float32(0.01) * below_two


def ways(tree, X, logistic):
    """(samples, leaves): the logarithm of what each sample's way to each leaf scores."""
    hierarchy, steps = tree.hierarchy, logs_of(tree, X, logistic)
    return np.array(
        [
            sum((steps[:, number - 1] for number in hierarchy.path_to(leaf)), np.zeros(X.shape[0]))
            for leaf in hierarchy.layers()[-1]
        ]
    ).T


@depths
@losses
@pytest.mark.parametrize("path_weight", [1.0, 0.35, 0.0])
def test_the_best_leaf_is_the_best_of_all(depth, logistic, path_weight):
    tree, X = any_tree(depth), any_samples()
    leaves, logs = best_leaf(tree, X, Search(EVERYTHING, path_weight, logistic, 1))
    expected, first = ways(tree, X, logistic), tree.hierarchy.layers()[-1].start
    assert (leaves - first).tolist() == expected.argmax(axis=1).tolist()
    np.testing.assert_allclose(logs, path_weight * expected.max(axis=1), rtol=1e-4, atol=1e-5)
    assert (leaves.dtype, logs.dtype) == (np.int32, np.float32)


def test_with_a_beam_of_one_the_best_leaf_is_where_the_best_steps_lead():
    tree, X = any_tree(3), any_samples(100)
    leaves, logs = best_leaf(tree, X, Search(1, 0.35, False, 1))
    steps, first_child = logs_of(tree, X, False), tree.hierarchy.first_child
    missed = 0
    for row in range(100):
        node, total = 0, 0.0
        for _ in range(2):
            children = range(first_child[node], first_child[node + 1])
            node = max(children, key=lambda child: steps[row, child - 1])
            total += steps[row, node - 1]
        assert leaves[row] == node
        assert logs[row] == pytest.approx(0.35 * total, rel=1e-4, abs=1e-5)
        missed += total < ways(tree, X[row], False).max() - 0.01
    assert missed


def literal_newcomers(newcomers, tree, X, k, path_weight, logistic):
    """Every sample with every newcomer, sorted; the least score that is not zero is e^-87."""
    own = logs_of(newcomers, X, logistic) + newcomers.log_trust
    own = own.astype(np.float32)
    best_way = np.float32(path_weight) * ways(tree, X, logistic).max(axis=1).astype(np.float32)
    answers = []
    for row in range(X.shape[0]):
        scores = np.exp(np.maximum(own[row] + best_way[row], np.float32(-87)))
        pairs = zip(newcomers.hierarchy.label_order.tolist(), scores.tolist(), strict=True)
        found = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:k]
        answers.append(found + [(-1, -np.inf)] * (k - len(found)))
    return answers


def as_pairs(answer):
    """The (label, score) pairs of each sample."""
    table = np.stack([np.asarray(part, np.float64) for part in answer], axis=-1)
    return [[(int(label), score) for label, score in row] for row in table.tolist()]


@depths
@losses
@pytest.mark.parametrize("n", [1, 7, 200])
@pytest.mark.parametrize("path_weight", [0.0, 0.35, 1.0])
def test_newcomers_score_their_own_step_times_the_path_to_the_best_leaf(
    depth, logistic, n, path_weight
):
    newcomers, tree, X = any_newcomers(n, seed=3), any_tree(depth), any_samples()
    found = as_pairs(
        search_newcomers(newcomers, tree, X, 5, Search(EVERYTHING, path_weight, logistic, 1))
    )
    expected = literal_newcomers(newcomers, tree, X, n, path_weight, logistic)
    for ours, every in zip(found, expected, strict=True):
        score_of = dict(every)
        theirs = [score for _, score in every[:5]] + [-np.inf] * (5 - n)
        np.testing.assert_allclose([score for _, score in ours], theirs, rtol=1e-3)
        for label, score in ours[:n]:
            assert score == pytest.approx(score_of[label], rel=1e-3)
        assert [label for label, _ in ours[n:]] == [-1] * (5 - n)


@settings(max_examples=40)
@given(st.sampled_from([*DEPTHS]), st.integers(1, 150), st.integers(1, 200), st.integers(0, 99))
def test_newcomers_that_score_the_same_stand_by_their_number(depth, n, k, seed):
    """Coarse weights, where sums are exact and ties are the rule."""
    newcomers, tree = (any_newcomers(n, values=COARSE, seed=seed), any_tree(depth, values=COARSE))
    X = any_samples(6, values=(1.0,), seed=seed)
    answer = search_newcomers(newcomers, tree, X, k, Search(EVERYTHING, 0.5, False, 1))
    expected = literal_newcomers(newcomers, tree, X, k, 0.5, False)
    for ours, theirs in zip(as_pairs(answer), expected, strict=True):
        assert [label for label, _ in ours] == [label for label, _ in theirs]
        np.testing.assert_allclose([b for _, b in ours], [b for _, b in theirs], rtol=1e-5)


@losses
def test_the_least_likely_newcomer_still_differs_from_none(logistic):
    newcomers, tree, X = any_newcomers(20), any_tree(3), any_samples()
    newcomers.bias[:], tree.bias[:] = np.where(np.arange(20) < 10, -60, -70), -50
    labels, scores = search_newcomers(newcomers, tree, X, 25, Search(9, 1.0, logistic, 1))
    assert (labels[:, :20] == 100 + np.arange(20)).all(), "all are equally unlikely"
    assert (scores[:, :20] > 0).all()
    assert np.isneginf(scores[:, 20:]).all()


def test_newcomers_of_no_samples_are_an_empty_answer():
    answer = search_newcomers(any_newcomers(4), any_tree(2), any_samples()[:0], 3, search())
    assert [part.shape for part in answer] == [(0, 3), (0, 3)]
    assert [part.shape for part in merged(answer, answer)] == [(0, 3), (0, 3)]


@st.composite
def two_answers(draw):
    """About different labels, best first; scores are sixteenths, so that many are the same."""
    k, n = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    both = [(np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)) for _ in "12"]
    for row in range(n):
        labels = draw(st.permutations(range(2 * k)))
        for part, (ids, scores) in enumerate(both):
            some = labels[part * k : part * k + draw(st.integers(0, k))]
            found = sorted((-draw(st.integers(1, 16)) / 16, label) for label in some)
            for rank, (negative, label) in enumerate(found):
                ids[row, rank], scores[row, rank] = label, -negative
    return both


@given(two_answers())
def test_merged_answers_are_the_best_of_both(both):
    one, other = (as_pairs(answer) for answer in both)
    k = both[0][0].shape[1]
    answer = merged(*both)
    expected = []
    for row in range(len(one)):
        found = [pair for pair in one[row] + other[row] if pair[0] >= 0]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        expected.append((found + [(-1, -np.inf)] * k)[:k])
    assert as_pairs(answer) == expected
    assert [part.dtype for part in answer] == [np.int32, np.float32]


# --- LabelTree as a user meets it


def model_of(**parameters):
    return um.LabelTree(max_leaf=4, branching=4).set_params(**parameters).fit(X, OLD)


def answers(model, X=X):
    """(sample, label) -> score, everything that the model can say."""
    top = model.predict_topk(X, k=model.n_labels_, beam_width=1000)
    rows, ranks = np.nonzero(top.labels >= 0)
    keys = zip(rows.tolist(), top.labels[rows, ranks].tolist(), strict=True)
    return dict(zip(keys, top.scores[rows, ranks].tolist(), strict=True))


def found_by(model, k):
    top = model.predict_topk(X, k)
    return top.labels, top.scores


def without(found, labels):
    return {key: score for key, score in found.items() if key[1] not in labels}


VARIANTS = [
    {}, {"n_trees": 3}, {"recipe__loss": "logistic"}, {"max_leaf": 100}, {"recipe__trust": False},
]  # fmt: skip
variants = pytest.mark.parametrize("parameters", VARIANTS, ids=str)


@variants
def test_new_labels_are_found_and_old_ones_keep_their_bits(parameters):
    model = model_of(**parameters)
    before = answers(model)
    model.add_labels(X, NEW)
    assert model.n_labels_ == N_OLD + N_NEW
    after = answers(model)
    assert without(after, IDS) == before
    assert len(after) == len(before) + 300 * N_NEW, "every sample is asked about every newcomer"
    found = model.predict_topk(X, k=5).labels
    rows, labels = NEW.nonzero()
    recall = np.mean([N_OLD + label in found[row] for row, label in zip(rows, labels, strict=True)])
    assert recall > 0.8
    wrong = [row for row in range(X.shape[0]) if NEW[row].nnz == 0 and found[row, 0] >= N_OLD]
    assert len(wrong) < 0.05 * X.shape[0]


@variants
@pytest.mark.parametrize("k", [1, 5])
def test_old_labels_only_make_room_for_new_ones(parameters, k):
    """No old label gets another score or overtakes another because of a newcomer."""
    model = model_of(**parameters)
    before = as_pairs(found_by(model, k))
    after = as_pairs(found_by(model.add_labels(X, NEW), k))
    for old, new in zip(before, after, strict=True):
        kept = [pair for pair in new if pair[0] < N_OLD]
        newcomers = [pair for pair in new if pair[0] >= N_OLD]
        assert kept == old[: len(kept)]
        assert new == sorted(kept + newcomers, key=lambda pair: (-pair[1], pair[0]))
        displaced = [score for _, score in old[len(kept) :]]
        assert all(score >= displaced[0] for _, score in newcomers)
    assert before != after


@variants
def test_the_score_of_a_newcomer_is_that_of_the_first_tree_and_its_own(parameters):
    model = model_of(**parameters).add_labels(X, NEW)
    found = model._search(1000)
    labels, scores = search_newcomers(model.newcomers_, model.trees_[0], X, N_NEW, found)
    after = answers(model)
    for row in range(300):
        for label, score in zip(labels[row].tolist(), scores[row].tolist(), strict=True):
            assert after[row, label] == score


@variants
def test_scores_stay_within_0_and_1_with_newcomers(parameters):
    """They are read as probabilities, and compared with other labels' scores."""
    model = model_of(**parameters).add_labels(X, NEW)
    for samples in (X, csr_matrix(-9 * X)):  # ... and those that are like nothing
        top = model.predict_topk(samples, k=N_OLD + N_NEW)
        given = top.scores[top.labels >= 0]
        assert ((given > 0) & (given <= 1)).all()


def assert_explained(why, score, n_steps):
    """Down to the parts of single features."""
    (path,) = why.paths
    assert len(path.steps) == n_steps
    for step in path.steps:
        assert step.margin == pytest.approx(step.bias + step.contributions.sum())
    log_score = path.log_trust + sum(step.log_score for step in path.steps)
    assert path.score == pytest.approx(np.exp(log_score))
    blended = (path.score + why.text_weight * max(why.cosine, 0)) / (1 + why.text_weight)
    assert why.score == pytest.approx(blended)
    assert why.score == pytest.approx(score, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [*VARIANTS, {"beam_width": 1}, {"n_trees": 3, "recipe__label_text_weight": 0.3}],
    ids=str,
)
def test_explanations_of_newcomers_add_up_to_their_scores(parameters):
    features = FEATURES if "recipe__label_text_weight" in parameters else None
    model = um.LabelTree(max_leaf=4, branching=4).set_params(**parameters)
    model.fit(X, OLD, None if features is None else features[:N_OLD])
    model.add_labels(X, NEW, None if features is None else features[N_OLD:])
    n_steps = len(model.trees_[0].hierarchy.layers())
    top = as_pairs(found_by(model, N_OLD + N_NEW))
    for row in range(0, 300, 30):
        score_of = dict(top[row])
        for label in IDS.tolist():
            assert_explained(model.explain(X[row], label), score_of[label], n_steps)


def test_keywords_of_newcomers_are_their_own():
    model = model_of(n_trees=2).add_labels(X, NEW)
    for place, label in enumerate(model.newcomers_.hierarchy.label_order):
        weights = dense_weights(model.newcomers_, X.shape[1])[place]
        expected = [(f, weights[f]) for f in np.argsort(-weights, kind="stable")[:4]]
        assert model.label_keywords(label, 4) == [pair for pair in expected if pair[1] > 0]


def test_negative_weight_is_how_many_samples_each_negative_stands_for():
    """Each negative three times, or once with three times the weight: the same classifier."""
    end = {"recipe": TreeRecipe(tolerance=1e-4, max_epochs=3000), "prune": 0.0}
    table = NEW[:, 5].toarray()
    table[::3] = 0  # negatives that look like positives lower the trust
    new = csr_matrix(table)
    thrice = np.repeat(np.arange(300), np.where(new.toarray().ravel() > 0, 1, 3))
    weighty = model_of(**end).add_labels(X, new, negative_weight=3.0).newcomers_
    many = model_of(**end).add_labels(X[thrice], new[thrice]).newcomers_
    once = model_of(**end).add_labels(X, new).newcomers_
    n = X.shape[1]
    np.testing.assert_allclose(dense_weights(weighty, n), dense_weights(many, n), atol=5e-3)
    np.testing.assert_allclose(weighty.bias, many.bias, atol=5e-3)
    np.testing.assert_allclose(weighty.log_trust, many.log_trust, atol=1e-6)
    assert weighty.log_trust < 0.3 * np.log((new.nnz + 1) / (new.nnz + 1.2 + 3)) + 1e-6
    assert not np.allclose(dense_weights(weighty, n), dense_weights(once, n), atol=0.02)
    assert weighty.bias < once.bias


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf"), "1", None])
def test_a_negative_weight_that_cannot_be_is_refused(weight):
    model = model_of()
    with pytest.raises(ParameterError, match="negative_weight="):
        model.add_labels(X, NEW, negative_weight=weight)
    assert model.n_labels_ == N_OLD
    assert model.newcomers_ is None


@variants
def test_those_who_came_first_keep_their_scores_when_others_come(parameters):
    model = model_of(**parameters).add_labels(X, NEW[:, :3])
    before = answers(model)
    after = answers(model.add_labels(X, NEW[:, 3:]))
    assert without(after, IDS[3:]) == before
    assert {label for _, label in after} >= set(IDS)


def test_hundreds_of_newcomers():
    model = model_of().add_labels(X, MANY)
    found = answers(model)
    newcomers, way = model.newcomers_, ways(model.trees_[0], X, False).max(axis=1)
    own = np.exp(logs_of(newcomers, X, False) + newcomers.log_trust + 0.35 * way[:, None])
    for place, label in enumerate(newcomers.hierarchy.label_order.tolist()):
        ours = [found[row, label] for row in range(300)]
        np.testing.assert_allclose(ours, own[:, place], rtol=1e-3, atol=1e-7)
    assert {label for _, label in found} == set(range(N_OLD + 300))


@variants
def test_removed_labels_are_never_answered(parameters):
    model = model_of(**parameters).add_labels(X, NEW)
    before, gone = answers(model), [3, 4, 39, N_OLD, N_OLD + 4]
    model.remove_labels(gone)
    assert answers(model) == without(before, gone)
    assert model.n_labels_ == N_OLD + N_NEW
    assert model.explain(X[0], N_OLD).score == 0
    assert model.label_keywords(N_OLD) == []


@variants
def test_without_its_newcomers_a_model_is_what_it_was(parameters):
    model = model_of(**parameters)
    before = answers(model)
    first = without(answers(model.add_labels(X, NEW)), range(N_OLD))
    assert answers(model.remove_labels(IDS)) == before
    again = answers(model.add_labels(X, NEW))
    assert without(again, IDS + N_NEW) == before
    shifted = {(row, label + N_NEW): score for (row, label), score in first.items()}
    assert without(again, range(N_OLD)) == shifted


def test_newcomers_stay_when_all_other_labels_go():
    model = model_of().add_labels(X, NEW)
    before = answers(model)
    assert answers(model.remove_labels(range(N_OLD))) == without(before, range(N_OLD))


@variants
def test_newcomers_refitted_on_their_own_samples_stay(parameters):
    """Everything that their chunk saw is here again."""
    model = model_of(**parameters).add_labels(X, NEW)
    before, trees = answers(model), model.trees_
    model.refit_labels(X, Y, IDS)
    assert answers(model) == before
    for ours, theirs in zip(model.trees_, trees, strict=True):
        assert_same(ours, theirs)


def test_refitted_newcomers_learn_again_and_the_others_do_not():
    model = model_of(recipe__trust=False).add_labels(X, NEW)
    before = dense_weights(model.newcomers_, X.shape[1])
    bias = model.newcomers_.bias
    other = csr_matrix(Y[::-1])  # samples whose labels are all wrong now
    model.refit_labels(X, other, [N_OLD + 1, N_OLD + 5, 7])
    after = model.newcomers_
    assert after.hierarchy.label_order.tolist() == IDS.tolist()
    every, how = np.arange(300, dtype=np.int32), model._solver(model._first_seed())
    member = csr_matrix(other[:, [N_OLD + 1, N_OLD + 5]])
    chunk = ChunkTrainer(X, how).train(X, member, every, 0, 2, 0)
    table = np.zeros((2, X.shape[1]), np.float32)
    table[chunk.child, np.repeat(chunk.feature, np.diff(chunk.entry))] = chunk.weight
    weights, unit = dense_weights(after, X.shape[1]), after.chunk_scale[0]
    np.testing.assert_allclose(weights[[1, 5]], table, atol=unit)
    np.testing.assert_allclose(weights[[0, 2, 3, 4]], before[[0, 2, 3, 4]], atol=unit)
    np.testing.assert_array_equal(after.bias[[1, 5]], chunk.bias)
    np.testing.assert_array_equal(after.bias[[0, 2, 3, 4]], bias[[0, 2, 3, 4]])
    assert not np.allclose(weights[[1, 5]], before[[1, 5]], atol=0.1)


@variants
def test_threads_do_not_change_a_bit(parameters):
    models = [model_of(n_jobs=n, **parameters) for n in (1, 2)]
    for model in models:
        model.add_labels(X, NEW).add_labels(X, MANY)
        wide = csr_matrix(hstack([Y, MANY]))
        model.refit_labels(X, wide, [1, 2, N_OLD, 300]).remove_labels([5, N_OLD + 1])
    for trees in zip(*(model._all_trees() for model in models), strict=True):
        assert_same(*trees)
    assert answers(models[0]) == answers(models[1])


@variants
def test_a_changed_model_is_saved_as_it_is(parameters, tmp_path):
    model = model_of(**parameters).add_labels(X, NEW).remove_labels([0, 1, N_OLD])
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert_same(again.newcomers_, model.newcomers_)
    assert answers(again) == answers(model)
    for one in (model, again):  # arrays that are mapped from files
        one.refit_labels(X, Y, [7, N_OLD + 2]).add_labels(X, NEW[:, :2])
        one.remove_labels([8, N_OLD + 3])
    assert_same(again.newcomers_, model.newcomers_)
    assert answers(again) == answers(model)


def test_a_model_whose_newcomers_are_gone_is_saved(tmp_path):
    model = model_of().add_labels(X, NEW).remove_labels(IDS)
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert answers(again) == answers(model)
    assert answers(again.add_labels(X, NEW)) == answers(model.add_labels(X, NEW))


def test_fit_forgets_the_newcomers():
    model = model_of().add_labels(X, NEW)
    assert model.fit(X, OLD).newcomers_ is None
    assert answers(model) == answers(model_of())


FEATURES = random_csr(N_OLD + N_NEW, X.shape[1], 0.2, values=(1.0,), seed=1)  # the labels' looks


@pytest.mark.parametrize("n_trees", [1, 2])
def test_features_of_new_labels_count_as_those_of_old_ones(n_trees):
    model = um.LabelTree(
        max_leaf=4, branching=4, n_trees=n_trees, recipe=TreeRecipe(label_text_weight=0.3)
    )
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
    model = um.LabelTree(max_leaf=4, recipe=TreeRecipe(label_text_weight=0.3))
    model.fit(X, OLD, label_features=FEATURES[:N_OLD]).add_labels(X, NEW)
    assert model.explain(FEATURES[N_OLD], N_OLD).cosine == 0
    assert model.explain(FEATURES[0], 0).cosine == pytest.approx(1)


def test_features_of_removed_labels_do_not_bring_them_back():
    model = um.LabelTree(max_leaf=4, recipe=TreeRecipe(label_text_weight=0.5))
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
    before = model.newcomers_
    model.refit_labels(X, wide, [label, 1])
    assert model.newcomers_.hierarchy.label_order[-1] == label
    assert before is None or split(before)[0].weight.tolist() == (
        split(model.newcomers_)[0].weight.tolist()
    )
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
        (lambda model: model.refit_labels(X, Y, [0]), "46 columns, but there are 40 labels"),
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


# --- which labels know a feature


def literal_labels_with(model, row):
    """By the classifiers that lead to each label, and by its text."""
    features, found = set(row.indices), set()
    for tree in model._all_trees():
        for place, label in enumerate(tree.hierarchy.label_order.tolist()):
            known, weights = tree.classifier(tree.hierarchy.n_nodes + place)
            if features & set(known[weights != 0].tolist()):
                found.add(label)
    texts = model.label_texts_
    if texts is not None and texts.weight:
        rows = [set(row.indices) for row in texts.features]
        found |= {label for label, own in enumerate(rows) if own & features}
    return found


@variants
@pytest.mark.parametrize("text_weight", [None, 0.0, 0.3])
def test_labels_with_a_feature_have_a_weight_or_a_text_for_it(parameters, text_weight):
    texts = None
    if text_weight is not None:
        parameters = {**parameters, "recipe__label_text_weight": text_weight}
        texts = random_csr(OLD.shape[1], X.shape[1], 0.03, seed=5)
    model = um.LabelTree(max_leaf=4, branching=4).set_params(**parameters)
    model.fit(X, OLD, label_features=texts).add_labels(X, NEW)
    asked = random_csr(30, X.shape[1], 0.01, seed=6)
    found = model.labels_with(asked)
    assert found.shape == (30, model.n_labels_)
    assert set(found.data) <= {1.0}
    for i in range(30):
        assert set(found[i].indices) == literal_labels_with(model, asked[i])
    assert any(0 < row.nnz < model.n_labels_ for row in found)
    assert model.labels_with(asked[:0]).shape == (0, model.n_labels_)


@pytest.mark.parametrize("step", ["_refitted", "_with_newcomers"])
def test_an_interrupted_refit_leaves_all_trees_as_they_were(step, monkeypatch):
    """Trees that learned and newcomers that did not would contradict one another."""
    model = model_of(n_trees=2).add_labels(X, NEW)
    model.add_labels(X, csr_matrix((X.shape[0], 1)) + csr_matrix(([1.0], ([0], [0])), (300, 1)))
    model.remove_labels(model.n_labels_ - 1)
    before, calls, learn = answers(model), [], getattr(um.LabelTree, step)

    def interrupted(*given):
        calls.append(given)
        if step == "_with_newcomers" or len(calls) == 3:
            raise KeyboardInterrupt
        return learn(*given)

    Y = csr_matrix(np.roll(hstack([OLD, NEW, OLD[:, :1]]).toarray(), 1, axis=0))
    monkeypatch.setattr(um.LabelTree, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.refit_labels(X, Y, np.arange(model.n_labels_))
    assert answers(model) == before
    monkeypatch.undo()
    assert answers(model.refit_labels(X, Y, np.arange(model.n_labels_))) != before


def test_labels_that_come_one_by_one_share_chunks():
    """Every answer would take longer for each of them otherwise."""
    model = model_of()
    for column in range(2 * N_NEW):
        before = answers(model)
        model.add_labels(X, csr_matrix(NEW[:, [column % N_NEW]]))
        assert without(answers(model), [model.n_labels_ - 1]) == before
    assert len(model.newcomers_.chunk_scale) < N_NEW

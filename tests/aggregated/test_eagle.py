"""If these fail, whoever knows labels per group only is better off ignoring the groups."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, identity

import umpteen as um
from umpteen.aggregated import EagleRecipe, assign_labels, rounds
from umpteen.aggregated import eagle as module
from umpteen.aggregated.rounds import FoldScores
from umpteen.errors import GroupsError, LabelsError, ParameterError

from . import literal
from .test_assignment import figure_1, is_solved

SHARES = ["one", "count", "estimate"]
FAST = um.NearestCentroid()


def fitted(small, **parameters):
    X, groups, counts = small.sparse
    return um.Eagle(**parameters).fit(X, groups=groups, group_labels=counts)


def same(first, second):
    return first.shape == second.shape and (first != second).nnz == 0


@pytest.fixture(scope="module")
def texts():
    """Like texts: most words of a sample have nothing to do with its labels."""
    data = um.data.make_extreme(4000, 2000, 60, labels_per_sample=2, noise=0.5, random_state=0)
    groups = um.data.group_randomly(data.train.X.shape[0], 10, random_state=0)
    return data, groups, um.data.aggregate(data.train.Y, groups)


def precision(model, data):
    return model.score(data.test.X, data.test.Y)


# Given what samples have, or groups of one, Eagle adds nothing.


def labelled_samples(share_without=0.0):
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((80, 20)) * (rng.random((80, 20)) < 0.3))
    Y = rng.random((80, 12)) < 0.2
    Y[rng.random(80) < share_without] = False
    return X, csr_matrix(Y)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("share_without", [0.0, 0.4])
@pytest.mark.parametrize("solver", [um.LabelTree(max_leaf=3, branching=2), um.NearestCentroid()])
def test_given_labels_of_samples_it_is_the_solver_to_the_bit(solver, share_without, dense):
    X, Y = labelled_samples(share_without)
    X = X.toarray() if dense else X
    wanted = solver.fit(X, Y)
    variants = [
        um.Eagle(solver),
        um.Eagle.paper(solver),
        um.Eagle.paper(solver, recipe__iterations=0),
    ]
    mean = EagleRecipe(background="mean")
    variants += [um.Eagle(solver, samples_per_label=share, recipe=mean) for share in SHARES]
    for model in variants:
        model.fit(X, Y)
        assert model.predict_topk(X, k=5) == wanted.predict_topk(X, k=5)
        assert same(model.assigned_labels_, Y.astype(np.float32))
        assert same(model.predict(X), wanted.predict(X))
        groups = identity(80, format="csr")
        model.fit(X, groups=groups, group_labels=Y)
        assert model.predict_topk(X, k=5) == wanted.predict_topk(X, k=5)
        assert same(model.assigned_labels_, Y.astype(np.float32))


def test_the_default_solver_is_a_label_tree():
    X, Y = labelled_samples()
    assert um.Eagle().fit(X, Y).predict_topk(X) == um.LabelTree().fit(X, Y).predict_topk(X)


def test_single_labels_come_back_as_ids():
    X, _ = labelled_samples()
    ids = np.arange(80) % 5
    assert um.Eagle(FAST).fit(X, ids).predict(X).shape == (80,)


def test_given_labels_are_scored_by_the_solver():
    """A beam of one looks at few labels; scores of given ones must not depend on that."""
    X, Y = labelled_samples()
    solver = um.LabelTree(max_leaf=2, branching=2, beam_width=1)
    model = um.Eagle(solver).fit(X, Y)
    assert same(
        model.score_labels(X, np.ones(Y.shape)), solver.fit(X, Y).score_labels(X, np.ones(Y.shape))
    )
    assert model._every_label(X) == solver._every_label(X)


# As printed.


@pytest.mark.parametrize("iterations", [0, 1, 20])
@pytest.mark.parametrize("solver", [um.LabelTree(max_leaf=4, branching=2), um.NearestCentroid()])
def test_the_paper_s_algorithm_is_its_assignment_and_the_solver(solver, iterations):
    for seed in range(3):
        small = literal.random_problem(seed)
        X, groups, counts = small.sparse
        model = um.Eagle.paper(solver, recipe__iterations=iterations, random_state=seed)
        model.fit(X, groups=groups, group_labels=counts)
        Y = assign_labels(X, groups, counts, iterations=iterations, random_state=seed)
        assert same(model.assigned_labels_, Y)
        possible = np.asarray(groups.T @ counts.sum(axis=1)).ravel() > 0
        rows = np.flatnonzero((np.diff(Y.indptr) > 0) | ~possible)
        assert model.predict_topk(X) == solver.fit(X[rows], Y[rows]).predict_topk(X)
        assert model.agreement_ == []


def test_paper_takes_changes():
    model = um.Eagle.paper(FAST, recipe__step=0.5, samples_per_label="count")
    assert model.recipe == EagleRecipe(20, step=0.5, background="none", compare=False)
    assert (model.rounds, model.samples_per_label, model.solver) == (0, "count", FAST)


@pytest.mark.parametrize(
    "wrong", [{"iterations": -1}, {"step": 0}, {"folds": 1}, {"background": "sky"}], ids=str
)
def test_recipes_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        EagleRecipe(**wrong)


def test_parameters_of_the_first_version_become_a_recipe(tmp_path):
    golden = Path(__file__).parents[1] / "storage" / "golden" / "0.1" / "Eagle.zip"
    with zipfile.ZipFile(golden) as archive:
        archive.extractall(tmp_path)
    model = um.load(tmp_path)
    assert model.recipe == EagleRecipe(folds=4)
    assert (model.samples_per_label, model.samples_per_label_) == ("count", "count")
    assert model.chosen_ == "rounds"


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("build", [um.Eagle, um.Eagle.paper])
def test_the_example_of_figure_1_is_solved_up_to_order(build, n_labels):
    X, groups, labels, prototype = figure_1(n_labels)
    for seed in range(50):
        model = build(um.LabelTree(n_jobs=1), random_state=seed)
        model.fit(X, groups=groups, group_labels=labels)
        assert is_solved(model.assigned_labels_, prototype), seed
        answers = model.predict_topk(X, k=1).labels.ravel()
        assert len(set(zip(prototype, answers, strict=True))) == n_labels


# What it is for.


def test_better_than_ignoring_groups_and_than_the_paper(texts):
    data, groups, counts = texts
    X, Y = data.train.X, data.train.Y
    oracle = precision(um.LabelTree().fit(X, Y), data)
    baseline = precision(um.LabelTree().fit(X, um.ignore_groups(X, groups, counts)), data)
    printed = precision(um.Eagle.paper().fit(X, groups=groups, group_labels=counts), data)
    model = um.Eagle().fit(X, groups=groups, group_labels=counts)
    ours = precision(model, data)
    assert oracle - baseline > 0.1
    assert ours > baseline + 0.7 * (oracle - baseline)
    assert ours > printed + 0.02
    right = model.assigned_labels_.multiply(Y).sum() / model.assigned_labels_.sum()
    chance = um.ignore_groups(X, groups, counts)
    assert right > 3 * chance.multiply(Y).sum() / chance.sum()


def test_the_agreement_estimates_how_good_the_assignment_is(texts):
    """Shuffled labels of groups agree with nothing."""
    data, groups, counts = texts
    X, order = data.train.X, np.random.default_rng(0).permutation(groups.shape[0])
    true, wrong = (
        um.Eagle(FAST, rounds=2).fit(X, groups=groups, group_labels=known).agreement_
        for known in (counts, counts[order])
    )
    assert len(true) == 2
    assert min(true) > max(wrong) + 0.1


def test_labels_known_without_counts(texts):
    data, groups, _ = texts
    present = um.data.aggregate(data.train.Y, groups, merge="set")
    one, estimate = (
        um.Eagle(FAST, rounds=0, samples_per_label=share).fit(
            data.train.X, groups=groups, group_labels=present
        )
        for share in ("one", "estimate")
    )
    n_true = data.train.Y.nnz
    assert one.assigned_labels_.nnz <= present.nnz < 0.8 * n_true
    assert estimate.assigned_labels_.nnz == pytest.approx(n_true, rel=0.1)


@pytest.mark.parametrize("merge", ["set", "list"])
def test_it_notices_whether_counts_are_known(texts, merge):
    data, groups, _ = texts
    known = um.data.aggregate(data.train.Y, groups, merge=merge)
    model = um.Eagle(FAST, rounds=0).fit(data.train.X, groups=groups, group_labels=known)
    assert model.samples_per_label_ == {"set": "estimate", "list": "count"}[merge]
    assert model.labels_per_sample_ == 2


def test_single_labels_in_small_groups_are_counts():
    """Nothing is repeated where nothing would be: no presence."""
    labels = [[2 * j, 2 * j + 1] for j in range(20)]
    model = um.Eagle(FAST).fit(np.eye(40), groups=np.arange(40) // 2, group_labels=labels)
    assert model.samples_per_label_ == "count"


def test_where_groups_share_their_labels_all_samples_learn_them():
    """Every sample of a group has all its labels: an assignment would lose most of them."""
    rng = np.random.default_rng(0)
    topic = np.repeat(rng.integers(0, 12, 120), 8)
    X = np.eye(12)[topic] + 0.05 * rng.random((960, 12))
    labels = [[t, 12 + t] for t in topic[::8]]
    known = {"groups": np.arange(960) // 8, "group_labels": labels}
    model = um.Eagle().fit(X, **known)
    assert (model.samples_per_label_, model.chosen_) == ("estimate", "baseline")
    baseline = um.LabelTree().fit(X, um.ignore_groups(X, *known.values()))
    assert model.predict_topk(X) == baseline.predict_topk(X)
    assert model.assigned_labels_.nnz < 0.9 * 960 * 2  # still says whose labels they may be
    forced = um.Eagle(recipe=EagleRecipe(compare=False)).fit(X, **known)
    assert forced.chosen_ == "rounds"


def test_where_groups_share_some_of_their_labels_the_others_are_still_assigned():
    """One shared label fits every group as well as an assignment does; the others would be lost."""
    rng = np.random.default_rng(0)
    topic = np.repeat(rng.integers(0, 8, 200), 3)
    own = 8 + 4 * topic + rng.integers(0, 4, 600)
    X = np.hstack([np.eye(8)[topic], np.eye(40)[own]]) + 0.05 * rng.random((600, 48))
    labels = [sorted({topic[3 * j], *own[3 * j : 3 * j + 3]}) for j in range(200)]
    model = um.Eagle().fit(X, groups=np.arange(600) // 3, group_labels=labels)
    assert (model.samples_per_label_, model.chosen_) == ("estimate", "rounds")
    found = np.sort(model.predict_topk(X, k=2).labels, axis=1)
    assert np.mean(found == np.stack([topic, own], axis=1)) > 0.97


@pytest.mark.parametrize("merge", ["set", "list"])
@pytest.mark.parametrize("unlabelled", ["keep", "drop"])
def test_both_readings_of_the_paper(texts, merge, unlabelled):
    data, groups, counts = texts
    X, groups, counts = data.train.X, groups[:20], counts[:20]
    rows = np.flatnonzero(groups.getnnz(axis=0))
    X, groups = X[rows], groups[:, rows]
    model = um.Eagle.paper(FAST, recipe__unlabelled=unlabelled, recipe__merge=merge)
    model.fit(X, groups=groups, group_labels=counts)
    known = counts if merge == "list" else counts > 0
    Y = assign_labels(X, groups, known.astype(np.float32))
    assert same(model.assigned_labels_, Y)
    learned = slice(None) if unlabelled == "keep" else np.flatnonzero(np.diff(Y.indptr))
    wanted = um.NearestCentroid().fit(X[learned], Y[learned])
    assert model.predict_topk(X) == wanted.predict_topk(X)


# New groups.


def test_labels_of_new_groups_find_their_samples(texts):
    data, groups, counts = texts
    model = um.Eagle(FAST, rounds=0).fit(data.train.X, groups=groups, group_labels=counts)
    X, Y = data.test.X, data.test.Y
    new = um.data.group_randomly(X.shape[0], 10, random_state=1)
    found = model.assign(X, new, um.data.aggregate(Y, new))
    assert found.data.min() > 0
    assert found.data.max() <= 1
    right = np.asarray(found.multiply(Y.astype(bool)).astype(bool).sum()) / found.nnz
    assert right > 0.9
    is_right = np.asarray(Y[found.nonzero()]).ravel() > 0
    assert found.data[is_right].mean() > found.data[~is_right].mean()


def test_a_confidence_is_the_share_of_the_groups_scores():
    X = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])
    model = um.Eagle(FAST).fit(np.eye(2), [[0], [1]])
    scores = model.score_labels(X, np.ones((3, 2))).toarray()
    found = model.assign(X, [[0, 1, 2]], [[0, 1, 1]]).toarray()
    wanted = np.zeros((3, 2))
    wanted[0, 0] = scores[0, 0] / scores[:, 0].sum()
    wanted[1:, 1] = np.minimum(1, 2 * scores[1:, 1] / scores[:, 1].sum())
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_labels_that_no_sample_deserves_may_belong_to_nobody():
    model = um.Eagle(FAST).fit(np.eye(3), [[0], [1], [2]])
    new = {"X": np.eye(3)[:2], "groups": [[0, 1]], "group_labels": [[0, 1, 2]]}
    assert model.assign(**new)[:, 2].nnz <= 1
    found = model.assign(**new, none_of_these=0.5)
    assert found.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]


def test_every_label_goes_to_somebody_unless_told_otherwise():
    """A sample without any feature of a label scores 0, and opposite ones are negative."""
    model = um.Eagle(FAST).fit(np.eye(3), [[0], [1], [2]])
    found = model.assign(np.eye(3)[:2], [[0, 1]], [[2]])
    assert found.toarray().tolist() == [[0, 0, 0.5], [0, 0, 0]]
    opposite = model.assign(-np.eye(3)[:2], [[0], [1]], [[0], [1]])
    assert opposite.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    far = model.assign([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2]], [[0, 0, 2]])
    assert far[:, [0]].nnz == 2
    assert far[:, [2]].nnz == 1
    assert model.assign(np.eye(3)[:2], [[0, 1]], [[2, 2]]).toarray()[:, 2].tolist() == [1, 1]
    assert model.assign(np.eye(3), [[0], [1], [2]], [[], [], []]).nnz == 0


@pytest.mark.filterwarnings("error")
def test_infinite_scores_give_finite_confidences():
    """As a model gives them whose weights somebody changed."""
    model = um.Eagle(FAST).fit(np.eye(3), [[0], [1], [2]])
    model.score_labels = lambda X, pairs: csr_matrix([[np.inf, np.nan, -np.inf], [np.inf, 0, 1]])
    found = model.assign(np.eye(3)[:2], [[0, 1]], [[0, 1, 2]])
    assert found.nnz == 3
    assert np.isfinite(found.data).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "0.5", [0.1], True])
def test_a_threshold_is_a_number(wrong):
    model = um.Eagle(FAST).fit(np.eye(3), [[0], [1], [2]])
    with pytest.raises(ParameterError, match=r"none_of_these=.* is not possible"):
        model.assign(np.eye(3), [[0, 1, 2]], [[0]], none_of_these=wrong)


def test_labels_that_the_model_does_not_know_are_refused():
    model = um.Eagle(FAST).fit(np.eye(3), [[0], [1], [2]])
    with pytest.raises(LabelsError, match="3"):
        model.assign(np.eye(3), [[0, 1, 2]], [[3]])
    with pytest.raises(LabelsError, match=r"not clear .*minlength=3\) for ids"):
        model.assign(np.eye(3), [[0, 1, 2]], [[0, 0, 1]])
    with pytest.raises(GroupsError, match="4 labels, but the model was fitted on 3"):
        model.assign(np.eye(3), [[0, 1, 2]], np.ones((1, 4)))


# Same bits.


@pytest.mark.parametrize("solver", [None, FAST])
def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(solver, texts):
    data, groups, counts = texts
    groups = um.data.group_randomly(800, 10, random_state=0)
    X, counts = data.train.X[:800], um.data.aggregate(data.train.Y[:800], groups)
    one, *others = (
        um.Eagle(solver, rounds=2, n_jobs=n_jobs, random_state=3).fit(
            X, groups=groups, group_labels=counts
        )
        for n_jobs in (1, 1, 3)
    )
    for other in others:
        assert one.predict_topk(data.test.X) == other.predict_topk(data.test.X)
        assert one.agreement_ == other.agreement_
        assert same(one.assigned_labels_, other.assigned_labels_)
        assert one.label_embeddings_.data.tobytes() == other.label_embeddings_.data.tobytes()


def test_a_saved_model_is_the_same(tmp_path):
    small = literal.random_problem(0)
    model = fitted(small, solver=um.LabelTree(max_leaf=3, branching=2))
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert loaded.predict_topk(small.X) == model.predict_topk(small.X)
    assert loaded.agreement_ == model.agreement_
    assert loaded.solver.get_params() == model.solver.get_params()
    for name in ("assigned_labels_", "label_embeddings_"):
        assert same(getattr(loaded, name), getattr(model, name))


# Rounds and votes.


def judged_with(agreements, monkeypatch):
    """Solvers that say random things, with these agreements; returns what they said."""
    said = []
    rng = np.random.default_rng(0)

    def score_folds(problem, assigned, solver, folds, n_best, others):
        scores = problem.candidates.copy()
        scores.data = rng.random(scores.nnz).astype(np.float32)
        said.append((assigned, scores))
        return FoldScores(scores, agreements[len(said) - 1])

    monkeypatch.setattr(rounds, "score_folds", score_folds)
    return said


@pytest.mark.parametrize(("agreements", "kept"), [([0.5, 0.7, 0.6], 3), ([0.0, 0.1, 0.2], 0)])
def test_rounds_assign_by_all_scores_so_far(agreements, kept, monkeypatch):
    """Solvers that agree with nothing have nothing to say, and the first assignment stands."""
    small = literal.random_problem(0, overlap=False)
    said = judged_with(agreements, monkeypatch)
    model = fitted(small, solver=FAST, rounds=3)
    assert model.agreement_ == agreements[:kept]
    assert len(said) == max(1, kept)
    start = fitted(small, solver=FAST, rounds=0).assigned_labels_
    assert same(said[0][0], start)
    if kept:
        total = sum(scores.toarray() for _, scores in said)
        wanted = literal.handed_out(small, total, "count")
        np.testing.assert_array_equal(model.assigned_labels_.toarray(), wanted)
        assert model.chosen_ == "rounds"
    else:
        assert same(model.assigned_labels_, start)
        assert model.chosen_ == "first"


@pytest.mark.parametrize("votes", [1, 2, 9])
@pytest.mark.parametrize("with_cost", [True, False])
def test_the_last_rounds_vote(votes, with_cost, monkeypatch):
    """The cost of an error is shared among ballots; without, rounds count together."""
    small = literal.random_problem(1, overlap=False)
    said = judged_with([0.1, 0.2, 0.3], monkeypatch)
    solver = um.LabelTree(max_leaf=3, branching=2, cost=1.5) if with_cost else FAST
    model = fitted(small, solver=solver, rounds=3, votes=votes)
    ballots = [fitted(small, solver=FAST, rounds=0).assigned_labels_.toarray()]
    ballots += [literal.handed_out(small, scores.toarray(), "count") for _, scores in said]
    together = model.assigned_labels_.toarray()
    ballots = ballots[-votes:] if with_cost and votes > 1 else [together]
    none = ~(small.groups.T.astype(int) @ small.counts).any(axis=1)
    rows = [np.flatnonzero(ballot.any(axis=1) | none) for ballot in ballots]
    X = csr_matrix(np.concatenate([small.X[own] for own in rows]), dtype=np.float32)
    Y = np.concatenate([ballot[own] for ballot, own in zip(ballots, rows, strict=True)])
    if with_cost:
        assert model.solver_.cost == pytest.approx(1.5 / len(ballots))
        solver = um.LabelTree(max_leaf=3, branching=2, cost=1.5 / len(ballots))
    assert model.predict_topk(small.X) == solver.fit(X, Y).predict_topk(small.X)


def test_the_solver_that_was_given_stays_unfitted():
    solver = um.LabelTree()
    fitted(literal.random_problem(0), solver=solver)
    assert not hasattr(solver, "n_labels_")
    assert solver.cost == um.LabelTree().cost


# Corners.


@pytest.mark.parametrize("solver", [None, FAST])
@pytest.mark.parametrize("share", SHARES)
def test_one_group_only(solver, share):
    """Nobody can be asked about it; what the embeddings say stands."""
    X, labels = np.eye(4) + 0.1, [[0, 1, 2, 2]]
    models = [
        um.Eagle(solver, rounds=rounds, samples_per_label=share).fit(
            X, groups=[[0, 1, 2, 3]], group_labels=labels
        )
        for rounds in (0, 4)
    ]
    assert models[1].agreement_ == []
    assert same(models[0].assigned_labels_, models[1].assigned_labels_)
    assert models[0].predict_topk(X) == models[1].predict_topk(X)


@pytest.mark.parametrize("solver", [None, FAST])
def test_more_folds_than_groups(solver):
    small = literal.random_problem(0)
    assert len(fitted(small, solver=solver, recipe=EagleRecipe(folds=50), rounds=2).agreement_) >= 1


@pytest.mark.parametrize("solver", [None, FAST])
def test_groups_that_all_overlap(solver):
    """Every sample is hidden from every fold: nothing can be learned, nothing breaks."""
    small = literal.random_problem(0)._replace(groups=np.ones((9, 40), bool))
    model = fitted(small, solver=solver)
    assert model.agreement_ == []
    assert model.assigned_labels_.nnz > 0


@pytest.mark.parametrize("background", ["none", "mean", "directions"])
@pytest.mark.parametrize("solver", [None, FAST])
def test_samples_without_features_do_no_harm(background, solver):
    small = literal.random_problem(0, n=120, n_groups=30)
    small.X[::4] = 0
    model = fitted(small, solver=solver, recipe=EagleRecipe(background=background))
    assert not np.isnan(model.predict_topk(small.X).scores).any()
    assert np.isfinite(model.label_embeddings_.data).all()


def test_labels_of_no_group_are_never_predicted():
    small = literal.random_problem(0)
    top = fitted(small, solver=FAST).predict_topk(small.X, k=7)
    assert 0 not in top.labels
    assert fitted(small, solver=FAST).n_labels_ == 7


def test_embeddings_keep_their_largest_values(monkeypatch):
    small = literal.random_problem(0)
    whole = fitted(small, solver=FAST, rounds=0).label_embeddings_.toarray()
    monkeypatch.setattr(module, "_KEPT_FEATURES", 3)
    kept = fitted(small, solver=FAST, rounds=0).label_embeddings_
    assert np.diff(kept.indptr).max() == 3
    for row, all_values in zip(kept.toarray(), whole, strict=True):
        assert set(row[row != 0]) <= set(all_values)
        assert np.sort(np.abs(row))[-3:].tolist() == np.sort(np.abs(all_values))[-3:].tolist()


def test_as_many_labels_are_predicted_as_samples_have_on_average(texts):
    data, groups, counts = texts
    model = um.Eagle(FAST, rounds=0).fit(data.train.X, groups=groups, group_labels=counts)
    assert model.labels_per_sample_ == round(data.train.Y.nnz / data.train.Y.shape[0])
    assert model.predict(data.test.X).shape == data.test.Y.shape


def test_an_automatic_cost_of_the_solver_is_that_for_texts():
    X = csr_matrix(np.eye(6)[np.arange(60) % 6])
    groups = csr_matrix(np.kron(np.eye(20), np.ones(3)))
    group_labels = csr_matrix(groups @ X)
    auto, given = (
        um.Eagle(um.LabelTree(cost=cost)).fit(X, groups=groups, group_labels=group_labels)
        for cost in ("auto", 1.0)
    )
    assert auto.predict_topk(X, 3) == given.predict_topk(X, 3)

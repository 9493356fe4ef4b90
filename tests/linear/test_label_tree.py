"""LabelTree as a user meets it: corners, label features, explanations, estimates."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import umpteen as um
from umpteen.errors import LabelsError, LabelsShapeError, MemoryBudgetError, ParameterError
from umpteen.linear import TreeRecipe


@pytest.fixture(scope="module")
def data():
    return um.data.make_extreme(1500, 2000, 300, label_features=True, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return um.LabelTree(max_leaf=16, branching=8).fit(data.train.X, data.train.Y)


CORNERS = [um.LabelTree.parabel, um.LabelTree.bonsai, um.LabelTree.xr_linear]


@pytest.mark.parametrize("corner", [*CORNERS, um.LabelTree.one_vs_all, um.LabelTree])
def test_every_corner_learns(data, corner):
    """A published method that does not learn would discredit every comparison with it."""
    tree = corner() if corner == um.LabelTree.one_vs_all else corner(max_leaf=16)
    found = tree.fit(data.train.X, data.train.Y).score(data.test.X, data.test.Y)
    assert found > 0.6  # one label in a hundred is right by chance


def test_corners_take_changes():
    assert um.LabelTree.parabel(n_trees=1, prune=0.2).get_params()["n_trees"] == 1


def test_one_vs_all_is_exact(data):
    """With one node there is nothing that a beam could miss."""
    tree = um.LabelTree.one_vs_all().fit(data.train.X, data.train.Y)
    assert len(tree.trees_[0].hierarchy.layers()) == 1
    wide = tree.predict_topk(data.test.X, beam_width=50)
    assert wide == tree.predict_topk(data.test.X, beam_width=1)


def test_logistic_loss_learns(data):
    tree = um.LabelTree(recipe=TreeRecipe(loss="logistic"), cost=4.0, max_leaf=16)
    tree.fit(data.train.X, data.train.Y)
    assert tree.score(data.test.X, data.test.Y) > 0.5


@pytest.mark.parametrize("n_trees", [1, 3])
def test_scores_are_in_0_to_1_and_best_first(data, n_trees):
    tree = um.LabelTree(n_trees=n_trees, max_leaf=16).fit(data.train.X, data.train.Y)
    scores = tree.predict_topk(data.test.X, k=10).scores
    assert ((scores > 0) & (scores <= 1)).all()
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("n_trees", [1, 2])
def test_explanation_adds_up_to_the_score(data, n_trees):
    """An explanation that does not add up explains something else."""
    tree = um.LabelTree(n_trees=n_trees, max_leaf=16, branching=8).fit(data.train.X, data.train.Y)
    for row in range(5):
        x = data.test.X[row]
        top = tree.predict_topk(x, k=3)
        for label, score in zip(top.labels[0], top.scores[0], strict=True):
            why = tree.explain(x, label)
            assert why.score == pytest.approx(score, abs=1e-5)
            for path in why.paths:
                for step in path.steps:
                    assert step.margin == pytest.approx(step.bias + step.contributions.sum())
                    assert label in step.labels
                log_score = path.log_trust + sum(step.log_score for step in path.steps)
                assert path.score == pytest.approx(np.exp(log_score))
            assert {feature for feature, _ in why.features()} <= set(x.indices.tolist())


def test_explanation_with_label_features_adds_up(data):
    tree = um.LabelTree(max_leaf=16, recipe=TreeRecipe(label_text_weight=0.2))
    tree.fit(data.train.X, data.train.Y, label_features=data.label_features)
    for x in data.test.X[:5]:
        top = tree.predict_topk(x, k=1)
        why = tree.explain(x, top.labels[0, 0])
        assert why.score == pytest.approx(top.scores[0, 0], abs=1e-5)
        blended = (why.paths[0].score + why.text_weight * why.cosine) / (1 + why.text_weight)
        assert why.score == pytest.approx(blended)


def test_keywords_are_the_words_of_the_label():
    X = csr_matrix(np.eye(6, dtype=np.float32)[[0, 0, 1, 1, 2, 2]])
    tree = um.LabelTree().fit(X, np.array([0, 0, 1, 1, 2, 2]))
    assert [tree.label_keywords(label, k=1)[0][0] for label in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("label", [-1, 300, 1.5, "a", True])
def test_explain_refuses_what_is_no_label(model, data, label):
    with pytest.raises(LabelsError):
        model.explain(data.test.X[0], label)


def test_label_features_find_labels_without_samples():
    """New labels keep coming; their texts are all there is."""
    X = csr_matrix(np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2]])
    Y = csr_matrix(np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2]])
    plain = um.LabelTree().fit(X, Y)
    assert 3 not in plain.predict_topk(np.eye(4), k=4).labels
    texts = csr_matrix(np.eye(4, dtype=np.float32))
    tree = um.LabelTree(recipe=TreeRecipe(label_text_weight=0.5))
    tree.fit(X, Y, label_features=texts)
    assert tree.predict_topk(np.eye(4)[[3]], k=1).labels[0, 0] == 3


def test_label_features_weight_is_chosen_and_kept(data, tmp_path):
    tree = um.LabelTree(max_leaf=16)
    tree.fit(data.train.X, data.train.Y, label_features=data.label_features)
    tree.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert again.label_texts_.weight == tree.label_texts_.weight
    assert again.predict_topk(data.test.X) == tree.predict_topk(data.test.X)


def test_label_features_of_other_labels_are_refused(data):
    with pytest.raises(LabelsShapeError, match="label_features has 299 rows"):
        um.LabelTree().fit(data.train.X, data.train.Y, label_features=data.label_features[:299])


def test_max_memory_refuses_before_training(data):
    """A machine that swaps to death tells nobody why."""
    with pytest.raises(MemoryBudgetError, match="prune"):
        um.LabelTree(max_memory=1000).fit(data.train.X, data.train.Y)
    um.LabelTree(max_memory=10e9).fit(data.train.X, data.train.Y)


def test_estimate_is_of_the_right_size(data):
    tree = um.LabelTree(max_leaf=16)
    estimate = tree.estimate(data.train.X, data.train.Y)
    tree.fit(data.train.X, data.train.Y)
    fields = vars(tree.trees_[0]).values()
    size = sum(value.nbytes for value in fields if isinstance(value, np.ndarray))
    assert 0.4 * size < estimate.model_size < 2.5 * size
    assert estimate.memory > estimate.model_size
    assert estimate.seconds > 0
    assert "MB" in str(estimate)


def test_estimate_leaves_the_model_alone(data, model):
    before = model.predict_topk(data.test.X)
    model.estimate(data.train.X[:100], data.train.Y[:100])
    assert model.predict_topk(data.test.X) == before


@pytest.mark.parametrize("beam_width", [0, -1, 2.5])
def test_impossible_beam_is_refused(model, data, beam_width):
    with pytest.raises(ParameterError, match="beam_width"):
        model.predict_topk(data.test.X, beam_width=beam_width)


def test_batch_and_single_rows_agree_to_the_bit(model, data):
    """The service answers one by one, the evaluation in bulk: they must not differ."""
    batch = model.predict_topk(data.test.X[:50])
    rows = [model.predict_topk(data.test.X[row]) for row in range(50)]
    assert um.TopK.concatenate(rows) == batch


def test_trust_lowers_labels_that_were_often_wrong(data):
    tree = um.LabelTree(max_leaf=16).fit(data.train.X, data.train.Y)
    trust = tree.trees_[0].log_trust
    assert (trust <= 0).all()
    assert (trust < 0).any()


@pytest.mark.parametrize(("scale", "tolerance"), [(0.1, 0.1), (10.0, 0.03)])
def test_the_scale_of_features_matters_little(scale, tolerance):
    """Raw counts must not be fitted ten times as hard as TF-IDF; only biases have a scale."""
    data = um.data.make_extreme(n_samples=600, n_features=300, n_labels=60)
    X, Y = data.train.X, data.train.Y
    plain = um.LabelTree().fit(X, Y).predict_topk(data.test.X, k=3)
    scaled = um.LabelTree().fit(scale * X, Y).predict_topk(scale * data.test.X, k=3)
    precisions = [um.metrics.precision_at_k(data.test.Y, top, k=1) for top in (plain, scaled)]
    assert abs(precisions[0] - precisions[1]) < tolerance


def test_validate_answers_as_a_tree_of_the_other_samples(data):
    X, Y = data.train.X, data.train.Y
    split = np.arange(X.shape[0]) % 4 == 0
    model = um.LabelTree(max_leaf=20, random_state=3)
    expected = clone(model).fit(X[~split], Y[~split]).predict_topk(X[split], k=5)
    assert model.validate(X, Y, split, k=5) == expected
    assert not hasattr(model, "trees_")

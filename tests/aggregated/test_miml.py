"""CoAttentionMIML on bags; on single samples the contract's tests hold it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

import umpteen as um
from umpteen.aggregated.miml import MIMLRecipe
from umpteen.aggregated.miml.losses import LOSSES, Target, assigned
from umpteen.aggregated.miml.mask import affinities, assignment_mask
from umpteen.aggregated.miml.network import as_layers, as_tensor, bag_logits, instance_logits
from umpteen.aggregated.miml.training import BagNetwork, BagSamples, BagValidation, fit_network
from umpteen.errors import FeaturesError, GroupsError, LabelsError, NotFittedError, ParameterError
from umpteen.neural.training import Settings

N_LABELS, N_FEATURES, N_CONCEPTS = 3, 5, 2
bag_sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5)
seeds = st.integers(0, 2**32 - 1)


def instances(sizes, seed):
    random = np.random.default_rng(seed)
    return random.standard_normal((sum(sizes), N_FEATURES)).astype(np.float32)


def embeddings(seed):
    return normalize(instances([N_LABELS], seed + 1))


def layers(seed, requires_grad=False):
    random = np.random.default_rng(seed)
    shapes = ((N_FEATURES, 4), 4), ((4, N_CONCEPTS * N_LABELS), N_CONCEPTS * N_LABELS)
    return [
        tuple(
            torch.tensor(random.standard_normal(shape), dtype=torch.float32).requires_grad_(
                requires_grad
            )
            for shape in shapes_of_layer
        )
        for shapes_of_layer in shapes
    ]


def literal_bag_logits(bag, label_embeddings, network, temperature):
    """Section 6 word by word, for one bag."""
    (weights, biases), (last_weights, last_biases) = (
        (w.detach().double().numpy(), b.detach().double().numpy()) for w, b in network
    )
    logits = np.full((len(bag), N_LABELS), -np.inf)
    for i, x in enumerate(bag.astype(np.float64)):
        hidden = np.maximum(x @ weights + biases, 0)
        v1 = np.maximum(hidden @ last_weights + last_biases, 0).reshape(N_CONCEPTS, N_LABELS)
        for label in range(N_LABELS):
            logits[i, label] = max(v1[concept, label] for concept in range(N_CONCEPTS))
    pooled = np.zeros(N_LABELS)
    for label in range(N_LABELS):
        scores = np.exp([temperature * float(x @ label_embeddings[label]) for x in bag])
        mask = len(bag) * scores / scores.sum()
        pooled[label] = max(mask[i] * logits[i, label] for i in range(len(bag)))
    return pooled


@given(bag_sizes, seeds, st.floats(0, 50))
def test_the_mask_is_never_negative_and_sums_to_the_size_of_the_bag(sizes, seed, temperature):
    X = 100 * instances(sizes, seed)  # so that exponents overflow where they are not guarded
    mask = assignment_mask(affinities(X, embeddings(seed)), np.array(sizes), temperature)
    assert (mask >= 0).all()
    bounds = np.cumsum([0, *sizes])
    for start, end in pairwise(bounds):
        np.testing.assert_allclose(mask[start:end].sum(axis=0), end - start, rtol=1e-5)


@given(bag_sizes, seeds)
def test_at_temperature_0_and_in_bags_of_one_the_mask_is_1(sizes, seed):
    found = affinities(instances(sizes, seed), embeddings(seed))
    assert (assignment_mask(found, np.array(sizes), 0.0) == 1).all()
    assert (assignment_mask(found, np.ones(len(found), int), 7.0) == 1).all()


@given(bag_sizes, seeds, st.floats(0, 10))
def test_the_network_equals_a_literal_loop_over_bags(sizes, seed, temperature):
    X, of_labels, network = normalize(instances(sizes, seed)), embeddings(seed), layers(seed)
    mask = torch.from_numpy(assignment_mask(affinities(X, of_labels), np.array(sizes), temperature))
    logits = instance_logits(torch.from_numpy(X), network, N_CONCEPTS)
    found = bag_logits(logits, mask, torch.tensor(sizes))
    expected = [
        literal_bag_logits(bag, of_labels, network, temperature)
        for bag in np.split(X, np.cumsum(sizes)[:-1])
    ]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@given(bag_sizes, seeds)
def test_no_mask_is_a_mask_of_ones_to_the_bit(sizes, seed):
    logits = instance_logits(torch.from_numpy(instances(sizes, seed)), layers(seed), N_CONCEPTS)
    ones = torch.ones_like(logits)
    sizes = torch.tensor(sizes)
    assert torch.equal(bag_logits(logits, None, sizes), bag_logits(logits, ones, sizes))


def literal_embedding(X, bags, counts, iterations, step):
    """Algorithm 1 word by word, for one label; its bags with their counts."""
    embedding = sum(count * X[bag].sum(axis=0) for bag, count in zip(bags, counts, strict=True))
    embedding /= np.linalg.norm(embedding)
    for _ in range(iterations):
        pull = np.zeros(X.shape[1])
        for bag, count in zip(bags, counts, strict=True):
            pull += count * X[max(bag, key=lambda i: X[i] @ embedding)]
        embedding = embedding + step * pull / np.linalg.norm(pull)
        embedding /= np.linalg.norm(embedding)
    return embedding


@pytest.mark.parametrize("sparse_rows", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("iterations", [0, 7])
def test_label_embeddings_equal_the_literal_algorithm(iterations, center, sparse_rows):
    data = bag_samples()
    X = csr_matrix(3 * data.X) if sparse_rows else 3 * data.X
    model = small(recipe=MIMLRecipe(iterations=iterations, step=0.3, center=center), epochs=1)
    found = model.fit(X, groups=data.groups, group_labels=data.counts).label_embeddings_
    assert sparse.issparse(found) == sparse_rows
    found = found.toarray() if sparse_rows else found
    units = data.X.astype(np.float64)
    units -= units.mean(axis=0) if center else 0
    bags = [row.indices for row in data.groups]
    for label, counts in enumerate(data.counts.toarray().T):
        expected = literal_embedding(units, bags, counts, iterations, 0.3)
        np.testing.assert_allclose(found[label], expected, atol=1e-5)


def test_embeddings_of_sparse_instances_give_the_mask_of_centred_ones():
    """They leave out features that no instance of the label has; in its bags that changes none."""
    data = bag_samples(sizes=(3, 2))
    data.X[:3, 3:] = data.X[3:, :2] = 0
    units, counts = normalize(data.X), csr_matrix(np.float32([[2, 0], [0, 1]]))
    model = small(recipe=MIMLRecipe(iterations=4), epochs=1).fit(
        csr_matrix(units), groups=data.groups, group_labels=counts
    )
    assert model.label_embeddings_.nnz < 2 * N_FEATURES
    centred = units.astype(np.float64) - units.mean(axis=0)
    for label, bag in enumerate([np.arange(3), np.arange(3, 5)]):
        expected = literal_embedding(centred, [bag], [1], 4, 0.1)[None, :]
        masks = [
            assignment_mask(affinities(units[bag], csr_matrix(rows)), np.array([len(bag)]), 3.0)
            for rows in (expected, model.label_embeddings_[label])
        ]
        np.testing.assert_allclose(*masks, rtol=1e-4)


def test_sparse_instances_give_the_logits_of_dense_ones():
    X = np.maximum(instances([6], 0), 0)
    dense = instance_logits(as_tensor(X, torch.device("cpu")), layers(0), N_CONCEPTS)
    rows = instance_logits(as_tensor(csr_matrix(X), torch.device("cpu")), layers(0), N_CONCEPTS)
    np.testing.assert_allclose(rows.numpy(), dense.numpy(), rtol=1e-5)


def target(counts):
    return Target.of(csr_matrix(np.asarray(counts, np.float32)), torch.device("cpu"))


def test_a_label_falls_on_as_many_instances_as_its_count_best_first():
    masked = np.float32([[3, 0], [1, 5], [2, 5], [4, 1]])
    rows, entries = assigned(masked, np.array([3, 1]), target([[2, 1], [0, 9]]))
    assert list(zip(entries.tolist(), rows.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (1, 1),  # of two equal ones the first
        (2, 3),  # not more than there are
    ]


@given(bag_sizes, seeds)
def test_losses_equal_literal_loops(sizes, seed):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 4, (len(sizes), N_LABELS))
    counts[:, 0] += 1
    logits, mask = (
        torch.tensor(random.random((sum(sizes), N_LABELS)), dtype=torch.float64) for _ in range(2)
    )
    of_list, of_assigned, of_sigmoid = [], [], []
    for bag, (v, m) in enumerate(zip(logits.split(sizes), mask.split(sizes), strict=True)):
        pooled = (v * m).amax(0).log_softmax(0)
        of_list.append(-sum(counts[bag] * pooled.numpy()) / counts[bag].sum())
        parts = []
        for label in range(N_LABELS):
            best = np.argsort(-(v * m)[:, label].numpy(), kind="stable")[: counts[bag, label]]
            parts += [-float(v[i].log_softmax(0)[label]) for i in best]
        of_assigned.append(np.mean(parts))
        p = 1 / (1 + N_LABELS * np.exp(-(v * m).amax(0).numpy()))
        of_sigmoid.append(-np.log(np.where(counts[bag] > 0, p, 1 - p)).sum())
    arguments = logits, mask, torch.tensor(sizes), target(counts)
    assert float(LOSSES["list"](*arguments)) == pytest.approx(np.mean(of_list), rel=1e-5)
    assert float(LOSSES["assigned"](*arguments)) == pytest.approx(np.mean(of_assigned), rel=1e-5)
    assert float(LOSSES["sigmoid"](*arguments)) == pytest.approx(np.mean(of_sigmoid), rel=1e-5)


def bag_samples(sizes=(3, 1, 2, 4), seed=0, temperature=3.0):
    members = csr_matrix(np.repeat(np.eye(len(sizes), dtype=np.float32), sizes, axis=1))
    counts = np.random.default_rng(seed).integers(0, 3, (len(sizes), N_LABELS)) + 1
    return BagSamples(
        normalize(instances(sizes, seed)), members, csr_matrix(counts.astype(np.float32)),
        embeddings(seed), temperature=temperature, scale=1.0, device=torch.device("cpu"),
    )  # fmt: skip


def network(seed, loss="assigned"):
    coefs, intercepts = zip(*layers(seed), strict=True)
    arrays = [[each.numpy().copy() for each in part] for part in (coefs, intercepts)]
    return BagNetwork(*arrays, N_CONCEPTS, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("temperature", [0.0, 3.0, 1000.0])
def test_gradients_are_finite(loss, temperature):
    untrained = network(0, loss)
    untrained.loss(*bag_samples(temperature=temperature).batch(np.arange(4))).backward()
    gradients = [tensor.grad for tensor in untrained.parameters()]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert any(gradient.abs().sum() > 0 for gradient in gradients)


def test_training_without_embeddings_is_training_at_temperature_0_to_the_bit():
    """Temperature 0 must be Deep-MIML itself, not something near it."""
    samples = bag_samples(temperature=0.0)
    settings = Settings(
        epochs=3, max_seconds=None, batch_size=2, learning_rate=1e-2, schedule="constant",
        warmup=0.0, clip=None, averaging=0.0, patience=5, seed=0,
    )  # fmt: skip
    with_mask, without = network(0, "list"), network(0, "list")
    assert fit_network(with_mask, samples, settings, 0.1, verbose=False) == []
    fit_network(without, replace(samples, embeddings=None), settings, 0.1, verbose=False)
    for ours, theirs in zip(with_mask.parameters(), without.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert not torch.equal(with_mask.weights[0], layers(0)[0][0])


@pytest.mark.parametrize("seed", range(3))
def test_the_validation_score_is_the_correlation_of_named_and_listed_counts(seed):
    samples = bag_samples(seed=seed)
    named = np.zeros((4, N_LABELS))
    per_instance = max(1, round(samples.counts.sum() / len(samples.X)))
    found = instance_logits(torch.from_numpy(samples.X), layers(seed), N_CONCEPTS)
    for row, logits in enumerate(found):
        named[samples.groups[:, row].nonzero()[0], logits.topk(per_instance).indices.numpy()] += 1
    listed = samples.counts.toarray()
    a, b = (named - named.mean(axis=0)).ravel(), (listed - listed.mean(axis=0)).ravel()
    spread = np.linalg.norm(a) * np.linalg.norm(b)
    expected = a @ b / spread if spread else 0.0
    score = BagValidation(samples, batch_size=2).score(network(seed))
    assert score == pytest.approx(expected, abs=1e-6)


def kinds_in_bags(size, n_bags=60, seed=0):
    """Instances of four kinds, in bags of `size` and of `size` + 1, with lists of their kinds."""
    random = np.random.default_rng(seed)
    bags = np.split(np.arange(n_bags * size + n_bags // 2),
                    np.cumsum(np.tile([size, size + 1], n_bags // 2))[:-1])  # fmt: skip
    kind = random.integers(0, 4, bags[-1][-1] + 1)
    X = (np.eye(4)[kind] + 0.2 * random.standard_normal((len(kind), 4))).astype(np.float32)
    return X, kind, {
        "groups": [bag.tolist() for bag in bags],
        "group_labels": [kind[bag].tolist() for bag in bags],
    }  # fmt: skip


def small(**parameters):
    return um.CoAttentionMIML(
        **{"hidden": 16, "epochs": 15, "batch_size": 8, "learning_rate": 1e-2, "random_state": 0,
           **parameters}
    )  # fmt: skip


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"recipe": MIMLRecipe(iterations=9)},
        {"recipe": MIMLRecipe(loss="sigmoid")},
        {"temperature": 0},
        {"n_layers": 2},
    ],
)
def test_instances_are_learned_from_bags_alone(parameters):
    X, kind, bags = kinds_in_bags(3)
    model = small(**parameters).fit(X, **bags)
    assert model.score(X, kind) > 0.95
    assert model.labels_per_sample_ == 1


def test_the_preset_of_the_paper_says_what_the_paper_says():
    model = um.CoAttentionMIML.paper(epochs=40, learning_rate=1e-2)
    assert (model.batch_size, model.learning_rate, model.n_layers) == (64, 1e-2, 1)
    assert model.recipe == MIMLRecipe(loss="list", iterations=20, center=False)
    assert um.CoAttentionMIML.paper(recipe__iterations=0).recipe.iterations == 0
    assert um.CoAttentionMIML.paper().learning_rate == 1e-4
    X, kind, bags = kinds_in_bags(3)
    assert model.fit(X, **bags).score(X, kind) > 0.9


def test_sparse_instances_are_learned_as_dense_ones():
    X, kind, bags = kinds_in_bags(3)
    assert small().fit(csr_matrix(X), **bags).score(csr_matrix(X), kind) > 0.95


def test_bags_of_different_sizes_answer_as_one_by_one():
    X, kind, bags = kinds_in_bags(3)
    model = small().fit(X, **bags)
    together = model.predict_bags(X, bags["groups"], k=4)
    for bag, members in enumerate(bags["groups"]):
        alone = model.predict_bags(X[members], [list(range(len(members)))], k=4)
        np.testing.assert_allclose(alone.scores[0], together.scores[bag], rtol=1e-4)
    hits = [top[0] in kind[bag] for top, bag in zip(together.labels, bags["groups"], strict=True)]
    assert np.mean(hits) > 0.95


def test_bags_of_one_answer_as_instances():
    X, _, bags = kinds_in_bags(3)
    model = small().fit(X, **bags)
    assert model.predict_bags(X, np.arange(len(X)), k=3) == model.predict_topk(X, k=3)


def test_an_empty_bag_gets_no_answer():
    X, _, bags = kinds_in_bags(3)
    model = small().fit(X, groups=[*bags["groups"], []], group_labels=[*bags["group_labels"], [0]])
    top = model.predict_bags(X[:2], [[0, 1], []], k=2)
    assert (top.labels[1] == -1).all()
    assert (top.labels[0] >= 0).all()


def test_a_saved_model_answers_bags_with_the_same_bits(tmp_path):
    X, _, bags = kinds_in_bags(3)
    model = small().fit(X, **bags)
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert loaded.predict_bags(X, bags["groups"]) == model.predict_bags(X, bags["groups"])


@pytest.mark.filterwarnings("error")
def test_weights_are_not_copied_even_where_they_are_read_only():
    """A loaded model of millions of labels would need its memory twice."""
    weights = [np.arange(6, dtype=np.float32).reshape(2, 3)], [np.ones(3, np.float32)]
    for part in weights:
        part[0].flags.writeable = False
    ((tensor, biases),) = as_layers(*weights, torch.device("cpu"))
    assert tensor.data_ptr() == weights[0][0].ctypes.data
    assert biases.tolist() == [1, 1, 1]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_of_the_caller_are_left_as_they_were(n_jobs):
    """PyTorch's number of threads is one for the whole process."""
    before = torch.get_num_threads()
    X, _, bags = kinds_in_bags(2, n_bags=4)
    torch.set_num_threads(2)
    try:
        small(n_jobs=n_jobs).fit(X, **bags).predict_topk(X)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_best_epoch_on_the_validation_split_is_kept():
    X, _, bags = kinds_in_bags(3)
    long = small(epochs=40, recipe=MIMLRecipe(patience=3), learning_rate=0.3).fit(X, **bags)
    scores = long.validation_scores_
    best = max(epoch for epoch, score in enumerate(scores) if score == max(scores))
    short = small(epochs=best + 1, recipe=MIMLRecipe(patience=3), learning_rate=0.3).fit(X, **bags)
    assert short.validation_scores_ == scores[: best + 1]
    assert short.predict_topk(X) == long.predict_topk(X)
    assert small(recipe=MIMLRecipe(validation_fraction=0)).fit(X, **bags).validation_scores_ == []


REFUSED = {
    "labels without groups": ({"groups": None}, GroupsError, "both groups and group_labels"),
    "groups without labels": ({"group_labels": None}, GroupsError, "both groups and group_labels"),
    "Y beside groups": ({"Y": [[0], [1], [0]]}, GroupsError, "either Y"),
    "a sample in no group": ({"groups": [[0], [1]]}, GroupsError, "sample 2 is in no group"),
    "more groups than labels": ({"group_labels": [[0]]}, GroupsError, "row j"),
    "negative counts": ({"group_labels": [[-1.0], [1.0]] * np.ones(1)}, LabelsError, "whole"),
    "no label at all": ({"group_labels": [[], []]}, LabelsError, "nothing to learn"),
    "labels on empty bags only": (
        {"groups": [[0, 1, 2], []], "group_labels": [[], [1]]},
        LabelsError,
        "is empty",
    ),
    "no rows": ({"X": np.ones((0, 2))}, FeaturesError, "no rows"),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_bad_bags_are_refused_with_advice(line):
    changes, error, advice = line
    arguments = {"X": np.eye(3)[:, :2], "groups": [[0, 2], [1]], "group_labels": [[0, 1], [1]]}
    with pytest.raises(error, match=advice):
        small().fit(**{**arguments, **changes})


@pytest.mark.parametrize("parameters", [{"device": "abacus"}, {"temperature": np.inf}])
def test_a_refused_fit_leaves_the_old_model(parameters):
    X, kind, bags = kinds_in_bags(3)
    model = small().fit(X, **bags)
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model.set_params(**parameters).fit(X, **bags)
    assert model.set_params(device="cpu", temperature=3.0).score(X, kind) > 0.95


def test_diverged_training_is_an_error_and_no_model():
    X, _, bags = kinds_in_bags(3)
    with pytest.raises(ParameterError, match="use a tenth of that"):
        small(learning_rate=1e30).fit(X, **bags)


def test_bad_questions_about_bags_are_refused():
    X, _, bags = kinds_in_bags(2, n_bags=4)
    with pytest.raises(NotFittedError):
        small().predict_bags(X, bags["groups"])
    model = small().fit(X, **bags)
    with pytest.raises(GroupsError, match="in no group"):
        model.predict_bags(X, [[0]])
    with pytest.raises(ParameterError, match="k=1 or more"):
        model.predict_bags(X, bags["groups"], k=0)
    with pytest.raises(ParameterError, match="abacus"):
        small(device="abacus").fit(X, **bags)

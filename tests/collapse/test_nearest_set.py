"""Nearest sets: against all distances, and against all label sets there are."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.collapse import NearestSet
from umpteen.collapse.frames import simplex_etf
from umpteen.collapse.synthesis import TagAverages, _seen_keys
from umpteen.errors import FeaturesError, LabelsError, NotFittedError, ParameterError
from umpteen.metrics import subset_accuracy
from umpteen.metrics.label_sets import LabelSets
from umpteen.validation import check_labels

SCALES = {1: 2.0, 2: 1.3, 3: 0.9}


def collapsed(n_labels=6, per_set=4, noise=0.0, offset=0.0, left_out=(), seed=0, scales=SCALES):
    random = np.random.default_rng(seed)
    rows = simplex_etf(n_labels, n_labels).astype(np.float64)
    sets = [s for m in scales for s in combinations(range(n_labels), m) if s not in left_out]
    Y = [list(s) for s in sets for _ in range(per_set)]
    means = [scales[len(labels)] * rows[labels].sum(axis=0) + offset for labels in Y]
    return means + noise * random.standard_normal((len(Y), n_labels)), Y


def random_averages(n_labels, dimension, sizes, seed, seen=()):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((n_labels, dimension))
    products = vectors @ vectors.T
    return TagAverages(
        vectors,
        np.array(sizes),
        random.random(len(sizes)) + 0.2,
        random.standard_normal((len(sizes), dimension)),
        min(products[~np.eye(n_labels, dtype=bool)].min(initial=0), 0.0),
        _seen_keys(check_labels([*map(list, seen), []], n_labels=n_labels)),
    )


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 100))
def test_answers_are_the_sets_of_the_nearest_means(n, n_new, seed):
    random = np.random.default_rng(seed)
    features, new = random.standard_normal((n, 3)), random.standard_normal((n_new, 3))
    Y = csr_matrix(random.random((n, 4)) < 0.4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("umpteen.collapse.nearest_mean._BLOCK_ROWS", 7)
        patch.setattr("umpteen.collapse.nearest_mean._BLOCK_MEANS", 3)
        predicted = NearestSet().fit(features, Y).predict(new).toarray()
    means = {}
    for feature, labels in zip(features, Y.toarray(), strict=True):
        means.setdefault(tuple(labels), []).append(feature)
    for row, answer in zip(new, predicted, strict=True):
        distances = {s: np.linalg.norm(row - np.mean(f, axis=0)) for s, f in means.items()}
        assert distances[tuple(answer > 0)] == pytest.approx(min(distances.values()), abs=1e-5)


@given(
    st.integers(2, 7),
    st.integers(1, 5),
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
    st.integers(0, 1000),
)
def test_the_search_finds_what_looking_at_all_sets_finds(n_labels, dimension, sizes, seed):
    possible = [s for m in sizes for s in combinations(range(n_labels), m)]
    seen = [s for s in possible if np.random.default_rng([seed, *s]).random() < 0.5]
    averages = random_averages(n_labels, dimension, sorted(sizes), seed, seen)
    queries = 2 * np.random.default_rng(seed + 1).standard_normal((5, dimension))
    values = np.full(len(queries), np.inf)
    found, proven = averages.search(queries, values, max_steps=10**6)
    assert proven.all()
    for query, value, labels in zip(queries, values, found, strict=True):
        every = [
            ((query - offset - scale * averages.vectors[list(s)].sum(axis=0)) ** 2).sum()
            for m, scale, offset in zip(
                sorted(sizes), averages.scales, averages.offsets, strict=True
            )
            for s in combinations(range(n_labels), m)
            if s not in seen
        ]
        if not every:
            assert value == np.inf
            assert (labels == -1).all()
            continue
        assert value == pytest.approx(min(every), rel=1e-9)
        chosen = check_labels([labels[labels >= 0].tolist()], n_labels=n_labels)
        assert ((query - averages.means(chosen)) ** 2).sum() == pytest.approx(value, rel=1e-9)


@given(
    st.sampled_from([1.0, 1e3, 1e4, 1e6]),
    st.sampled_from(["offsets", "clusters"]),
    st.integers(0, 1000),
)
def test_unseen_sets_are_the_nearest_at_any_spread(spread, shape, seed):
    """Sums of squares lose what tells sets apart, where vectors are long and distances short."""
    random = np.random.default_rng(seed)
    n_labels, dimension, sizes = 7, 4, [1, 2, 3]
    vectors, direction = random.standard_normal((n_labels, dimension)), np.ones(dimension)
    offsets = random.standard_normal((len(sizes), dimension))
    if shape == "offsets":
        offsets += spread * random.choice([-1.0, 1.0], (len(sizes), 1)) * direction
    else:
        vectors += spread * random.choice([-1.0, 1.0], (n_labels, 1)) * direction
    averages = TagAverages(
        vectors, np.array(sizes), np.array([1.0, 0.7, 0.5]), offsets,
        float((vectors @ vectors.T).min()), _seen_keys(check_labels([[0]], n_labels=n_labels)),
    )  # fmt: skip
    every = [s for m in sizes for s in combinations(range(n_labels), m) if s != (0,)]
    means = averages.means(check_labels(list(map(list, every)), n_labels=n_labels))
    queries = means[random.integers(len(means), size=5)] + 0.5 * random.standard_normal((5, 4))
    values = np.full(len(queries), np.inf)
    found, proven = averages.search(queries, values, max_steps=10**6)
    assert proven.all()
    for query, value, labels in zip(queries, values, found, strict=True):
        distances = ((query - means) ** 2).sum(axis=1)
        rounded = 1e-15 * spread  # a mean of that size is not known more exactly
        chosen = distances[every.index(tuple(sorted(labels[labels >= 0])))]
        tolerance = 1e-12 * distances.min() + 8 * rounded * np.sqrt(distances.min())
        assert chosen == pytest.approx(distances.min(), rel=0, abs=tolerance)
        assert value == pytest.approx(chosen, rel=0, abs=tolerance)


def test_a_search_starts_from_what_is_to_be_beaten():
    averages = random_averages(6, 4, [2, 3], seed=0)
    queries = np.random.default_rng(1).standard_normal((20, 4))
    values = np.full(20, np.inf)
    averages.search(queries, values, 10**6)
    closer = values - 1e-6
    found, proven = averages.search(queries, closer, 10**6)
    assert proven.all()
    assert (found == -1).all()


def test_a_search_that_is_cut_short_says_so_and_still_answers():
    averages = random_averages(40, 5, [4], seed=0)
    queries = np.random.default_rng(1).standard_normal((10, 5))
    values, quick_values = np.full(10, np.inf), np.full(10, np.inf)
    _, proven = averages.search(queries, values, 10**8)
    found, quick = averages.search(queries, quick_values, 10)
    assert proven.all()
    assert not quick.all()
    assert (found >= 0).all()
    assert (quick_values >= values).all()


@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_unseen_sets_are_answers_only_with_synthesis(offset):
    left_out = [(0, 1), (2, 5), (0, 3, 4)]
    features, Y = collapsed(noise=0.02, offset=offset, left_out=left_out)
    new, new_Y = collapsed(noise=0.02, offset=offset, seed=1)
    rows = [i for i, labels in enumerate(new_Y) if tuple(labels) in left_out]
    unseen, truth = new[rows], [new_Y[i] for i in rows]
    assert subset_accuracy(truth, NearestSet().fit(features, Y).predict(unseen)) == 0
    model = NearestSet(unseen=True).fit(features, Y)
    answers, proven = model.search(new)
    assert proven.all()
    assert subset_accuracy(truth, model.predict(unseen)) == 1
    assert subset_accuracy(new_Y, answers) == 1


def test_labels_that_never_stand_alone_are_learned_from_their_company():
    left_out = [(2,), (1, 2)]
    features, Y = collapsed(left_out=left_out)
    averages = TagAverages.of(LabelSets.of(features, Y))
    all_features, all_Y = collapsed(per_set=1)
    found = averages.means(LabelSets.of(all_features, all_Y).sets)
    np.testing.assert_allclose(found, all_features, atol=2e-3)


def test_averages_of_collapsed_features_are_their_scales():
    features, Y = collapsed()
    averages = TagAverages.of(LabelSets.of(features, Y))
    np.testing.assert_array_equal(averages.multiplicities, [1, 2, 3])
    ratios = averages.scales / averages.scales[0]
    np.testing.assert_allclose(ratios, [1, 1.3 / 2, 0.9 / 2], rtol=1e-3)


def test_features_far_from_the_origin_are_told_apart():
    features, Y = collapsed(noise=0.02, offset=1000.0)
    assert subset_accuracy(Y, NearestSet().fit(features, Y).predict(features)) == 1


def test_samples_without_labels_are_a_set_too():
    features = np.array([[0.0, 0], [5, 0], [0, 5], [5, 5]])
    for unseen in (False, True):
        model = NearestSet(unseen=unseen).fit(features, [[], [0], [1], [0, 1]])
        assert subset_accuracy([[], [0], [1], [0, 1]], model.predict(features + 0.1)) == 1


@pytest.mark.parametrize(("unseen", "scale"), [(False, 1), (True, 1), (False, 1e37)])
def test_saved_it_answers_the_same(unseen, scale, tmp_path):
    features, Y = collapsed(noise=0.5)
    features = scale * features  # up to what float32 can hold
    model = NearestSet(unseen=unseen).fit(features, Y)
    before = model.predict(features)
    um.save(model, tmp_path / "decoder")
    again = um.load(tmp_path / "decoder").predict(features)
    np.testing.assert_array_equal(before.toarray(), again.toarray())


def test_bad_input_is_named():
    features, Y = collapsed()
    with pytest.raises(NotFittedError):
        NearestSet().predict(features)
    with pytest.raises(FeaturesError, match="6 features"):
        NearestSet().fit(features, Y).predict(features[:, :3])
    with pytest.raises(FeaturesError, match="sparse"):
        NearestSet().fit(csr_matrix(features), Y)
    with pytest.raises(LabelsError, match="no samples"):
        NearestSet().fit(np.zeros((0, 3)), np.zeros((0, 2)))
    with pytest.raises(ParameterError, match="max_steps"):
        NearestSet(max_steps=0).fit(features, Y)
    assert NearestSet().fit(features, Y).predict(features[:0]).shape == (0, 6)
    assert NearestSet(unseen=True).fit(features, Y).predict(features[:0]).shape == (0, 6)

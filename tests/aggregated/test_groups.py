"""If these fail, mistakes about groups pass unseen, or end in a message that does not help."""

import importlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import umpteen as um
from umpteen.aggregated import assign_labels, group_label_embeddings, ignore_groups
from umpteen.errors import FeaturesError, GroupsError, LabelsError, ParameterError
from umpteen.validation import check_group_labels, check_groups

X = np.random.default_rng(0).random((6, 4))
GROUPS = csr_matrix(np.kron(np.eye(3), [1, 1]))
LABELS = csr_matrix([[1, 2, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])


def fit_eagle(X, groups, group_labels):
    return um.Eagle(um.NearestCentroid()).fit(X, groups=groups, group_labels=group_labels)


USES = [assign_labels, group_label_embeddings, ignore_groups, fit_eagle]


def of(matrix, position, value):
    changed = matrix.toarray().astype(float)
    changed[position] = value
    return changed


BAD_GROUPS = {
    "sample in no group": ([[0, 1], [3], [4, 5]], "sample 2 is in no group .*Leave such samples"),
    "transposed": (GROUPS.T, "3 columns, but X has 6 rows.*pass groups.T"),
    "too narrow": (GROUPS[:, :5], "5 columns, but X has 6 rows: row j of groups marks"),
    "too short": ([0, 0, 1, 1, 2], "5 entries, but X has 6 rows.*group number of each sample"),
    "group -1": ([-1, 0, 0, 1, 1, 2], "the group number -1; groups are numbered from 0. Leave"),
    "group 0.5": ([0, 0, 0.5, 1, 1, 2], "fractions; expected one group number"),
    "group NaN": ([0, 0, np.nan, 1, 1, 2], "NaN.*expected one group number per sample"),
    "names": (["a", "a", "b", "b", "c", "c"], r"texts.*np.unique\(names, return_inverse=True\)"),
    "sample -1": ([[-1, 0], [1, 2], [3, 4, 5]], "sample number -1; .*A group without samples"),
    "sample 6": ([[6, 0], [1, 2], [3, 4, 5]], "sample number 6, but ids end at 5"),
    "sample 0.5": ([[0.5], [1, 2], [3, 4, 5]], r"groups\[0\] holds 0.5; expected sample numbers"),
    "named samples": ([["a"], [1, 2], [3, 4, 5]], "the text 'a'; expected sample numbers"),
    "negative": (-GROUPS, "negative values; non-zero means in the group"),
    "NaN": (of(GROUPS, (0, 0), np.nan), "NaN.*means in the group"),
    "column": (np.array([[0], [0], [1], [1], [2], [2]]), r"pass groups.ravel\(\)"),
    "three dimensions": (GROUPS.toarray()[..., None], r"\(groups x samples\), a list with the sam"),
    "no group at all": (GROUPS[:0], "sample 0 is in no group"),
    "key of a database": (
        [0, 0, 1, 1, 2, 2_000_000_000],
        r"number 2,000,000,000.*np.unique\(groups",
    ),
    "beyond 32 bits": ([0, 0, 1, 1, 2, 2**40], "group number 1,099,511,627,776, but X has 6 rows"),
    "dictionary": ({0: [0, 1, 2], 1: [3, 4, 5]}, "a dict; expected a list with the sample numbers"),
    "generator": ((i for i in range(3)), "a generator; expected a list"),
    "text": ("abcdef", "'abcdef', a str; expected a list"),
    "set": ({1, 2}, "a set; expected a list"),
    "masked": (
        np.ma.masked_array([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1]),
        "masked array with 1 mis",
    ),
}
BAD_LABELS = {
    "fewer groups": (LABELS[:2], GroupsError, "groups has 3 rows but group_labels has 2: row j"),
    "fewer lists": ([[0, 1], [2]], GroupsError, "row j of groups$"),
    "more groups": (csr_matrix(np.ones((4, 2))), GroupsError, "3 rows but group_labels has 4"),
    "transposed": (LABELS.T[:, :3], GroupsError, "pass group_labels.T"),
    "negative": (of(LABELS, (0, 0), -2), LabelsError, "holds -2; expected how often"),
    "fraction": (of(LABELS, (1, 1), 0.5), LabelsError, "holds 0.5; .*a whole number below"),
    "NaN": (of(LABELS, (2, 2), np.nan), LabelsError, "holds nan; .*0 where it does not"),
    "infinity": (of(LABELS, (2, 2), np.inf), LabelsError, "holds inf"),
    "sparse NaN": (csr_matrix(of(LABELS, (0, 0), np.nan)), LabelsError, "holds nan"),
    "texts in lists": ([["red"], ["blue"], []], LabelsError, "'red'; expected label ids .*Tagger"),
    "texts": (np.array([["red"], ["blue"], ["red"]]), LabelsError, "holds texts; .*Tagger"),
    "negative id": ([[0], [-1], [1]], LabelsError, "label id -1; .*A group without labels"),
    "one id per group": ([0, 1, 2], GroupsError, r"shape \(3,\).*a list with the label ids"),
    "no label": ([[], [], []], LabelsError, "nothing to learn"),
    "no count": (0 * LABELS, LabelsError, "nothing to learn"),
    "dictionary": (
        {0: [0], 1: [1], 2: [2]},
        LabelsError,
        "a dict; expected a list with the label i",
    ),
    "generator": ((i for i in range(3)), LabelsError, "a generator; expected a list"),
    "huge count": (of(LABELS, (0, 0), 1e300), LabelsError, r"holds 1e\+300; expected how often"),
    "key of a database": (
        [[0], [1], [2_000_000_000]],
        LabelsError,
        r"2,000,000,000, .*np.unique\(",
    ),
    "counts or ids": ([[0, 0, 1], [1, 0, 1], [0, 1, 1]], LabelsError, r"not clear .*np.bincount"),
}
BAD_FEATURES = {
    "no rows": (X[:0], "X has no rows"),
    "None": (None, "expected numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "not a table of numbers"),
    "one dimension": (X[0], "2 dimensions"),
    "NaN": (np.where(X > 0.5, np.nan, X), "NaN"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", BAD_GROUPS)
def test_bad_groups_are_refused_with_advice(name, use):
    groups, advice = BAD_GROUPS[name]
    with pytest.raises(GroupsError, match=advice) as caught:
        use(X, groups, LABELS)
    assert "label" not in str(caught.value)  # the words of groups, not those of labels


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_of_groups_are_refused_with_advice(name, use):
    labels, error, advice = BAD_LABELS[name]
    with pytest.raises(error, match=advice):
        use(X, GROUPS, labels)


@pytest.mark.parametrize("use", USES[:3])
def test_nothing_is_refused(use):
    with pytest.raises(GroupsError, match="groups holds objects"):
        use(X, None, LABELS)
    with pytest.raises(LabelsError, match="group_labels holds objects"):
        use(X, GROUPS, None)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_are_refused_with_advice(name, use):
    features, advice = BAD_FEATURES[name]
    with pytest.raises(FeaturesError, match=advice):
        use(features, GROUPS, LABELS)


@pytest.mark.parametrize("function", [assign_labels, group_label_embeddings])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iterations", -1), ("iterations", 1.5), ("iterations", "many"), ("iterations", True),
        ("step", -0.1), ("step", np.nan), ("step", np.inf), ("step", "small"), ("step", 1e300),
        ("center", "no"), ("center", 1), ("n_jobs", 0), ("n_jobs", -2),
        ("random_state", "x"), ("random_state", -1),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(function, name, value):
    with pytest.raises(ParameterError, match=f"{name}={re.escape(repr(value))} is not possible"):
        function(X, GROUPS, LABELS, **{name: value})


@pytest.mark.parametrize("value", ["two", None, 1, ["one"], np.array(["one", "count"])])
def test_unknown_shares_are_refused(value):
    with pytest.raises(ParameterError, match=r"expected one of .'auto', 'one', 'count'"):
        assign_labels(X, GROUPS, LABELS, samples_per_label=value)


@pytest.mark.parametrize("given", ["Y and all", "Y and groups", "groups alone", "labels alone"])
def test_eagle_wants_labels_of_samples_or_of_groups(given):
    parts = {
        "Y and all": {"Y": [[0]] * 6, "groups": GROUPS, "group_labels": LABELS},
        "Y and groups": {"Y": [[0]] * 6, "groups": GROUPS},
        "groups alone": {"groups": GROUPS},
        "labels alone": {"group_labels": LABELS},
    }
    with pytest.raises(GroupsError, match=r"either Y, .* or both groups and group_labels"):
        um.Eagle().fit(X, **parts[given])


@pytest.mark.parametrize("solver", ["tree", um.LabelTree, LogisticRegression(), 3])
def test_a_solver_must_be_a_classifier_of_ours(solver):
    with pytest.raises(ParameterError, match=r"'solver' parameter .*ExtremeClassifier"):
        um.Eagle(solver).fit(X, groups=GROUPS, group_labels=LABELS)


def test_a_refused_fit_leaves_the_old_model():
    model = fit_eagle(X, GROUPS, LABELS)
    before = model.predict_topk(X)
    with pytest.raises(GroupsError):
        model.fit(X, groups=GROUPS.T, group_labels=LABELS)
    assert model.predict_topk(X) == before


memberships = st.integers(2, 12).flatmap(
    lambda n: st.lists(st.integers(0, 5), min_size=n, max_size=n)
)


@given(memberships)
def test_all_forms_of_groups_are_the_same(numbers):
    n_groups = max(numbers) + 1
    wanted = np.arange(n_groups)[:, None] == numbers
    lists = [np.flatnonzero(row).tolist() for row in wanted]
    forms = [numbers, np.array(numbers, float), wanted, csr_matrix(wanted), 7 * wanted, lists]
    forms += [csr_matrix(wanted).tocoo(), list(map(set, lists)), [2 * m for m in lists]]
    for form in forms:
        found = check_groups(form, n_samples=len(numbers))
        np.testing.assert_array_equal(found.toarray(), wanted)
        assert found.has_canonical_format
        assert set(found.data) == {1}


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6))
def test_all_forms_of_labels_are_the_same(lists):
    n_labels = max((max(ids, default=-1) for ids in lists), default=-1) + 1
    if n_labels <= 2:  # none, or lists that could be counts
        return
    wanted = np.array([np.bincount(ids, minlength=n_labels) for ids in lists])
    coo = csr_matrix(wanted).tocoo()
    for form in (
        lists,
        wanted,
        wanted.astype(float),
        csr_matrix(wanted),
        coo,
        list(map(tuple, lists)),
    ):
        found = check_group_labels(form, n_groups=len(lists))
        np.testing.assert_array_equal(found.toarray(), wanted)
        assert found.has_canonical_format
        assert (found.data > 0).all()


# What cannot be, and what may be meant otherwise.


def test_a_count_above_the_size_of_the_group_is_refused():
    given = {"groups": [0, 0, 1, 1, 1, 1], "group_labels": [[0, 0, 0, 1], [1]]}
    with pytest.raises(GroupsError, match="label 0 occurs 3 times in group 0, which has 2 samples"):
        um.Eagle(um.NearestCentroid()).fit(X, **given)
    um.Eagle(um.NearestCentroid(), samples_per_label="estimate").fit(X, **given)


def test_the_group_of_an_error_is_the_one_that_was_given():
    """Groups without samples are left out, which must not change the numbers."""
    with pytest.raises(GroupsError, match="label 1 occurs 4 times in group 2, which has 3 samples"):
        assign_labels(
            X, [[0, 1, 2], [], [3, 4, 5]], [[0], [], [1, 1, 1, 1]], samples_per_label="count"
        )


@pytest.mark.parametrize("use", USES)
def test_labels_of_a_group_without_samples_are_refused(use):
    with pytest.raises(GroupsError, match="group 1 has 2 labels but no samples"):
        use(X, [[0, 1, 2], [], [3, 4, 5]], [[0], [0, 1], [1]])


@pytest.mark.parametrize("labels", [[[1, 0], [0, 1], [1, 1]], [[0, 0], [1, 0], [0, 1]]])
def test_pairs_of_0_and_1_may_be_an_indicator(labels):
    with pytest.warns(UserWarning, match=r"read as label ids: .*\[1, 1\] is 1 twice"):
        ignore_groups(X, GROUPS, labels)


def test_warnings_name_the_line_of_the_user():
    labels = [[1, 0], [0, 1], [1, 1]]
    for use in USES:
        with pytest.warns(UserWarning, match="read as label ids") as caught:
            use(X, GROUPS, labels)
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="read as label ids") as caught:
        um.NearestCentroid().fit(X[:2], [[1, 0], [0, 1]])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("share", ["one", "estimate"])
def test_counts_that_are_something_else_do_no_harm(share):
    """Weights in kilograms, say: only whether a label occurs is used, and answers stay few."""
    counts = LABELS.toarray() * 2**29
    model = um.Eagle(um.NearestCentroid(), samples_per_label=share)
    model.fit(X, groups=GROUPS, group_labels=counts)
    assert model.labels_per_sample_ <= 4
    assert np.isfinite(model.label_embeddings_.data).all()
    assert np.isfinite(model.predict_topk(X, k=4).scores).all()


def test_groups_may_be_ranges_and_columns():
    wanted = GROUPS.toarray()
    lists = [[0, 1], [2, 3], [4, 5]]
    forms = [[range(2), range(2, 4), range(4, 6)]]
    for name, library in (("polars", "Series"), ("pyarrow", "array"), ("pandas", "Series")):
        try:
            forms.append(getattr(importlib.import_module(name), library)(lists))
        except ImportError:
            continue
    for form in forms:
        np.testing.assert_array_equal(check_groups(form, n_samples=6).toarray(), wanted)
        found = check_group_labels(form, n_groups=3).toarray()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [[[1, 0], [0, 1], [0, 2]], [[1, 0], [0, 1], [1]]])
def test_ids_that_cannot_be_an_indicator_pass_without_warning(labels):
    ignore_groups(X, GROUPS, labels)

"""A tagger that learns from groups: people have labels per page, and want them per paragraph."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.errors import GroupsError, LabelsError, ParameterError
from umpteen.tagger import assigning
from umpteen.validation import check_named_groups

SUBJECTS = {
    "baking": ["dough", "yeast", "oven", "crust"],
    "garden": ["roses", "soil", "prune", "seeds"],
    "tools": ["saw", "drill", "blade", "hammer"],
    "music": ["piano", "sonata", "chord", "violin"],
    "sailing": ["mast", "anchor", "harbour", "rudder"],
    "painting": ["canvas", "brush", "pigment", "easel"],
    "weather": ["storm", "cloud", "drizzle", "frost"],
    "money": ["loan", "interest", "bank", "budget"],
}


def made_up(n_groups=120, size=3, seed=0):
    """Texts with two words of their subject, their subjects, and the groups they are in."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(list(SUBJECTS), n_groups * size).tolist()
    texts = [f"{' and '.join(rng.choice(SUBJECTS[own], 2))}" for own in truth]
    return texts, truth, [f"page {i // size}" for i in range(len(texts))]


def labels_of(groups, truth, presence):
    found = {}
    for group, own in zip(groups, truth, strict=True):
        labels = found.setdefault(group, [])
        if own not in labels or not presence:
            labels.append(own)
    return found


@pytest.fixture(scope="module", params=[True, False], ids=["presence", "counts"])
def fitted(request):
    texts, truth, groups = made_up()
    tagger = um.Tagger(keep_texts=True).fit(
        texts, groups=groups, group_labels=labels_of(groups, truth, request.param)
    )
    return tagger, request.param


def test_it_learns_the_labels_of_texts(fitted):
    tagger, presence = fitted
    texts, truth, _ = made_up(seed=1)
    assert tagger.score(texts, truth) > 0.97
    assert tagger.groups_.n_groups == 120
    assert tagger.groups_.largest == 3
    assert tagger.groups_.samples_per_label == ("estimate" if presence else "count")


def test_probabilities_hold_on_new_texts(fitted):
    """Nobody told which text has which label, and yet 0.9 means 0.9."""
    tagger, _ = fitted
    assert tagger.calibrated
    texts, truth, _ = made_up(seed=1)
    report = tagger.evaluate(texts, truth)
    assert report.reliability.expected_calibration_error < 0.05


def test_assign_finds_whose_labels_they_are(fitted):
    tagger, presence = fitted
    texts, truth, groups = made_up(40, seed=2)
    found = tagger.assign(texts, groups, labels_of(groups, truth, presence))
    right = [len(tags) == 1 and tags[0][0] == own for tags, own in zip(found, truth, strict=True)]
    assert np.mean(right) > 0.95
    assert all(0.5 <= confidence <= 1 for tags in found for _, confidence in tags)


def test_noise_belongs_to_nobody(fitted):
    tagger, _ = fitted
    texts, groups = ["dough and yeast", "soil and roses"], ["a", "a"]
    labels = {"a": ["baking", "garden", "music"]}
    assert any("music" in dict(tags) for tags in tagger.assign(texts, groups, labels))
    kept = tagger.assign(texts, groups, labels, none_of_these=0.5)
    assert [[name for name, _ in tags] for tags in kept] == [["baking"], ["garden"]]


def test_a_repeated_label_goes_to_as_many_texts(fitted):
    tagger, _ = fitted
    texts = ["dough and yeast", "oven and crust", "soil and roses"]
    found = tagger.assign(texts, ["a"] * 3, {"a": ["baking", "baking", "garden"]})
    assert [[name for name, _ in tags] for tags in found] == [["baking"], ["baking"], ["garden"]]


def test_labels_that_are_not_known_are_left_out_with_a_warning(fitted):
    tagger, _ = fitted
    with pytest.warns(UserWarning, match="does not know are left out: 1, such as 'chess'"):
        found = tagger.assign(["dough", "roses"], ["a", "a"], {"a": ["baking", "chess"]})
    assert [name for tags in found for name, _ in tags] == ["baking"]
    with pytest.raises(LabelsError, match="knows none of the groups' labels, such as 'chess'"):
        tagger.assign(["dough"], ["a"], {"a": ["chess"]})


def test_words_that_nobody_knows_get_no_more_than_their_share(fitted):
    tagger, _ = fitted
    found = tagger.assign(["zzz", "dough and yeast"], ["a", "a"], {"a": ["baking"]})
    assert found[0] == []
    assert found[1][0][1] > 0.9
    one, other = tagger.assign(["zzz", "qqq"], ["a", "a"], {"a": ["baking"]})
    assert one + other


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half", float("nan")])
def test_none_of_these_is_a_probability(fitted, wrong):
    with pytest.raises(ParameterError, match="none_of_these"):
        fitted[0].assign(["dough"], ["a"], {"a": ["baking"]}, none_of_these=wrong)


def test_all_else_works_as_after_fit_on_labels(fitted, tmp_path):
    tagger, _ = fitted
    why = tagger.explain("prune the roses")
    assert why.label == "garden"
    assert why.exact
    assert why.words[0][0] in ("roses", "prune")
    assert why.neighbours
    assert {word for word, _ in tagger.label_keywords("tools", 4)} <= set(SUBJECTS["tools"])
    assert tagger.tune_thresholds("precision@0.9").reached >= 0.9
    assert "120 groups of at most 3 texts" in str(tagger.evaluate(["dough"], ["baking"]).facts)
    tagger.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert again.groups_ == tagger.groups_
    assert again.predict(["prune the roses"]) == tagger.predict(["prune the roses"])
    new = {"a": ["garden", "music"]}
    given = (["roses", "violin"], ["a", "a"], new)
    assert again.assign(*given) == tagger.assign(*given)
    again.add_labels(["chess"], examples={"chess": ["rook and bishop", "bishop and pawn"]})
    assert again.predict("a bishop", k=1)[0][0] == "chess"
    again.partial_fit(["violin and rook"], [["music"]])
    again.remove_labels(["chess"])
    assert again.predict("dough and yeast", k=1)[0][0] == "baking"


def test_a_tagger_of_labelled_texts_can_assign_too():
    texts, truth, _ = made_up(30)
    tagger = um.Tagger().fit(texts, truth)
    found = tagger.assign(["dough and crust", "a blade"], ["a", "a"], {"a": ["baking", "tools"]})
    assert [[name for name, _ in tags] for tags in found] == [["baking"], ["tools"]]


def test_a_given_eagle_is_used():
    texts, truth, groups = made_up(30)
    eagle = um.Eagle(um.NearestCentroid(), samples_per_label="one", rounds=0)
    tagger = um.Tagger(eagle).fit(
        texts, groups=groups, group_labels=labels_of(groups, truth, presence=True)
    )
    assert isinstance(tagger.classifier_, um.NearestCentroid)
    assert tagger.groups_.samples_per_label == "one"
    assert tagger.score(texts, truth) > 0.9


def test_groups_may_overlap():
    texts, truth, _ = made_up(60, size=2)
    groups = [[i, i + 1] for i in range(0, len(texts), 2)]
    groups += [[i, (i + 7) % len(texts)] for i in range(0, len(texts), 3)]
    labels = [sorted({truth[i] for i in group}) for group in groups]
    tagger = um.Tagger().fit(texts, groups=groups, group_labels=labels)
    assert tagger.groups_.n_groups == len(groups)
    assert tagger.score(texts, truth) > 0.9
    found = tagger.assign(["dough", "roses", "a saw"], [[0, 1], [1, 2]], [["garden"], ["garden"]])
    assert [[name for name, _ in tags] for tags in found] == [[], ["garden"], []]


def test_a_series_is_read_by_its_index():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([["x"], ["y", "y"]], index=["a", "b"])
    column = pandas.Series(["b", "a", "b"], index=[9, 4, 7])
    assert check_named_groups(column, series, n_texts=3).labels == [["y", "y"], ["x"]]


def test_same_seed_same_answers():
    texts, truth, groups = made_up(30)
    given = {"groups": groups, "group_labels": labels_of(groups, truth, presence=True)}
    one, two = (um.Tagger().fit(texts, **given).predict(texts[:20]) for _ in range(2))
    assert one == two


def test_few_groups_give_scores_and_say_so():
    texts, truth, groups = made_up(15)
    tagger = um.Tagger().fit(
        texts, groups=groups, group_labels=labels_of(groups, truth, presence=False)
    )
    assert not tagger.calibrated
    found = tagger.assign(["dough", "roses"], ["a", "a"], {"a": ["garden"]})
    assert [len(tags) for tags in found] == [0, 1]


def test_labels_and_groups_exclude_each_other():
    with pytest.raises(GroupsError, match="either labels"):
        um.Tagger().fit(["a"], [["x"]], groups=["g"], group_labels={"g": ["x"]})
    with pytest.raises(ParameterError, match="label_texts cannot be used with groups"):
        um.Tagger().fit(["a"], groups=["g"], group_labels={"g": ["x"]}, label_texts={"x": "why"})


def test_groups_come_in_several_forms():
    expected = csr_matrix([[1, 0, 1], [0, 1, 0]]).toarray()
    labels = [["y", "y"], ["x"]]
    for groups, group_labels in [
        (["b", "a", "b"], {"a": ["x"], "b": ("y", "y")}),
        (np.array(["b", "a", "b"]), {"a": "x", "b": ["y", "y"]}),
        ((7, 3, 7), {3: ["x"], 7: ["y", "y"]}),
        (np.array([7, 3, 7]), labels),
        ([("site", 2), ("site", 1), ("site", 2)], labels),
        ([[0, 2], [1]], labels),
        ([[0, 2], [1]], {0: ["y", "y"], 1: ["x"]}),
        (csr_matrix(expected), labels),
        ([range(0, 3, 2), range(1, 2)], labels),
        (np.array([2, 1, 2], "M8[D]"), dict(zip(np.array([2, 1], "M8[D]"), labels, strict=True))),
    ]:
        found = check_named_groups(groups, group_labels, n_texts=3)
        np.testing.assert_array_equal(found.members.toarray(), expected)
        assert found.labels == labels


IMPOSSIBLE = {
    "no labels of groups": (["a", "b"], None, GroupsError, "group_labels is missing"),
    "no groups": (None, {"a": ["x"]}, GroupsError, "groups is missing"),
    "one text": ("ab", {"a": ["x"]}, GroupsError, "'ab', a str; expected the group of each text"),
    "too short": (["a"], {"a": ["x"]}, GroupsError, "2 texts but groups has 1 entries"),
    "None": (["a", None], {"a": ["x"]}, GroupsError, r"text 1 has no group \(None\)"),
    "NaN": (["a", np.nan], {"a": ["x"]}, GroupsError, "text 1 has no group"),
    "NaT": (["a", np.datetime64("NaT")], {"a": ["x"]}, GroupsError, "text 1 has no group"),
    "dictionary": (["a", {}], {"a": ["x"]}, GroupsError, "expected the name of a group"),
    "unknown group": (["a", "b"], {"a": ["x"]}, GroupsError, "'b' is not in group_labels .*empty"),
    "without texts": (["a", "a"], {"a": ["x"], "b": ["x"]}, GroupsError, "'b', but no text is in"),
    "empty group": ([[0, 1], []], [["x"], ["x"]], GroupsError, "group 1 has labels but no texts"),
    "number or text": ([1, 1], {"1": ["x"]}, GroupsError, "1 of groups .*has '1'.*two groups"),
    "one list more": (["a", "a"], [["x"], ["y"]], GroupsError, "1 group but labels of 2"),
    "matrix": (["a", "b"], np.eye(2), LabelsError, "is a matrix.*use Eagle"),
    "text": (["a", "b"], "ab", LabelsError, "'ab', a str; expected a dictionary"),
    "missing name": (["a", "b"], {"a": [None], "b": []}, LabelsError, "not a label name"),
    "no label": (["a", "b"], {"a": [], "b": []}, LabelsError, "no group has a label"),
    "too many": (
        ["a", "b"],
        {"a": ["x", "x"], "b": []},
        GroupsError,
        "'x' is 2 times in group 'a'",
    ),
    "labels as a dictionary": (
        ["a", "b"],
        [{"x": 1}, {"y": 1}],
        LabelsError,
        "dict; expected a list",
    ),
    "text of no group": (
        [[0], []],
        [["x"], []],
        GroupsError,
        "text 1 is in no group .*texts out, or",
    ),
    "too wide": (np.eye(3), [["x"]] * 3, GroupsError, "3 columns, but there are 2 rows"),
    "rows of a matrix": ([[0], [1]], [[1, 0, 0], [0, 1, 1]], LabelsError, "looks like a matrix"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_groups_are_refused(case):
    groups, group_labels, error, message = IMPOSSIBLE[case]
    with pytest.raises(error, match=message):
        um.Tagger().fit(["a b", "b c"], groups=groups, group_labels=group_labels)


def test_pairs_of_0_and_1_as_labels_of_groups_are_warned_of():
    with pytest.warns(UserWarning, match="read as the names '0' and '1'"):
        check_named_groups(["a", "b"], [[1, 0], [0, 1]], n_texts=2)


def test_tables_are_refused_with_advice():
    pd = pytest.importorskip("pandas", reason="needs umpteen[test]")
    table = pd.DataFrame({"page": ["a", "b"], "keywords": [["x"], ["y"]]})
    with pytest.raises(GroupsError, match="the columns 'page', 'keywords'; expected one column"):
        check_named_groups(table, [["x"], ["y"]], n_texts=2)
    with pytest.raises(LabelsError, match=r"is a table; expected a dictionary .*dict\(zip"):
        check_named_groups(["a", "b"], table, n_texts=2)


def test_a_group_twice_in_a_series_is_refused():
    pd = pytest.importorskip("pandas", reason="needs umpteen[test]")
    twice = pd.Series([["x"], ["y"], ["z"]], index=["a", "b", "a"])
    with pytest.raises(GroupsError, match="has the group 'a' twice"):
        check_named_groups(["a", "b"], twice, n_texts=2)
    with pytest.raises(GroupsError, match="text 1 has no group"):
        check_named_groups(["a", pd.NA], [["x"], ["y"]], n_texts=2)


def test_groups_of_arrow_are_names():
    pa = pytest.importorskip("pyarrow", reason="needs umpteen[parquet]")
    found = check_named_groups(pa.array(["a", "b"]), {"a": ["x"], "b": ["y"]}, n_texts=2)
    assert found.names == ["a", "b"]
    with pytest.raises(GroupsError, match="text 1 has no group"):
        check_named_groups(pa.array(["a", None]), [["x"], ["y"]], n_texts=2)


def test_counts_of_many_labels_are_checked_in_no_time():
    """Each label was counted anew: 32 s for 30,000 labels of one text."""
    many = [str(i) for i in range(30_000)]
    started = time.perf_counter()
    check_named_groups(["a"], {"a": many}, n_texts=1).check_counts()
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_large_groups_are_assigned_by_parts(fitted, monkeypatch, at_once):
    texts, truth, groups = made_up(20, size=6, seed=3)
    lists = [labels_of(groups, truth, presence) for presence in (True, False)]
    tagger, _ = fitted
    expected = [tagger.assign(texts, groups, given) for given in lists]
    monkeypatch.setattr(assigning, "_AT_ONCE", at_once)
    sizes, made = [], assigning.Claims
    monkeypatch.setattr(
        assigning, "Claims", lambda pair, *more: sizes.append(len(pair)) or made(pair, *more)
    )
    assert [tagger.assign(texts, groups, given) for given in lists] == expected
    assert len(sizes) > 2
    assert max(sizes) <= max(at_once, 6)  # all claims to one label are together

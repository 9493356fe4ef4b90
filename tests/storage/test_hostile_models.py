"""Models with wrong contents and right checksums end in an answer or in an error of ours."""

import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import umpteen as um
from tests.storage.golden import ask, samples
from tests.storage.tampering import GOLDEN, Folder
from umpteen.errors import ParameterError, UmpteenError
from umpteen.kernels.blending import N_EVIDENCE
from umpteen.linear import NameFeatures, TreeRecipe
from umpteen.linear.text_ranker import TextRanker
from umpteen.siamese import SiameseRecipe

X, Y = samples()
HUGE = 10**400
HALF = {"scalar": {"dtype": "<f2", "hex": "0000"}}
ARCHIVES = {path.stem: path for path in GOLDEN}


def obj(module, name, state=None, version=1):
    return {"object": {"module": f"umpteen.{module}", "class": name, "state": state or {},
                       "parameters": {}, "version": version}}  # fmt: skip


UNFITTED = obj("linear.label_tree", "LabelTree", version=2)


def array(folder, values):
    folder.arrays.append(np.asarray(values))
    return {"array": len(folder.arrays) - 1}


def opened(folder_of_model):
    """A `Folder` of a model that is saved now."""
    with tempfile.TemporaryDirectory() as path:
        um.storage.save(folder_of_model, Path(path) / "m")
        with zipfile.ZipFile(Path(path) / "m.zip", "w") as archive:
            for file in (Path(path) / "m").iterdir():
                archive.write(file, file.name)
        return Folder(Path(path) / "m.zip")


def end(folder):
    """Load and ask: whether an error of ours refuses the model, or it answers."""
    with tempfile.TemporaryDirectory() as path:
        folder.write(Path(path))
        try:
            ask(um.load(path))
        except UmpteenError:
            return "refused"
    return "answered"


def golden(name, change):
    folder = Folder(ARCHIVES[name])
    change(folder, folder.manifest["model"]["object"])
    return end(folder)


def test_ensemble_with_unfitted_members():
    folder = opened(um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y))
    folder.manifest["model"]["object"]["state"]["members_"] = [UNFITTED, UNFITTED]
    assert end(folder) == "refused"


def test_eagle_with_an_unfitted_solver():
    assert golden("Eagle", lambda f, o: o["state"].update(solver_=UNFITTED)) == "refused"


def _base(value):
    folder = opened(um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y))
    trees = {
        "features": array(folder, np.zeros((1, 1), np.int32)),
        "thresholds": array(folder, np.zeros((1, 1), np.float32)),
        "values": array(folder, np.zeros((1, 2))), "base": value, "n_evidence": 7,
    }  # fmt: skip
    state = folder.manifest["model"]["object"]["state"]["combination_"]["object"]["state"]
    state.update(trees=obj("ranking.boosted_trees", "BoostedTrees", trees), only=-1)
    return end(folder)


@pytest.mark.parametrize("value", [HUGE, HALF])
def test_base_of_boosted_trees(value):
    assert _base(value) == "refused"


@pytest.mark.parametrize("name", ["LabelTree", "Eagle"])
def test_path_weight_of_a_recipe(name):
    def change(folder, o):
        o = o if name == "LabelTree" else o["state"]["solver_"]["object"]
        o["parameters"]["path_weight"] = HUGE

    assert golden(name, change) == "refused"


def test_base_of_the_judge_of_version_1():
    def change(folder, o):
        o["state"]["judge_"]["object"]["state"]["base"] = HUGE

    assert golden("SiameseXML-fused", change) == "refused"


def test_huge_weight_of_label_texts():
    def change(folder, o):
        o["state"]["label_texts_"]["object"]["state"]["weight"] = HUGE

    assert golden("LabelTree-texts", change) == "refused"


@pytest.mark.parametrize("value", [10**30, HALF])
def test_least_of_nearest_set(value):
    def change(folder, o):
        def walk(content):
            if isinstance(content, dict):
                if type(content.get("least")) in (int, float):
                    content["least"] = value
                for each in content.values():
                    walk(each)
            elif isinstance(content, list):
                for each in content:
                    walk(each)

        walk(o)

    assert golden("NearestSet-unseen", change) == "refused"


def test_scale_of_a_ranker():
    def change(folder, o):
        folder.arrays[o["state"]["judge_"]["object"]["state"]["scales"]["array"]][:] = 0

    assert golden("SiameseXML", change) == "refused"


@pytest.mark.parametrize("more", [{"weights": "fixed"}, {}])
def test_weight_of_a_companion(more):
    def change(folder, o):
        o["parameters"].update(fuse_weight=-1.0, **more)
        if not more:
            o["state"]["judge_"] = None

    assert golden("SiameseXML-fused", change) == "refused"


def test_weight_of_label_texts():
    def change(folder, o):
        o["state"]["label_texts_"]["object"]["state"]["weight"] = -1.0

    assert golden("LabelTree-texts", change) == "refused"


@pytest.mark.parametrize("value", [10**9, 2**63 - 1, HUGE])
def test_shortlist_of_siamese_xml(value):
    """A shortlist has at most as many labels as there are, in place of 96 GB for 24 samples."""
    expected = "refused" if value == HUGE else "answered"
    assert golden("SiameseXML", lambda f, o: o["parameters"].update(shortlist=value)) == expected


@pytest.mark.parametrize("name", ["LabelTree", "NeuralClassifier"])
def test_more_labels_than_the_model_has(name):
    """A model of 20 kB: predict takes 24 GB."""

    def change(folder, o):
        o["state"].update(n_labels_=2**27 - 1, labels_per_sample_=2**31 - 1)

    assert golden(name, change) == "refused"


@pytest.mark.parametrize("n_questions", [3 * 10**9, 2**40])
def test_depth_of_boosted_trees(n_questions):
    """Arrays without an entry: `2 ** depth` takes 23 s; MemoryError (137 GB) while loading."""
    folder = opened(um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y))
    trees = {
        "features": array(folder, np.zeros((0, n_questions), np.int32)),
        "thresholds": array(folder, np.zeros((0, n_questions), np.float32)),
        "values": array(folder, np.zeros((0, 16))), "base": 0.0, "n_evidence": 7,
    }  # fmt: skip
    state = folder.manifest["model"]["object"]["state"]["combination_"]["object"]["state"]
    state["trees"] = obj("ranking.boosted_trees", "BoostedTrees", trees)
    assert end(folder) == "refused"


def _weights(folder, o, prefix, module):
    stored = o["state"]["weights_"]["dict"]
    pairs = zip(stored["keys"], stored["values"], strict=True)
    kept = [(key, value) for key, value in pairs if not key.startswith(prefix)]
    for key, value in module.state_dict().items():
        kept.append((prefix + key, array(folder, value.detach().numpy().copy())))
    stored["keys"], stored["values"] = [key for key, _ in kept], [value for _, value in kept]


def _blueprint(o, which, path, **options):
    o["state"][which]["object"]["state"].update(
        path=path, options={"dict": {"keys": list(options), "values": list(options.values())}}
    )


def test_a_head_for_an_encoder():
    def change(folder, o):
        from umpteen.neural.full import FullHead

        _blueprint(o, "encoder_", "umpteen.neural.full.FullHead", n_labels=3)
        _weights(folder, o, "encoder.", FullHead(24, 3))

    assert golden("NeuralClassifier", change) == "refused"


def test_an_encoder_for_a_head():
    def change(folder, o):
        from umpteen.neural.encoders import MLP

        _blueprint(o, "head_", "umpteen.neural.encoders.MLP")
        n_seen = len(folder.arrays[o["state"]["seen_labels_"]["array"]])
        _weights(folder, o, "head.", MLP(8, n_seen))

    assert golden("NeuralClassifier", change) == "refused"


@pytest.mark.parametrize(
    ("name", "kind", "n"),
    [("NeuralClassifier", "dense", 24), ("NeuralClassifier-mlp", "sparse", 0)],
)
def test_inputs_of_another_kind(name, kind, n):
    def change(folder, o):
        o["state"]["inputs_"]["object"]["state"].update(
            kind=kind, center=array(folder, np.zeros(n)), scale=array(folder, np.ones(n))
        )

    assert golden(name, change) == "refused"


@pytest.mark.parametrize("value", ["x", [1], obj("softmax.settings", "SoftmaxRecipe")])
def test_a_decoder_that_cannot_decode(value):
    change = lambda folder, o: o["state"].update(decoder_=value)  # noqa: E731
    assert golden("NeuralClassifier-sets", change) == "refused"


def _options(o, which, **options):
    stored = o["state"][which]["object"]["state"]["options"]["dict"]
    for key, value in options.items():
        if key in stored["keys"]:
            stored["values"][stored["keys"].index(key)] = value
        else:
            stored["keys"].append(key)
            stored["values"].append(value)


def test_code_as_text():
    change = lambda folder, o: _options(o, "head_", code="x")  # noqa: E731
    assert golden("NeuralClassifier-code", change) == "refused"


def test_dropout_that_is_not_a_number():
    change = lambda folder, o: _options(o, "encoder_", dropout={"float": "nan"})  # noqa: E731
    assert golden("NeuralClassifier", change) == "refused"


def test_device_of_nobody():
    change = lambda folder, o: o["parameters"].update(device="privateuseone")  # noqa: E731
    assert golden("NeuralClassifier", change) == "refused"


def test_lists_in_a_recipe_are_tuples(tmp_path):
    model = um.SiameseXML(dim=8, epochs=1, recipe=SiameseRecipe(modules=["embed"])).fit(X, Y)
    model.save(tmp_path)
    assert um.load(tmp_path).recipe.modules == ("embed",)


@pytest.mark.parametrize("name", ["max_epochs", "path_weight"])
def test_true_is_no_number(name):
    with pytest.raises(ParameterError, match="use a number"):
        TreeRecipe(**{name: True})


def _put(folder, content, values):
    folder.arrays[content["array"]] = np.asarray(values, folder.arrays[content["array"]].dtype)


def _fill(name, number, value):
    """Every entry of one array of a table is this value."""

    def change(folder, state):
        content = state[name]["tuple"][number]
        _put(folder, content, np.full_like(folder.arrays[content["array"]], value))

    return change


def _reshape(name, change_values):
    def change(folder, state):
        _put(folder, state[name], change_values(folder.arrays[state[name]["array"]]))

    return change


REFUSED_FORMS = {
    "language": lambda folder, state: state.update(languages=["xx"]),
    "no language": lambda folder, state: state.update(languages=[]),
    "language of another type": lambda folder, state: state.update(languages=[7]),
    "forms": lambda folder, state: state.update(forms="lemmas"),
    "words without free slot": _fill("words", 0, 1),
    "stems without free slot": _fill("stems", 0, 1),
    "slots beyond the words": _fill("words", 0, 10**6),
    "negative slots": _fill("stems", 0, -3),
    "fewer bases": _reshape("bases", lambda values: values[:-1]),
    "fewer bases of stems": _reshape("stem_bases", lambda values: values[:-1]),
    "fewer starts": _reshape("starts", lambda values: values[:-1]),
    "starts that fall": _reshape("starts", lambda values: np.r_[0, values[:0:-1]]),
    "starts that jump": _reshape("starts", lambda values: np.r_[0, values[1:] + 10**6]),
    "starts in two dimensions": _reshape("starts", lambda values: values[:, None]),
    "extras in two dimensions": _reshape("extras", lambda values: values[:, None]),
    "fewer extras": _reshape("extras", lambda values: values[:-1]),
    "no starts": _reshape("starts", lambda values: values[:0]),
}
ANSWERED_FORMS = {
    "other words": _fill("words", 1, 7),
    "other stems": _fill("stems", 1, 7),
    "other bases": _reshape("bases", np.zeros_like),
    "other forms": lambda folder, state: state.update(forms="stems"),
    "languages twice": lambda folder, state: state.update(languages=["en", "de", "en"]),
    "all extras of one word": _reshape("starts", lambda values: values * (values == 4)),
}


def _ask_forms(change, path):
    texts = ["cats connect", "a cat"]
    folder = opened(um.text.Vectorizer(language="en", forms="both", spare=2).fit(texts))
    change(folder, folder.manifest["model"]["object"]["state"]["morphology_"]["object"]["state"])
    folder.write(path)
    vectorizer = um.load(path)
    texts += ["connections of quokkas", "", "the cat is not in the house"]
    assert vectorizer.transform(texts).shape == (5, vectorizer.n_features_)
    assert all(isinstance(vectorizer.named_features(text), dict) for text in texts)
    assert vectorizer.learn_words(texts).transform(texts).nnz > 0


@pytest.mark.parametrize("name", REFUSED_FORMS)
def test_forms_of_words_that_do_not_fit_are_refused(name, tmp_path):
    with pytest.raises(UmpteenError):
        _ask_forms(REFUSED_FORMS[name], tmp_path)


@pytest.mark.parametrize("name", ANSWERED_FORMS)
def test_other_forms_of_words_give_other_answers(name, tmp_path):
    _ask_forms(ANSWERED_FORMS[name], tmp_path)


def _ranked():
    """A tree with names, counts and a ranker of its evidence, and the state of its label texts."""
    random = np.random.default_rng(0)
    model = um.LabelTree(max_leaf=4, verbose=False)
    names = NameFeatures(random.random((2 * Y.shape[1], X.shape[1])), 2 * np.arange(Y.shape[1] + 1))
    model.fit(X, Y, label_features=random.random((Y.shape[1], X.shape[1])), label_names=names)
    ranker = TextRanker.fitted(
        random.random((400, N_EVIDENCE), dtype=np.float32), np.arange(400) % 4 == 0, np.full(100, 4)
    )
    model.label_texts_ = replace(model.label_texts_, ranker=ranker)
    folder = opened(model)
    state = folder.manifest["model"]["object"]["state"]["label_texts_"]["object"]["state"]
    return folder, state


def test_a_ranked_tree_answers():
    assert end(_ranked()[0]) == "answered"


def test_a_ranked_tree_of_an_earlier_version_answers():
    folder, state = _ranked()
    _earlier()(folder, state)
    assert end(folder) == "answered"


def _fewer_columns(folder, state):
    ranker = state["ranker"]["object"]["state"]["quadratic"]["object"]["state"]
    n = N_EVIDENCE - 1
    ranker["means"], ranker["scales"] = (array(folder, np.ones(n, np.float32)) for _ in range(2))
    ranker["weights"] = array(folder, np.ones(1 + n * (n + 3) // 2, np.float32))


def _array_of(key, change):
    def changed(folder, state):
        state[key] = array(folder, change(folder.arrays[state[key]["array"]].copy()))

    return changed


def _limits(change):
    def changed(folder, state):
        _array_of("limits", change)(folder, state["ranker"]["object"]["state"])

    return changed


def _more_evidence(folder, state):
    trees = state["ranker"]["object"]["state"]["trees"]["object"]["state"]
    trees["n_evidence"] = N_EVIDENCE + 1


def _earlier(**changes):
    """Label texts as version 2 had them: a quadratic ranker, and limits beside it."""

    def changed(folder, state):
        stored = state["ranker"]["object"]["state"]
        state.update(ranker=stored["quadratic"], limits=stored["limits"])
        state.update(changes)
        texts = folder.manifest["model"]["object"]["state"]["label_texts_"]["object"]
        texts["version"] = 2

    return changed


TAMPERED = {
    "a ranker of other columns": _fewer_columns,
    "trees of other columns": _more_evidence,
    "starts that fall": _array_of("name_starts", lambda starts: starts[::-1]),
    "starts that fall within": _array_of(
        "name_starts", lambda starts: np.r_[0, starts[1:-1][::-1], starts[-1]]
    ),
    "starts beyond the names": _array_of("name_starts", lambda starts: starts + 1),
    "fewer starts": _array_of("name_starts", lambda starts: starts[:-1]),
    "names without starts": lambda folder, state: state.update(name_starts=None),
    "starts without names": lambda folder, state: state.update(names=None),
    "negative counts": _array_of("counts", lambda counts: counts - 10**6),
    "fewer counts": _array_of("counts", lambda counts: counts[:-1]),
    "no limits": _earlier(limits=None),
    "no ranker": _earlier(ranker=None),
    "limits of other columns": _limits(lambda limits: limits[:, :-1]),
    "limits the wrong way round": _limits(lambda limits: limits[::-1]),
    "limits of NaN": _limits(lambda limits: limits * np.float32(np.nan)),
}  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED)
def test_label_texts_of_a_ranker(change):
    folder, state = _ranked()
    TAMPERED[change](folder, state)
    assert end(folder) == "refused"


@pytest.mark.parametrize("length", [0.0, -1.0, {"float": "nan"}, {"float": "inf"}])
def test_length_of_features_that_rates_are_divided_by(length):
    folder = opened(um.AdversarialSoftmax(epochs=1, verbose=False).fit(X, Y))
    folder.manifest["model"]["object"]["state"]["feature_length_"] = length
    assert end(folder) == "refused"


def test_biases_of_a_noise_tree_that_lead_to_no_class():
    """A draw had the label -1."""
    tree = um.softmax.NoiseTree(dim=4).fit(X, Y)
    assert end(opened(tree)) == "answered"
    tree.biases_[:] = 0
    assert end(opened(tree)) == "refused"

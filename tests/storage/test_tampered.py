"""A model from a stranger ends in an answer or in one of our errors, never in a crash or a hang.

A few cases of each kind; `python -m tests.storage.tampering 10000` runs as many as you like.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import umpteen
from umpteen.errors import ModelCorruptError, UmpteenError

from .golden import WITH_TORCH, ask, samples, texts
from .tampering import GOLDEN, Folder

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a case may end its process: it is forked")
def test_tampered_models_end_in_an_answer_or_an_error_of_ours() -> None:
    """In a process without threads, since cases are forked from it."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.storage.tampering", "300"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "300 cases" in run.stdout


def _folder(name: str) -> Folder:
    (archive,) = (path for path in GOLDEN if path.stem == name)
    return Folder(archive)


@pytest.mark.parametrize(
    ("model", "field", "value", "message"),
    [
        ("LabelTree", "feature", 10**6, r"trees_\[0\]\.feature holds numbers .* < 24"),
        ("LabelTree", "feature", -1, r"trees_\[0\]\.feature holds numbers"),
        ("LabelTree", "entry", -1, "weights of children that are not in their chunks"),
        ("LabelTree", "buckets", 10**6, "buckets that lead out of their chunks"),
        ("LabelTree", "child", 255, "weights of children that are not in their chunks"),
        ("LabelTree", "first_child", 0, "children that do not come after their parents"),
        ("LabelTree", "label_order", 18, r"label_order holds numbers .* < 18"),
        ("SiameseXML-fused", "left", 0, "children that do not come after their parents"),
        ("AdversarialSoftmax", "leaf_of_", 64, r"leaf_of_ holds numbers .* < 32"),
        ("NoiseTree", "scale", np.nan, "scale holds numbers outside the range"),
        ("NeuralClassifier-code", "seen_labels_", 0, "seen_labels_ that do not rise"),
    ],
)
def test_an_index_that_leads_astray_is_named(model, field, value, message, tmp_path) -> None:
    """Compiled code would follow it out of bounds, whatever its checksum says."""
    if model in WITH_TORCH:
        pytest.importorskip("torch")
    folder = _folder(model)
    number = _number_of(folder.manifest["model"], field)
    flat = folder.arrays[number].reshape(-1)
    flat[len(flat) // 2] = np.array(value).astype(flat.dtype)
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match=message):
        umpteen.load(tmp_path)


@pytest.mark.parametrize("model", ["SiameseXML", "SiameseXML-fixed"])
def test_no_answer_is_not_a_number(model: str, tmp_path: Path) -> None:
    """NaN would come first or last at will, and break whatever adds up scores."""
    pytest.importorskip("torch")
    folder = _folder(model)
    folder.arrays[_number_of(folder.manifest["model"], "table")][::2] = np.nan
    folder.write(tmp_path)
    top = umpteen.load(tmp_path).predict_topk(samples()[0][:24], 5)
    assert not np.isnan(top.scores).any()
    assert ((top.labels < 0) == (top.scores == -np.inf)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("model", "number"),
    [
        ("NearestCentroid-dense", 0),
        ("NearestCentroid", 0),
        ("NearestSet", "means_"),
        ("NearestSet", 0),
        ("SiameseXML-fixed", "texts"),
        ("SiameseXML-fixed", "centroids"),
        ("SiameseXML-fixed", "classifiers"),
        ("Tagger-centroid", "knots"),
        ("Tagger-centroid", "heights"),
        ("Tagger-centroid", 13),
        ("LabelIndex", 0),
        ("LabelTree", "bias"),
        ("LabelTree", "log_trust"),
        ("LabelTree-texts", 15),
        ("CoAttentionMIML", 4),
        ("CoAttentionMIML", 7),
    ],
)
def test_numbers_that_are_none_are_refused(model, number, value, tmp_path: Path) -> None:
    """Each answer would have NaN or infinite scores, and the wrong label first."""
    if model in WITH_TORCH:
        pytest.importorskip("torch")
    folder = _folder(model)
    if isinstance(number, str):
        number = _number_of(folder.manifest["model"], number)
    elif folder.arrays[number].dtype.kind != "f":
        number = next(i for i, each in enumerate(folder.arrays) if each.dtype.kind == "f")
    folder.arrays[number].reshape(-1)[0] = value
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match="holds numbers outside the range"):
        umpteen.load(tmp_path)


@pytest.mark.parametrize("height", [0, 1])
def test_steps_of_a_calibration_are_neither_impossible_nor_certain(
    height: int, tmp_path: Path
) -> None:
    """They have no log-odds, and differences of infinities are NaN."""
    folder = _folder("Tagger-centroid")
    folder.arrays[_number_of(folder.manifest["model"], "heights")][-1] = height
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match=r"heights.* holds numbers outside the range"):
        umpteen.load(tmp_path)


@pytest.mark.parametrize(
    ("model", "number", "value"),
    [
        ("NeuralClassifier-mlp", 5, np.finfo(np.float32).min),
        ("NoiseTree", "biases_", np.inf),
    ],
)
def test_a_label_with_an_infinite_score_is_none(model, number, value, tmp_path: Path) -> None:
    """Or metrics would count a label that no score supports."""
    if model in WITH_TORCH:
        pytest.importorskip("torch")
    folder = _folder(model)
    if isinstance(number, str):
        number = _number_of(folder.manifest["model"], number)
    folder.arrays[number][:] = value
    folder.write(tmp_path)
    top = ask(umpteen.load(tmp_path))
    assert (top["scores"] == -np.inf).any()
    assert ((top["labels"] < 0) == (top["scores"] == -np.inf)).all()


def test_nodes_of_one_vector_are_refused(tmp_path: Path) -> None:
    """A label would be answered twice."""
    pytest.importorskip("faiss", reason="needs umpteen[neural]")
    folder = _folder("LabelIndex-hnsw")
    folder.arrays[2][:9] = 24
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match=r"search graph .* is damaged"):
        ask(umpteen.load(tmp_path))


def test_huge_weights_of_a_noise_tree_are_refused(tmp_path: Path) -> None:
    """Differences of their log-probabilities are NaN."""
    folder = _folder("NoiseTree")
    folder.arrays[_number_of(folder.manifest["model"], "weights_")][:] = 3e38
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match="weights that are not finite, or beyond"):
        umpteen.load(tmp_path)


def test_a_table_without_a_free_slot_is_refused(tmp_path: Path) -> None:
    """No search in it would ever end."""
    folder = _folder("Vectorizer")
    state = folder.manifest["model"]["object"]["state"]["vocabulary_"]["object"]["state"]
    slots = folder.arrays[state["table"]["tuple"][0]["array"]]
    slots[slots == 0] = 1
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match="slots that do not lead to"):
        umpteen.load(tmp_path)


def test_sparse_matrices_are_read_to_the_end(tmp_path: Path) -> None:
    folder = _folder("NearestCentroid")
    folder.arrays[1][-1] = 10**6  # indices
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match="does not fit its arrays"):
        umpteen.load(tmp_path)


def test_one_flipped_bit_is_noticed_by_default(tmp_path: Path) -> None:
    _folder("LabelTree").write(tmp_path)
    largest = max(tmp_path.glob("*.npy"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[-1] ^= 1
    largest.write_bytes(bytes(content))
    with pytest.raises(ModelCorruptError, match="was changed since it was saved"):
        umpteen.load(tmp_path)


def test_paths_are_neither_saved_nor_taken_from_a_model(tmp_path: Path) -> None:
    """A stranger's model could otherwise have the next fit write to any folder."""
    folder = _folder("AdversarialSoftmax")
    folder.manifest["model"]["object"]["parameters"]["checkpoint"] = str(tmp_path / "elsewhere")
    (tmp_path / "model").mkdir()
    folder.write(tmp_path / "model")
    model = umpteen.load(tmp_path / "model")
    assert model.checkpoint is None
    model.set_params(checkpoint="mine").save(tmp_path / "again")
    assert "checkpoint" not in (tmp_path / "again" / "manifest.json").read_text()


def test_a_fitted_parameter_is_checked_as_well(tmp_path: Path) -> None:
    tree = umpteen.LabelTree().fit(*samples())
    tree.trees_[0].feature[0] = 10**6
    umpteen.Tagger(tree).fit(*texts()).save(tmp_path)
    with pytest.raises(ModelCorruptError, match=r"Tagger\.classifier\.trees_\[0\]\.feature holds"):
        umpteen.load(tmp_path)


@pytest.mark.parametrize("side", [9, "8", -8])
def test_images_of_another_shape_than_the_features_are_refused(side, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = _folder("NeuralClassifier-images")
    content = json.dumps(folder.manifest["model"])
    assert "[1, 8, 8]" in content
    folder.manifest["model"] = json.loads(
        content.replace("[1, 8, 8]", f"[1, {json.dumps(side)}, 8]")
    )
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match=r"64 features, and images of shape|image_shape_"):
        umpteen.load(tmp_path)


def _number_of(content: object, field: str) -> int:
    """The number of the array in a field, wherever in the model it is."""
    if isinstance(content, dict):
        if isinstance(content.get(field), dict) and "array" in content[field]:
            return int(content[field]["array"])
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            found = _number_of(each, field)
            if found >= 0:
                return found
    return -1


def test_an_array_is_named_once(tmp_path: Path) -> None:
    """A folder of a few megabytes could otherwise become lists of a terabyte."""
    folder = _folder("LabelTree")
    folder.manifest["model"]["object"]["state"]["more_"] = [{"numbers": 0}] * 3
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match="names array 0 twice"):
        umpteen.load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "000000000000-0.npy"])
def test_links_out_of_the_folder_are_not_followed(name: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    _folder("NearestCentroid").write(tmp_path / "model")
    (tmp_path / "model" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "model" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UmpteenError, match=r"is a link|not a regular file"):
        umpteen.load(tmp_path / "model")


@pytest.mark.parametrize("depth", [300, 900, 980, 1000, 100_000])
def test_a_manifest_that_is_nested_deeply_is_refused(depth: int, tmp_path: Path) -> None:
    folder = _folder("NearestCentroid")
    folder.write(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    nested = "[" * depth + "]" * depth
    (tmp_path / "manifest.json").write_text(text.replace('"kind"', f'"x": {nested}, "kind"', 1))
    with pytest.raises(ModelCorruptError):
        umpteen.load(tmp_path)


def _changed(name: str, change: Callable[[Any], object], path: Path) -> Path:
    """A model that was loaded, changed and saved again."""
    (path / "before").mkdir()
    _folder(name).write(path / "before")
    model = umpteen.load(path / "before")
    change(model)
    umpteen.storage.save(model, path / "after")
    return path / "after"


def _dead_end(model: Any) -> None:
    """The root has two children; the first has none, the second leads on."""
    (tree,) = model.trees_
    tree.hierarchy.first_child = np.array([1, 3, 3, 3 + len(tree.hierarchy.label_order)], np.int32)


def _weights_that_are_no_numbers(model: Any) -> None:
    (tree,) = model.trees_
    tree.chunk_scale[:] = np.nan


def _many_levels(index: Any) -> None:
    graph, n_levels = index.graph, 31
    graph.n_levels = np.full(len(graph.ids), n_levels, np.int32)
    graph.links = np.zeros(len(graph.ids) * graph.n_links * (n_levels + 1), np.int32)


def _no_labels_in_sets(model: Any) -> None:
    model.averages_.multiplicities[:] = 0


def _large_sets(model: Any) -> None:
    model.averages_.multiplicities[:] = 10**7


def _very_long_features(tagger: Any) -> None:
    tagger.vectorizer_.ngrams = 10**6


def _text_for_a_vectorizer(tagger: Any) -> None:
    tagger.vectorizer_ = "text"


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("LabelTree", _dead_end, "not equally deep|without children|other nodes"),
        ("LabelTree", _weights_that_are_no_numbers, "chunk_scale holds numbers outside the range"),
        ("NearestSet-unseen", _no_labels_in_sets, "multiplicities holds numbers"),
        ("NearestSet-unseen", _large_sets, "has sets of 10000000 out of 5 labels"),
        ("Tagger", _very_long_features, "no feature has more than 2 words"),
        ("Tagger", _text_for_a_vectorizer, "in place of a vectorizer"),
        ("LabelIndex-hnsw", _many_levels, "the search graph .* is damaged"),
    ],
)
def test_what_compiled_code_relies_on_is_checked(model, change, message, tmp_path) -> None:
    if model in WITH_TORCH:
        pytest.importorskip("torch")
    folder = _changed(model, change, tmp_path)
    with pytest.raises(ModelCorruptError, match=message):
        ask(umpteen.load(folder))


def test_networks_without_an_answer_are_refused(tmp_path: Path) -> None:
    """Each answer would have labels whose score is that of no label."""
    pytest.importorskip("torch")
    folder = _folder("NeuralClassifier-sets")
    folder.arrays[5][:] = -np.inf
    folder.write(tmp_path)
    with pytest.raises(ModelCorruptError, match=r"infinite numbers in the weights head\.bias"):
        umpteen.load(tmp_path)


def test_no_more_threads_than_cores_walk_a_graph(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    folder = _changed("LabelIndex-hnsw", lambda index: setattr(index, "n_jobs", 10**6), tmp_path)
    assert ask(umpteen.load(folder))["labels"].shape == (6, 5)


def test_a_checkpoint_of_other_sizes_is_refused(tmp_path: Path) -> None:
    """Training on from it would write out of bounds."""
    X, Y = samples()
    settings = {"epochs": 1, "random_state": 0, "checkpoint": str(tmp_path)}
    umpteen.AdversarialSoftmax(**settings).fit(X, Y)
    kept = umpteen.load(tmp_path)
    model = kept.state.model
    model.weights, model.biases = model.weights[:1], model.biases[:1]
    model.weight_squares, model.bias_squares = (
        model.weight_squares[: model.weights.nnz],
        model.biases,
    )
    umpteen.storage.save(kept, tmp_path)
    with pytest.raises(ModelCorruptError, match=r"model\.weights has shape \(1, 24\)"):
        umpteen.AdversarialSoftmax(**settings).fit(X, Y)

"""Small models of every kind that can be saved, and the questions that are put to them.

    python tests/storage/golden.py tests/storage/golden/0.1 [name ...]

writes each as a zipped model folder together with its answers. A release that changes what is
stored adds a folder of its own; those of earlier releases stay, for people keep their models.
"""

import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.base import ExtremeClassifier

N_SAMPLES, N_FEATURES, N_LABELS = 240, 24, 18
WORDS = ["apple", "pear", "iron", "copper", "river", "lake", "verb", "noun", "bread", "stone",
         "least", "squares", "über", "naïve", "北", "京"]  # fmt: skip


def samples(n_samples: int = N_SAMPLES) -> tuple[csr_matrix, csr_matrix]:
    """Sparse features and labels that have something to do with them; some rows are empty."""
    random = np.random.default_rng(0)
    shape = n_samples, N_FEATURES
    X = random.random(shape) * (random.random(shape) < 0.2)
    scores = X @ random.standard_normal((N_FEATURES, N_LABELS - 1))
    Y = scores > np.quantile(scores, 0.9, axis=0)  # the last label has no samples
    return csr_matrix(X, dtype=np.float32), csr_matrix(np.hstack([Y, np.zeros((n_samples, 1))]))


def texts() -> tuple[list[str], list[list[str]]]:
    """Texts of a few words, and names of labels."""
    random = np.random.default_rng(1)
    chosen = [random.choice(WORDS, 4, replace=False).tolist() for _ in range(120)]
    return [" ".join(words) for words in chosen], [sorted(w.upper() for w in c[:2]) for c in chosen]


def sentences() -> tuple[list[str], list[list[str]]]:
    """English texts with forms of words and names of labels in them, and stems as labels."""
    random = np.random.default_rng(6)
    stems = [word for word in WORDS[:10] if word != "bread"] + ["connect", "paint"]
    chosen = [random.choice(stems, 2, replace=False).tolist() for _ in range(160)]
    endings = random.choice(["", "s", "ing", "ed"], (len(chosen), 2))
    return [
        f"The {one}{end} and the {other}{last} are of {random.choice(['wood', 'gold'])}"
        for (one, other), (end, last) in zip(chosen, endings, strict=True)
    ], [sorted(word.upper() for word in words) for words in chosen]


def german() -> list[str]:
    """German texts with forms of words, and compounds."""
    words = ["Türschloss", "Schloss", "Schlösser", "Haustür", "Häuser", "Hauses", "Straße", "北京"]
    return [f"Die {one} und das {other}" for one in words for other in words[:3]]


def _vocabulary() -> um.data.LabelVocabulary:
    broader = {"APPLE": "FRUIT", "PEAR": "FRUIT", "IRON": "METAL", "COPPER": "METAL"}
    return um.data.LabelVocabulary.of(
        [um.data.Concept(name, name.lower()) for name in ("FRUIT", "METAL")]
        + [
            um.data.Concept(name, name.lower(), (f"{name.lower()} of gold",), broader=(parent,))
            for name, parent in broader.items()
        ]
    )


def _fitted(model: Any, dense: bool = False, n_samples: int = N_SAMPLES, **more: Any) -> Any:
    X, Y = samples(n_samples)
    return model.fit(X.toarray() + np.float32(0.1) if dense else X, Y, **more)


def _label_texts() -> csr_matrix:
    X, Y = samples()
    return csr_matrix(Y.T @ X > 2, dtype=np.float32)


def _tree_that_grew() -> Any:
    X, Y = samples()
    model = um.LabelTree(max_leaf=4, branching=4, n_trees=2).fit(X, Y[:, :15], _label_texts()[:15])
    return model.add_labels(X, Y[:, 15:]).remove_labels([3, 16])


def _tagger_that_grew() -> Any:
    tagger = um.Tagger(keep_texts=True).fit(*texts())
    tagger.add_labels(["GOLD", "TIN"], examples=[["gold coin", "gold"], ["tin can"]])
    tagger.remove_labels(["IRON"])
    tagger.tune_thresholds("macro_f1")
    return tagger


def _grouped() -> Any:
    X, Y = samples()
    groups = csr_matrix(np.kron(np.eye(N_SAMPLES // 4), np.ones(4)))
    eagle = um.Eagle(um.LabelTree(max_leaf=4, branching=4))
    return eagle.fit(X, groups=groups, group_labels=csr_matrix(groups @ Y))


def _network(**parameters: Any) -> Any:
    return um.NeuralClassifier(epochs=1, random_state=0, **parameters)


def _one_of_many(head: Any, **more: Any) -> Any:
    X, Y = samples()
    return _network(encoder=_narrow("Bag", dim=8), head=head, **more).fit(X, Y.argmax(axis=1).A1)


def _in_another_order() -> Any:
    code = um.multihead.LabelCode.balanced(N_LABELS - 1).shuffled()
    return _one_of_many(
        um.neural.blueprint(um.multihead.ProductHead, code=code),
        recipe=um.neural.NetworkRecipe(all_labels=True),
    )


def _narrow(kind: str, **options: Any) -> Any:
    return um.neural.blueprint(getattr(um.neural, kind), **options)


def _images() -> Any:
    random = np.random.default_rng(2)
    pictures = random.random((40, 1, 8, 8), dtype=np.float32)
    model = _network(encoder=_narrow("Conv", dim=8, width=8))
    return model.fit(pictures, np.arange(40) % 4)


def _siamese(n_samples: int = 2_000, **parameters: Any) -> Any:
    recipe = um.siamese.SiameseRecipe(refine_epochs=1, shortlist=8)
    model = um.SiameseXML(dim=8, epochs=1, recipe=recipe).set_params(**parameters)
    return _fitted(model, n_samples=n_samples, label_features=_label_texts())


def _index(method: str) -> Any:
    return um.search.LabelIndex(np.random.default_rng(3).random((40, 8)), method=method)


def _decoder(model: Any) -> Any:
    X, Y = samples()
    return model.fit(X.toarray()[:, :6], Y[:, :5])


MODELS: dict[str, Callable[[], Any]] = {
    "NearestCentroid": lambda: _fitted(um.NearestCentroid()),
    "NearestCentroid-dense": lambda: _fitted(um.NearestCentroid(), dense=True),
    "LabelTree": lambda: _fitted(um.LabelTree(max_leaf=4, branching=4)),
    "LabelTree-logistic": lambda: _fitted(
        um.LabelTree(recipe=um.linear.TreeRecipe(loss="logistic", trust=False))
    ),
    "LabelTree-texts": lambda: _fitted(um.LabelTree(), label_features=_label_texts()),
    "LabelTree-changed": _tree_that_grew,
    "Eagle": _grouped,
    "AdversarialSoftmax": lambda: _fitted(um.AdversarialSoftmax(epochs=1, noise="tree")),
    "AdversarialSoftmax-dense": lambda: _fitted(
        um.AdversarialSoftmax(epochs=1, noise="tree"), dense=True
    ),
    "AdversarialSoftmax-beam": lambda: _fitted(
        um.AdversarialSoftmax(epochs=1, noise="tree", beam_width=64)
    ),
    "AdversarialSoftmax-paper": lambda: _fitted(um.AdversarialSoftmax.paper(epochs=1)),
    "AdversarialSoftmax-frequency": lambda: _fitted(
        um.AdversarialSoftmax(epochs=1, noise="frequency")
    ),
    "NoiseTree": lambda: um.softmax.NoiseTree(dim=4).fit(*samples()),
    "Tagger": lambda: um.Tagger().fit(*texts()),
    "Tagger-changed": _tagger_that_grew,
    "Tagger-centroid": lambda: um.Tagger(um.NearestCentroid(), replay=0).fit(*texts()),
    "Tagger-hashing": lambda: um.Tagger(
        vectorizer=um.text.Vectorizer(hashing=256, stop_words=["noun"]), calibrate=False
    ).fit(*texts()),
    "Tagger-language": lambda: um.Tagger(language="en", replay=0).fit(
        *sentences(), vocabulary=_vocabulary()
    ),
    "Vectorizer": lambda: um.text.Vectorizer(ngrams=3, min_df_ngrams=1).fit(texts()[0]),
    "Vectorizer-both": lambda: (
        um.text.Vectorizer(language="auto", forms="both", spare=3)
        .fit(sentences()[0][:40] + german())
        .learn_words(["the quokkas"])
    ),
    "Vectorizer-characters": lambda: um.text.Vectorizer(language="de", forms="characters").fit(
        german()
    ),
    "LabelIndex": lambda: _index("exact"),
    "NearestSet": lambda: _decoder(um.collapse.NearestSet()),
    "NearestSet-unseen": lambda: _decoder(um.collapse.NearestSet(unseen=True)),
    "OneVsAll": lambda: _decoder(um.collapse.OneVsAll()),
}

WITH_TORCH: dict[str, Callable[[], Any]] = {
    "CoAttentionMIML": lambda: _fitted(um.CoAttentionMIML(hidden=8, epochs=1, random_state=0)),
    "LabelIndex-hnsw": lambda: _index("hnsw"),
    "NeuralClassifier": lambda: _fitted(_network(encoder=_narrow("Bag", dim=8))),
    "NeuralClassifier-mlp": lambda: _fitted(
        _network(encoder=_narrow("MLP", dim=8, hidden=8)), dense=True
    ),
    "NeuralClassifier-images": _images,
    **{
        f"NeuralClassifier-{head}": partial(
            lambda head: _fitted(_network(encoder=_narrow("Bag", dim=8), head=head)), head
        )
        for head in ("cascade", "powerset", "etf")
    },
    "NeuralClassifier-product": lambda: _one_of_many("product"),
    "NeuralClassifier-sampling": lambda: _one_of_many("sampling"),
    "NeuralClassifier-code": _in_another_order,
    "NeuralClassifier-sets": lambda: _fitted(
        _network(encoder=_narrow("Bag", dim=8), decoder=um.collapse.NearestSet())
    ),
    "SiameseXML": lambda: _siamese(),
    "SiameseXML-fixed": lambda: _siamese(
        recipe__weights="fixed", recipe__residual=True, search="hnsw"
    ),
    # In version 0.1, it also had a LabelTree as its companion.
    "SiameseXML-fused": lambda: _siamese(20_000, n_models=2, tail=0.5),
}


def ask(model: Any) -> dict[str, Any]:
    """Arrays that hold a model's answers to questions which stay the same for ever."""
    X = samples()[0][:24]
    if isinstance(model, um.Tagger):
        asked = [*texts()[0][:12], "gold apple", "", "nothing known here"]
        return _of_topk(model.predict_topk(asked + _forms_of_words(model.vectorizer_), 5))
    if isinstance(model, um.text.Vectorizer):
        return _of_csr(model.transform(texts()[0][:12] + _forms_of_words(model)))
    if isinstance(model, um.search.LabelIndex):
        return _of_topk(model.topk(np.random.default_rng(4).random((6, 8)), 5))
    if hasattr(model, "sample_with_log_prob"):
        return _of_topk(model.topk(X, 5))
    if not isinstance(model, ExtremeClassifier):  # a decoder
        return _of_csr(model.predict(X.toarray()[:, :6]))
    if getattr(model, "image_shape_", []):
        X = np.random.default_rng(5).random((6, 1, 8, 8), dtype=np.float32)
    top = model.predict_topk(X, 5)
    found = model.predict(X)
    return _of_topk(top) | (_of_csr(found) if hasattr(found, "indptr") else {"single": found})


def _forms_of_words(vectorizer: Any) -> list[str]:
    """Questions to models with a language, with forms of words that no training text has."""
    if vectorizer.language is None:
        return []
    new = ["A connection to painters", "quokka apples by Ähnlichkeiten der Türschlösser", "stoned"]
    return [*sentences()[0][:12], *german()[:4], *new, "Is this the stoning of gold connections?"]


def _of_topk(top: Any) -> dict[str, Any]:
    top = top.padded(5)  # a model may have fewer labels
    return {"labels": top.labels, "scores": top.scores}


def _of_csr(matrix: csr_matrix) -> dict[str, Any]:
    return {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}


def machine() -> str:
    """What decides about the last bits of floats, besides the versions of libraries."""
    return str(llvmlite.binding.get_host_cpu_name())


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:]
    for name, build in (MODELS | WITH_TORCH).items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model, path = build(), Path(folder)
            um.storage.save(model, path)
            np.savez(path / "answers.npz", machine=machine(), **ask(um.load(path)))
            with zipfile.ZipFile(target / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(path.iterdir()):
                    entry = zipfile.ZipInfo(file.name, (2026, 1, 1, 0, 0, 0))
                    archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()

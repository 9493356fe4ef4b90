"""A base install does its main job: fit, predict, explain, save, load, evaluate."""

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import umpteen as um

assert um.__version__ == version("umpteen"), "the package and its metadata disagree"
assert "torch" not in sys.modules
assert Path(um.__file__).parent.joinpath("py.typed").exists()
assert Path(um.__file__).parent.joinpath("report", "style.css").exists()

TEXTS = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 20
LABELS = [["fruit"], ["fruit"], ["metal"], ["metal", "mine"]] * 20

tagger = um.Tagger().fit(TEXTS, LABELS)
assert tagger.predict("an apple", k=1)[0][0] == "fruit"
assert "apple" in str(tagger.explain("an apple"))
assert "<html" in tagger.evaluate(TEXTS, LABELS).to_html()
with TemporaryDirectory() as folder:
    tagger.save(Path(folder) / "model")
    assert um.load(Path(folder) / "model").predict(TEXTS[:4]) == tagger.predict(TEXTS[:4])
advice = ""
try:
    um.NeuralClassifier()
except um.errors.MissingExtraError as missing:
    advice = str(missing)
assert "umpteen[neural]" in advice, "a base install has no PyTorch, and says how to get it"
print(f"umpteen {um.__version__} works on Python {sys.version.split()[0]}")

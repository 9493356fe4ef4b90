"""A user's program, to be read by type checkers in their strictest mode."""

from typing import assert_type

import numpy as np
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.text import Vectorizer

texts = ["red apple pie", "iron ore"]
labels = [["fruit"], ["metal"]]

tagger = um.Tagger(um.LabelTree(n_trees=3), language="en").fit(texts, labels)
assert_type(tagger, um.Tagger)
assert_type(tagger.predict("an apple"), list[tuple[str, float]])
assert_type(tagger.predict(texts, k=3), list[list[tuple[str, float]]])
assert_type(tagger.evaluate(texts, labels), um.Report)
assert_type(tagger.score(texts, labels), float)
assert_type(tagger.labels, list[str])

X = Vectorizer().fit_transform(texts)
tree = um.LabelTree().fit(X, [[0], [1]])
assert_type(tree, um.LabelTree)
top = tree.predict_topk(X, k=2)
assert_type(top, um.TopK)
assert_type(top.k, int)
first: np.int32 = top.labels[0, 0]
assert_type(top.to_csr(2).shape, tuple[int, int])

report = um.evaluate(top, [[0], [1]], [[0], [1]])
assert_type(report.metrics["precision@1"], float)
eagle = um.Eagle(solver=um.LabelTree()).fit(X, groups=[[0, 1]], group_labels=[[0, 1]])
assert_type(eagle, um.Eagle)
relevant: csr_matrix = tree.predict(X)
um.save(tree, "model")

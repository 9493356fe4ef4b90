"""What the labels' own texts add: LabelTree with and without them, on test parts.

`python benchmarks/label_texts.py` reads sets with label texts under `$UMPTEEN_DATA`; the weight of
the texts is chosen by `fit` on a validation split, a tenth of the training part.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um

SETS = ("debian-deps", "wordnet-ancestors", "eurlex57k")


def main() -> None:
    table = Table("set", "label texts", "weight", "P@1/3/5", "PSP@1/3/5", "CPU-s", "us/row")
    for name in SETS:
        data = um.data.load(name)
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
        X, X_test = (
            vectorizer.fit_transform(data.train.texts),
            vectorizer.transform(data.test.texts),
        )
        seen = np.flatnonzero(np.diff(data.train.Y.tocsc().indptr))
        Y, Y_test = data.train.Y[:, seen], data.test.Y[:, seen]
        texts = vectorizer.transform([data.label_texts[label] for label in seen])
        um.LabelTree().fit(X[:300], Y[:300], label_features=texts)  # kernels are compiled now
        for given in (None, texts):
            table.add_row(name, *figures(X, Y, X_test, Y_test, given))
    Console(width=110).print(table)


def figures(X, Y, X_test, Y_test, texts) -> tuple[str, ...]:
    start = time.process_time()
    model = um.LabelTree().fit(X, Y, label_features=texts)
    trained = time.process_time()
    top = model.predict_topk(X_test)
    predicted = time.process_time()
    precision = 100 * um.metrics.precision_at_k(Y_test, top, (1, 3, 5))
    psp = 100 * um.metrics.psp_at_k(Y_test, top, (1, 3, 5), um.metrics.propensity(Y))
    return (
        "no" if texts is None else "yes",
        "" if texts is None else f"{model.label_texts_.weight}",
        " ".join(f"{value:.2f}" for value in precision),
        " ".join(f"{value:.2f}" for value in psp),
        f"{trained - start:.1f}",
        f"{1e6 * (predicted - trained) / X_test.shape[0]:.0f}",
    )


if __name__ == "__main__":
    main()

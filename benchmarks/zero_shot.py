"""How well labels without any sample are found by their texts.

    python benchmarks/zero_shot.py [set ...]

Of the labels of the first 10,000 training texts under `$UMPTEEN_DATA`, a tenth is drawn and taken
from all of them; texts of all labels are given. Prints the recall of these labels, and of the
others, among the best 5, 10 and 20 labels of the first 4,000 test texts.
"""

import argparse

import harness  # noqa: F401 (sets up the paths)
import numpy as np

import umpteen as um

N_TRAIN, N_TEST, SHARE, KS = 10_000, 4_000, 0.1, (5, 10, 20)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=("eurlex57k", "debian-deps"))
    for name in parser.parse_args().sets:
        data = um.data.load(name)
        hidden, others = recalls(data)
        print(name, "hidden:", percent(hidden), "others:", percent(others), flush=True)


def recalls(data: um.data.Dataset) -> tuple[list[float], list[float]]:
    """Return the recall of hidden labels and of the others, for each k."""
    labels = [list(some) for some in data.train.labels][:N_TRAIN]
    learned = sorted({label for some in labels for label in some})
    random = np.random.default_rng(0)
    hidden = set(random.choice(learned, round(SHARE * len(learned)), replace=False).tolist())
    left = [[label for label in some if label not in hidden] for some in labels]
    texts = dict(zip(data.label_names, data.label_texts, strict=True))
    tagger = um.Tagger().fit(list(data.train.texts)[:N_TRAIN], left, label_texts=texts)
    answers = tagger.predict(list(data.test.texts)[:N_TEST], k=max(KS))
    expected = [set(some) & set(learned) for some in data.test.labels][:N_TEST]
    return tuple(
        [
            sum(len(own & wanted & {name for name, _ in tags[:k]}) for tags, own in
                zip(answers, expected, strict=True))
            / max(1, sum(len(own & wanted) for own in expected))
            for k in KS
        ]
        for wanted in (hidden, set(learned) - hidden)
    )  # fmt: skip


def percent(values: list[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


if __name__ == "__main__":
    main()

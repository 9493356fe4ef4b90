"""Tables 6 and 7, and what the shortlists find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from papers.contents import Block, Cell, Section, Table, Value, over_seeds
from papers.progress import progress_bar
from papers.siamese.tasks import (
    DEPTHS,
    METRICS,
    Outcome,
    Task,
    available,
    evaluated,
    fixed_vectors,
    outcome,
    task,
)
from umpteen import Ensemble, LabelTree, NearestCentroid
from umpteen.linear import TreeRecipe
from umpteen.metrics import recall_at_k
from umpteen.search import LabelIndex
from umpteen.siamese import SiameseXML

_SETS = ("debian-deps", "wordnet-ancestors", "eurlex57k")
_SHORTLISTS = (10, 25, 50, 100)
_N_EXAMPLES = 4
_NAME, _TEXT = 34, 110  # letters shown
_RARE = 3  # samples of a label
_THREE: dict[str, Any] = {"n_trees": 3, "recipe": TreeRecipe(hard_negatives=20)}

# Table 6 of the supplement, LF-AmazonTitles-131K: N@1/3/5, PSN@1/3/5, MB, minutes.
_PAPER: dict[str, tuple[float, ...]] = {
    "SiameseXML": (39.43, 40.21, 42.16, 33.83, 36.83, 39.03, 1160, 39.6),
    "SiameseXML-3": (40.26, 41.14, 43.21, 34.51, 37.62, 39.93, 3480, 118.2),
    "pretrained vectors (as SLICE)": (30.43, 31.07, 32.76, 23.08, 26.11, 28.13, 400, 4.8),
    "LabelTree (paper: Parabel)": (32.60, 32.96, 34.47, 23.27, 26.36, 28.21, 350, 1.8),
    "one-vs-all (paper: DiSMEC)": (35.14, 36.17, 38.06, 25.86, 30.09, 32.47, 110, 186),
}


@dataclass(frozen=True)
class Entry:
    """A row of the table: how to make the model for a seed, or another row's and what to change."""

    make: Callable[[int], Any] | str
    described: bool = True  # learns from labels' texts
    main: bool = False  # over several seeds
    changes: dict[str, Any] = field(default_factory=dict)  # of a trained model
    pretrained: bool = False  # starts from pretrained vectors of words


def entries(quick: bool) -> dict[str, Entry]:
    """Return what is compared."""
    few: dict[str, Any] = {"dim": 64, "epochs": 3, "recipe__refine_epochs": 2}
    small = few if quick else {}
    printed = few if quick else {"epochs": 8, "recipe__refine_epochs": 4}

    def siamese(**changes: Any) -> Callable[[int], SiameseXML]:
        def make(seed: int) -> SiameseXML:
            return SiameseXML(random_state=seed, verbose=False).set_params(**{**small, **changes})

        return make

    def tree(seed: int) -> LabelTree:
        return LabelTree(random_state=seed, verbose=False)

    def ensemble(tree: Callable[[int], LabelTree]) -> Callable[[int], Ensemble]:
        return lambda seed: Ensemble(
            [siamese()(seed), tree(seed)], random_state=seed, verbose=False
        )

    def three(seed: int) -> LabelTree:
        found: LabelTree = tree(seed).set_params(**_THREE)
        return found

    of_words = Entry(fixed_vectors, described=False, pretrained=True)
    has_words = find_spec("wordllama") is not None
    return {
        "SiameseXML": Entry(siamese(), main=True),
        "SiameseXML, tail=0.5": Entry("SiameseXML", changes={"tail": 0.5}),
        "SiameseXML, scores by the paper's weights": Entry(
            "SiameseXML", changes={"recipe__weights": "fixed"}
        ),
        "SiameseXML-3": Entry(siamese(n_models=3)),
        "Ensemble with LabelTree": Entry(ensemble(tree), main=True),
        "Ensemble with three trees": Entry(ensemble(three)),
        "Module I alone": Entry(siamese(recipe__modules=("embed",), recipe__start="text")),
        "random negatives only": Entry(siamese(recipe__modules=("embed", "refine"))),
        "the paper's settings, fewer epochs": Entry(
            lambda seed: SiameseXML.paper(**printed, recipe__shortlist=100, random_state=seed)
        ),
        **({"pretrained vectors (as SLICE)": of_words} if has_words else {}),
        "LabelTree (paper: Parabel)": Entry(tree, described=False, main=True),
        "LabelTree with labels' texts": Entry(tree, main=True),
        "three trees with labels' texts": Entry(three),
        "one-vs-all (paper: DiSMEC)": Entry(
            lambda seed: LabelTree.one_vs_all(random_state=seed, verbose=False), described=False
        ),
        "nearest centroid": Entry(lambda _: NearestCentroid(verbose=False), described=False),
    }


def sections(quick: bool) -> list[Section]:
    """One for each data set."""
    n_seeds = 1 if quick else 3
    return [
        Section(
            f"Tables 6 and 7: {name}",
            "SiameseXML is ahead of classifiers that learn from samples alone, most of all on rare "
            "labels (PSN); three of them together are better still.",
            f"{name}, TF-IDF of single words for samples and labels alike; test part. Main rows "
            f"over {n_seeds} seeds, others with one. The paper's numbers are of "
            "LF-AmazonTitles-131K: they show the order of methods, not what ours should be.",
            partial(_compared, name, quick, n_seeds),
        )
        for name in available(_SETS[1:2] if quick else _SETS)
    ]


def _compared(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    chosen = task(name, quick)
    yield chosen.in_words()
    found = measured(chosen, entries(quick), n_seeds)
    yield table6(found)
    yield precisions(found)
    yield from shortlists(chosen, found["SiameseXML"][0], found["LabelTree (paper: Parabel)"][0])
    yield from examples(chosen, {label: runs[0] for label, runs in found.items()})


def measured(chosen: Task, rows: dict[str, Entry], n_seeds: int) -> dict[str, list[Outcome]]:
    """The outcomes of all rows, over seeds."""
    found: dict[str, list[Outcome]] = {}
    with progress_bar(chosen.name, len(rows)) as advance:
        for label, entry in rows.items():
            if isinstance(entry.make, str):
                found[label] = [changed(chosen, run, entry.changes) for run in found[entry.make]]
            else:
                n_runs = n_seeds if entry.main else 1
                runs = [entry.make(seed) for seed in range(n_runs)]
                found[label] = [
                    outcome(chosen, model, entry.described, entry.pretrained) for model in runs
                ]
            advance()
    return found


def changed(chosen: Task, run: Outcome, changes: dict[str, Any]) -> Outcome:
    """The outcome of a trained model with other settings of its answers."""
    names = {name.partition("__")[0] for name in changes}
    before = {name: getattr(run.model, name) for name in names}
    run.model.set_params(**changes)
    found = evaluated(chosen, run.model, run.seconds)
    run.model.set_params(**before)
    return found


def table6(found: dict[str, list[Outcome]]) -> Table:
    """nDCG and its propensity-scored form, size and time."""
    rows: list[list[Cell]] = []
    for label, runs in found.items():
        printed = _PAPER.get(label, (None,) * 8)
        cells: list[Cell] = [label]
        for place, (metric, depth) in enumerate(_places(0, 2)):
            cells.append(over_seeds([run.figures[metric, depth] for run in runs], printed[place]))
        cells.append(Value(runs[0].megabytes, paper=printed[6], digits=0))
        minutes = float(np.mean([run.seconds for run in runs])) / 60
        cells.append(Value(minutes, paper=printed[7], digits=1))
        rows.append(cells)
    columns = ["model", *_headings(0, 2), "MB", "minutes of training"]
    return Table(
        "Table 6: nDCG and propensity-scored nDCG in %",
        columns,
        rows,
    )


def precisions(found: dict[str, list[Outcome]]) -> Table:
    """Precision and its propensity-scored form."""
    rows: list[list[Cell]] = [
        [label, *(over_seeds([run.figures[place] for run in runs]) for place in _places(2, 4))]
        for label, runs in found.items()
    ]
    columns = ["model", *_headings(2, 4)]
    return Table("Precision and propensity-scored precision in %", columns, rows)


def _places(first: int, last: int) -> list[tuple[int, int]]:
    return [(metric, depth) for metric in range(first, last) for depth in range(len(DEPTHS))]


def _headings(first: int, last: int) -> list[str]:
    return [f"{METRICS[metric]}@{DEPTHS[depth]}" for metric, depth in _places(first, last)]


def shortlists(chosen: Task, siamese: Outcome, tree: Outcome) -> Iterator[Block]:
    """Which share of the relevant labels each search finds."""
    tower = siamese.model.towers_[0]
    bags = tower.encoder.bags(chosen.X_test)
    lifted = tower.encoder.lift(bags)
    most = max(_SHORTLISTS)
    searches = {
        "by the label's text": LabelIndex(tower.texts).topk(bags, most),
        "by its centroid": LabelIndex(tower.centroids).topk(bags, most),
        "by its own vector": LabelIndex(tower.classifiers).topk(lifted, most),
        "by the direction of their sum": tower.index.topk(bags, most),
        "by the tree": tree.model.predict_topk(chosen.X_test, most),
    }
    rows: list[list[Cell]] = [
        [label, *(Value(100 * part) for part in recall_at_k(chosen.Y_test, top, _SHORTLISTS))]
        for label, top in searches.items()
    ]
    columns = ["search", *(f"{n} labels" for n in _SHORTLISTS)]
    yield Table("Relevant labels that a shortlist of so many has, in %", columns, rows)


def examples(chosen: Task, found: dict[str, Outcome]) -> Iterator[Block]:
    """The first test samples with a rare label, and what is answered, side by side."""
    yield (
        "Table 7's kind of examples: the best 5 labels of the first test samples that have a label "
        f"with fewer than {_RARE} training samples; * is relevant."
    )
    counts = chosen.Y.getnnz(axis=0)
    rare = chosen.Y_test @ (counts < _RARE).astype(np.float32)
    models = ("SiameseXML", "Ensemble with LabelTree", "LabelTree (paper: Parabel)")
    for row in np.flatnonzero(rare)[:_N_EXAMPLES]:
        own = set(chosen.Y_test[row].indices.tolist())

        def said(label: int, own: set[int] = own) -> str:
            name = chosen.label_names[label][:_NAME] if label >= 0 else ""
            return name + ("*" if label in own else "")

        answers = zip(*(found[model].top.labels[row].tolist() for model in models), strict=True)
        rows: list[list[Cell]] = [
            [f"{place}.", *map(said, labels)] for place, labels in enumerate(answers, 1)
        ]
        yield Table(chosen.texts_test[row][:_TEXT], ["place", *models], rows)

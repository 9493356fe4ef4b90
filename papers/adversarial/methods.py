"""The lines of Figure 1, and how each one's settings are chosen."""

from dataclasses import dataclass
from typing import Any

from papers.adversarial.runs import Setting, run
from papers.adversarial.tasks import Task

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_FIRST_RATE = {True: 0.1, False: 1.0}  # of dense rows, and of sparse ones
PENALTIES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
TREES = (0.1, 1.0, 10.0, "auto")
ONE: Setting = {
    "objective": "negative_sampling", "n_negatives": 1, "centroid_scale": 0.0,
    "frequency_discount": 0.0,
}  # fmt: skip
NOT_TUNED = "umpteen, not tuned"


@dataclass(frozen=True, eq=False)
class Method:
    """A name, what defines it, and whether it has a tree whose regulariser is to be chosen."""

    name: str
    setting: Setting
    has_tree: bool = False


METHODS = (
    Method("adversarial", {**ONE, "frequency_share": 0.0, "tree": 0.1}, has_tree=True),
    Method("uniform", {**ONE, "noise": "uniform"}),
    Method("frequency", {**ONE, "noise": "frequency"}),
    Method("NCE", {**ONE, "objective": "nce", "frequency_share": 0.0, "tree": 0.1}, has_tree=True),
    Method("A&R", {**ONE, "objective": "augment_reduce"}),
    Method("OVE", {**ONE, "objective": "one_vs_each"}),
    Method("umpteen", {"regularizer": 1e-2, "learning_rate": 0.3}),
)
BASELINES = ("uniform", "frequency", "NCE", "A&R", "OVE")


@dataclass(frozen=True)
class Budget:
    """Seconds of a trial, trials per method, seconds of the run that counts, samples to judge."""

    trial: float
    n_trials: int
    final: float
    n_curve: int
    n_final: int = 10_000


class Tuning:
    """Settings tried for a method on a task, each once and for as long, best validation first."""

    def __init__(self, task: Task, method: Method, budget: Budget) -> None:
        self.task, self.budget = task, budget
        self.tried: dict[tuple[Any, ...], float] = {}
        self.best: Setting = {
            "regularizer": 1e-4, "learning_rate": _FIRST_RATE[task.dense], **method.setting,
        }  # fmt: skip
        self.accuracy(self.best)
        self.search(method)

    def search(self, method: Method) -> None:
        """Along one setting after the other for as long as that helps, until trials run out."""
        before = None
        while before != self.best and not self.is_over:
            before = self.best
            self.climb("learning_rate", RATES)
            if method.has_tree:
                self.all_of("tree", TREES)
            self.climb("regularizer", PENALTIES)

    def climb(self, name: str, values: tuple[float, ...]) -> None:
        """To better neighbours."""
        for step in (1, -1):
            place = values.index(self.best[name]) + step
            while 0 <= place < len(values) and self.improves(name, values[place]):
                place += step

    def all_of(self, name: str, values: tuple[Any, ...]) -> None:
        for value in values:
            self.improves(name, value)

    def improves(self, name: str, value: Any) -> bool:
        changed = {**self.best, name: value}
        if self.accuracy(changed) <= self.accuracy(self.best):
            return False
        self.best = changed
        return True

    def accuracy(self, setting: Setting) -> float:
        """On the samples to choose by; those beyond the last trial are not tried."""
        key = tuple(sorted(setting.items(), key=lambda item: item[0]))
        if key not in self.tried:
            if self.is_over:
                return -1.0
            found = run(self.task, setting, self.budget.trial, free_noise=True)
            judges = self.task.validation.first(self.budget.n_curve)
            self.tried[key] = found.judge(judges).accuracy
        return self.tried[key]

    @property
    def is_over(self) -> bool:
        return len(self.tried) >= self.budget.n_trials

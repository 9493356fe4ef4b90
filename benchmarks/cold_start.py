"""What a first run on a fresh machine waits for: the kernels that numba compiles.

    python benchmarks/cold_start.py

Each task runs in a process of its own, first with an empty folder for numba's cache and then once
more with what the first run left there: `umpteen demo`, also with no data set collected yet, a
`fit` of a `Tagger` on 3,000 texts of pydocs, and loading that tagger and asking it. A function
counts as compiled by itself: the time of what it calls is in the rows of what it calls. Seconds
of CPU, since other processes may have the cores; the least of the repeats.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.environment import machine, results_folder, variables, versions
from harness.measure import Stopwatch
from harness.report import made_by, table_lines, write_results

TASKS = {
    "demo": "`umpteen demo`",
    "fit": "`Tagger().fit`, 3,000 texts",
    "predict": "`um.load`, `predict` of one text",
}
PACKAGE = "umpteen.kernels."
LONGEST_LIST = 25

Run = dict[str, Any]


def main() -> None:
    """Measure every task cold and warm, print the tables, keep them."""
    options = parse()
    if options.task:
        print(json.dumps(perform(options.task, Path(options.folder))), file=sys.stderr)
        return
    results = {
        "command": shlex.join(["python", "benchmarks/cold_start.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "runs": measure(options.repeats),
    }
    text = markdown(results)
    print(text)
    write_results(results, results_folder(options.quick) / "cold_start.json", text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each task")
    parser.add_argument("--quick", action="store_true", help="leave the committed figures alone")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(repeats: int) -> dict[str, dict[str, Run]]:
    """Of each task, the cold and the warm run that took the least CPU."""
    found: dict[str, dict[str, list[Run]]] = {task: {"cold": [], "warm": []} for task in TASKS}
    for _ in range(repeats):
        with TemporaryDirectory() as folder:
            place = Path(folder)
            for task in TASKS:  # "fit" leaves the model that "predict" opens
                for kind in ("cold", "warm"):
                    found[task][kind].append(child(task, place, place / f"kernels-{task}"))
    return {
        task: {kind: min(runs, key=lambda run: run["cpu"]) for kind, runs in kinds.items()}
        for task, kinds in found.items()
    }


def child(task: str, folder: Path, kernels: Path) -> Run:
    """One task in a fresh process."""
    environment = variables(2, kernels) | {"XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, __file__, "--task", task, "--folder", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stderr.splitlines()[-1])  # type: ignore[no-any-return]


def perform(task: str, folder: Path) -> Run:
    """The task here: seconds, and the functions that were compiled."""
    with Stopwatch() as watch:
        compiled = listen()
        if task == "demo":
            from umpteen.demo import main as demo

            demo(folder / "demo")
        elif task == "fit":
            import umpteen as um

            data = um.data.load("pydocs").train
            with Stopwatch() as inner:
                tagger = um.Tagger().fit(data.texts[:3000], data.labels[:3000])
            tagger.save(folder / "model")
        else:
            import umpteen as um

            with Stopwatch() as inner:
                um.load(folder / "model").predict("sort a list in place")
    taken = watch if task == "demo" else inner
    return {"wall": taken.wall, "cpu": taken.cpu, "compiled": compiled}


def listen() -> list[dict[str, Any]]:
    """A list that gets every function that is compiled from now on, in this process."""
    from numba.core import event

    compiled: list[dict[str, Any]] = []

    class Listener(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self._open: list[list[float]] = []  # start, and seconds of those inside

        def on_start(self, _: Any) -> None:
            self._open.append([time.thread_time(), 0.0])

        def on_end(self, happened: Any) -> None:
            start, inside = self._open.pop()
            seconds = time.thread_time() - start
            if self._open:
                self._open[-1][1] += seconds
            function = happened.data["dispatcher"].py_func
            compiled.append(
                {
                    "name": f"{function.__module__}.{function.__name__}",
                    "types": str(happened.data["args"]),
                    "own": seconds - inside,
                    "all": seconds,
                    "outermost": not self._open,
                }
            )

    event.register("numba:compile", Listener())  # numba compiles one function at a time
    return compiled


def markdown(results: dict[str, Any]) -> str:
    """The tables."""
    runs = results["runs"]
    heads = [
        "task", "kernels", "functions", "ours", "compiling CPU s", "cold CPU s", "cold wall s",
        "warm CPU s", "warm wall s",
    ]  # fmt: skip
    rows = [heads, *([title, *_figures(runs[task])] for task, title in TASKS.items())]
    return "\n\n".join(
        [
            "# Cold start",
            f"{made_by(results)} Kernels are called from Python; functions are all that had to be "
            "compiled for them, with every combination of types; ours are those of "
            "`umpteen.kernels`, the others numba's own.",
            table_lines(rows),
            "## Kernels of a fit, with what they call",
            _ranked(runs["fit"]["cold"]["compiled"], only_outermost=True),
            "## Functions of a fit, without what they call",
            _ranked(runs["fit"]["cold"]["compiled"], only_outermost=False),
            "",
        ]
    )


def _figures(kinds: dict[str, Run]) -> list[str]:
    cold, warm = kinds["cold"], kinds["warm"]
    compiled = cold["compiled"]
    return [
        str(sum(one["outermost"] for one in compiled)),
        str(len(compiled)),
        str(sum(one["name"].startswith(PACKAGE) for one in compiled)),
        f"{sum(one['own'] for one in compiled):.1f}",
        *(f"{run[key]:.1f}" for run in (cold, warm) for key in ("cpu", "wall")),
    ]


def _ranked(compiled: list[dict[str, Any]], only_outermost: bool) -> str:
    """What took longest, by name; several lists of types of one function are one row."""
    key = "all" if only_outermost else "own"
    sums: dict[str, list[float]] = {}
    for one in compiled:
        if one["outermost"] or not only_outermost:
            sums.setdefault(one["name"].removeprefix(PACKAGE), []).append(one[key])
    ranked = sorted(sums.items(), key=lambda item: -sum(item[1]))[:LONGEST_LIST]
    rows = [[f"`{name}`", str(len(found)), f"{sum(found):.2f}"] for name, found in ranked]
    return table_lines([["function", "times", "CPU s"], *rows])


if __name__ == "__main__":
    main()

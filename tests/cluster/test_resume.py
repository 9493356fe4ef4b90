"""`umpteen fit --stream --cluster --checkpoint`, killed while it runs and started again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.models import texts

pytest.importorskip("ray", reason="needs the extra `cluster`")

COUNTED = """
import signal, sys
from importlib import import_module
from umpteen.cli import main
from umpteen.cluster import connecting
from umpteen.cluster.parcels import fingerprint
from tests.cluster.models import SMALL_TASKS

for place, value in SMALL_TASKS.items():
    module, constant = place.rsplit(".", 1)
    setattr(import_module(module), constant, value)
log, after, *arguments = sys.argv[1:]

class Counted(connecting.RayEngine):
    n_steps = n_results = 0

    def __init__(self, library):
        super().__init__(library)
        print("started", file=open(log, "a"))

    def map(self, function, items, shared):
        Counted.n_steps += 1
        step = Counted.n_steps
        for item, result in zip(items, super().map(function, items, shared)):
            if Counted.n_results == int(after):
                signal.raise_signal(signal.SIGKILL)
            Counted.n_results += 1
            print(step, fingerprint(item), file=open(log, "a"))
            yield result

connecting.RayEngine = Counted
main(arguments)
"""


def fit(folder, name, checkpoint, kill_after=-1):
    """Run the command; return its exit code, how often it started Ray, and its tasks."""
    log = folder / f"{name}.log"
    options = ["--stream", "--cluster", "local", "--checkpoint", checkpoint, "-o", folder / name]
    command = [log, kill_after, "fit", folder / "*.jsonl", *options]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *map(str, command)],
        cwd=Path(__file__).parents[2], capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    lines = log.read_text().splitlines()
    tasks = [line for line in lines if line != "started"]
    return done.returncode, len(lines) - len(tasks), tasks


def arrays(model):
    """All arrays of a model; names of files begin with letters of their own each time."""
    return {path.name.partition("-")[2]: path.read_bytes() for path in model.glob("*.npy")}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_command_goes_on(tmp_path, call):
    """Hours of work would be done again, although the person had asked to keep it."""
    samples = [
        json.dumps({"text": text, "labels": own}) for text, own in zip(*texts(), strict=True)
    ]
    for i in range(3):
        (tmp_path / f"{i}.jsonl").write_text("\n".join(samples[i::3]))
    call("fit", tmp_path / "*.jsonl", "--stream", "-o", tmp_path / "whole")
    kept = 20
    code, n_started, first = fit(tmp_path, "killed", tmp_path / "finished", kill_after=kept)
    assert (code, n_started, len(first)) == (-signal.SIGKILL, 1, kept)
    assert not (tmp_path / "killed").exists()
    code, n_started, others = fit(tmp_path, "rest", tmp_path / "finished")
    assert (code, n_started) == (0, 1)
    assert len(set(first + others)) == kept + len(others) > kept  # no task ran twice
    assert arrays(tmp_path / "rest") == arrays(tmp_path / "whole") != {}
    assert not (tmp_path / "finished").exists()

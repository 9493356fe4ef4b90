"""The corrections that a new model should learn from, out of the journal."""

import json
from collections.abc import Iterable
from pathlib import Path

from umpteen.serve.durable import read_json
from umpteen.serve.journal import Correction, read_corrections
from umpteen.serve.versions import Version
from umpteen.writing import open_to_write


def valid_corrections(state: Path) -> list[Correction]:
    """Return the last correction of each text, without those that were undone or refused.

    A server may run meanwhile: this only reads.
    """
    current = Version.read((read_json(state / "current.json") or {}).get("version"))
    recorded = read_corrections(state / "journal")
    return latest(one for one in recorded if current is None or current.may_learn(one.number))


def latest(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the last correction of each text, in order of arrival."""
    by_text = {one.text: one for one in corrections}
    return sorted(by_text.values(), key=lambda one: one.number)


def export(state: Path, file: Path) -> int:
    """Write valid corrections as JSON lines for `umpteen fit`; return how many."""
    found = valid_corrections(state)
    with open_to_write(file) as target:
        for one in found:
            line = json.dumps({"text": one.text, "labels": one.labels}, ensure_ascii=False)
            target.write(line.encode() + b"\n")
    return len(found)

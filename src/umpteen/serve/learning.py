"""Learning from the journal: a copy learns new corrections and is compared with the model."""

import warnings
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from umpteen import storage
from umpteen.errors import UmpteenError
from umpteen.serve.evaluating import Check, compare_on_kept, compare_on_texts
from umpteen.serve.exporting import latest
from umpteen.serve.journal import Correction, read_corrections
from umpteen.serve.versions import Version, Versions, now
from umpteen.tagger import Tagger


@dataclass(frozen=True)
class Outcome:
    """The outcome of learning: a new version, or the old one and the `reason` for keeping it."""

    time: str
    version: Version
    corrections: int
    applied: bool
    reason: str | None = None
    unseen: Check | None = None
    kept: Check | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Outcome":
        """Return what `to_dict` wrote."""
        checks = {
            name: None if record[name] is None else Check(**record[name])
            for name in ("unseen", "kept")
        }
        return cls(**record | checks | {"version": Version.of(record["version"])})


def learn(state: Path, current: Version, last: int, validation: Path | None = None) -> Outcome:
    """Learn from corrections up to number `last` that `current` has not processed."""
    versions = Versions(state / "versions")
    recorded = [one for one in read_corrections(state / "journal") if one.number <= last]
    new = latest(one for one in recorded if current.waits(one.number) and not one.is_for_validation)
    looked_at = replace(current, position=last)
    if not new:
        return nothing_to_learn(looked_at, "all new corrections are set aside for validation")
    before: Tagger = storage.load(versions.path(current.version))
    aside = latest(
        one for one in recorded if one.is_for_validation and current.may_learn(one.number)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a rebuild is due, which the log need not repeat
            after = _taught(before, new)
            kept = compare_on_kept(before, new)
    except UmpteenError as problem:
        refused = replace(looked_at, refused=current.refused + len(new))  # another model may learn
        return Outcome(now(), refused, len(new), applied=False, reason=str(problem))
    unseen = compare_on_texts(before, after, *_for_validation(aside, validation))
    reason = _verdict(unseen, kept)
    if reason is not None:
        about = current.refuse(last, len(new))
    else:
        learned = replace(
            looked_at, time=now(), parent=current.version, applied=current.applied + len(new)
        )
        about = versions.add(after.save, learned)
    return Outcome(now(), about, len(new), reason is None, reason, unseen, kept)


def nothing_to_learn(version: Version, why: str = "there are no new corrections") -> Outcome:
    """Return the outcome of learning without corrections to learn from."""
    return Outcome(now(), version, 0, applied=False, reason=f"nothing to learn: {why}")


def _taught(before: Tagger, new: list[Correction]) -> Tagger:
    texts, labels = [one.text for one in new], [one.labels for one in new]
    return copy(before).partial_fit(texts, labels, [one.rejected for one in new])


def _for_validation(
    aside: list[Correction], file: Path | None
) -> tuple[list[str], list[list[str]]]:
    texts, labels = [one.text for one in aside], [one.labels for one in aside]
    if file is not None:
        from umpteen import data

        samples = data.read(file)
        texts += samples.texts or []
        labels += samples.labels or []
    return texts, labels


def _verdict(unseen: Check, kept: Check) -> str | None:
    """Why the result is worse, or None."""
    for check, what in (
        (unseen, "texts set aside for validation"),
        (kept, "training texts left out for this check"),
    ):
        if check.is_worse:
            return (
                f"worse on {check.n_texts:,} {what}: nDCG@5 {check.before:.4f} before, "
                f"{check.after:.4f} after"
            )
    return None

"""Our docstrings for Sphinx: sections of names become field lists.

Types are in annotations only, so "Parameters" and "Attributes" have lines such as `cost : penalty
of errors`, where numpydoc would expect a type.
"""

import inspect
import re

_SECTIONS = {"Parameters": "param", "Attributes": "ivar"}
_ITEM = re.compile(r"(\w+(?:, \w+)*) : (.*)")
COMMON = {
    "n_jobs": "number of threads, -1 for all cores; any number gives the same bits.",
    "random_state": "seed; the same seed gives the same bits.",
    "verbose": 'whether to show a progress bar; "auto" shows it on a terminal.',
}


def translate(app, what, name, obj, options, lines):
    """Replace the lines of a docstring in place, as Sphinx asks for it."""
    lines[:] = with_fields(lines)
    if what == "class":
        lines.extend(common_fields(obj, lines))


def skip(app, what, name, obj, skipped, options):
    """Skip what is inherited from other libraries: they have references of their own."""
    home = getattr(inspect.unwrap(getattr(obj, "fget", obj)), "__module__", None) or "umpteen"
    return True if not home.startswith("umpteen") else None


def with_fields(lines):
    """Return the lines with field lists in place of the sections.

    >>> with_fields(["Parameters", "---", "a, b : first", "    second", "", "End."])
    [':param a: see `b`.', ':param b: first second', '', 'End.']
    """
    written, kind = [], None
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        item = _ITEM.fullmatch(line) if kind else None
        if line in _SECTIONS and below.startswith("---"):
            kind = _SECTIONS[line]
        elif kind and line.startswith("---"):
            continue
        elif item:
            *others, last = item[1].split(", ")
            written += [f":{kind} {other}:" for other in others]
            written.append(f":{kind} {last}: {item[2]}")
        elif kind and line.startswith("    "):
            written[-1] += " " + line.strip()
        else:
            kind = kind if not line else None
            written.append(line)
    return _grouped(written)


def _grouped(lines):
    """Describe `a` in `:param a:` by what comes with the next name."""
    below = ""
    for i in reversed(range(len(lines))):
        field = re.match(r":(\w+) (\w+):(.*)", lines[i])
        if field and not field[3].strip():
            lines[i] += f" see {below}."
        elif field:
            below = f"`{field[2]}`"
    return lines


def common_fields(kind, lines):
    """Return fields of parameters that mean the same everywhere, where a class has no words."""
    described = set(re.findall(r":param (\w+):", "\n".join(lines)))
    try:
        names = list(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        return []
    missing = [name for name in names if name in COMMON and name not in described]
    return ["", *(f":param {name}: {COMMON[name]}" for name in missing), ""] if missing else []

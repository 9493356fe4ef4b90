"""Which settings of which library take part."""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

SINGLE = "single tree"
WIDE = "ensemble or shallow"
PEERS = {"pecos": "libpecos", "omikuji": "omikuji", "napkinxc": "napkinxc"}


@dataclass(frozen=True)
class System:
    """One row of the table; systems of one library with equal `train` share the trained model."""

    name: str
    library: str
    group: str
    train: dict[str, Any] = field(default_factory=dict)
    predict: dict[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """A name for what is trained, fit for a folder."""
        settings = json.dumps(self.train, sort_keys=True)
        return f"{self.library}-{sha256(settings.encode()).hexdigest()[:8]}"

    @property
    def is_peer(self) -> bool:
        return self.library in PEERS


BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}

SYSTEMS = [
    System("umpteen x1", "umpteen", SINGLE),
    System("pecos binary", "pecos", SINGLE, {}, {"chunks": "BINARY_SEARCH_CHUNKED"}),
    System("pecos hash", "pecos", SINGLE, {}, {"chunks": "HASH_CHUNKED"}),
    System("omikuji x1", "omikuji", SINGLE, {"n_trees": 1}),
    System("napkinxc plt", "napkinxc", SINGLE),
    System("umpteen x3", "umpteen", WIDE, {"n_trees": 3}),
    System("omikuji x3", "omikuji", WIDE),
]
MORE = [  # other settings of the same libraries, mostly slow
    System("pecos beam 20", "pecos", SINGLE, {}, {"beam": 20}),
    System("pecos beam 50", "pecos", SINGLE, {}, {"beam": 50}),
    System("pecos threshold 0.05", "pecos", SINGLE, {"threshold": 0.05}),
    System("pecos threshold 0.2", "pecos", SINGLE, {"threshold": 0.2}),
    System("napkinxc beam", "napkinxc", SINGLE, {}, {"tree_search_type": "beam"}),
    System("umpteen bonsai", "umpteen", WIDE, {"corner": "bonsai"}),
    System("umpteen parabel", "umpteen", WIDE, {"corner": "parabel"}),
    System("pecos x3", "pecos", WIDE, {"n_models": 3}),
    System("pecos x3 beam 20", "pecos", WIDE, {"n_models": 3}, {"beam": 20}),
    System("omikuji sparse", "omikuji", WIDE, {}, {"densify": None}),
    System("omikuji collapsed", "omikuji", WIDE, {"collapse_every_n_layers": 5}),
    System("omikuji bonsai", "omikuji", WIDE, BONSAI),
    System("napkinxc x3", "napkinxc", WIDE, {"ensemble": 3}, {"ensemble": 3}),
]


def chosen(names: list[str], *, every: bool = False) -> list[System]:
    """The systems that `names` asks for, by name or by library; without names, the default ones.

    A library's name stands for its default systems, and with `every` for all of them.
    """
    known = {name for system in SYSTEMS + MORE for name in (system.name, system.library)}
    if unknown := sorted(set(names) - known):
        raise SystemExit(f"Unknown systems {unknown}; known are {sorted(known)}.")
    offered = SYSTEMS + MORE if every else SYSTEMS
    by_library = [s for s in offered if not names or s.library in names]
    return by_library + [s for s in SYSTEMS + MORE if s.name in names and s not in by_library]

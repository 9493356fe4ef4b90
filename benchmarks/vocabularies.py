"""How long a vocabulary takes to read, and its memory: the same concepts in every format.

`python benchmarks/vocabularies.py [concepts]` makes them up, with names in three languages, and
reads each file in a process of its own.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import umpteen as um

SKOS = "http://www.w3.org/2004/02/skos/core#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
BASE = "http://example.org/onto/"
LANGUAGES = ("en", "fi", "sv")


def main(n_concepts: int) -> None:
    table = Table("file", "MB", "concepts", "CPU-s", "peak MB")
    with tempfile.TemporaryDirectory() as folder:
        for path in written(Path(folder), n_concepts):
            command = [sys.executable, __file__, "--read", str(path)]
            figures = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            table.add_row(path.name, f"{path.stat().st_size / 1e6:.1f}", *figures.split())
    Console(width=80).print(table)


def written(folder: Path, n_concepts: int) -> list[Path]:
    rng = np.random.default_rng(0)
    files: dict[str, list[str]] = {"a.ttl": [], "a.nt": [], "a.rdf": [], "a.jsonl": []}
    for i in range(n_concepts):
        statements = [(f"{SKOS}prefLabel", phrase(rng, 2), language) for language in LANGUAGES]
        statements += [(f"{SKOS}altLabel", phrase(rng, 2), language) for language in LANGUAGES[:2]]
        statements += [(f"{SKOS}scopeNote", phrase(rng, 12), "en")]
        links = [(f"{RDF}type", f"{SKOS}Concept"), (f"{SKOS}inScheme", BASE)]
        links += [(f"{SKOS}broader", f"{BASE}{i // 5}")] if i else []
        turtle = [f'<{name}> "{text}"@{language}' for name, text, language in statements]
        turtle += [f"<{name}> <{uri}>" for name, uri in links]
        subject = f"<{BASE}{i}>"
        files["a.ttl"].append(f"{subject} " + " ;\n  ".join(turtle) + " .\n")
        files["a.nt"] += [f"{subject} {each} .\n" for each in turtle]
        files["a.rdf"].append(xml(i, statements, links[2:]))
        files["a.jsonl"].append(
            json.dumps({"label": str(i), "name": statements[0][1], "parents": [str(i // 5)][: i]})
            + "\n"
        )  # fmt: skip
    head = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:skos="{SKOS}">\n'
    files["a.rdf"] = [head, *files["a.rdf"], "</rdf:RDF>\n"]
    for name, lines in files.items():
        (folder / name).write_text("".join(lines), "utf-8")
    return [folder / name for name in files]


def phrase(rng: np.random.Generator, n_words: int) -> str:
    letters = rng.integers(97, 123, size=(n_words, 7), dtype=np.uint8)
    return " ".join(bytes(word).decode() for word in letters)


def xml(i: int, statements: list[tuple[str, str, str]], links: list[tuple[str, str]]) -> str:
    tags = [(name.removeprefix(SKOS), text, language) for name, text, language in statements]
    inside = [f'<skos:{name} xml:lang="{tag}">{text}</skos:{name}>\n' for name, text, tag in tags]
    inside += [f'<skos:broader rdf:resource="{uri}"/>\n' for _, uri in links]
    return f'<skos:Concept rdf:about="{BASE}{i}">\n{"".join(inside)}</skos:Concept>\n'


def read(path: str) -> None:
    start = time.process_time()
    vocabulary = um.data.read_vocabulary(path, "en")
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3  # kB, on Linux
    print(f"{len(vocabulary):,} {seconds:.1f} {peak:.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000)

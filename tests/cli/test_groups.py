"""Groups on the command line: a spreadsheet with labels once per page."""

import csv
import json
import re

import pytest

import umpteen as um

from .conftest import made_up, write_lines


def pages(n, size=3, seed=0):
    """Rows of texts, their page, and the labels of the page on its first row."""
    rows, truth = [], []
    for number, item in enumerate(made_up(n, seed)):
        rows.append({"page": f"p{number // size}", "text": item["text"], "labels": []})
        rows[number - number % size]["labels"] += item["labels"]
        truth.append(item["labels"])
    return rows, truth


def write_csv(path, rows, *columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow(
                "|".join(row[name]) if name == "labels" else row[name] for name in columns
            )
    return path


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A model of 300 texts in pages, with counts."""
    from umpteen.cli import main

    place = tmp_path_factory.mktemp("pages")
    file = write_csv(place / "pages.csv", pages(300)[0], "page", "text", "labels")
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(file), "--group", "page", "-o", str(place / "model")])
    assert ended.value.code == 0
    return place


def test_fit_assign_and_describe(grouped, ask, call, tmp_path):
    tagger = um.load(grouped / "model")
    assert tagger.groups_.n_groups == 100
    rows, truth = pages(60, seed=1)
    new = write_csv(tmp_path / "new.csv", rows, "page", "text", "labels")
    out = tmp_path / "out.jsonl"
    call("assign", grouped / "model", new, "--group", "page", "-o", out)
    records = [json.loads(line) for line in out.open()]
    assert [(r["group"], r["text"]) for r in records] == [(r["page"], r["text"]) for r in rows]
    found = [{tag["label"] for tag in record["labels"]} for record in records]
    right = sum(len(own & set(labels)) for own, labels in zip(found, truth, strict=True))
    assert right / sum(map(len, found)) > 0.9
    assert right / sum(map(len, truth)) > 0.9
    assert ask("assign", grouped / "model", new, "--group", "page", "--no-text")[0].keys() == {
        "group", "labels"
    }  # fmt: skip
    (described,) = ask("describe", grouped / "model")
    assert described["groups"].startswith("100 groups of at most 3 texts")
    out, _ = call("describe", new, "--group", "page", "--table")
    assert "20" in out
    assert "counts: some are repeated" in out
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs umpteen[parquet]")
    call("assign", grouped / "model", new, "--group", "page", "-o", tmp_path / "found.parquet")
    columns = parquet.read_table(tmp_path / "found.parquet").to_pydict()
    assert columns["group"] == [row["page"] for row in rows]
    out, _ = call("assign", grouped / "model", new, "--group", "page", "--table")
    assert out.startswith("text")


def test_every_form_of_a_file_says_the_same(ask, tmp_path):
    rows, _ = pages(30)
    labels = {row["page"]: row["labels"] for row in rows if row["labels"]}
    everywhere = [{**row, "labels": labels[row["page"]]} for row in rows]
    without = [{key: row[key] for key in ("page", "text")} for row in rows]
    lists = [{"page": page, "labels": own} for page, own in labels.items()]
    once = [row if row["labels"] else {"page": row["page"], "text": row["text"]} for row in rows]
    files = [
        [write_csv(tmp_path / "first.csv", rows, "page", "text", "labels")],
        [write_csv(tmp_path / "every.csv", everywhere, "text", "labels", "page")],
        [write_lines(tmp_path / "once.jsonl", once)],
        [write_lines(tmp_path / "every.jsonl", everywhere)],
        [
            write_csv(tmp_path / "texts.csv", without, "page", "text"),
            "--group-labels", write_csv(tmp_path / "labels.csv", lists, "page", "labels"),
        ],
        [
            write_lines(tmp_path / "texts.jsonl", without),
            "--group-labels", write_lines(tmp_path / "labels.jsonl", lists),
        ],
    ]  # fmt: skip
    found = [ask("describe", *given, "--group", "page") for given in files]
    assert found[0][0]["groups"] == 10
    assert all(each == found[0] for each in found)


def test_numbers_are_names_of_groups(ask, tmp_path):
    texts = [{"page": i // 2, "text": f"word{i}"} for i in range(4)]
    labels = [{"page": 0, "labels": ["a"]}, {"page": 1, "labels": ["b", "b"]}]
    (found,) = ask(
        "describe", write_lines(tmp_path / "t.jsonl", texts), "--group", "page",
        "--group-labels", write_lines(tmp_path / "l.jsonl", labels),
    )  # fmt: skip
    assert (found["groups"], found["labels"]) == (2, 2)
    assert found["texts_per_group"] == "2 to 2, median 2"


def test_few_groups_give_scores_and_say_so(call, tmp_path):
    file = write_csv(tmp_path / "few.csv", pages(30)[0], "page", "text", "labels")
    out, _ = call("fit", file, "--group", "page", "-o", tmp_path / "m", "--table")
    assert "10 groups of at most 3 texts" in out
    assert "not probabilities, which need at least 50 texts in 20 groups" in out
    assert "umpteen assign" in out
    _, err = call("tune", tmp_path / "m", code=1)
    assert "20 groups" in err


ROWS = [
    {"page": "p1", "text": "one", "labels": ["a"]},
    {"page": "p1", "text": "two", "labels": []},
    {"page": "p2", "text": "three", "labels": ["b"]},
]
IMPOSSIBLE = {
    "no such column": (ROWS, ["--group", "pages"], "did you mean --group 'page'?"),
    "no name": ([*ROWS, {"page": "", "text": "x", "labels": []}], [], "'page' is ''"),
    "no key": ([*ROWS, {"text": "x"}], [], "no 'page' among 'text'"),
    "labels differ": (
        [*ROWS, {"page": "p1", "text": "x", "labels": ["c"]}], [], "sample 3 of group 'p1' has",
    ),
    "count above size": (
        [*ROWS, {"page": "p3", "text": "x", "labels": ["c", "c"]}], [], "'c' is 2 times in group",
    ),
    "no labels": ([{**row, "labels": []} for row in ROWS], [], "no group of .* has labels"),
    "empty": ([], [], "has no texts: expected a line for each text, with its 'page'"),
    "labels of groups only": (ROWS, None, "--group-labels needs --group"),
}  # fmt: skip


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_input_gets_a_sentence(call, tmp_path, case):
    rows, options, message = IMPOSSIBLE[case]
    file = write_lines(tmp_path / "pages.jsonl", rows)
    more = ["--group-labels", file] if options is None else options or ["--group", "page"]
    _, err = call("fit", file, *more, "-o", tmp_path / "m", code=1)
    assert err.count("\n") == 1
    assert re.search(message, err)


GROUP_LABELS = {
    "unknown group": ([{"page": "p1", "labels": ["a"]}], "'p2' is not in --group-labels"),
    "without texts": (
        [{"page": name, "labels": ["a"]} for name in ("p1", "p2", "p3")], "has the group 'p3', but",
    ),
    "twice": ([{"page": "p1", "labels": ["a"]}] * 2, "has the group 'p1' twice"),
    "another column": ([{"side": "p1", "labels": ["a"]}], "name one of these with --group\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", GROUP_LABELS)
def test_labels_of_other_groups_are_refused(call, tmp_path, case):
    labels, message = GROUP_LABELS[case]
    file = write_lines(tmp_path / "pages.jsonl", ROWS)
    given = write_lines(tmp_path / "labels.jsonl", labels)
    _, err = call(
        "fit", file, "--group", "page", "--group-labels", given, "-o", tmp_path / "m", code=1
    )
    assert message in err
    _, err = call("describe", file, "--group", "page", "--group-labels", given, code=1)
    assert message in err


def test_matrices_have_no_groups(call, folder, tmp_path):
    _, err = call("fit", folder / "train.xmc.txt", "--group", "page", "-o", tmp_path / "m", code=1)
    assert "xmc has no option" in err

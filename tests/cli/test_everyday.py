"""What newcomers do on their first day: it works, or says what is the matter."""

import json

import pytest

from umpteen.cli.live import stream_texts
from umpteen.cli.reading import Reading

from .conftest import made_up, run, write_lines
from .test_errors import one_line


def first_labels(records):
    return [[tag["label"] for tag in record["labels"]] for record in records]


def test_answers_can_be_asked_again(call, ask, folder, model, tmp_path):
    call("predict", model, folder / "test.jsonl", "-o", tmp_path / "answers.jsonl")
    again = ask("predict", model, tmp_path / "answers.jsonl")
    assert again == ask("predict", model, folder / "test.jsonl")
    out, _ = run("predict", model, "-", stdin=(tmp_path / "answers.jsonl").read_bytes())
    assert [json.loads(line) for line in out.splitlines()] == again


def test_labels_of_any_kind_do_not_keep_texts_from_answers(call, model, tmp_path):
    (tmp_path / "new.csv").write_text("text,label\na loaf with a crust,x;y\n")
    out, err = call("predict", model, tmp_path / "new.csv", "-k", "1")
    assert first_labels([json.loads(out)]) == [["bread"]]
    assert err == ""


def test_an_array_from_a_file_and_from_stdin(ask, folder, model, tmp_path):
    lines = [json.loads(line) for line in (folder / "test.jsonl").open()]
    content = json.dumps(lines, indent=1)
    (tmp_path / "test.json").write_text(content)
    expected = ask("predict", model, folder / "test.jsonl")
    assert ask("predict", model, tmp_path / "test.json") == expected
    out, _ = run("predict", model, "-", stdin=content.encode())
    assert [json.loads(line) for line in out.splitlines()] == expected


def test_windows_lines_have_no_mark_at_their_end(tmp_path):
    (tmp_path / "new.txt").write_bytes(b"a loaf\r\n\r\nbe\rans\r\n")
    (samples,) = stream_texts(tmp_path / "new.txt", Reading(None, {}))
    assert samples.texts == ["a loaf", "", "be\rans"]


def test_a_wrong_separator_is_said_once(call, tmp_path):
    rows = "".join(f"{item['text']},{'; '.join(item['labels'])}\n" for item in made_up(20))
    (tmp_path / "train.csv").write_text("text,labels\n" + rows)
    _, err = call("convert", tmp_path / "train.csv", tmp_path / "train.jsonl")
    (warning,) = [line for line in err.splitlines() if "warning" in line]
    assert "train.csv" in warning
    assert "--label-separator ';'" in warning


def test_a_spreadsheet(call, model, tmp_path):
    (tmp_path / "new.xlsx").write_bytes(b"PK\x03\x04" + bytes(60))
    for command in ["fit", tmp_path / "new.xlsx", "-o", tmp_path / "m"], ["predict", model]:
        place = [] if "fit" in command else [tmp_path / "new.xlsx"]
        _, err = call(*command, *place, code=1)
        assert "save it as CSV" in one_line(err)


def test_quotation_marks_are_explained_without_python(call, tmp_path):
    (tmp_path / "in.csv").write_text('text,labels\n"a" b,x\n')
    _, err = call("convert", tmp_path / "in.csv", tmp_path / "out.jsonl", code=1)
    assert "quoted=" not in one_line(err)
    assert '""hi""' in err


@pytest.mark.parametrize(
    ("place", "advice"), [("none/report.html", "does not exist"), ("", "is a folder")]
)
def test_the_place_of_a_page_is_looked_at_first(call, model, tmp_path, monkeypatch, place, advice):
    monkeypatch.setattr("umpteen.tagger.Tagger.evaluate", lambda *_, **__: 1 / 0)
    _, err = call("evaluate", model, "any.jsonl", "--html", tmp_path / place, code=1)
    assert advice in one_line(err)


@pytest.mark.parametrize(
    ("percent", "share"), [("70%", "0.7"), ("70 %", "0.7"), ("precision@90%", "precision@0.9")]
)
def test_a_threshold_in_percent(ask, folder, model, percent, share):
    arguments = ["predict", model, folder / "test.jsonl", "--threshold"]
    assert ask(*arguments, percent) == ask(*arguments, share)


def test_tune_in_percent(ask, model, tmp_path):
    (tuned,) = ask("tune", model, "--metric", "recall@80%", "-o", tmp_path / "m")
    assert tuned["metric"] == "recall@0.8"


@pytest.mark.parametrize("threshold", ["f1", "precision@9", "70 percent"])
def test_a_threshold_that_is_none_names_its_option(call, folder, model, threshold):
    _, err = call("predict", model, folder / "test.jsonl", "--threshold", threshold, code=1)
    assert f"--threshold '{threshold}' is not possible" in one_line(err)
    assert "--metric" not in err
    assert "0.7" in err


def test_a_text_in_place_of_a_file_learns_how_to_be_tagged(call, model):
    _, err = call("predict", model, "boil eggs", code=1)
    assert "no file 'boil eggs'; to tag a text, pipe it" in one_line(err)


def test_a_threshold_with_a_decimal_comma_is_no_fault_of_a_small_model(call, tmp_path):
    lines = ['{"text": "bake bread", "labels": ["food"]}', '{"text": "a saw", "labels": ["tools"]}']
    (tmp_path / "two.jsonl").write_text("\n".join(lines))
    call("fit", tmp_path / "two.jsonl", "-o", tmp_path / "m")
    asked = ["predict", tmp_path / "m", tmp_path / "two.jsonl", "--threshold", "0,7"]
    _, err = call(*asked, code=1)
    assert "--threshold '0,7' is not possible; expected a probability such as 0.7" in one_line(err)


@pytest.mark.parametrize(("option", "value"), [("-k", "0"), ("-k", "many"), ("--min-labels", "-1")])
def test_a_wrong_number_names_its_option(folder, model, option, value):
    _, err = run("predict", model, folder / "test.jsonl", option, value, code=2)
    assert f"'{option}'" in err


def test_a_model_of_few_texts_says_why_it_has_no_goals(call, folder, tmp_path):
    few, enough = (write_lines(tmp_path / f"{n}.jsonl", made_up(n)) for n in (49, 50))
    call("fit", few, "-o", tmp_path / "few")
    for command in (
        ["tune", tmp_path / "few"],
        ["predict", tmp_path / "few", few, "--threshold", "precision@0.9"],
    ):
        _, err = call(*command, code=1)
        assert "too few texts for a validation split (it needs 50, and 20 groups" in one_line(err)
        assert "umpteen tune MODEL FILE" in err
        assert "--no-calibrate" not in err
    call("tune", tmp_path / "few", folder / "test.jsonl")
    call("fit", enough, "-o", tmp_path / "enough")
    call("tune", tmp_path / "enough")


def test_a_model_without_probabilities_says_why_it_has_no_goals(call, folder, tmp_path):
    call("fit", folder / "train.jsonl", "-o", tmp_path / "m", "--no-calibrate")
    _, err = call("tune", tmp_path / "m", code=1)
    assert "fitted with --no-calibrate" in one_line(err)


def test_tune_takes_no_matrices(call, folder, model):
    _, err = call("tune", model, folder / "test.svm", code=1)
    assert "learned from texts" in one_line(err)


def test_neighbours_show_where_they_are_cut(call, ask, tmp_path):
    items = [{"text": f"loaf {'crust ' * 20}{i}", "labels": ["bread"]} for i in range(5)]
    call("fit", write_lines(tmp_path / "t.jsonl", items), "-o", tmp_path / "m", "--keep-texts")
    out, _ = call("explain", tmp_path / "m", "loaf crust", "--table")
    shown = [line for line in out.splitlines() if line.startswith("  like ")]
    assert len(shown) == 3
    assert all("…' (bread" in line for line in shown)
    (found,) = ask("explain", tmp_path / "m", "loaf crust")
    assert found["neighbours"][0]["text"] in [item["text"] for item in items]


def test_matrices_give_as_many_numbers_as_texts_give_names(ask, folder, tmp_path):
    rows = "".join(f"{i} {i}:1 25:{i}\n" for i in range(25))
    (tmp_path / "wide.xmc.txt").write_text(f"25 26 25\n{rows}")
    ask("fit", tmp_path / "wide.xmc.txt", "-o", tmp_path / "m")
    for options, expected in ([], 5), (["--threshold", "0"], 20), (["-k", "7"], 7):
        records = ask("predict", tmp_path / "m", tmp_path / "wide.xmc.txt", *options)
        assert max(len(record["labels"]) for record in records) == expected

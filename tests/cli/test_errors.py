"""Errors are one line that says what to do, without a traceback."""

import pytest

from umpteen.cli.errors import in_options

from .conftest import run, write_lines

GOOD = '{"text": "a loaf", "labels": ["bread"]}\n'


def one_line(err):
    assert err.startswith("umpteen: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("name", "content", "options", "advice"),
    [
        ("none.jsonl", None, [], "no file"),
        ("empty.jsonl", "", [], "expected a line for each text"),
        ("empty.csv", "", [], "expected 'text,labels', then a line for each text"),
        ("header.csv", "text,labels\n", [], "header.csv has no texts"),
        ("empty", "", [], "--format"),
        ("notes.txt", "hello\n", [], "--format"),
        ("bare.jsonl", '{"text": "a"}\n', [], "--labels-column"),
        (
            "tags.jsonl",
            '{"text": "a", "label": ["x"]}\n',
            [],
            "did you mean --labels-column 'label'",
        ),
        ("title.csv", "title,labels\na,x\n", [], "--text-column"),
        ("ticket.csv", "ticket,labels\na,x\n", [], "name one of these with --text-column"),
        ("large.csv", "Text,labels\na,x\n", [], "did you mean --text-column 'Text'"),
        ("good.jsonl", GOOD, ["--text-column", "title"], "no 'title' among 'text', 'labels'"),
        ("broken.jsonl", GOOD + "{\n", [], "line 2 (read as jsonl): Expecting property name"),
        (
            "broken.jsonl",
            GOOD + '{"text": \n',
            [],
            "line 2 (read as jsonl): Expecting value in column 10;",
        ),
        (
            "array.json",
            '[{"text": "a",\n "labels": x}]',
            [],
            "line 2 (read as jsonl): Expecting value",
        ),
        ("good.jsonl", GOOD, ["--zero-based"], "jsonl has no option '--zero-based'"),
        ("good.jsonl", GOOD, ["--max-memory", "much"], "4GB"),
        ("good.jsonl", GOOD, ["--jobs", "0"], "--jobs"),
        ("good.jsonl", GOOD, ["--language", "xx"], "--language 'xx' has no stemmer"),
        ("good.jsonl", GOOD, ["--language", "xx"], "'auto', or none to leave words"),
        ("good.jsonl", GOOD, ["--vocabulary", "none.jsonl"], "none.jsonl"),
        ("m.xmc.txt", "2 1 2\n0 0:1\n1 0:2\n", ["--keep-texts"], "--keep-texts"),
        ("m.xmc.txt", "2 1 2\n0 0:1\n1 0:2\n", ["--no-label-names"], "--no-label-names"),
        ("good.jsonl", GOOD, ["--no-label-names", "--label-texts", "x"], "nothing but names"),
    ],
)
def test_fit_refuses(call, tmp_path, name, content, options, advice):
    file = tmp_path / name
    if content is not None:
        file.write_text(content)
    out, err = call("fit", file, "-o", tmp_path / "m", *options, code=1)
    assert advice in one_line(err)
    assert out == ""
    assert not (tmp_path / "m").exists()


def test_fit_refuses_a_place_before_it_reads(call, tmp_path):
    (tmp_path / "thesis.doc").write_text("precious")
    _, err = call("fit", tmp_path / "none.jsonl", "-o", tmp_path, code=1)
    assert "thesis.doc" in one_line(err)
    _, err = call("fit", tmp_path / "none.jsonl", "-o", tmp_path / "thesis.doc" / "m", code=1)
    assert "is a file" in one_line(err)


def test_a_checkpoint_needs_a_cluster(call, folder, tmp_path):
    arguments = ["fit", folder / "train.jsonl", "-o", tmp_path / "m", "--checkpoint", tmp_path]
    _, err = call(*arguments, code=1)
    assert "--checkpoint needs --cluster" in one_line(err)


@pytest.mark.parametrize("option", ["--scratch", "--checkpoint"])
@pytest.mark.parametrize("place", ["m", "m/inside", "m/../m"])
def test_the_folder_of_the_model_is_for_the_model_only(call, folder, tmp_path, option, place):
    """Or hours of training end with an error when the model is saved."""
    arguments = ["fit", folder / "train.jsonl", "-o", tmp_path / "m", option, tmp_path / place]
    more = ["--cluster", "local"] if option == "--checkpoint" else []
    err = call(*arguments, *more, code=1)[1]
    assert "is in the folder of the model" in one_line(err)
    assert not (tmp_path / "m").exists()


def test_scratch_for_matrices_needs_a_cluster(call, folder, tmp_path):
    """It would keep nothing in files, although the person counts on it."""
    arguments = ["fit", folder / "train.xmc.txt", "-o", tmp_path / "m", "--scratch", tmp_path / "s"]
    _, err = call(*arguments, code=1)
    assert "leave out --scratch, or use --cluster" in one_line(err)
    assert not (tmp_path / "m").exists()


def test_a_cluster_that_is_not_there_is_named(call, folder, tmp_path):
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    arguments = ["fit", folder / "train.jsonl", "-o", tmp_path / "m", "--cluster", "127.0.0.1:1"]
    _, err = call(*arguments, code=1)
    assert "nothing answers at '127.0.0.1:1'" in one_line(err)
    assert not (tmp_path / "m").exists()


def test_max_memory_names_the_knobs(call, folder, tmp_path):
    arguments = ["fit", folder / "train.jsonl", "-o", tmp_path / "m", "--max-memory", "1kB"]
    _, err = call(*arguments, code=1)
    assert "--max-memory allows 1 KB" in one_line(err)
    assert "--prune" in err


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["predict", "{folder}/none", "-"], "make one: umpteen fit"),
        (["predict", "{folder}", "-"], "holds no manifest.json"),
        (["predict", "{folder}/test.jsonl", "{model}"], "as `umpteen fit` makes it"),
        (["predict", "{model}", "{folder}/none.jsonl"], "no file"),
        (["predict", "{model}", "{folder}/train.xmc.txt"], "--format lines"),
        (["predict", "{model}", "{folder}/test.jsonl", "--threshold", "tuned"], "umpteen tune"),
        (["predict", "{model}", "{folder}/test.jsonl", "--threshold", "7"], "between 0 and 1"),
        (["predict", "{matrix}", "{folder}/test.jsonl"], "learned from matrices"),
        (["predict", "{matrix}", "{folder}/test.svm", "--threshold", "tuned"], "a score"),
        (["evaluate", "{model}", "{folder}/test.svm"], "learned from texts"),
        (["evaluate", "{matrix}", "{folder}/test.jsonl"], "learned from matrices"),
        (["explain", "{matrix}", "a loaf"], "needs a model of texts"),
        (["explain", "{model}", "a loaf", "--label", "breed"], "did you mean 'bread'?"),
        (["explain", "{model}", "xyzzy"], "has no word of the vocabulary"),
        (["explain", "{model}", " "], "no text to explain"),
        (["describe", "{folder}/none"], "no file"),
        (["describe", "{folder}"], ""),
        (["tune", "{model}", "--metric", "f1"], "micro_f1"),
        (["add-labels", "{model}", "{folder}/test.jsonl"], "use umpteen update"),
        (["remove-labels", "{model}", "breed"], "did you mean 'bread'?"),
        (["remove-labels", "{matrix}", "bread"], "not a label id"),
        (["fit", "{folder}/test.svm", "--stream", "-o", "{folder}/m"], "leave out --stream"),
        (
            ["convert", "{folder}/test.jsonl", "{folder}/test.doc"],
            "a format with --to, one of",
        ),
        (["convert", "{folder}/test.jsonl", "{folder}/none/out.csv"], "does not exist"),
    ],
)
def test_one_line_that_says_what_to_do(call, folder, model, matrix_model, arguments, advice):
    filled = [a.format(folder=folder, model=model, matrix=matrix_model) for a in arguments]
    if arguments == ["describe", "{folder}"]:
        (folder / "nothing").mkdir(exist_ok=True)
        filled, advice = ["describe", folder / "nothing"], "neither a model"
    _, err = call(*filled, code=1)
    assert advice in one_line(err)


def test_answers_never_replace_the_texts(call, model, tmp_path):
    texts = tmp_path / "new.jsonl"
    texts.write_text(GOOD)
    (tmp_path / "link.jsonl").symlink_to(texts)
    for output in (texts, tmp_path / "link.jsonl"):
        _, err = call("predict", model, texts, "-o", output, code=1)
        assert "would replace the texts" in one_line(err)
        _, err = call("assign", model, texts, "--group", "page", "-o", output, code=1)
        assert "would replace the texts" in one_line(err)
    assert texts.read_text() == GOOD


def test_a_file_of_answers_is_what_its_name_says(call, model, tmp_path):
    texts = tmp_path / "new.jsonl"
    texts.write_text(GOOD)
    _, err = call("predict", model, texts, "-o", tmp_path / "answers.csv.gz", code=1)
    assert f"name it {tmp_path / 'answers.jsonl.gz'}" in one_line(err)
    call("predict", model, texts, "-o", tmp_path / "answers.txt")
    assert "bread" in (tmp_path / "answers.txt").read_text()


def test_a_broken_line_of_stdin_is_numbered_from_its_beginning(model):
    _, err = run("predict", model, "-", stdin=(GOOD * 3 + "{oops\n").encode(), code=1)
    assert "line 4" in one_line(err)


def test_the_traceback_is_there_for_who_asks(call, tmp_path, monkeypatch):
    _, err = call("describe", tmp_path / "none", "--traceback", code=1)
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("umpteen: error: no file")


def test_a_bug_is_one_line_too(call, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("umpteen.tagger.Tagger.fit", lambda *_: 1 / 0)
    _, err = call("fit", folder / "train.jsonl", "-o", tmp_path / "m", code=1)
    assert "ZeroDivisionError" in one_line(err)
    assert "--traceback" in err


def test_the_librarys_words_become_options():
    assert in_options("name a format with format=, one of csv") == (
        "name a format with --format, one of csv"
    )
    assert (
        in_options("of none of the formats: lower `n_jobs`")
        == "of none of the formats: lower --jobs"
    )
    assert in_options("k=0 is not") == "-k 0 is not"
    assert in_options("rank=3, task='x'") == "rank=3, task='x'"


def test_add_labels_needs_names(call, model, tmp_path):
    file = write_lines(tmp_path / "new.jsonl", [{"text": "brine"}])
    _, err = call("add-labels", model, file, code=1)
    assert "has no labels" in one_line(err)

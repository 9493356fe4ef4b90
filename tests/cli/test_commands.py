"""What each command does for a person with files."""

import csv
import gzip
import json
import shutil

import pytest

import umpteen as um

from .conftest import made_up, write_lines


@pytest.fixture
def own_model(model, tmp_path):
    """A copy that may be changed."""
    return shutil.copytree(model, tmp_path / "model")


def texts_of(folder):
    return [json.loads(line)["text"] for line in (folder / "test.jsonl").open()]


def test_fit_tells_what_it_made(call, ask, folder, tmp_path):
    (record,) = ask("fit", folder / "train.jsonl", "-o", tmp_path / "m", "--trees", "2")
    assert (record["samples"], record["labels"]) == (300, 6)
    assert record["first_label_right"] > 0.9
    files = [path.stat().st_size for path in (tmp_path / "m").iterdir()]
    assert record["bytes"] == sum(files)
    assert um.load(tmp_path / "m").classifier_.n_trees == 2


def test_fit_on_a_terminal_says_what_to_do_next(call, folder, tmp_path):
    out, _ = call("fit", folder / "train.jsonl", "-o", tmp_path / "m", "--no-calibrate", "--table")
    assert f"umpteen predict {tmp_path}/m" in out
    assert "300" in out
    assert um.load(tmp_path / "m").calibration_ is None


def test_fit_says_that_scores_of_few_texts_are_no_probabilities(call, tmp_path):
    lines = [json.dumps({"text": f"word{i % 3}", "labels": [str(i % 3)]}) for i in range(49)]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    out, _ = call("fit", tmp_path / "few.jsonl", "-o", tmp_path / "m", "--table")
    assert "not probabilities, which need at least 50 texts" in out


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "ft", "jsonl.xz"])
def test_every_format_gives_the_same_model(ask, folder, model, tmp_path, kind):
    file = tmp_path / f"train.{kind}"
    um.data.write(um.data.read(folder / "train.jsonl"), file)
    ask("fit", file, "-o", tmp_path / "m")
    texts = texts_of(folder)
    assert um.load(tmp_path / "m").predict(texts) == um.load(model).predict(texts)


def test_columns_of_other_names(ask, tmp_path):
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "tags"])
        for item in made_up(80):
            writer.writerow([item["text"], ";".join(item["labels"])])
    (record,) = ask(
        "fit", tmp_path / "train.csv", "-o", tmp_path / "m", "--text-column", "title",
        "--labels-column", "tags", "--label-separator", ";",
    )  # fmt: skip
    assert record["labels"] == 6


def test_label_texts_reach_labels_without_samples(ask, folder, tmp_path):
    file = write_lines(tmp_path / "labels.jsonl", [{"label": "jars", "text": "lid jar bowl"}])
    (record,) = ask("fit", folder / "train.jsonl", "-o", tmp_path / "m", "--label-texts", file)
    assert record["labels"] == 7


@pytest.mark.parametrize("no_names", [False, True])
def test_label_names_are_used_unless_they_are_not_wanted(ask, tmp_path, no_names):
    """With 500 texts or more, a tree would try them on its validation split."""
    file = write_lines(tmp_path / "train.jsonl", made_up(500))
    ask("fit", file, "-o", tmp_path / "m", *["--no-label-names"] * no_names, "--language", "none")
    assert (um.load(tmp_path / "m").classifier_.label_texts_ is None) == no_names


@pytest.fixture(scope="module")
def cookery(tmp_path_factory):
    """Names and broader labels of the cookery data."""
    concepts = [{"label": "food", "name": "something to eat"}, {"label": "jars", "name": "pickles"}]
    concepts += [{"label": label, "parents": ["food"]} for label in ("bread", "soup")]
    return write_lines(tmp_path_factory.mktemp("vocabulary") / "vocab.jsonl", concepts)


def test_a_vocabulary_and_a_language(ask, folder, cookery, tmp_path):
    model = tmp_path / "m"
    (record,) = ask(
        "fit", folder / "train.jsonl", "-o", model, "--vocabulary", cookery, "--language", "en"
    )
    assert record["labels"] == 8
    for broader in ("add", "keep", "drop"):
        records = ask("predict", model, folder / "test.jsonl", "-k", "1", "--broader", broader)
        found = [{tag["label"] for tag in record["labels"]} for record in records]
        assert any({"bread", "soup"} & labels for labels in found)
        for labels in found:
            assert ("food" in labels) == (broader == "add" and bool({"bread", "soup"} & labels))


@pytest.mark.parametrize(("language", "name"), [("en", "soup"), ("fi", "keitto"), ("sv", "soup")])
def test_names_of_a_vocabulary_are_in_the_language_of_the_texts(
    ask, folder, tmp_path, language, name
):
    file = tmp_path / "names.csv"
    file.write_text("uri,label_en,label_fi\nsoup,soup,keitto\nbread,bread,\n")
    ask("fit", folder / "train.jsonl", "-o", tmp_path / "m", "--vocabulary", file,
        "--language", language, "--no-calibrate")  # fmt: skip
    assert um.load(tmp_path / "m").vocabulary_["soup"].name == name


def test_a_hierarchy_is_asked_for_where_there_is_none(call, folder, model):
    _, err = call("predict", model, folder / "test.jsonl", "--broader", "add", code=1)
    assert err.startswith("umpteen: error: ")
    assert "no hierarchy of labels" in err
    assert "Traceback" not in err


def test_predict_is_what_the_tagger_says(ask, folder, model):
    records = ask("predict", model, folder / "test.jsonl", "-k", "3")
    expected = um.load(model).predict(texts_of(folder), k=3)
    assert [r["id"] for r in records] == [f"t{i}" for i in range(40)]
    assert [r["text"] for r in records] == texts_of(folder)
    given = [[(tag["label"], tag["score"]) for tag in r["labels"]] for r in records]
    assert given == expected


@pytest.mark.parametrize("threshold", ["0.7", "precision@0.9", "micro_f1"])
def test_predict_by_threshold(ask, folder, model, threshold):
    records = ask("predict", model, folder / "test.jsonl", "--threshold", threshold)
    choice = float(threshold) if threshold == "0.7" else threshold
    expected = um.load(model).predict(texts_of(folder), threshold=choice)
    assert [[tag["label"] for tag in r["labels"]] for r in records] == [
        [name for name, _ in tags] for tags in expected
    ]


def test_predict_plain_lines_of_a_file(ask, model, tmp_path):
    (tmp_path / "new.txt").write_text("a loaf with a crust\n\nespresso beans\n")
    records = ask("predict", model, tmp_path / "new.txt", "-k", "1")
    assert [[tag["label"] for tag in r["labels"]] for r in records] == [["bread"], [], ["coffee"]]


def test_predict_into_a_file(call, folder, model, tmp_path):
    out, _ = call(
        "predict", model, folder / "test.jsonl", "-o", tmp_path / "out.jsonl.gz", "--no-text"
    )
    assert out == ""
    with gzip.open(tmp_path / "out.jsonl.gz", "rt") as file:
        records = [json.loads(line) for line in file]
    assert len(records) == 40
    assert set(records[0]) == {"id", "labels"}


def test_predict_as_a_table(call, model, tmp_path):
    (tmp_path / "new.txt").write_text("a loaf\x1b[31m with a crust\nxyzzy\n")
    out, _ = call("predict", model, tmp_path / "new.txt", "-k", "1", "--table")
    head, first, second = out.splitlines()
    assert head.split() == ["text", "score", "label"]
    assert first.startswith("a loaf [31m with a crust")
    assert first.endswith("bread")
    assert second.split() == ["xyzzy", "-"]
    out, _ = call("predict", model, tmp_path / "none.txt", "--table", code=1)
    assert out == ""


def test_evaluate(call, ask, folder, model, tmp_path):
    (report,) = ask("evaluate", model, folder / "test.jsonl", "--html", tmp_path / "report.html")
    assert report["metrics"]["precision@1"] > 0.9
    assert "<html" in (tmp_path / "report.html").read_text()
    out, _ = call("evaluate", model, folder / "test.jsonl", "--table")
    assert "precision" in out
    assert "nDCG" in out


def test_explain(call, ask, model):
    (found,) = ask("explain", model, "a loaf with a crust")
    assert found["label"] == "bread"
    assert {word for word, _ in found["words"]} >= {"loaf", "crust"}
    assert found["neighbours"]
    (other,) = ask("explain", model, "a loaf with a crust", "--label", "soup")
    assert other["label"] == "soup"
    out, _ = call("explain", model, "a loaf with a crust", "--table")
    assert out.startswith("bread")


def test_describe_a_file(call, ask, folder):
    (found,) = ask("describe", folder / "train.jsonl")
    assert found["n_labels"] == 6
    out, _ = call("describe", folder / "train.jsonl", "--table")
    assert "labels per sample" in out


def test_describe_a_folder_of_data(ask, folder, tmp_path):
    place = tmp_path / "cookery"
    place.mkdir()
    for name in ("train.jsonl", "test.jsonl"):
        shutil.copy(folder / name, place)
    (found,) = ask("describe", place)
    assert set(found["splits"]) == {"train", "test"}


def test_describe_a_model(ask, model):
    (found,) = ask("describe", model)
    assert (found["labels"], found["samples"], found["calibrated"]) == (6, 300, True)
    assert found["versions"]["umpteen"] == um.__version__


def test_tune_is_kept_in_the_model(ask, folder, own_model):
    (tuned,) = ask("tune", own_model, "--metric", "precision@0.9")
    assert tuned["reached"] >= 0.9
    assert um.load(own_model).thresholds_.metric == "precision@0.9"
    records = ask("predict", own_model, folder / "test.jsonl", "--threshold", "tuned")
    assert all(tag["score"] >= tuned["threshold"] - 1e-4 for r in records for tag in r["labels"])


def test_tune_on_other_texts_into_another_folder(ask, folder, own_model, tmp_path):
    ask("tune", own_model, folder / "test.jsonl", "-o", tmp_path / "tuned")
    assert um.load(own_model).thresholds_ is None
    assert um.load(tmp_path / "tuned").thresholds_.metric == "micro_f1"


def test_add_labels(call, folder, own_model, tmp_path):
    new = [
        {"text": "salt brine crock kraut", "labels": ["fermenting", "bread"]},
        {"text": "crock of kraut in brine", "labels": ["fermenting"]},
        {"text": "how about charcoal brine kraut", "labels": ["fermenting"]},
    ]
    out, err = call("add-labels", own_model, write_lines(tmp_path / "new.jsonl", new))
    assert json.loads(out)["labels"] == 7
    assert "skipped labels that the model has: 1, such as 'bread'" in err
    assert "fermenting" in um.load(own_model).label_names_.ids


def test_add_labels_says_when_to_fit_again(call, own_model, tmp_path):
    new = [{"text": f"charcoal smoke {i}", "labels": [f"new{i}"]} for i in range(4)]
    _, err = call("add-labels", own_model, write_lines(tmp_path / "new.jsonl", new))
    assert "umpteen: warning: 4 of 10 labels were added" in err


def test_remove_labels(ask, folder, own_model):
    ask("remove-labels", own_model, "bread", "soup")
    records = ask("predict", own_model, folder / "test.jsonl", "-k", "6")
    given = {tag["label"] for r in records for tag in r["labels"]}
    assert given == {"cheese", "grilling", "knives", "coffee"}


def test_estimate(call, ask, folder):
    (found,) = ask("estimate", folder / "train.jsonl")
    assert found["memory"] > found["model_size"] > 0
    out, _ = call("estimate", folder / "train.jsonl", "--table")
    assert "classifier on disk" in out


def test_matrices_give_numbers(ask, folder, matrix_model):
    records = ask("predict", matrix_model, folder / "test.svm", "-k", "1")
    assert [r["labels"][0]["label"] for r in records] == [0, 1]
    assert "text" not in records[0]
    (report,) = ask("evaluate", matrix_model, folder / "test.svm")
    assert report["metrics"]["precision@1"] == 1
    (found,) = ask("describe", matrix_model)
    assert (found["labels"], found["features"]) == (3, 4)
    (found,) = ask("estimate", folder / "train.xmc.txt")
    assert found["model_size"] > 0


def test_features_of_svmlight_may_begin_at_0(ask, matrix_model, tmp_path):
    (tmp_path / "x.svm").write_text("1:1\n2:1\n")
    for option, expected in ((), [0, 1]), (("--zero-based",), [1, 2]):
        records = ask("predict", matrix_model, tmp_path / "x.svm", "-k", "1", *option)
        assert [r["labels"][0]["label"] for r in records] == expected


def test_matrices_forget_numbers(ask, folder, matrix_model, tmp_path):
    ask("remove-labels", matrix_model, "0", "-o", tmp_path / "m")
    records = ask("predict", tmp_path / "m", folder / "test.svm", "-k", "3")
    assert all(tag["label"] != 0 for r in records for tag in r["labels"])


def test_update_learns_from_more_texts(ask, own_model, tmp_path):
    lines = [{"text": f"quokka wombat {i}", "labels": ["animals", "bread"]} for i in range(5)]
    write_lines(tmp_path / "more.jsonl", lines)
    (record,) = ask("update", own_model, tmp_path / "more.jsonl")
    assert (record["texts"], record["new labels"]) == (5, 1)
    assert "animals" in um.load(own_model).label_names_.ids


def about_numpy(name):
    """What the demo loads, without the other libraries, for the sake of time."""
    data = um.data.load(name)
    parts = []
    for part in (data.train, data.dev, data.test):
        names = [[each for each in own if each.startswith("numpy.")] for own in part.labels]
        rows = [row for row, own in enumerate(names) if own]
        parts.append(
            um.data.Samples([part.texts[row] for row in rows], [names[row] for row in rows])
        )
    texts = dict(zip(data.label_names, data.label_texts, strict=True))
    kept = {name: texts[name] for own in parts[0].labels for name in own}
    return um.data.Dataset.from_samples(*parts, label_texts=kept, name=name)


def test_the_demo_leaves_a_model_and_a_report(call, tmp_path, monkeypatch):
    """`make demo` runs it on all of its data."""
    monkeypatch.setattr("umpteen.demo.load", about_numpy)
    out, _ = call("demo", "-o", tmp_path / "demo")
    assert "numpy.std" in out
    assert "What next" in out
    assert "<svg" in (tmp_path / "demo" / "report.html").read_text()
    tagger = um.load(tmp_path / "demo" / "model")
    assert tagger.predict("standard deviation along an axis", k=1)[0][0] == "numpy.std"

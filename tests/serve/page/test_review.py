"""Reviewing: nothing that a person decides gets lost, and keys do what they say."""

import csv
import io
import itertools
import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umpteen as um
from tests.serve.page import kitchen

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

TEXTS = kitchen.new_questions()[:6]


@pytest.fixture
def review(person, tmp_path):
    """A page with six texts to review, and the corrections that it sends."""
    sent = []
    person.context.route("**/learn", lambda route: _record(route, sent))
    page = person.open("review")
    page.set_input_files("#files", _jsonl(tmp_path / "queue.jsonl", TEXTS))
    shows(page, TEXTS[0])
    return SimpleNamespace(page=page, sent=sent, person=person)


def _record(route, sent):
    items = route.request.post_data_json["items"]
    sent.extend(items)
    route.fulfill(json={"recorded": len(items)})


def _jsonl(file, texts):
    lines = [json.dumps({"id": f"q{i}", "text": text}) for i, text in enumerate(texts)]
    file.write_text("\n".join(lines), "utf-8")
    return file


def shows(page, text):
    expect(page.locator("#item-text")).to_have_text(text)
    page.wait_for_selector("#review-labels input")


def checked(page):
    boxes = page.locator("#review-labels input:checked")
    return boxes.evaluate_all("boxes => boxes.map(box => box.value)")  # all at one moment


def accept(page, before, after):
    shows(page, before)
    page.keyboard.press("Enter")
    shows(page, after)


def test_enter_accepts_the_confident_labels_and_goes_on(review):
    page = review.page
    page.evaluate("localStorage.setItem('umpteen.threshold.kitchen', 0.2)")
    page.reload()
    shows(page, TEXTS[0])
    rows = page.locator("#review-labels li")
    names = [row.locator("input").input_value() for row in rows.all()
             if int(row.locator(".number").inner_text().split()[0].strip("<")) >= 20]  # fmt: skip
    assert checked(page) == names
    accept(page, *TEXTS[:2])
    accept(page, *TEXTS[1:3])
    expect(page.locator("#sent")).to_contain_text("1 decision sent")
    assert [item["labels"] for item in review.sent] == [names]
    assert review.sent[0] == {"id": "q0", "text": TEXTS[0], "labels": names, "suggested": names}


def test_number_keys_toggle(review):
    page = review.page
    before = checked(page)
    second = page.locator("#review-labels input").nth(1).input_value()
    page.keyboard.press("2")
    assert set(checked(page)) == set(before) ^ {second}
    page.keyboard.press("2")
    assert checked(page) == before


def test_undo_brings_back_what_was_decided_before_it_is_sent(review):
    page = review.page
    page.keyboard.press("3")
    chosen = checked(page)
    accept(page, *TEXTS[:2])
    page.keyboard.press("u")
    shows(page, TEXTS[0])
    assert checked(page) == chosen
    page.keyboard.press("3")
    corrected = checked(page)
    accept(page, *TEXTS[:2])
    accept(page, *TEXTS[1:3])
    expect(page.locator("#sent")).to_contain_text("1 decision sent")
    assert [item["labels"] for item in review.sent] == [corrected]


def test_a_held_key_does_not_accept_texts_that_nobody_read(review):
    page = review.page
    page.evaluate(
        """for (const repeat of [false, false, true, true])
             document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', repeat}))"""
        .replace("document.dispatch", "document.body.dispatch")
        .replace("repeat}", "repeat, bubbles: true}")
    )  # fmt: skip
    shows(page, TEXTS[1])
    expect(page.locator("#figures")).to_contain_text("1 of 6")


def test_a_closed_tab_loses_nothing(review):
    page = review.page
    accept(page, *TEXTS[:2])
    page.keyboard.press("s")
    shows(page, TEXTS[2])
    page.close()
    page = review.person.open("review")
    shows(page, TEXTS[2])
    expect(page.locator("#figures")).to_contain_text("1 of 6")
    page.keyboard.press("u")
    shows(page, TEXTS[0])


def test_decisions_wait_while_the_server_is_away_and_are_sent_later(review):
    page, context = review.page, review.person.context
    context.route("**/learn", lambda route: route.abort())
    accept(page, *TEXTS[:2])
    accept(page, *TEXTS[1:3])
    expect(page.locator("#sent")).to_contain_text("The server does not respond")
    context.unroute("**/learn")
    context.route("**/learn", lambda route: _record(route, review.sent))
    page.reload()
    shows(page, TEXTS[2])
    expect(page.locator("#sent")).to_contain_text("2 decisions sent")
    assert [item["id"] for item in review.sent] == ["q0", "q1"]
    review.person.problems.clear()  # the browser logs what was aborted


def test_all_decisions_can_be_downloaded_and_learned_from(review, tmp_path):
    page = review.page
    page.keyboard.press("n")
    page.keyboard.type("a label, “new”")
    page.keyboard.press("Enter")
    expect(page.locator("#review-labels")).to_contain_text("a label, “new”")
    accept(page, *TEXTS[:2])
    accept(page, *TEXTS[1:3])
    with page.expect_download() as started:
        page.click("#download")
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    samples = um.data.read(file)
    assert samples.texts == TEXTS[:2]
    assert "a label, “new”" in samples.labels[0]


def test_labels_stay_in_sight_beside_a_long_text_and_the_next_one_starts_at_its_top(
    person, tmp_path
):
    page = person.open("review")
    page.set_input_files("#files", _jsonl(tmp_path / "long.jsonl", ["salmon\n" * 200, TEXTS[0]]))
    page.wait_for_selector("#review-labels input")
    page.mouse.wheel(0, 2000)
    expect(page.locator("#item-caption")).not_to_be_in_viewport()
    expect(page.locator("#accept")).to_be_in_viewport()
    page.keyboard.press("Enter")
    shows(page, TEXTS[0])
    assert page.evaluate("scrollY") == 0


def test_the_least_certain_texts_come_first_if_wanted(review):
    page = review.page
    answer = page.request.post(
        f"{page.url.split('#')[0]}v1/kitchen/suggest", data={"texts": TEXTS, "k": 9}
    ).json()
    spread = [sum(one["probability"] * (1 - one["probability"]) for one in result["labels"])
              for result in answer["results"]]  # fmt: skip
    order = sorted(range(len(TEXTS)), key=lambda i: (-spread[i], i))
    page.check("#uncertain")
    page.locator("#item").focus()
    for one, other in itertools.pairwise(order):
        accept(page, TEXTS[one], TEXTS[other])


def test_single_keys_can_be_turned_off_and_enter_still_works(review):
    page = review.page
    before = checked(page)
    page.uncheck("#shortcuts")
    for key in ("1", "/", "n", "s"):
        page.keyboard.press(key)
    assert checked(page) == before
    shows(page, TEXTS[0])
    expect(page.locator("dialog[open]")).to_have_count(0)
    accept(page, *TEXTS[:2])


def test_labels_of_the_file_are_what_is_reviewed(person, tmp_path):
    page = person.open("review")
    file = tmp_path / "given.csv"
    file.write_text("text;labels\nWhich pan for risotto?;rice | own label\n", "utf-8")
    page.set_input_files("#files", file)
    page.wait_for_selector("#review-labels input")
    assert sorted(checked(page)) == ["own label", "rice"]


def test_a_text_in_each_file_of_a_folder(person, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, text in enumerate(TEXTS[:2]):
        (folder / f"{i}.txt").write_text(text, "utf-8")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    page = person.open("review")
    page.set_input_files("#folder", folder)
    expect(page.locator("#figures")).to_contain_text("0 of 2")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.jsonl", '{"text": "a"}\n{"text": ', "Cannot read bad.jsonl: line 2 is not JSON"),
        ("bad.jsonl", '{"body": "a"}', 'line 1 has no "text"'),
        ("bad.csv", "title,body\na,b\n", 'the columns are title, body; expected a column "text"'),
        ("bad.pdf", "%PDF", "None of these files ends in .jsonl"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(person, tmp_path, name, content, message):
    (tmp_path / name).write_text(content, "utf-8")
    page = person.open("review")
    page.set_input_files("#files", tmp_path / name)
    expect(page.locator("#alert")).to_contain_text(message)
    expect(page.locator("#start")).to_be_visible()


@pytest.fixture(scope="module")
def modules(browser, server):
    """A page that runs functions of the modules: `run(module, function, *arguments)`."""
    page = browser.new_page()
    page.goto(server)

    def run(module, function, *arguments):
        script = "([m, f, a]) => import(`./page/${m}`).then((loaded) => loaded[f](...a))"
        return page.evaluate(script, [module, function, list(arguments)])

    yield run
    page.close()


CELLS = st.text(st.sampled_from('a"b,;|\n\t é😀'), max_size=8)


@settings(max_examples=30)
@given(st.lists(st.tuples(CELLS.filter(str.strip), CELLS), max_size=5), st.sampled_from(",;\t"))
def test_csv_is_read_as_python_writes_it(modules, rows, delimiter):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerows([("text", "id"), *rows])
    read = modules("files.js", "csv", file.getvalue())
    assert [(row["text"], row["id"]) for row in read] == rows


LABELS = st.lists(st.sampled_from("abcde"), unique=True)


@settings(max_examples=30)
@given(LABELS, LABELS)
def test_agreement_is_the_jaccard_index(modules, labels, suggested):
    both, either = set(labels) & set(suggested), set(labels) | set(suggested)
    found = modules("queue.js", "agreement", {"labels": labels, "suggested": suggested})
    assert found == (len(both) / len(either) if either else 1)

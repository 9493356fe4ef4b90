"""What everybody needs of the page: readable, accessible, light, private."""

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from tests.serve.page import kitchen

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

PAGE = Path(str(files("umpteen"))) / "serve" / "page"
TEXT = "How long does salmon keep in the fridge, and which jar is best?"
VIEWS = ("try", "review", "model")


def fill(page, text=TEXT):
    page.fill("#text", text)
    page.wait_for_selector("#try-labels li")
    page.wait_for_selector("#why mark, #why li")


def fill_review(page, tmp_path):
    for i, text in enumerate(kitchen.new_questions()[:4]):
        (tmp_path / f"{i}.txt").write_text(text, "utf-8")
    page.set_input_files("#files", sorted(tmp_path.glob("*.txt")))
    page.wait_for_selector("#review-labels input")


def test_labels_words_and_training_texts_appear(person):
    page = person.open()
    fill(page)
    assert "fish" in page.locator("#try-labels .name").all_text_contents()
    page.locator("[data-label=storage]").hover()
    expect(page.locator("#why h2")).to_contain_text("Why storage at")
    expect(page.locator("#mirror mark.for3").first).to_be_attached()
    assert "keep" in " ".join(page.locator("#mirror mark").all_text_contents())
    page.locator("[data-label=fish]").focus()
    expect(page.locator("#why h2")).to_contain_text("Why fish at")
    expect(page.locator(".nearest li").first).to_contain_text("salmon")


def test_marks_stand_at_their_words_after_characters_beyond_16_bits(person):
    page = person.open()
    fill(page, "😀🍣😀 salmon fillet, 🐟 fridge")
    page.locator("[data-label=fish]").hover()
    expect(page.locator("#why h2")).to_contain_text("Why fish at")
    marked = page.locator("#mirror mark").all_text_contents()
    assert marked
    assert all(re.fullmatch(r"[a-z][a-z ,🐟]*[a-z]", words) for words in marked), marked


def test_the_slider_tells_what_the_server_expects(person):
    page = person.open()
    fill(page)
    known = page.request.get(f"{page.url.split('#')[0]}v1/kitchen").json()["threshold_curve"]
    slider = page.locator("#try-threshold input")
    for threshold in (0.1, 0.35):
        slider.fill(str(threshold))
        point = max((p for p in known if p["threshold"] <= threshold), key=lambda p: p["threshold"])
        wanted = f"expected precision {round(100 * point['precision'])}\u00a0%"
        expect(page.locator("#try-threshold .expectation")).to_contain_text(wanted)
        assert f"{round(100 * threshold)}\u00a0%" in slider.get_attribute("aria-valuetext")
        confident = page.locator("#try-labels li:not(.unsure) .number").all_text_contents()
        shown = [int(text.strip("<\u00a0%")) for text in confident]
        assert shown
        assert min(shown) >= 100 * threshold - 0.5


def test_texts_and_labels_are_never_html(person, tmp_path):
    page = person.open()
    evil = "<img src=x onerror=alert(1)> salmon <b>fillet</b>"
    fill(page, evil)
    assert page.locator("#mirror img, #mirror b").count() == 0
    page.goto(page.url.split("#")[0] + "#review")
    (tmp_path / "evil.txt").write_text(evil, "utf-8")
    page.set_input_files("#files", tmp_path / "evil.txt")
    expect(page.locator("#item-text")).to_have_text(evil)
    page.wait_for_selector("#review-labels input")
    page.keyboard.press("n")
    page.keyboard.type("<i>label</i>")
    expect(page.locator("[role=option]").first).to_contain_text("<i>label</i>")
    page.keyboard.press("Enter")
    expect(page.locator("#review-labels")).to_contain_text("<i>label</i>")
    assert page.locator("main i").count() == 0


def test_a_key_is_asked_for_once_and_a_wrong_one_again(person):
    def guard(route):
        if route.request.headers.get("authorization") == "Bearer right-key":
            route.continue_()
        else:
            route.fulfill(status=401, json={"detail": "this needs a key"})

    person.context.route("**/v1**", guard)
    page = person.context.new_page()
    page.goto(person.address)
    for key in ("wrong-key", "right-key"):
        expect(page.locator("#key")).to_be_visible()
        page.fill("#key-text", key)
        page.keyboard.press("Enter")
    fill(page)
    page.reload()
    page.wait_for_selector("#try-labels li")
    person.problems.clear()  # the browser logs every 401


def test_an_error_of_the_server_is_shown(person):
    page = person.open()
    refusal = {"detail": "this text is too long"}
    person.context.route("**/suggest", lambda route: route.fulfill(status=413, json=refusal))
    page.fill("#text", TEXT)
    expect(page.locator("#alert")).to_have_text("this text is too long")
    person.problems.clear()


def test_a_busy_server_is_asked_again(person):
    answers = [429]

    def busy_once(route):
        if answers:
            route.fulfill(status=answers.pop(), headers={"Retry-After": "1"}, json={})
        else:
            route.continue_()

    person.context.route("**/suggest", busy_once)
    page = person.open()
    fill(page)
    person.problems.clear()


def test_the_page_asks_no_other_host(person, tmp_path):
    page = person.open()
    fill(page)
    page.click("text=Model")
    page.click("text=Review")
    fill_review(page, tmp_path)
    assert len(person.requests) > 15
    assert {url.split("/")[2] for url in person.requests if not url.startswith("blob:")} == {
        person.address.split("/")[2]
    }


def test_the_page_weighs_less_than_60_kb():
    assert sum(file.stat().st_size for file in PAGE.iterdir()) < 60_000


def test_nothing_is_inline_so_that_a_strict_policy_suffices():
    page = (PAGE / "index.html").read_text("utf-8")
    assert "default-src 'self'" in page
    assert not re.search(r"<style|<script(?! type=\"module\" src)| style=| on\w+=", page)


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_a_phone(person, tmp_path, width):
    page = person.open()
    page.set_viewport_size({"width": width, "height": 800})
    fill(page, f"{TEXT} {'x' * 400}")
    for view in VIEWS:
        page.goto(page.url.split("#")[0] + f"#{view}")
        if view == "review":
            fill_review(page, tmp_path)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{view} is {wide} px too wide"


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, for axe-core: apt-get install npm")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core@4"]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode:
        pytest.skip("npm cannot install axe-core here")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def violations(page, axe):
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(one["impact"], one["id"], [node["html"] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(person, tmp_path, axe, scheme):
    page = person.open()
    page.emulate_media(color_scheme=scheme)
    fill(page)
    assert not violations(page, axe)
    page.goto(page.url.split("#")[0] + "#review")
    assert not violations(page, axe)
    fill_review(page, tmp_path)
    assert not violations(page, axe)
    page.keyboard.press("/")
    page.wait_for_selector("[role=option]")
    assert not violations(page, axe)
    page.keyboard.press("Escape")
    page.goto(page.url.split("#")[0] + "#model")
    expect(page.locator(".tiles li").first).to_be_visible()
    assert not violations(page, axe)


def changed_model(person, **changes):
    """A page that gets another answer to what its model is."""

    def change(route):
        answer = route.fetch().json()
        if learning := changes.get("learning"):
            answer["learning"] |= learning
        route.fulfill(json=answer | {"learning": answer["learning"] if learning else None})

    person.context.route("**/v1/kitchen", change)
    return person.open("model")


def test_refused_corrections_are_told_with_the_reason_and_damaged_versions_too(person):
    curve = [
        {"corrections": 50, "score": 0.5, "before": 0.4, "applied": True, "reason": None},
        {"corrections": 90, "score": 0.3, "before": 0.5, "applied": False, "reason": "worse"},
    ]
    learning = {"corrections": 90, "refused": 40, "curve": curve, "damaged": ["e7d9634c2339"]}
    page = changed_model(person, learning=learning)
    expect(page.locator(".note")).to_have_text([
        "Damaged and not used: version e7d9634c2339",
        "The last corrections were recorded but not applied: worse",
    ])  # fmt: skip
    expect(page.locator("figure")).to_contain_text("51.0\u00a0%")
    expect(page.locator("figure")).to_contain_text("29.0\u00a0%")
    assert page.locator("svg .refused.dots").get_attribute("d").count("M") == 1


def test_a_server_that_takes_no_corrections_says_so(person):
    page = changed_model(person, learning=None)
    expect(page.locator("#cards")).to_contain_text("This server does not accept corrections.")
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)

"""A person's whole way: try, upload, review by keyboard, add a label, see it suggested, go back."""

import json

import pytest

from tests.serve.page import kitchen

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

NEW = "fermentation"
ASKED = "My kimchi bubbles, is the culture still alive?"


def upload(page, tmp_path, texts):
    file = tmp_path / "queue.jsonl"
    lines = [json.dumps({"id": f"q{i}", "text": text}) for i, text in enumerate(texts)]
    file.write_text("\n".join(lines), "utf-8")
    page.set_input_files("#files", file)
    page.wait_for_selector("#review-labels input")


def suggested(page, text):
    page.goto(page.url.split("#")[0] + "#try")
    page.fill("#text", "")
    expect(page.locator("#try-labels li")).to_have_count(0)
    page.fill("#text", text)
    page.wait_for_selector("#try-labels li")
    return page.locator("#try-labels .name").all_text_contents()


def review(page, number, text):
    """Decide about one text with keys only."""
    expect(page.locator("#item-text")).to_have_text(text)
    page.wait_for_selector("#review-labels input")
    if any(thing in text for thing in kitchen.FERMENTED):
        page.keyboard.press("n" if number == 0 else "/")
        page.keyboard.type(NEW if number == 0 else NEW[:6])
        expect(page.locator("[aria-selected=true]")).to_contain_text(NEW)
        page.keyboard.press("Enter")
        expect(page.locator(f"#review-labels input[value={NEW}]")).to_be_checked()
    page.keyboard.press("Enter")


def test_a_person_reviews_twenty_texts_and_the_model_learns_a_new_label(person, tmp_path):
    page = person.open("try")
    assert NEW not in suggested(page, ASKED)

    page.click("text=Review")
    texts = kitchen.new_questions()
    assert len(texts) == 20
    upload(page, tmp_path, texts)
    for number, text in enumerate(texts):
        review(page, number, text)
    expect(page.locator("#finished")).to_contain_text("20 decisions")
    expect(page.locator("#sent")).to_contain_text("20 decisions sent, 0 waiting", timeout=15_000)

    page.click("text=Model")
    apply = page.get_by_role("button", name="Apply pending corrections now")
    apply.click()
    expect(page.locator(".versions li")).to_have_count(2, timeout=120_000)
    expect(apply).to_be_disabled()
    expect(page.locator("table")).to_contain_text(NEW)
    assert NEW in suggested(page, ASKED)

    page.click("text=Model")
    page.get_by_role("button", name="Roll back").click()
    page.locator("#sure-yes").click()
    expect(page.locator(".versions li").nth(1)).to_contain_text("in use")
    assert NEW not in suggested(page, ASKED)

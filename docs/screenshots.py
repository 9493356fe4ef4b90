"""Make the pictures of the page again: `python docs/screenshots.py MODEL`.

MODEL was fitted on the cooking data with `--keep-texts`; a copy of it is served and learns from
corrections, so that there is something to see. Needs chromium, playwright and Pillow.
"""

import contextlib
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import umpteen as um

IMAGES = Path(__file__).parent / "images"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
ROUNDS, CORRECTIONS, QUEUE, REVIEWED = 4, 60, 40, 12
TEXT = (
    "My sourdough starter smells of acetone after two days on the counter. I feed it rye flour "
    "and water every morning, but the bread does not rise in the oven. Should I keep the jar in "
    "the refrigerator, or is the yeast dead?"
)


def main(model: Path) -> None:
    """Take every view at both sizes, light beside dark."""
    test = um.data.load("cooking").splits["test"]
    with tempfile.TemporaryDirectory() as folder, serving(model, Path(folder)) as address:
        for start in range(0, ROUNDS * CORRECTIONS, CORRECTIONS):
            teach(address, test.texts[start:][:CORRECTIONS], test.labels[start:][:CORRECTIONS])
        queue = Path(folder) / "queue.jsonl"
        texts = test.texts[ROUNDS * CORRECTIONS :][:QUEUE]
        queue.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
        with sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            for size in SIZES:
                pairs = [
                    views(browser, address, size, scheme, queue) for scheme in ("light", "dark")
                ]
                for view in pairs[0]:
                    save(IMAGES / f"{view}-{size}.png", [pair[view] for pair in pairs])


@contextlib.contextmanager
def serving(model: Path, folder: Path) -> Iterator[str]:
    """Serve a copy of a model; it learns when told to, not by itself."""
    copy = shutil.copytree(model, folder / "cooking")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    options = ["--port", str(port), "--learn-after", "1000"]
    process = subprocess.Popen([sys.executable, "-m", "umpteen", "serve", str(copy), *options])
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.2)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def post(address: str, body: dict) -> dict:
    """Return the server's answer."""
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
        return json.load(answer)


def teach(address: str, texts: list[str], labels: list[list[str]]) -> None:
    """Correct what the model suggests, and wait until it has learned."""
    model = f"{address}/v1/cooking"
    suggested = post(f"{model}/suggest", {"texts": texts, "threshold": 0.3})["results"]
    items = [
        {"text": text, "labels": right, "suggested": [one["label"] for one in result["labels"]]}
        for text, right, result in zip(texts, labels, suggested, strict=True)
    ]
    post(f"{model}/learn", {"items": items})
    post(f"{model}/apply", {})
    while json.load(urllib.request.urlopen(model))["learning"]["running"]:
        time.sleep(1)


def views(browser: Browser, address: str, size: str, scheme: str, queue: Path) -> dict[str, bytes]:
    """Return a picture of each view."""
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    context = browser.new_context(viewport=viewport, color_scheme=scheme)
    context.route("**/learn", lambda route: route.fulfill(json={"recorded": 1}))
    page = context.new_page()
    page.goto(address)
    taken = {"try": tried(page), "review": reviewed(page, queue), "model": described(page)}
    context.close()
    return taken


def tried(page: Page) -> bytes:
    """Return the picture of a text with its labels."""
    page.fill("#text", TEXT)
    page.wait_for_selector("#mirror mark")
    return page.screenshot()


def reviewed(page: Page, queue: Path) -> bytes:
    """Return the picture of a review in which some texts were corrected."""
    page.click("text=Review")
    page.set_input_files("#files", queue)
    for number in range(REVIEWED):
        page.wait_for_selector(f"#item-caption:text-is('Text {number + 1} of {QUEUE}')")
        page.wait_for_selector("#review-labels input")
        if number % 3 == 1:
            page.keyboard.press("2")
        page.wait_for_timeout(900)
        page.keyboard.press("Enter")
    page.wait_for_selector("#review-labels input")
    page.locator("#review-labels .name").first.hover()
    page.wait_for_selector("#item-text mark")
    return page.screenshot()


def described(page: Page) -> bytes:
    """Return the picture of the model."""
    page.click("text=Model")
    page.wait_for_selector("table")
    return page.screenshot()


def save(file: Path, pictures: list[bytes]) -> None:
    """Write pictures side by side, in few colours so that the file is small."""
    images = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    width, height = images[0].size
    sheet = Image.new("RGB", (2 * width, height))
    for i, image in enumerate(images):
        sheet.paste(image, (i * width, 0))
    sheet.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

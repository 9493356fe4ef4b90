"""A browser, and a server with a small model, for the tests of the page."""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest

import umpteen as um
from tests.serve.page import kitchen

_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
_PATIENCE = 30_000  # milliseconds, for machines that have much else to do


@pytest.fixture(scope="session")
def chromium():
    """Return where the machine has chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs chromium: apt-get install chromium, or make browser as root")
    return path


@pytest.fixture(scope="module")
def browser(chromium):
    """A browser; closed after each module, as its event loop would be in the way of others."""
    from playwright.sync_api import expect, sync_playwright  # the modules are skipped without it

    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=_FLAGS.split())
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of a model of questions about cooking."""
    folder = tmp_path_factory.mktemp("models") / "kitchen"
    um.Tagger(keep_texts=True).fit(*kitchen.samples()).save(folder)
    return folder


@pytest.fixture(scope="session")
def server(chromium, model):
    """The address of a server; without a browser it is not even started."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "umpteen", "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(f"{address}/readyz", process)
    yield address
    process.terminate()
    process.wait(timeout=30)


def _free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _wait_for(address, process):
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(0.1)
    pytest.fail(f"the server ended with {process.returncode}")


@pytest.fixture
def person(browser, server):
    """Someone with a fresh browser profile: `open(view)` gives a page, `problems` what went wrong.

    A test that expects problems takes them out of the list.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(_PATIENCE)
    problems, requests = [], []
    context.on("weberror", lambda problem: problems.append(str(problem.error)))
    context.on("console", lambda line: line.type == "error" and problems.append(line.text))
    context.on("request", lambda request: requests.append(request.url))

    def open_page(view="try"):
        page = context.new_page()
        page.goto(f"{server}/#{view}")
        page.wait_for_selector("#models option", state="attached")
        return page

    yield SimpleNamespace(
        open=open_page, context=context, address=server, problems=problems, requests=requests
    )
    context.close()
    assert not problems

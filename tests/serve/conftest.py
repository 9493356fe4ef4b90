"""A small model on disk, and an application around it."""

import random
import shutil
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("fastapi", reason="needs umpteen[serve]")
pytest.importorskip("httpx2", reason="needs umpteen[test]")

from starlette.testclient import TestClient

import umpteen as um
from umpteen.serve import Settings, create_app, open_models

AT = "http://localhost"
WORDS = {
    "bread": "dough loaf knead crust flour",
    "soup": "broth ladle stock simmer bowl",
    "crème brûlée": "sugar custard torch vanilla cream",
    "cheese": "rind curd milk cheddar brie",
    "grilling": "charcoal grate skewer smoke ribs",
    "kitchen knives": "blade sharpen steel edge whetstone",
    "coffee": "beans espresso grind filter crema",
    "tea": "leaves oolong kettle steep matcha",
}


def made_up(n, seed=0, names=None):
    """Texts and labels that are plain from their words."""
    draw, names = random.Random(seed), names or {}
    texts, labels = [], []
    for i in range(n):
        chosen = sorted(draw.sample(sorted(WORDS), draw.choice([1, 1, 2])))
        words = [word for label in chosen for word in draw.sample(WORDS[label].split(), 3)]
        texts.append(f"how about {' '.join(words)} number {i}")
        labels.append([names.get(label, label) for label in chosen])
    return texts, labels


@pytest.fixture(scope="session")
def tagger():
    return um.Tagger(keep_texts=True).fit(*made_up(200))


@pytest.fixture(scope="session")
def saved(tagger, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "kitchen"
    tagger.save(folder)
    return folder


@pytest.fixture
def model(saved, tmp_path):
    """A copy that a test may change, and learn from."""
    return shutil.copytree(saved, tmp_path / "kitchen")


@contextmanager
def served(*folders, **settings):
    """A client of an application around models."""
    chosen = Settings(**{"learns": False, **settings})
    models = open_models(map(str, folders), chosen)
    with TestClient(create_app(models, chosen), AT) as client:
        yield client
    for one in models.values():
        if one.state is not None:
            one.state.close()


@pytest.fixture
def serving():
    """Start applications around models, and stop them after the test."""
    with ExitStack() as started:
        yield lambda *folders, **settings: started.enter_context(served(*folders, **settings))


@pytest.fixture(scope="module")
def client(saved):
    """One application for all tests of a module that only ask."""
    with served(saved) as one:
        yield one


@pytest.fixture
def in_a_thread():
    """Serve on a real port of this machine, for programs that do not speak ASGI."""
    import threading
    import time

    import uvicorn

    from umpteen.serve import connections

    servers = []

    def start(*folders, careful=False, **settings):
        chosen = Settings(**{"learns": False, **settings})
        app = create_app(open_models(map(str, folders), chosen), chosen)
        more = connections.options() if careful else {}
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, **more))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        servers.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return server.servers[0].sockets[0].getsockname()[1]

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(10)

"""A server that is asked too much says so at once, and goes on answering."""

import asyncio
import threading

import httpx2 as httpx
import pytest

from umpteen.serve import Settings, create_app, open_models
from umpteen.serve.limits import Limits

SUGGEST = "/v1/kitchen/suggest"


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    for word in words:
        assert word in answer.json()["detail"]
    return answer


def test_a_body_that_is_too_long_is_refused(serving, saved):
    client = serving(saved, max_body=1000)
    refused(client.post(SUGGEST, json={"text": "a" * 2000}), 413, "1,000 bytes")
    assert client.post(SUGGEST, json={"text": "a" * 500}).status_code == 200


def test_a_body_without_an_end_is_refused_while_it_arrives(serving, saved):
    """Without a length, as a stream: nobody waits for its end."""
    client = serving(saved, max_body=1000)
    sent = []

    def endless():
        yield b'{"text": "'
        for _ in range(1000):
            sent.append(1)
            yield b"a" * 100

    refused(client.post(SUGGEST, content=endless()), 413)


def test_texts_that_are_too_long_or_too_many_are_refused(serving, saved):
    client = serving(saved, max_text=10, max_texts=2)
    refused(client.post(SUGGEST, json={"texts": ["short", "a" * 11]}), 413, "text 1", "11")
    refused(client.post(SUGGEST, json={"texts": ["a", "b", "c"]}), 413, "3 texts", "at most 2")
    refused(client.post("/v1/kitchen/explain", json={"text": "a" * 11}), 413)
    assert client.post(SUGGEST, json={"texts": ["a" * 10, "b"]}).status_code == 200


@pytest.fixture
def busy_app(saved, monkeypatch):
    """An application whose model answers only when told to."""
    settings = Settings(learns=False, max_waiting=4, timeout=0.5)
    models = open_models([str(saved)], settings)
    go_on = threading.Event()
    snapshot_type = type(models["kitchen"].snapshot)
    real = snapshot_type.answer

    def answer(self, texts, k):
        go_on.wait(10)
        return real(self, texts, k)

    monkeypatch.setattr(snapshot_type, "answer", answer)
    yield create_app(models, settings), go_on
    go_on.set()


def with_client(app, ask):
    async def run():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            return await ask(client)

    return asyncio.run(run())


def test_a_full_queue_refuses_at_once_and_then_goes_on(busy_app):
    app, go_on = busy_app

    async def ask(client):
        first = [asyncio.create_task(client.post(SUGGEST, json={"text": "tea"})) for _ in range(1)]
        await asyncio.sleep(0.1)  # is being answered, and no longer in the queue
        first += [asyncio.create_task(client.post(SUGGEST, json={"text": "tea"})) for _ in range(4)]
        await asyncio.sleep(0.05)
        too_much = await client.post(SUGGEST, json={"text": "tea"})
        assert not any(task.done() for task in first)
        refused(too_much, 429, "queue is full")
        assert int(too_much.headers["retry-after"]) >= 1
        go_on.set()
        answers = await asyncio.gather(*first)
        assert [one.status_code for one in answers] == [200] * 5
        again = await client.post(SUGGEST, json={"text": "tea"})
        assert again.status_code == 200

    with_client(app, ask)


def test_many_texts_do_not_block_a_single_one(saved, monkeypatch):
    settings = Settings(learns=False, max_batch=8)
    models = open_models([str(saved)], settings)
    go_on, snapshot_type = threading.Event(), type(models["kitchen"].snapshot)
    real = snapshot_type.answer

    def answer(self, texts, k):
        if len(texts) > 8:
            go_on.wait(10)
        return real(self, texts, k)

    monkeypatch.setattr(snapshot_type, "answer", answer)

    async def ask(client):
        many = asyncio.create_task(client.post(SUGGEST, json={"texts": ["tea"] * 20}))
        await asyncio.sleep(0.1)
        assert (await client.post(SUGGEST, json={"text": "tea"})).status_code == 200
        assert not many.done()
        go_on.set()
        assert len((await many).json()["results"]) == 20

    with_client(create_app(models, settings), ask)


def test_a_request_larger_than_the_queue_is_answered_when_it_is_empty(serving, saved):
    client = serving(saved, max_waiting=2)
    assert client.post(SUGGEST, json={"texts": ["tea"] * 5}).status_code == 200


def test_a_request_that_takes_too_long_is_given_up(busy_app):
    app, _ = busy_app

    async def ask(client):
        late = await client.post(SUGGEST, json={"text": "tea"})
        refused(late, 503, "longer than 0.5 s")
        assert "retry-after" in late.headers
        assert app.state.server.batcher.n_waiting == 0

    with_client(app, ask)


def call(app, chunks, pause=0.0):
    """Send a request to an ASGI application, chunk by chunk, and return what it sends."""
    sent = []

    async def run():
        rest = iter(chunks)

        async def receive():
            await asyncio.sleep(pause)
            chunk = next(rest, None)
            if chunk is None:
                await asyncio.sleep(10)
            return {"type": "http.request", "body": chunk, "more_body": True}

        async def send(message):
            sent.append(message)

        await app({"type": "http", "headers": [], "path": "/", "method": "POST"}, receive, send)

    asyncio.run(run())
    return sent


async def reader(scope, receive, send):
    """An application that reads all of a body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_client_that_sends_slowly_is_given_up():
    limits = Limits(reader, Settings(timeout=0.2))
    sent = call(limits, [b"a"] * 100, pause=0.05)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_all_bodies_together_are_bounded():
    """A thousand clients that each send as much as they may do not fill the memory."""
    limits = Limits(reader, Settings(max_body=100, timeout=1))
    limits._n_bytes = 25 * 100 - 50
    assert call(limits, [b"a" * 60])[0]["status"] == 429
    assert limits._n_bytes == 25 * 100 - 50  # what was counted is given back

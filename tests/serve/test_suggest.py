"""Whoever asks the server gets what the library answers, however many ask at once."""

import asyncio
from itertools import pairwise

import httpx2 as httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.conftest import WORDS
from umpteen.serve import Settings, create_app, open_models

words = st.sampled_from(sorted({word for some in WORDS.values() for word in some.split()}))
texts = st.lists(words, max_size=8).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=30
)


def labels_of(result):
    return [(one["label"], one["probability"]) for one in result["labels"]]


def ask(client, **asked):
    answer = client.post("/v1/kitchen/suggest", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


@settings(max_examples=40)
@given(
    some=st.lists(texts, max_size=5), k=st.integers(1, 30), threshold=st.none() | st.floats(0, 1)
)
def test_answers_are_those_of_the_library(client, tagger, some, k, threshold):
    found = ask(client, texts=some, k=k, threshold=threshold)
    assert [labels_of(one) for one in found["results"]] == tagger.predict(some, k, threshold)


def test_one_text_is_a_list_of_one(client, tagger):
    found = ask(client, text="sharpen the blade")
    assert labels_of(found["results"][0]) == tagger.predict("sharpen the blade", k=10)
    assert found["model"] == "kitchen"


def test_a_goal_is_a_threshold(client, tagger):
    found = ask(client, text="dough and broth", threshold="precision@0.9")
    expected = tagger.predict("dough and broth", k=10, threshold="precision@0.9")
    assert labels_of(found["results"][0]) == expected


def test_concurrent_requests_get_their_own_answers(saved, tagger):
    """Texts are answered in batches of many requests; nobody gets the labels of others."""
    settings = Settings(learns=False, max_batch=7)
    app = create_app(open_models([str(saved)], settings), settings)
    words_ = " ".join(WORDS.values()).split()
    some = [f"{first} {second}" for first, second in pairwise(words_)]
    asked = [(text, k, t) for k, t in ((1, None), (3, 0.2), (30, None)) for text in some]

    async def ask_all():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            bodies = ({"text": text, "k": k, "threshold": t} for text, k, t in asked)
            return await asyncio.gather(
                *(client.post("/v1/kitchen/suggest", json=body) for body in bodies)
            )

    answers = asyncio.run(ask_all())
    for answer, (text, k, t) in zip(answers, asked, strict=True):
        assert labels_of(answer.json()["results"][0]) == tagger.predict(text, k, t)
    batches = app.state.server.metrics.registry.get_sample_value("umpteen_batch_texts_count")
    assert batches < len(asked) / 2  # they were gathered


def test_a_threshold_that_cannot_be_reached_is_one_request_s_problem(saved, tagger):
    settings = Settings(learns=False)
    app = create_app(open_models([str(saved)], settings), settings)

    async def ask_both():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            return await asyncio.gather(
                client.post("/v1/kitchen/suggest", json={"text": "dough", "threshold": "tuned"}),
                client.post("/v1/kitchen/suggest", json={"text": "dough"}),
            )

    wrong, right = asyncio.run(ask_both())
    assert wrong.status_code == 422
    assert "tune_thresholds" in wrong.json()["detail"]
    assert labels_of(right.json()["results"][0]) == tagger.predict("dough", k=10)


def test_the_documented_route_is_the_same(client):
    """OpenAPI describes the typed route; the quick one in front of it must not differ."""
    operation = client.get("/openapi.json").json()["paths"]["/v1/{model}/suggest"]["post"]
    assert "SuggestRequest" in str(operation["requestBody"])
    assert "Suggestions" in str(operation["responses"]["200"])


@pytest.mark.parametrize("path", ["/v1", "/livez", "/readyz", "/health", "/docs", "/", "/metrics"])
def test_everything_that_is_promised_answers(client, path):
    assert client.get(path).status_code == 200


def test_a_model_tells_what_it_is(client, tagger):
    about = client.get("/v1/kitchen").json()
    assert about["n_labels"] == len(tagger.labels)
    assert about["n_samples"] == 200
    assert about["classifier"] == "LabelTree"
    assert about["calibrated"] is True
    assert about["learning"] is None
    assert [one["current"] for one in about["versions"]] == [True]
    hits = tagger.validated_.hits
    assert about["report"]["precision@1"] == pytest.approx(hits[:, 0].mean(), abs=1e-4)
    assert client.get("/v1").json()["models"] == [
        {"name": "kitchen", "version": about["version"], "n_labels": 8, "learns": False}
    ]


def test_the_threshold_curve_counts_what_a_threshold_gives(client, tagger):
    """The page's slider promises this precision."""
    validated = tagger.validated_
    for point in client.get("/v1/kitchen").json()["threshold_curve"]:
        kept = (validated.labels >= 0) & (validated.probabilities >= point["threshold"])
        n_right = (kept & validated.hits).sum()
        if kept.any():
            assert point["precision"] == pytest.approx(n_right / kept.sum(), abs=1e-4)
        else:
            assert point["precision"] is None
        assert point["labels_per_text"] == pytest.approx(kept.sum() / len(kept), abs=1e-3)

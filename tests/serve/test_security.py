"""Keys decide who may ask and who may teach; pages of other hosts may do neither."""

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from umpteen.errors import ParameterError
from umpteen.serve.security import is_one_of, read_keys

READ, LEARN = "read-read-read", "learn-learn-learn"
ASK = ("POST", "/v1/kitchen/suggest", {"text": "tea"})
TEACH = ("POST", "/v1/kitchen/learn", {"items": []})
ROUTES = [
    TEACH, ("POST", "/v1/kitchen/apply", None), ("POST", "/v1/kitchen/reload", None),
    ("POST", "/v1/kitchen/rollback", {}), ("POST", "/v1/projects/kitchen/learn", []),
    ("POST", "/webhook", {"action": "x"}),
    ("POST", "/label-studio/kitchen/webhook", {"action": "x"}),
]  # fmt: skip
READS = [
    ASK, ("GET", "/v1", None), ("GET", "/v1/kitchen", None), ("GET", "/v1/kitchen/labels", None),
    ("GET", "/metrics", None), ("GET", "/v1/projects", None), ("POST", "/predict", {"tasks": []}),
]  # fmt: skip


def status(client, route, key=None, **headers):
    method, path, body = route
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return client.request(method, path, json=body, headers=headers).status_code


@pytest.fixture
def keyed(serving, model):
    """A server with keys of both kinds."""
    return serving(model, learns=True, read_keys=(READ, "another-one"), learn_keys=(LEARN,))


def statuses(client, routes, key=None, **headers):
    return {status(client, route, key, **headers) for route in routes}


def test_only_a_key_for_that_may_teach(keyed):
    assert statuses(keyed, ROUTES) == {401}
    assert statuses(keyed, ROUTES, READ) == {403}
    assert statuses(keyed, ROUTES, "wrong-wrong") == {403}
    assert statuses(keyed, ROUTES, LEARN) <= {200, 201, 204, 409}


def test_no_other_spelling_of_a_path_may_teach(keyed):
    for ending in ("%0A", "/", "%2F", "/%0A", "%0A/", "%0D", "%00"):
        spelled = [(method, path + ending, body) for method, path, body in ROUTES]
        assert statuses(keyed, spelled, READ) <= {403, 404, 405}, ending


@pytest.mark.parametrize("place", ["/page", "/docs", "/tags"])
def test_an_application_around_this_one_opens_nothing(keyed, place):
    """A path is compared as the routes see it: all of these begin with that of the open page."""
    around = Starlette(routes=[Mount(place, app=keyed.app)])
    with TestClient(around, base_url="http://localhost") as client:
        moved = [(method, place + path, body) for method, path, body in (*ROUTES, *READS)]
        assert statuses(client, moved) == {401}
        assert client.get(f"{place}/livez").status_code == 200


def test_both_keys_may_ask(keyed):
    assert statuses(keyed, READS) == {401}
    assert statuses(keyed, READS, "wrong-wrong") == {403}
    assert statuses(keyed, READS, READ) == {200}
    assert statuses(keyed, READS, "another-one") == {200}
    assert statuses(keyed, READS, LEARN) == {200}
    assert statuses(keyed, READS, **{"X-API-Key": READ}) == {200}


def test_health_and_the_page_itself_need_no_key_and_tell_no_names(keyed):
    for path in ("/livez", "/readyz", "/health", "/", "/page/index.html", "/openapi.json"):
        answer = keyed.get(path)
        assert answer.status_code == 200, path
        assert "kitchen" not in answer.text, path


OWN = ["localhost", "LocalHost:8000", "localhost.", "tags.example.org:443", "127.0.0.1",
       "10.2.3.4:80", "[::1]:8000", "[2001:db8::7]", ""]  # fmt: skip
FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example",
           "evil.example@127.0.0.1", "[localhost]", "localhost:80:80", "127.1", "[", ":80",
           b"\xe4", " ", "a" * 60_000]  # fmt: skip


def test_the_server_answers_to_its_names_and_to_addresses_only(serving, saved):
    """With DNS rebinding, a browser takes this server for the host of a page, which may read it."""
    client = serving(saved, hosts=("localhost", "tags.example.org"))
    assert {host: status(client, ASK, Host=host) for host in OWN} == dict.fromkeys(OWN, 200)
    for host in FOREIGN:
        for method, path, body in (ASK, TEACH, ("GET", "/", None), ("GET", "/metrics", None)):
            answer = client.request(method, path, json=body, headers={"Host": host})
            assert answer.status_code == 421, (host, path)
            assert "--allow-host" in answer.json()["detail"]
        assert status(client, ("GET", "/livez", None), Host=host) == 200
    assert status(serving(saved, hosts=("*",)), ASK, Host="evil.example") == 200


def test_one_kind_of_key_is_enough(serving, model, tmp_path):
    client = serving(model, learns=True, read_keys=(READ,))
    assert status(client, TEACH, READ) == 200
    assert status(client, TEACH) == 401


def test_everybody_may_ask_where_only_teaching_has_a_key(serving, model):
    client = serving(model, learns=True, learn_keys=(LEARN,))
    assert status(client, ASK) == 200
    assert status(client, TEACH) == 401
    assert status(client, TEACH, LEARN) == 200


def test_a_key_has_to_be_sent_as_told(serving, saved):
    client = serving(saved, read_keys=(READ,))
    assert status(client, ASK, Authorization=f"Basic {READ}") == 401
    assert status(client, ASK, Authorization=READ) == 401
    assert client.post(f"/v1/kitchen/suggest?key={READ}", json=ASK[2]).status_code == 401


def test_pages_of_other_hosts_cannot_teach(serving, model):
    """A web page that somebody visits may send forms to servers on their machine."""
    client = serving(model, learns=True)
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://example.org"}
    assert status(client, TEACH, **foreign) == 403
    assert status(client, TEACH, **{"Sec-Fetch-Site": "same-origin"}) == 200


OTHERS = [
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    {"Origin": "http://example.org"}, {"Origin": "http://localhost:3000"}, {"Origin": "null"},
]  # fmt: skip


def test_nor_can_those_of_other_ports_or_over_plain_http(serving, model):
    """A form needs no body that is JSON to reload a model or to roll it back."""
    route = ("POST", "/v1/kitchen/reload", None)
    client = serving(model, learns=True)
    allowed = serving(model, origins=tuple(headers["Origin"] for headers in OTHERS))
    for headers in OTHERS:
        assert status(client, route, **headers) == 403, headers
        assert status(allowed, route, **headers) == 200, headers
    assert status(client, route, Origin="http://localhost") == 200


def test_other_hosts_read_only_if_they_are_named(serving, saved):
    origin = {"Origin": "https://example.org"}
    answer = serving(saved).get("/v1", headers=origin)
    assert "access-control-allow-origin" not in answer.headers
    client = serving(saved, origins=("https://example.org",))
    assert client.get("/v1", headers=origin).headers["access-control-allow-origin"] == (
        "https://example.org"
    )
    other = client.get("/v1", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_every_key_is_compared(monkeypatch):
    """An answer that came sooner for a key that begins right would give it away."""
    compared = []
    monkeypatch.setattr(
        "umpteen.serve.security.hmac.compare_digest", lambda a, b: compared.append(b) or a == b
    )
    assert is_one_of("first-key", ["first-key", "second-key"])
    assert compared == [b"first-key", b"second-key"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "short\n", "long-enough\nshort"])
def test_a_file_without_proper_keys_is_refused(text):
    with pytest.raises(ParameterError, match=r"keys\.txt"):
        read_keys(text, "keys.txt")

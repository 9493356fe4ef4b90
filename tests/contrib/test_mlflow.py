"""A tagger goes through MLflow as a folder of arrays; MLflow's functions and server call it.

MLflow brings many packages, so it is not part of the test environment: `make clients` installs it
in a folder of its own.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

import umpteen as um
from tests.serve.clients.install import folder, make_importable
from umpteen.contrib import mlflow as um_mlflow
from umpteen.errors import ParameterError, UmpteenError

MLFLOW = folder("mlflow")
make_importable("mlflow")

mlflow = pytest.importorskip("mlflow", reason="there is no MLflow: make clients")
pd = pytest.importorskip("pandas", reason="needs umpteen[mlflow]")

TEXTS = ["dough and flour", "green tea", "broth in a bowl"]


@pytest.fixture(scope="module")
def tagger():
    return um.Tagger().fit(TEXTS * 20, ["bread", "tea", "soup"] * 20)


def expected(tagger, **options):
    return [
        {"labels": [label for label, _ in tags], "scores": [score for _, score in tags]}
        for tags in tagger.predict(TEXTS, **options)
    ]


@pytest.fixture(scope="module")
def uri(tagger, tmp_path_factory):
    place = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more than mlflow-skinny
        mlflow.set_tracking_uri(f"file://{place}/runs")
        with mlflow.start_run():
            logged = um_mlflow.log_model(tagger, name="tagger")
        yield logged.model_uri


def test_a_logged_model_predicts(tagger, uri):
    function = mlflow.pyfunc.load_model(uri)
    frame = pd.DataFrame({"text": TEXTS})
    assert function.predict(frame) == expected(tagger)
    assert function.predict(frame, params={"k": 1}) == expected(tagger, k=1)
    found = function.predict(frame, params={"k": 3, "threshold": 0.5})
    assert found == expected(tagger, k=3, threshold=0.5)


@pytest.fixture
def server(tagger, tmp_path):
    """The address of MLflow's own scoring server, started as `mlflow models serve` does."""
    from mlflow.pyfunc import scoring_server

    um_mlflow.save_model(tagger, str(tmp_path / "saved"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command, env = scoring_server.get_cmd(str(tmp_path / "saved"), port=port, host="127.0.0.1")
    path = os.pathsep.join([*filter(None, [env.get("PYTHONPATH")]), str(MLFLOW)])
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *shlex.split(command)], env={**env, "PYTHONPATH": path},
            stdout=log, stderr=log, cwd=tmp_path,
        )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/ping", process, tmp_path / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(address, process, log):
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            return urllib.request.urlopen(address, timeout=10).close()
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError(log.read_text())


def test_a_model_is_served(tagger, server):
    records = [{"text": text} for text in TEXTS]
    asked = {"dataframe_records": records, "params": {"k": 2}}
    request = urllib.request.Request(
        f"{server}/invocations", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["predictions"] == expected(tagger, k=2)


def test_the_tagger_itself_comes_back(tagger, uri):
    again = um_mlflow.load_model(uri)
    assert isinstance(again, um.Tagger)
    assert again.predict(TEXTS) == tagger.predict(TEXTS)


def test_a_saved_model_holds_no_pickle(tagger, tmp_path):
    um_mlflow.save_model(tagger, str(tmp_path / "saved"))
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib")]
    assert f"umpteen=={um.__version__}" in (tmp_path / "saved" / "requirements.txt").read_text()
    assert mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(
        pd.DataFrame({"text": TEXTS})
    ) == expected(tagger)


def test_inputs_are_texts(tagger):
    function = um_mlflow.TaggerFunction(tagger)
    assert function.predict(TEXTS) == expected(tagger)
    assert function.predict(pd.DataFrame({"title": TEXTS})) == expected(tagger)
    with pytest.raises(ParameterError, match="expected one called 'text'"):
        function.predict(pd.DataFrame({"a": TEXTS, "b": TEXTS}))
    with pytest.raises(UmpteenError, match=r"texts\[0\]"):
        function.predict(pd.DataFrame({"text": [None]}))


def test_only_taggers_are_logged(tmp_path):
    with pytest.raises(ParameterError, match="expected a fitted Tagger"):
        um_mlflow.save_model(um.NearestCentroid(), str(tmp_path / "x"))

"""A tagger goes through MLflow as a folder of arrays, and MLflow's own functions ask it.

MLflow is not part of the test environment: it brings many packages. To run these tests, install
`umpteen[mlflow]`.
"""

import pytest

import umpteen as um
from umpteen.contrib import mlflow as um_mlflow
from umpteen.errors import ParameterError, UmpteenError

mlflow = pytest.importorskip("mlflow", reason="needs umpteen[mlflow], which is not in [test]")
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

"""Models in MLflow: logged as its Python functions, without a pickle.

MLflow keeps the model folder as it is and names this module as its loader, so that its own tools
(`mlflow models serve`, Spark functions, the registry) can load and call it.
"""

import tempfile
from pathlib import Path
from typing import Any

from umpteen import storage
from umpteen.errors import ParameterError
from umpteen.extras import require

_LOADER = __name__
_K = 5


def save_model(model: Any, path: str, **options: Any) -> None:
    """Save a fitted tagger as a model of MLflow; `options` go to `mlflow.pyfunc.save_model`."""
    _saved("save_model", model, {"path": path, **options})


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Add a fitted tagger to the active run; `options` go to `mlflow.pyfunc.log_model`."""
    return _saved("log_model", model, {"name": name, **options})


def load_model(uri: str) -> Any:
    """Load the tagger itself, rather than the function that MLflow calls."""
    return _pyfunc().load_model(uri).get_raw_model()


def _saved(function: str, model: Any, options: dict[str, Any]) -> Any:
    if not hasattr(model, "label_names_"):
        raise ParameterError(
            f"a {type(model).__name__} cannot be logged: MLflow's functions take tables of texts, "
            "so expected a fitted Tagger"
        )
    given = {"signature": _signature(), "pip_requirements": [_requirement()], **options}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "umpteen-model"
        storage.save(model, place)
        return getattr(_pyfunc(), function)(loader_module=_LOADER, data_path=str(place), **given)


def _load_pyfunc(path: str) -> "TaggerFunction":
    """Return the function; MLflow calls this with the folder of the model."""
    return TaggerFunction(storage.load(path))


class TaggerFunction:
    """A tagger as a function of MLflow: a column of texts in, labels and scores out."""

    def __init__(self, tagger: Any) -> None:
        self.tagger = tagger

    def get_raw_model(self) -> Any:
        """Return the tagger."""
        return self.tagger

    def predict(
        self, model_input: Any, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return `{"labels": [...], "scores": [...]}` for each text, best first.

        The input is a data frame with a column `text` or a single column, or a list of texts.
        `params` may have `k`, the number of labels, and `threshold`, the lowest probability.
        """
        params = params or {}
        threshold = float(params.get("threshold", 0.0))
        found = self.tagger.predict(
            _texts(model_input), k=int(params.get("k", _K)), threshold=threshold or None
        )
        return [
            {"labels": [label for label, _ in tags], "scores": [score for _, score in tags]}
            for tags in found
        ]


def _texts(model_input: Any) -> Any:
    columns = getattr(model_input, "columns", None)
    if columns is None:
        return model_input
    names = list(columns)
    if "text" not in names and len(names) != 1:
        raise ParameterError(
            f"the input has the columns {names!r:.200}; expected one called 'text'"
        )
    return model_input["text" if "text" in names else names[0]]


def _signature() -> Any:
    models, types = require("mlflow.models", "mlflow"), require("mlflow.types", "mlflow")
    schema = require("mlflow.types.schema", "mlflow")
    text = types.Schema([types.ColSpec("string", "text")])
    params = [
        types.ParamSpec("k", "long", _K),
        types.ParamSpec("threshold", "double", 0.0),
    ]
    return models.ModelSignature(inputs=text, params=schema.ParamSchema(params))


def _requirement() -> str:
    from umpteen import __version__

    return f"umpteen=={__version__}"


def _pyfunc() -> Any:
    return require("mlflow.pyfunc", "mlflow")

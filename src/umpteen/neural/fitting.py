"""Which encoder suits what `X` is, and how its rows become batches."""

from typing import Any

import numpy as np
from scipy import sparse

from umpteen.errors import FeaturesError
from umpteen.neural.blueprints import ENCODERS, Blueprint, as_blueprint
from umpteen.neural.inputs import Inputs
from umpteen.neural.transformer import config_of
from umpteen.validation import Features

_DENSE = 1 / 3  # from this share of non-zero entries on, rows are treated as dense


def choose_encoder(encoder: str | Blueprint, X: Features, image_shape: list[int]) -> Blueprint:
    """Return the encoder that is meant, with the shape of images if it takes these.

    `X` has images as rows; `image_shape` is that of `image_shape_of` before.
    """
    chosen = as_blueprint(_suited(X, image_shape) if encoder == "auto" else encoder, ENCODERS)
    if chosen.find().kind == "tokens" and chosen.pretrained is not None:
        return chosen.with_options(config=config_of(chosen.pretrained))
    if chosen.find().kind != "images":
        return chosen
    shape = tuple(chosen.options.get("image_shape", image_shape))
    _check_image_shape(shape, X.shape)
    return chosen.with_options(image_shape=shape)


def learn_inputs(encoder: Blueprint, X: Features) -> Inputs:
    """Return how rows become batches of this encoder."""
    kind = encoder.find().kind
    n_channels = encoder.options["image_shape"][0] if kind == "images" else None
    return Inputs.learn(X, kind, n_channels)


def image_shape_of(X: Any) -> list[int]:
    """Return (channels, height, width) of images; empty for rows."""
    return [int(size) for size in X.shape[1:]] if getattr(X, "ndim", 2) == 4 else []


def flat(X: Any) -> Any:
    """Return images as rows; rows as they are."""
    return X.reshape(X.shape[0], int(np.prod(X.shape[1:]))) if image_shape_of(X) else X


def _suited(X: Features, image_shape: list[int]) -> str:
    entries = np.count_nonzero(X.data if sparse.issparse(X) else X)
    rows = "mlp" if entries > _DENSE * X.shape[0] * X.shape[1] else "bag"
    return "conv" if image_shape else rows


def _check_image_shape(shape: tuple[int, ...], found: tuple[int, ...]) -> None:
    if len(shape) != 3 or int(np.prod(shape)) != found[1]:
        raise FeaturesError(
            f"this encoder takes images, but X has shape {found}: pass X as (n, channels, height, "
            "width), for example X.reshape(len(X), 1, 28, 28), or use encoder='mlp'"
        )

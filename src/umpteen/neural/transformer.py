"""Transformer: a pretrained encoder of texts that is trained with the head."""

import json
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from umpteen.errors import FeaturesError, ModelNotFoundError, ParameterError
from umpteen.extras import require

_POOLING = ("mean", "first")
# Settings that would open other files, or are not of the network.
_LEFT_OUT = (
    "architectures", "attn_implementation", "auto_map", "dtype", "experts_implementation",
    "id2label", "label2id", "quantization_config", "torch_dtype", "transformers_version",
)  # fmt: skip


class Transformer(nn.Module):
    """A text encoder of the library `transformers`; samples are token ids of `umpteen.text.Tokens`.

    Use it as `blueprint(Transformer, pretrained="folder")`: the folder, or the name of a model in
    the local cache, has the weights to start from. Nothing is downloaded, Python code in the
    folder is never run, and weights are read from safetensors files only. All weights are trained
    with the head. A saved model contains them, so it does not need the folder.

    Features are the mean of the last hidden states over the tokens of a text, or with
    `pooling="first"` that of its first token.
    """

    kind: ClassVar[str] = "tokens"

    def __init__(
        self, n_features: int, *, config: dict[str, Any] | None = None, pooling: str = "mean"
    ) -> None:
        super().__init__()
        if config is None:
            raise ParameterError(
                "a Transformer needs a model to start from: "
                "blueprint(Transformer, pretrained='folder/of/the/model')"
            )
        if pooling not in _POOLING:
            raise ParameterError(f"pooling={pooling!r} is not possible: use one of {_POOLING}")
        self.config, self.pooling = plain_config(config), pooling
        most = self.config.get("max_position_embeddings", n_features)
        if n_features > most:
            raise ParameterError(
                f"texts have up to {n_features:,} tokens, but this model takes {most:,}: use "
                f"umpteen.text.Tokens(max_length={most})"
            )
        self.backbone = self._made()
        self.out_features = int(self.backbone.config.hidden_size)
        self.register_load_state_dict_post_hook(_materialise)

    def start_from(self, folder: str) -> None:
        """Take over pretrained weights."""
        found = _opened("AutoModel", folder, dtype=torch.float32, use_safetensors=True)
        self.backbone.load_state_dict(found.state_dict())

    def forward(self, tokens: Tensor) -> Tensor:
        """Return features `(n, out_features)` of token ids plus one, `(n, tokens)`; 0 is none."""
        n_words = int(self.backbone.config.vocab_size)
        if tokens.numel() and int(tokens.max()) > n_words:
            raise FeaturesError(
                f"X has the token id {int(tokens.max()) - 1:,}, but the vocabulary of this model "
                f"has {n_words:,}: use the umpteen.text.Tokens of the same model"
            )
        mask = tokens > 0
        seen = mask.clone()
        seen[:, 0] |= ~mask.any(1)  # of a text without tokens, the first place
        ids = (tokens - 1).clamp(min=0)
        hidden = self.backbone(input_ids=ids, attention_mask=seen.long()).last_hidden_state
        if self.pooling == "first":
            features: Tensor = hidden[:, 0] * mask.any(1, keepdim=True)
            return features
        weights = mask.to(hidden.dtype)[:, :, None]
        mean: Tensor = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        return mean

    def _made(self) -> Any:
        library = require("transformers", "encoders")
        settings = dict(self.config)
        try:
            config = library.AutoConfig.for_model(settings.pop("model_type", ""), **settings)
        except (ValueError, TypeError) as error:
            raise ParameterError(f"this transformer cannot be built: {error}") from error
        if config.is_encoder_decoder:
            raise ParameterError(
                f"a {config.model_type} reads and writes texts; use a model that only reads them, "
                "such as BERT"
            )
        return library.AutoModel.from_config(config, trust_remote_code=False)


def config_of(folder: str) -> dict[str, Any]:
    """Return the settings of a pretrained model, as far as a network is made from them."""
    return plain_config(_opened("AutoConfig", folder).to_dict())


def plain_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a network alone: none that names files or classes."""
    kept = {
        name: value
        for name, value in config.items()
        if not name.startswith("_") and name not in _LEFT_OUT
    }
    return dict(json.loads(json.dumps(kept, default=str)))


def _opened(kind: str, folder: str, **options: Any) -> Any:
    library = require("transformers", "encoders")
    try:
        return getattr(library, kind).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **options
        )
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"no transformer {folder!r} can be opened on this machine ({error}): download it "
            "first and pass its folder"
        ) from error


def _materialise(module: "Transformer", _: Any) -> None:
    """Fill buffers that are computed and not saved, if the network was built without memory."""
    absent = [name for name, each in module.backbone.named_buffers() if each.is_meta]
    if not absent or any(each.is_meta for each in module.parameters()):
        return
    with torch.device("cpu"):
        fresh = dict(module._made().named_buffers())
    for name in absent:
        owner, _, buffer = name.rpartition(".")
        setattr(module.backbone.get_submodule(owner), buffer, fresh[name])

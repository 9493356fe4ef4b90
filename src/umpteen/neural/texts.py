"""TextEncoder: a pretrained sentence encoder, where `sentence-transformers` is installed."""

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from umpteen.text.sentences import dimension, sentence_encoder


class TextEncoder(nn.Module):
    """A pretrained encoder of `sentence-transformers`: a list of texts in, features out.

    `model` is a folder, or a name that is in the local cache already: nothing is downloaded. Its
    weights learn with the rest of the network unless `frozen`.
    """

    kind: ClassVar[str] = "texts"

    def __init__(self, model: str, *, frozen: bool = False) -> None:
        super().__init__()
        self.model = sentence_encoder(model)
        self.out_features = dimension(self.model)
        self.model.requires_grad_(not frozen)

    def forward(self, texts: Sequence[str]) -> Tensor:
        tokens = self.model.preprocess(list(texts))
        on_device = {name: values.to(self.model.device) for name, values in tokens.items()}
        features: Tensor = self.model(on_device)["sentence_embedding"]
        return features

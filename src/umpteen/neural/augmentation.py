"""Images changed a little in each epoch, so that a network does not learn them by heart."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from umpteen.errors import ParameterError

AUGMENTATIONS = ("flip", "crop", "flip_crop")


@dataclass(frozen=True)
class Augmentation:
    """Mirrors half of the images, and moves each by up to an eighth of its side; as `name` says.

    What moves in from outside is 0, the mean of standardised images. Random numbers are PyTorch's,
    so a training that is continued gets the same ones.
    """

    name: str
    image_shape: tuple[int, int, int]  # channels, height, width

    def __post_init__(self) -> None:
        if len(self.image_shape) != 3:
            raise ParameterError(
                f"augment={self.name!r} needs images (n, channels, height, width): leave it out"
            )

    def __call__(self, rows: Tensor) -> Tensor:
        """Return images as rows `(n, features)`, of such rows."""
        images = rows.view(len(rows), *self.image_shape)
        if "flip" in self.name:
            images = _flipped(images)
        if "crop" in self.name:
            images = _moved(images)
        return images.reshape(rows.shape)


def _flipped(images: Tensor) -> Tensor:
    chosen = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(chosen, images.flip(3), images)


def _moved(images: Tensor) -> Tensor:
    n, channels, height, width = images.shape
    most = [side // 8 for side in (height, width)]
    padded = pad(images, (most[1], most[1], most[0], most[0]))
    down, right = (
        torch.randint(2 * reach + 1, (n, 1), device=images.device)
        + torch.arange(side, device=images.device)
        for reach, side in zip(most, (height, width), strict=True)
    )  # (n, side): which rows and columns of the padded image
    each = torch.arange(n, device=images.device)[:, None, None, None]
    maps = torch.arange(channels, device=images.device)[None, :, None, None]
    return padded[each, maps, down[:, None, :, None], right[:, None, None, :]]

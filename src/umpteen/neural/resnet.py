"""ResNet: the residual network for small images of He et al. (2016)."""

from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import relu

from umpteen.errors import ParameterError
from umpteen.validation import check_k

_N_STAGES = 3
_LEAST_SIDE = 8  # of an image: it is halved twice


class ResNet(nn.Module):
    """A residual network for images such as those of CIFAR, `(n, channels, height, width)`.

    A 3x3 convolution, then three stages of `(depth - 2) / 6` residual blocks with `width`, twice
    and four times as many channels; the second and the third stage halve the image. Each
    convolution is followed by batch norm; at the end, maps are averaged. `dim` is the number of
    channels of the last block, so of features, by default `4 * width`. Features are not negative,
    unless `linear` leaves out the last ReLU.
    With `NetworkRecipe(optimizer="sgd", weight_decay=5e-4, augment="flip_crop")` and
    `learning_rate=0.1`, training is as usual for these networks.

    >>> import torch
    >>> ResNet((3, 32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    kind: ClassVar[str] = "images"

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        dim: int | None = None,
        *,
        depth: int = 20,
        width: int = 16,
        linear: bool = False,
    ) -> None:
        super().__init__()
        if check_k(depth, "depth") < 8 or (depth - 2) % 6:
            raise ParameterError(f"depth={depth} is not possible: use 8, 14, 20, 26, 32, ...")
        self.image_shape = tuple(image_shape)
        if min(self.image_shape[1:]) < _LEAST_SIDE:
            raise ParameterError(
                f"images of shape {self.image_shape} are too small: use {_LEAST_SIDE} pixels or "
                "more a side, or umpteen.neural.Conv"
            )
        self.out_features = 4 * check_k(width, "width") if dim is None else check_k(dim, "dim")
        self.first = _convolution(self.image_shape[0], width)
        blocks, channels = [], width
        n_blocks = (depth - 2) // 6
        for stage in range(_N_STAGES):
            for block in range(n_blocks):
                outputs = width * 2**stage
                last = (stage, block) == (_N_STAGES - 1, n_blocks - 1)
                if last:
                    outputs = self.out_features
                stride = 2 if stage and not block else 1
                blocks.append(ResidualBlock(channels, outputs, stride, linear=linear and last))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.blocks(relu(self.first(images.view(len(images), *self.image_shape))))
        features: Tensor = maps.mean(dim=(2, 3))
        return features


class ResidualBlock(nn.Module):
    """ReLU(x + two 3x3 convolutions); a 1x1 convolution of x where its shape differs.

    `linear` leaves out the ReLU of the sum.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, *, linear: bool = False) -> None:
        super().__init__()
        self.activation = nn.Identity() if linear else nn.ReLU()
        self.one = _convolution(inputs, outputs, stride)
        self.two = _convolution(outputs, outputs)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(inputs, outputs, stride, side=1)

    def forward(self, maps: Tensor) -> Tensor:
        found: Tensor = self.activation(self.shortcut(maps) + self.two(relu(self.one(maps))))
        return found


def _convolution(inputs: int, outputs: int, stride: int = 1, side: int = 3) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))

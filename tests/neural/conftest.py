"""Every head by its name, with the same weights in each run."""

import pytest

from tests.serve.clients.install import make_importable

make_importable("transformers")  # from where `make clients` put them, if they are nowhere else

try:
    from .every_head import ALL
except ImportError:  # without PyTorch, all that would use it is skipped
    ALL = {}


@pytest.fixture
def seed():
    import torch

    torch.manual_seed(0)


@pytest.fixture(params=ALL)
def name(request):
    return request.param


@pytest.fixture
def head(name, seed):
    return ALL[name]()

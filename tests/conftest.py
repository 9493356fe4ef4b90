import signal
import sys

import pytest
from hypothesis import settings

# The first call of a kernel compiles it, which takes seconds; the same examples in every run.
settings.register_profile("umpteen", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("umpteen")

if sys.platform != "win32":
    from tests import compile_once

    compile_once.install()


def pytest_collection_modifyitems(items):
    """Run tests of kernels first, as most others need what they compile."""
    items.sort(key=lambda item: "kernels" not in item.path.parts)


@pytest.fixture(params=[signal.default_int_handler])
def on_ctrl_c(request):
    """What Ctrl-C does in the processes that a test starts, whatever nohup or a CI system set."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)

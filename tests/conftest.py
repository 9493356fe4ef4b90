import os
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


@pytest.fixture
def call(capsys):
    """The command in this process, which is quicker; returns stdout and stderr."""

    from umpteen.cli import main

    def called(*arguments, code=0):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert ended.value.code == code, err
        return out, err

    before = os.environ.pop("UMPTEEN_DEBUG", None)
    yield called
    os.environ.pop("UMPTEEN_DEBUG", None)
    if before is not None:
        os.environ["UMPTEEN_DEBUG"] = before

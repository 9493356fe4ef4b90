import pytest

from .cases import CASES, Case, classifiers


@pytest.fixture(params=[name for name in classifiers() if name in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]

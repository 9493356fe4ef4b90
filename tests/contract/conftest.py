import pytest

from .cases import CASES, Case


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found = CASES[request.param]
    pytest.importorskip(found.needs)
    return found

"""What Ray says went wrong arrives as an error of ours, with advice."""

import pytest

from umpteen.cluster.failures import translated
from umpteen.errors import ClusterError, ClusterMemoryError

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")
errors = ray.exceptions


@pytest.mark.parametrize(
    ("problem", "expected", "advice"),
    [
        (errors.OutOfMemoryError("node 3"), ClusterMemoryError, "--num-cpus=N"),
        (errors.ObjectStoreFullError("full"), ClusterMemoryError, "--object-store-memory"),
        (errors.OutOfDiskError("full"), ClusterMemoryError, "free disk space"),
        (errors.WorkerCrashedError(), ClusterError, "ray logs"),
        (errors.NodeDiedError("node 3"), ClusterError, "again and again"),
        (errors.TaskCancelledError(), ClusterError, "cancelled"),
        (errors.RaySystemError("broken"), ClusterError, "same versions"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_of_ray_are_ours_with_advice(problem, expected, advice):
    with pytest.raises(expected, match=advice) as caught, translated(ray):
        raise problem
    assert caught.value.__cause__ is problem

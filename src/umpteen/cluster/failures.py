"""What Ray says went wrong, as errors of this library with advice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from umpteen.cluster.nodes import MORE_STORE
from umpteen.errors import ClusterError, ClusterMemoryError


@contextmanager
def translated(ray: Any) -> Iterator[None]:
    """Raise errors of tasks as they are, and those of Ray as ours."""
    errors = ray.exceptions
    try:
        yield
    except errors.RayTaskError as problem:
        cause = problem.cause
        if not isinstance(cause, Exception):
            raise ClusterError(f"a task failed on the cluster: {problem}") from problem
        cause.add_note(f"in a task on the cluster:\n{problem}")
        raise cause from None
    except errors.OutOfMemoryError as problem:
        raise ClusterMemoryError(
            "a node ran out of memory, and Ray stopped tasks there: give nodes fewer cores "
            f"(ray start --num-cpus=N) or more memory. Ray says: {first_line(problem)}"
        ) from problem
    except (errors.ObjectStoreFullError, errors.OutOfDiskError) as problem:
        raise ClusterMemoryError(
            "the object store of a node is full, and so is the disk that it spills to: "
            f"{MORE_STORE}; or free disk space there. Ray says: {first_line(problem)}"
        ) from problem
    except errors.TaskCancelledError as problem:
        raise ClusterError("a task was cancelled from outside of this program") from problem
    except (errors.WorkerCrashedError, errors.ObjectLostError, errors.NodeDiedError) as problem:
        raise ClusterError(
            "workers or nodes died again and again while they ran the same task. Look for the "
            f"reason in Ray's logs (ray logs). Ray says: {first_line(problem)}"
        ) from problem
    except errors.RayError as problem:
        raise ClusterError(
            f"Ray failed ({type(problem).__name__}): {first_line(problem)} Install the same "
            "versions of umpteen, ray and Python on all nodes, and look into Ray's logs (ray logs)"
        ) from problem


def first_line(problem: Exception) -> str:
    """Return the message of an error without the lines of logs that may follow."""
    return str(problem).strip().partition("\n")[0]

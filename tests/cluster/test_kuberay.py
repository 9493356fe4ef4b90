"""The manifest for Kubernetes: fields that exist, and a command that exists."""

import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from umpteen.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
OF_JOB = {
    "backoffLimit", "entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished",
    "rayClusterSpec",
}  # fmt: skip
OF_GROUP = {
    "groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template",
}  # fmt: skip


@pytest.fixture(scope="module")
def job():
    yaml = pytest.importorskip("yaml")
    (found,) = yaml.safe_load_all((DOCS / "kuberay.yaml").read_text("utf-8"))
    return found


def test_fields_are_those_of_a_ray_job(job):
    """The operator ignores fields that it does not know."""
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert set(job["spec"]) == OF_JOB
    cluster = job["spec"]["rayClusterSpec"]
    assert set(cluster) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert set(cluster["headGroupSpec"]) == {"rayStartParams", "template"}
    for group in cluster["workerGroupSpecs"]:
        assert set(group) == OF_GROUP
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_all_pods_have_the_texts_and_room_for_the_object_store(job):
    """Containers have 64 MB of /dev/shm otherwise, and Ray would use the disk."""
    cluster = job["spec"]["rayClusterSpec"]
    for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"
        assert "persistentVolumeClaim" in volumes[mounts["/texts"]]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


def test_the_command_exists(job):
    program, command, *words = shlex.split(job["spec"]["entrypoint"])
    known = get_command(app).commands[command]
    options = {name for option in known.params for name in option.opts}
    assert program == "umpteen"
    assert {word for word in words if word.startswith("-")} <= options


def test_the_version_of_ray_is_the_pinned_one(job):
    pins = (DOCS.parent / "constraints.txt").read_text().splitlines()
    assert f"ray=={job['spec']['rayClusterSpec']['rayVersion']}" in pins

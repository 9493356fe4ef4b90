"""The manifest for Kubernetes: fields that exist, of their types, and a command that exists.

The fields are those of `RayJobSpec`, `RayClusterSpec` and their parts in KubeRay's API, version v1
(ray-operator/apis/ray/v1), and of pods in Kubernetes' API: those that such a manifest can need.
"""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from umpteen.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[KMGT]i?)?")
TEXTS = {str: str}
RESOURCES = {"cpu": QUANTITY, "memory": QUANTITY}
CONTAINER = {
    "name!": NAME, "image!": str, "imagePullPolicy": str, "command": [str], "args": [str],
    "env": [{"name!": str, "value!": str}],
    "ports": [{"containerPort!": int, "name": NAME, "protocol": str}],
    "resources!": {"requests!": RESOURCES, "limits!": RESOURCES},
    "volumeMounts": [{"mountPath!": str, "name!": NAME, "readOnly": bool, "subPath": str}],
}  # fmt: skip
VOLUME = {
    "name!": NAME,
    "persistentVolumeClaim": {"claimName!": NAME, "readOnly": bool},
    "emptyDir": {"medium": str, "sizeLimit": QUANTITY},
}
POD = {
    "metadata": {"labels": TEXTS, "annotations": TEXTS},
    "spec!": {"containers!": [CONTAINER], "volumes": [VOLUME], "nodeSelector": TEXTS,
              "serviceAccountName": NAME, "tolerations": [dict]},
}  # fmt: skip
HEAD = {
    "rayStartParams!": TEXTS, "template!": POD, "serviceType": str, "enableIngress": bool,
}  # fmt: skip
WORKERS = {
    "groupName!": NAME, "replicas": int, "minReplicas!": int, "maxReplicas!": int,
    "numOfHosts": int, "rayStartParams!": TEXTS, "template!": POD, "scaleStrategy": dict,
}  # fmt: skip
CLUSTER = {
    "headGroupSpec!": HEAD, "workerGroupSpecs": [WORKERS], "rayVersion": str,
    "enableInTreeAutoscaling": bool, "autoscalerOptions": dict, "suspend": bool,
}  # fmt: skip
JOB = {
    "activeDeadlineSeconds": int, "backoffLimit": int, "rayClusterSpec": CLUSTER,
    "submitterPodTemplate": POD, "metadata": TEXTS, "clusterSelector": TEXTS,
    "submitterConfig": {"backoffLimit": int}, "managedBy": str, "deletionStrategy": dict,
    "entrypoint": str, "runtimeEnvYAML": str, "jobId": str, "submissionMode": str,
    "entrypointResources": str, "entrypointNumCpus": float, "entrypointNumGpus": float,
    "ttlSecondsAfterFinished": int, "shutdownAfterJobFinishes": bool, "suspend": bool,
}  # fmt: skip
MANIFEST = {
    "apiVersion!": str, "kind!": str, "spec!": JOB,
    "metadata!": {"name!": NAME, "namespace": NAME, "labels": TEXTS, "annotations": TEXTS},
}  # fmt: skip


def faults(value, form, at="manifest"):
    """What is wrong with a value: fields nobody knows, missing ones (marked by !), other types."""
    if isinstance(form, re.Pattern):
        if not isinstance(value, str) or not form.fullmatch(value):
            yield f"{at} is {value!r}"
    elif isinstance(form, type):
        if type(value) is not form:
            yield f"{at} is {value!r}, not of type {form.__name__}"
    elif isinstance(form, list):
        if not isinstance(value, list) or not value:
            yield f"{at} is no list"
        else:
            for i, each in enumerate(value):
                yield from faults(each, form[0], f"{at}[{i}]")
    elif not isinstance(value, dict):
        yield f"{at} has no fields"
    elif form is TEXTS:
        yield from (f"{at}.{key} is no text" for key in value if type(value[key]) is not str)
    else:
        known = {name.rstrip("!"): own for name, own in form.items()}
        yield from (f"{at}.{name} is unknown" for name in value if name not in known)
        yield from (
            f"{at}.{name[:-1]} is missing"
            for name in form
            if name.endswith("!") and name[:-1] not in value
        )
        for name in known.keys() & value.keys():
            yield from faults(value[name], known[name], f"{at}.{name}")


@pytest.fixture
def job():
    yaml = pytest.importorskip("yaml")
    (found,) = yaml.safe_load_all((DOCS / "kuberay.yaml").read_text("utf-8"))
    return found


def test_fields_are_those_of_a_ray_job(job):
    """The operator ignores fields that it does not know, or the server refuses the manifest."""
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert list(faults(job, MANIFEST)) == []
    for group in job["spec"]["rayClusterSpec"]["workerGroupSpecs"]:
        assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def set_field(job, *path, value):
    for key in path[:-1]:
        job = job[key]
    job[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (["spec", "entryPoint"], "umpteen", "spec.entryPoint is unknown"),
        (["spec", "backoffLimit"], "3", "not of type int"),
        (["spec", "rayClusterSpec", "headGroupSpec", "rayStartParams"], {"num-cpus": 0}, "no text"),
        (["spec", "rayClusterSpec", "workerGroupSpecs", 0, "groupName"], "My Group", "My Group"),
        (["spec", "rayClusterSpec", "headGroupSpec"], {"rayStartParams": {}}, "template is mis"),
        (["metadata"], {"name": "umpteen_fit"}, "umpteen_fit"),
    ],
)  # fmt: skip
def test_mistakes_are_found(job, path, value, fault):
    """Otherwise the check above could not fail."""
    set_field(job, *path, value=value)
    assert fault in "\n".join(faults(job, MANIFEST))


def test_all_pods_have_the_texts_and_room_for_the_object_store(job):
    """Containers have 64 MB of /dev/shm otherwise, and Ray would use the disk."""
    cluster = job["spec"]["rayClusterSpec"]
    for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert set(mounts.values()) == set(volumes)
        assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"
        assert "persistentVolumeClaim" in volumes[mounts["/texts"]]
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_command_exists(job):
    program, command, *words = shlex.split(job["spec"]["entrypoint"])
    known = get_command(app).commands[command]
    options = {name for option in known.params for name in option.opts}
    assert program == "umpteen"
    assert {word for word in words if word.startswith("-")} <= options


def test_the_version_of_ray_is_the_pinned_one(job):
    pins = (DOCS.parent / "constraints.txt").read_text().splitlines()
    assert f"ray=={job['spec']['rayClusterSpec']['rayVersion']}" in pins

"""On a disk that is really full, nothing is acknowledged that is not on it."""

import shutil
import subprocess
from contextlib import suppress

import pytest

from umpteen.serve.journal import read_corrections


@pytest.fixture
def disk(tmp_path):
    """A disk of 2 MB, in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a disk in memory: run it as root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk):
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)) == 4096:
            pass


def test_what_does_not_fit_is_refused_and_the_journal_stays_whole(disk, saved, serving):
    model = shutil.copytree(saved, disk / "kitchen")
    client = serving(model, learns=True)
    acknowledged = []

    def teach(number):
        items = [{"text": f"{number} {'dough ' * 200}", "labels": ["bread"]} for _ in range(2)]
        answer = client.post("/v1/kitchen/learn", json={"items": items})
        acknowledged.extend([items[0]["text"]] * (2 * (answer.status_code == 200)))
        return answer

    def recorded():
        return [one.text for one in read_corrections(model.parent / "kitchen.serve" / "journal")]

    assert teach(0).status_code == 200
    fill(disk)
    answers = [teach(number) for number in range(1, 9)]  # the last page of the file has some room
    assert [one.status_code for one in answers[-5:]] == [503] * 5
    assert "no corrections were recorded" in answers[-1].json()["detail"]
    assert answers[-1].headers["Retry-After"]
    assert client.post("/v1/kitchen/suggest", json={"text": "dough"}).status_code == 200
    assert recorded() == acknowledged

    (disk / "filler").unlink()
    assert teach(9).status_code == 200
    assert recorded() == acknowledged
    files = (model.parent / "kitchen.serve" / "journal").glob("*.jsonl")
    assert all(line.endswith(b"}\n") for file in files for line in file.open("rb"))

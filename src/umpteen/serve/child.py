"""The process that learns: `python -m umpteen.serve.child '{"state": ...}'`.

It reads the journal and the current version, and adds a new version if that is not worse. It prints
the outcome as a line of JSON and changes nothing else: the server chooses the version. It exits
when the server does, and nothing is lost. As a separate process, it does not block requests.
"""

import json
import os
import sys
import threading
from pathlib import Path

from umpteen.serve.learning import learn
from umpteen.serve.versions import Version

_NICE = 5  # answers come first


def main(arguments: list[str]) -> None:
    """Learn as the server asks in a JSON object, the only argument."""
    asked = json.loads(arguments[0])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    validation = asked["validation"] and Path(asked["validation"])
    current = Version.of(asked["current"])
    outcome = learn(Path(asked["state"]), current, asked["last"], validation)
    print(json.dumps(outcome.to_dict()), flush=True)


def _end_with_parent() -> None:
    """Exit when the server is gone, which holds the other end of stdin."""
    os.read(0, 1)  # not sys.stdin, whose lock would be held when this process ends
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a first run on a machine has to compile."""

import json
import subprocess
import sys

from umpteen.cli.models import OF_FIT
from umpteen.tagger.fitting import N_KERNELS

FIRST_HOUR = """
import json, sys
import umpteen as um

def n_signatures():
    names = [name for name in sys.modules if name.startswith("umpteen.kernels.")]
    modules = [sys.modules[name] for name in names]
    functions = {id(one): one for module in modules for one in vars(module).values()}
    return {one.__name__: len(one.signatures) for one in functions.values()
            if getattr(one, "signatures", None)}

words = [first + second for first in "abcdefghijklmnop" for second in "abcdefghijklmnop"]
texts = [
    f"{word} {other} {word}{other} is in the house of"
    for word in words for other in ("and", "or")
]
labels = [[text.split()[0]] for text in texts]
um.Tagger().fit(texts, labels).save("model")
of_fit = n_signatures()
for mmap in (True, False):
    tagger = um.load("model", mmap=mmap)
    tagger.predict(texts[0])
    tagger.predict(texts)
print(json.dumps([of_fit, n_signatures()]))
"""


def test_each_kernel_is_compiled_for_one_list_of_types(tmp_path):
    """Arrays that differ in a type or a layout only make a person wait for the same code again."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_HOUR],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    of_fit, of_all = json.loads(done.stdout)
    assert set(of_all.values()) == {1}, of_all
    assert of_all == of_fit
    assert len(of_fit) == N_KERNELS == OF_FIT, of_fit

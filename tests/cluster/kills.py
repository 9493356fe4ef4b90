"""Kills in the middle; the kernels are loaded once, in the process that others are forked from."""

import multiprocessing
import os
import signal

import umpteen as um
from umpteen.cluster import offline_answers

um.Tagger(language=None).fit(["a loaf", "a soup"] * 3, [["bread"], ["soup"]] * 3).predict("a loaf")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.cluster.kills"])


def exit_code_of_kill(moment, *arguments):
    """Predict in another process that is killed at its n-th step; 0 if it has fewer."""
    process = _context.Process(target=_predict_until, args=(moment, *map(str, arguments)))
    process.start()
    process.join(60)
    return process.exitcode


def _predict_until(moment, model, inputs, output):
    left = moment

    def counted(function):
        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in ("open", "fsync", "replace"):
        setattr(os, name, counted(getattr(os, name)))
    offline_answers.answer = counted(offline_answers.answer)
    um.cluster.predict(model, inputs, output, verbose=False)

"""The libraries under test, each behind the same few calls.

A module here is imported only in a worker process, by the interpreter that has its library.
"""

from importlib import import_module

from harness.libraries.base import Library


def open_library(name: str, *, threads: int, seed: int) -> Library:
    """The adapter `name`, with nothing trained or loaded yet."""
    return import_module(f"harness.libraries.{name}").Adapter(threads=threads, seed=seed)

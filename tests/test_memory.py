"""Freed memory goes back to the system if that is possible, and is no problem elsewhere."""

import sys

import pytest

from umpteen import memory


@pytest.mark.parametrize("platform", [sys.platform, "darwin", "win32"])
def test_freed_memory_is_returned_on_any_system(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    memory._trim.cache_clear()
    memory.release_freed()
    memory._trim.cache_clear()


def test_a_c_library_that_cannot_return_memory_is_left_alone(monkeypatch):
    """Such as musl's."""
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    memory._trim.cache_clear()
    memory.release_freed()
    memory._trim.cache_clear()


def test_a_python_without_dynamic_libraries_is_no_problem(monkeypatch):
    def refuse(name):
        raise OSError("Dynamic loading not supported")

    monkeypatch.setattr(memory.ctypes, "CDLL", refuse)
    memory._trim.cache_clear()
    memory.release_freed()
    memory._trim.cache_clear()

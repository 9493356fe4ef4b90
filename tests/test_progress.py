"""A bar where somebody watches, silence in logs and pipes."""

import io

import pytest
from numba import njit

from umpteen.progress import compile_line, progress_bar, status_line


def count_to_three(verbose):
    with progress_bar("Counting", total=3, verbose=verbose) as bar:
        for number in range(3):
            bar.advance(loss=0.5 - number / 10)


@pytest.mark.parametrize("verbose", ["auto", False])
def test_silent_where_nobody_watches(verbose, capsys):
    count_to_three(verbose)
    assert capsys.readouterr() == ("", "")


def test_drawn_on_stderr_when_asked_for(capsys):
    """stdout belongs to results: a bar in it would spoil a pipe."""
    count_to_three(True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Counting" in err
    assert "3/3" in err


def test_drawn_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    count_to_three("auto")
    assert "Counting" in capsys.readouterr().err


def test_bars_on_a_terminal_leave_nothing_behind(monkeypatch):
    """A program that predicts forty times would otherwise end in forty bars."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    count_to_three("auto")
    assert "3/3" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # erases the line of the bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_status_line_is_erased(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with status_line("Reading"):
        assert terminal.getvalue().endswith("Reading")
    assert terminal.getvalue().endswith("\x1b[K")


def test_errors_pass_through():
    with pytest.raises(KeyboardInterrupt), progress_bar("Counting", total=3, verbose=True):
        raise KeyboardInterrupt


@pytest.fixture
def kernel():
    """A function that nobody compiled before."""

    def add_one(number):
        return number + 1

    add_one.__module__ = "umpteen.kernels.made_up"
    return njit(add_one)


def test_a_line_says_that_and_how_far_kernels_are_compiled(kernel, capsys):
    """Without it the first run on a machine looks as if it hung."""
    with compile_line(1000, verbose=True):
        kernel(1)
    _, err = capsys.readouterr()
    assert "once per machine" in err
    assert "of up to 1000" in err
    assert err.endswith("\r\x1b[K")  # nothing is left on the screen


def test_a_bar_says_that_kernels_are_compiled(kernel, capsys):
    with progress_bar("Counting", total=3, verbose=True) as bar:
        kernel(1)
        bar.advance(3)
    _, err = capsys.readouterr()
    assert "Counting" in err
    assert "\r\x1b[K" not in err  # a line would be drawn through the bar


@pytest.mark.parametrize("verbose", ["auto", False])
def test_silent_about_kernels_where_nobody_watches(verbose, kernel, capsys):
    with compile_line(9, verbose=verbose):
        kernel(1)
    assert capsys.readouterr() == ("", "")


def test_silent_about_kernels_that_are_compiled_already(kernel, capsys):
    kernel(1)
    with compile_line(9, verbose=True):
        kernel(1)
    assert capsys.readouterr() == ("", "")

"""A bar where somebody watches, silence in logs and pipes."""

import pytest

from umpteen.progress import progress_bar


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


def test_errors_pass_through():
    with pytest.raises(KeyboardInterrupt), progress_bar("Counting", total=3, verbose=True):
        raise KeyboardInterrupt

"""`umpteen demo`."""

from importlib import import_module

from umpteen.cli.errors import UsageError


def demo() -> None:
    """Learn from data that is built in, and show what comes out.

    \b
    Example:
      umpteen demo
    \b
    The data is the documentation of the installed Python libraries: describe what you want, get
    the function. Takes a minute or two at first.
    """
    try:
        main = import_module("umpteen.demo").main
    except ModuleNotFoundError as missing:
        if missing.name != "umpteen.demo":
            raise
        raise UsageError("this version of umpteen has no demo") from None
    main()

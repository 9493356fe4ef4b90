"""`python -m umpteen` is the command `umpteen`."""

from umpteen.cli import main

main()

"""Annif's command line, with the backend `umpteen`."""

from importlib import import_module

from umpteen.contrib.annif import register

if __name__ == "__main__":
    register()
    import_module("annif.cli").cli(prog_name="annif")

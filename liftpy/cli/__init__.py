"""The command line: `liftpy ...` or `python -m liftpy ...`."""

from liftpy.cli.main import main

__all__ = ["main"]

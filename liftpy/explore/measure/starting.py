"""Starts the code of a worker process.

    python -m liftpy.explore.measure.starting MODULE FD

What a worker imports stays: without the garbage collector it is there a fifth sooner, and no later
collection looks at it again.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module


def start(module: str) -> None:
    """Imports a module and has it work, on the socket that is the last argument."""
    gc.disable()
    work = import_module(module).work
    gc.freeze()
    gc.enable()
    work()


if __name__ == "__main__":
    start(sys.argv[1])

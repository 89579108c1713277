"""Modules that need a library which is not installed with liftpy.

They are imported when they are asked for: such a library is an extra, and may be slow to import.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from liftpy.errors import LiftError


def needing(library: str, extra: str, module: str, what: str) -> ModuleType:
    """A module that imports `library`; LiftError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != library:
            raise
        raise LiftError(
            f"{what} needs {library}, which is not installed: pip install 'liftpy[{extra}]'"
        ) from missing

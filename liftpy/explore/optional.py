"""Modules that need a library which is not installed with liftpy.

They are imported on first use: their libraries are extras, and may be slow to import.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from liftpy.errors import LiftError


def needing(library: str, extra: str, module: str, what: str) -> ModuleType:
    """Imports `module`, which needs `library`.

    Raises LiftError with the command that installs `library` if it is missing.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != library:
            raise
        raise LiftError(
            f"{what} needs {library}, which is not installed: pip install 'liftpy[{extra}]'"
        ) from missing

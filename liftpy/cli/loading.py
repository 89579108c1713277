"""Imports modules of commands on demand: the only place that does so."""

from __future__ import annotations

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Imports a module of this package."""
    return importlib.import_module(f"liftpy.cli.{name}")

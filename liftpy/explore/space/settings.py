"""Settings of one candidate, and those that a user allows: their types and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Settings = dict[str, str | int]
"""Structural choices with their words and sizes with their numbers, as in `--set`."""

Choice: TypeAlias = str | int | Sequence[str | int]
"""One value, or several allowed values."""

Fixed: TypeAlias = Mapping[str, Choice]
"""Settings, each with one or several allowed values: `{"family": "direct", "kappa": [8, 16]}`."""


def spelled(settings: Fixed) -> str:
    """Settings as in `--set`: `family=direct, kappa=8,16`."""
    pairs = (f"{name}={spelled_choice(value)}" for name, value in settings.items())
    return ", ".join(pairs) or "no settings"


def spelled_choice(value: Choice) -> str:
    """One value, or several with commas between."""
    return str(value) if isinstance(value, str | int) else ",".join(map(str, value))

"""Settings of one candidate, and those that a user allows: their types and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Settings = dict[str, str | int]
"""Structural choices with their words and sizes with their numbers, as in `--set`."""

Choice: TypeAlias = str | int | Sequence[str | int]
"""One value, or several allowed values."""

Fixed: TypeAlias = Mapping[str, Choice]
"""Settings, each with one or several allowed values: `{"family": "direct", "kappa": [8, 16]}`."""


def is_number(value: Any) -> bool:
    """Whether a value is a whole number or the text of one."""
    return isinstance(value, int) or (
        isinstance(value, str) and value.removeprefix("-").isdecimal()
    )


def spelled(settings: Fixed) -> str:
    """Settings as in `--set`: `family=direct, kappa=8,16`."""
    pairs = (f"{name}={spelled_choice(value)}" for name, value in settings.items())
    return ", ".join(pairs) or "no settings"


def spelled_choice(value: Choice) -> str:
    """One value, or several with commas between."""
    return str(value) if isinstance(value, str | int) else ",".join(map(str, value))

"""The types of settings: of one candidate, and of those that a user allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Settings = dict[str, str | int]
"""Structural choices with their words and sizes with their numbers, as in `--set`."""

Choice: TypeAlias = str | int | Sequence[str | int]
"""One value, or several allowed values."""

Fixed: TypeAlias = Mapping[str, Choice]
"""Settings, each with one or several allowed values: `{"family": "direct", "kappa": [8, 16]}`."""

"""What is set of a candidate, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Settings = dict[str, str | int]
"""What `--set` takes: structural choices with their words, sizes with their numbers."""

Choice: TypeAlias = str | int | Sequence[str | int]
"""A value, or several of which one is to be chosen."""

Fixed: TypeAlias = Mapping[str, Choice]
"""Settings, some with several values: `{"family": "direct", "kappa": [8, 16]}`."""

"""The outcomes that a board can report."""

from typing import Literal, TypeAlias, get_args

OutcomeName: TypeAlias = Literal["measured", "refused", "build_failed", "wrong", "crashed"]

OUTCOMES: tuple[str, ...] = get_args(OutcomeName)

"""The verdicts on a rule or a primitive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Proved:
    """It holds at all sizes; one sentence for each obligation that was shown."""

    obligations: tuple[str, ...]

    def __str__(self) -> str:
        return "proved"


@dataclass(frozen=True, slots=True)
class Refuted:
    """It is false: the obligation that fails, and sizes at which it does."""

    obligation: str
    witness: str

    def __str__(self) -> str:
        return f"refuted: {self.obligation}: {self.witness}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither shown nor refuted. It counts as not proved."""

    obligation: str
    reason: str

    def __str__(self) -> str:
        return f"unknown: {self.obligation}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Vacuous:
    """Its assumptions hold for no array of more than 8 elements, so it says nothing."""

    reason: str

    def __str__(self) -> str:
        return f"vacuous: {self.reason}"


Verdict: TypeAlias = Proved | Refuted | Unknown | Vacuous


class Open(Exception):
    """An obligation that could not be shown; `prove` and `contract` turn it into a verdict."""

    def __init__(self, obligation: str, reason: str, sizes: dict[str, int] | None = None) -> None:
        super().__init__(f"{obligation}: {reason}")
        self.obligation = obligation
        self.reason = reason
        self.sizes = sizes

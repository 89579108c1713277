"""What a family finds in a stage: choices, sizes, and a strategy for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from liftpy.ir.expr import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategy import Strategy

Choices: TypeAlias = tuple[tuple[str, str], ...]
OF_ONE = {"pad": "fused", "level": "seq", "map": "loops"}
"""What one work-item that makes all of a stage chooses of what forms have in common."""
OF_GROUP = {"pad": "fused", "level": "lcl", "map": "items"}
"""Likewise the work-items of a group, which share the outermost map."""


class Form(Protocol):
    """The shape that a family found in a stage: what there is to choose reads it."""

    def choices(self) -> Iterator[Choices]:
        """The structural choices, each a skeleton."""
        ...

    def inside(self, memory: str, /) -> Iterator[Choices]:
        """The choices beside `OF_ONE` or `OF_GROUP` with which a group makes it; none if it cannot.

        `memory` is where it may hold what it names, `local` or `private`.
        """
        ...

    def parameters(self, choices: dict[str, str], /) -> tuple[Parameter, ...]:
        """The sizes that are open with some choices."""
        ...

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter], /) -> Strategy:
        """What lowers the stage with some choices, its sizes open."""
        ...


@dataclass(frozen=True)
class Family:
    """A named set of skeletons of a stage.

    `match` gives the shape that the family looks for, or why a stage does not have it.
    """

    name: str
    summary: str
    match: Callable[[Program], Form | str]


def product(**words: tuple[str, ...]) -> Iterator[Choices]:
    """Every combination of choices.

    >>> [*product(pad=("copy", "fused"), level=("glb",))]
    [(('pad', 'copy'), ('level', 'glb')), (('pad', 'fused'), ('level', 'glb'))]
    """
    combinations: list[Choices] = [()]
    for name, options in words.items():
        combinations = [(*c, (name, word)) for c in combinations for word in options]
    yield from combinations

"""A family and the form it finds in a stage: choices, sizes, and a strategy for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from liftpy.ir.program import Program
from liftpy.ir.types import VNNI
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategy import Strategy

Choices: TypeAlias = tuple[tuple[str, str], ...]
OF_ONE = {"pad": "fused", "level": "seq", "map": "loops"}
"""The choices common to all forms if one work-item makes a whole stage."""
OF_GROUP = {"pad": "fused", "level": "lcl", "map": "items"}
"""The choices common to all forms if the work-items of a group share the outermost map."""
OF_ALL = {"pad": "fused", "level": "glb", "map": "ids"}
"""The choices common to all forms if all work-items make a whole stage, in a kernel of its own."""


class Form(Protocol):
    """The shape that a family found in a stage, from which its choices and sizes follow."""

    def choices(self) -> Iterator[Choices]:
        """The structural choices; each combination is a skeleton.

        If one cannot be derived, the family does not apply to the stage, and none should be.
        """
        ...

    def inside(self, memory: str, /) -> Iterator[Choices]:
        """The choices, besides `OF_ONE`, `OF_GROUP` or `OF_ALL`, for a stage made within a block.

        None if a group cannot make the stage. `memory` is where it may hold named values, `local`
        or `private`.
        """
        ...

    def parameters(self, choices: dict[str, str], /) -> tuple[Parameter, ...]:
        """The sizes that are open with these choices."""
        ...

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter], /) -> Strategy:
        """The strategy that lowers the stage with these choices, its sizes open."""
        ...


@dataclass(frozen=True)
class Family:
    """A named set of skeletons of a stage.

    `match` returns the form of a stage, or why the family does not apply to it. A family
    `for_groups` gains by local memory that is faster than caches. A CPU has none and pays for each
    barrier, so its space contains such a family only if the user names it. The same holds for a
    family `for_gpus`, whose forms take more time or memory on a CPU than those of another family. A
    family `if_named` is in no device's space unless the user names it: its forms refine those of
    another family, and would take draws from it. A family with `instructions` gains by the
    instructions of these OpenCL extensions, and is in the space of a GPU that has one of them. The
    space of a CPU contains it only if the user names it, or if the processor has the instructions
    (`VNNI`): a runtime may have the extension on any processor. A family with `vectors` loads them
    from its arrays: on a device with images, it has the choice to read these through images
    (`strategies/images.py`).
    """

    name: str
    summary: str
    match: Callable[[Program], Form | str]
    for_groups: bool = False
    for_gpus: bool = False
    if_named: bool = False
    instructions: tuple[str, ...] = ()
    vectors: bool = False

    def suits(self, kind: str, extensions: Collection[str]) -> bool:
        """Whether an unnamed family is in the space of a device of this kind, such as CPU."""
        if self.if_named or (kind == "CPU" and (self.for_groups or self.for_gpus)):
            return False
        known = {*extensions} & {VNNI} if kind == "CPU" else {*extensions}
        return not self.instructions or not known.isdisjoint(self.instructions)


def product(**words: tuple[str, ...]) -> Iterator[Choices]:
    """Every combination of choices.

    >>> [*product(pad=("copy", "fused"), level=("glb",))]
    [(('pad', 'copy'), ('level', 'glb')), (('pad', 'fused'), ('level', 'glb'))]
    """
    combinations: list[Choices] = [()]
    for name, options in words.items():
        combinations = [(*c, (name, word)) for c in combinations for word in options]
    yield from combinations

"""`small`: each work-item makes small arrays, by straight-line code in registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.walk import at, every_part
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.families.common import fused_or_stored
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import lists_elements, nests, paths_of
from liftpy.rewrite.strategies.share import has_fold_in
from liftpy.rewrite.strategies.straight import in_registers, small_map, unrolled
from liftpy.rewrite.strategy import Failure, Strategy, seq

_STRAIGHT = remembered(seq(in_registers, unrolled()))


@dataclass(frozen=True)
class Small:
    """Maps of functions that make small arrays, with the maps that make the stage exposed."""

    program: Program
    made: Expr

    def choices(self) -> Iterator[Choices]:
        """The part of the padding that is stored, and the mappings of the maps around."""
        inner = [k for k, path in enumerate(paths_of(nests(self.made))) if self.is_inner(path)]
        found = mappings(self.made, ordered=True)
        maps = [show_mapping(m) for m in found if all(m[k] is None for k in inner)]
        yield from product(pad=fused_or_stored(self.program.body.body), map=tuple(maps))

    def is_inner(self, path: tuple[int, ...]) -> bool:
        """Whether a work-item runs the map at a path."""
        return small_map(at(self.made, path))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """One way, without choices."""
        yield ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """None."""
        return ()

    def strategy(self, choices: dict[str, str], _sizes: dict[str, Parameter]) -> Strategy:
        """Assign the levels of a mapping; what is small is unrolled and held in registers."""
        levels = mapped(choices["map"], _STRAIGHT)
        return seq(exposed(), levels, store_padding(choices["pad"]))


def match(program: Program) -> Small | str:
    """The maps around small arrays."""
    body = program.body.body
    if not is_straight(body):
        return "no map makes small arrays whose elements are listed, or something is folded"
    made = exposed()(body)
    return str(made) if isinstance(made, Failure) else Small(program, made.expr)


def is_straight(expr: Expr) -> bool:
    """Whether a value is made of small arrays whose elements are listed, without a fold."""
    return not has_fold_in(expr) and any(lists_elements(e) for e in every_part(expr))


SMALL = Family("small", "small arrays by straight-line code in registers", match)

"""`plain`: ids are assigned to the maps that make the result, by every legal mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.families.common import paddings
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategy import Failure, Strategy, seq


@dataclass(frozen=True)
class Plain:
    """Any stage."""

    program: Program

    def choices(self) -> Iterator[Choices]:
        """The part of the padding that is stored, and every legal mapping."""
        result = exposed()(self.program.body.body)
        if not isinstance(result, Failure):
            maps = tuple(map(show_mapping, mappings(result.expr)))
            yield from product(pad=paddings(self.program), map=maps)

    def inside(self, _memory: str) -> Iterator[Choices]:
        """One combination: no additional choices."""
        yield ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """None."""
        return ()

    def strategy(self, choices: dict[str, str], _sizes: dict[str, Parameter]) -> Strategy:
        """Assign the levels of a mapping to the `exposed` maps."""
        return seq(exposed(), mapped(choices["map"]), store_padding(choices["pad"]))


PLAIN = Family("plain", "ids for the maps that make the result, by every legal mapping", Plain)

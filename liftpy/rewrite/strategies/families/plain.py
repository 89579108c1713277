"""`plain`: ids are assigned to the maps that make the result, by every legal mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.by_index import bins_of, prepared
from liftpy.rewrite.strategies.families.common import paddings
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategy import Failure, Result, Strategy, seq


@dataclass(frozen=True)
class Plain:
    """Any stage."""

    program: Program

    def choices(self) -> Iterator[Choices]:
        """The part of the padding that is stored, and every legal mapping.

        For a reduction by index, another choice is whether each bin is a fold, or one loop updates
        all.
        """
        body = self.program.body.body
        words = bins_of(body)
        for word in words or (None,):
            bins = {} if word is None else {"bins": (word,)}
            yield from self.mapped(seq(prepared(word), exposed())(body), bins)

    def mapped(self, result: Result, bins: dict[str, tuple[str, ...]]) -> Iterator[Choices]:
        """The choices for a body that is `exposed`."""
        if not isinstance(result, Failure):
            maps = [show_mapping(m) for m in mappings(result.expr)]
            yield from product(**bins, pad=paddings(result.expr), map=tuple(maps))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """One combination: no additional choices."""
        yield ()

    def parameters(self, _choices: dict[str, str]) -> tuple[Parameter, ...]:
        """None."""
        return ()

    def strategy(self, choices: dict[str, str], _sizes: dict[str, Parameter]) -> Strategy:
        """Assign the levels of a mapping to the `exposed` maps."""
        bins = prepared(choices.get("bins"))
        return seq(bins, exposed(), mapped(choices["map"]), store_padding(choices["pad"]))


PLAIN = Family("plain", "ids for the maps that make the result, by every legal mapping", Plain)

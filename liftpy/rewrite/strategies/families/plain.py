"""`plain`: ids are assigned to the maps that make the result, by every legal mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType
from liftpy.primitives.lowered import DIMENSIONS, MapGlb
from liftpy.primitives.work import computes
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.by_index import bins_of, prepared
from liftpy.rewrite.strategies.families.common import paddings
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import copied, exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategies.privatized import PRIVATIZED, pairs_of, privatized
from liftpy.rewrite.strategies.shapes import rank
from liftpy.rewrite.strategy import Failure, Result, Strategy, seq

COPIED = "copied"
"""The mapping of a stage that only moves elements: the outer dimensions over global ids."""


@dataclass(frozen=True)
class Plain:
    """Any stage."""

    program: Program

    def choices(self) -> Iterator[Choices]:
        """The part of the padding that is stored, and every legal mapping.

        For a reduction by index, another choice is whether each bin is a fold, one loop updates
        all, or chunks of the pairs have copies of the bins.
        """
        body = self.program.body.body
        for word in bins_of(body) or (None,):
            bins = {} if word is None else {"bins": (word,)}
            yield from self.mapped(seq(prepared(word), exposed())(body), bins)
        (chunk,) = self.parameters({"bins": PRIVATIZED}) or (None,)
        if chunk is not None:
            made = seq(privatized(chunk.nat), exposed())(body)
            yield from self.mapped(made, {"bins": (PRIVATIZED,)}, stored=False)

    def mapped(
        self, result: Result, bins: dict[str, tuple[str, ...]], *, stored: bool = True
    ) -> Iterator[Choices]:
        """The choices for a body that is `exposed`; padding may be `stored`, or is always fused."""
        if not isinstance(result, Failure):
            maps = [show_mapping(m) for m in mappings(result.expr)]
            body = self.program.body.body
            if isinstance(body.type, ArrayType) and not computes(body):
                over_ids = mapping_of_copies(rank(body.type))
                maps = [COPIED if word == over_ids else word for word in maps]
            pads = paddings(result.expr) if stored else ("fused",)
            yield from product(**bins, pad=pads, map=tuple(maps))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """One combination: no additional choices."""
        yield ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The pairs of each copy of the bins, if there are copies."""
        if choices.get("bins") != PRIVATIZED:
            return ()
        lengths = pairs_of(self.program.body.body)
        about = "pairs that a work-item adds to its own bins"
        return (Parameter("chunk", 1, min(lengths), about),) if lengths else ()

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """Assign the levels of a mapping to the `exposed` maps, or global ids to copies."""
        if choices["map"] == COPIED:
            return seq(copied(), store_padding(choices["pad"]))
        word = choices.get("bins")
        bins = privatized(sizes["chunk"].nat) if word == PRIVATIZED else prepared(word)
        return seq(bins, exposed(), mapped(choices["map"]), store_padding(choices["pad"]))


def mapping_of_copies(depth: int) -> str:
    """The mapping by which `copied` copies an array of so many dimensions."""
    ids = min(depth, len(DIMENSIONS))
    return show_mapping(tuple((MapGlb, ids - 1 - k) if k < ids else None for k in range(depth)))


PLAIN = Family("plain", "ids for the maps that make the result, by every legal mapping", Plain)

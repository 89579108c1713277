"""`plain`: ids are assigned to the maps that make the result, by every legal mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType
from liftpy.primitives.parallel import DIMENSIONS, MapGlb
from liftpy.primitives.work import computes
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.atomic import atomic
from liftpy.rewrite.strategies.block import store_padding
from liftpy.rewrite.strategies.by_index import ATOMIC, PRIVATIZED, bins_of, prepared
from liftpy.rewrite.strategies.families.common import paddings
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import copied, exposed
from liftpy.rewrite.strategies.mapping import mapped, mappings, show_mapping
from liftpy.rewrite.strategies.privatized import pairs_of, privatized
from liftpy.rewrite.strategies.shapes import rank
from liftpy.rewrite.strategy import Failure, Strategy, fail, seq

COPIED = "copied"
"""The mapping of a stage that only moves elements: the outer dimensions over global ids."""
LEVELS = ("glb", "wrg")
"""How copies of bins are made: over global ids, or each by a group of one work-item."""


@dataclass(frozen=True)
class Plain:
    """Any stage."""

    program: Program

    def choices(self) -> Iterator[Choices]:
        """The part of the padding that is stored, and every legal mapping.

        For a reduction by index, another choice is whether each bin is a fold, one loop updates
        all, chunks of the pairs have copies of the bins (made over global ids or groups), or pairs
        update them atomically.
        """
        body = self.program.body.body
        for bins in map(dict, bins_choices(body)):
            sizes = {p.name: p for p in self.parameters(bins)}
            result = seq(bins_by(bins, sizes), exposed())(body)
            if not isinstance(result, Failure):
                maps = [show_mapping(m) for m in mappings(result.expr)]
                if isinstance(body.type, ArrayType) and not computes(body):
                    over_ids = mapping_of_copies(rank(body.type))
                    maps = [COPIED if word == over_ids else word for word in maps]
                pads = ("fused",) if bins.get("bins") == PRIVATIZED else paddings(result.expr)
                words = {name: (word,) for name, word in bins.items()}
                yield from product(**words, pad=pads, map=tuple(maps))

    def inside(self, _memory: str) -> Iterator[Choices]:
        """One combination: no additional choices."""
        yield ()

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The pairs of each copy of the bins, if there are copies."""
        if choices.get("bins") != PRIVATIZED:
            return ()
        lengths = pairs_of(self.program.body.body)
        about = "pairs that a work-item folds into its copy of the bins"
        return (Parameter("chunk", 1, min(lengths), about),) if lengths else ()

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """Assign the levels of a mapping to the `exposed` maps, or global ids to copies."""
        if choices["map"] == COPIED:
            return seq(copied(), store_padding(choices["pad"]))
        bins = bins_by(choices, sizes)
        return seq(bins, exposed(), mapped(choices["map"]), store_padding(choices["pad"]))


def bins_choices(body: Expr) -> Iterator[Choices]:
    """The choices for reductions by index; one without choices if there are none."""
    words = bins_of(body)
    if not words:
        yield ()
    for word in words:
        levels = {"level": LEVELS} if word == PRIVATIZED else {}
        yield from product(bins=(word,), **levels)


def bins_by(choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
    """The strategy for reductions by index."""
    word = choices.get("bins")
    if word == ATOMIC:
        return atomic
    if word == PRIVATIZED:
        if not sizes:
            return fail("the number of pairs is open")
        return privatized(sizes["chunk"].nat, choices["level"])
    return prepared(word)


def mapping_of_copies(depth: int) -> str:
    """The mapping by which `copied` copies an array of so many dimensions."""
    ids = min(depth, len(DIMENSIONS))
    return show_mapping(tuple((MapGlb, ids - 1 - k) if k < ids else None for k in range(depth)))


PLAIN = Family("plain", "ids for the maps that make the result, by every legal mapping", Plain)

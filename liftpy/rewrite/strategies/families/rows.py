"""`rows`: rows that are folded and mapped, both in vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.ir.nat import nat
from liftpy.ir.program import Program
from liftpy.ir.walk import at
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.families.common import (
    least_width,
    outer_length,
    stored_so,
    stores,
)
from liftpy.rewrite.strategies.families.form import Choices, Family, product
from liftpy.rewrite.strategies.lower import INNER, chain
from liftpy.rewrite.strategies.rows import in_rows, names_arrays, reduced_lengths, row_of
from liftpy.rewrite.strategies.shapes import nests
from liftpy.rewrite.strategies.share import stages
from liftpy.rewrite.strategy import Failure, Strategy, seq

MOST_TURNS = 64  # rows per work-item: with more, the last work-items would keep others waiting
LONGEST = 256  # partial results of a fold, each of which is a register or a lane of one


@dataclass(frozen=True)
class Rows:
    """A map over rows of folds and a map, with the length of the shortest fold and the row count.

    `arrays` says whether a row's function names arrays, which may be held; `passes` says whether
    its folds may take one pass.
    """

    program: Program
    shortest: int
    rows: int
    arrays: bool
    passes: bool = False

    def choices(self) -> Iterator[Choices]:
        """The level of the rows, how their folds are computed, and how results are stored.

        With one pass nothing is held: the arrays that a row names read the first fold's result.
        """
        passes = {"passes": ("two", "one")} if self.passes else {}
        for level, memory in (("glb", "private"), ("wrg", "local")):
            words = {"level": (level,), **self.held(memory), **passes, **stores(self.program)}
            for made in product(**words):
                known = dict(made)
                if known.get("passes") != "one" or known.get("arrays", "again") == "again":
                    yield made

    def inside(self, memory: str, /) -> Iterator[Choices]:
        """The memory that holds the arrays of a row."""
        yield from product(**self.held(memory))

    def held(self, memory: str) -> dict[str, tuple[str, ...]]:
        """The choice of the memory that holds the arrays named by a row's function."""
        return {"arrays": ("again", memory)} if self.arrays else {}

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """The partial results of a fold, the vector width, and the rows of a work-item."""
        most = min(self.shortest, LONGEST)
        of_row = (
            Parameter("strip", 1, most, "partial results of a fold of a row"),
            Parameter("v", least_width(choices), MAX_LANES, "vector width over a row"),
        )
        if choices.get("level") in INNER:
            return of_row
        turns = Parameter("turns", 1, min(self.rows, MOST_TURNS), "rows per work-item, in sequence")
        return (*of_row, turns)

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """`in_rows`."""
        strip, width = sizes["strip"].nat, sizes["v"].nat
        arrays, passes = choices.get("arrays", "again"), choices.get("passes", "two")
        turns = sizes["turns"].nat if "turns" in sizes else nat(1)
        rows = in_rows(strip, width, choices["level"], arrays, passes, turns)
        return seq(rows, stored_so(choices))


def match(program: Program) -> Rows | str:
    """The rows, if the result consists of folds of each row and a map that reads them."""
    body = program.body.body
    lengths = reduced_lengths(body)
    if not lengths or next(stages(body), None) is not None:
        return "the result is not a map over rows that folds and maps each row"
    if len([*chain(nests(body))]) - 1 > len(DIMENSIONS):
        return f"rows in more than {len(DIMENSIONS)} dimensions"
    rows = row_of(body) or ()
    found = Rows(program, min(lengths), outer_length(at(body, rows)), names_arrays(body))
    sizes = {p.name: p for p in found.parameters({})}
    made = found.strategy({"level": "glb"}, sizes)(body)
    if isinstance(made, Failure):
        return f"its folds or elements have no vector form ({made})"
    once = found.strategy({"level": "glb", "passes": "one"}, sizes)(body)
    return found if isinstance(once, Failure) else replace(found, passes=True)


ROWS = Family("rows", "rows that are folded and mapped, in vectors", match, vectors=True)

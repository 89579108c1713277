"""Hints to fetch what the next pass of a loop reads."""

from __future__ import annotations

from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32
from liftpy.loops.fetching import fetched_ahead
from liftpy.loops.tree import (
    Block,
    Fetch,
    For,
    Let,
    Statement,
    statements_in,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.views.terms import Memory

X = Memory("x", "global", F32, 640, writable=False)
Y = Memory("y", "global", F32, 640, writable=False)
HELD = Memory("l0", "local", F32, 64)
ROW = var("i", 0, 9)


def loop(counter: str, length: int, *body: Statement) -> For:
    return For(counter, 0, length, 1, Block(body))


def rows(*body: Statement) -> For:
    """A loop over ten rows of 64 that asks for hints."""
    return For("i", 0, 10, 1, Block(body), ahead=True)


def load(name: str, memory: Memory, counter: str, width: int = 16, row: int = 64) -> Let:
    index = ROW * row + var(counter, 0, 64 // width - 1) * width
    return Let(name, Cell(memory, index, width))


def hints(*statements: Statement) -> list[Fetch]:
    made = fetched_ahead(Block(statements))
    return [s for s in statements_in(made) if isinstance(s, Fetch)]


def test_the_last_loop_that_reads_an_array_fetches_the_next_row() -> None:
    first, last = (loop(name, 4, load(f"v{name}", X, name)) for name in "jk")
    made = fetched_ahead(Block((rows(first, last),)))
    (outer,) = made
    assert isinstance(outer, For)
    assert not outer.ahead
    before, after = outer.body
    assert before == first
    assert isinstance(after, For)
    *_, hint = after.body
    assert hint == Fetch(Cell(X, ROW * 64 + 64 + var("k", 0, 3) * 16, 16))


def test_each_array_is_fetched_where_it_is_read_last() -> None:
    both = loop("j", 4, load("v0", X, "j"), load("v1", Y, "j"))
    found = hints(rows(both, loop("k", 4, load("v2", X, "k"))))
    assert sorted(h.cell.memory.name for h in found) == ["x", "y"]


def test_what_is_no_vector_of_the_next_row_is_not_fetched() -> None:
    assert not hints(loop("i", 10, loop("j", 4, load("v0", X, "j")))), "nobody asks for it"
    assert not hints(rows(loop("j", 4, load("v0", HELD, "j")))), "it is not in global memory"
    assert not hints(rows(loop("j", 64, load("v0", X, "j", 1)))), "scalars"
    assert not hints(rows(loop("j", 4, load("v0", X, "j", row=0)))), "all rows read the same"
    assert not hints(rows(loop("j", 4, Let("v0", Cell(X, ROW * 64 + nat(0), 16))))), "once a row"

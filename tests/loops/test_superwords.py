"""When sums of dot products in adjacent registers become a sum of vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32, I8, I32, U8
from liftpy.loops.superwords import with_superwords
from liftpy.loops.tree import Barrier, Block, For, Let, Statement, Store
from liftpy.loops.values import Cell, Const, Dot, Name, Operate, Value
from liftpy.views.terms import Memory

X, W = Memory("x", "global", U8, 64), Memory("w", "global", I8, 512)
OUT, ACC = Memory("output", "global", I32, 64), Memory("acc", "private", I32, 8)
LANES = 4
STEP = var("i", 0, 7)
ROW = Name("v0", U8, 4)


def register(k: int, width: int = 1) -> Cell:
    """Registers of the accumulator."""
    return Cell(ACC, nat(k), width)


def words(k: int, x: Name = ROW, first: int = 0, stride: int = 4) -> tuple[Statement, Statement]:
    """The load of the weights of a register, and its sum."""
    load = Let(f"w{k}", Cell(W, STEP * 32 + first + stride * k, 4))
    dot = Dot((x, Name(load.name, I8, 4)))
    return load, Store(register(k), Operate("+", (register(k), dot), I32))


SUMS = tuple(s for k in range(LANES) for s in words(k))
LOAD = Let(ROW.name, Cell(X, STEP * 4, 4))
COPIES = tuple(Store(Cell(OUT, nat(k), LANES), register(k, LANES)) for k in (0, LANES))


def after(*body: Statement, copies: tuple[Statement, ...] = COPIES) -> tuple[Statement, ...]:
    """The statements of a loop after the pass; after the loop, `copies` read the registers."""
    loop, *_ = with_superwords(Block((For("i", 0, 8, 1, Block(body)), *copies)))
    assert isinstance(loop, For)
    return loop.body.statements


def vector(first: int, x: Value = ROW, start: int = 0) -> Store:
    """The sum of a vector of registers."""
    dots = Dot((x, Cell(W, STEP * 32 + start, 4 * LANES)))
    cell = register(first, LANES)
    return Store(cell, Operate("+", (cell, dots), I32, LANES))


def stores(statements: tuple[Statement, ...]) -> list[Statement]:
    """The stores among some statements."""
    return [s for s in statements if isinstance(s, Store)]


def test_sums_of_adjacent_registers_become_one() -> None:
    made = after(LOAD, *SUMS)
    assert stores(made) == [vector(0)]
    assert isinstance(made[-1], Store)


def test_each_vector_of_registers_has_a_sum() -> None:
    """Two rows read the same weights, in any order."""
    other = Name("v1", U8, 4)
    below = [
        replace(s, cell=register(k + LANES), value=Operate("+", (register(k + LANES), dot), I32))
        for k in range(LANES)
        for s in [words(k)[1]]
        for dot in [Dot((other, Name(f"w{k}", I8, 4)))]
        if isinstance(s, Store)
    ]
    row = Let(other.name, Cell(X, STEP * 4 + 32, 4))
    made = after(LOAD, row, *SUMS, *reversed(below))
    assert stores(made) == [vector(0), vector(LANES, other)]


REFUSED: dict[str, tuple[Statement, ...]] = {
    "a register that another statement reads": (
        *SUMS[:6],
        Store(register(5), register(1)),
        *SUMS[6:],
    ),
    "a register that is stored in between": (*SUMS[:6], Store(register(1), register(5)), *SUMS[6:]),
    "a register with one sum more": (*SUMS, SUMS[1]),
    "a barrier between them": (*SUMS[:4], Barrier(), *SUMS[4:]),
    "factors that are not adjacent": tuple(s for k in range(LANES) for s in words(k, stride=8)),
    "factors that are not at whole words": tuple(
        s for k in range(LANES) for s in words(k, first=2)
    ),
    "factors that were read before a store": (
        *SUMS[::2],
        Store(Cell(OUT, nat(40)), register(5)),
        *SUMS[1::2],
    ),
    "fewer sums than a vector has lanes": SUMS[:6],
    "another factor in one lane": (*SUMS[:6], *words(3, Name("v1", U8, 4))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_sums_stay(name: str) -> None:
    other = Let("v1", Cell(X, STEP * 4 + 32, 4))
    body = (LOAD, other, *REFUSED[name])
    assert after(*body) == body


@pytest.mark.parametrize("order", [1, -1])
def test_either_factor_may_be_that_of_the_row(order: int) -> None:
    """The factor that all lanes share comes first in the vector of sums."""
    body = [
        replace(s, value=Operate("+", (s.cell, Dot(factors)), I32))
        for s in SUMS
        if isinstance(s, Store)
        for w in [Name(f"w{int(s.cell.index)}", I8, 4)]
        for factors in [(ROW, w) if order == 1 else (w, ROW)]
    ]
    assert stores(after(LOAD, *SUMS[::2], *body)) == [vector(0)]


def test_several_sums_of_a_register_are_joined_one_by_one() -> None:
    """Other stores of its registers may come before and after."""
    zeros = [Store(register(k), Const(0, I32)) for k in range(LANES)]
    again = [
        replace(s, name=f"u{k}", value=Cell(W, STEP * 32 + 256 + 4 * k, 4))
        if isinstance(s, Let)
        else replace(s, value=Operate("+", (register(k), Dot((ROW, Name(f"u{k}", I8, 4)))), I32))
        for k in range(LANES)
        for s in words(k)
    ]
    made = stores(after(LOAD, *zeros, *SUMS, *again))
    assert made == [*zeros, vector(0), vector(0, start=256)]


def test_vectors_begin_at_multiples_of_their_lanes() -> None:
    """Registers 2 to 5 are no vector of the accumulator."""
    middle = [
        replace(s, cell=register(k + 2), value=Operate("+", (register(k + 2), dot), I32))
        if isinstance(s, Store)
        else s
        for k in range(LANES)
        for s in words(k)
        for dot in [Dot((ROW, Name(f"w{k}", I8, 4)))]
    ]
    assert after(LOAD, *middle) == (LOAD, *middle)


@pytest.mark.parametrize("widths", [(2, 2), (4, 2)])
def test_registers_of_other_vectors_stay(widths: tuple[int, int]) -> None:
    """Vectors of fewer than four lanes, and of several widths, which are printed as scalars."""
    copies = tuple(
        Store(Cell(OUT, nat(4 * k), width), register(4 * k, width))
        for k, width in enumerate(widths)
    )
    assert after(LOAD, *SUMS, copies=copies) == (LOAD, *SUMS)


def test_registers_without_vectors_stay() -> None:
    """Printed code has them in scalar variables."""
    single = tuple(Store(Cell(OUT, nat(k)), register(k)) for k in range(8))
    assert after(LOAD, *SUMS, copies=single) == (LOAD, *SUMS)


def test_sums_of_floats_stay() -> None:
    row = Let("v0", Cell(Memory("x", "global", F32, 64), STEP * 4, 4))
    acc = Memory("acc", "private", F32, 8)
    body: list[Statement] = [row]
    for k in range(LANES):
        weights = Cell(Memory("w", "global", F32, 512), STEP * 32 + 4 * k, 4)
        dot = Dot((Name("v0", F32, 4), Name(f"w{k}", F32, 4)))
        cell = Cell(acc, nat(k))
        body += [Let(f"w{k}", weights), Store(cell, Operate("+", (cell, dot), F32))]
    copies = (Store(Cell(Memory("output", "global", F32, 8), nat(0), 4), Cell(acc, nat(0), 4)),)
    assert after(*body, copies=copies) == tuple(body)

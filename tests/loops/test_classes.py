"""Versions for classes of borders: as many as the guards have, without guards, and right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.winograd_claims import CLASSES, overhangs, tiles_kernel, versions
from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32
from liftpy.loops import classes
from liftpy.loops.bounds import guards
from liftpy.loops.classes import of_block, size_of
from liftpy.loops.lower import LoopKernel
from liftpy.loops.merge_stores import merge_stores
from liftpy.loops.nest import MOST_STATEMENTS
from liftpy.loops.passes import after_each_pass
from liftpy.loops.silent_stores import without_silent_stores
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Simple,
    Statement,
    Store,
    statements_in,
)
from liftpy.loops.unswitch import unswitched
from liftpy.loops.values import (
    All,
    Cell,
    Const,
    Name,
    Operate,
    RangeTest,
    Value,
    values_in,
)
from liftpy.loops.zeros import without_zeros
from liftpy.pipeline import PASSES, compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.views.terms import Memory
from tests.draws import unproved
from tests.loops.interpreted import interpreted
from tests.loops.test_unswitch import guarded, held, stores, value
from tests.lowered import lowered

SUMS = "reduceSeq((a, x) => 2 * a + x, 0)"

#: A program over `xss: [7][9]f32`, and how many versions its kernel has.
PROGRAMS = {
    "a stencil of three rows": (
        f"""xss |> pad(1, 1, 0) |> byClasses |> slide(3, 1)
          |> mapGlb(1, rows => rows |> transpose |> mapGlb(0, w => w |> {SUMS}))""",
        3,
    ),
    "a convolution of 3 x 3": (
        f"""xss |> pad2d(1, 1, 1, 1, 0) |> byClasses |> slide(3, 1)
          |> mapGlb(1, rows => rows |> transpose |> slide(3, 1)
            |> mapGlb(0, w => w |> join |> {SUMS}))""",
        9,
    ),
    "a convolution of 5 x 3": (
        f"""xss |> pad2d(2, 2, 1, 1, 0) |> byClasses |> slide(5, 1)
          |> mapGlb(1, rows => rows |> transpose |> slide(3, 1)
            |> mapGlb(0, w => w |> join |> {SUMS}))""",
        15,
    ),
    "padding in front": (
        f"""xss |> pad(2, 0, 9) |> byClasses |> slide(3, 1)
          |> mapGlb(0, rows => rows |> transpose |> mapSeq(w => w |> {SUMS}))""",
        3,
    ),
    "tiles in a loop": (
        """xss |> map(pad(2, 1, 0)) |> byClasses |> mapGlb(0, row => row |> slide(4, 2)
          |> mapSeq(t => t |> slide(3, 1) |> mapSeqUnroll(w => w |> reduceSeqUnroll(add, 0))))""",
        3,
    ),
    "tiles that begin early": (
        f"""xss |> map(pad(1, 1, 0)) |> byClasses |> mapGlb(1, row => row |> cover(4)
          |> mapGlb(0, t => t |> {SUMS}))""",
        3,
    ),
    "no border": (f"xss |> byClasses |> mapGlb(0, row => row |> {SUMS})", 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_has_a_version_for_each_class_and_keeps_its_values(name: str) -> None:
    text, versions = PROGRAMS[name]
    program = lowered(f"def p(xss: [7][9]f32) = {text}")
    xss = np.arange(63, dtype=np.float32).reshape(7, 9) % 17 - 4
    made = compile_program(program)
    assert unproved(made.optimized) == []
    first = interpreted(made, made.loops, {"xss": xss})
    np.testing.assert_allclose(first, evaluate(program, xss), rtol=1e-6)
    np.testing.assert_array_equal(interpreted(made, made.optimized, {"xss": xss}), first)
    (code,) = made.loops
    after = dict(after_each_pass(code, PASSES))["classes"]
    assert versions_in(after.block) == versions
    left = {name for test in guards_of_values(after) for name in test.index.names()}
    assert left.isdisjoint(code.ids)  # only the loops of a fold decide what is left


@pytest.mark.parametrize(
    ("name", "by"),
    [("a stencil of three rows", -1), ("tiles in a loop", -1), ("tiles in a loop", 1)],
)
def test_a_class_that_begins_at_a_wrong_place_is_found(
    name: str, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = classes.mixed

    def wrong(*given: Any) -> tuple[int, int] | None:
        found = right(*given)
        return found and (found[0] + by, found[1] + by)

    monkeypatch.setattr(classes, "mixed", wrong)
    program = lowered(f"def p(xss: [7][9]f32) = {PROGRAMS[name][0]}")
    assert any(g.fault for code in compile_program(program).optimized for g in guards(code))


def versions_in(block: Block) -> int:
    """The number of versions of a block, apart from those of the loops of folds."""
    found = 0
    for s in block:
        match s:
            case If(_, then, otherwise):
                found += versions_in(then) + versions_in(otherwise)
            case For(body=body) if any(map(is_output, statements_in(body))):
                found += versions_in(body)
            case _:
                pass
    return found or 1


def is_output(s: Statement) -> bool:
    """Whether a statement stores to the result."""
    return isinstance(s, Store) and s.cell.memory.space == "global"


def guards_of_values(code: LoopKernel) -> Iterator[RangeTest]:
    """The tests of the guarded values in a kernel's code."""
    for s in statements_in(code.block):
        if isinstance(s, Simple):
            yield from s.tests


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("m", "r", "side"), [(2, 3, 6), (4, 3, 13), (2, 5, 9), (4, 5, 12)])
def test_the_tiles_of_an_image_have_a_version_for_each_pattern_of_zeros(m, r, side) -> None:
    """As many as there are sets of points outside of the image, of one tile each."""
    patterns = len(overhangs(side, m, r)) ** 2
    assert versions(side, m, r) == patterns
    if r == 3:
        assert patterns == CLASSES[m, r]


def test_zeros_are_known_in_the_versions_at_a_border() -> None:
    """In a corner, 9 of 16 points are read, with fewer operations than in the inner version."""
    (code,) = tiles_kernel(6, 2, 3, "classes").optimized
    made = [*leaves(code.block)]
    assert len(made) == 9
    loads = [sum(1 for c in cells_in(b) if c.memory.space == "global") for b in made]
    assert sorted(loads) == [9, 9, 9, 9, 12, 12, 12, 12, 16]
    operations = [sum(1 for v in every_value(b) if isinstance(v, Operate)) for b in made]
    assert max(operations) == (inner := operations[loads.index(16)])
    assert all(n < inner for n, read in zip(operations, loads, strict=True) if read == 9)


def leaves(block: Block) -> Iterator[Block]:
    """The blocks of branches without branches inside."""
    inner = [part for s in block if isinstance(s, If) for part in (s.then, s.otherwise)]
    if not inner:
        yield block
    for part in inner:
        yield from leaves(part)


def every_value(block: Block) -> Iterator[Value]:
    """The values that a block computes, with all their parts."""
    for s in statements_in(block):
        if isinstance(s, Simple):
            yield from values_in(s.value)


def cells_in(block: Block) -> Iterator[Cell]:
    """The cells that a block loads."""
    return (v for v in every_value(block) if isinstance(v, Cell))


def test_versions_keep_within_the_length_of_a_kernel() -> None:
    """One axis of two is split if both are too much, and none if one is."""
    (code,) = tiles_kernel(13, 4, 3, "classes").loops
    block = merge_stores(code.block)
    known = frozenset(code.ids)
    sizes = {room: size_of(of_block(block, known, room)) for room in (10, 1000, 1500, 9000)}
    assert all(size <= max(room, size_of(block)) for room, size in sizes.items())
    assert sizes[10] == size_of(block) < sizes[1000] < sizes[9000] <= MOST_STATEMENTS


@pytest.mark.sampled(14)
@pytest.mark.parametrize("seed", range(40))
def test_versions_make_the_same_stores_in_the_same_order(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    counters = {f"i{depth}": var(f"i{depth}", 0, n - 1) for depth, n in enumerate(lengths)}
    inside: list[Statement] = [guarded(rng, counters, k) for k in range(rng.randint(1, 2))]
    inside += [*held(rng, counters, 5), *stores(rng, counters, 2)]
    for depth, length in reversed(list(enumerate(lengths))):
        first, step = rng.choice([(0, 1), (0, 1), ("gid0", 4)])
        inside = [For(f"i{depth}", first, length, step, Block(tuple(inside)))]
        if rng.random() < 0.4:
            inside.append(guarded(rng, dict(list(counters.items())[:depth]), 10 + depth))
    whole = merge_stores(Block((*inside, *stores(rng, {}, 3))))
    made = of_block(whole, frozenset({"gid0"}), 2000)
    for gid0 in range(4):
        wanted = value(whole, {"gid0": gid0})
        assert value(made, {"gid0": gid0}) == wanted
        assert value(without_silent_stores(unswitched(made)), {"gid0": gid0}) == value(
            without_silent_stores(whole), {"gid0": gid0}
        )


X, R = Name("x", F32), [Cell(Memory("r", "private", F32, 4), nat(k)) for k in range(4)]
ZERO, ONE = Const(0.0, F32), Const(1.0, F32)
ALWAYS = All((RangeTest(var("gid0", 0, 3)),))


def operated(op: str, *parts: Value) -> Operate:
    """An operator of f32 applied."""
    return Operate(op, parts, F32)


OPERATED = [
    (operated("+", ZERO, X), X),
    (operated("+", X, ZERO), X),
    (operated("-", X, ZERO), X),
    (operated("-", ZERO, X), operated("neg", X)),
    (operated("*", X, operated("-", ZERO, ZERO)), ZERO),
    (operated("/", ZERO, ONE), ZERO),
    (operated("/", X, ONE), operated("/", X, ONE)),
    (operated("/", ZERO, X), operated("/", ZERO, X)),  # X may be 0
    (operated("max", ZERO, X), operated("max", ZERO, X)),
]


@pytest.mark.parametrize(("before", "after"), OPERATED, ids=str)
def test_an_operation_with_a_zero_is_done(before: Value, after: Value) -> None:
    assert without_zeros(Block((Store(R[0], before),))) == Block((Store(R[0], after),))


def test_a_register_is_known_until_it_is_stored_to() -> None:
    """In a loop or a branch that stores to it, what it holds is unknown from there on."""
    add = operated("+", R[0], X)
    other = Block((Store(R[0], X),))
    zero = Store(R[0], ZERO)
    for unknown in (Store(R[0], X), For("i", 0, 2, 1, other), If(ALWAYS, other)):
        block = Block((zero, Store(R[1], add), unknown, Store(R[2], add)))
        made = Block((zero, Store(R[1], X), unknown, Store(R[2], add)))
        assert without_zeros(block) == made
    loop = For("i", 0, 2, 1, Block((Store(R[1], add), Store(R[0], X))))
    assert without_zeros(Block((zero, loop))) == Block((zero, loop))


def test_a_loop_in_which_nothing_is_left_is_left_out() -> None:
    assert without_zeros(Block((For("i", 0, 2, 1, Block((Let("x", ZERO),))),))) == Block()


def test_a_variable_of_zero_is_not_declared() -> None:
    block = Block((Let("x", ZERO), Let("y", operated("+", X, R[0])), Store(R[1], Name("y", F32))))
    assert without_zeros(block) == Block((Let("y", R[0]), Store(R[1], Name("y", F32))))

"""Variables that nothing reads are removed, and nothing else."""

from __future__ import annotations

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.spaces import whole_space
from liftpy.ir.nat import var
from liftpy.ir.types import F32, I32
from liftpy.language.text.program import parse
from liftpy.loops.tree import (
    Block,
    Fetch,
    For,
    If,
    Let,
    Store,
)
from liftpy.loops.unused import without_unused
from liftpy.loops.values import (
    All,
    Cell,
    Const,
    Name,
    RangeTest,
)
from liftpy.pipeline import compile_candidate
from liftpy.views.terms import Memory

OUT = Memory("out", F32, "global", 8)
ONE = Const(1.0, F32)


def let(name: str) -> Let:
    """A variable that an index may mention."""
    return Let(name, Const(1, I32))


def store(index: str = "i") -> Store:
    """A store at an index."""
    return Store(Cell(OUT, var(index, 0, 7)), ONE)


def test_what_is_read_anywhere_later_stays() -> None:
    block = Block(
        (
            *map(let, ("a", "b", "c", "d", "e")),
            If(All((RangeTest(var("a", 0, 7)),)), Block((store("b"),))),
            For("i", 0, 8, 1, Block((Fetch(Cell(OUT, var("c", 0, 7))), store()))),
            Store(Cell(OUT, var("i", 0, 7)), Name("d", I32)),
            Store(Cell(OUT, var("i", 0, 7)), ONE, silent=(RangeTest(var("e", 0, 7)),)),
        )
    )
    assert without_unused(block) == block


def test_what_only_unread_variables_read_goes_too() -> None:
    inner = Block((let("a"), Let("b", Name("a", I32)), store()))
    block = Block((let("c"), For("i", 0, 8, 1, inner), Let("d", Name("c", I32))))
    assert without_unused(block) == Block((For("i", 0, 8, 1, Block((store(),))),))


def test_the_parts_of_a_split_loop_have_neither_the_guard_nor_the_other_value() -> None:
    program = parse("""
        def p(xs: [5][3]f32, ys: [5][4]f32) = zip(xs, ys)
          |> map((x, y) => concat(x |> map(v => v * 3), y |> map(v => v + 3))
            |> map(v => v - 1))""")
    space = whole_space(program, DEFAULT_DEVICE, families=("plain",))
    candidate = space.candidate({"map": "glb0.seq"})
    source = compile_candidate(candidate.skeleton, candidate.assignment).source
    assert "?" not in source
    assert source.count("for (") == 2
    assert source.count("xs[") == source.count("ys[") == 1

"""Lanes of vectors store nothing: a map whose lanes would store values stays a loop."""

from __future__ import annotations

import pytest

from liftpy.errors import TypeRefused
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.strategies.lanes import lanes_store, stores, vectorized
from liftpy.rewrite.strategy import Failure

HEAD = "def p(xss: [8][3]f32, ys: [8]f32, zs: [5]f32) = "
LANES = "asVector(4) |> mapGlb(0, v => v |> mapVec({})) |> asScalar"
STORING = {
    "a fold that begins with the lane": "ys |> " + LANES.format("y => zs |> reduceSeq(add, y)"),
    "a fold of a name of the lane": "ys |> "
    + LANES.format("y => let t = y * y in zs |> reduceSeq((a, z) => a + z * t, 0)"),
    "elements that are folds": "xss |> mapSeq(row => row |> reduceSeq(add, 0)) |> "
    + LANES.format("s => s * 2"),
    "named elements that are folds": "let s = xss |> mapSeq(row => row |> reduceSeq(add, 0)) "
    "in s |> " + LANES.format("s => s * 2"),
}
STILL = {
    "the same fold in each lane": "ys |> " + LANES.format("y => y + (zs |> reduceSeq(add, 0))"),
    "a named fold": "ys |> "
    + LANES.format("y => let t = zs |> reduceSeq(add, 1) in y + (zs |> reduceSeq(add, t))"),
    "stored folds": "xss |> mapGlb(0, row => row |> reduceSeq(add, 0)) |> toGlobal |> "
    + LANES.format("s => s * 2"),
    "an accumulator": "xss |> transpose |> reduceSeq((a, x) => zip(a, x) |> mapSeq((s, y) => s + y)"
    ", ys) |> asVector(4) |> mapSeq(v => v |> mapVec(s => s * 2)) |> asScalar",
}


def program(text: str) -> Program:
    return parse(HEAD + text)


@pytest.mark.parametrize("name", STORING | STILL)
def test_lanes_that_store_are_those_that_cannot_be_compiled(name: str) -> None:
    lowered = LoweredProgram.of(program((STORING | STILL)[name]))
    assert lanes_store(lowered.body.body) == (name in STORING)
    if name in STORING:
        with pytest.raises(TypeRefused, match="a function of vector lanes needs a stored value"):
            compile_program(lowered)
    else:
        assert "vstore4" in compile_program(lowered).module.source or name == "an accumulator"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("ys |> map(y => zs |> reduce(add, y))", True),
        ("xss |> map(row => row |> reduce(add, 0)) |> map(s => s * 2)", True),
        ("ys |> map(y => y + (zs |> reduce(add, 0)))", False),
        ("ys |> map(y => zs |> at(i32(y)))", True),
    ],
)
def test_a_map_whose_lanes_would_store_stays_a_loop(text: str, *, stays: bool) -> None:
    body = program(text).body.body
    assert stores(body) == stays
    assert isinstance(vectorized(4)(body), Failure) == stays

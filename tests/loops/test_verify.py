"""Trees that are not well-formed are found, each by its own fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from liftpy.errors import InternalError
from liftpy.ir.nat import nat, var
from liftpy.ir.types import BOOL, F32, I8, I32
from liftpy.loops.lower import LoopKernel
from liftpy.loops.passes import optimized
from liftpy.loops.tree import (
    Barrier,
    Block,
    For,
    If,
    Let,
    Statement,
    Store,
    Update,
)
from liftpy.loops.values import (
    All,
    Cell,
    Const,
    Dot,
    Index,
    Name,
    Operate,
    Pack,
    RangeTest,
    Select,
    Splat,
    SubgroupBroadcast,
    SubgroupReduce,
    SubgroupsReduce,
    VectorSlice,
)
from liftpy.loops.verify import verify
from liftpy.pipeline import compile_program
from liftpy.views.terms import Memory, Space
from tests.lowered import lowered

TEXT = """def rows(xss: [6][8]f32) = xss |> mapWrg(0, row =>
  row |> mapLcl(0, x => x * 2) |> toLocal |> reorder(i => 7 - i, i => 7 - i)
      |> mapLcl(0, x => x + 1))"""

ONE = Const(1.0, F32)
VECTOR = Let("w", Splat(ONE, 4))
W = Name("w", F32, 4)
TESTED = All((RangeTest(var("lid0", 0, 7)),))
PRIVATE = Memory("acc", "private", F32, 2)


ANY = Operate("i32", (Const(9.0, F32),), I32)
"""An integer whose ends are not known."""


def clamped(most: int) -> Let:
    """A variable that clamps an index."""
    least = Operate("max", (ANY, Const(0, I32)), I32)
    return Let("v", Operate("min", (least, Const(most, I32)), I32))


def kernel() -> LoopKernel:
    """A kernel with local memory and a barrier, as it is lowered."""
    (code,) = compile_program(lowered(TEXT)).loops
    return code


def read(code: LoopKernel) -> Memory:
    """The buffer that it reads."""
    return next(m for m in code.buffers if not m.writable)


def image(code: LoopKernel) -> Memory:
    """The buffer that it reads, as an image."""
    return replace(read(code), space="image")


def written(code: LoopKernel) -> Memory:
    """The buffer that it writes."""
    return next(m for m in code.buffers if m.writable)


def stored(code: LoopKernel, *before: Statement, at: object = 0, value: object = ONE) -> Block:
    """A store to the result, after other statements."""
    return Block((*before, Store(Cell(written(code), nat(at)), value)))  # type: ignore[arg-type]


FOLDED = Let("s", SubgroupReduce("+", ONE))
"""The fold of a subgroup, which all work-items of the group must reach."""


def broadcast(item: object = 0, *values: object) -> Let:
    """A broadcast from a work-item of a subgroup, of one value unless others are given."""
    parts = values or (ONE,)
    return Let("b", SubgroupBroadcast(parts, nat(0), nat(item)))  # type: ignore[arg-type]


def results(space: Space = "local") -> Memory:
    """A memory of the results of subgroups, which the kernel does not have."""
    return Memory("l9", space, F32, 8)


FAULTS: dict[str, tuple[Callable[[LoopKernel], Block], str]] = {
    "an atomic update of a float": (
        lambda c: Block((Update(Cell(written(c), nat(0)), ONE, "+"),)),
        "no atomic update of f32 by +",
    ),
    "an atomic update of registers": (
        lambda c: Block((Update(Cell(PRIVATE, nat(0)), ONE, "max"),)),
        "is not a buffer that may be written",
    ),
    "an atomic update of a buffer that is read": (
        lambda c: Block((Update(Cell(read(c), nat(0)), ONE, "max"),)),
        "is not a buffer that may be written",
    ),
    "a broadcast in a branch": (
        lambda c: Block((If(TESTED, Block((broadcast(),))),)),
        "that not all work-items of a subgroup reach",
    ),
    "a broadcast behind a condition": (
        lambda c: Block((Let("s", Select(TESTED, broadcast().value, ONE)),)),
        "that not all work-items of a subgroup reach",
    ),
    "a broadcast in a loop divided unevenly": (
        lambda c: Block((For("i", "lid0", 11, 8, Block((broadcast(),))),)),
        "that not all work-items of a subgroup reach",
    ),
    "a broadcast from different work-items": (
        lambda c: Block((broadcast(var("lid0", 0, 7)),)),
        "which may differ in a subgroup",
    ),
    "a broadcast at the counter of a loop over ids": (
        lambda c: Block((For("i", "lid0", 16, 8, Block((broadcast(var("i", 0, 15)),))),)),
        "which may differ in a subgroup",
    ),
    "a broadcast of one of two values": (
        lambda c: Block((broadcast(0, ONE, ONE),)),
        "a broadcast of one of 2 values",
    ),
    "a broadcast of lanes": (
        lambda c: Block((broadcast(0, Splat(ONE, 4)),)),
        "a broadcast of several lanes or types",
    ),
    "a broadcast of small integers": (
        lambda c: Block((broadcast(0, Const(1, I8)),)),
        "no subgroup broadcasts i8",
    ),
    "a fold of subgroups in a branch": (
        lambda c: Block((If(TESTED, Block((FOLDED,))),)),
        "that not all work-items of a subgroup reach",
    ),
    "a fold of subgroups in a loop divided unevenly": (
        lambda c: Block((For("i", "lid0", 11, 8, Block((FOLDED,))),)),
        "that not all work-items of a subgroup reach",
    ),
    "a fold of subgroups in an expression": (
        lambda c: stored(c, value=Operate("+", (ONE, SubgroupReduce("+", ONE)), F32)),
        "not the value of a variable",
    ),
    "a fold of subgroups by an unknown operator": (
        lambda c: stored(c, Let("s", SubgroupReduce("*", ONE))),
        "no subgroup folds f32 by *",
    ),
    "a fold of subgroups of a short type": (
        lambda c: stored(c, Let("s", SubgroupReduce("+", Const(1, I8)))),
        "no subgroup folds i8 by +",
    ),
    "a fold of subgroups of vectors": (
        lambda c: stored(c, VECTOR, Let("s", SubgroupReduce("+", W))),
        "of 4 lanes",
    ),
    "results of subgroups in registers": (
        lambda c: stored(c, value=SubgroupsReduce("+", Cell(results("private"), nat(0)))),
        "the results of subgroups",
    ),
    "results of subgroups by another id": (
        lambda c: stored(c, value=SubgroupsReduce("+", Cell(results(), var("lid0", 0, 7)))),
        "the results of subgroups",
    ),
    "results of subgroups in an unknown memory": (
        lambda c: stored(c, value=SubgroupsReduce("+", Cell(results(), nat(0)))),
        "no local memory of the kernel",
    ),
    "an unknown variable": (lambda c: stored(c, value=Name("v", F32)), "nothing is declared"),
    "a variable of another type": (
        lambda c: stored(c, Let("v", Const(1, I32)), value=Name("v", F32)),
        "is read where",
    ),
    "a variable of the block before": (
        lambda c: stored(
            c,
            For("i", 0, 2, 1, Block((Let("v", ONE),))),
            value=Name("v", F32),
        ),
        "nothing is declared",
    ),
    "a variable that is declared twice": (
        lambda c: stored(c, Let("v", ONE), Let("v", ONE)),
        "declared twice",
    ),
    "an unknown counter": (lambda c: stored(c, at=var("i", 0, 3)), "no counter or id"),
    "an unknown counter in a test": (
        lambda c: Block((If(All((RangeTest(var("i", 0, 3)),)), stored(c)),)),
        "no counter or id",
    ),
    "an unknown counter as a number": (
        lambda c: stored(c, value=Index(var("i", 0, 3), F32)),
        "no counter or id",
    ),
    "an index that is not clamped": (
        lambda c: stored(c, Let("v", ANY), at=var("v", 0, 3)),
        "no counter or id",
    ),
    "an index that is clamped to more": (
        lambda c: stored(c, clamped(4), at=var("v", 0, 3)),
        "v is from 0 to 4",
    ),
    "an index that is clamped in the block before": (
        lambda c: stored(c, For("i", 0, 2, 1, Block((clamped(3),))), at=var("v", 0, 3)),
        "no counter or id",
    ),
    "a counter of two loops": (
        lambda c: Block((For("i", 0, 2, 1, Block((For("i", 0, 2, 1, stored(c)),))),)),
        "two loops",
    ),
    "a loop from an unknown id": (
        lambda c: Block((For("i", "gid7", 2, 1, stored(c)),)),
        "no id",
    ),
    "a loop that does not advance": (lambda c: Block((For("i", 0, 2, 0, stored(c)),)), "in steps"),
    "operands of two types": (
        lambda c: stored(c, value=Operate("+", (ONE, Const(1, I32)), F32)),
        "`+` of",
    ),
    "a result of another type": (
        lambda c: stored(c, Let("v", Operate("<", (ONE, ONE), F32))),
        "`<` of",
    ),
    "a choice by a number": (
        lambda c: stored(c, value=Operate("select", (ONE, ONE, ONE), F32)),
        "`select` of",
    ),
    "lanes that do not match": (
        lambda c: stored(c, VECTOR, Let("v", Operate("+", (W, W), F32, 2))),
        "in 2 lanes",
    ),
    "a lane beyond the last": (lambda c: stored(c, VECTOR, value=VectorSlice(W, 4)), "lane 4"),
    "a vector in all lanes": (lambda c: stored(c, VECTOR, Let("v", Splat(W, 4))), "are put into"),
    "lanes of two types": (
        lambda c: stored(c, Let("v", Pack((ONE, Const(1, I32))))),
        "several types",
    ),
    "a dot of other lanes": (lambda c: stored(c, VECTOR, value=Dot((W, ONE))), "a dot of"),
    "a choice of two types": (
        lambda c: stored(c, Let("v", Select(TESTED, ONE, Const(True, BOOL)))),
        "a choice of",
    ),
    "a store to what is read": (
        lambda c: Block((Store(Cell(read(c), nat(0)), ONE),)),
        "only read",
    ),
    "a store of another type": (lambda c: stored(c, value=Const(1, I32)), "are given"),
    "a store of several lanes in one": (lambda c: stored(c, VECTOR, value=W), "are given"),
    "an unknown buffer": (
        lambda c: stored(c, value=Cell(replace(read(c), name="other"), nat(0))),
        "no buffer",
    ),
    "a part of a texel": (
        lambda c: stored(c, Let("v", Cell(image(c), nat(2), 4))),
        "4 scalars of the image xss at 2, in parts of texels",
    ),
    "two elements of a texel": (
        lambda c: stored(c, Let("v", Cell(image(c), nat(0), 2))),
        "in parts of texels",
    ),
    "an unknown image": (
        lambda c: stored(c, value=Cell(replace(image(c), name="other"), nat(0))),
        "no buffer",
    ),
    "an unknown local memory": (
        lambda c: stored(c, value=Cell(Memory("l9", "local", F32, 2), nat(0))),
        "no local memory",
    ),
    "a register at a counter": (
        lambda c: Block((For("i", 0, 2, 1, Block((Store(Cell(PRIVATE, var("i", 0, 1)), ONE),))),)),
        "registers",
    ),
    "a register that there is not": (
        lambda c: Block((Store(Cell(PRIVATE, nat(2)), ONE),)),
        "registers",
    ),
    "a condition without tests": (lambda c: Block((If(All(()), stored(c)),)), "without tests"),
    "a counter that goes further than an index knows": (
        lambda c: stored(c, at=var("lid0", 0, 3)),
        "takes it to be from 0 to 3",
    ),
    "a variable with the name of a buffer": (
        lambda c: stored(c, Let(written(c).name, ONE)),
        "declared twice",
    ),
    "a counter with the name of a variable": (
        lambda c: stored(c, Let("i", ONE), For("i", 0, 2, 1, stored(c))),
        "or a variable",
    ),
    "lanes that no vector has": (
        lambda c: stored(c, Let("v", Cell(read(c), nat(0), 5))),
        "5 lanes of",
    ),
    "no lanes": (lambda c: stored(c, Let("v", Pack(()))), "0 lanes"),
    "an unknown operator": (lambda c: stored(c, value=Operate("foo", (ONE,), F32)), "`foo`"),
    "an operator of three": (
        lambda c: stored(c, value=Operate("+", (ONE, ONE, ONE), F32)),
        "of 3 operands",
    ),
    "a vector of scalars": (
        lambda c: stored(c, Let("v", Operate("+", (ONE, ONE), F32, 4))),
        "in 4 lanes of 1, 1",
    ),
    "a fraction as a whole number": (lambda c: stored(c, Let("v", Const(1.5, I32))), "1.5 as i32"),
    "a barrier in a loop of which some make more passes": (
        lambda c: Block((For("i", "lid0", 8, 4, Block((Barrier("l0", "x"),))),)),
        "not every work-item",
    ),
    "a barrier in a branch": (
        lambda c: Block((If(All((RangeTest(var("lid0", 0, 7)),)), Block((Barrier("l0", "x"),))),)),
        "not every work-item",
    ),
    "a barrier in a loop that is shared out unevenly": (
        lambda c: Block((For("i", "lid0", 13, 8, Block((Barrier("l0", "x"),))),)),
        "not every work-item",
    ),
}


def test_what_is_compiled_is_well_formed() -> None:
    verify(kernel())


def test_an_image_is_not_writable() -> None:
    code = kernel()
    buffers = tuple(replace(m, space="image") if m.writable else m for m in code.buffers)
    with pytest.raises(InternalError, match="the image output is writable"):
        verify(replace(code, buffers=buffers))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    make, words = FAULTS[name]
    code = kernel()
    broken = replace(code, block=make(code))
    with pytest.raises(InternalError, match="not well-formed") as refused:
        verify(broken, "a pass")
    assert words in str(refused.value)
    assert "after a pass" in str(refused.value)


def test_the_pass_that_breaks_a_kernel_is_named() -> None:
    """Only the last tree is verified, but a fault in it is traced back."""
    make, words = FAULTS["a broadcast in a branch"]
    passes = {"one": lambda c: c.block, "two": make, "three": lambda c: c.block}
    with pytest.raises(InternalError, match="after two, kernel k0_output") as refused:
        optimized(kernel(), passes)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("op", "operand", "words"),
    [
        ("+", Const(1, I32), ""),
        ("*", Const(1, I32), r"no atomic update of i32 by \*"),
        ("+", ONE, "output is updated by 1 of f32"),
    ],
)
def test_an_atomic_update_is_by_an_operator_of_the_buffers_type(
    op: str, operand: Const, words: str
) -> None:
    (code,) = compile_program(lowered("def p(xs: [8]i32) = xs |> mapGlb(0, x => x)")).loops
    updated = replace(code, block=Block((Update(Cell(written(code), nat(0)), operand, op),)))
    if not words:
        verify(updated)
        return
    with pytest.raises(InternalError, match=words):
        verify(updated)

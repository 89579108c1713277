"""The interpreter of the loop IR gives the meaning, whatever a pass has done, and finds faults."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from liftpy.errors import InternalError
from liftpy.ir.nat import nat
from liftpy.ir.types import F32
from liftpy.loops.lower import LoopKernel
from liftpy.loops.passes import after_each_pass
from liftpy.loops.tree import (
    Block,
    Let,
    Store,
    Update,
)
from liftpy.loops.values import (
    Cell,
    Const,
    Name,
)
from liftpy.loops.verify import verify
from liftpy.pipeline import PASSES, compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.views.terms import Memory
from tests.loops.interpret import interpret
from tests.loops.interpreted import interpreted, nests_of
from tests.lowered import lowered

LONG = functools.reduce(lambda s, k: f"({s}) * 0.5 {'+-'[k % 2]} x", range(10), "a")
PROGRAMS = {
    "a fold in registers": "xss |> mapGlb(0, row => row |> reduceSeq(add, 0))",
    "a guard": """xss |> pad2d(2, 1, 0, 0, 9) |> slide(3, 1)
      |> mapGlb(0, rows => rows |> transpose |> mapSeq(w => w |> reduceSeq(add, 0)))""",
    "vectors": """xss |> mapGlb(0, row => row |> asVector(4) |> mapSeq(mapVec(x => x * 3))
      |> asScalar)""",
    "vectors at a border": """xss |> mapGlb(0, row => row |> pad(4, 4, 9) |> asVector(4)
      |> mapSeq(mapVec(x => x * 3)) |> asScalar)""",
    "a dot": """xss |> mapGlb(0, row => row |> asVector(4)
      |> mapSeq(v => v |> mapVec(x => x * x) |> reduceVec(add, 0)))""",
    "folds over lanes behind a border": """xss |> mapGlb(0, row => row |> asVector(4)
      |> mapSeq(v => v |> reduceVec((a, x) => a * a - x, 1)) |> pad(2, 1, 9)
      |> mapSeq(y => y * 2))""",
    "long steps over lanes": f"""xss |> mapGlb(0, row => row |> asVector(16)
      |> mapSeq(v => v |> reduceVec((a, x) => {LONG}, 1)))""",
    "long steps over lanes behind a border": f"""xss |> mapGlb(0, row => row |> asVector(16)
      |> mapSeq(v => v |> reduceVec((a, x) => {LONG}, 1)) |> pad(2, 1, 9) |> mapSeq(y => y * 2))""",
    "local memory": """xss |> mapWrg(0, row => row |> mapLcl(0, x => x + 1) |> toLocal
      |> slide(3, 1) |> mapLcl(0, w => w |> reduceSeq(add, 0)))""",
    "whole numbers": "xss |> mapGlb(0, mapSeq(x => i32(x) * 7i32 / 3i32 % 5i32))",
    "a choice": "xss |> mapGlb(0, mapSeq(x => select(x > 3, x + 1, -x)))",
    "a scan": "xss |> mapGlb(0, row => row |> scanSeq(add, 0))",
    "an invariant value": """xss |> mapGlb(0, row => row |> mapSeq(x =>
      row |> reduceSeq((a, y) => a + (x * x + 1 |> (z => z * z)) * y, 0)))""",
    "a kernel for another": """xss |> mapGlb(0, mapSeq(x => x + 1)) |> toGlobal |> transpose
      |> mapGlb(0, row => row |> reduceSeq(add, 0))""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_before_and_after_each_pass(name: str) -> None:
    program = lowered(f"def p(xss: [5][16]f32) = {PROGRAMS[name]}")
    xss = np.arange(80, dtype=np.float32).reshape(5, 16) % 13 - 4
    made = compile_program(program)
    wanted = evaluate(program, xss)
    first = interpreted(made, made.loops, {"xss": xss})
    np.testing.assert_allclose(first, wanted, rtol=1e-6)
    for stage, nests in nests_of(made).items():
        for code in nests:
            verify(code, stage)
        got = interpreted(made, nests, {"xss": xss})
        np.testing.assert_array_equal(got, first, err_msg=stage)
    for stage in zip(*(after_each_pass(code, PASSES) for code in made.loops), strict=True):
        got = interpreted(made, [code for _, code in stage], {"xss": xss})
        np.testing.assert_array_equal(got, first, err_msg=stage[0][0])


def test_folds_over_lanes_of_folds_behind_a_border_are_computed_once() -> None:
    fold = "|> asVector(2) |> mapSeq(v => v |> reduceVec((a, x) => a + x * x * x, 1))"

    def size(depth: int) -> int:
        program = lowered(
            f"def p(xss: [5][16]f32) = xss |> mapGlb(0, row => row {fold * depth}"
            "|> pad(1, 1, 9) |> mapSeq(y => y * 2))"
        )
        (code,) = compile_program(program).loops
        return len(str(code.block))

    assert size(3) < 2.5 * size(2)


def kernel() -> LoopKernel:
    """Three work-items, each with an element."""
    text = "def p(xs: [3]f32) = xs |> mapGlb(0, x => x + 1)"
    (code,) = compile_program(lowered(text)).loops
    return code


XS = np.array([1, 2, 3], np.float32)
ONE = Const(1.0, F32)


def test_an_access_outside_is_found() -> None:
    code = kernel()
    xs, output = code.buffers
    for statement in (
        Let("v", Cell(xs, code_index(code) + 1)),
        Store(Cell(output, code_index(code) - 1), ONE),
    ):
        with pytest.raises(InternalError, match="which has 3 elements"):
            interpret(replace(code, block=Block((statement,))), {"xs": XS})


def code_index(code: LoopKernel) -> object:
    """The index of the store of a kernel."""
    (store,) = (s for s in code.block if isinstance(s, Store))
    return store.cell.index


@pytest.mark.parametrize("space", ["private", "local"])
def test_a_read_of_what_nobody_has_written_is_found(space: str) -> None:
    code = kernel()
    memory = Memory("m", space, F32, 2)  # type: ignore[arg-type]
    code = replace(code, block=Block((Let("v", Cell(memory, nat(1))),)))
    with pytest.raises(InternalError, match=r"m\[1\], which nobody has written"):
        interpret(code, {"xs": XS})


def test_two_writers_are_found() -> None:
    code = kernel()
    _, output = code.buffers
    at_once = Block((Store(Cell(output, nat(0)), ONE),))
    with pytest.raises(InternalError, match="two work-items"):
        interpret(replace(code, block=at_once), {"xs": XS})
    one_after_another = Block(
        (
            Store(Cell(output, code_index(code)), ONE),  # type: ignore[arg-type]
            Store(Cell(output, 2 - code_index(code)), ONE),  # type: ignore[operator]
        )
    )
    with pytest.raises(InternalError, match="two work-items"):
        interpret(replace(code, block=one_after_another), {"xs": XS})


def test_atomic_updates_of_one_cell_are_added_up_and_other_stores_to_it_are_found() -> None:
    code = kernel()
    _, output = code.buffers
    update = Update(Cell(output, nat(0)), Const(2.0, F32), "+")
    given = {"xs": XS, "output": np.array([5, 0, 0], np.float32)}
    made = interpret(replace(code, block=Block((update,))), given)
    np.testing.assert_array_equal(made["output"], [5 + 2 * 3, 0, 0])
    with pytest.raises(InternalError, match="no initial value, or was stored to"):
        interpret(replace(code, block=Block((update,))), {"xs": XS})
    last = Store(Cell(output, code_index(code)), ONE)  # type: ignore[arg-type]
    for block in (Block((update, last)), Block((last, update))):
        with pytest.raises(InternalError, match=r"two work-items|stored to"):
            interpret(replace(code, block=block), given)


def test_a_variable_has_the_value_of_its_work_item() -> None:
    code = kernel()
    xs, output = code.buffers
    index = code_index(code)
    block = Block(
        (
            Let("v", Cell(xs, index)),  # type: ignore[arg-type]
            Store(Cell(output, index), Name("v", F32)),  # type: ignore[arg-type]
        )
    )
    np.testing.assert_array_equal(interpret(replace(code, block=block), {"xs": XS})["output"], XS)

"""Steps of folds that read an element after it was overwritten, and steps that do not."""

from __future__ import annotations

import pytest

from liftpy.constraints.accumulators import may_read_overwritten
from liftpy.constraints.length import length
from liftpy.ir.call import FunCall
from liftpy.ir.walk import every_part
from liftpy.kernels.chain import chain
from liftpy.loops.in_place import Hazards
from liftpy.loops.lower import lowered as to_nest
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import ON_NESTS, compile_program
from liftpy.primitives import AnyReduce
from tests.loops.interpreted import statements
from tests.lowered import lowered

#: Steps that read no other element of the accumulator than the one at the place of the result.
IN_PLACE = {
    "one element each": "zip(acc, row) |> mapSeq((a, x) => a * 2 + x)",
    "vectors": """zip(acc, row) |> asVector(4)
      |> mapSeq(v => v |> mapVec((a, x) => a * 2 + x)) |> asScalar""",
    "the beginning of an inner fold": """xss |> take(2)
      |> reduceSeq((b, r) => zip(b, r) |> mapSeq((s, x) => s * x), acc)""",
    "the beginnings of the folds of elements": """acc
      |> mapSeq(a => ys |> reduceSeq((t, y) => t * y, a))""",
    "beside a named value": """let y = (ys |> reduceSeq((t, y) => t + y, 0)) in
      zip(acc, row) |> mapSeq((a, x) => a * y + x)""",
}
#: Steps that read another one.
LATE = {
    "from the other end": """zip(acc, acc |> reorder(i => 3 - i, i => 3 - i))
      |> mapSeq((a, b) => a * 2 + b)""",
    "a sum for each element": "row |> mapSeq(x => acc |> reduceSeq((t, a) => t + a, x))",
    "in the steps of an inner fold": """ys
      |> reduceSeq((b, y) => zip(b, acc) |> mapSeq((s, a) => s + a * y), row |> mapSeq(x => x))""",
    "in the steps of the folds of elements": """acc
      |> mapSeq(a => ys |> reduceSeq((t, y) => t - a * y, 1))""",
    "in the steps of a fold that starts with it": """xss |> take(2)
      |> reduceSeq((b, r) => zip(b, r, acc) |> mapSeq((s, x, a) => s * x + a), acc)""",
    "in the steps of folds that start with its elements": """acc
      |> mapSeq(a => ys |> reduceSeq((t, y) => t * y + a, a))""",
    "in those steps, by another name": """acc
      |> mapSeq(a => let b = a in ys |> reduceSeq((t, y) => t - b * y, 1))""",
}


@pytest.mark.parametrize("step", [*IN_PLACE, *LATE])
def test_elements_that_are_copied_are_known(step: str) -> None:
    is_late = step in LATE
    text = {**IN_PLACE, **LATE}[step]
    program = lowered(
        "def p(xss: [5][4]f32, ys: [3]f32) = xss |> reduceSeq((acc, row) => "
        f"{text}, generate(4, (i: i32) => f32(i))) |> toPrivate |> mapSeq(x => x)"
    )
    (kernel,) = chain(program).kernels
    folds = (p.fun for p in every_part(kernel.body) if isinstance(p, FunCall))
    outer = next(fun for fun in folds if isinstance(fun, AnyReduce))
    assert may_read_overwritten(outer.f) == is_late

    code = compile_program(program)
    (compiled,) = code.chain.kernels
    _, nest = to_nest(compiled, buffer_names(code.chain))
    for name, change in ON_NESTS.items():
        if name != "update in place":
            nest = change(nest)
    hazards = Hazards()
    hazards.block(nest.body)
    assert any(hazards.late.values()) == is_late
    emitted = statements(code.loops[0])
    assert emitted <= length(kernel).value({}) <= 1.5 * emitted

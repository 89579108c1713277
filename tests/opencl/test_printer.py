"""The C text of loops that a driver's compiler needs help with."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.compile.test_programs import agree, run_lowered
from tests.lowered import lowered


@pytest.mark.parametrize(("windows", "unrolled"), [(2, 0), (3, 1), (4, 1), (5, 0)])
def test_a_few_iterations_with_known_guards_are_unrolled(windows: int, unrolled: int) -> None:
    """Intel's compiler crashed on such a loop of a form by F(m, r).

    The guards are left in the version for work-items at the border.
    """
    source = source_of(f"""
        def p(xss: [7][{4 * windows - 3}]f32) =
          xss |> pad2d(1, 1, 1, 4, 0) |> slide(3, 1) |> mapGlb(0, rows => rows |> transpose
            |> slide(6, 4) |> mapSeq(w => w |> join |> reduceSeqUnroll((a, x) => a + x, 0)))
    """)
    border = source.partition("} else {")[2]
    loop = f"for (int i0 = 0; i0 < {windows}; i0++) {{"
    assert "(i0 * 4 - 1 >= 0) ? " in border
    assert loop in border
    assert source.count("#pragma unroll") == unrolled * border.count(loop)
    assert border.count(f"      #pragma unroll\n      {loop}") == unrolled * border.count(loop)


def test_a_guard_on_the_work_item_unrolls_no_loop() -> None:
    source = source_of("""
        def p(xss: [7][9]f32) =
          xss |> pad2d(1, 1, 1, 1, 0) |> slide(3, 1) |> mapGlb(0, rows => rows |> transpose
            |> mapSeq(c => c |> reduceSeq((a, x) => a + x, 0)))
    """)
    assert "i1 < 3; " in source
    assert "i1 - 1 >= 0" in source
    assert "#pragma" not in source


EVERY_SECOND = """def p(xs: [{length}]{scalar}) = xs |> slide(1, 2) |> join |> asVector({v})
  |> mapGlb(0, mapVec(x => x * 3)) |> asScalar"""


@pytest.mark.covering(3)
@pytest.mark.parametrize("scalar", ["f32", "i32", "f64"])
@pytest.mark.parametrize("v", [2, 4, 8, 16])
def test_every_second_element_is_shuffled_from_two_vectors(
    v: int, scalar: str, runtime: Device
) -> None:
    """The last lane is the last element: nothing after it is read."""
    text = EVERY_SECOND.format(length=4 * v - 1, scalar=scalar, v=v)
    assert source_of(text).count("shuffle2") == (v > 2)
    got, arrays = run_lowered(text, runtime)
    agree(got, np.asarray(evaluate(parse(text), *arrays)), text)


@pytest.mark.parametrize(
    ("length", "read"), [(22, "slide(1, 3)"), (14, "pad(1, 0, 0) |> slide(1, 2)")]
)
def test_other_lanes_are_put_together_one_by_one(length: int, read: str) -> None:
    source = source_of(f"""def p(xs: [{length}]f32) = xs |> {read} |> join |> asVector(4)
      |> mapGlb(0, mapVec(x => x * 3)) |> asScalar""")
    assert "shuffle2" not in source


def source_of(text: str) -> str:
    """The kernels of a program in lowered form."""
    return compile_program(lowered(text)).module.source

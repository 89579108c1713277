"""The C text of loops that a driver's compiler needs help with."""

from __future__ import annotations

import pytest

from liftpy.pipeline import compile_program
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


def source_of(text: str) -> str:
    """The kernels of a program in lowered form."""
    return compile_program(lowered(text)).module.source

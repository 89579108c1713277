"""Registers that a work-item chooses by its own id."""

from __future__ import annotations

import re

import pytest

from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.loops.selecting import MOST
from liftpy.pipeline import compile_program
from tests.lowered import check_on, lowered

PROGRAMS = {
    "all elements, each item its own": """
        def p(xs: [7]f32) = xs |> mapSeq(x => x * 2) |> toPrivate |> mapGlb(0, x => x + 1)""",
    "neighbours": """
        def p(xs: [11]f32) = xs |> mapSeq(x => x * x) |> toPrivate |> slide(3, 1)
          |> mapGlb(0, w => w |> reduceSeq((a, x) => a * 0.5 - x, 0))""",
    "two dimensions": """
        def p(xss: [3][5]f32) = xss |> mapSeq(mapSeq(x => x + 1)) |> toPrivate
          |> transpose |> mapGlb(1, mapGlb(0, x => x * 3))""",
    "by the id in a group": """
        def p(xss: [4][6]f32) = xss |> mapWrg(0, row => row |> mapSeq(x => x - 1) |> toPrivate
          |> mapLcl(0, x => x * 2))""",
    "tuples": """
        def p(xs: [5]f32) = xs |> mapSeq(x => (x, x * x)) |> toPrivate
          |> mapGlb(0, t => t.0 - t.1)""",
}
LONG = """
def p(xs: [{n}]f32) = xs |> mapSeq(x => x * 2) |> toPrivate |> mapGlb(0, x => x + 1)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_items_choose_the_right_register(runtime: Device, name: str) -> None:
    check_on(runtime, PROGRAMS[name])


def test_comparisons_choose_the_register() -> None:
    (kernel,) = compile_program(lowered(LONG.format(n=4))).kernels
    assert len(re.findall(r"gid0\) < \d", kernel.source)) == 3


def test_no_more_registers_are_compared_than_the_most() -> None:
    compile_program(lowered(LONG.format(n=MOST)))
    with pytest.raises(TypeRefused, match="private memory cannot be indexed by gid0"):
        compile_program(lowered(LONG.format(n=MOST + 1)))
    square = """
        def p(xss: [9][9]f32) = xss |> mapSeq(mapSeq(x => x + 1)) |> toPrivate
          |> mapGlb(1, mapGlb(0, x => x * 3))"""
    with pytest.raises(TypeRefused, match="private memory cannot be indexed by gid0, gid1"):
        compile_program(lowered(square))

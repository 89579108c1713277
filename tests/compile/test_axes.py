"""Forms that fold windows of two dimensions one axis after the other (`axes=apart`)."""

from __future__ import annotations

from random import Random

import pytest

from liftpy.constraints.device import Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.forms import by_axes, partitions
from liftpy.workloads import workload
from tests.staged import of_partition

FIRST = """def p(xss: [2][5][7]f32) = xss |> map(image => image |> pad(1, 1, -inf)
  |> map(pad(1, 1, -inf)) |> slide(3, 2) |> map(map(slide(4, 3)) |> transpose)
  |> map(map(w => w |> join |> reduce({}, {}))))"""
CASES: dict[str, Program] = {
    "channels last": workload("pool/max/5x7x2x3x2"),
    "a mean": workload("pool/average/5x3x2x3x1"),
    "channels first": parse(FIRST.format("maximum", "-inf")),
    "blocks of channels": parse("""
        def p(xss: [2][5][5][3]f32) = xss |> map(image => image |> slide(3, 2)
          |> map(map(slide(3, 2)) |> transpose)
          |> map(map(w => w |> join |> transpose |> map(reduce(add, 0)))))"""),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_folds_of_rows_are_stored_or_held(name: str) -> None:
    stored, held = sorted(by_axes(CASES[name]), key=lambda form: -len(form.stages))
    assert stored.words == (("axes", "apart"), ("stage1", "stored"))
    assert held.words == (("axes", "apart"), ("stage1", "held"))
    assert {*by_axes(CASES[name])} <= {*partitions(CASES[name])}


MEAN = workload("pool/inside/5x7x2x3x1")


def test_what_reads_the_folds_of_windows_is_fused_with_them() -> None:
    held, stored = by_axes(MEAN)
    assert dict(held.words) == {"axes": "apart", "stage2": "held", "stage3": "fused"}
    assert dict(stored.words) == {"axes": "apart", "stage2": "stored", "stage3": "fused"}


def test_a_row_is_folded_once_for_all_windows_that_contain_it() -> None:
    """Of 7 padded rows, 3 windows of 3 rows each contain 9."""
    stored = next(form for form in by_axes(CASES["channels last"]) if len(form.stages) > 1)
    param = stored.stages[0].param
    assert param is not None
    assert str(param.type) == "[7][4][2]f32"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*CASES, "a mean of what is inside"])
def test_candidates_are_right(runtime: Device, name: str) -> None:
    program = CASES.get(name, MEAN)
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    with Session(runtime) as session:
        for form in by_axes(program):
            names = [("tiled", "plain", "blocked")] * len(form.stages)
            candidate = of_partition(program, form, runtime, names, Random(7))
            assert candidate is not None
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                got = loaded.run(arrays, poison=True)
            assert not isinstance(judge.judge(got), WrongResult), candidate.label


@pytest.mark.parametrize(
    "text",
    [
        FIRST.format("(a, x) => a * 0.5 - x", "1").replace("-inf", "0"),
        FIRST.format("maximum", "-inf").replace("slide(3, 2)", "slide(3, 3)"),
        "def p(xs: [9]f32) = xs |> slide(3, 1) |> map(reduce(add, 0))",
    ],
    ids=["no associative operator", "no row in two windows", "one dimension"],
)
def test_other_folds_have_no_such_form(text: str) -> None:
    assert not by_axes(parse(text))

"""The family `chunked`: a scan in three kernels."""

from __future__ import annotations

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import whole_space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.partition import direct
from liftpy.rewrite.strategies.shapes import array_type
from tests.batch import results

LATER = "fun later(x: i32, y: i32) = select(y == 0, x, y) laws associative, neutral 0\n"
CASES: dict[str, Program] = {
    "a sum": parse("def p(xs: [105]f32) = xs |> scan(add, 3)"),
    "a sum before each element": parse("def p(xs: [105]f32) = xs |> exclusiveScan(add, 3)"),
    "an operator that does not commute": parse(
        f"{LATER}def p(xs: [91]i32) = xs |> map(x => x % 3) |> scan(later, 7)"
    ),
    "the same before each element": parse(
        f"{LATER}def p(xs: [91]i32) = xs |> map(x => x % 3) |> exclusiveScan(later, 7)"
    ),
    "values of a stage": parse("""
        fun larger(x: f32, y: f32) = max(x, y) laws associative, commutative, neutral -inf
        def p(xss: [35][4]f32) = xss |> map(reduce(add, 0)) |> scan(larger, -inf)"""),
}


def space(program: Program, device: Device) -> Space:
    return whole_space(program, device, families=("chunked",), made=direct)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", list(CASES))
def test_chunks_of_every_length_are_right(runtime: Device, name: str) -> None:
    program = CASES[name]
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    candidates = list(space(program, runtime).draws(0))
    lengths = {int(candidate.assignment["chunk"]) for candidate in candidates}
    length = int(array_type(program.body.body).length)
    assert lengths == {k for k in range(1, length + 1) if length % k == 0}
    modules = [compile_candidate(c.skeleton, c.assignment) for c in candidates]
    found = results(runtime, modules, [*arrays.values()])
    for candidate, got in zip(candidates, found, strict=True):
        assert not isinstance(judge.judge(got), WrongResult), candidate.label


def test_each_chunk_has_a_work_item_and_one_scans_the_totals() -> None:
    candidate = space(CASES["a sum"], DEFAULT_DEVICE).candidate({"chunk": 7})
    module = compile_candidate(candidate.skeleton, candidate.assignment)
    totals, begins, result = (launch.global_size for launch in module.launches)
    assert totals[0] == result[0] == 15
    assert begins[0] == 1


def test_an_operator_without_the_laws_has_no_chunks() -> None:
    program = parse("def p(xs: [105]f32) = xs |> scan((a, x) => a * 0.5 + x, 3)")
    assert space(program, DEFAULT_DEVICE).count() == 0

"""The family `unshared`: register blocks of folds that share no operand."""

from __future__ import annotations

from functools import cache

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import whole_space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.partition import direct
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import workload

FAMILY = "unshared"
CASES: dict[str, Program] = {
    "channels last": workload("pool/max/5x7x4x3x2"),
    "a mean": workload("pool/average/5x3x6x3x1"),
    "channels first": parse("""
        def p(xss: [3][5][9]f32) = xss |> map(image => image |> pad(1, 1, -inf)
          |> map(pad(1, 1, -inf)) |> slide(3, 2) |> map(map(slide(3, 3)) |> transpose)
          |> map(map(w => w |> join |> reduce((a, x) => a * 0.5 - x, 1))))"""),
}


@cache
def space(name: str, device: Device) -> Space:
    """The family's candidates of a case."""
    return whole_space(CASES[name], device, families=(FAMILY,), made=direct)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(CASES))
def test_candidates_are_right(runtime: Device, name: str) -> None:
    program = CASES[name]
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    found = space(name, runtime)
    with Session(runtime) as session:
        for member in found.members[::3]:
            candidate = found.candidate(dict(member.words), seed=2)
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                got = loaded.run(arrays, poison=True)
            assert not isinstance(judge.judge(got), WrongResult), candidate.label


def test_a_work_item_has_neighbours_of_a_row_in_vectors_of_channels() -> None:
    words = {"pad": "copy", "level": "glb", "kappa": 4, "sigma": 2, "v": 4}
    candidate = space("channels last", DEFAULT_DEVICE).candidate(words)
    source = compile_candidate(candidate.skeleton, candidate.assignment).source
    assert "float4 acc0_0, acc0_1;" in source
    assert source.count("vstore4(") == 2


def test_it_leaves_products_to_direct() -> None:
    reason = skeletons_of(FAMILIES[FAMILY], workload("matmul/8x12x16"))
    assert reason == "unshared: `direct` applies: its folds share an operand"


def test_folds_of_what_other_folds_make_have_no_blocks() -> None:
    """A fold cannot be computed in the lanes of a vector; here the elements of a block read one."""
    program = parse("""
        def p(x: [4][6][3][2]f32) = x |> map(block => block
          |> map(rows => rows |> map(row =>
               let s = row |> reduce(add, 0) in row |> map(v => v - s)))
          |> map(d => d |> transpose |> map(c => c |> reduce(add, 0))))""")
    assert FAMILIES[FAMILY].match(program) == "its folds read other folds"


def test_folds_of_an_iterated_array_have_no_blocks():
    """Registers have no index, and the work-items would read them at their ids."""
    program = parse("""
        def iterated(x: [2][8][2]f32) = x |> iterate(2, v => v |> map(map(map(e => e * 2))))
          |> map(map(row => row |> reduce((a, y) => y - a, 0)))
    """)
    reason = FAMILIES[FAMILY].match(program)
    assert reason == "its folds read an array that is made in registers"

"""Results that are stored as slices of larger arrays: the rest of these arrays is not written."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, ScalarType, Type
from liftpy.language.text.program import parse
from liftpy.loops.bounds import bounds
from liftpy.networks.slices import Region
from liftpy.opencl.devices import find_device
from liftpy.pipeline import Compilation, compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution, matmul, workload
from tests.candidates import result
from tests.compile.test_programs import agree, inputs
from tests.spaces import derived

pytestmark = pytest.mark.usefixtures("derived_once")

PROGRAMS: dict[str, Program] = {
    "matrix product": matmul(17, 5, 37),
    "convolution": convolution(Convolution(3, 5, 7, 16, (3, 3), (1, 1), (1, 1, 1, 1)), "layer"),
    "stencil": workload("stencil/jacobi5/19x23"),
    "rows beside numbers": parse(
        """def p(xs: [19][17]f32, ys: [19]f32) =
             zip(xs, ys) |> map(t => t.0 |> map(x => x * t.1))"""
    ),
    "rows of sums": parse(
        "def p(xs: [11][64]f32) = xs |> map(x => x |> split(8) |> map(reduce(add, 0)))"
    ),
    "bins": parse(
        """def p(xs: [23]f32, ks: [23]i32) =
             zip(ks, xs) |> reduceByIndex(add, 0.0 |> repeat(13)) |> split(1)"""
    ),
}
DRAWS = 24
"""The number of candidates that are drawn for each program."""


def shape_and_scalar(t: Type) -> tuple[tuple[int, ...], ScalarType]:
    """The shape of an array of scalars, and their type."""
    assert isinstance(t, ArrayType)
    element: Type = t
    while isinstance(element, ArrayType):
        element = element.element
    assert isinstance(element, ScalarType)
    return tuple(map(int, t.shape)), element


def region_in(program: Program, axis: int) -> tuple[Region, tuple[int, ...], Lambda]:
    """A region for the result in an array that is 7 longer along an axis, its shape and view."""
    shape, scalar = shape_and_scalar(program.body.body.type)
    axis %= len(shape)
    whole = tuple(n + 7 * (k == axis) for k, n in enumerate(shape))
    region = Region(axis, 3, shape[axis])
    return region, whole, region.view(whole, scalar)


@cache
def drawn(name: str) -> list[Candidate]:
    """Candidates of many skeletons of a program."""
    return Space.of(PROGRAMS[name], find_device(), derived(PROGRAMS[name])).sample(DRAWS, seed=3)


def stored(candidate: Candidate, view: Lambda) -> Compilation:
    """A candidate, compiled to store its result in the elements that a view reads."""
    return compile_program(candidate.skeleton.at(candidate.point), view)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_slice_has_the_result_and_the_rest_is_not_written(
    runtime: Device, name: str, axis: int
) -> None:
    program = PROGRAMS[name]
    region, whole, view = region_in(program, axis)
    arrays = inputs(program)
    wanted = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    given = {p.name: a for p, a in zip(program.params, arrays, strict=True)}
    for candidate in drawn(name):
        got = result(runtime, stored(candidate, view).module, given)
        assert got.shape == whole
        inside = range(region.first, region.first + region.length)
        agree(np.take(got, inside, region.axis), wanted, candidate.label)
        rest = np.delete(got, inside, region.axis)
        assert np.isnan(rest).all() if rest.dtype.kind == "f" else (rest == -1).all()


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_access_is_proved_to_be_inside_the_larger_array(name: str, axis: int) -> None:
    _, _, view = region_in(PROGRAMS[name], axis)
    for candidate in drawn(name)[::6]:
        for code in stored(candidate, view).optimized:
            assert not [access for access in bounds(code) if access.way is None]


def test_the_buffer_is_the_larger_array() -> None:
    """The buffer's size and the peak are those of the larger array."""
    (candidate, *_) = drawn("matrix product")
    region, whole, view = region_in(PROGRAMS["matrix product"], -1)
    module = stored(candidate, view).module
    own = compile_program(candidate.skeleton.at(candidate.point)).module
    (output,) = (b for b in module.buffers if b.role == "output")
    assert (output.shape, output.bytes) == (whole, 4 * 17 * 44)
    assert region == Region(1, 3, 37)
    assert module.memory.peak - own.memory.peak == 4 * 17 * 7
    assert [b for b in module.buffers if b.role != "output"] == [
        b for b in own.buffers if b.role != "output"
    ]

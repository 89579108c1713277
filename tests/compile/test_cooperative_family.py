"""The family `cooperative`: which stages it takes, and that every drawn candidate is right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import ConstraintRefused
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import Convolution, convolution, workload
from tests.arrays import distinct_integers
from tests.loops.interpreted import interpreted
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of

FAMILY = "cooperative"
PRODUCT = """
def product(a: [{m}][{k}]f32, b: [{k}][{n}]f32) =
  a |> map(row => b |> transpose |> map(column =>
    zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))
"""
BATCHED = """
def batched(a: [3][5][7]f32, b: [3][7][11]f32) =
  zip(a, b) |> map((xs, ys) => xs |> map(row => ys |> transpose |> map(column =>
    zip(row, column) |> reduce((sum, p) => sum + p.0 * p.1, 0))))
"""
NEAREST = """
def nearest(a: [7][5]f32, b: [11][5]f32) =
  a |> map(x => b |> map(y => zip(x, y) |> reduce((least, p) => min(least, abs(p.0 - p.1)), inf)))
"""


@dataclass(frozen=True)
class Case:
    """A program over two arrays, and its result computed by NumPy."""

    text: str
    einsum: str = ""

    @property
    def program(self) -> Program:
        """The program."""
        return parse(self.text)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of distinct small integers, so that sums are exact."""
        return distinct_integers(self.program)

    @property
    def expected(self) -> np.ndarray:
        """The result in float64."""
        a, b = (x.astype(np.float64) for x in self.arrays.values())
        if self.einsum:
            return np.einsum(self.einsum, a, b)
        return np.abs(a[:, None, :] - b[None, :, :]).min(axis=2)


CASES = {
    "prime sizes": Case(PRODUCT.format(m=7, k=11, n=13), "ik,kj->ij"),
    "tiles overlap": Case(PRODUCT.format(m=19, k=6, n=23), "ik,kj->ij"),
    "many divisors": Case(PRODUCT.format(m=12, k=10, n=18), "ik,kj->ij"),
    "a batch": Case(BATCHED, "bik,bkj->bij"),
    "another reduction": Case(NEAREST),
}


@cache
def some_skeletons(program: Program) -> list[Skeleton]:
    """Some of the family's skeletons of a program, for all devices."""
    return some_of(program, FAMILY, 6)


@cache
def space(name: str, device: Device) -> Space:
    """Their candidates of a case."""
    program = CASES[name].program
    return Space.of(program, device, some_skeletons(program))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", list(CASES))
def test_every_drawn_candidate_is_right(runtime: Device, name: str) -> None:
    case, local = CASES[name], set[int]()
    with Session(runtime) as session:
        for candidate in space(name, runtime).sample(4, seed=5):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                loaded.set_constants({})
                got = loaded.run(case.arrays, poison=True)
            np.testing.assert_array_equal(got, case.expected, err_msg=candidate.label)
            local.add(module.memory.local)
    assert len(local) > 1


def local_bytes(candidate: Candidate) -> int:
    """The local memory of a candidate that adds numbers of four bytes."""
    sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
    row = sizes["tile0"] + sizes["tile1"] + 2 * sizes["gap"]
    return 4 * int(candidate.assignment["buffers"]) * sizes["chunk"] * row


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(CASES))
def test_local_memory_is_both_tiles_and_the_loop_ir_is_right(name: str) -> None:
    case = CASES[name]
    for candidate in space(name, DEFAULT_DEVICE).sample(2, seed=2):
        sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
        made = compile_program(candidate.skeleton.at(sizes))
        assert made.module.memory.local == local_bytes(candidate)
        assert made.module.memory.private == 4 * sizes["sigma"] * sizes["kappa"]
        items = sizes["tile0"] * sizes["tile1"] // (sizes["sigma"] * sizes["kappa"])
        assert np.prod(made.optimized[0].local_size) == items
        got = interpreted(made, made.optimized, case.arrays)
        np.testing.assert_array_equal(got, case.expected)


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint() -> None:
    jobs, cases = [], []
    for name, case in CASES.items():
        for candidate in space(name, DEFAULT_DEVICE).sample(1, seed=7):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            jobs.append((module, case.arrays))
            cases.append((candidate.label, case))
    for (label, case), (got, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], label
        np.testing.assert_array_equal(got, case.expected, err_msg=label)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", ["mali-g72", "adreno-650"])
@pytest.mark.parametrize("program", ["matmul/96x63x80", "vgg16/24:nchw"])
def test_draws_keep_the_limits_of_a_profile(name: str, program: str) -> None:
    device = find_device(f"profile:{name}")
    of = workload(program)
    drawn = Space.of(of, device, some_skeletons(of)).sample(100, seed=11)
    assert len({c.label for c in drawn}) > 80
    for candidate in drawn:
        sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
        tile = sizes["tile0"], sizes["tile1"]
        block = sizes["sigma"], sizes["kappa"]
        group = [t // b for t, b in zip(tile, block, strict=True)]
        assert [t % b for t, b in zip(tile, block, strict=True)] == [0, 0]
        assert sizes["kappa"] % sizes["v"] == 0
        assert local_bytes(candidate) <= device.local_memory
        assert 4 * int(np.prod(block)) <= device.private_memory
        assert np.prod(group) <= device.max_work_group_size
        assert all(
            g <= most for g, most in zip(group[::-1], device.max_work_item_sizes, strict=False)
        )


def test_a_processor_takes_a_named_candidate():
    """The family is not in its space unless it is named; an assignment names it."""
    a, b = np.arange(77.0, dtype=np.float32).reshape(7, 11), np.ones((11, 13), np.float32)
    b *= np.arange(1, 14)
    program = lp.parse(
        "def product(a: [7][11]f32, b: [11][13]f32) = a |> map(row => b |> transpose |> map("
        "column => zip(row, column) |> map(mul) |> reduce(add, 0)))"
    )
    sizes = {"tile0": 7, "tile1": 13, "sigma": 1, "kappa": 13, "chunk": 11, "v": 1, "gap": 0}
    named = {"family": "cooperative", "chunks": "even", "buffers": "1", **sizes}
    kernel = lp.compile(program, named)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    with pytest.raises(ConstraintRefused, match="chunk"):
        lp.compile(program, {**named, "chunk": 5})


def test_a_convolution_with_channels_last_is_right(runtime: Device) -> None:
    """Windows are the rows, kernels the columns, and the initial values are the biases."""
    layer = Convolution(3, 5, 7, 11, (3, 3), (1, 1), (1, 1, 1, 1))
    program = convolution(layer, "layer")
    x, w, b = (
        ((np.arange(np.prod(shape)) * 13 % 997) - 498).reshape(shape).astype(np.float32)
        for shape in ((5, 7, 3), (11, 3, 3, 3), (11,))
    )
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    expected = np.einsum("ijchw,khwc->ijk", windows, w.astype(np.float64)) + b
    with Session(runtime) as session:
        for candidate in Space.of(program, runtime, some_skeletons(program)).sample(3, seed=3):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                constants = {buffer.name for buffer in module.buffers if buffer.role == "constant"}
                given = {p.name: a for p, a in zip(program.params, (x, w, b), strict=True)}
                loaded.set_constants({n: a for n, a in given.items() if n in constants})
                got = loaded.run(
                    {n: a for n, a in given.items() if n not in constants}, poison=True
                )
            np.testing.assert_array_equal(got, expected, err_msg=candidate.label)


def test_a_cpu_has_the_family_only_if_it_is_named() -> None:
    program, cpu = CASES["prime sizes"].program, find_device("cpu")
    assert FAMILY not in families_for(cpu)
    assert FAMILY not in space_of(program, cpu).families
    assert FAMILY in space_of(program, DEFAULT_DEVICE).families
    assert space_of(program, cpu, fixed={"family": FAMILY}).families == [FAMILY]
    sizes = {"tile0": 7, "tile1": 13, "sigma": 1, "kappa": 13, "chunk": 11}
    assert candidate_of(program, cpu, {"family": FAMILY, **sizes}).assignment["tile1"] == 13


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "a |> map(row => row |> reduce(add, 0))",
            "no map of maps of reductions|not a map of maps",
        ),
        (
            "a |> map(row => a |> map(other => zip(row, row) |> reduce((s, p) => s + p.0, 0)))",
            "do not read pairs",
        ),
        (
            "a |> map(map(x => x * x)) |> map(scan(add, 0))",
            "one kernel",
        ),
    ],
)
def test_other_shapes_are_refused_with_the_reason(body: str, reason: str) -> None:
    answer = skeletons_of(FAMILIES[FAMILY], parse(f"def p(a: [6][5]f32) = {body}"))
    assert isinstance(answer, str)
    assert re.search(reason, answer), answer


def test_only_the_block_of_a_work_item_counts_as_its_code() -> None:
    """A tile of 64 x 64 results is far more than a work-item may write out, its block is not."""
    program = parse(PRODUCT.format(m=64, k=16, n=64))
    sizes = {"tile0": 64, "tile1": 64, "sigma": 8, "kappa": 4, "chunk": 8, "v": 4, "gap": 0}
    for buffers in ("1", "2"):
        words = {"family": FAMILY, "chunks": "even", "buffers": buffers}
        candidate = candidate_of(program, DEFAULT_DEVICE, {**words, **sizes})
        assert compile_candidate(candidate.skeleton, candidate.assignment).memory.private == 128

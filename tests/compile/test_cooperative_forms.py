"""Forms of the family `cooperative`: epilogues, padded chunks, vectors, gaps, two buffers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import ConstraintRefused
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.gradient.program import gradient
from liftpy.ir.program import Program
from liftpy.kernels.chain import chain
from liftpy.language.text.program import parse
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import Convolution, convolution
from tests.fuzz.judge import misjudged
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import forms_of, words_of

SUM = "zip(row, c) |> map(mul) |> reduce(add, 0)"
A, B = "a: [6][11]f32", "b: [11][14]f32"
SCALED = f"""
def scaled({A}, {B}, d: [6]f32, g: [14]f32) =
  zip(a, d) |> map((row, e) => zip(b |> transpose, g) |> map((c, h) => max(({SUM}) * e + h, 0)))
"""
ADDED = f"""
def added({A}, {B}, c: [6][14]f32) =
  zip(a |> map(row => b |> transpose |> map(c => {SUM})), c)
    |> map((r, s) => zip(r, s) |> map((x, y) => 2 * x + y))
"""
ORDER = f"""
def order({A}, {B}) =
  b |> map(map(x => x * 2)) |> transpose |> map(c => a |> map(map(x => max(x, 0))) |> map(row =>
    zip(c, row) |> map(mul) |> reduce(add, 0) |> (s => s * s)))
"""
HALVES = f"""
def halves({A.replace("f32", "f16")}, {B.replace("f32", "f16")}) =
  a |> map(row => b |> transpose |> map(c =>
    zip(row, c) |> map((x, y) => f32(x) * f32(y)) |> reduce(add, 0)))
"""
BEGUN = f"""
def begun({A}, {B}, g: [14]f32) =
  a |> map(row => zip(b |> transpose, g) |> map((c, h) =>
    zip(row, c) |> map(mul) |> reduce(add, row |> reduce(add, h))))
"""
LEAST = f"""
def least({A}, {B}) =
  a |> map(row => b |> transpose |> map(c =>
    zip(row, c) |> map((x, y) => max(x, y)) |> reduce((s, x) => min(s, x), inf)))
"""
PRODUCT = f"def product({A}, {B}) = a |> map(row => b |> transpose |> map(c => {SUM}))"
SMALL = {"tile0": 6, "tile1": 14, "sigma": 2, "kappa": 2, "chunk": 11, "v": 2, "gap": 0}
PADDED = {"chunks": "padded", "chunk": 4}
LAYER = Convolution(3, 4, 6, 5, (3, 3), (1, 1), (1, 1, 1, 1), layout="nchw")
LAST = replace(LAYER, layout="nhwc")
WEIGHTS = gradient(convolution(LAST, "weights"), wrt=["w"])
BATCH = f"""
def batch(a: [3][6][12]f32, b: [3][12][14]f32) =
  zip(a, b) |> map((a, b) => a |> map(row => b |> transpose |> map(c => {SUM})))
"""
POINTS = Convolution(6, 3, 4, 5, (1, 1), (1, 1), (0, 0, 0, 0), layout="nchw")


@dataclass(frozen=True)
class Case:
    """A program and a candidate of it."""

    program: Program
    settings: Mapping[str, str | int] = field(default_factory=dict)

    @cached_property
    def candidate(self) -> Candidate:
        """The candidate."""
        settings = {"family": "cooperative", **SMALL, **self.settings}
        return candidate_of(self.program, DEFAULT_DEVICE, settings)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of small integers, neighbours of which differ, so that sums are exact."""
        made = {}
        for k, p in enumerate(self.program.params):
            shape = tuple(map(int, p.type.shape))  # pyright: ignore[reportAttributeAccessIssue]
            numbers = (np.arange(np.prod(shape)) * 7 + k) % 23 - 11
            made[p.name] = numbers.reshape(shape).astype(
                np.float16 if "f16" in str(p.type) else "f"
            )
        return made

    @property
    def expected(self) -> np.ndarray:
        """The result in float64."""
        given = [x.astype(np.float64) for x in self.arrays.values()]
        return REFERENCES[self.program.name](*given)


def correlated(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A convolution with channels first, its images padded so that it keeps their sizes."""
    high, wide = (k // 2 for k in w.shape[2:])
    padded = np.pad(x, ((0, 0), (high, high), (wide, wide)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(1, 2))
    return np.einsum("cijhw,kchw->kij", windows, w) + b[:, None, None]


def correlated_last(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`correlated` with channels last."""
    return correlated(x.transpose(2, 0, 1), w.transpose(0, 3, 1, 2), b).transpose(1, 2, 0)


def of_weights(x: np.ndarray, w: np.ndarray, _b: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The gradient of `correlated_last` with respect to the weights."""
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[1:3], axis=(0, 1))
    return np.einsum("yxcij,yxk->kijc", windows, d)


REFERENCES = {
    "scaled": lambda a, b, d, g: np.maximum((a @ b) * d[:, None] + g, 0),
    "added": lambda a, b, c: 2 * (a @ b) + c,
    "order": lambda a, b: ((np.maximum(a, 0) @ (2 * b)) ** 2).T,
    "begun": lambda a, b, g: a @ b + a.sum(1)[:, None] + g,
    "halves": lambda a, b: a @ b,
    "least": lambda a, b: np.maximum(a[:, :, None], b).min(axis=1),
    "layer": correlated,
    "points": correlated,
    "last": correlated_last,
    "weights_gradient": of_weights,
    "batch": lambda a, b: a @ b,
}
TURNED = {"tile0": 14, "tile1": 6, "sigma": 7, "kappa": 3, "v": 1}
PARTS = {"parts": "yes", "part": 6, "chunk": 3}
OUTER = {"lanes": "outer", "tile0": 5, "sigma": 1, "kappa": 2}
CASES = {
    "a factor of rows, a bias of columns": Case(parse(SCALED), {"gap": 1}),
    "a bias, two buffers": Case(parse(SCALED), {**PADDED, "buffers": "2", "chunk": 3}),
    "a residual": Case(parse(ADDED), PADDED),
    "a residual, overlapping tiles": Case(
        parse(ADDED.replace("[6]", "[19]").replace("[14]", "[23]")),
        {"tail": "overlap", "tile0": 4, "tile1": 12, "kappa": 4, "v": 4, "gap": 1},
    ),
    "operands swapped, prologues": Case(parse(ORDER), {**TURNED, **PADDED}),
    "halves": Case(parse(HALVES), {**PADDED, "gap": 2, "buffers": "2", "chunk": 2}),
    "sums that begin with a fold": Case(parse(BEGUN), {"buffers": "2", "chunks": "padded"}),
    "no sum": Case(parse(LEAST), {"gap": 3}),
    "channels first": Case(
        convolution(LAYER, "layer"), {**OUTER, **PADDED, "tile1": 6, "chunk": 8, "buffers": "2"}
    ),
    "channels first, kernels adjacent": Case(
        convolution(LAYER, "layer"), {"tile0": 6, "tile1": 5, "kappa": 5, "v": 1, "chunk": 9}
    ),
    "points": Case(
        convolution(POINTS, "points"),
        {**OUTER, "flat": "yes", "tile1": 12, "kappa": 4, "v": 4, "chunk": 3, "buffers": "2"},
    ),
    "a bias, parts": Case(parse(SCALED.replace("[11]", "[12]")), PARTS),
    "a residual, parts, two buffers": Case(
        parse(ADDED.replace("[11]", "[12]")), {**PARTS, "buffers": "2", "chunk": 1, "gap": 2}
    ),
    "points of two rows, channels last": Case(
        convolution(LAST, "last"),
        {"flat": "yes", "tile0": 8, "tile1": 5, "sigma": 4, "kappa": 5, "v": 1, "chunk": 9},
    ),
    "points in parts, channels last": Case(
        convolution(LAST, "last"),
        {**PARTS, "flat": "yes", "tile0": 8, "tile1": 5, "kappa": 5, "v": 1, "part": 9},
    ),
    "a batch in parts": Case(parse(BATCH), PARTS),
    "weights": Case(WEIGHTS, {"tile0": 5, "tile1": 3, "sigma": 5, "kappa": 3, "v": 1, "chunk": 8}),
    "weights in parts": Case(
        WEIGHTS, {**PARTS, "tile0": 5, "tile1": 3, "sigma": 1, "kappa": 3, "v": 1, "part": 12}
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", list(CASES))
def test_each_form_is_right(runtime: Device, name: str) -> None:
    case = CASES[name]
    if name == "halves" and "cl_khr_fp16" not in runtime.extensions:
        pytest.skip(f"{runtime.name} has no f16")
    module = compile_candidate(case.candidate.skeleton, case.candidate.assignment)
    with Session(runtime) as session, session.load(module) as loaded:
        constants = {b.name for b in module.buffers if b.role == "constant"}
        loaded.set_constants({n: a for n, a in case.arrays.items() if n in constants})
        given = {n: a for n, a in case.arrays.items() if n not in constants}
        got = loaded.run(given, poison=True)
    np.testing.assert_array_equal(got, case.expected)


@pytest.mark.oclgrind
@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
def test_oclgrind_has_no_complaint(part: int) -> None:
    """Oclgrind has no f16."""
    cases = [case for name, case in CASES.items() if name != "halves"][part::4]
    jobs = []
    for case in cases:
        candidate = case.candidate
        jobs.append((compile_candidate(candidate.skeleton, candidate.assignment), case.arrays))
    for case, (got, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], case.candidate.label
        np.testing.assert_array_equal(got, case.expected, err_msg=case.candidate.label)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(CASES))
def test_kernels_are_within_the_bound_on_their_code(name: str) -> None:
    """The accumulators of a block are all that a work-item holds, in both turns of two buffers."""
    candidate = CASES[name].candidate
    sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
    made = compile_program(candidate.skeleton.at(sizes))
    assert misjudged(chain(candidate.skeleton.program), sizes, made) == ""
    run = [launch for launch in made.module.launches if launch.phase == "run"]
    assert len(run) == (2 if "parts" in candidate.assignment else 1)
    assert made.module.memory.private == 4 * sizes["sigma"] * sizes["kappa"]


def test_two_buffers_need_one_barrier_for_a_chunk() -> None:
    one, two = (
        compile_candidate(c.skeleton, c.assignment).source
        for c in (
            Case(parse(ADDED), {**PADDED, "buffers": buffers, "chunk": 3}).candidate
            for buffers in ("1", "2")
        )
    )
    assert one.count("barrier(") == 2  # in each chunk
    assert two.count("barrier(") == 2  # in each pair of chunks
    assert "i0 < 4" in one
    assert "i0 < 2" in two


def test_blocks_are_loaded_from_local_memory_in_vectors() -> None:
    candidate = Case(parse(ADDED), {"kappa": 14, "v": 2, "sigma": 1}).candidate
    source = compile_candidate(candidate.skeleton, candidate.assignment).source
    assert "((__local float2*)l1)[" in source
    assert "vload2(0, &c[" in source
    assert source.count("vstore2(") == 7
    assert "float2 acc0_0" in source


def test_only_sums_of_what_is_0_for_zeros_are_padded() -> None:
    def chunks(text: str) -> set[str]:
        return {word for name, word in words_of(parse(text), "cooperative") if name == "chunks"}

    assert chunks(ADDED) == {"even", "padded"}
    assert chunks(ADDED.replace("mul", "(x, y) => abs(x - y)")) == {"even", "padded"}
    assert chunks(ADDED.replace("mul", "(x, y) => x * y + 1")) == {"even"}
    assert chunks(LEAST) == {"even"}
    assert chunks(ADDED.replace("[11]", "[12]")) == {"even"}  # 4 divides it


def test_a_chunk_that_does_not_divide_needs_padding() -> None:
    with pytest.raises(ConstraintRefused, match="chunk"):
        _ = Case(parse(PRODUCT), {"chunk": 4, "chunks": "even"}).candidate


def test_constants_are_packed_once_so_that_columns_are_adjacent() -> None:
    """Kernels are copied to local memory along the kernels, not along their channels."""
    case = CASES["points of two rows, channels last"]
    module = compile_candidate(case.candidate.skeleton, case.candidate.assignment)
    assert [launch.phase for launch in module.launches] == ["prepare", "run"]
    assert "t1[gid0 + gid1 * 5] = v0;" in module.source
    assert re.search(r"= t1\[i\d \* 45 \+ i\d \* 5 \+ i\d\];", module.source)


def test_reductions_are_cut_into_parts_where_equal_parts_are_few() -> None:
    def buffers(length: int) -> set[str]:
        text = ADDED.replace("[11]", f"[{length}]")
        ((_, form, _),) = forms_of(parse(text), "cooperative")
        words = [dict(choices) for choices in form.choices()]
        return {own["buffers"] for own in words if "parts" in own}

    assert buffers(12) == {"1", "2"}
    assert buffers(2) == {"1"}  # chunks of parts of one element are not in pairs
    assert buffers(17) == buffers(289) == set()  # more than 16 equal parts, or none


def test_windows_of_constants_are_not_stored() -> None:
    """Nine windows have an element: a copy of them would take nine times the memory."""
    text = """
def last(const x: [6][7][2]f32, w: [5][3][3][2]f32) =
  x |> slide2d(3, 1) |> map(map(window => w |> map(kernel =>
    zip(window |> join |> join, kernel |> join |> join) |> map(mul) |> reduce(add, 0))))
"""
    settings = {"flat": "yes", "tile0": 10, "tile1": 5, "sigma": 5, "kappa": 5, "v": 1, "chunk": 9}
    candidate = Case(parse(text), settings).candidate
    module = compile_candidate(candidate.skeleton, candidate.assignment)
    assert [launch.phase for launch in module.launches] == ["run"]


def test_the_condition_on_local_memory_counts_what_alignment_leaves_unused() -> None:
    """Two arrays: the second may begin up to 15 bytes behind the end of the first."""
    case = CASES["a residual"]
    sizes = {k: v for k, v in case.candidate.assignment.items() if isinstance(v, int)}
    (kernel,) = chain(case.candidate.skeleton.program).kernels
    needed = int(kernel.demand.local.value(sizes)) + 15
    settings = {"family": "cooperative", **case.candidate.assignment}
    device = replace(DEFAULT_DEVICE, local_memory=needed)
    assert candidate_of(case.program, device, settings)
    with pytest.raises(ConstraintRefused, match="device local memory"):
        candidate_of(case.program, replace(device, local_memory=needed - 1), settings)


@pytest.mark.parametrize(("columns", "unrolled"), [(32, True), (34, False)])
def test_loops_that_copy_up_to_16_elements_are_unrolled(columns: int, unrolled: bool) -> None:
    """Each of two work-items copies half of a row, and counts its elements from 0."""
    text = ADDED.replace("[14]", f"[{columns}]")
    sizes = {"tile1": columns, "kappa": columns // 2, "sigma": 1, "chunk": 1, "v": 1}
    candidate = Case(parse(text), sizes).candidate
    source = compile_candidate(candidate.skeleton, candidate.assignment).source
    loop = rf"for \(int (i\d+) = 0; \1 < {columns // 2}; \1\+\+\) {{\n.*= b\[.*\n *l\d+\["
    assert re.search(loop, source)
    assert bool(re.search(rf"#pragma unroll\n *{loop}", source)) == unrolled


def test_reductions_of_what_another_part_of_an_element_shifts_have_no_block() -> None:
    """The shift is read in the reduction, which then cannot be interchanged with the map."""
    text = """
def shifted(a: [4][12]f32, w: [6][12]f32, z: [6]f32) =
  a |> map(row => zip(w, z) |> map((c, s) =>
    zip(row, c) |> map((x, y) => x * (y - s)) |> reduce(add, 0)))
"""
    for family in ("direct", "cooperative"):
        assert isinstance(skeletons_of(FAMILIES[family], parse(text)), str)

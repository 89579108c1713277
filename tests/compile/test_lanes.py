"""Vectors over the map that makes adjacent results, and other orders of a reduction's loops."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeletons
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution
from tests.compile.test_programs import agree, inputs, right
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of, words_of
from tests.subsample import subsample

pytestmark = pytest.mark.usefixtures("derived_once")

DRAWS = 2  # of each program and choice

SAME = (1, 1, 1, 1)
LAYERS = {
    "channels first": Convolution(5, 7, 12, 6, (3, 3), (1, 1), SAME, layout="nchw"),
    "with a ReLU": Convolution(
        3, 5, 8, 4, (2, 3), (1, 1), (1, 0, 0, 2), layout="nchw", epilogue="relu"
    ),
    "strided": Convolution(3, 11, 17, 4, (3, 3), (2, 2), SAME, layout="nchw"),
    "dilated": Convolution(3, 9, 12, 4, (3, 2), (1, 1), (2, 2, 1, 0), (2, 1), layout="nchw"),
}
PROGRAMS: dict[str, Program] = {
    **{name: convolution(layer, "layer") for name, layer in LAYERS.items()},
    "transposed product": parse(
        """def p(a: [7][12]f32, const b: [7][6]f32) =
             a |> transpose |> map(x => b |> transpose |> map(y =>
               zip(x, y) |> map(mul) |> reduce(add, 0))) |> transpose"""
    ),
}


POINTS: dict[str, Program] = {
    "points": convolution(Convolution(5, 3, 7, 6, (1, 1), layout="nchw"), "layer"),
    "points and a ReLU": convolution(
        Convolution(7, 4, 8, 3, (1, 1), layout="nchw", epilogue="relu"), "layer"
    ),
}
TILED: dict[str, Program] = {
    "depthwise": convolution(
        Convolution(5, 7, 12, 5, (3, 3), (1, 1), SAME, groups=5, layout="nchw"), "layer"
    ),
    "strided depthwise": convolution(
        Convolution(3, 9, 16, 3, (2, 3), (2, 2), (1, 0, 1, 1), groups=3, layout="nchw"), "layer"
    ),
    "scaled sums": parse(
        """def p(x: [16][6][5]f32, s: [6]f32) =
             x |> map(row => zip(row, s) |> map((v, f) =>
               f - (v |> map(y => y * y) |> reduce(add, f)))) |> transpose"""
    ),
    "transposed": parse(
        "def p(x: [8][5]f32, y: [5]f32) ="
        " x |> map(row => zip(row, y) |> map(t => t.0 * 2 - t.1)) |> transpose"
    ),
}


@cache
def space(name: str, choice: tuple[str, str]) -> Space:
    """Candidates of some skeletons of a program with a choice."""
    family = "tiled" if name in TILED else "direct"
    program = (PROGRAMS | POINTS | TILED)[name]
    return Space.of(program, find_device(), some_of(program, family, DRAWS, **dict([choice])))


def drawn(name: str, choice: tuple[str, str]) -> list[Candidate]:
    """Some candidates with a choice."""
    return space(name, choice).sample(DRAWS, seed=7)


def compiled(candidate: Candidate) -> Module:
    """The kernels of a candidate."""
    return compile_candidate(candidate.skeleton, candidate.assignment)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS | TILED)
def test_lanes_run_over_the_outer_map(name: str, runtime: Device) -> None:
    candidates = subsample(drawn(name, ("lanes", "outer")), runtime)
    assert candidates
    right(candidates, runtime)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", POINTS)
def test_an_image_that_is_read_point_by_point_is_one_row(name: str, runtime: Device) -> None:
    candidates = subsample(drawn(name, ("flat", "yes")), runtime)
    assert candidates
    right(candidates, runtime)


@pytest.mark.parametrize("layer", [LAYERS["channels first"], LAYERS["strided"]])
def test_rows_of_larger_or_distant_windows_stay_apart(layer: Convolution) -> None:
    assert ("flat", "yes") not in words_of(convolution(layer, "layer"), "direct")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", LAYERS)
def test_the_innermost_loop_of_a_sum_is_outermost(name: str, runtime: Device) -> None:
    candidates = subsample(drawn(name, ("loops", "innermost_first")), runtime)
    assert candidates
    right(candidates, runtime)


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_only_lanes_that_are_stored_in_vectors_are_offered(layout: str) -> None:
    program = convolution(Convolution(5, 7, 12, 6, (3, 3), layout=layout), "layer")
    assert (("lanes", "outer") in words_of(program, "direct")) == (layout == "nchw")


def test_results_are_stored_in_vectors() -> None:
    choice = ("lanes", "outer")
    wide = [c for c in space("channels first", choice).sample(40, seed=1) if c.point["v"] == 4]
    assert wide
    assert all("vstore4" in compiled(c).source for c in wide)


SCALED = parse(
    """def p(a: [7][12]f32, const b: [7][8]f32, s: [8]f32) =
         a |> transpose |> map(x => zip(b |> transpose, s) |> map((y, f) =>
           (zip(x, y) |> map(mul) |> reduce(add, 0)) * f)) |> transpose"""
)
"""Sums whose lanes are stored apart, unless the outer map is in vectors."""


def test_lanes_that_are_stored_apart_are_computed_at_once(runtime: Device) -> None:
    written = next(s for s in skeletons(SCALED, ("direct",)) if "lanes" not in s.words)
    made = Candidate(SCALED, written, (("kappa", 4), ("sigma", 2), ("v", 4)))
    source = compiled(made).source
    (name,) = re.findall(r"const float4 (v\d+) = acc0_0 \* v\d+;", source)
    assert all(f"= {name}.s{k};" in source for k in range(4))
    assert not re.search(r"acc\d+_\d+\.s", source)
    right([made], runtime)


def test_lanes_read_the_scale_of_each_sum() -> None:
    sizes = {"tile0": 2, "tile1": 1, "v": 2}
    wide = [s for s in skeletons(TILED["scaled sums"], ("tiled",)) if s.words["vector"] == "yes"]
    own = [compile_candidate(s, sizes).source for s in wide if "lanes" not in s.words]
    assert own
    assert all(re.search(r"float2 v\d+ = vload2\(0, &s\[", source) for source in own)
    assert any("lanes" in s.words for s in wide)


BORDERED: dict[str, Program] = {
    "differences": parse(
        """def p(x: [7][12]f32, y: [7][12]f32) =
             zip(x, y) |> map((a, b) => zip(a, b) |> map((s, t) => s * 0.5 - t))
               |> pad(1, 2, 0) |> slide(3, 1)
               |> map(w => w |> transpose |> map(reduce((a, v) => a * 0.5 - v, 1)))"""
    ),
    "shared": parse(
        """def p(x: [7][12]f32, y: [7][12]f32) =
             zip(x, y) |> map((a, b) => zip(a, b) |> map((s, t) =>
                 let d = s - t * 3 in select(d > s, d, t) - d * d))
               |> pad(2, 1, 0) |> slide(3, 1)
               |> map(w => w |> transpose |> map(reduce(add, 0)))"""
    ),
    "numbers chosen": parse(
        """def p(x: [7][12]i32, y: [7][12]f32) =
             zip(x, y) |> map((a, b) => zip(a, b) |> map((k, t) => select(k == 3, t, 0)))
               |> pad(1, 1, 0) |> slide(2, 1)
               |> map(w => w |> transpose |> map(reduce(add, 0)))"""
    ),
}
"""Windows of rows that are computed where they are read, with padding above and below."""


@pytest.mark.parametrize("name", BORDERED)
def test_what_is_computed_behind_a_guard_of_all_lanes_is_computed_in_vectors(
    name: str, runtime: Device
) -> None:
    program = BORDERED[name]
    made = next(
        s
        for s in skeletons(program, ("tiled",))
        if s.words["vector"] == "yes" and s.words["flat"] == "no" and s.words["pad"] == "fused"
    )
    candidate = Candidate(program, made, (("tile0", 12), ("tile1", 1), ("v", 4)))
    source = compiled(candidate).source
    assert "vload4(0, &x[" in source
    assert not re.search(r"(?<!&)\b[xy]\[", source)  # no lane is read alone
    right([candidate], runtime)


@pytest.mark.oclgrind
def test_nothing_stray_or_raced() -> None:
    jobs, expected = [], []
    for name, program in (PROGRAMS | TILED).items():
        arrays = inputs(program)
        given = {p.name: a for p, a in zip(program.params, arrays, strict=True)}
        made = [c for c in drawn(name, ("lanes", "outer")) if c.point["v"] > 1][:1]
        jobs += [(compiled(c), given) for c in made]
        expected += [evaluate(program, *arrays, dtype=np.float64)] * len(made)
    for (got, complaints), correct in zip(check_all_under_oclgrind(jobs), expected, strict=True):
        assert not complaints, complaints[:3]
        agree(got, np.asarray(correct), "under Oclgrind")

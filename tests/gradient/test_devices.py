"""Gradients on devices: candidates of the families that apply compute what the gradient means."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.language.text.program import parse
from liftpy.rewrite.forms import partitions
from tests.batch import results
from tests.draws import draws, tried
from tests.gradient.differences import listed
from tests.staged import of_partition
from tests.subsample import first

pytestmark = pytest.mark.usefixtures("derived_once")

DRAWS = 1  # of each family

PROGRAMS = {
    "matrix product": lp.workload("matmul/4x6x8"),
    "convolution": parse("""
        def conv(x: [5][6][2]f32, w: [4][3][3][2]f32, b: [4]f32) =
          x |> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1) |> map2d(window => zip(w, b)
            |> map((k, c) => c + (zip(window |> join |> join, k |> join |> join)
              |> map(mul) |> reduce(add, 0))))
    """),
    "pool": lp.workload("pool/max/7x9x2x3x2"),
    "softmax": parse("""
        def softmax(xss: [5][8]f32) = xss |> map(xs =>
          let m = xs |> reduce(maximum, -inf) in let e = xs |> map(x => exp(x - m)) in
          let s = e |> reduce(add, 0) in e |> map(v => v / s))
    """),
    "layer": parse("""
        def layer(x: [3][5]f32, w: [4][5]f32, b: [4]f32) =
          x |> map(row => zip(w, b)
            |> map((k, c) => max((zip(row, k) |> map(mul) |> reduce(add, 0)) + c, 0)))
    """),
    "recurrence": parse("""
        def recurrence(xss: [4][7]f32, a: f32) =
          xss |> map(xs => xs |> reduce((s, x) => sin(s) * x + a, 0.5))
    """),
}


@cache
def case(name: str) -> tuple[lp.Program, list[np.ndarray], tuple[np.ndarray, ...]]:
    """A gradient, arguments for it, and its value in float64."""
    made = lp.gradient(PROGRAMS[name])
    rng = np.random.default_rng(5)
    shapes = (tuple(int(n) for n in getattr(p.type, "shape", ())) for p in made.params)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return made, arrays, listed(lp.evaluate(made, *arrays, dtype=np.float64))


def agrees(found: object, expected: tuple[np.ndarray, ...], what: str) -> None:
    """Each part of a result is near the expected one, relative to its largest number."""
    parts = listed(found)
    assert len(parts) == len(expected), what
    for part, wanted in zip(parts, expected, strict=True):
        bound = 2e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(part, wanted, rtol=0, atol=bound, err_msg=what)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_gradient_is_right(runtime: Device, name: str) -> None:
    made, arrays, expected = case(name)
    agrees(lp.compile(made, device=runtime)(*arrays), expected, name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_drawn_candidates_of_a_gradient_are_right(runtime: Device, name: str, kept: Path) -> None:
    made, arrays, expected = case(name)
    drawn = tried(draws(made, first(), DRAWS, kept), made, runtime)
    assert drawn
    modules = [d.module for d in drawn]
    for draw, found in zip(drawn, results(runtime, modules, arrays), strict=True):
        agrees(found, expected, draw.label)


def test_the_gradient_of_weights_is_made_in_register_blocks(runtime: Device) -> None:
    """Sums for each kernel, at one place of the window, read the same channels of the image."""
    made = lp.gradient(PROGRAMS["convolution"], "w")
    rng = np.random.default_rng(7)
    shapes = ([int(n) for n in p.type.lengths()] for p in made.params)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = listed(lp.evaluate(made, *arrays, dtype=np.float64))
    for pad in ("fused", "columns", "copy", "windows"):
        space = lp.space(made, runtime, families=["direct"], fixed={"pad": pad, "v": 2})
        (candidate,) = space.sample(1, seed=3)
        kernel = lp.compile(made, candidate.assignment, device=runtime)
        agrees(kernel(*arrays), expected, candidate.label)
        kernel.close()


def test_the_gradient_of_an_input_has_forms_by_winograds_algorithms(runtime: Device) -> None:
    """At stride 1 it is a correlation with flipped kernels."""
    made = lp.gradient(PROGRAMS["convolution"], "x")
    rng = np.random.default_rng(9)
    shapes = ([int(n) for n in p.type.lengths()] for p in made.params)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = listed(lp.evaluate(made, *arrays, dtype=np.float64))
    form = next(p for p in partitions(made) if dict(p.words).get("winograd") == "2x2")
    names = [("small", "direct", "plain", "blocked")] * len(form.stages)
    candidate = of_partition(made, form, runtime, names, Random(3))
    assert candidate is not None
    kernel = lp.compile(made, candidate.assignment, device=runtime)
    agrees(kernel(*arrays), expected, candidate.label)
    kernel.close()

"""Depthwise convolutions with channels last: `tiled` computes vectors of channels."""

from __future__ import annotations

import re

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.settings import Settings
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from tests.compile.test_programs import right

DEPTHWISE = """
    def p(x: [7][12][32]f32, {} w: [32][3][5]f32, const b: [32]f32) =
      x |> pad(1, 1, 0) |> map(pad(2, 2, 0)) |> slide(3, 1) |> map(map(slide(5, 1)) |> transpose)
        |> map(map(window =>
          zip(window |> join |> transpose, w |> map(join), b)
            |> map(t => zip(t.0, t.1) |> map(mul) |> reduce(add, t.2))))"""
VECTORS: Settings = {"family": "tiled", "flat": "no", "vector": "yes", "v": 8, "tile0": 8}


def in_vectors(device: Device, *, weights: str = "const", pad: str = "fused") -> Candidate:
    return candidate_of(parse(DEPTHWISE.format(weights)), device, {**VECTORS, "pad": pad})


def compiled(candidate: Candidate) -> Module:
    return compile_candidate(candidate.skeleton, candidate.assignment)


def interior(source: str) -> str:
    """The version of the innermost kernel without guards."""
    return source.split("if (", 1)[1].split("{", 1)[1].split("} else {", 1)[0]


def test_a_version_without_guards_folds_rows_of_windows() -> None:
    inside = interior(compiled(in_vectors(DEFAULT_DEVICE)).source)
    assert "?" not in inside
    assert "if" not in inside
    lengths = re.findall(r"for \(int i\d+ = 0; i\d+ < (\d+);", inside)
    assert lengths == ["4", "3", "5"]  # vectors of channels, rows, elements of a row


def test_inputs_weights_and_biases_are_loaded_in_vectors() -> None:
    inside = interior(compiled(in_vectors(DEFAULT_DEVICE)).source)
    assert sorted(re.findall(r"vload8\(0, &(\w+)\[", inside)) == ["b", "t1", "x"]
    assert not re.findall(r"= \w+\[", inside)


def test_constant_weights_are_packed_before_the_runs() -> None:
    phases = [launch.phase for launch in compiled(in_vectors(DEFAULT_DEVICE)).launches]
    assert phases == ["prepare", "run"]
    given = compiled(in_vectors(DEFAULT_DEVICE, weights=""))
    assert len(given.launches) == 1  # weights that differ in each run are not copied


@pytest.mark.parametrize("weights", ["const", ""])
def test_the_results_are_right(runtime: Device, weights: str) -> None:
    right([in_vectors(runtime, weights=weights, pad=pad) for pad in ("fused", "columns")], runtime)


def test_constants_of_which_lanes_read_adjacent_elements_are_not_packed() -> None:
    program = parse("""
        def p(x: [12][64]f32, const w: [12][64]f32) =
          zip(x, w) |> map((r, s) => zip(r, s) |> map((a, b) => a * b))""")
    candidate = candidate_of(program, DEFAULT_DEVICE, {"family": "tiled", "vector": "yes", "v": 8})
    assert len(compiled(candidate).launches) == 1


def test_constants_may_have_the_names_of_variables(runtime: Device) -> None:
    """Each array that is packed is the variable of a `let` that has its name and type."""
    program = parse("""
        def p(x: [6][8][9]f32, const a: [8][9]f32, const b: [8][9]f32) =
          x |> map(rows => zip(rows, a, b) |> map(t =>
            zip(t.0, t.1, t.2) |> map((x, a, b) => x * a - b) |> reduce(add, 0)))""")
    settings: Settings = {"family": "tiled", "flat": "no", "vector": "yes", "v": 8}
    candidate = candidate_of(program, runtime, settings)
    assert [k.phase for k in compiled(candidate).launches] == ["prepare", "prepare", "run"]
    right([candidate], runtime)

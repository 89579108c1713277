"""What is read over and over is stored: code and work grow with the program, not with its readings.

Calls of Python functions are counted, so no test depends on the machine's speed.
"""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.space.space import Space
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.language.text.program import parse, show
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.strategies.families import shape_of
from liftpy.rewrite.strategies.lower import plain
from liftpy.rewrite.strategy import Failure
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import workload
from tests.batch import results
from tests.compile.test_tuples import right_in_every_family


def names(depth: int) -> str:
    """Names of views, each of which reads the one before twice."""
    lets = "".join(
        f"let y{k + 1} = concat(y{k} |> drop(1), y{k} |> take(1)) in " for k in range(depth)
    )
    return f"def views(y0: [4]f32) = {lets} y{depth}"


def rows(depth: int) -> str:
    """Maps of rows, each of which reads its row twice, before a fold that does so too."""
    reversed_row = "row |> reorder(i => 3 - i, i => 3 - i)"
    stage = f"|> map(row => zip(row, {reversed_row}) |> map((a, b) => a * 0.5 - b))"
    step = f"zip(acc, zip(row, {reversed_row})) |> map((a, t) => a + t.0 * 2.0 - t.1)"
    fold = f"|> reduce((acc, row) => {step}, full(4, 0.0))"
    return f"def rows(xss: [3][4]f32) = xss {stage * depth} {fold}"


def maps(depth: int) -> str:
    """Maps of rows alone."""
    return rows(depth).partition("|> reduce")[0]


PROGRAMS = {"names": names, "rows": rows, "maps": maps}


def lowered(program: Program) -> LoweredProgram:
    """The program by the plain strategy."""
    result = plain()(program.body.body)
    assert not isinstance(result, Failure), result
    return LoweredProgram(program.name, Lambda(program.params, result.expr), program.constants)


def cost(text: str) -> tuple[int, int]:
    """Calls of functions to derive and compile a program, and the length of its code."""
    program, profile = parse(text), cProfile.Profile()
    profile.enable()
    module = compile_program(lowered(program)).module
    profile.disable()
    return int(pstats.Stats(profile).total_calls), len(module.source)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_code_and_work_grow_with_the_depth(kind: str) -> None:
    """In proportion to it, after the depth from which on something is stored."""
    short, long = cost(PROGRAMS[kind](8)), cost(PROGRAMS[kind](16))
    assert all(b < 6 * a for a, b in zip(short, long, strict=True)), (short, long)
    calls, characters = cost(PROGRAMS[kind](4))
    assert calls < 500_000
    assert characters < 3000


@pytest.mark.covering(2)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_is_stored_on_the_way_is_right(runtime: Device, kind: str) -> None:
    program = parse(PROGRAMS[kind](8))
    arrays = tuple(inputs(program).values())
    wanted = evaluate(program, *arrays)
    np.testing.assert_array_equal(evaluate(lowered(program), *arrays), wanted)
    candidates = list(Space.whole(program, runtime).sample(3, seed=1))
    modules = [compile_candidate(c.skeleton, c.assignment) for c in candidates]
    assert modules
    for got in results(runtime, modules, arrays):
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_a_derivation_begins_with_what_it_stores() -> None:
    program = parse(names(8))
    for skeleton in skeletons(program):
        assert skeleton.derivation.start == program.body.body
        assert skeleton.derivation.steps[0].rule == "to_global"


def test_what_is_read_a_few_times_is_left_alone() -> None:
    for program in (parse(names(5)), parse(rows(4)), workload("stencil/poisson19/8x8x8")):
        assert shape_of("plain", program) is program, show(program)


PARTS = {
    "a name below a permutation": """
        def p(x: [4]f32) =
          (let v = x |> map(a => min(a, -2)) in
           let w = v in w |> coverOnce(4, -2) |> reduce((a, b) => a, w) |> map(a => a * 3))
            |> reorder(i => 3 - i, i => 3 - i)""",
    "names below a border": """
        def p(x: [5]f32) =
          (let v = x |> map(a => a * 2) in
           (let w = v |> reduce((a, b) => a - b, 1) in v |> map(a => a * w)) |> pad(1, 2, 7))
            |> slide(3, 2)""",
    "halves of pairs of pairs": """
        def p(a: [2][2]i32, b: [2][2]i32, c: [2]i32, d: [3][3]i32) =
          let v = (zip(zip(a, b), zip(a, b), c), d) in
          let w = zip(v.0, v.0) |> splitAt(1) |> get(0) in
          w |> map(t => t.1.0.0) |> transpose""",
    "pairs of pairs taken apart": """
        def p(a: [5]i32, b: [5]i32) =
          let v = zip(zip(a, b), zip(b, a)) |> unzip in
          zip(v.0 |> unzip |> get(1), v.1) |> map((x, t) => x * t.0 - t.1)""",
    "rows that are padded, and no columns": """
        def p(x: [6][4]f32, y: [5][7]i32) =
          let v = y |> map(row => row |> pad(-3, 1, 3)), w = y |> reorder(i => 4 - i, i => 4 - i) in
          zip(zip(v, v |> reorder(i => 4 - i, i => 4 - i)), w)""",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_tuples_and_borders_of_rows_have_plain_candidates(
    runtime: Device, name: str, kept: Path
) -> None:
    right_in_every_family(parse(PARTS[name]), runtime, kept)

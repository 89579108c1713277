"""The family `planes`: folds in passes over planes of results that stay in their buffer."""

from __future__ import annotations

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.kernels.chain import chain_of_skeleton
from liftpy.language.text.program import parse
from liftpy.loops.bounds import bounds
from liftpy.loops.writers import shared_stores
from liftpy.opencl.session import Session
from liftpy.pipeline import Compilation, compile_program
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import workload
from tests.batch import results
from tests.spaces import some_of

FAMILY = "planes"
ADDED = "map(transpose) |> map(d => d |> map(x => x |> reduce(add, 0)))"
CASES: dict[str, Program] = {
    "largest, channels last": workload("pool/max/7x9x4x3x2"),
    "mean, channels last": workload("pool/average/5x7x2x3x1"),
    "gradient of the mean": lp.gradient(workload("pool/average/7x5x3x3x2")),
    "channels first": parse("""
        def p(xss: [3][7][9]f32) = xss |> map(image => image |> pad(1, 1, -inf)
          |> map(pad(1, 1, -inf)) |> slide(3, 2) |> map(map(slide(3, 2)) |> transpose)
          |> map(map(w => w |> join |> reduce(maximum, -inf))))"""),
    "a fold of folds": parse("""
        def p(xss: [7][8]f32) = xss |> slide(3, 2) |> map(map(slide(2, 3)) |> transpose)
          |> map(map(w => w |> map(reduce((a, x) => a * 0.5 - x, 1))
            |> reduce((a, x) => a - x, 2)))"""),
    "folds that begin with a fold": parse("""
        def p(xss: [5][6]f32) = xss |> map(row => row |> slide(3, 1) |> map(w => w
          |> reduce((a, x) => a * 0.5 - x, row |> reduce((a, x) => a + x, 0))))"""),
    "overlaps": parse(f"def p(zs: [5][3][4]f32) = zs |> overlaps(11, 2, 0) |> {ADDED}"),
    "gaps": parse(f"def p(zs: [3][2][4]f32) = zs |> overlaps(9, 3, 0) |> {ADDED}"),
    "rows through a layout": parse(
        "def p(xss: [5][7]f32) = xss |> map(row => row |> slide(3, 1) "
        "|> map(reduce((a, x) => a * 0.5 - x, 1))) |> transpose"
    ),
    "windows in a map, and others that may be stored": parse("""
        def p(xss: [3][7][2]f32) = xss |> map(xs => xs |> slide(3, 2)
          |> map(w => w |> transpose |> map(reduce(add, 0))))
          |> map(sums => zip(sums, 1 |> repeat(7) |> slide(3, 2) |> map(reduce(add, 0)))
            |> map((row, n) => row |> map(v => v / n)))"""),
    "one map": parse(
        "def p(xs: [11]f32) = xs |> slide(4, 1) |> map(reduce((a, x) => a * 0.5 - x, 1))"
    ),
}


def test_it_makes_no_fold_whose_inner_fold_reads_the_outer_accumulator() -> None:
    text = """def p(xsss: [5][3][4]f32) = xsss |> map(rows => rows
      |> reduce((b, row) => row |> reduce((a, x) => a * {} - x, b), 1))"""
    assert not isinstance(FAMILIES[FAMILY].match(parse(text.format(2))), str)
    found = FAMILIES[FAMILY].match(parse(text.format("b")))
    assert found == "a fold in the step of another reads the outer accumulator"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", list(CASES))
def test_candidates_are_right_and_have_no_races(runtime: Device, name: str) -> None:
    program = CASES[name]
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    found = Space.of(program, runtime, some_of(program, FAMILY, 3))
    members = [m for m in found.members if m.possible]
    assert members
    candidates = [found.candidate(dict(member.words), seed=3) for member in members]
    compiled = [compile_program(c.skeleton.at(c.point)) for c in candidates]
    modules = [made.module for made in compiled]
    each = results(runtime, modules, [*arrays.values()])
    for candidate, made, got in zip(candidates, compiled, each, strict=True):
        for code in made.optimized:
            assert all(bound.way for bound in bounds(code)), candidate.label
            assert not shared_stores(code), candidate.label
        assert not isinstance(judge.judge(got), WrongResult), candidate.label


def test_passes_continue_what_other_passes_have_stored(runtime: Device) -> None:
    """The inner fold's passes are not the outer one's: each reads what the one before stored."""
    program = workload("convolution/grouped/5x4x4x4x3x2")
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    words = {"inside": "3", "hold": "no", "items": "many", "pad": "columns", "vector": "no"}
    made = some_of(program, FAMILY, 1, **words)
    candidate = Space.of(program, runtime, made).candidate({})
    module = compile_program(candidate.skeleton.at(candidate.point)).module
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({name: arrays.pop(name) for name in ("w", "b")})
        got = loaded.run(arrays, poison=True)
    assert not isinstance(judge.judge(got), WrongResult)


def test_a_stage_of_tiles_of_any_side_is_read_with_the_lengths_of_the_program(
    runtime: Device,
) -> None:
    """The passes of a fold are counted before the side of a tile in local memory is known."""
    program = parse("""
        def p(xss: [5][5]f32) =
          let least = (xss |> slide2d(2, 1) |> map(map(w => w |> join |> reduce(minimum, 100)))) in
            least |> map(reduce((a, x) => a * 0.5 - x, 1))""")
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    settings = {"least": "stored", "least.family": "local", "result.family": FAMILY}
    candidate = candidate_of(program, runtime, settings | {"result.inside": "0"})
    assert "theta" in candidate.label
    made = compile_program(candidate.skeleton.at(candidate.point))
    assert len(chain_of_skeleton(candidate.skeleton.program).run) == len(made.chain.run)
    (got,) = results(runtime, [made.module], [*arrays.values()])
    assert not isinstance(judge.judge(got), WrongResult)


def compiled(name: str, **settings: str | int) -> Compilation:
    """A candidate that reads padding as it is and makes a plane by one work-item."""
    words = {"pad": "fused", "hold": "no", "items": "one", "vector": "no"}
    asked = {"family": FAMILY} | words | settings
    candidate = candidate_of(CASES[name], DEFAULT_DEVICE, asked)
    return compile_program(candidate.skeleton.at(candidate.point))


def test_without_maps_around_it_each_pass_is_a_kernel_that_updates_the_result() -> None:
    made = compiled("overlaps", inside="0")
    first, second = made.chain.run
    assert not first.updates
    assert second.updates
    assert first.writes == second.writes == made.chain.result
    assert [b.role for b in made.chain.buffers] == ["input", "output"]


def test_passes_are_a_loop_around_the_loops_over_a_plane() -> None:
    (kernel,) = compiled("overlaps", inside="1").kernels
    first, rest = kernel.source.split("for (int i0", 1)[1].split("for (int i1")
    assert "output[" in first
    assert "= output[" not in first
    assert "= output[" in rest


def test_an_operation_on_the_folds_is_applied_after_the_last_pass() -> None:
    made = compiled("mean, channels last", inside="0")
    *_, last = made.chain.run
    assert [k.updates for k in made.chain.run] == [False] + [True] * 8 + [False]
    assert last.reads == (made.chain.run[0].writes,)


@pytest.mark.parametrize("hold", ["local", "private"])
def test_the_passes_read_held_windows(hold: str) -> None:
    (kernel,) = compiled("largest, channels last", inside="1", hold=hold).kernels
    copied, passed = kernel.source.split("output[", 1)
    assert "x[" in copied
    assert "x[" not in passed
    assert ("__local" in copied) == (hold == "local")


@pytest.mark.parametrize(
    ("name", "shape"),
    [("largest, channels last", "[9][4][5][4]f32"), ("channels first", "[9][3][4][5]f32")],
)
def test_stored_windows_are_in_the_order_of_the_passes(name: str, shape: str) -> None:
    """A pass reads a plane of the windows from its beginning to its end."""
    made = compiled(name, inside="0", pad="windows")
    windows = made.chain.run[0].writes
    assert str(windows.type) == shape
    assert [k.reads for k in made.chain.run[1:]] == [(windows,)] * 9


def test_windows_of_a_named_value_are_not_stored() -> None:
    """They cannot be: a choice that fails would leave the whole family out of the space."""
    text = """def p(xss: [7][5]f32) = let yss = (concat(xss, xss) |> transpose) in
      yss |> map(row => row |> slide(2, 1) |> map(reduce(maximum, -inf)))"""
    made = skeletons_of(FAMILIES[FAMILY], parse(text))
    assert not isinstance(made, str)
    assert {s.words["pad"] for s in made} == {"fused"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def p(xs: [5]f32) = xs |> map(x => x * 2)", "no map of folds makes the result"),
        (
            (
                "def p(a: [5][7]f32, b: [3][7]f32) = a |> map(x => b |> map(y => zip(x, y) "
                "|> map(mul) |> reduce(add, 0)))"
            ),
            "`direct` applies, which is better",
        ),
        ("def p(xss: [5][65]f32) = xss |> map(reduce(add, 0))", "more than 64 steps"),
        (
            (
                "def p(xss: [5][7]f32) = xss |> map(row => zip(row, row) "
                "|> reduce((a, x) => (a.0 + x.0, a.1 - x.1), 0))"
            ),
            "its folds make tuples or arrays",
        ),
    ],
)
def test_it_says_why_it_does_not_apply(text: str, why: str) -> None:
    reason = skeletons_of(FAMILIES[FAMILY], parse(text))
    assert isinstance(reason, str)
    assert why in reason

"""What a board without Python finds is what Python finds."""

import pytest

from liftpy.boards.results import read_results
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.measurement import run_once
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.workloads import Convolution, convolution
from tests.boards.ran import bundled, exported, run

CONVOLUTION = convolution(Convolution(4, 9, 8, 8, (3, 1), padding=(1, 1, 0, 0)), "conv")
#: A program, and what is chosen of it.
PROGRAMS = {
    "tiles": (
        "def tiles(x: [12]f32, const w: [12]f32) = zip(x, w) |> map(mul)",
        {"family": "plain"},
    ),
    "tuples": ("def pairs(ps: [6](f32, i32)) = ps |> map((x, k) => (k * 2, x - f32(k)))", {}),
    "bytes": ("def p(xs: [7]i8) = xs |> map(x => x * x - 3)", {}),
    "longs": ("def p(xs: [7]i64, k: i64) = xs |> map(x => x * k * 4611686018427387904)", {}),
    "truth": ("def p(xs: [11]f32) = xs |> map(x => x < 0)", {}),
    "doubles": ("def p(xs: [9]f64) = xs |> map(x => exp(x))", {}),
    "a scalar": ("def dot(x: [64]f32, y: [64]f32) = zip(x, y) |> map(mul) |> reduce(add, 0)", {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_is_what_python_finds(board, pocl, tmp_path, name):
    text, settings = PROGRAMS[name]
    program = parse(text)
    bundle = exported(program, tmp_path / "bundle", settings)
    printed = run(board, tmp_path / "bundle")
    assert printed.returncode == 0, printed.stderr
    (tmp_path / "results.csv").write_text(printed.stdout)
    (row,) = read_results(tmp_path / "results.csv").rows
    (candidate,) = bundle.candidates
    module = compile_candidate(candidate.skeleton, candidate.assignment)
    arrays = inputs(program)
    done = run_once(module, pocl, arrays)
    assert row.outcome == "measured", row.reason
    error = Judge(program, arrays, expected(program, arrays)).judge(done.result)
    assert row.error == error.largest
    assert row.rms == pytest.approx(error.rms, rel=1e-12)
    assert row.allocated == module.memory.allocated
    assert {len(times) for times in row.times_ns} == {len(done.kernels_ns)}


def test_chains_and_prepare_phases_run(board, pocl, tmp_path):
    """Convolutions of one, four and five kernels: local memory, transformed weights."""
    space = space_of(CONVOLUTION, pocl, fixed={"winograd": "2x1"})
    plain = candidate_of(CONVOLUTION, pocl, {"family": "plain"})
    some = [plain, *space.sample(10, 0)]
    drawn = [(c, compile_candidate(c.skeleton, c.assignment)) for c in some]
    of_each = {len(module.launches): (c, module) for c, module in drawn}
    chosen, modules = zip(*(of_each[count] for count in (1, 4, 5)), strict=True)
    bundle = bundled(space, chosen, tmp_path / "bundle")
    printed = run(board, tmp_path / "bundle", "--repeats", "1")
    (tmp_path / "results.csv").write_text(printed.stdout)
    found = read_results(tmp_path / "results.csv").rows
    assert [row.candidate for row in found] == [c.key for c in bundle.candidates]
    assert {row.outcome for row in found} == {"measured"}, [row.reason for row in found]
    assert {len(row.times_ns) for row in found} == {1}
    prepares = {
        any(x.phase == "prepare" for x in m.launches): r
        for m, r in zip(modules, found, strict=True)
    }
    assert prepares[True].prepare_ns > 0 == prepares[False].prepare_ns

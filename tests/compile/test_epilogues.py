"""What is done to each result of a stage, done where the stage computes it: one kernel."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.one_candidate import candidate_of
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import STAGES
from liftpy.rewrite.skeleton import FAMILY
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategy import Failure
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution, workload
from tests.batch import results
from tests.compile.test_families import direct
from tests.compile.test_programs import inputs
from tests.spaces import as_one_stage, some_of

pytestmark = pytest.mark.usefixtures("derived_once")

TIMES = """map(row => b |> transpose |> map(column =>
    zip(row, column) |> map(mul) |> reduce(add, 0)))"""
MATRICES = "a: [6][9]f32, const b: [9][8]f32"

PROGRAMS = {
    "scaled": f"def p({MATRICES}) = a |> {TIMES} |> map2d(x => max(x * 2, 0))",
    "used often": f"def p({MATRICES}) = a |> {TIMES} |> map2d(x => x * tanh(x) - x * x)",
    "transposed": f"""
        def p({MATRICES}, y: [8][6]f32) =
          zip(a |> {TIMES} |> transpose, y)
            |> map((news, olds) => zip(news, olds) |> map((new, old) => new - old))""",
    "joined": f"""
        def p({MATRICES}, y: [48]f32) =
          zip(y, a |> {TIMES} |> join) |> map((old, new) => old - new)""",
    "split": f"def p({MATRICES}) = a |> {TIMES} |> split(2) |> map2d(map(x => max(x, 0)))",
    "split with another array": f"""
        def p({MATRICES}, y: [3][2][8]f32) =
          zip(a |> {TIMES} |> split(2), y) |> map((rows, olds) => zip(rows, olds)
            |> map((row, old) => zip(row, old) |> map((new, kept) => max(new - kept, 0))))""",
    "reordered": f"""
        def p({MATRICES}) = a |> {TIMES} |> reorder(i => 5 - i, i => 5 - i)
          |> map2d(x => max(x, 0))""",
    "one after another": f"""
        def p({MATRICES}, y: [6][8]f32) =
          zip(a |> {TIMES} |> map2d(x => max(x, 0)), y |> map2d(v => v * 2))
            |> map((s, r) => zip(s, r) |> map((u, v) => u - v)) |> map2d(z => z * z)""",
    "normalised": f"""
        def p({MATRICES}, const scale: [8]f32, const shift: [8]f32) =
          a |> {TIMES} |> map(row => zip(zip(row, scale), shift)
            |> map((xg, h) => max(xg.0 * xg.1 + h, 0)))""",
    "in the function of a row": f"""
        def p({MATRICES}, const c: [8]f32) =
          a |> map(row => zip(c, b |> transpose |> map(column =>
              zip(row, column) |> map(mul) |> reduce(add, 0)))
            |> map((bias, x) => bias - 2 * x) |> map(x => max(x, 0)))""",
    "written inside": """
        def p(a: [6][9]f32, const b: [9][8]f32, const c: [8]f32) =
          a |> map(row => zip(b |> transpose, c) |> map((column, bias) =>
            max((zip(row, column) |> map(mul) |> reduce(add, 0)) - bias, 0)))""",
}
SIZES = {"kappa": 4, "sigma": 3, "v": 4}

LAYER = Convolution(4, 7, 9, 8, (3, 3), (1, 1), (1, 1, 1, 1), epilogue="relu")
FOUR_STAGES = {"theta": 4, "rho": 1, "kappa": 2, "sigma": 2, "omega": 12, "v": 2}


def fused(program: Program, sizes: dict[str, int]) -> Module:
    """The register-blocked form with the epilogue in it, and padding as it is read."""
    (skeleton,) = some_of(program, "direct", 1, pad="fused", level="glb")
    return compile_candidate(skeleton, sizes)


def is_one_kernel_without_scratch(module: Module) -> bool:
    """Of the run phase; constants may be packed before."""
    return [x.phase for x in module.launches].count("run") == 1 and module.memory.scratch == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_epilogue_is_part_of_the_kernel(runtime: Device, name: str) -> None:
    """It works on the finished accumulators, in vectors, and what it computes is right."""
    program = parse(PROGRAMS[name])
    module = fused(program, SIZES)
    assert is_one_kernel_without_scratch(module)
    assert "acc0_0.s" not in module.source or name == "transposed"
    arrays = inputs(program)
    expected = np.asarray(evaluate(program, *arrays, dtype=np.float64))
    (got,) = results(runtime, [module], arrays)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@cache
def clipped() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs of the layer, and what numpy alone makes of them in float64."""
    rng = np.random.default_rng(7)
    shapes = {p.name: [int(s) for s in p.type.shape] for p in convolution(LAYER).params}
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    sums = direct(LAYER, **{n: a.astype(np.float64) for n, a in arrays.items()})
    return arrays, np.maximum(sums, 0)


@pytest.mark.parametrize(
    ("family", "sizes", "kernels"),
    [("direct", SIZES, 1), ("local", {"theta": 3}, 1), ("staged", FOUR_STAGES, 4)],
)
def test_a_layer_s_rectifier_takes_no_kernel(
    runtime: Device, family: str, sizes: dict[str, int], kernels: int
) -> None:
    program = convolution(LAYER)
    made = as_one_stage(program, (family,))[0]
    module = fused(program, sizes) if family == "direct" else compile_candidate(made, sizes)
    assert [x.phase for x in module.launches].count("run") == kernels
    assert module.memory.scratch == 0 or family == "staged"
    arrays, expected = clipped()
    assert (expected == 0).any()
    (got,) = results(runtime, [module], [arrays[p.name] for p in program.params])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * expected.max())


@pytest.mark.parametrize("name", ["vgg16/7:relu", "vgg16/7:nchw:relu", "gemm/64x48x80"])
def test_built_in_programs_with_an_epilogue_are_one_kernel(name: str) -> None:
    module = fused(workload(name), {"kappa": 16, "sigma": 4, "v": 16})
    assert is_one_kernel_without_scratch(module)


def test_whether_the_stage_is_stored_is_a_choice(runtime: Device) -> None:
    """Both forms give the same numbers."""
    arrays, _ = clipped()
    modules = []
    for choice in ("fused", "stored"):
        words = {FAMILY: "direct", "pad": "fused", "level": "glb", **SIZES}
        if choice == "stored":
            words = {FAMILY: STAGES, **{f"stage1.{name}": word for name, word in words.items()}}
            words |= {"result.family": "plain"}
        candidate = candidate_of(convolution(LAYER), runtime, {**words, "stage1": choice})
        module = compile_candidate(candidate.skeleton, candidate.assignment)
        assert len(module.launches) == (3 if choice == "stored" else 2)
        modules.append(module)
    np.testing.assert_array_equal(*results(runtime, modules, [arrays[n] for n in "xwb"]))


UNFUSED = {
    "an element is read more than once": f"""
        def p({MATRICES}) = a |> {TIMES} |> map(slide(3, 1) |> map(reduce(maximum, 0)))""",
    "a row is read for each element": f"""
        def p({MATRICES}) = a |> {TIMES}
          |> map(row => row |> map(x => x - (row |> reduce(add, 0))))""",
    "two stages are read": f"""
        def p({MATRICES}) = zip(a |> {TIMES}, a |> {TIMES})
          |> map((s, r) => zip(s, r) |> map((u, v) => u - 2 * v))""",
}


@pytest.mark.parametrize("name", UNFUSED)
def test_a_stage_that_would_be_folded_more_than_once_is_stored(name: str) -> None:
    program = parse(UNFUSED[name])
    made = skeletons_of(FAMILIES["direct"], program)
    assert isinstance(made, str)


def test_a_program_of_one_stage_is_left_alone() -> None:
    body = workload("vgg16/7").body.body
    result = fused_inward(body)
    assert not isinstance(result, Failure)
    assert result.expr is body

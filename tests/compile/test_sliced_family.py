"""The family `sliced`: sets of reductions, stationary operands, and right candidates."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import TypeRefused
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of, sliced
from liftpy.rewrite.strategies.lanes import STORED_BY_LANE
from liftpy.workloads import Convolution, convolution, workload
from tests.batch import results
from tests.loops.interpreted import interpreted
from tests.spaces import some_of

FAMILY = "sliced"
LAYER = Convolution(6, 8, 8, 8, (3, 3), padding=(1, 1, 1, 1))
CASES: dict[str, Program] = {
    "channels last": convolution(LAYER, "last"),
    "a border on two sides, stride 2": convolution(
        Convolution(6, 9, 9, 8, (3, 3), (2, 2), (1, 0, 1, 0)), "strided"
    ),
    "channels first": convolution(Convolution(4, 8, 8, 6, (3, 1), layout="nchw"), "first"),
    "a relu": convolution(Convolution(6, 4, 4, 8, (1, 1), epilogue="relu"), "relu"),
    "a product": workload("matmul/8x12x16"),
}
DIFFERENCES = parse("""
def differences(a: [6][8]f32, b: [4][8]f32) =
  a |> map(x => b |> map(y => zip(x, y) |> reduce((s, p) => s * 0.5 + p.0 * p.1, 0)))
""")
"""A reduction whose result depends on its order."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", list(CASES))
def test_every_drawn_candidate_is_right(runtime: Device, name: str) -> None:
    program = CASES[name]
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays, tolerance=1e-5))
    tiles = some_of(program, FAMILY, 2, pad="tile")
    assert len(tiles) == 2
    found = Space.of(program, runtime, (*some_of(program, FAMILY, 3), *tiles))
    sizes = {"chunk": 2, "turns": 2}
    candidates = [found.candidate({**member.words, **sizes}, seed=3) for member in found.members]
    modules = [compile_candidate(c.skeleton, c.assignment) for c in candidates]
    each = results(runtime, modules, [*arrays.values()])
    for candidate, got in zip(candidates, each, strict=True):
        assert not isinstance(judge.judge(got), WrongResult), candidate.label


def compiled(name: str, **settings: str | int) -> Module:
    """The kernels of a candidate with vectors of 4."""
    words = {"pad": "fused", "level": "wrg", "kappa": 4, "sigma": 2, "v": 4}
    asked = {"family": FAMILY} | words | settings
    candidate = candidate_of(CASES[name], DEFAULT_DEVICE, asked)
    return compile_candidate(candidate.skeleton, candidate.assignment)


def module_of(name: str, **settings: str | int) -> tuple[str, int]:
    """The source and the private bytes of a candidate."""
    module = compiled(name, **settings)
    return module.source, module.memory.private


def test_shared_sets_keep_the_accumulators_of_all_blocks() -> None:
    """The loop over sets is around the blocks, so each of them has registers of its own."""
    for stationary in ("inner", "outer"):
        given = {"stationary": stationary, "chunk": 3, "turns": 2}
        kept, of_one = module_of("channels last", **given, sets="kept")
        shared, of_all = module_of("channels last", **given, sets="shared")
        assert of_all == 2 * of_one == 2 * 4 * 4 * 2
        assert kept.count("vstore4") == shared.count("vstore4") == 4  # kept: in two versions
        assert loops_of(kept)[:4] == ["2", "2", "9", "3"]  # blocks, sets, windows, channels
        assert loops_of(shared)[:3] == ["2", "9", "3"]


def loops_of(source: str) -> list[str]:
    """The bounds of the loops of the last kernel, in their order."""
    kernel = source.rpartition("__kernel")[2]
    return [x.split(";")[1].split()[-1] for x in kernel.splitlines() if "for (int" in x]


def test_the_stationary_operand_is_the_one_that_all_blocks_of_a_work_item_read() -> None:
    given = {"chunk": 6, "turns": 2, "sets": "kept", "sigma": 1}
    kernels, _ = module_of("channels last", **given, stationary="inner")
    image, _ = module_of("channels last", **given, stationary="outer")

    def by_block(source: str, array: str) -> bool:
        (_, _, kernel) = source.rpartition("__kernel")
        used = [
            line for line in kernel.splitlines() if f"{array}[" in line and "const float" in line
        ]
        assert used
        return any("i0" in line.partition(f"{array}[")[2] for line in used)

    assert by_block(kernels, "x")
    assert not by_block(kernels, "b")
    assert by_block(image, "b")


@pytest.mark.parametrize(("stationary", "sets"), [("inner", "kept"), ("outer", "shared")])
def test_a_tile_is_in_local_memory_and_the_sums_have_no_border(stationary: str, sets: str) -> None:
    """It has the windows of a block, and zeros where they reach over the border."""
    given = {"stationary": stationary, "sets": sets, "turns": 2, "chunk": 3}
    module = compiled("channels last", pad="tile", sigma=4, **given)
    assert module.memory.local == 4 * (4 * 3 * 3 * 6)  # f32: windows, their elements, channels
    assert module.memory.scratch == 0
    kernel = module.source.rpartition("__kernel")[2]
    copying, _, summing = kernel.partition("acc0_0 = ")
    assert "0.0f" in copying
    assert "if (" not in summing
    assert "?" not in summing


def test_sets_of_one_dimension_keep_the_order_of_a_reduction() -> None:
    made = skeletons_of(FAMILIES[FAMILY], DIFFERENCES)
    assert not isinstance(made, str)
    assert not any(s.derivation.reassociates() for s in made)
    program = DIFFERENCES
    arrays = inputs(program)
    for skeleton in made[::5]:
        sizes = {"kappa": 2, "sigma": 1, "v": 2, "chunk": 4, "turns": 2}
        compiled = compile_program(skeleton.at(sizes))
        got = interpreted(compiled, compiled.optimized, arrays)
        a, b = arrays.values()
        want = np.zeros((6, 4))
        for k in range(8):
            want = want * 0.5 + np.outer(a[:, k], b[:, k])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_terms_that_are_folds_are_not_summed_in_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums would differ by lane, and so have to be stored; they never take another's lanes."""
    program = parse("""
        def p(xs: [6][4]f32, const ws: [8][4]f32) =
          xs |> map(x => ws |> map(w =>
            zip(x, w) |> map((a, b) => a - b) |> split(2) |> map(reduce(add, 0)) |> reduce(add, 0)
          ))
    """)
    assert skeletons_of(FAMILIES["sliced"], program) == f"sliced: {STORED_BY_LANE.reason}"
    monkeypatch.setattr(sliced, "lanes_store", lambda expr: False)
    made = skeletons_of(FAMILIES["sliced"], program)
    assert not isinstance(made, str)
    sizes = {"kappa": 4, "sigma": 1, "v": 2, "chunk": 1, "turns": 1}
    with pytest.raises(TypeRefused, match="a function of vector lanes needs a stored value"):
        compile_candidate(made[0], sizes)

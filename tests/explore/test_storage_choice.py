"""Storage as a choice: bounds that follow the types, campaigns, and fronts of three figures."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.exploring import explore
from liftpy.explore.measure.bounding import Bounding
from liftpy.explore.measure.check import Error
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, NarrowedMeaning, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.measure.pareto import clear_front
from liftpy.explore.measure.samples import Interval
from liftpy.explore.space.precision import other_meaning, partition_of
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse, show_expr
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategy import replay
from liftpy.semantics.rounding import ErrorBounds
from tests.shared import in_one_process

LAYER = parse("""
    def layer(const w: [8][60]f32, x: [60]f32) =
      w |> map(row => zip(row, x) |> map(mul) |> reduce(add, 0))""")
TYPES = {"w": "bf16, flyte8, flyte24"}


def candidate(word: str):
    """A candidate that stores the weights in a type."""
    space = space_of(LAYER, DEFAULT_DEVICE, storage=TYPES, fixed={"w": word})
    return space.candidate({})


def product(t, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The layer with weights that were stored in a type."""
    w = lp.from_storage(lp.to_storage(arrays["w"], t), t)
    return (w.astype(np.float64) @ arrays["x"]).astype(np.float32)


def test_results_are_compared_with_the_meaning_of_their_form() -> None:
    """Other roundings are wrong, also those of a finer type, and so is a kernel of zeros.

    The error of a right result is at most the a-priori bound, which follows the types.
    """
    program = lp.with_storage(LAYER, TYPES)
    arrays = inputs(program)
    wanted = expected(program, arrays)
    judge, bounding = Judge(program, arrays, wanted), Bounding(program, arrays, wanted)
    exact = (arrays["w"].astype(np.float64) @ arrays["x"]).astype(np.float32)
    results = {str(t): product(t, arrays) for t in (lp.flyte24, lp.bf16, lp.flyte8)}
    others = {**results, "f32": exact, "none": np.zeros_like(exact)}
    for word, right in results.items():
        skeleton = candidate(word).skeleton
        bounds = bounding.bounds(skeleton)
        for name, result in others.items():
            near = np.abs(result - right).max() <= 1e-5 * np.abs(exact).max()
            assert near == (name == word or {name, word} == {"flyte24", "f32"})
            verdict = judge.judge(result, bounds)
            assert isinstance(verdict, Error if near else WrongResult), (word, name)
        partition = partition_of(skeleton)
        assert partition is not None
        within = ErrorBounds(partition.program, arrays).at(wanted[0].points)
        assert (np.abs(right - exact) <= within).all(), word
    plain = bounding.bounds(candidate("f32").skeleton)
    assert isinstance(judge.judge(results["flyte24"], plain), WrongResult)


def test_a_computed_value_may_be_stored_as_a_neighbour() -> None:
    text = "storage {}\ndef f(x: [40]f32) = let y = x |> map(v => exp(v)) in y |> map(v => v / 3)"
    for declared, more in {"x: bf16": 0.0, "y: bf16": 2.0**-7}.items():
        program = parse(text.format(declared))
        arrays = inputs(program)
        name = declared[0]
        space = space_of(program, DEFAULT_DEVICE, fixed={name: "bf16"})
        bounds = Bounding(program, arrays, expected(program, arrays)).bounds(
            space.candidate({}).skeleton
        )
        assert isinstance(bounds, NarrowedMeaning)
        assert bounds.error == pytest.approx(1e-5 + more)
    program = parse(text.format("x: bf16"))
    assert space_of(program, DEFAULT_DEVICE, max_error=0.5).choices["x"] == ["f32"]


def test_types_whose_bound_exceeds_the_limit_are_left_out() -> None:
    space = space_of(LAYER, DEFAULT_DEVICE, storage=TYPES, max_error=1e-3)
    assert space.choices["w"] == ["f32", "flyte24"]
    assert [form.word for form in space.left_out] == ["w=bf16", "w=flyte8"]
    assert "bounded by 0.00391 of the largest possible result" in space.left_out[0].why


def test_the_weights_are_packed_in_their_type_and_the_raw_ones_released() -> None:
    sizes = {}
    for word in ("f32", "bf16", "flyte8", "flyte24"):
        made = candidate(word)
        module = compile_candidate(made.skeleton, made.point)
        (x,) = (b.bytes for b in module.buffers if b.name == "x")
        sizes[word] = module.memory.peak - x - 8 * 4
    whole = 8 * 60 * 4
    assert sizes == {
        "f32": whole,
        "bf16": whole // 2,
        "flyte8": whole // 4,
        "flyte24": whole * 3 // 4,
    }


def test_a_derivation_says_that_its_meaning_is_another_one() -> None:
    said = other_meaning(candidate("flyte24").skeleton)
    assert said is not None
    assert "w=flyte24 rounds what it stores, and the error is at most 3.05e-05" in said
    assert other_meaning(candidate("f32").skeleton) is None


def test_the_conversions_of_a_form_are_never_taken_for_the_identity() -> None:
    """No step of a derivation removes the rounding."""
    for word in ("bf16", "flyte8"):
        derivation = candidate(word).skeleton.derivation
        for _, after in replay(derivation.start, derivation.steps):
            assert f"{word}(" in show_expr(after)


def test_a_campaign_chooses_storage_and_its_kernels_are_made_again(tmp_path, device) -> None:
    file = tmp_path / "c.db"
    asked = {"storage": TYPES, "fixed": {"w": ["f32", "bf16"]}}
    with in_one_process(tmp_path):
        found = explore(LAYER, 6, db=file, device=device, **asked)
    assert {row.outcome for row in found.rows} == {"measured"}
    by_word = {str(row.assignment["w"]): row for row in found.rows}
    assert by_word["bf16"].error > 1e-4 > by_word["f32"].error
    assert by_word["bf16"].peak < by_word["f32"].peak
    all_three = Campaign.read(file).pareto("peak", also="error")
    assert {row.assignment["w"] for row in all_three} == {"f32", "bf16"}
    kernel = lp.compile(LAYER, by_word["bf16"].assignment, device=device, storage=TYPES)
    rng = np.random.default_rng(1)
    arrays = {"w": rng.uniform(-1, 1, (8, 60)), "x": rng.uniform(-1, 1, 60)}
    arrays = {name: a.astype(np.float32) for name, a in arrays.items()}
    result = kernel(arrays["w"], arrays["x"])
    np.testing.assert_allclose(result, product(lp.bf16, arrays), atol=1e-5)


def test_one_point_beats_another_only_if_none_of_its_costs_is_higher() -> None:
    fast, slow = Interval(10, 9, 11), Interval(20, 18, 22)
    points = [(fast, 4, 1e-2), (slow, 4, 1e-7), (slow, 2, 1e-2), (slow, 4, 1e-2)]
    assert clear_front(points, costs=lambda p: p) == [points[0], points[2], points[1]]

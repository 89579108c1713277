"""Correlations by F(m, r): which programs have the forms, and that these are right at odd sizes."""

from __future__ import annotations

import random

import pytest

from liftpy.explore.exploring import space_of
from liftpy.pipeline import compile_candidate
from liftpy.primitives.text import parse
from liftpy.rewrite.composition import skeleton_named
from liftpy.rewrite.partition import HELD, WINOGRAD, partitions
from liftpy.rewrite.strategies.transformed import NAMED
from liftpy.workloads import workload
from tests.fuzz.correlations import Case, errors

CASES = [
    Case((1, 1), 1, 1, (3, 3), 0),  # one result, far fewer than a tile has
    Case((5, 7), 3, 2, (3, 3), 1),
    Case((12, 12), 4, 8, (3, 3), 2),  # 2, 4 and 6 divide
    Case((1, 13), 7, 1, (5, 5), 3),
    Case((11, 6), 1, 9, (5, 5), 4),
    Case((3, 8), 2, 3, (7, 7), 5),
    Case((6, 9), 3, 4, (2, 2), 6, "nchw"),
    Case((8, 5), 4, 2, (7, 1), 7),
    Case((5, 11), 2, 5, (1, 7), 8, "nchw"),
    Case((7, 9), 5, 3, (5, 3), 9),
    Case((17,), 6, 5, (3,), 10),
    Case((13,), 3, 7, (5,), 11, "nchw"),
]

STRIDED = [
    Case((9, 12), 3, 5, (3, 3), 13, stride=2),
    Case((13, 8), 2, 3, (5, 5), 14, "nchw", stride=2),
    Case((11, 13), 3, 2, (7, 7), 15, stride=2, padded=False),
    Case((17, 14), 2, 3, (11, 11), 16, "nchw", stride=4, padded=False),
    Case((7, 11), 1, 4, (5, 7), 17, stride=3),
    Case((17,), 2, 3, (11,), 18, stride=3),
    Case((12, 3), 3, 2, (7, 1), 19, stride=2),
]
"""Windows of blocks: 2, 3, 4, 3, 2 x 3, 4 and 4 x 1 of them."""


@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_form_is_right_within_its_bound(runtime, case: Case) -> None:
    found = errors(case, runtime, case.forms)
    assert found.keys() == case.forms
    assert max(max(each) for each in found.values()) <= 1


@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("case", STRIDED, ids=str)
def test_windows_with_a_stride_are_right_within_the_bound(runtime, case: Case) -> None:
    chosen = random.Random(case.seed).choice(sorted(case.forms))
    found = errors(case, runtime, [chosen])
    assert found.keys() == {chosen}
    assert max(found[chosen]) <= 1


@pytest.mark.parametrize("case", [*CASES, *STRIDED], ids=str)
def test_a_case_has_the_forms_that_it_states(case: Case) -> None:
    assert forms(case.text("x", "w", "b")) == sorted(case.forms)


def forms(text: str) -> list[tuple[str, str]]:
    """The tiles of each form of a program, and whether these and the products are held."""
    made = [dict(p.words) for p in partitions(parse(text)) if p.other_algorithm]
    assert all(own["inputs"] == own["products"] for own in made)
    return sorted((own[WINOGRAD], own["inputs"]) for own in made)


SQUARES, ROWS = ["2x2", "4x4", "6x6"], ["1x2", "1x4", "1x6"]
DENSE = """
def p(x: [10][11][3]{t}, const w: [4][{r}][{r}][3]{t}) =
  x |> slide({r}, {s}) |> map(rows => rows |> map(slide({r}, {s})) |> transpose |> map(part =>
    w |> map(k => zip(part |> join |> join, k |> join |> join) |> map({f}) |> reduce(add, 0))))
"""


def test_a_program_without_padding_or_bias_has_the_forms() -> None:
    found = {word for word, _ in forms(DENSE.format(t="f32", r=3, s=1, f="mul"))}
    assert found == {*ROWS, *SQUARES, "4x6"}  # of 8 x 9 results


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"s": 3}, "windows that do not overlap"),
        ({"r": 6}, "no triple of six taps"),
        ({"f": "(a, b) => a + b"}, "a fold that adds no products"),
        ({"f": "(a, b) => a * a"}, "products of one array"),
    ],
)
def test_another_program_has_none(changed: dict, why: str) -> None:
    del why
    given = {"t": "f32", "r": 3, "s": 1, "f": "mul", **changed}
    assert forms(DENSE.format(**given)) == []


def test_the_steps_have_names_and_belong_to_their_phases() -> None:
    program = workload("vgg16/12")
    for found in partitions(program):
        if found.other_algorithm:
            stages = {stage.name: stage for stage in found.stages}
            held = dict(found.words)["inputs"] == HELD
            assert {*NAMED} & {*stages} == ({"filters"} if held else {*NAMED})
            assert all(stages["filters"].is_constant(p) for p in stages["filters"].program.params)
            (first, *_) = (s for s in found.stages if s.name != "filters")
            assert not first.is_constant(first.program.params[0])
            assert first.holds == held


def test_a_work_item_holds_a_block_of_tiles_at_a_time(device) -> None:
    """9 tiles of 36 points, of 4 channels and 8 kernels: three blocks, one after another."""
    made = {WINOGRAD: "4x4", "inputs": HELD, "result.hold": "global", "result.pad": "fused"}
    sizes = {"result.block": 3, "result.turns": 3}
    found = space_of(CASES[2].program, device).candidate({**made, **sizes})
    module = compile_candidate(found.skeleton, found.point)
    assert module.memory.scratch == 36 * 3 * (4 + 8) * 4
    phases = [launch.phase for launch in module.launches]
    assert phases == ["prepare", "prepare", "run"]  # kernels are transformed, then packed


def test_a_form_is_derived_again_from_its_key(device) -> None:
    program = CASES[1].program
    space = space_of(program, device, fixed={WINOGRAD: ("4x4",)})
    for candidate in space.sample(5, 0):
        again = skeleton_named(program, candidate.skeleton.key)
        assert again is not None
        assert again.derivation.steps == candidate.skeleton.derivation.steps


def test_a_users_names_do_not_collide() -> None:
    """Parameters may have the names of the steps, and so may other values."""
    other = parse(CASES[1].text("inputs", "filters", "products"))
    made = [p for p in partitions(other) if p.other_algorithm]
    assert {len(p.stages) for p in made} == {2, 4}
    assert all(len({s.name for s in p.stages}) == len(p.stages) for p in made)

"""Correlations by F(m, r): which programs have the forms, and that these are right at odd sizes."""

from __future__ import annotations

import pytest

from liftpy.explore.exploring import space_of
from liftpy.primitives.text import parse
from liftpy.rewrite.composition import skeleton_named
from liftpy.rewrite.partition import WINOGRAD, partitions
from liftpy.rewrite.rules.correlation import SIZES
from liftpy.rewrite.strategies.transformed import NAMED
from liftpy.workloads import workload
from tests.fuzz.correlations import Case, errors

CASES = [
    Case(1, 1, 1, 1, 3, 0),  # one result, far fewer than a tile has
    Case(5, 7, 3, 2, 3, 1),
    Case(12, 12, 4, 8, 3, 2),  # 2, 4 and 6 divide
    Case(1, 13, 7, 1, 5, 3),
    Case(11, 6, 1, 9, 5, 4),
    Case(3, 8, 2, 3, 7, 5),
]


@pytest.mark.parametrize(
    "runtime", ["intel", pytest.param("pocl", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_form_is_right_within_its_bound(runtime, case: Case) -> None:
    found = errors(case, runtime)
    assert found.keys() == {m for m, r in SIZES if r == case.taps}
    assert max(max(each) for each in found.values()) <= 1


def forms(text: str) -> list[str]:
    """The words of the choice that a program's partitions have."""
    return [dict(p.words)[WINOGRAD] for p in partitions(parse(text)) if p.other_algorithm]


DENSE = """
def p(x: [10][11][3]{t}, const w: [4][{r}][{r}][3]{t}) =
  x |> slide({r}, {s}) |> map(rows => rows |> map(slide({r}, {s})) |> transpose |> map(part =>
    w |> map(k => zip(part |> join |> join, k |> join |> join) |> map({f}) |> reduce(add, 0))))
"""


def test_a_program_without_padding_or_bias_has_the_forms() -> None:
    assert forms(DENSE.format(t="f32", r=3, s=1, f="mul")) == ["2x2", "4x4", "6x6"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"s": 2}, "windows two apart"),
        ({"r": 4}, "no triple of four taps"),
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
            assert {*NAMED} < {*stages}
            assert all(stages["filters"].is_constant(p) for p in stages["filters"].program.params)
            assert not stages["inputs"].is_constant(stages["inputs"].program.params[0])


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
    assert [len(p.stages) for p in made] == [5, 5, 5]
    assert all(len({s.name for s in p.stages}) == 5 for p in made)

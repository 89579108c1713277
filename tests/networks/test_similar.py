"""Similar programs, and candidates of one with the settings of another."""

import math

import numpy as np
import pytest

import liftpy as lp
from liftpy.explore.one_candidate import nearest_candidate
from liftpy.explore.spaces import space_of
from liftpy.networks.similar import Outline, similar_candidate
from liftpy.pipeline import compile_candidate
from tests.candidates import result

PRODUCT = """
def product(a: [{m}][{k}]f32, b: [{k}][{n}]f32) =
  a |> map(row => b |> transpose |> map(column => zip(row, column) |> map(mul) |> reduce(add, 0)))
"""
ROWS = """
def rows(xs: [{m}][{n}]f32) =
  xs |> map(row => (let s = row |> reduce(add, 0) in row |> map(x => x / s)))
"""


def product(m, k, n):
    return lp.parse(PRODUCT.format(m=m, k=k, n=n))


def test_programs_that_differ_in_lengths_only_are_similar():
    one, other = Outline.of(product(4, 8, 16)), Outline.of(product(4, 32, 16))
    assert one.text == other.text
    assert one.apart(other) == 4  # two octaves, in each of two places
    assert one.apart(one) == 0


def test_other_names_operators_and_fractions_are_not():
    text = "def f(xs: [8]f32) = xs |> map(x => x * {})"
    one, other = (Outline.of(lp.parse(text.format(x))) for x in (0.5, 0.25))
    assert one.apart(other) == math.inf
    assert one.apart(Outline.of(product(8, 8, 8))) == math.inf


@pytest.mark.parametrize("program", [product(24, 35, 48), lp.parse(ROWS.format(m=6, n=35))])
def test_the_nearest_candidate_of_a_program_to_its_own_is_that(program, device):
    for candidate in space_of(program, device).sample(12, 3):
        near = nearest_candidate(program, device, candidate.assignment)
        assert near.key == candidate.key


def test_its_sizes_are_nearest_by_their_ratio(device):
    space = space_of(product(64, 64, 64), device, families=["direct"])
    given = next(c for c in space.draws(0) if c.point)
    program = product(23, 64, 60)
    near = nearest_candidate(program, device, given.assignment)
    words = near.skeleton.words  # it has a choice more: its lengths are no multiples of the blocks
    assert given.skeleton.words.items() <= words.items()
    member = space_of(program, device).by_key[near.skeleton.key]
    open_ = list(member.points.draws(0))
    assert near.point in open_
    first = member.system.parameters[0].name

    def apart(at):
        return abs(math.log(at[first] / given.point[first]))

    assert apart(near.point) == pytest.approx(min(map(apart, open_)))


@pytest.mark.parametrize("to", [(13, 35, 51), (64, 128, 16)])
def test_it_computes_the_program(to, device):
    program = product(*to)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in (to[:2], to[1:]))
    for candidate in space_of(product(24, 35, 48), device).sample(8, 5):
        near = nearest_candidate(program, device, candidate.assignment)
        if near is not None:
            module = compile_candidate(near.skeleton, near.point)
            found = result(device, module, {"a": a, "b": b})
            np.testing.assert_allclose(found, a.astype(float) @ b, rtol=1e-4, atol=1e-4)


def test_a_choice_that_the_program_does_not_have_is_left_out(device):
    draws = space_of(product(23, 64, 61), device, families=["direct"]).draws(0)
    given = next(c for c in draws if c.assignment.get("tail") == "overlap")
    near = nearest_candidate(product(64, 64, 64), device, given.assignment)
    assert "tail" not in near.assignment
    differing = given.skeleton.words.items() - near.skeleton.words.items()
    assert {name for name, _ in differing} == {"tail"}


def test_a_family_that_does_not_suit_the_device_is_left_out(device):
    """A campaign in the same folder may have had conditions."""
    program = product(16, 16, 16)
    given = next(space_of(program, device, families=["cooperative"]).draws(0)).assignment
    assert nearest_candidate(program, device, given) is None


def test_without_such_a_family_there_is_none(device):
    settings = {"family": "scan_in_place"}
    assert nearest_candidate(product(4, 4, 4), device, settings) is None


def test_the_nearest_similar_program_with_a_candidate_determines_it(device):
    program = product(24, 35, 48)
    best = next(space_of(product(24, 35, 40), device).draws(2)).assignment
    asked = []

    def told(name, settings):
        def settings_of():
            asked.append(name)
            return settings

        return settings_of

    others = [
        (Outline.of(product(512, 512, 512)), told("far", best)),
        (Outline.of(product(24, 35, 47)), told("nothing measured", None)),
        (Outline.of(product(24, 35, 40)), told("near", best)),
        (Outline.of(lp.parse(ROWS.format(m=6, n=35))), told("another", best)),
    ]
    found = similar_candidate(program, others, device)
    assert asked == ["nothing measured", "near"]
    assert found.key == nearest_candidate(program, device, best).key
    assert similar_candidate(program, others[3:], device) is None

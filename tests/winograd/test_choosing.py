"""Points and scalings that are chosen have smaller errors than the usual ones."""

import json
from itertools import islice

import numpy as np
import pytest
from typer.testing import CliRunner

from liftpy.cli.application import application
from liftpy.rewrite.rules.correlation import SIZES, triple
from liftpy.winograd.choosing import (
    MAGNITUDES,
    By,
    RatedTriple,
    Scaling,
    by_powers,
    choose,
    near_gamma,
    of_rules,
    scalings,
    sets,
    shortlist,
)
from liftpy.winograd.error import bound_of, gamma
from liftpy.winograd.measured import measured_error
from liftpy.winograd.points import ACCURATE, known_points
from liftpy.winograd.triple import cook_toom, integral


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_the_sets_have_distinct_points(count):
    found = [*islice(sets(count), 500)]
    assert len(set(found)) == len(found)
    assert all(len(set(some)) == count for some in found)
    assert all(abs(p) in {0, *MAGNITUDES} for some in found for p in some)


@pytest.mark.parametrize(("m", "r"), [(2, 3), (4, 3), (3, 4), (2, 7)])
def test_the_fast_gamma_is_gamma(m, r):
    for some in [*known_points(m + r - 1).values(), *islice(sets(m + r - 2), 9)]:
        exact = float(gamma(cook_toom(m, r, some)))
        assert near_gamma(m, r, some) == pytest.approx(exact)


def test_powers_of_two_change_neither_gamma_nor_the_bound_of_what_is_not_shared():
    triple = cook_toom(4, 3)
    made = by_powers(triple)
    assert gamma(made) == gamma(triple)
    assert bound_of(made).roundings == bound_of(triple).roundings
    for rows in (made.bt, zip(*made.at, strict=True)):
        assert all(1 <= max(map(abs, row)) < 2 for row in rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("by", By)
def test_what_is_chosen_is_better(by):
    found = choose(4, 3, by, 8)
    assert found.usual.triple == integral(cook_toom(4, 3))
    assert found.best.error(by) < found.usual.error(by)
    assert found.light.error(by) <= found.usual.error(by)
    assert found.light.operations <= found.usual.operations
    listed = [c for t in shortlist(4, 3, 8) for c in scalings(t, 16, 2)]
    assert all(found.best.error(by) <= choice.error(by) for choice in listed)


def test_the_direct_algorithm_is_the_only_choice_for_one_result():
    found = choose(1, 3, By.BOUND, 8)
    assert found.best.triple.points == ()


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("channels", [1, 16])
def test_the_measured_error_is_below_the_bound(dimensions, channels):
    for m in (1, 2, 4):
        triple = cook_toom(m, 3)
        bound = bound_of(triple, dimensions, channels)
        found = measured_error(triple, channels, 50, dimensions=dimensions)
        assert found > 0
        # relative to the largest result of a tile, which is smaller than the largest possible one
        assert found * 1e-2 < bound.relative
        assert found == measured_error(triple, channels, 50, dimensions=dimensions)


def test_a_wrong_transform_has_a_large_measured_error(monkeypatch):
    found = measured_error(cook_toom(4, 3), trials=10)
    monkeypatch.setattr(
        "liftpy.winograd.measured.rounded", lambda factor: np.float32(float(factor) + 1e-3)
    )
    assert measured_error(cook_toom(4, 3), trials=10) > 100 * found


def run(*words):
    return CliRunner().invoke(application("winograd"), ["winograd", *words])


def test_the_command_prints_what_it_has_found_beside_the_usual_points():
    shown = run("--m", "4", "--r", "3", "--choose", "bound")
    assert shown.exit_code == 0, shown.output
    assert "--points 0,2,-2,1/2,-1/2" in shown.stdout
    again = shown.stdout.rpartition("liftpy winograd ")[2].split()
    assert run(*again, "--channels", "16").exit_code == 0
    data = json.loads(run("--m", "3", "--r", "3", "--choose", "measured", "--json").stdout)
    usual, best, light = data["choices"]
    assert best["measured"] < usual["measured"]
    assert light["operations"] <= usual["operations"]
    assert data["channels"] == 16


def test_the_scaling_that_is_printed_is_accepted():
    shown = json.loads(run("--m", "4", "--r", "3", "--scale", "powers", "--json").stdout)
    made = by_powers(cook_toom(4, 3))
    assert shown["bt"] == [[str(x) for x in row] for row in made.bt]


@pytest.mark.parametrize("words", ["--points best", "--scale integers", "--max-error 1e-9"])
def test_options_that_contradict_a_search_are_refused(words):
    assert run("--choose", "bound", *words.split()).exit_code != 0


def test_a_choice_knows_its_operations():
    choice = RatedTriple(cook_toom(2, 3), Scaling.NONE, 16, 2)
    assert choice.operations == 32 + 24


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("m", "r"), SIZES)
def test_rules_compute_with_points_of_a_small_bound(m, r):
    assert triple(m, r).points == of_rules(m, r, By.BOUND)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("m", "r"), SIZES)
def test_no_scaling_of_a_rule_has_a_smaller_bound(m, r):
    """So the bound chooses matrices that are not scaled, which take the fewest operations, too."""
    none, *others = scalings(triple(m, r), 16, 2)
    assert none.scaling is Scaling.NONE
    assert all(none.bound.relative <= other.bound.relative for other in others)
    assert all(none.operations <= other.operations for other in others)


def test_points_of_rules_have_at_most_half_the_usual_bound():
    for size, chosen in ACCURATE.items():
        usual, found = cook_toom(*size), cook_toom(*size, chosen)
        assert 2 * bound_of(found, 2, 64).relative < bound_of(usual, 2, 64).relative
        assert measured_error(found, 64) < measured_error(usual, 64)

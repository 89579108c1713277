"""The search `front`: which partitions may add a point to the front of time and peak."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import liftpy as lp
from liftpy.explore.campaign.reading import begun_in
from liftpy.explore.search import DEFAULT, MODELLED, Trial
from liftpy.explore.search.front import OPTIMISM, hope, hopeful

FAST, LEAN = 1000, 100
POINTS = [Trial(None, 10, FAST), Trial(None, 80, LEAN), Trial(None, None, None)]  # type: ignore[arg-type]
"""The trials of the fastest partition, of the leanest one, and one that was refused."""


@dataclass
class Arm:
    """A partition whose fastest candidate takes `time`."""

    time: float
    peak: int | None
    turns: int
    held: int = 0
    ended: bool = False


def chosen(*arms: Arm) -> Arm | None:
    return hopeful(arms, lambda arm: arm.time, POINTS)


def test_a_partition_is_expected_to_become_faster_by_less_with_each_turn() -> None:
    times = [hope(700.0, turns) for turns in (1, 2, 6, 600)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(700 / (1 + OPTIMISM))
    assert times[-1] > 690


def test_a_partition_between_two_points_has_turns_until_it_is_known_to_be_slow() -> None:
    """It is slower than the leanest one at present, which says little after one turn."""
    for turns, wanted in ((1, True), (20, True), (200, False)):
        between = Arm(90, 500, turns)
        assert (chosen(between) is between) == wanted, turns


def test_a_partition_that_needs_more_memory_than_a_faster_one_has_no_turn() -> None:
    assert chosen(Arm(90, FAST, 1)) is None
    assert chosen(Arm(60, FAST, 1)) is not None
    assert chosen(Arm(60, FAST, 3)) is None


def test_the_partition_with_the_fewest_turns_is_next() -> None:
    often, seldom = Arm(40, 500, 5), Arm(45, 400, 2, held=1)
    assert chosen(often, seldom) is seldom
    seldom.held = 4
    assert chosen(often, seldom) is often


def test_a_partition_without_candidates_or_with_none_left_is_left_out() -> None:
    assert chosen(Arm(40, None, 0), Arm(40, 500, 1, ended=True)) is None


def test_a_modelled_campaign_is_for_the_front_unless_it_began_otherwise(tmp_path) -> None:
    program = lp.parse("def p(xs: [64]f32) = xs |> map(x => x * x)")

    def search_of(name: str, **given: str) -> str:
        file = tmp_path / name
        lp.explore(program, 2, db=file, device="profile:mali-g72", modelled=True, **given)
        begun = begun_in(file)
        assert begun is not None
        return begun.settings["search"]

    assert search_of("new.db") == MODELLED
    assert search_of("old.db", search=DEFAULT) == DEFAULT
    assert search_of("old.db") == DEFAULT

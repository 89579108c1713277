"""What the models count of folds by subgroups."""

from __future__ import annotations

import math

from liftpy.constraints.profile import profile
from liftpy.explore.one_candidate import candidate_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.traffic.energy import executed
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.reading import Reader
from liftpy.traffic.time import modelled

ROWS, LENGTH, GROUP = 5, 211, 53
PROGRAM = parse(f"def p(a: [{ROWS}][{LENGTH}]f32) = a |> map(row => row |> reduce(add, 0))")
DEVICE = profile("mali-g610").device


def made(**settings):
    """A lowered program of row sums by groups of `GROUP`, and its kernel."""
    words = {"strided": "yes", "group": GROUP, **settings}
    chosen = candidate_of(PROGRAM, DEVICE, words)
    lowered = chosen.skeleton.at(chosen.point)
    return lowered, compile_program(lowered).optimized[0]


def test_a_group_executes_a_sum_for_each_element_but_one_of_each_subgroup_and_of_the_results():
    _, code = made(family="subgroups")
    items = ROWS * GROUP
    own = items * -(-LENGTH // GROUP)
    for size in (1, 4, 16, 64):
        results = -(-GROUP // size)
        wanted = own + items * (size - 1) / size + items * (results - 1) + items
        assert math.isclose(executed(code, size)["+", "f32"], wanted), size


def test_a_work_item_takes_two_operations_for_each_halving_of_its_subgroup():
    _, code = made(family="subgroups")
    counted = {}
    for size in (1, 16, 64):
        reader = Reader("lid0", ids=code.ranges, subgroup=size)
        reader.block(code.block, {}, [])
        counted[size] = reader.counts.operations[1] - (-(-GROUP // size) - 1)
    assert counted[16] - counted[1] == 2 * 4
    assert counted[64] - counted[1] == 2 * 6


def test_the_model_orders_subgroups_and_trees():
    """Fewer barriers wait for fewer loads from local memory."""
    hardware = hardware_of(DEVICE)
    by_subgroups, _ = made(family="subgroups")
    by_tree, _ = made(family="tree", steps="6")
    assert (
        modelled(by_subgroups, DEVICE, hardware).milliseconds
        < modelled(by_tree, DEVICE, hardware).milliseconds
    )

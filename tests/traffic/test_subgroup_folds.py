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
from liftpy.traffic.subgroups import with_subgroups_of
from liftpy.traffic.time import modelled
from tests.traffic.executions import ASSUMED, executions

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


def by_rows(sigma, group):
    """The row sums by the subgroups of groups of so many rows and work-items."""
    words = {"family": "subgroups", "level": "subgroup", "sigma": sigma, "group": group}
    chosen = candidate_of(PROGRAM, DEVICE, words)
    lowered = chosen.skeleton.at(chosen.point)
    return lowered, compile_program(lowered).optimized[0]


def test_the_work_items_of_a_subgroup_share_the_elements_of_a_row():
    """For each row, sums of its elements, of the work-items, and with the initial value."""
    for group, size in ((16, 1), (16, 4), (32, 16), (17, 16), (37, 16)):
        _, code = by_rows(5, group)
        sized, subgroups = with_subgroups_of(code, size), -(-group // size)
        turns = ROWS / subgroups * group
        wanted = ROWS * LENGTH + turns * ((size - 1) / size + 1)
        assert math.isclose(executed(sized, size)["+", "f32"], wanted), (group, size)


def test_the_model_counts_what_the_loop_ir_does_for_every_size_of_subgroups():
    """If work-items share the iterations of a loop evenly, rounded up."""
    for group, size in ((16, 1), (16, 4), (32, 16), (8, 8)):
        _, code = by_rows(5, group)
        sized = with_subgroups_of(code, size)
        reader = Reader("slid0", ids=sized.ranges, subgroup=size)
        reader.block(sized.block, {}, [])
        items = math.prod(sized.global_size)
        counted = {key: n * items for key, n in reader.counts.executed.items()}
        assert counted == executions(sized, ASSUMED, size), (group, size)


def test_adjacent_work_items_of_a_subgroup_load_adjacent_elements():
    """So the array is loaded from memory about once."""
    hardware = hardware_of(DEVICE)
    lowered, _ = by_rows(1, 16)
    found = modelled(lowered, DEVICE, hardware).bytes
    assert found[hardware.levels[-1]] < 1.2 * ROWS * LENGTH * 4


def test_the_model_prefers_subgroups_to_groups_for_short_rows():
    """A group of a short row has few work-items, and a barrier."""
    hardware = hardware_of(DEVICE)
    short = parse("def p(a: [4096][16]f32) = a |> map(row => row |> reduce(add, 0))")
    times = {}
    for level in ({"strided": "yes"}, {"level": "subgroup", "sigma": 16}):
        chosen = candidate_of(short, DEVICE, {"family": "subgroups", "group": 16, **level})
        lowered = chosen.skeleton.at(chosen.point)
        times["level" in level] = modelled(lowered, DEVICE, hardware).milliseconds
    assert times[True] < times[False]

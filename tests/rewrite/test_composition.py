"""What the skeletons of a stage have in common is derived, renamed and collected once."""

import pytest

import liftpy as lp
from liftpy.constraints.collect import Collected
from liftpy.explore.search.cost_model import figures_at
from liftpy.ir.call import FunCall
from liftpy.ir.primitive import Primitive
from liftpy.ir.walk import every_part
from liftpy.kernels import chain as chains
from liftpy.opencl.devices import find_device
from liftpy.rewrite.composition import Derived, derived_once, of_family
from liftpy.rewrite.forms import partitions

DEVICE = find_device("profile:xeon-silver-4208")


def calls_in(skeletons):
    """All calls in some skeletons, those that are shared once for each skeleton."""
    return [
        part
        for skeleton in skeletons
        for part in every_part(skeleton.program.body.body)
        if isinstance(part, FunCall)
    ]


@pytest.fixture(scope="module")
def stage():
    """The first stage of a program of two stages: maps of three lengths, so many mappings."""
    program = lp.parse(
        "def p(xs: [7][11][13]f32) ="
        " let squares = (xs |> map(map(map(x => x * x + x)))) in"
        " let sums = (squares |> map(map(row => row |> reduce(add, 0)))) in"
        " zip(squares, sums) |> map((block, rows) => zip(block, rows)"
        " |> map((row, s) => row |> map(x => x * s)))"
    )
    cut = next(p for p in partitions(program) if len(p.stages) > 1)
    return cut.stages[0]


def distinct(skeletons):
    """The number of different objects among the calls in some skeletons."""
    return len({id(part) for part in calls_in(skeletons)})


def test_skeletons_share_their_parts_under_other_names(stage):
    canonical = derived_once(stage.key, "tiled", Derived(stage.canonical))
    renamed = of_family(stage.key, "tiled", stage, None)
    assert any(skeleton.parameters for skeleton in renamed)
    assert len(calls_in(canonical)) > 2 * distinct(canonical)
    assert distinct(renamed) <= distinct(canonical)


def test_the_conditions_of_shared_parts_are_collected_once(stage, monkeypatch):
    skeletons = of_family(stage.key, "tiled", stage, None)
    collected = [Collected(skeleton, DEVICE, "output") for skeleton in skeletons]
    evaluated, conditions = [], Primitive.conditions
    monkeypatch.setattr(
        Primitive, "conditions", lambda p, *types: evaluated.append(p) or conditions(p, *types)
    )
    assert any(one.own for one in collected)
    assert len(evaluated) < len(calls_in(skeletons)) / 2


def test_the_kernels_of_a_skeleton_are_cut_once(monkeypatch):
    """Its conditions and its figures read the same chain."""
    program = lp.parse("def p(xs: [23][29]f32) = xs |> map(map(x => x * x + 3))")
    cut, chain = [], chains.chain
    monkeypatch.setattr(chains, "chain", lambda *given: cut.append(given) or chain(*given))
    space = lp.space(program, DEVICE)
    for member in space.members:
        figures_at(member.skeleton, [next(member.points.draws(0))], DEVICE)
    assert 0 < len(cut) <= len(space.members)

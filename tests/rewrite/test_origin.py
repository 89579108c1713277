"""The places in a program's text that the steps of a derivation work on."""

import pytest

from liftpy.language.text.program import parse
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.origin import origins

TEXT = """\
def layer(x: [8][8][2]f32, const w: [4][3][3][2]f32) =
  x
    |> slide(3, 1)
    |> map(map(slide(3, 1)) |> transpose)
    |> map(row =>
      row |> map(window =>
        w |> map(kernel =>
          zip(window |> join |> join, kernel |> join |> join)
            |> map(mul)
            |> reduce(add, 0))))
"""


@pytest.fixture(scope="module")
def program():
    return parse(TEXT)


def lines(program, family):
    """For each size that a rule introduces, the lines of the text that its steps work on."""
    skeleton = skeletons(program, (family,))[0]
    steps = skeleton.derivation.steps
    asking = {k for k, step in enumerate(steps, 1) if step.conditions and step.sizes}
    found = {}
    for number, places in origins(program, skeleton.derivation, asking).items():
        at = {program.spans.source.position(p)[0] for p in places}
        for _, size in steps[number - 1].sizes:
            found.setdefault(str(size), set()).update(at)
    return found


def test_a_cut_stands_at_the_map_that_is_cut(program):
    found = lines(program, "direct")
    assert (found["kappa"], found["sigma"]) == ({7}, {6})


def test_a_tile_stands_at_the_windows(program):
    assert lines(program, "local")["theta"] == {3, 4}


def test_what_is_not_asked_for_is_not_looked_for(program):
    skeleton = skeletons(program, ("plain",))[0]
    assert origins(program, skeleton.derivation, ()) == {}


def test_a_program_without_a_text_has_no_places(program):
    untold = type(program)(program.name, program.body, program.constants)
    skeleton = skeletons(untold, ("direct",))[0]
    assert origins(untold, skeleton.derivation, range(1, 20)) == {}

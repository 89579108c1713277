"""The border between the dialects: what a lowered program may hold."""

from __future__ import annotations

from typing import get_args

import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from liftpy.language.text.program import parse
from liftpy.primitives import LAYOUTS, PRIMITIVES, At, Generate
from liftpy.primitives.dialects import Algorithmic, LoweredProgram
from liftpy.rewrite.skeleton import skeleton_of
from liftpy.rewrite.strategy import rule
from tests.lowered import lowered

OPEN = {
    "a map that computes": (
        "map(x => x + 1)",
        "mapSeq, mapSeqUnroll, mapSeqAhead, mapGlb, mapWrg, mapLcl, mapSubgroup or mapItem",
    ),
    "a map that is read": (
        "map(x => x * x) |> mapSeq(x => x)",
        "mapSeq, mapSeqUnroll, mapSeqAhead, mapGlb",
    ),
    "a reduce": (
        "reduce(add, 0)",
        "reduceSeq, reduceSeqUnroll, reduceInPlace, reduceSubgroups or reduceItems",
    ),
    "a scan": ("scan(add, 0)", "scanSeq"),
    "an iterate": ("iterate(2, r => r |> mapSeq(x => x * x))", "iterateSeq"),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_has_no_loop_is_refused_with_its_place_and_its_forms(name: str) -> None:
    stage, forms = OPEN[name]
    program = parse(f"def p(xss: [3][4]f32) =\n  xss |> mapGlb(0, row => row |> {stage})")
    written = stage.partition(" |> mapSeq(x => x)")[0]
    with pytest.raises(TypeRefused) as refused:
        LoweredProgram.of(program)
    what, _, suggestion = str(refused.value).partition(
        " has no loop or parallel level: lower it to "
    )
    assert what == f"`{written}` at line 2, column 34"
    assert suggestion.startswith(forms)


@pytest.mark.parametrize(
    "body",
    [
        "xss",
        "xss |> map(row => row |> map(x => (x, x)) |> padWrap(1, 1)) |> transpose",
        "xss |> map(row => zip(row, zs |> mapGlb(0, z => z * z) |> toGlobal))",
        "xss |> map(row => generate(3, (i: i32) => row)) |> join",
    ],
    ids=["nothing", "layouts", "of what another kernel stores", "generated rows"],
)
def test_maps_that_only_move_elements_need_no_loop(body: str) -> None:
    program = parse(f"def p(xss: [3][4]f32, zs: [4]f32) = {body}")
    assert lp.show(LoweredProgram.of(program)) == lp.show(program)


def test_what_is_stored_inside_a_map_is_lowered_too() -> None:
    with pytest.raises(TypeRefused, match=r"`map\(z => z \* z\)` at line 1, column 70 has no loop"):
        lowered(
            "def p(xss: [3][4]f32, zs: [4]f32) = xss |> map(row => zip(row, zs |> "
            "map(z => z * z) |> toGlobal))"
        )


def test_a_strategy_that_lowers_in_part_makes_no_skeleton() -> None:
    program = parse("def p(xss: [3][4]f32) = xss |> map(row => row |> map(x => x + x))")
    with pytest.raises(TypeRefused) as refused:
        skeleton_of(program, rule("map_to_glb_0"))
    what, _, _ = str(refused.value).partition(" has no loop")
    assert what == "map(x => ...) in mapGlb(0, row => ...)"


def test_what_computes_and_is_not_lowered_is_known_to_the_border() -> None:
    """`generate` and `at` are read, and what they compute is computed there."""
    computing = set(PRIMITIVES.values()) - set(LAYOUTS)
    rooms = {"liftpy.primitives.lowered", "liftpy.primitives.parallel"}
    unlowered = {p for p in computing if p.__module__ not in rooms}
    assert unlowered == {*get_args(Algorithmic), Generate, At}


def test_no_lowered_form_is_algorithmic() -> None:
    """So `isinstance` tells them apart, and a type checker narrows."""
    for algorithmic in get_args(Algorithmic):
        heirs = [p for p in PRIMITIVES.values() if issubclass(p, algorithmic)]
        assert heirs == [algorithmic]

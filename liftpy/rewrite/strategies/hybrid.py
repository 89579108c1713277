"""Correlations in parts: whole tiles by F(m, r), and the remaining results directly.

From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(xs))` to
`concat(map(concat)(zip(whole, beside)), below)`, in which `whole` has the results of whole tiles,
`beside` those of the remaining columns, and `below` those of the remaining rows. Each is a map over
windows of a part of the array. The laws are those of arrays in two parts (rules/parts.py).
"""

from __future__ import annotations

from liftpy.ir.nat import nat
from liftpy.ir.walk import Path
from liftpy.rewrite.strategies.stage import body, source, split_off
from liftpy.rewrite.strategy import Strategy, at_path, identity, rule, seq

PARTS = ("whole", "beside", "below")
"""The names of the parts."""


def whole_and_rest(
    counts: tuple[int, int], whole: tuple[int, int]
) -> tuple[Strategy, dict[str, Path]]:
    """Separate the first `whole` results in both dimensions, of `counts`, from the others.

    Also returns the paths at which the strategy leaves the parts; a part without results has none.
    """
    steps, path, paths = identity, (), dict[str, Path]()
    if whole[0] < counts[0]:
        steps, path, paths["below"] = below(whole[0]), (0,), (1,)
    if whole[1] < counts[1]:
        steps = seq(steps, at_path(path, beside(whole[1])))
        path, paths["beside"] = (*path, 0, 0), (*path, 0, 1)
    return steps, paths | {"whole": path}


def in_two(count: int) -> Strategy:
    """`map(f)(xs)` as `concat(map(f)(take(count, xs)), map(f)(drop(count, xs)))`."""
    return seq(source(rule("split_in_two", k=nat(count))), rule("map_of_concat"))


def below(rows: int) -> Strategy:
    """`map(f)(slide(xs))` as the `concat` of maps over the first windows and the others."""
    laws = "take_of_slide", "drop_of_slide"
    return seq(in_two(rows), *(at_path((k, 0), rule(law)) for k, law in enumerate(laws)))


def beside(columns: int) -> Strategy:
    """The same for the columns: `map(concat)(zip(whole, beside))`."""
    return seq(
        body(in_two(columns)),
        # rows -> concat(a(rows), b(rows)): a map for each part
        rule("map_fission_zip", {"g": (1,)}),
        rule("map_fission_first", {"g": (0,)}),
        *(at_path((0, k), from_the_array(part)) for k, part in enumerate(("take", "drop"))),
    )


def from_the_array(part: str) -> Strategy:
    """Take a part of the columns from the array instead of from its windows.

    From `map(rows -> map(f)(part(transpose(map(slide)(rows)))))(slide(xs))` to
    `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(map(part)(xs)))`.
    """
    windows = seq(
        rule(f"{part}_of_transpose"),
        source(seq(rule("map_fusion"), body(rule(f"{part}_of_slide")), split_off(0))),
    )
    return seq(
        body(source(windows)),
        # rows -> map(f)(transpose(map(slide)(map(part)(rows))))
        split_off(0, 0, 0),
        source(rule("map_map_of_slide")),
    )

"""Abbreviations of the text form, each defined by the text that it expands to.

The embedded form has functions of the same meaning (`liftpy.language.embedded.compound`); a test
checks that the two agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from liftpy.primitives.transpose import swaps

#: The names of the sides of an array, for each number of dimensions.
SIDES: Mapping[int, tuple[str, ...]] = {
    2: ("top", "bottom", "left", "right"),
    3: ("front", "back", "top", "bottom", "left", "right"),
}


@dataclass(frozen=True)
class Composition:
    """An abbreviation: a step of a pipeline, or a `value` that is called."""

    params: tuple[str, ...]
    text: str
    value: bool = False


def mapped(depth: int, stage: str) -> str:
    """A pipeline step under `depth` maps."""
    return "map(" * depth + stage + ")" * depth


def paddings() -> Iterator[tuple[str, Composition]]:
    """Each kind of padding in two and three dimensions."""
    for word, more in (("pad", ("value",)), ("padClamp", ()), ("padMirror", ()), ("padWrap", ())):
        for rank, sides in SIDES.items():
            own = ", ".join((*sides[:2], *more))
            inner = ", ".join((*sides[2:], *more))
            below = word if rank == 2 else f"{word}{rank - 1}d"
            text = f"{word}({own}) |> map({below}({inner}))"
            yield f"{word}{rank}d", Composition((*sides, *more), text)


COMPOSITIONS: Mapping[str, Composition] = {
    "map2d": Composition(("f",), "map(map(f))"),
    "map3d": Composition(("f",), "map(map(map(f)))"),
    **dict(paddings()),
    "slide2d": Composition(
        ("window", "step"), "slide(window, step) |> map(map(slide(window, step)) |> transpose)"
    ),
    "slide3d": Composition(
        ("window", "step"),
        "slide(window, step) |> map(map(slide2d(window, step)) |> transpose |> map(transpose))",
    ),
    "slice": Composition(("start", "length"), "drop(start) |> take(length)"),
    "scatter": Composition(("index", "inverse"), "reorder(inverse, index)"),
    "full": Composition(("length", "x"), "x |> repeat(length)", value=True),
    "iota": Composition(("length",), "generate(length, i => i)", value=True),
}

#: Every abbreviation; `permute` takes any number of dimensions.
ABBREVIATIONS = frozenset({*COMPOSITIONS, "permute"})


def permuted(axes: tuple[int, ...]) -> str:
    """The expansion of `permute(axes)`; TypeRefused if the axes are not a permutation."""
    stages = [mapped(depth, "transpose") for depth in swaps(axes)]
    return " |> ".join(stages) if stages else "(x => x)"

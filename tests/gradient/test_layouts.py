"""The gradient through each layout is its adjoint: `<L x, y> = <x, L* y>`, in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.types import ArrayType, TupleType, Type
from liftpy.language.text.program import parse, show
from tests.gradient.differences import gradient_of, inner, listed, meaning

ELEMENTS = {"numbers": "f32", "arrays": "[2]f32", "tuples": "(f32, [2]f32)"}

Make = Callable[[tuple[int, ...]], np.ndarray]


def valued(t: Type, make: Make, outer: tuple[int, ...] = ()) -> Any:
    """An argument of a type."""
    match t:
        case ArrayType(element, length):
            return valued(element, make, (*outer, int(length)))
        case TupleType(elements):
            return tuple(valued(e, make, outer) for e in elements)
        case _:
            return make(outer)


def check_adjoint(text: str, **options: Any) -> None:
    """What a linear program multiplies in its result, its gradient multiplies in its argument."""
    program = parse(text)
    rng = np.random.default_rng(7)

    def whole(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-1000, 1000, shape).astype(np.float64)

    xs = [valued(p.type, whole) for p in program.params]
    origin = meaning(program, [valued(p.type, np.zeros) for p in program.params])
    moved = [a - b for a, b in zip(meaning(program, xs), origin, strict=True)]
    ys = [whole(m.shape) for m in moved]
    made = lp.gradient(program, **options)
    back = meaning(made, [*xs, *ys])
    assert inner(moved, ys) == inner([a for x in xs for a in listed(x)], back)
    assert any(np.any(b) for b in back)
    assert parse(show(made)) == made


#: Layouts of one array, with its length.
FLAT = [
    ("pad(2, 3, 0)", 5),
    ("pad(0, 0, 0)", 5),
    ("pad(2, -3, 0)", 5),
    ("pad(-1, -3, 0)", 7),
    ("pad(3, 1, 9)", 1),
    *(
        (f"{word}({left}, {right})", 7)
        for word in ("padClamp", "padMirror", "padWrap")
        for left, right in [(2, 3), (0, 0), (1, 0), (0, 7), (-1, 2), (3, -2), (-2, -3)]
    ),
    ("padClamp(11, 13)", 3),
    ("padClamp(2, 1)", 1),
    ("padMirror(1, 1)", 1),
    ("padWrap(1, 1)", 1),
    ("slide(3, 1)", 7),
    ("slide(3, 2)", 8),
    ("slide(3, 3)", 11),
    ("slide(2, 3)", 11),
    ("slide(5, 2)", 12),
    ("slide(7, 1)", 7),
    ("slide(1, 1)", 5),
    ("slideStrict(3, 2)", 7),
    ("slideStrict(2, 5)", 7),
    ("cover(3)", 7),
    ("cover(3)", 9),
    ("cover(5)", 5),
    ("coverOnce(3, 0)", 7),
    ("coverOnce(3, 5)", 8),
    ("splitAt(3)", 7),
    ("take(3)", 7),
    ("take(7)", 7),
    ("drop(3)", 7),
    ("drop(0)", 7),
    ("reorder(i => 3 * i % 7, i => 5 * i % 7)", 7),
    ("gather(5, i => i // 2)", 7),
    ("gather(3, i => 3)", 7),
    ("gather(11, i => min(i, 6))", 7),
    ("gather(3, i => 2 * i + 1)", 7),
    ("repeat(3)", 5),
    ("split(3)", 15),
    ("split(5) |> join", 15),
]

#: Layouts of three rows of five.
ROWS = [
    "transpose",
    "join",
    "uncover(13)",
    "uncover(15)",
    "unslide(5, 2)",
    "unslide(5, 5)",
    "unslide(5, 1)",
    "map(take(2)) |> slideCopies(2, 1)",
    "map(take(2)) |> slideCopies(3, 2)",
    "map(take(1)) |> slideCopies(1, 2)",
    "overlaps(7, 1, 0)",
    "overlaps(13, 3, 0)",
    "overlaps(9, 2, 4)",
    "map(slide(3, 1)) |> transpose",
]


@pytest.mark.covering(3)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("layout", "length"), FLAT)
def test_the_gradient_of_a_layout_is_its_adjoint(layout: str, length: int, element: str) -> None:
    """Constants that a layout inserts are no part of it: they do not depend on the argument."""
    check_adjoint(f"def p(xs: [{length}]{ELEMENTS[element]}) = xs |> {layout}")


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("layout", ROWS)
def test_the_gradient_of_a_layout_of_rows_is_its_adjoint(layout: str, element: str) -> None:
    check_adjoint(f"def p(xs: [3][5]{ELEMENTS[element]}) = xs |> {layout}")


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    "body",
    [
        "concat(xs, ys)",
        "concat(ys, xs) |> drop(4)",
        "zip(xs, ys |> drop(1))",
        "zip(xs, ys |> drop(1)) |> unzip",
        "zip(xs, ys |> drop(1)) |> map(get(1))",
        "zip(xs, xs, ys |> take(5)) |> unzip |> get(0)",
        "(xs |> take(2), (ys, xs))",
    ],
)
def test_the_gradient_of_a_layout_of_two_arrays_is_its_adjoint(body: str, element: str) -> None:
    t = ELEMENTS[element]
    check_adjoint(f"def p(xs: [5]{t}, ys: [6]{t}) = {body}")


@pytest.mark.parametrize("count", [1, 5, 8])
def test_an_element_that_is_gathered_often_gets_every_cotangent(count: int) -> None:
    ys = np.arange(1.0, 1 + count)
    text = f"def p(xs: [3]f32) = xs |> gather({count}, i => i % 2)"
    found = gradient_of(text, np.zeros(3), ys)
    np.testing.assert_array_equal(found, [ys[::2].sum(), ys[1::2].sum(), 0])

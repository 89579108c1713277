"""Maps moved past layouts by whatever law the catalogue has."""

from __future__ import annotations

import pytest

from liftpy.language.text.program import parse, show_expr
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategies.inward import passed, past
from liftpy.rewrite.strategy import Failure, Success

MOVED = {
    "xss |> join |> map(x => x * 2)": "xss |> map(row => row |> map(x => x * 2)) |> join",
    "xss |> join |> split(3) |> map(map(x => x * 2))": (
        "xss |> join |> map(x => x * 2) |> split(3)"
    ),
    "xss |> transpose |> map(map(x => x * 2))": (
        "xss |> map(row => row |> map(x => x * 2)) |> transpose"
    ),
    "xss |> join |> padWrap(1, 2) |> map(x => x * 2)": (
        "xss |> join |> map(x => x * 2) |> padWrap(1, 2)"
    ),
    "xss |> join |> pad(-1, 0, 5) |> map(x => x * 2)": (
        "xss |> join |> map(x => x * 2) |> pad(-1, 0, 0)"
    ),
    # The value of a crop is read nowhere, and 5 is none of the values of the map's results.
    "xss |> join |> pad(0, 0, 5) |> map(x => x < 2)": (
        "xss |> join |> map(x => x < 2) |> pad(0, 0, 0)"
    ),
}


def body(text: str):
    """The body of a program of `xss`."""
    return parse(f"def p(xss: [2][6]f32) = {text}").body.body


@pytest.mark.parametrize("given", MOVED)
def test_a_map_is_moved_past_a_layout(given: str) -> None:
    result = past(body(given))
    assert isinstance(result, Success)
    assert result.expr == body(MOVED[given]), show_expr(result.expr)


@pytest.mark.parametrize(
    "given",
    [
        "xss |> join |> pad(1, 0, 5) |> map(x => x * 2)",  # 5 would be doubled
        "concat(xss, xss) |> map(map(x => x * 2))",
        "xss |> map(map(x => x * 2))",
    ],
)
def test_it_stays_where_no_law_says_so(given: str) -> None:
    assert isinstance(past(body(given)), Failure)


def test_a_law_of_one_function_is_none_of_all() -> None:
    """Nor is one past a call of two arrays, or one that leaves another layout."""
    for name in ("pad_exchange_back", "map_of_concat", "map_of_as_scalar", "map_interchange"):
        assert passed(RULES[name]) is None

"""What has a name is computed once, however often and wherever it is mentioned."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.semantics import numbers
from liftpy.semantics.evaluate import evaluate, evaluate_at
from liftpy.semantics.reference import reference

DEEP = 40
XS = np.array([3, -7, 11, 2, -5, 13, 1], np.int32)
XSS = np.arange(35, dtype=np.int32).reshape(5, 7) % 11 - 4
EACH = "map((x, y) => (x * 3 - y) % 1009)"
ROTATED = "reorder(i => (i + 1) % 7, i => (i + 6) % 7)"


def nest(value: str, last: str = "a{n}", first: str = "xs") -> Callable[[int], str]:
    """Names, each of which mentions the one before twice."""

    def text(depth: int) -> str:
        lets = [f"a{k + 1} = ({value.format(a=f'a{k}', k=k)})" for k in range(depth)]
        return f"let a0 = {first}, {', '.join(lets)} in {last.format(n=depth)}"

    return text


def chain(stage: str, first: str = "xs") -> Callable[[int], str]:
    """Stages, each of which mentions what it is given twice."""
    return lambda depth: " |> ".join([first, *[stage] * depth])


def inwards(depth: int) -> str:
    """Names in the values of names; half as many, as a text is not nested deeper."""
    text = "xs"
    for k in range(depth // 2):
        text = f"(let b{k} = {text} in {TURN.format(a=f'b{k}')})"
    return text


TURN = f"zip({{a}}, {{a}} |> {ROTATED}) |> {EACH}"  # an array and itself, turned
FOLD = "reduce((s, x) => (s * 3 - x) % 1009, 0)"
STEP = f"(s, row) => zip(s, zip(row, {{a}}) |> {EACH}) |> {EACH}"
ROWS = f"map(row => {TURN.format(a='row')})"

PROGRAMS: dict[str, Callable[[int], str]] = {
    "arrays": nest(TURN),
    "windows": nest(f"{{a}} |> padWrap(1, 1) |> slide(3, 1) |> map({FOLD})"),
    "windows that are named": nest(
        f"{{a}} |> padClamp(2, 0) |> slide(3, 1) |> map(w => w |> {FOLD})"
    ),
    "parts in a row": nest(
        "concat({a}, {a}) |> drop(3) |> take(7) |> map(x => x * 3 % 1009 - {k})"
    ),
    "only moved": nest("concat({a} |> drop(2), {a} |> take(2))"),
    "tuples": nest(
        f"zip({{a}}.1, {{a}}.0) |> {EACH}, zip({{a}}.0, {{a}}.1) |> {EACH}",
        "zip(a{n}.0, a{n}.1)",
        "(xs, xs)",
    ),
    "arrays of tuples": nest("{a} |> map((x, y) => (y, (x * 3 - y) % 1009))", first="zip(xs, xs)"),
    "unzipped": nest(
        "let u = ({a} |> unzip) in zip(u.1, u.0) |> map((x, y) => (y, (x * 3 - y) % 1009))",
        first="zip(xs, xs)",
    ),
    "scans": nest(f"zip({{a}} |> scan((s, x) => (s * 3 - x) % 1009, 1), {{a}}) |> {EACH}"),
    "scans of arrays": nest(f"xss |> scan({STEP}, {{a}}) |> reduce((s, t) => t, {{a}})"),
    "folds of arrays": nest(f"xss |> reduce({STEP}, {{a}})"),
    "folds that turn": nest(
        f"xss |> reduce({STEP.replace('zip(s,', f'zip(s |> {ROTATED},')}, {{a}})"
    ),
    "iterations": nest(f"{{a}} |> iterate(2, ys => zip(ys, {{a}} |> {ROTATED}) |> {EACH})"),
    "iterations that name": nest(
        f"{{a}} |> iterate(2, ys => let z = ({TURN.format(a='ys')}) in {TURN.format(a='z')})"
    ),
    "in a map": lambda depth: f"xss |> map(row => {nest(TURN, first='row')(depth)})",
    "in a step": lambda depth: (
        f"xss |> reduce((s, row) => zip(s, {nest(TURN, first='row')(depth)}) |> {EACH}, xs)"
    ),
    "in a step, of the accumulator": lambda depth: (
        f"xss |> reduce((s, row) => zip(row, {nest(TURN, first='s')(depth)}) |> {EACH}, xs)"
    ),
    "in a scan": lambda depth: (
        f"xs |> scan((s, x) => s - ({nest(TURN, first='xs |> map(y => y - s + x)')(depth)} "
        f"|> {FOLD}), 1)"
    ),
    "arguments of functions": chain(f"(ys => {TURN.format(a='ys')})"),
    "rows of maps": chain(ROWS, "xss"),
    "rows of steps": lambda depth: (
        f"{chain(ROWS, 'xss')(depth)} "
        f"|> reduce((s, row) => zip(s, {TURN.format(a='row')}) |> {EACH}, xs)"
    ),
    "names in names": inwards,
    "that are folds": nest(f"{{a}} |> map(x => (x - ({{a}} |> {FOLD})) % 1009)"),
    "of columns": nest(
        f"{{a}} |> transpose |> map(c => c |> map(x => (x * 3 - (c |> {FOLD})) % 1009)) "
        "|> transpose",
        first="xss",
    ),
}


def program_of(name: str, depth: int) -> Program:
    return parse(f"def p(xs: [7]i32, xss: [5][7]i32) = {PROGRAMS[name](depth)}")


def arrays_of(value: Any) -> np.ndarray:
    """A result with its components last."""
    return np.stack(value, axis=-1) if isinstance(value, tuple) else np.asarray(value)


def calls(run: Callable[[], object]) -> int:
    """How many functions are called."""
    profile = cProfile.Profile()
    profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_mean_what_the_reference_says(name: str) -> None:
    program = program_of(name, 4)
    got = arrays_of(evaluate(program, XS, XSS))
    np.testing.assert_array_equal(got, np.array(reference(program, XS, XSS)))
    assert got.dtype == np.int32


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_grow_with_the_number_of_names(name: str) -> None:
    few, many = program_of(name, DEEP // 4), program_of(name, DEEP)
    assert calls(lambda: evaluate(many, XS, XSS)) < 6 * calls(lambda: evaluate(few, XS, XSS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_small_blocks_and_little_room_change_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(name, 5)
    whole = evaluate(program, XS, XSS)
    for block, room in ((7, 1 << 20), (3, 64), (1 << 16, 64), (1, 1)):
        monkeypatch.setattr(numbers, "BLOCK", block)
        monkeypatch.setattr(numbers, "ROOM", room)
        np.testing.assert_array_equal(arrays_of(evaluate(program, XS, XSS)), arrays_of(whole))


@pytest.mark.parametrize("name", PROGRAMS)
def test_points_are_those_of_the_whole(name: str) -> None:
    program = program_of(name, 3)
    whole = arrays_of(evaluate(program, XS, XSS))
    shape = XSS.shape if whole.ndim > 1 and whole.shape[:2] == XSS.shape else XS.shape
    points = np.argwhere(np.ones(shape, bool))[::-2]
    got = arrays_of(evaluate_at(program, points, XS, XSS))
    np.testing.assert_array_equal(got, whole[tuple(points.T)])


def test_what_is_stored_for_an_index_is_stored_once_for_all_points_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers are counted: of the products for a row, 49, and not for each point of it."""
    program = parse(f"""def p(xss: [5][7]i32) = xss |> map(row =>
        let t = (row |> map(x => row |> map(y => x * y))) in t |> map({FOLD}))""")
    made: list[int] = []
    multiply = numbers.OPERATIONS["*"]
    counting = {"*": lambda a, b: made.append(np.size(multiply(a, b))) or multiply(a, b)}
    monkeypatch.setattr(numbers, "OPERATIONS", numbers.OPERATIONS | counting)
    whole = evaluate(program, XSS)
    points = np.array([(i, j) for j in range(7) for i in (3, 1)])
    made.clear()
    got = evaluate_at(program, points, XSS)
    np.testing.assert_array_equal(got, whole[tuple(points.T)])
    assert sum(n for n in made if n >= 49) == 2 * 49
    assert evaluate_at(program, points[:0], XSS).shape == (0,)

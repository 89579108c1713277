"""What a gradient has to be: finite differences in float64, and products with directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import liftpy as lp

STEP = 1e-6


def listed(value: Any) -> tuple[np.ndarray, ...]:
    """The arrays of a result: of nested tuples in order, those that are no integers."""
    if isinstance(value, tuple):
        return tuple(part for v in value for part in listed(v))
    return (np.asarray(value, np.float64),) if np.asarray(value).dtype.kind == "f" else ()


def inner(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """The sum of the products of corresponding numbers."""
    return float(sum((a * b).sum() for a, b in zip(one, other, strict=True)))


def drawn(shapes: Sequence[tuple[int, ...]], seed: int) -> list[np.ndarray]:
    """Random arrays of these shapes."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def meaning(program: lp.Program, arrays: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """The result of a program in float64, as arrays."""
    return listed(lp.evaluate(program, *arrays, dtype=np.float64))


def slopes(
    program: lp.Program, arrays: Sequence[np.ndarray], wrt: Sequence[str], directions: int = 3
) -> list[tuple[float, float]]:
    """The derivatives along random directions: by the gradient, and by central differences.

    The number that is differentiated is the product of the result with random cotangents.
    """
    made = lp.gradient(program, wrt)
    given = [a if a.dtype.kind in "iu" else a.astype(np.float64) for a in map(np.asarray, arrays)]
    places = [[p.name for p in program.params].index(name) for name in wrt]
    whole = len(made.params) == len(program.params)
    shapes = [r.shape for r in meaning(program, given)]
    cts = [np.ones(())] if whole else drawn(shapes, 1)
    gradients = meaning(made, [*given, *([] if whole else cts)])

    def along(direction: Sequence[np.ndarray], by: float) -> float:
        moved = list(given)
        for k, d in zip(places, direction, strict=True):
            moved[k] = given[k] + by * d
        return inner(meaning(program, moved), cts)

    found: list[tuple[float, float]] = []
    for seed in range(directions):
        direction = drawn([given[k].shape for k in places], seed + 2)
        slope = (along(direction, STEP) - along(direction, -STEP)) / (2 * STEP)
        found.append((inner(gradients, direction), slope))
    return found


def agrees_with_differences(
    program: lp.Program,
    arrays: Sequence[np.ndarray],
    wrt: Sequence[str] | None = None,
    tolerance: float = 1e-5,
) -> None:
    """The gradient is that of finite differences, and not 0."""
    names = [p.name for p in program.params] if wrt is None else wrt
    for exact, slope in slopes(program, arrays, names):
        assert np.isfinite(exact), "the gradient has no number"
        assert exact != 0, "a gradient of 0 shows nothing"
        assert abs(exact - slope) <= tolerance * max(abs(exact), abs(slope)), (exact, slope)


def gradient_of(text: str, *arrays: Any, **options: Any) -> Any:
    """The gradient of the program with this text at some arrays, in float64."""
    return lp.evaluate(lp.gradient(lp.parse(text), **options), *arrays, dtype=np.float64)

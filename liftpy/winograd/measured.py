"""The error of a triple in f32, measured on random data: what its bound is compared with."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from liftpy.winograd.error import FORMS, Transforms
from liftpy.winograd.linear import Straight
from liftpy.winograd.triple import Triple

CHANNELS = 16
TRIALS = 100
SEED = 0


def measured_error(
    triple: Triple,
    channels: int = CHANNELS,
    trials: int = TRIALS,
    seed: int = SEED,
    dimensions: int = 2,
) -> float:
    """The mean over trials of the largest error of a tile, relative to its largest result.

    A trial has one tile and one filter with numbers from uniform(-1, 1), rounded to f32. All steps
    of the transforms with shared pairs are in f32, and so are the products and their sum over the
    channels, one after another; the results are compared with the correlation in float64.

    >>> from liftpy.winograd.triple import cook_toom
    >>> 1e-7 < measured_error(cook_toom(2, 3)) < 3e-7
    True
    """
    rng = np.random.default_rng(seed)
    transforms = Transforms.of(triple, FORMS[dimensions])

    def drawn(side: int) -> Any:
        shape = (trials, channels) + (side,) * dimensions
        return rng.uniform(-1, 1, shape).astype(np.float32)

    tiles, filters = drawn(triple.n), drawn(triple.r)
    inputs, kernels = in_f32(transforms.input, tiles), in_f32(transforms.kernel, filters)
    sums: list[Any] = []
    for x, y in zip(inputs, kernels, strict=True):
        products = x * y
        total = products[:, 0]
        for c in range(1, channels):
            total = total + products[:, c]
        sums.append(total)
    found = np.stack(in_steps(transforms.output, sums), axis=-1).reshape(trials, -1)
    axes = tuple(range(2, 2 + dimensions))
    exact = tiles.astype(np.float64), filters.astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(
        exact[0], (triple.r,) * dimensions, axis=axes
    )
    spread = exact[1].reshape(trials, channels, *(1,) * dimensions, *filters.shape[2:])
    meant = (windows * spread).sum(axis=(1, *(a + dimensions for a in axes))).reshape(trials, -1)
    apart = np.abs(found - meant).max(axis=1) / np.abs(meant).max(axis=1)
    return float(apart.mean())


def in_f32(program: Straight, arrays: Any) -> list[Any]:
    """A transform of the tiles in an array `[trials, channels, ...]`: an array for each result."""
    flat = arrays.reshape(*arrays.shape[:2], -1)
    return in_steps(program, [flat[:, :, k] for k in range(flat.shape[2])])


def in_steps(program: Straight, values: list[Any]) -> list[Any]:
    """The results of a program on f32 arrays, each step and each constant rounded to f32."""
    return program.fold(
        values,
        lambda x, y, minus: x - y if minus else x + y,
        lambda factor, x: rounded(factor) * x,
        np.zeros_like(values[0]),
    )


def rounded(factor: Fraction) -> np.float32:
    """The f32 next to a constant."""
    return np.float32(factor.numerator / factor.denominator)

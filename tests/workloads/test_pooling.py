"""Pooling layers of any sizes, in all layouts and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.errors import LiftError
from liftpy.ir.program import Program
from liftpy.ir.types import BINARY16, F16, F32, ScalarType, scalars
from liftpy.workloads.pool_gradients import (
    every_one,
    first_one,
    from_argmax,
    from_mask,
    masked,
    shares,
)
from liftpy.workloads.pooling import (
    BLOCK,
    LAYOUTS,
    Layout,
    Pooling,
    argmax,
    average,
    inside,
    largest,
    norm,
    pooled,
    square,
)
from tests.batch import results
from tests.draws import draws, tried
from tests.subsample import first

Array = np.ndarray
RNG = np.random.default_rng(7)
HALF = 2.0**-11  # half a unit in the last place of 16-bit floats, relative

#: Channels, height, width, window; stride, padding at four ends, dilation, ceil mode.
UNEVEN = Pooling(2, 9, 8, (2, 3), (3, 2), (1, 0, 0, 2), (1, 2))
CEIL = Pooling(19, 6, 7, (3, 2), (2, 3), (0, 1, 1, 0), ceil=True)
ALL_SIDES = Pooling(3, 5, 7, (3, 2), (1, 2), (1, 2, 1, 1), (2, 1), ceil=True)
LAYERS = {"uneven": UNEVEN, "ceil": CEIL, "all sides": ALL_SIDES}


# --- a reference: planes of channels, element by element ------------------------------------------


def starts(layer: Pooling, axis: int) -> list[int]:
    """Where windows begin in the image, as PyTorch has them.

    They are complete, but for one more in ceil mode, which begins before the padding at the end.
    """
    before, after = layer.padding[2 * axis : 2 * axis + 2]
    length, step = (layer.height, layer.width)[axis], layer.stride[axis]
    span = layer.dilation[axis] * (layer.window[axis] - 1) + 1
    found = [*range(-before, length + after - span + 1, step)]
    following = found[-1] + step
    if layer.ceil and found[-1] + span < length + after and following < length:
        found.append(following)
    return found


def reads(layer: Pooling) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, int]]]:
    """Each place of each window (a, b, i, j), and what it reads, which may be outside."""
    for i, y in enumerate(starts(layer, 0)):
        for j, x in enumerate(starts(layer, 1)):
            for a, b in np.ndindex(layer.window):
                yield (a, b, i, j), (y + a * layer.dilation[0], x + b * layer.dilation[1])


def read(layer: Pooling, x: Array, edge: float) -> Array:
    """`[C][Kh][Kw][outH][outW]`, with `edge` outside the image."""
    shape = (len(x), *layer.window, len(starts(layer, 0)), len(starts(layer, 1)))
    found = np.full(shape, edge, np.float64)
    for place, (row, column) in reads(layer):
        if 0 <= row < layer.height and 0 <= column < layer.width:
            found[:, *place] = x[:, row, column]
    return found


def put(layer: Pooling, z: Array) -> Array:
    """The adjoint of `read`."""
    found = np.zeros((len(z), layer.height, layer.width))
    for place, (row, column) in reads(layer):
        if 0 <= row < layer.height and 0 <= column < layer.width:
            found[:, row, column] += z[:, *place]
    return found


def mean_of(layer: Pooling, x: Array, *, padded: bool) -> Array:
    counted = np.zeros((1, *read(layer, x, 0).shape[1:]))
    top, bottom, left, right = layer.padding if padded else (0, 0, 0, 0)
    for place, (row, column) in reads(layer):
        rows, columns = layer.height + bottom, layer.width + right
        counted[:, *place] = -top <= row < rows and -left <= column < columns
    return read(layer, x, 0).sum((1, 2)) / counted.sum((1, 2))


def mask_of(layer: Pooling, x: Array, ties: str) -> Array:
    """`[C][Kh][Kw][outH][outW]`."""
    found = read(layer, x, -np.inf)
    mask = found == found.max((1, 2), keepdims=True)
    if ties == "first":
        flat = mask.reshape(len(x), -1, *mask.shape[3:])
        mask = (flat & (flat.cumsum(1) == 1)).reshape(mask.shape)
    return mask / (mask.sum((1, 2), keepdims=True) if ties == "shared" else 1)


def places_of(layer: Pooling, x: Array) -> Array:
    """The first place of each maximum, as u8."""
    found = read(layer, x, -np.inf)
    return found.reshape(len(x), -1, *found.shape[3:]).argmax(1).astype(np.uint8)


FORWARD: dict[str, tuple[Callable[[Pooling, Any], Any], Callable[[Pooling, Array], Any]]] = {
    "max": (largest, lambda layer, x: read(layer, x, -np.inf).max((1, 2))),
    "average": (average, lambda layer, x: mean_of(layer, x, padded=True)),
    "inside": (inside, lambda layer, x: mean_of(layer, x, padded=False)),
    "l2": (norm, lambda layer, x: np.sqrt((read(layer, x, 0) ** 2).sum((1, 2)))),
    "argmax": (
        argmax,
        lambda layer, x: (read(layer, x, -np.inf).max((1, 2)), places_of(layer, x)),
    ),
} | {
    ties: (
        lambda layer, x, mask=mask: masked(layer, x, mask),
        lambda layer, x, ties=ties: (
            read(layer, x, -np.inf).max((1, 2)),
            mask_of(layer, x, ties),
        ),
    )
    for ties, mask in (("all", every_one), ("first", first_one), ("shared", shares))
}
BACKWARD: dict[str, Callable[[Pooling, str], Program]] = {
    "maskback": from_mask,
    "argmaxback": from_argmax,
}


# --- layouts and types ----------------------------------------------------------------------------


def laid_out(planes: Array, layout: Layout) -> Array:
    """An array with channels first, in a layout; channels fill up the last block with zeros."""
    if layout == "nchw":
        return planes
    if layout == "nc1hwc0":
        full = np.zeros((-len(planes) % BLOCK, *planes.shape[1:]), planes.dtype)
        planes = np.concatenate([planes, full])
        planes = planes.reshape(-1, BLOCK, *planes.shape[1:])
        return np.moveaxis(planes, 1, -1)
    return np.moveaxis(planes, 0, -1)


def planes_of(array: Array, layout: Layout, channels: int) -> Array:
    """The inverse of `laid_out`, without the channels that fill up."""
    if layout == "nchw":
        return array
    array = np.moveaxis(array, -1, 1 if layout == "nc1hwc0" else 0)
    return array.reshape(-1, *array.shape[2:])[:channels] if layout == "nc1hwc0" else array


def stored(x: Array, t: ScalarType) -> Array:
    """Numbers as an argument of this type."""
    if x.dtype == np.uint8 or t == F32:
        return x if x.dtype == np.uint8 else x.astype(np.float32)
    half = x.astype(np.float16)
    return half if t == F16 else half.view(np.uint16)


def numbers(found: Array) -> Array:
    """Numbers from a result of any type."""
    return found.view(np.float16) if found.dtype == np.uint16 else found


@cache
def case(kind: str, layer: Pooling) -> tuple[Program, list[Array], tuple[Array, ...]]:
    """A program, arguments with ties, and the planes of its results in float64."""
    size = layer.channels * layer.height * layer.width
    rng = np.random.default_rng(15)  # of each case: each layer has ties, in any order of the tests
    x = np.floor(rng.permutation(size) / 3).reshape(layer.channels, layer.height, layer.width)
    x = (x - size // 7) / 8  # 16-bit floats represent these numbers
    if kind in FORWARD:
        body, reference = FORWARD[kind]
        expected = reference(layer, x)
        given, program = [x], pooled(layer, kind, body)
    else:
        d = (rng.permutation(layer.channels * layer.out[0] * layer.out[1]) - 9.0) / 4
        d = d.reshape(layer.channels, *layer.out)
        mask = mask_of(layer, x, "first" if kind == "argmaxback" else "all")
        given = [places_of(layer, x) if kind == "argmaxback" else mask, d]
        expected, program = put(layer, mask * d[:, None, None]), BACKWARD[kind](layer, kind)
    arrays = [stored(laid_out(a, layer.layout), layer.stored) for a in given]
    return program, arrays, expected if isinstance(expected, tuple) else (expected,)


def agrees(result: Any, layer: Pooling, expected: tuple[Array, ...], bound: float) -> None:
    """Whole numbers are equal, and others nearly."""
    found = result if isinstance(result, tuple) else (result,)
    for part, wanted in zip(found, expected, strict=True):
        got = planes_of(numbers(part), layer.layout, layer.channels)
        assert got.shape == wanted.shape
        exact = got.dtype == np.uint8
        np.testing.assert_allclose(got, wanted, rtol=0 if exact else bound, atol=0)


def changed(layer: Pooling, layout: Layout, t: ScalarType = F32) -> Pooling:
    """The layer in another layout and type."""
    return replace(layer, layout=layout, stored=t)


def test_the_data_has_ties() -> None:
    for layer in LAYERS.values():
        _, _, (_, every) = case("all", layer)
        _, _, (_, shared) = case("shared", layer)
        assert (every.sum((1, 2)) > 1).any()
        np.testing.assert_allclose(shared.sum((1, 2)), 1)


@pytest.mark.covering(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", [*FORWARD, *BACKWARD])
def test_any_layer_in_any_layout(kind: str, name: str, layout: Layout) -> None:
    layer = changed(LAYERS[name], layout)
    program, arrays, expected = case(kind, layer)
    assert expected[0].shape[-2:] == layer.out or kind in BACKWARD
    found = lp.evaluate(program, *arrays, dtype=np.float64)
    agrees(found, layer, expected, 1e-12)


def test_the_gradients_from_what_is_stored_are_that_of_the_maximum() -> None:
    """With ties, the derived gradient goes to the first maximum, as both stored forms do."""
    layer = UNEVEN
    program, (x,), _ = case("max", layer)
    d = np.float32(RNG.permutation(np.prod(lp.evaluate(program, x).shape)))
    d = d.reshape(lp.evaluate(program, x).shape)
    derived = lp.evaluate(lp.gradient(program), x, d)
    _, places = lp.evaluate(pooled(layer, "p", argmax), x)
    _, mask = lp.evaluate(case("first", layer)[0], x)
    np.testing.assert_array_equal(lp.evaluate(from_argmax(layer, "p"), places, d), derived)
    np.testing.assert_array_equal(lp.evaluate(from_mask(layer, "p"), mask, d), derived)


@pytest.mark.parametrize("t", [F16, BINARY16], ids=str)
@pytest.mark.parametrize("kind", [*FORWARD, *BACKWARD])
def test_numbers_of_16_bits_are_added_in_f32_and_rounded_once(kind: str, t: Any) -> None:
    layer = changed(CEIL, "nc1hwc0", t)
    program, arrays, expected = case(kind, layer)
    assert t in set(scalars(program.type))
    agrees(lp.evaluate(program, *arrays), layer, expected, HALF)
    exact = {"max", "argmax", "all", "first", "argmaxback"}
    if kind in exact:
        agrees(lp.evaluate(program, *arrays), layer, expected, 0)


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    ("kind", "mask"),
    [
        ("all", [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0]]),
        ("first", [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]),
        ("shared", [[0, 0, 0.5, 0], [0, 0.5, 0, 0], [1, 0, 0.5, 1], [0, 0.5, 0, 0]]),
        ("argmax", [[2, 1, 0, 2]]),
    ],
)
def test_nan_is_no_maximum(runtime: Device, kind: str, mask: list[list[float]]) -> None:
    """As in the maximum itself: masks and places name an element that is equal to it."""
    nan = np.nan
    x = np.float32([[[nan, 2, 5, nan, -np.inf], [7, nan, 5, 3, -np.inf]]])
    layer = Pooling(1, 2, 5, (2, 2), layout="nchw")
    program = pooled(layer, kind, FORWARD[kind][0])
    for top, which in (lp.evaluate(program, x), lp.compile(program, device=runtime)(x)):
        np.testing.assert_array_equal(top, [[[7, 5, 5, 3]]])
        np.testing.assert_array_equal(which.reshape(-1, 4), mask)


def test_the_last_of_256_places_is_a_u8(runtime: Device) -> None:
    x = np.arange(256, dtype=np.float32).reshape(1, 16, 16)
    layer = Pooling(1, 16, 16, (16, 16), layout="nchw")
    top, place = lp.compile(pooled(layer, "p", argmax), device=runtime)(x)
    assert (top.item(), place.item()) == (255, 255)
    back = lp.compile(from_argmax(layer, "back"), device=runtime)(place, np.float32([[[3]]]))
    np.testing.assert_array_equal(back, np.where(x == 255, 3, 0))


#: Each kind of program, each layout and each type occurs.
ON_DEVICES: list[tuple[str, Layout, ScalarType]] = [
    ("max", "nchw", F32),
    ("max", "nc1hwc0", F16),
    ("average", "nhwc", BINARY16),
    ("inside", "nc1hwc0", F32),
    ("argmax", "nchw", BINARY16),
    ("all", "nc1hwc0", F16),
    ("first", "nchw", F32),
    ("maskback", "nc1hwc0", F16),
    ("argmaxback", "nchw", F32),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "at", range(len(ON_DEVICES)), ids=lambda k: "-".join(map(str, ON_DEVICES[k]))
)
def test_a_candidate_of_each_family_is_right(at: int, runtime: Device, kept: Path) -> None:
    kind, layout, t = ON_DEVICES[at]
    layer = changed(square(5, 7, 3 if layout != "nc1hwc0" else 19, 3, 2), layout, t)
    program, arrays, expected = case(kind, layer)
    if t == F16 and "cl_khr_fp16" not in runtime.extensions:
        with pytest.raises(LiftError, match="computes in f16"):
            lp.compile(program, device=runtime)
        return
    drawn = tried(draws(program, first(), 1, kept), program, runtime)
    assert drawn
    for found in results(runtime, [d.module for d in drawn], arrays):
        agrees(found, layer, expected, 1e-6 if t == F32 else HALF)


def test_layouts_are_converted(runtime: Device) -> None:
    into = "x |> pad(0, 13, 0) |> split(16) |> map(permute(1, 2, 0))"
    back = "|> map(permute(2, 0, 1)) |> join |> pad(0, -13, 0)"
    x = RNG.permutation(19 * 5 * 7).astype(np.float32).reshape(19, 5, 7)
    for text, wanted in ((into, laid_out(x, "nc1hwc0")), (f"{into} {back}", x)):
        program = lp.parse(f"def p(x: [19][5][7]f32) = {text}")
        np.testing.assert_array_equal(lp.compile(program, device=runtime)(x), wanted)


def test_ceil_mode_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is an extra")
    for size, k, s, p in [(5, 2, 2, 0), (7, 3, 2, 1), (4, 2, 3, 1), (9, 4, 3, 2), (5, 2, 4, 1)]:
        x = RNG.permutation(size * 11).astype(np.float32).reshape(1, size, 11)
        layer = Pooling(1, size, 11, (k, k), (s, s), (p, p, p, p), ceil=True, layout="nchw")
        for body, function in (
            (largest, torch.nn.MaxPool2d(k, s, p, ceil_mode=True)),
            (average, torch.nn.AvgPool2d(k, s, p, ceil_mode=True)),
            (inside, torch.nn.AvgPool2d(k, s, p, ceil_mode=True, count_include_pad=False)),
        ):
            found = lp.evaluate(pooled(layer, "p", body), x)
            wanted = function(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=1e-6)

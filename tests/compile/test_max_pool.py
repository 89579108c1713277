"""Max-pooling that stores where each maximum was, and its gradient through these places."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.language.text.program import parse
from tests.batch import results
from tests.compile.test_data_indices import compiled

H, W, C, K, S = 7, 11, 3, 3, 2

FORWARD = parse(f"""
    def pool(x: [{H}][{W}][{C}]f32) =
      let places = generate({H * W}, i => i) |> split({W}) |> slide2d({K}, {S}) |> map2d(join) in
      zip(x |> slide2d({K}, {S}), places) |> map((row, there) => zip(row, there)
        |> map((window, place) => window |> join |> transpose |> map(xs => zip(xs, place)
          |> reduce((best, y) => (select(best.0 < y.0, y.0, best.0),
                                  select(best.0 < y.0, y.1, best.1)), (-inf, -1i32)))))
""")
"""The largest element of each channel of each window, and its place in the image."""

BACKWARD = parse(f"""
    def back(places: [3][5][{C}]i32, d: [3][5][{C}]f32) =
      zip(places |> join |> transpose, d |> join |> transpose)
        |> map((is, ds) => zip(is, ds) |> reduceByIndex(add, 0 |> repeat({H * W})))
        |> transpose |> split({W})
""")
"""The cotangent of the image: each cotangent of a maximum is added at its place."""

WORDS = {"owned", "in_place", "privatized"}
"""How the bins of the backward pass are computed."""

RNG = np.random.default_rng(11)
DISTINCT = RNG.permutation(H * W * C).reshape(H, W, C).astype(np.float32) - 100
IMAGES = {"distinct": DISTINCT, "ties": np.floor(DISTINCT / 40)}
COTANGENT = RNG.permutation(3 * 5 * C).reshape(3, 5, C).astype(np.float32) - 20


def pooled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The maxima of the windows, and the place of the first of equal ones."""
    best = np.empty((3, 5, C), np.float32)
    place = np.empty((3, 5, C), np.int32)
    for i, j, c in np.ndindex(3, 5, C):
        window = x[i * S : i * S + K, j * S : j * S + K, c]
        row, column = np.unravel_index(window.argmax(), (K, K))
        best[i, j, c] = window[row, column]
        place[i, j, c] = (i * S + row) * W + j * S + column
    return best, place


def added(place: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Cotangents added at their places."""
    found = np.zeros((H * W, C))
    np.add.at(found, (place.ravel(), np.tile(np.arange(C), 15)), d.ravel())
    return found.reshape(H, W, C)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", IMAGES)
def test_forward_and_backward_on_devices(name: str, runtime: Device) -> None:
    x = IMAGES[name]
    best, place = pooled(x)
    forward = compiled(FORWARD, runtime)
    for label, found in zip(
        forward, results(runtime, [m.module for m in forward.values()], (x,)), strict=True
    ):
        np.testing.assert_array_equal(found[0], best, err_msg=label)
        np.testing.assert_array_equal(found[1], place, err_msg=label)
    back = compiled(BACKWARD, runtime)
    assert {word for label in back for word in WORDS if word in label} == WORDS
    given = place, COTANGENT
    for label, found in zip(
        back, results(runtime, [m.module for m in back.values()], given), strict=True
    ):
        np.testing.assert_array_equal(found, added(place, COTANGENT), err_msg=label)


@pytest.mark.parametrize("name", IMAGES)
def test_the_backward_program_is_the_gradient_of_plain_max_pooling(name: str) -> None:
    plain = parse(f"""
        def pool(x: [{H}][{W}][{C}]f32) = x |> slide2d({K}, {S})
          |> map2d(w => w |> join |> transpose |> map(reduce(maximum, -inf)))
    """)
    x = IMAGES[name]
    wanted = lp.evaluate(lp.gradient(plain), x, COTANGENT)
    found = lp.evaluate(BACKWARD, pooled(x)[1], COTANGENT)
    np.testing.assert_array_equal(found, wanted)


def test_the_gradient_of_reading_at_the_places_adds_at_the_places() -> None:
    """Reading the image at the places has the gradient that `BACKWARD` computes."""
    read = parse(f"""
        def read(x: [{H}][{W}][{C}]f32, places: [3][5][{C}]i32) =
          zip(x |> join |> transpose, places |> join |> transpose)
            |> map((xs, is) => is |> map(i => xs |> at(i))) |> transpose |> split(5)
    """)
    best, place = pooled(DISTINCT)
    np.testing.assert_array_equal(lp.evaluate(read, DISTINCT, place), best)
    made = lp.gradient(read)
    assert "reduceByIndex" in lp.show(made)
    found = lp.evaluate(made, DISTINCT, place, COTANGENT)
    np.testing.assert_array_equal(found, added(place, COTANGENT))

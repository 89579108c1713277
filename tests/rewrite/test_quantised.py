"""Quantised formats: the meaning of each, and candidates that store weights in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.explore.spaces import whole_space
from liftpy.ir.formats import GROUP, QUANTISED, Quantised
from liftpy.ir.types import I8
from liftpy.language.text.program import parse, show
from liftpy.rewrite.narrowed import narrowed
from tests.staged import by_definition

FORMATS = [pytest.param(form, id=str(form)) for form in QUANTISED.values()]
SHAPES = [(64,), (7, 96), (3, 5, 32)]
LAYER = """
storage w: {form}
def layer(const w: [7][64]f32, x: [64]f32) =
  w |> map(row => zip(row, x) |> map(mul) |> reduce(add, 0))
"""


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of different ranges in each row; the first row is 0, the second positive."""
    rng = np.random.default_rng(len(shape))
    w = rng.uniform(-1, 2, shape).astype(np.float32)
    if len(shape) > 1:
        w *= (np.float32(3) ** np.arange(shape[0], dtype=np.float32)).reshape(
            -1, *(1 for _ in shape[1:])
        )
        w[0], w[1] = 0, np.abs(w[1]) + 1
    return w


def in_rows(w: np.ndarray, form: Quantised) -> np.ndarray:
    """The numbers as a matrix whose rows share a scale."""
    if form.shared == "group":
        return w.reshape(-1, GROUP)
    return w.reshape(1 if form.shared == "one" or w.ndim == 1 else len(w), -1)


def stored(w: np.ndarray, form: Quantised) -> tuple[np.ndarray, np.ndarray]:
    """The numbers after storage in a format, and the scale of each, in float64 by definition."""
    rows = in_rows(w, form).astype(np.float64)
    if form.integer == I8:
        scale = np.maximum(np.abs(rows).max(1, keepdims=True), 1e-30) / 127
        found = np.clip(np.rint(rows / scale), -128, 127) * scale
    else:
        low = np.minimum(rows.min(1, keepdims=True), 0)
        high = np.maximum(rows.max(1, keepdims=True), 0)
        scale = np.maximum(high - low, 1e-30) / 255
        point = np.rint(-low / scale)
        found = (np.clip(np.rint(rows / scale) + point, 0, 255) - point) * scale
    return found.reshape(w.shape), np.broadcast_to(scale, rows.shape).reshape(w.shape)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_are_stored_as_the_format_says(form: Quantised, shape: tuple[int, ...]) -> None:
    """The meaning is that of NumPy; each number differs by at most half a step."""
    inner = "v => v * 2"
    for _ in shape:
        inner = f"map({inner})"
    dimensions = "".join(f"[{n}]" for n in shape)
    program = parse(f"def p(const w: {dimensions}f32) = w |> {inner}")
    made, variables = narrowed(program, {"w": form})
    assert parse(show(made)) == made
    assert variables["w"][-1] == f"w_{form}"
    w = weights(shape)
    wanted, scale = stored(w, form)
    found = lp.evaluate(made, w) / 2
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(w).max())
    assert (np.abs(found - w) <= 0.5001 * scale).all()


@pytest.mark.parametrize("form", FORMATS)
def test_the_range_of_numbers_may_exceed_that_of_f32(form: Quantised) -> None:
    program = parse("def p(const w: [64]f32) = w |> map(v => v * 0.5)")
    w = np.where(np.arange(64) % 2, 3e38, -2e38).astype(np.float32)
    found = lp.evaluate(narrowed(program, {"w": form})[0], w)
    np.testing.assert_allclose(found.astype(np.float64), w / 2.0, rtol=1e-2)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("form", FORMATS)
def test_candidates_that_quantise_are_right(runtime: Device, form: Quantised) -> None:
    """They give the product with the stored weights, which are packed in the prepare phase."""
    program = parse(LAYER.format(form=form))
    w = weights((7, 64))
    x = np.random.default_rng(1).uniform(-1, 1, 64).astype(np.float32)
    wanted = stored(w, form)[0] @ x.astype(np.float64)
    space = whole_space(program, runtime, made=by_definition, fixed={"w": str(form)})
    for candidate in space.sample(4, 2):
        compiled = lp.compile(program, candidate.assignment, device=runtime)
        found = compiled(w, x)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())


def test_a_campaign_checks_quantised_weights(tmp_path: Path, device: Device) -> None:
    """Its candidates are right, and their errors are those of rounding the weights."""
    program = parse(LAYER.format(form="q8"))
    campaign = lp.explore(program, 4, db=tmp_path / "layer.db", device=device, fixed={"w": "q8"})
    rows = [row for row in campaign.rows if row.time_ns]
    assert rows
    assert all(row.error is not None and 1e-4 < row.error < 1e-2 for row in rows)


def test_a_limit_on_the_error_leaves_out_formats_without_a_bound(device: Device) -> None:
    space = lp.space(parse(LAYER.format(form="q8")), device, max_error=1e-3)
    assert "q8" not in space.choices.get("w", ())
    (left,) = space.left_out
    assert "w=q8 is left out: its error has no relative bound" in left.why

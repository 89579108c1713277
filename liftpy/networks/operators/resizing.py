"""Resize and Upsample: nearest elements, linear and cubic interpolation, along each axis in turn.

Element `o` of a result is read at the coordinate `(a * o + b) / c` of an axis, where a, b and c are
integers. So the indices of its neighbours are index functions of `o`, and its distance from the
lower neighbour is `(a * o + b) % c`, divided by `c`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from liftpy.ir.expr import Expr
from liftpy.ir.nat import greatest, least
from liftpy.ir.types import F16, F32, F64, FLOATS, I32, ScalarType, integer_range
from liftpy.language.embedded.lang import (
    full,
    gather,
    generate,
    join,
    map,  # noqa: A004
    pad,
)
from liftpy.networks.operators.layouts import Change, aligned_map, along, repeat, to
from liftpy.networks.operators.node import CHANNELS_LAST, Body, Node, decline, literal, operator

MODE = "coordinate_transformation_mode"
HALF = Fraction(1, 2)

TOLERANCES = {F16: Fraction("1e-6"), F32: Fraction("1e-6"), F64: Fraction("1e-11")}
"""How far a coordinate may move when a simpler step replaces that of a float scale, by type."""

ULP = Fraction(1, 1 << 23)
"""The largest relative distance of neighbouring f32."""

UP = {"ceil": Fraction(0), "round_prefer_floor": -HALF}
"""What is added to a coordinate before it is rounded up, by the `nearest_mode` that does so."""

DOWN = {"floor": Fraction(0), "round_prefer_ceil": HALF}
"""What is added to a coordinate before it is rounded down, by `nearest_mode`."""

BLOCKS = {("asymmetric", "floor"), ("tf_half_pixel_for_nn", "floor")} | {
    (how, rounding)
    for how in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    for rounding in ("round_prefer_floor", "round_prefer_ceil")
}
"""The transformations and roundings for which an integer scale repeats each element."""


@operator(
    "Upsample",
    "Resize",
    decided_by=(1, 2, 3),
    note="without `antialias` and `tf_crop_and_resize`; only floats are interpolated",
    orders="last",
)
def resize(node: Node) -> Body:
    """The elements nearest to equidistant coordinates of each axis, or values interpolated there.

    Where an integer scale makes blocks of equal elements, `repeat` makes them.
    """
    mode = node.attribute("mode") or "nearest"
    how = node.attribute(MODE) or "asymmetric"
    rounding = node.attribute("nearest_mode") or "floor"
    if node.attribute("antialias"):
        decline("filters are not expressed", "antialias")
    if node.attribute("exclude_outside") and mode != "cubic":
        decline(f"it is not expressed in the mode {mode}", "exclude_outside")
    if mode not in {"nearest", "linear", "cubic"}:
        decline(f"the mode {mode} is not expressed", "mode")
    if mode != "nearest" and node.type() not in FLOATS:
        decline(f"ONNX does not define how interpolated {node.type()} are rounded", "mode")
    rank, (stored, result) = len(node.shape()), node.images()
    order = CHANNELS_LAST if node.channels_last else range(rank)
    scales, exact = scales_of(node)

    def changed(scale: Fraction, old: int, new: int, depth: int) -> Change | None:
        if (scale, new) == (1, old):
            return None
        if mode == "nearest" and (how, rounding) in BLOCKS and scale == new // old == new / old:
            return lambda xs: join()(map(repeat(new // old))(xs))
        line = coordinates(how, scale, old, new, cubic=mode == "cubic")
        if mode == "nearest":
            return reading(line.rounded(rounding, new, exact=exact), old, new)
        line = line if exact else line.close(node.type(), new)
        return interpolated(node, line.numbers(), old, new, rank - depth)

    changes = [changed(scales[k], stored[d], result[d], d) for d, k in enumerate(order)]

    def body(x: Expr) -> Expr:
        for depth, change in enumerate(changes):
            if change is not None:
                x = along(depth, change)(x)
        return x

    return body


def scales_of(node: Node) -> tuple[list[Fraction], bool]:
    """The scale of each axis, and whether it is exact: a quotient of lengths that the node gives.

    A scale can be fractional although the quotient of the lengths is an integer: 5 times 2.1 is
    rounded down to 10, but the elements are read 1 / 2.1 apart.
    """
    own = node.shape()
    axes = [int(k) % len(own) for k in node.attribute("axes") or range(len(own))]
    value = node.constant(2 if node.operator == "Resize" and node.version >= 11 else 1)
    if value is None:
        value = node.attribute("scales")
    if value is not None and len(value):
        if len(value) != len(axes) or not all(0 < scale < math.inf for scale in value):
            decline(f"{len(axes)} scales above 0 are needed, not {[*value]}", "scales")
        found = {k: Fraction(float(scale)) for k, scale in zip(axes, value, strict=True)}
        return [found.get(k, Fraction(1)) for k in range(len(own))], False
    sizes = node.numbers("sizes", 3) or [own[k] for k in axes]
    if len(sizes) != len(axes):
        decline(f"{len(axes)} sizes are needed, not {sizes}", "sizes")
    found = {k: Fraction(size, own[k]) for k, size in zip(axes, sizes, strict=True)}
    policy = node.attribute("keep_aspect_ratio_policy") or "stretch"
    if policy != "stretch":
        common = (min if policy == "not_larger" else max)(found.values())
        found = dict.fromkeys(found, common)
    return [found.get(k, Fraction(1)) for k in range(len(own))], True


# --- coordinates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """The coordinate `(a * o + b) / c` of each element `o`, as integers; `c` is positive."""

    a: int
    b: int
    c: int

    def below(self, o: Any) -> Any:
        """The coordinate of an element, rounded down; `o` is a number or an index."""
        return (self.a * o + self.b) // self.c

    def fit(self, count: int) -> bool:
        """Whether an i32 can represent the numerators of the coordinates of `count` elements."""
        return self.c * (count + 1) <= integer_range(I32)[1]


@dataclass(frozen=True)
class Line:
    """The coordinate `step * (o + shift) + start` of each element `o` of a result."""

    step: Fraction
    shift: Fraction = Fraction(0)
    start: Fraction = Fraction(0)

    def numbers(self) -> Numbers:
        """The same coordinates over one denominator."""
        first = self.step * self.shift + self.start
        c = math.lcm(self.step.denominator, first.denominator)
        return Numbers(int(self.step * c), int(first * c), c)

    def with_step(self, low: Fraction, high: Fraction) -> Line:
        """This line with the simplest step from `low` to `high`."""
        return Line(simplest(max(low, Fraction(0)), high), self.shift, self.start)

    def close(self, t: ScalarType, count: int) -> Line:
        """The line with the simplest step that moves no coordinate beyond the tolerance of a type.

        The denominator of a float scale can be so large that products with it do not fit into an
        i32: 0.6 as an f32 is 10066330 / 2**24. If the products of the simplest step do not fit
        either, the tolerance is increased for types other than f64, at most to the rounding of a
        scale to f32.
        """
        width = TOLERANCES[t] / count
        limit = width if t == F64 else max(width, self.step * ULP)
        while True:
            found = self.with_step(self.step - width, self.step + width)
            if width >= limit or found.numbers().fit(count):
                return found
            width = min(2 * width, limit)

    def rounded(self, rounding: str, count: int, *, exact: bool) -> Numbers:
        """The rounded coordinates of `count` elements, as other coordinates to be rounded down.

        Unless the step is `exact` or simple, the simplest one that gives the same elements replaces
        it. It lies at most halfway to the first step that gives other elements.
        """
        up = rounding in UP
        line = Line(self.step, self.shift, self.start + (UP if up else DOWN)[rounding])
        if not exact and self.step.denominator > count:
            low, high = Fraction(0), 2 * self.step
            for o in range(count):
                if steps := o + self.shift:
                    coordinate = self.step * steps + line.start
                    whole = math.ceil(coordinate) - 1 if up else math.floor(coordinate)
                    ends = [(end - line.start) / steps for end in (whole, whole + 1)]
                    low, high = max(low, min(ends)), min(high, max(ends))
            line = line.with_step((low + self.step) / 2, (high + self.step) / 2)
        n = line.numbers()
        return Numbers(n.a, n.b + n.c - 1, n.c) if up else n


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator that is at least `low` and at most `high`.

    >>> simplest(Fraction("0.333"), Fraction("0.334"))
    Fraction(1, 3)
    """
    if math.ceil(low) <= high:
        return Fraction(math.ceil(low))
    whole = math.floor(low)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def coordinates(how: str, scale: Fraction, old: int, new: int, *, cubic: bool) -> Line:
    """Where `new` elements are read along an axis of length `old`, by the transformation `how`."""
    if old == 1:
        return Line(Fraction(0))
    step = 1 / scale
    if how == "pytorch_half_pixel" and new == 1:
        # ONNX's specification reads at 0. Its evaluator reads at -0.5 if `scale * old` is 1, and
        # otherwise as with half_pixel. Only cubic interpolation distinguishes 0 from -0.5.
        if cubic or scale * old != 1:
            decline(f"ONNX does not define {how} for a result of one element", MODE)
        return Line(Fraction(0))
    if how == "align_corners":
        return Line(Fraction(0) if new == 1 else (old - 1) / (scale * old - 1))
    if how == "half_pixel_symmetric":
        return Line(step, HALF - Fraction(new, 2), Fraction(old - 1, 2))
    lines = {
        "asymmetric": Line(step),
        "half_pixel": Line(step, HALF, -HALF),
        "pytorch_half_pixel": Line(step, HALF, -HALF),
        "tf_half_pixel_for_nn": Line(step, HALF),
    }
    return lines[how] if how in lines else decline(f"{how} is not expressed", MODE)


# --- programs -------------------------------------------------------------------------------------


def reading(at: Numbers, old: int, new: int, offset: int = 0) -> Change:
    """Reads the element at an offset from the one below each coordinate, clamped to the axis.

    `old` and `new` are the lengths of the axis and of the result.
    """
    below, beyond = outside(at, old, new, offset)

    def inside(o: Any) -> Any:
        k = greatest(at.below(o) + offset, 0) if below else at.below(o) + offset
        return least(k, old - 1) if beyond else k

    if not at.fit(new):
        decline(
            f"the denominator {at.c} of its coordinates is too large for {new} elements", "scales"
        )
    return gather(new, inside)


def outside(at: Numbers, old: int, new: int, offset: int) -> tuple[int, int]:
    """How far the neighbours at an offset lie before the axis, and beyond it, at most."""
    return max(0, -at.below(0) - offset), max(0, at.below(new - 1) + offset - old + 1)


def ones_inside(at: Numbers, old: int, new: int, offset: int, real: ScalarType) -> Expr:
    """1 for each coordinate whose neighbour at an offset is inside the axis, else 0."""
    before, beyond = outside(at, old, new, offset)
    ones = full(old, literal(1, real))
    padded = pad(before, beyond, 0.0)(ones) if before or beyond else ones
    return gather(new, lambda o: at.below(o) + offset + before)(padded)


def interpolated(node: Node, at: Numbers, old: int, new: int, rank: int) -> Change:
    """Interpolates values at coordinates of the outermost of `rank` axes.

    With `exclude_outside`, neighbours beyond the ends have the weight 0, and the value is divided
    by the sum of the weights.
    """
    if at.c == 1:
        return reading(at, old, new)
    own, cubic = node.type(), node.attribute("mode") == "cubic"
    real = F32 if own == F16 else own
    offsets = range(-1, 3) if cubic else range(2)
    coefficient = float(node.attribute("cubic_coeff_a") or 0)
    divided = bool(node.attribute("exclude_outside"))

    def element(*parts: Any) -> Any:
        *others, distance = parts
        x, y, *more = (to(real)(neighbour) for neighbour in others[: len(offsets)])
        if not cubic:
            return to(own)(x + (y - x) * distance)
        weights = cubic_weights(distance, coefficient, real)
        if divided:
            weights = products(weights, others[len(offsets) :])
        value = total(products(weights, [x, y, *more]))
        return to(own)(value / total(weights) if divided else value)

    def change(xs: Any) -> Any:
        numbers = [ones_inside(at, old, new, k, real) for k in offsets] if divided else []
        numbers.append(generate(new, lambda o: distance_from_below(o, at, real)))
        neighbours = [reading(at, old, new, k)(xs) for k in offsets]
        operands = [(x, [*range(rank)]) for x in neighbours]
        return aligned_map(element, [*operands, *((x, [0]) for x in numbers)], rank)

    return change


def distance_from_below(o: Any, at: Numbers, real: ScalarType) -> Any:
    """The distance of element `o`'s coordinate from the neighbour below it: in [0, 1)."""
    a, b = at.a % at.c, at.b % at.c
    numerator = o if a == 1 else o * a
    return to(real)((numerator + b if b else numerator) % at.c) / literal(at.c, real)


def cubic_weights(t: Any, a: float, real: ScalarType) -> list[Any]:
    """The weights of four neighbours for a point at the distance `t` from the second one.

    These are the weights of the cubic convolution in ONNX's specification, with the coefficient
    `a`; the polynomials of the outer two are factored.
    """
    one, steep, flat = (literal(number, real) for number in (1, a + 2, a + 3))
    s = one - t
    outer = literal(a, real) * t * s
    inner = [(steep * u - flat) * u * u + one for u in (t, s)]
    return [outer * s, *inner, outer * t]


def products(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """The products of scalars."""
    return [x * y for x, y in zip(xs, ys, strict=True)]


def total(xs: Sequence[Any]) -> Any:
    """The sum of scalars, from left to right."""
    return reduce(lambda found, x: found + x, xs)


# --- ONNX's reference evaluator -------------------------------------------------------------------


def misread(node: Node) -> bool:
    """Whether ONNX's reference evaluator reads other elements because it computes in f64.

    A coordinate that is rounded to f64 may be on the other side of a tie between two elements. For
    interpolation, the evaluator adds 1 or 2 to a coordinate. If the coordinate is slightly above
    an integer and the sum is rounded to an integer, the evaluator applies the weights of the
    coordinate to elements that are one further left.
    """
    mode, how = node.attribute("mode"), node.attribute(MODE)
    scales, _ = scales_of(node)
    for scale, old, new in zip(scales, node.shape(), node.result_shape, strict=True):
        if (scale, new) == (1, old) or old == 1:
            continue
        line = coordinates(how, scale, old, new, cubic=mode == "cubic")
        for o, rounded in enumerate(rounded_coordinates(how, float(scale), old, new)):
            exact = line.step * (o + line.shift) + line.start
            if abs(rounded - exact) > 1e-9 * max(1, old):
                return False  # the evaluator uses another formula, so this is not a rounding error
            if mode != "nearest":
                below, added = math.floor(rounded), 2 if mode == "cubic" else 1
                if rounded != below and rounded + added == below + added:
                    return True
            elif any(f(2 * rounded) != f(2 * exact) for f in (math.floor, math.ceil)):
                return True
    return False


def rounded_coordinates(how: str, scale: float, old: int, new: int) -> list[float]:
    """The coordinates as ONNX's reference evaluator computes them, in f64."""
    length = scale * old
    if how == "align_corners":
        return [0.0 if length == 1 else o * (old - 1) / (length - 1) for o in range(new)]
    if how == "asymmetric":
        return [o / scale for o in range(new)]
    offset = old / 2 * (1 - new / length) if how == "half_pixel_symmetric" else 0.0
    return [offset + (o + 0.5) / scale - 0.5 for o in range(new)]

"""Every scalar type and operator: C and numpy agree, on scalars and on vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import DeviceRefused
from liftpy.explore.spaces import space_of
from liftpy.ir.operators import LOGICAL, OPERATORS
from liftpy.ir.types import EXTENSIONS, FLOATS, INTEGERS, SCALARS, STORAGE, integer_range
from liftpy.language.text.program import parse
from liftpy.opencl.arguments import DTYPES, by_buffer
from liftpy.opencl.saturation import SATURATING
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.lowered import lowered
from tests.oclgrind import check_under_oclgrind

LENGTH = 16
SCALAR = "zip(xs, ys) |> mapGlb(0, (x, y) => {})"
VECTOR = "zip(xs, ys) |> asVector(4) |> mapGlb(0, v => v |> mapVec((x, y) => {})) |> asScalar"
FORMS = {"scalar": SCALAR, "vector": VECTOR}
#: Each operator on x and y, as it is written.
WRITTEN = {
    **{op: f"x {op} y" for op in ("+", "-", "*", "/", "%", "and", "or")},
    **{op: f"{op}(x, y)" for op in ("min", "max")},
    "neg": "-x",
    "not": "not x",
    "abs": "abs(x)",
    "nested": "select(x < y, x, -y) / (y / 3) + min(abs(x - y) * x % 7, y)",
}
BITS = {
    **{op: f"{op}(x, y)" for op in ("bitAnd", "bitOr", "bitXor", "shiftLeft", "shiftRight")},
    "bitNot": "bitNot(x)",
    "constant counts": "shiftLeft(x, 3) - shiftRight(y, 2) * shiftRight(x, 7)",
    "nested bits": "max(bitXor(bitNot(shiftLeft(shiftLeft(x + y, 7), y)), x), bitAnd(-y, 5)) % 13",
}
COMPARED = {
    **{op: f"x {op} y" for op in ("<", "<=", "==", "!=", ">", ">=")},
    "logic": "not (x < y and x != 2) or y <= x",
    "select": "select(x < y, x, y) == select(x < 2, y, x)",
}

#: The types with operators; tests/compile/test_storage.py has the storage types.
COMPUTED = [name for name, t in SCALARS.items() if t not in STORAGE]


def numbers(t: str) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays with the corners of a type: signs, zeros, the largest and the smallest."""
    dtype = DTYPES[t]
    if t == "bool":
        return np.arange(LENGTH) % 2 == 0, np.arange(LENGTH) % 3 == 0
    if dtype.kind == "f":
        rng = np.random.default_rng(3)
        xs, ys = rng.uniform(-9, 9, (2, LENGTH)).astype(dtype)
        xs[:3], ys[:3] = (7.5, -7.5, 3), (2, 2, 3)
        return xs, ys
    low, high = integer_range(SCALARS[t])
    xs = [7, -7, 7, -7, 5, 0, low, high, low, high, low, 100, -100, 77, 1, -1]
    ys = [2, 2, -2, -2, 0, 0, -1, -1, 0, 1, low, 100, 100, -77, high, low]
    xs, ys = ([(x - low) % (high - low + 1) + low for x in row] for row in (xs, ys))
    return np.array(xs, dtype), np.array(ys, dtype)


def ran(text: str, arrays: tuple[Any, ...], device: Device) -> Any:
    """The result of a lowered program on a device."""
    module = compile_program(lowered(text)).module
    with Session(device) as session, session.load(module) as loaded:
        loaded.set_constants({})
        return loaded.run(by_buffer(module, arrays), poison=True)


def lacks(device: Device, t: str) -> bool:
    """Whether a device does not have a type."""
    return EXTENSIONS.get(SCALARS[t], "cl_khr_fp64") not in device.extensions


def same(
    t: tuple[str, str], written: list[str], form: str, arrays: tuple[Any, ...], device: Device
) -> None:
    """Expressions over x and y, run together and evaluated: of one type, and equal or close."""
    results = FORMS[form].format(f"({', '.join([*written, 'x'])})")
    xs, ys = (f"[{len(array)}]{kind}" for array, kind in zip(arrays, t, strict=True))
    text = f"def p(xs: {xs}, ys: {ys}) = {results}"
    every, got = evaluate(parse(text), *arrays), ran(text, arrays, device)
    for name, one, two in zip(written, got, every, strict=False):
        assert one.dtype == two.dtype, name
        assert len(np.unique(two)) > 1, f"{name}: values that can lose"
        if two.dtype.kind == "f":
            near = 16 * np.finfo(two.dtype).eps
            np.testing.assert_allclose(one, two, rtol=near, atol=near, err_msg=name)
        else:
            np.testing.assert_array_equal(one, two, err_msg=name)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", COMPUTED)
def test_every_operator_of_a_type_is_right(runtime: Device, t: str, form: str) -> None:
    if lacks(runtime, t):
        pytest.skip(f"{runtime.platform} has no {t}")
    every = {**WRITTEN, **COMPARED, **(BITS if SCALARS[t] in INTEGERS else {})}
    names = {*LOGICAL, "==", "!="} if t == "bool" else every.keys() - LOGICAL
    written = [text for name, text in every.items() if name in names]
    same((t, t), written, form, numbers(t), runtime)


@pytest.mark.covering(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [t.name for t in FLOATS])
def test_functions_of_floats_are_right(runtime: Device, t: str, form: str) -> None:
    if lacks(runtime, t):
        pytest.skip(f"{runtime.platform} has no {t}")
    special = {
        "pow": "pow(abs(x), y / 8)",
        "asin": "asin(x / 9)",
        "acos": "acos(x / 9)",
        "atanh": "atanh(x / 9.5)",
        "acosh": "acosh(abs(x) + 1)",
        **{op: f"{op}(x / 3)" for op in ("atan", "sinh", "asinh", "erf")},
        "atan2": "atan2(x, y)",
        "floor": "floor(x)",
        "ceil": "ceil(x)",
        "round": "round(x / 2)",
    }
    functions = sorted(op for op, record in OPERATORS.items() if record.operands == "floats")
    written = [special.get(op, f"{op}(abs(x) / 3)") for op in functions]
    same((t, t), written, form, numbers(t), runtime)


#: The ends of the domains of functions, what lies beyond them, and NaN; a prime number of them.
SPECIAL = [0, 0.5, 1, -1, 1.5, -1.5, 300, -300, np.inf, -np.inf, np.nan, 6, 1e-4]


@pytest.mark.covering(2)
@pytest.mark.parametrize("t", [t.name for t in FLOATS])
def test_functions_of_floats_are_right_at_the_ends_of_their_domains(
    runtime: Device, t: str
) -> None:
    if lacks(runtime, t):
        pytest.skip(f"{runtime.platform} has no {t}")
    functions = [op for op, o in OPERATORS.items() if o.operands == "floats" and o.arity == 1]
    written = [*(f"{op}(x)" for op in functions), "atan2(x, y)", "atan2(y, x)"]
    xs = np.array(SPECIAL, DTYPES[t])
    ys = np.array([*SPECIAL[1:8], 2, 3, 5, 7, 11, 13], DTYPES[t])
    same((t, t), written, "scalar", (xs, ys), runtime)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", COMPUTED)
def test_every_conversion_is_right(runtime: Device, given: str, form: str) -> None:
    if lacks(runtime, given):
        pytest.skip(f"{runtime.platform} has no {given}")
    xs, ys = numbers(given)
    if xs.dtype.kind == "f":
        xs = np.append(xs[:10], np.array([np.inf, -np.inf, np.nan, 300, -300, 0], xs.dtype))
    written = [f"{wanted}(x)" for wanted in COMPUTED if not lacks(runtime, wanted)]
    same((given, given), written, form, (xs, ys), runtime)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [t.name for t in SATURATING])
def test_floats_at_the_ends_of_a_type_become_its_nearest_number(
    runtime: Device, t: str, form: str
) -> None:
    """With and without a fraction, on both sides of each end; infinities, and NaN, which is 0."""
    ends = [float(end) for end in integer_range(SCALARS[t])]
    near = [end + step for end in ends for step in (-1, -0.75, -0.5, 0, 0.5, 0.75, 1)]
    floats = np.array([*near, -0.5, 0.5, -1.5, np.inf, -np.inf, np.nan], np.float32)
    steps = np.array(ends, np.float32)
    xs = np.concatenate(
        [floats, *(np.nextafter(steps, np.float32(to)) for to in (-np.inf, np.inf))]
    )
    same(("f32", "f32"), [f"{t}(x)", f"{t}(-x)"], form, (xs, xs[::-1].copy()), runtime)


@pytest.mark.covering(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [t.name for t in INTEGERS])
def test_numbers_in_the_text_are_right(runtime: Device, t: str, form: str) -> None:
    """Divisors that need no helper and those that do; the ends of a type."""
    low, high = integer_range(SCALARS[t])
    divisors = [d for d in (-1, 3, -3, 1, high, low) if d and low <= d]
    written = [f"x {op} {divisor} + y" for op in "/%" for divisor in divisors]
    written += [f"-(x - {number} + max(y, {number + 9 * (number < 0)}))" for number in (low, high)]
    same((t, t), written, form, numbers(t), runtime)


def test_conditions_of_lanes_of_another_width(runtime: Device) -> None:
    written = ["select(x < 0, i64(y), i64(x) - 3)", "select(bool(y), x, -x * 3)"]
    same(("f32", "i8"), written, "vector", (numbers("f32")[0], numbers("i8")[1]), runtime)
    stored = ["select(x, y, -y * 3)", "select(x, i8(y), 7)"]
    same(("bool", "f32"), stored, "vector", (numbers("bool")[0], numbers("f32")[1]), runtime)


@pytest.mark.parametrize("t", ["f16", "f64"])
def test_a_type_that_the_device_lacks_is_refused_before_the_build(runtime: Device, t: str) -> None:
    """In the space, and again at the device, also where no buffer has the type."""
    plain = Device.from_json({**runtime.to_json(), "extensions": []})
    source = f"def p(xs: [16]f32) = xs |> map(x => f32({t}(x) * 3))"
    with pytest.raises(
        DeviceRefused, match=f"p computes in {t}; .* lacks {EXTENSIONS[SCALARS[t]]}"
    ):
        space_of(parse(source), plain)
    module = compile_program(lowered(source.replace("map(", "mapGlb(0, "))).module
    with Session(plain) as session, pytest.raises(DeviceRefused, match="Use f32, or a device"):
        session.load(module)


@pytest.mark.oclgrind
def test_divisions_and_truth_values_under_oclgrind() -> None:
    text = "def p(xs: [16]i32, ys: [16]i32) = " + VECTOR.format(
        "select(x / y < x % y, x / y, x % 3)"
    )
    xs, ys = numbers("i32")
    got, complaints = check_under_oclgrind(
        compile_program(lowered(text)).module, {"xs": xs, "ys": ys}
    )
    assert complaints == []
    np.testing.assert_array_equal(got, evaluate(parse(text), xs, ys))


@pytest.mark.oclgrind
def test_bits_and_functions_of_floats_under_oclgrind() -> None:
    bits = "shiftLeft(bitXor(x, 5), y) - shiftRight(bitNot(y), bitAnd(x, 3))"
    angle = "f32(x) + atan2(f32(x), f32(y)) * erf(f32(y) / 50) + asinh(f32(x))"
    text = "def p(xs: [16]i8, ys: [16]i8) = " + VECTOR.format(f"({bits}, {angle})")
    xs, ys = numbers("i8")
    got, complaints = check_under_oclgrind(
        compile_program(lowered(text)).module, {"xs": xs, "ys": ys}
    )
    assert complaints == []
    for one, two in zip(got, evaluate(parse(text), xs, ys), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


@pytest.mark.covering(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", ["i8", "u8"])
def test_conversions_of_8_bits_are_right_for_every_value(
    runtime: Device, t: str, form: str
) -> None:
    """To every type, and from all quarters in and near the range, with and without `round`."""
    low, high = integer_range(SCALARS[t])
    every = np.arange(low, high + 1).astype(f"{'u' * (t == 'u8')}int8")
    written = [f"{wanted}(x)" for wanted in COMPUTED if not lacks(runtime, wanted)]
    same((t, t), written, form, (every, every[::-1].copy()), runtime)
    quarters = np.arange(4 * low - 64, 4 * high + 68, dtype=np.int64).astype(np.float32) / 4
    same(("f32", "f32"), [f"{t}(x)", f"{t}(round(x))"], form, (quarters, quarters), runtime)

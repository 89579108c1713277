"""Single operators against ONNX's reference evaluator, or NumPy where that evaluator differs."""

import math
import re
from contextlib import closing

import numpy as np
import pytest
from onnx import helper

import liftpy as lp
from liftpy.errors import NetworkRefused
from tests.networks.conformance import PAGE
from tests.networks.models import model, value


def single(operator, arrays, *, result=np.float32, rank=1, opset=21, fixed=(), **given):
    """A model of one node `op` whose inputs are arrays by name; those in `fixed` are constants.

    A name `_` stands for an input that is left out.
    """
    made = helper.make_node(operator, [n.strip("_") for n in arrays], ["y"], name="op", **given)
    inputs = [
        value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype))
        for n, a in arrays.items()
        if n not in fixed and n.strip("_")
    ]
    constants = {n: arrays[n] for n in fixed}
    output = value("y", [None] * rank, helper.np_dtype_to_tensor_dtype(np.dtype(result)))
    return model([made], inputs, [output], opset, **constants)


def computed(made, *inputs):
    """The result of a model by its programs, none of which may be missing."""
    network = lp.network(made)
    assert len(network)
    return network.evaluate(inputs)[network.graph.outputs[0]]


ROW = np.float32([3, 1, 4, 15, 9])


# --- Gemm -----------------------------------------------------------------------------------------

A = np.int32([[1, 2, 4], [7, 3, 5]])
B = np.int32([[2, 9], [6, 1], [8, 3]])
C = np.int32([[11, 4], [5, 13]])


def product(a, b, c, **given):
    return single("Gemm", {"a": a, "b": b, "c": c}, result=a.dtype, rank=2, **given)


@pytest.mark.parametrize(
    ("attribute", "factor"), [("alpha", 0.5), ("beta", 1.5), ("alpha", 3e9), ("beta", np.inf)]
)
def test_a_gemm_of_integers_with_a_factor_that_is_none_is_declined(attribute, factor):
    with pytest.raises(NetworkRefused, match=rf"`{attribute}`\): i32 cannot represent"):
        lp.network(product(A, B, C, **{attribute: factor}))


def test_a_gemm_has_whole_factors_of_integers_and_any_of_floats():
    by_hand = np.einsum("ik,kj->ij", A, B)
    found = computed(product(A, B, C, alpha=3.0, beta=-2.0), A, B, C)
    np.testing.assert_array_equal(found, 3 * by_hand - 2 * C)
    a, b, c = (m.astype(np.float32) for m in (A, B, C))
    found = computed(product(a, b, c, alpha=0.5, beta=1.5), a, b, c)
    np.testing.assert_array_equal(found, by_hand / 2 + C * 1.5)


# --- ReduceLogSumExp ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_logarithm_of_a_sum_of_exponentials_is_that_of_infinite_elements(dtype):
    rows = np.array(
        [
            [-np.inf, -np.inf, -np.inf],
            [np.inf, 1, 3],
            [-np.inf, np.inf, 2],
            [-np.inf, 5, -7],
            [-300, -301, -303],
            [700, 500, 600],
        ],
        dtype,
    )
    made = single("ReduceLogSumExp", {"x": rows}, result=dtype, opset=13, axes=[1], keepdims=0)
    wanted = np.logaddexp.reduce(rows.astype(np.float64), axis=1)
    np.testing.assert_allclose(computed(made, rows), wanted, rtol=1e-6)


# --- OneHot, Pow, Pad -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.uint64, np.float32])
def test_an_index_beyond_the_row_of_a_one_hot_has_the_other_value(dtype):
    depth, indices = 200, [0, 3, 199, 200, -1, -200, -201, 2**32, 2**32 + 5, 2**64 - 1, 127, -128]
    if dtype == np.float32:
        exact = [i for i in indices if float(np.float32(i)) == i]
    else:
        exact = [i for i in indices if np.iinfo(dtype).min <= i <= np.iinfo(dtype).max]
    places = [i + depth if i < 0 else i for i in exact]
    wanted = np.full((len(exact), depth), 2, np.float32)
    for row, place in enumerate(places):
        if 0 <= place < depth:
            wanted[row, place] = 7
    arrays = {"i": np.array(exact, dtype), "d": np.int64(depth), "v": np.float32([2, 7])}
    made = single("OneHot", arrays, rank=2, fixed=["d", "v"])
    np.testing.assert_array_equal(computed(made, arrays["i"]), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_power_one_half_of_minus_infinity_is_infinite(dtype):
    x = np.array([-np.inf, np.inf, 0.0, 2.25, 9], dtype)
    made = single("Pow", {"x": x, "e": dtype(0.5)}, result=dtype, fixed=["e"])
    np.testing.assert_array_equal(computed(made, x), [np.inf, np.inf, 0, 1.5, 3])


def test_a_pad_that_wraps_at_one_end_and_cuts_at_the_other_is_declined():
    """ONNX does not say whether the elements that are cut are wrapped."""

    def wrapped(*amounts):
        pads = np.int64(amounts)
        return single("Pad", {"x": ROW, "p": pads}, opset=19, fixed=["p"], mode="wrap")

    with pytest.raises(NetworkRefused, match=r"`pads`\): wrapping at one end of an axis that"):
        lp.network(wrapped(-1, 3))
    np.testing.assert_array_equal(computed(wrapped(-1, -2), ROW), ROW[1:3])
    np.testing.assert_array_equal(computed(wrapped(2, 3), ROW), np.pad(ROW, (2, 3), mode="wrap"))


# --- inputs of which only the type or the shape matters, or nothing -------------------------------


@pytest.mark.parametrize("fixed", [(), ("like",)])
def test_cast_like_takes_the_type_of_any_tensor(fixed):
    arrays = {"x": np.float32([1.5, -2.5, 7]), "like": np.int32([[4, 5, 9, 8, 2]])}
    made = single("CastLike", arrays, result=np.int32, fixed=fixed)
    given = [array for name, array in arrays.items() if name not in fixed]
    np.testing.assert_array_equal(computed(made, *given), [1, -2, 7])
    assert lp.network(made).check(given).passed


@pytest.mark.parametrize("fixed", [(), ("ratio",)])
def test_a_dropout_of_any_ratio_is_the_input(fixed):
    arrays = {"x": ROW, "ratio": np.float32(0.25)}
    made = single("Dropout", arrays, fixed=fixed)
    given = [array for name, array in arrays.items() if name not in fixed]
    np.testing.assert_array_equal(computed(made, *given), ROW)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("names", [["x", "low", "high"], ["x", "low"], ["x", "_", "high"]])
def test_the_bounds_of_a_clip_are_arrays_of_one_element(names, shape):
    x = np.float32([[-7, 2, 11], [5, 3, -4]])
    given = {"x": x, "_": None, "low": np.float32(-3.5), "high": np.float32(4.5)}
    arrays = {n: given[n] if n in "x_" else given[n].reshape(shape) for n in names}
    made = single("Clip", arrays, rank=2)
    wanted = x.copy()
    if "low" in names:
        wanted[x < -3.5] = -3.5
    if "high" in names:
        wanted[x > 4.5] = 4.5
    found = computed(made, *(a for a in arrays.values() if a is not None))
    np.testing.assert_array_equal(found, wanted)


def test_a_bound_of_several_numbers_is_declined():
    made = single("Clip", {"x": ROW, "low": ROW})
    with pytest.raises(NetworkRefused, match=r"op \(Clip\): a bound of shape \[5\] is not"):
        lp.network(made)


# --- GELU -----------------------------------------------------------------------------------------


def gelu(x):
    return np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x.tolist()])


@pytest.mark.parametrize("t", [np.float32, np.float64])
def test_the_exact_gelu_has_the_error_function(t, device):
    x = np.array([0, 1e-5, -0.02, 0.7, -1.3, 3, -2.5, 40, -40, np.nan], t)
    made = single("Gelu", {"x": x}, result=t, opset=20, approximate="none")
    with closing(lp.network(made)) as network:
        for found in (network.evaluate([x]), network.run([x], device=device)):
            np.testing.assert_allclose(found["y"], gelu(x), rtol=1e-6, atol=2e-7)


# --- bits -----------------------------------------------------------------------------------------

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("t", INTEGERS)
def test_bits_are_those_of_numpy(t, device):
    ends = np.iinfo(t)
    x = np.array([ends.min, ends.max, 0, 1, 5, 77, ends.max // 3], t)
    y = np.array([ends.max, 3, 7, 1, ends.max // 5, 12, ends.min], t)
    for operator, f in {
        "BitwiseAnd": np.bitwise_and,
        "BitwiseOr": np.bitwise_or,
        "BitwiseXor": np.bitwise_xor,
    }.items():
        agrees(single(operator, {"x": x, "z": y}, result=t), f(x, y), (x, y), device)
    agrees(single("BitwiseNot", {"x": x}, result=t), ~x, (x,), device)


@pytest.mark.parametrize("t", INTEGERS)
def test_a_shift_by_all_bits_or_more_leaves_the_sign(t, device):
    """A negative count, too."""
    opset = 28 if t in INTEGERS[:4] else 21  # the first one with signed integers
    bits, ends = 8 * np.dtype(t).itemsize, np.iinfo(t)
    x = np.array([ends.min, ends.max, 113, ends.min, 7, 101, 1, ends.max, ends.min], t)
    y = np.array([0, 1, bits - 1, bits, 3, 5, bits + 1, max(ends.min, -1), bits - 1], t)
    within = (y >= 0) & (y < bits)
    count = np.where(within, y, 0)
    for direction, wanted in {
        "LEFT": np.where(within, np.left_shift(x, count), 0),
        "RIGHT": np.where(within, np.right_shift(x, count), np.where(x < 0, ~(x * 0), 0)),
    }.items():
        made = single("BitShift", {"x": x, "z": y}, result=t, opset=opset, direction=direction)
        agrees(made, wanted.astype(t), (x, y), device)


def agrees(made, wanted, inputs, device):
    """Checks a model of a node by its meaning and on a device."""
    with closing(lp.network(made)) as network:
        for found in (network.evaluate([*inputs]), network.run([*inputs], device=device)):
            np.testing.assert_array_equal(found["y"], wanted)


# --- cancellation and NaN -------------------------------------------------------------------------

SMALL = [0, 1e-8, -1e-5, 3e-4, -0.02, 0.7]
EXACT = {
    "Sinh": (np.sinh, [*SMALL, 5, -11]),
    "Asinh": (np.arcsinh, [*SMALL, 5, -11, 1e30]),
    "Atanh": (np.arctanh, [*SMALL, 0.999, -0.5]),
    "Asin": (np.arcsin, [*SMALL, 1, -0.5]),
    "Atan": (np.arctan, [*SMALL, 5, -11, 1e30]),
    "Erf": (np.vectorize(math.erf), [*SMALL, 1.5, -3, 11]),
    "Softplus": (lambda x: np.logaddexp(0, x), [*SMALL, -5, -16.5, -17, -20, -40, 30, 90]),
    "Mish": (lambda x: x * np.tanh(np.logaddexp(0, x)), [*SMALL, -5, -17, -20, -40, 30, 90]),
}


@pytest.mark.parametrize("operator", EXACT)
def test_each_element_has_a_small_relative_error(operator, device):
    exact, numbers = EXACT[operator]
    x = np.float32(numbers)
    wanted = exact(x.astype(np.float64))
    with closing(lp.network(single(operator, {"x": x}))) as network:
        for found in (network.evaluate([x]), network.run([x], device=device)):
            np.testing.assert_allclose(found["y"], wanted, rtol=2e-6)


def test_the_sign_of_nan_is_nan():
    x = np.float32([3, np.nan, -2, 0])
    np.testing.assert_array_equal(computed(single("Sign", {"x": x}), x), [1, np.nan, -1, 0])
    whole = np.int32([-7, 0, 3])
    made = single("Sign", {"x": whole}, result=np.int32)
    np.testing.assert_array_equal(computed(made, whole), [-1, 0, 1])


WITH_NAN = {
    "Clip": {"opset": 6, "min": -1.0},
    "Max": {"several": True},
    "Min": {"several": True},
    "Sum": {"several": True},
    "ReduceMax": {"axes": [2], "opset": 13},
    "ReduceMin": {"axes": [2], "opset": 13},
    "ReduceSum": {"axes": [2], "opset": 11},
    "MaxPool": {"kernel_shape": [3]},
    "AveragePool": {"kernel_shape": [3]},
}
"""Attributes of operators whose results are compared for NaN; others have none."""
WITHOUT_ATTRIBUTES = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Elu", "Erf", "Gelu"),
    *("GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LeakyRelu"),
    *("LogSoftmax", "Mish", "Neg", "Relu", "Round", "Selu", "Sigmoid", "Sign"),
    *("Softmax", "Softplus", "Softsign", "Sqrt", "Tanh"),
)


def keeps_nan(operator, *, several=False, opset=22, **given):
    """Whether a NaN among the elements is in the result."""
    x = np.float32([[[3, np.nan, -2]]])
    arrays = {"x": x, "z": np.roll(x, 1)} if several else {"x": x}
    made = single(operator, arrays, rank=3, opset=opset, **given)
    return bool(np.isnan(computed(made, *arrays.values())).any())


def test_the_operators_that_lose_nan_are_those_on_the_page():
    tested = {*WITH_NAN, *WITHOUT_ATTRIBUTES}
    lost = {n for n in tested if not keeps_nan(n, **WITH_NAN.get(n, {}))}
    paragraph = PAGE.read_text(encoding="utf-8").partition("- **NaN.**")[2].partition("\n- **")[0]
    assert lost == tested & {*re.findall(r"\w+", paragraph)}


def test_a_nan_behind_the_first_element_is_no_extreme_element():
    x = np.float32([[5, np.nan, 7, np.nan]])
    for operator, place in {"ArgMax": 2, "ArgMin": 0}.items():
        made = single(operator, {"x": x}, result=np.int64, rank=2, axis=1)
        np.testing.assert_array_equal(computed(made, x), [[place]])
    made = single("Hardmax", {"x": x[:, 1:]}, rank=2, axis=1)
    np.testing.assert_array_equal(computed(made, x[:, 1:]), [[0, 1, 0]])

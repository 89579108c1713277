"""Resize and Upsample: compared with ONNX's evaluator and with values by hand; refusals."""

import itertools
import math
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import liftpy as lp
from liftpy.errors import NetworkRefused
from liftpy.networks.operators.resizing import simplest
from tests.networks.models import model, value

ROW = np.float32([3, 1, 4, 15, 9])
TRANSFORMATIONS = (
    "half_pixel",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "align_corners",
    "asymmetric",
)
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
MODE = "coordinate_transformation_mode"
ASYMMETRIC = {MODE: "asymmetric", "nearest_mode": "floor"}


def resizing(x, *, scales=None, sizes=None, opset=19, operator="Resize", **given):
    """A model that resizes an array `x` by constant scales, or to constant sizes."""
    constants = {}
    if scales is not None:
        constants["scales"] = np.float32(scales)
    if sizes is not None:
        constants["sizes"] = np.int64(sizes)
    names = ["x", *constants]
    if operator == "Resize" and opset >= 11:
        if opset < 13:  # these inputs cannot be left out
            constants = {
                "roi": np.zeros(0, np.float32),
                "scales": np.zeros(0, np.float32),
            } | constants
        given_names = [n if n in constants else "" for n in ("roi", "scales", "sizes")]
        names = ["x", *given_names[: 3 if "sizes" in constants else 2]]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    made = helper.make_node(operator, names, ["y"], name="op", **given)
    result = value("y", [None] * x.ndim, kind)
    return model([made], [value("x", x.shape, kind)], [result], opset, **constants)


def computed(made, x, device=None):
    """The result by the meaning; if a device is given, its result is compared with it."""
    with closing(lp.network(made)) as network:
        assert len(network) == 1
        found = network.evaluate([x])["y"]
        if device is not None:
            run = network.run([x], device=device)["y"]
            np.testing.assert_allclose(run, found, rtol=1e-5, atol=1e-5)
    return found


def reference(made, x):
    return ReferenceEvaluator(made).run(None, {"x": x})[0]


def distinct(*shape, dtype=np.float32):
    """Distinct numbers, not sorted."""
    count = math.prod(shape)
    return (np.arange(count) * 37 % (count * 2 + 1)).reshape(shape).astype(dtype)


# --- interpolation --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("how", TRANSFORMATIONS)
@pytest.mark.parametrize("sizes", [(11, 3), (5, 13), (2, 31), (7, 4)], ids=str)
def test_values_are_interpolated_to_lengths(mode, how, sizes):
    x = distinct(2, 7, 5)
    made = resizing(x, sizes=(2, *sizes), mode=mode, **{MODE: how})
    np.testing.assert_allclose(computed(made, x), reference(made, x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("how", TRANSFORMATIONS)
@pytest.mark.parametrize("scales", [(0.6, 2.6), (2, 0.4), (1.1, 1 / 3), (3.7, 1.0)], ids=str)
def test_values_are_interpolated_by_scales(mode, how, scales):
    x = distinct(11, 7)
    made = resizing(x, scales=scales, mode=mode, **{MODE: how})
    np.testing.assert_allclose(computed(made, x), reference(made, x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("coefficient", [-0.5, -0.75, 0.25])
def test_the_coefficient_of_cubic_interpolation_is_an_attribute(coefficient):
    x = distinct(7)
    made = resizing(x, sizes=[13], mode="cubic", cubic_coeff_a=coefficient)
    np.testing.assert_allclose(computed(made, x), reference(made, x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("how", TRANSFORMATIONS)
@pytest.mark.parametrize("sizes", [(11, 3), (5, 13)], ids=str)
def test_cubic_interpolation_without_what_is_outside(how, sizes):
    x = distinct(2, 7, 5)
    made = resizing(x, sizes=(2, *sizes), mode="cubic", exclude_outside=1, **{MODE: how})
    found = computed(made, x)
    np.testing.assert_allclose(found, reference(made, x), rtol=1e-5, atol=1e-4)
    assert not np.allclose(found, reference(resizing(x, sizes=(2, *sizes), mode="cubic"), x))


@pytest.mark.parametrize(
    ("how", "given", "wanted"),
    [
        # coordinates 0, 0.4, 0.8, ...; beyond the end, the last element is repeated
        (
            "asymmetric",
            {"scales": [2.5]},
            [3, 2.2, 1.4, 1.6, 2.8, 4, 8.4, 12.8, 13.8, 11.4, 9, 9],
        ),
        ("align_corners", {"sizes": [9]}, [3, 2, 1, 2.5, 4, 9.5, 15, 12, 9]),
        # coordinates -0.25, 0.25, 0.75, 1.25, ...
        ("half_pixel", {"scales": [2]}, [3, 2.5, 1.5, 1.75, 3.25, 6.75, 12.25, 13.5, 10.5, 9]),
        # coordinates 1/3, 2, 3 2/3
        ("half_pixel", {"sizes": [3]}, [2 + 1 / 3, 4, 11]),
    ],
    ids=["asymmetric", "align_corners", "twice", "down"],
)
def test_linear_interpolation_by_hand(how, given, wanted):
    made = resizing(ROW, mode="linear", **{MODE: how}, **given)
    np.testing.assert_allclose(computed(made, ROW), wanted, rtol=1e-5)


def test_cubic_interpolation_by_hand():
    """Halfway, a coefficient of -0.5 gives the weights -1/16, 9/16, 9/16, -1/16."""
    how = {"mode": "cubic", "cubic_coeff_a": -0.5, MODE: "asymmetric"}
    found = computed(resizing(ROW, scales=[2], **how), ROW)
    around = np.pad(ROW, (1, 2), mode="edge")
    weights = np.float32([-1, 9, 9, -1]) / 16
    np.testing.assert_array_equal(found[::2], ROW)
    np.testing.assert_allclose(found[1::2], np.correlate(around, weights), rtol=1e-6)


def test_whole_coordinates_are_read_without_weights():
    made = resizing(ROW, scales=[0.5], mode="cubic", **{MODE: "asymmetric"})
    np.testing.assert_array_equal(computed(made, ROW), ROW[[0, 2]])
    (operation,) = lp.network(made)
    assert "+" not in lp.show(operation.program).replace("+ 1", "")


@pytest.mark.parametrize(("operator", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_older_operators_interpolate_from_the_first_element(operator, opset):
    made = resizing(ROW, scales=[2.5], mode="linear", operator=operator, opset=opset)
    wanted = reference(resizing(ROW, scales=[2.5], mode="linear", **{MODE: "asymmetric"}), ROW)
    np.testing.assert_allclose(computed(made, ROW), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_floats_of_other_sizes_are_interpolated(dtype):
    x = distinct(3, 7, dtype=dtype)
    made = resizing(x, sizes=(5, 11), mode="linear")
    found = computed(made, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, reference(made, x), rtol=1e-3 if dtype == np.float16 else 1e-12
    )


def test_a_scale_is_rounded_to_a_fraction_that_moves_no_place_far():
    """0.6 is 10066330 / 2**24 as an f32, which is within the rounding of an f32 from 3 / 5.

    The values at the places grow by 1 from each element to the next.
    """
    x = np.arange(1009, dtype=np.float32)
    for scale in (0.6, 1.7, 1 / 3, 2.123457, math.pi):
        made = resizing(x, scales=[scale], mode="linear")
        np.testing.assert_allclose(computed(made, x), reference(made, x), rtol=2e-7, atol=1e-6)


# --- nearest elements -----------------------------------------------------------------------------


def read(how, rounding, scale, old, new):
    """The elements that ONNX's text says are read, in exact arithmetic."""
    s, half = Fraction(scale), Fraction(1, 2)
    places = {
        "half_pixel": lambda o: (o + half) / s - half,
        "pytorch_half_pixel": lambda o: (o + half) / s - half if new > 1 else 0,
        "half_pixel_symmetric": lambda o: (
            Fraction(old) / 2 * (1 - new / (s * old)) + (o + half) / s - half
        ),
        "align_corners": lambda o: o * (old - 1) / (s * old - 1) if new > 1 else 0,
        "asymmetric": lambda o: o / s,
        "tf_half_pixel_for_nn": lambda o: (o + half) / s,
    }
    rounded = {
        "floor": math.floor,
        "ceil": math.ceil,
        "round_prefer_floor": lambda x: math.ceil(x - half),
        "round_prefer_ceil": lambda x: math.floor(x + half),
    }
    found = [rounded[rounding](places[how](o)) for o in range(new)]
    return np.clip(found, 0, old - 1)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("how", [*TRANSFORMATIONS, "tf_half_pixel_for_nn"])
def test_the_nearest_elements_are_those_of_exact_arithmetic(how, rounding):
    """Also at ties, and where the f32 of a scale is close to a number that has ties."""
    given = {"mode": "nearest", "nearest_mode": rounding, MODE: how, "opset": 11}
    for old, new in [(5, 13), (13, 5), (7, 2), (5, 10), (10, 5), (1, 3), (3, 1), (6, 9)]:
        x = distinct(old)
        found = computed(resizing(x, sizes=[new], **given), x)
        np.testing.assert_array_equal(found, x[read(how, rounding, Fraction(new, old), old, new)])
    for old, scale in itertools.product((5, 10, 29), (0.6, 1.1, 2.1, 2.5, 0.2, 3)):
        x, exact = distinct(old), float(np.float32(scale))
        if how == "pytorch_half_pixel" and round(exact * old) == 1:
            continue  # declined
        found = computed(resizing(x, scales=[scale], **given), x)
        wanted = x[read(how, rounding, exact, old, len(found))]
        np.testing.assert_array_equal(found, wanted, f"{old} by {scale}")


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("how", TRANSFORMATIONS)
def test_nearest_elements_of_matrices_are_those_of_the_reference(how, rounding):
    x = distinct(2, 7, 5, dtype=np.uint8)
    given = {"mode": "nearest", "nearest_mode": rounding, MODE: how}
    for sizes in ((2, 11, 3), (2, 3, 13)):
        made = resizing(x, sizes=sizes, **given)
        np.testing.assert_array_equal(computed(made, x), reference(made, x))
    made = resizing(x, scales=(1, 1.7, 0.7), **given)
    np.testing.assert_array_equal(computed(made, x), reference(made, x))


@pytest.mark.parametrize(
    "made",
    [
        resizing(ROW, scales=[2.1], **ASYMMETRIC),  # the result has 10 elements: as with 2
        resizing(ROW, scales=[1.1], **ASYMMETRIC),  # 5 elements: as with 1
        resizing(ROW, scales=[2.1], operator="Upsample", opset=9),
        resizing(ROW, scales=[2.1], opset=10),
    ],
    ids=["2.1", "1.1", "Upsample", "opset 10"],
)
def test_a_fractional_scale_counts_though_the_lengths_have_a_whole_quotient(made):
    found = computed(made, ROW)
    scale = 1.1 if len(found) == 5 else 2.1
    np.testing.assert_array_equal(found, ROW[np.floor(np.arange(len(found)) / scale).astype(int)])
    if len(found) == 10:
        assert not np.array_equal(found, np.repeat(ROW, 2))


@pytest.mark.parametrize(
    "made",
    [
        resizing(ROW, scales=[3], **ASYMMETRIC),
        resizing(ROW, scales=[3]),
        resizing(ROW, scales=[3], axes=[-1]),
        resizing(ROW, scales=[3], operator="Upsample", opset=9),
        resizing(ROW, scales=[3], opset=10),
        resizing(ROW, sizes=[15], **{MODE: "half_pixel_symmetric"}),
    ],
    ids=["asymmetric", "half pixel", "axes", "Upsample", "opset 10", "symmetric"],
)
def test_a_whole_scale_repeats_each_element(made):
    np.testing.assert_array_equal(computed(made, ROW), ROW[np.arange(15) // 3])
    (operation,) = lp.network(made)
    assert lp.show(operation.program).split("|>")[1:] == [" map(repeat(3)) ", " join\n"]


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_may_keep_the_aspect_ratio(policy, mode):
    x = distinct(3, 5, 4)
    made = resizing(x, sizes=(11, 7), axes=[2, 1], keep_aspect_ratio_policy=policy, mode=mode)
    found, wanted = computed(made, x), reference(made, x)
    assert found.shape == ((3, 7, 6) if policy == "not_larger" else (3, 14, 11))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "given", "wrong"),
    [
        (7, 17, {"mode": "linear"}, True),
        (7, 17, {"mode": "cubic"}, True),
        (7, 14, {"mode": "linear"}, False),
        (7, 13, {"mode": "linear"}, False),
        (29, 5, {"mode": "nearest", "nearest_mode": "floor"}, True),
        (29, 7, {"mode": "nearest", "nearest_mode": "floor"}, False),
    ],
    ids=str,
)
def test_coordinates_that_the_reference_rounds_are_not_compared(old, new, given, wrong):
    x = distinct(old)
    made = resizing(x, sizes=[new], **given)
    assert (np.abs(computed(made, x) - reference(made, x)).max() > 0.1) == wrong
    found = lp.network(made).check([x])
    assert [*found.skipped] == (["op"] if wrong else [])
    assert found.passed


# --- devices, printing, refusals ------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"sizes": (3, 11, 3), "mode": "linear"},
        {"sizes": (3, 4, 13), "mode": "cubic", MODE: "align_corners"},
        {"scales": (1, 1.7, 0.6), "mode": "linear", MODE: "asymmetric"},
        {"sizes": (3, 4, 13), "mode": "cubic", "exclude_outside": 1},
        {"scales": (1, 1.7, 0.6), "mode": "nearest", "nearest_mode": "ceil"},
    ],
    ids=["linear", "cubic", "scales", "inside", "nearest"],
)
def test_kernels_have_the_results_of_the_meaning(given, device):
    x = distinct(3, 7, 5)
    made = resizing(x, **given)
    np.testing.assert_allclose(computed(made, x, device), reference(made, x), rtol=1e-5, atol=1e-4)


def test_a_program_has_one_index_function_for_each_neighbour():
    (operation,) = lp.network(resizing(distinct(7), sizes=[11], mode="linear"))
    assert (
        lp.show(operation.program)
        == """\
def resize(x: [7]f32) =
  zip(
    x |> gather(11, i => max((7*i + 9) // 11 - 1, 0)),
    x |> gather(11, i => min((7*i + 9) // 11, 6)),
    generate(11, o => f32((o * 7i32 + 9i32) % 11i32) / 11)
  )
    |> map(xyz => xyz.0 + (xyz.1 - xyz.0) * xyz.2)
"""
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"antialias": 1, "mode": "linear"}, r"`antialias`\): filters are not expressed"),
        ({"exclude_outside": 1, "mode": "linear"}, r"`exclude_outside`\): it is not expressed in"),
        ({"mode": "cubic", MODE: "pytorch_half_pixel", "sizes": [1]}, "of one element"),
    ],
    ids=["antialias", "exclude_outside", "one element"],
)
def test_what_is_not_expressed_is_declined(given, why):
    with pytest.raises(NetworkRefused, match=why):
        lp.network(resizing(ROW, **({"sizes": [3]} | given)))


@pytest.mark.parametrize(
    "given",
    [{"scales": [k]} for k in (np.inf, np.nan, -2, 0)] + [{"scales": [2, 2]}, {"sizes": [2, 2]}],
    ids=str,
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_and_sizes_that_are_not_valid_are_refused(given, mode):
    """By liftpy, or by ONNX's checker or shape inference."""
    with pytest.raises(NetworkRefused):
        lp.network(resizing(ROW, mode=mode, **given))


def test_crops_and_interpolated_integers_are_declined():
    roi = np.float32([0.2, 0.9])
    made = helper.make_node(
        "Resize", ["x", "roi", "", "sizes"], ["y"], name="op", **{MODE: "tf_crop_and_resize"}
    )
    cropping = model([made], [value("x", [5])], [value("y", [3])], 19, roi=roi, sizes=np.int64([3]))
    with pytest.raises(NetworkRefused, match=r"`coordinate.*`\): tf_crop_and_resize is not expr"):
        lp.network(cropping)
    for dtype in (np.uint8, np.int32):
        with pytest.raises(NetworkRefused, match=r"`mode`\): ONNX does not define how interpolat"):
            lp.network(resizing(ROW.astype(dtype), sizes=[3], mode="linear"))


def test_coordinates_that_an_i32_cannot_represent_are_declined():
    sizes = [50_021]
    made = resizing(np.zeros(49_999, np.float32), sizes=sizes, mode="linear")
    with pytest.raises(
        NetworkRefused, match=r"the denominator 50021 of its coordinates is too large"
    ):
        lp.network(made)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [("0.3", "0.35", "1/3"), ("1.4", "1.5", "3/2"), ("2", "2.5", "2"), ("0", "0.1", "0")],
)
def test_the_simplest_fraction_between_two(low, high, wanted):
    assert simplest(Fraction(low), Fraction(high)) == Fraction(wanted)


def test_lengths_that_stay_are_left_alone():
    (operation,) = lp.network(resizing(ROW, sizes=[5], mode="cubic"))
    assert "gather" not in lp.show(operation.program)
    assert operation.operator == "Resize"

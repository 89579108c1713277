"""Operators on quantised numbers against oracles in exact integers, and what they refuse."""

import re
from contextlib import closing

import numpy as np
import pytest
from onnx import helper

import liftpy as lp
from liftpy.errors import NetworkRefused
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import composed, stage_skeletons
from liftpy.rewrite.forms import as_declared
from tests.batch import results
from tests.networks.models import model, value

RNG = np.random.default_rng(11)


def single(operator, arrays, result, *, fixed=(), opset=21, **given):
    """A model of one node whose inputs are arrays by name; those in `fixed` are constants."""
    made = helper.make_node(operator, [*arrays], ["y"], name="op", **given)
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [value(n, a.shape, kind(a.dtype)) for n, a in arrays.items() if n not in fixed]
    output = value("y", [None] * result[1], kind(np.dtype(result[0])))
    return model([made], inputs, [output], opset, **{n: arrays[n] for n in fixed})


def computed(operator, arrays, result, device=None, **given):
    """The result of a node by its meaning, which is also that on the device if one is given."""
    inputs = [a for n, a in arrays.items() if n not in given.get("fixed", ())]
    with closing(lp.network(single(operator, arrays, result, **given))) as network:
        assert len(network)
        (found,) = network.evaluate(inputs).values()
        if device is not None:
            (run,) = network.run(inputs, device=device).values()
            np.testing.assert_array_equal(run, found)
    return found


def quantised(exact, scale, zero, dtype):
    """`saturate(round(exact * scale) + zero)` in float64; ties to even."""
    info = np.iinfo(dtype)
    return np.clip(np.rint(exact * np.float64(scale)) + zero, info.min, info.max).astype(dtype)


def convolved(x, w, stride, pads):
    """A convolution in NCHW in int64, element by element of the kernel."""
    top, left, bottom, right = pads
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows = (x.shape[2] - w.shape[2]) // stride + 1
    columns = (x.shape[3] - w.shape[3]) // stride + 1
    total = np.zeros((x.shape[0], w.shape[0], rows, columns), np.int64)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            part = x[:, :, i : i + rows * stride : stride, j : j + columns * stride : stride]
            total += np.einsum("nchw,mc->nmhw", part, w[:, :, i, j].astype(np.int64))
    return total


def draw(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize(
    ("kind", "runs"),
    [(np.uint8, False), (np.int8, True), pytest.param(np.uint8, True, marks=pytest.mark.soak)],
)
def test_convolutions_with_a_scale_for_each_kernel_are_exact(kind, runs, device):
    """Uneven padding stands for the zero point, which is odd; the scales are powers of 2."""
    x, w = draw(kind, 2, 5, 11, 7), draw(np.int8, 3, 5, 3, 2)
    zero, zeros = kind(37), np.int8([0, -7, 5])
    scales = np.float32([2**-7, 2**-9, 2**-8])
    bias = np.int32([1000, -77, 0])
    arrays = {
        "x": x,
        "s": np.float32(0.5),
        "p": np.asarray(zero),
        "w": w,
        "r": scales,
        "o": zeros,
        "q": np.float32(0.25),
        "z": np.uint8(13),
        "b": bias,
    }
    found = computed(
        "QLinearConv",
        arrays,
        (np.uint8, 4),
        device if runs else None,
        strides=[2, 2],
        pads=[2, 0, 1, 1],
        fixed=["w", "b"],
    )
    wide = x.astype(np.int64) - int(zero), w - zeros.astype(np.int64)[:, None, None, None]
    total = convolved(*wide, 2, (2, 0, 1, 1)) + bias[:, None, None]
    wanted = quantised(total * scales.astype(np.float64)[:, None, None], 2.0, 13, np.uint8)
    assert set(np.unique(wanted)) >= {0, 255}  # both ends are reached
    np.testing.assert_array_equal(found, wanted)


def grouped(x, w, groups, stride, pads):
    """`convolved` for each group of channels."""
    parts = zip(np.split(x, groups, 1), np.split(w, groups), strict=True)
    return np.concatenate([convolved(a, b, stride, pads) for a, b in parts], 1)


@pytest.mark.parametrize("pads", [(2, 0, 1, 1), (0, 0, 0, 0)], ids=["padded", "not padded"])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("known", [True, False], ids=["constant zero", "zero of the input"])
def test_a_zero_point_is_subtracted_from_the_sums_of_weights(groups, pads, known, device):
    """Also where the padding is: it has the zero point itself, which is odd."""
    zero, above, scale, biased = 113, 7, np.float32(2**-9), groups != 2
    x, w = draw(np.uint8, 1, 6, 9, 7), draw(np.int8, 6, 6 // groups, 3, 2)
    scales = scale * np.float32([1, 2, 0.5, 1, 4, 1]) if groups > 1 else scale
    arrays = {
        "x": x,
        "s": np.float32(0.5),
        "p": np.uint8([zero]),
        "w": w,
        "r": scales,
        "o": np.int8(0) if groups == 1 else np.zeros(6, np.int8),
        "q": np.float32([0.25]),
        "z": np.uint8(above),
    }
    bias = np.int32([500, -77, 0, 3, -1001, 12])
    arrays |= {"b": bias} if biased else {}
    fixed = [n for n in arrays if n not in {"x", *(() if known else "p")}]
    made = single(
        "QLinearConv", arrays, (np.uint8, 4), fixed=fixed, strides=[2, 2], pads=pads, group=groups
    )
    total = grouped(x.astype(np.int64) - zero, w, groups, 2, pads)
    total += bias[:, None, None] if biased else 0
    factors = np.broadcast_to(np.float64(scales), 6)[:, None, None] * 2
    wanted = quantised(total * factors, 1.0, above, np.uint8)
    assert len(np.unique(wanted)) > 20
    given = [arrays[n] for n in arrays if n not in fixed]
    with closing(lp.network(made)) as network, closing(network.channels_last()) as last:
        for one in (network, last):
            np.testing.assert_array_equal(next(iter(one.evaluate(given).values())), wanted)
        if groups == 1 or known:
            np.testing.assert_array_equal(*[*network.run(given, device=device).values(), wanted])


def program_of(zero, pads, scale=0.5):
    """The program of a convolution whose zero points and scales are constant."""
    arrays = {
        "x": draw(np.uint8, 1, 4, 7, 7),
        "s": np.float32(scale),
        "p": np.uint8(zero),
        "w": np.ones((8, 4, 3, 3), np.int8),
        "r": np.ones(8, np.float32),
        "o": np.zeros(8, np.int8),
        "q": np.float32(2),
        "z": np.uint8(9),
    }
    fixed = [n for n in arrays if n != "x"]
    made = single("QLinearConv", arrays, (np.uint8, 4), fixed=fixed, pads=pads)
    (operation,) = lp.network(made)
    return operation.program


def test_only_the_zero_point_of_a_padded_image_is_a_part_of_the_program():
    """Layers that differ in other constants share a program, and so its campaign."""
    around, none = [1, 1, 1, 1], [0, 0, 0, 0]
    assert lp.show(program_of(5, none)) == lp.show(program_of(6, none, scale=0.25))
    assert lp.show(program_of(5, around)) == lp.show(program_of(5, around, scale=0.25))
    assert lp.show(program_of(5, around)) != lp.show(program_of(6, around))
    assert "pad(1, 1, 5)" in lp.show(program_of(5, around))


@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 0, 0]])
def test_blocks_of_quantised_convolutions_read_numbers_as_they_are_stored(pads):
    program = program_of(5, pads)
    (partition,) = as_declared(program)
    *once, result = (list(stage_skeletons(partition, stage)) for stage in partition.stages)
    assert [[s.family for s in made] for made in once] == [["plain"], ["plain"]]
    blocks = [s for s in result if s.family == "direct" and s.words["pad"] == "fused"]
    sizes = {"result.kappa": 8, "result.sigma": 1, "result.v": 8}
    made = compile_candidate(composed(partition, [*(made[0] for made in once), blocks[0]]), sizes)
    run = made.source[made.source.rindex("__kernel") :]
    assert re.search(r"vload8\(0, &t\d+\[", run)  # packed weights
    assert "global const uchar* restrict x," in run
    assert len(re.findall(r"global const char\* restrict t", run)) == 1


def test_convolutions_in_integers_are_exact_in_groups(device):
    x, w = draw(np.uint8, 1, 6, 13), draw(np.int8, 4, 3, 5)
    arrays = {"x": x, "w": w, "p": np.uint8(251)}
    found = computed("ConvInteger", arrays, (np.int32, 3), device, group=2, pads=[3, 1])
    wide = x.astype(np.int64) - 251
    wanted = [
        convolved(wide[:, 3 * g : 3 * g + 3, None], w[2 * g : 2 * g + 2, :, None], 1, (0, 3, 0, 1))
        for g in range(2)
    ]
    np.testing.assert_array_equal(found, np.concatenate(wanted, 1)[:, :, 0])


def test_products_have_zero_points_of_rows_and_of_columns(device):
    a, b = draw(np.uint8, 7, 523), draw(np.int8, 523, 5)
    arrays = {"a": a, "b": b, "p": draw(np.uint8, 7), "o": draw(np.int8, 5)}
    wide = a.astype(np.int64) - arrays["p"][:, None], b.astype(np.int64) - arrays["o"]
    found = computed("MatMulInteger", arrays, (np.int32, 2), device)
    np.testing.assert_array_equal(found, wide[0] @ wide[1])


def test_products_of_extreme_values_are_exact(device):
    """Sums of 255 * -128, and of one odd product more, which f32 does not hold."""
    a, b = np.full((1, 1031), 255, np.uint8), np.full((1031, 1), -128, np.int8)
    b[-1] = -127
    found = computed("MatMulInteger", {"a": a, "b": b}, (np.int32, 2), device)
    assert found.item() == -(1030 * 255 * 128 + 255 * 127)


@pytest.mark.parametrize("zero", [0, 1, 3, 200])
def test_ties_are_rounded_to_even_before_the_zero_point_is_added(zero, device):
    x = np.arange(-600, 600, dtype=np.float32) / 2
    arrays = {"x": x, "s": np.float32(1), "z": np.uint8(zero)}
    found = computed("QuantizeLinear", arrays, (np.uint8, 1), device)
    np.testing.assert_array_equal(found, quantised(x, 1, zero, np.uint8))
    totals = np.arange(-100, 101, dtype=np.int8)[:, None]
    ends = {"q": np.float32(2), "z": np.int8(zero % 100)}
    left = {"a": totals, "s": np.float32(1), "p": np.int8(0)}
    right = {"b": np.int8([[1]]), "r": np.float32(1), "o": np.int8(0)}
    found = computed("QLinearMatMul", {**left, **right, **ends}, (np.int8, 2), device)
    wanted = quantised(totals.astype(np.int64), 0.5, zero % 100, np.int8)
    np.testing.assert_array_equal(found, wanted)


def test_values_out_of_range_saturate_and_nan_becomes_0(device):
    x = np.float32([np.inf, -np.inf, 1e30, -1e30, 127.5, 128.5, np.nan])
    found = computed(
        "QuantizeLinear", {"x": x, "s": np.float32(1), "z": np.int8(-1)}, (np.int8, 1), device
    )
    np.testing.assert_array_equal(found, np.int8([127, -128, 127, -128, 127, 127, 0]))


@pytest.mark.parametrize("scale", [0.0, -0.5, np.nan, np.inf])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_a_constant_scale_has_to_be_a_finite_number_above_0(operator, scale):
    x, t = (draw(np.uint8, 7), np.float32) if operator[0] == "D" else (np.ones(7, "f4"), np.uint8)
    arrays = {"x": x, "s": np.float32([scale] * 7), "z": np.zeros(7, np.uint8)}
    made = single(operator, arrays, (t, 1), fixed=["s"], axis=0)
    with pytest.raises(NetworkRefused, match=rf"{scale} is no scale, which is a finite number"):
        lp.network(made)


def test_scales_that_do_not_fit_are_refused():
    arrays = {"x": np.ones((4, 6), np.float32), "s": np.ones((4, 2), np.float32)}
    made = single("QuantizeLinear", arrays, (np.uint8, 2), block_size=2)
    with pytest.raises(NetworkRefused, match=r"\(4, 2\) does not fit blocks of 2"):
        lp.network(made)


def test_a_quantised_convolution_has_dot_products_on_devices_with_the_instructions(runtime):
    """The images and weights are read as they are stored: the zero point is in the biases."""
    rng = np.random.default_rng(21)
    x = rng.integers(0, 256, (1, 8, 5, 6), np.uint8)
    w = rng.integers(-128, 128, (3, 8, 2, 2), np.int8)
    arrays = {
        "x": x, "x_scale": np.float32(0.5), "x_zero": np.uint8(113),
        "w": w, "w_scale": np.float32(0.25), "w_zero": np.int8(0),
        "y_scale": np.float32(91.0), "y_zero": np.uint8(127),
    }  # fmt: skip
    arrays = {name: np.asarray(a) for name, a in arrays.items()}
    made = single("QLinearConv", arrays, (np.uint8, 4), fixed=tuple(arrays.keys() - {"x"}))
    net = lp.network(made).channels_last()
    (operation,) = [o for o in net if o.operator == "QLinearConv"]
    device = lp.find_device("profile:mali-g710")
    fixed = {"result.family": ["dots"]}
    space = lp.space(operation.program, device, families=["plain", "dots"], fixed=fixed)
    modules = [compile_candidate(c.skeleton, c.point) for c in space.sample(2, 0)]
    assert all("dot_u8_i8(" in module.source for module in modules)
    read = [net.graph.tensors[n] for n in operation.inputs]
    given = [t.stored(x) if t.value is None else t.value for t in read]
    (wanted,) = net.evaluate([x]).values()
    exact = convolved(x.astype(np.int64) - 113, w, 1, (0, 0, 0, 0))
    np.testing.assert_array_equal(wanted, quantised(exact, 0.5 * 0.25 / 91.0, 127, np.uint8))
    written = net.graph.tensors[operation.outputs[0]]
    for found in results(runtime, modules, [np.asarray(a, order="C") for a in given]):
        np.testing.assert_array_equal(written.declared(found.reshape(written.shape)), wanted)

"""Transposed convolutions, compared with their definition: sums of products by input element."""

import itertools
import random

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import NetworkRefused
from liftpy.networks.operators.transposed import Spread
from tests.networks.models import model, node, value


def by_definition(x, w, b, shape, *, group, strides, dilations, before):
    """The result in f64, summed one product at a time."""
    found = np.zeros(shape) + (0 if b is None else b.reshape(1, -1, *[1] * len(strides)))
    per_group, inside = x.shape[1] // group, w.shape[1]
    for n, c in itertools.product(range(x.shape[0]), range(x.shape[1])):
        first = c // per_group * inside
        for h in np.ndindex(*x.shape[2:]):
            for k in np.ndindex(*w.shape[2:]):
                at = [
                    i * s + j * d - p
                    for i, s, j, d, p in zip(h, strides, k, dilations, before, strict=True)
                ]
                if all(0 <= i < count for i, count in zip(at, shape[2:], strict=True)):
                    found[(n, slice(first, first + inside), *at)] += x[(n, c, *h)] * w[(c, ..., *k)]
    return found


def drawn(seed):
    """A random node: its arrays and its attributes."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    rank, group = rng.choice([1, 2, 2, 2]), rng.choice([1, 1, 2, 3])
    shape = [rng.choice([1, 1, 2]), group * rng.choice([1, 2, 3])]
    lengths = [rng.choice([1, 2, 3, 5, 7]) for _ in range(rank)]
    sizes = [rng.choice([1, 2, 3, 4]) for _ in range(rank)]
    strides = [rng.choice([1, 2, 2, 3]) for _ in range(rank)]
    dilations = [rng.choice([1, 1, 2]) for _ in range(rank)]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, sizes, strict=True)]
    extra = [rng.randrange(max(s, d)) for s, d in zip(strides, dilations, strict=True)]
    pads = [rng.randrange(n) for n in [*spans, *spans]]
    result = [
        s * (n - 1) + more + span - pads[k] - pads[rank + k]
        for k, (s, n, more, span) in enumerate(zip(strides, lengths, extra, spans, strict=True))
    ]
    if min(result) < 1:
        return drawn(seed + 1000)
    inside = rng.choice([1, 2, 5])
    x = numbers.standard_normal((*shape, *lengths), np.float32)
    w = numbers.standard_normal((shape[1], inside, *sizes), np.float32)
    b = numbers.standard_normal(group * inside, np.float32) if rng.random() < 0.5 else None
    named = {"strides": strides, "dilations": dilations, "output_padding": extra, "pads": pads}
    return x, w, b, (shape[0], group * inside, *result), {**named, "group": group}


def network(x, w, b, **attributes):
    """A network of one transposed convolution."""
    reads = "x w" if b is None else "x w b"
    constants = {"w": w} if b is None else {"w": w, "b": b}
    made = node("ConvTranspose", reads, "y", "up", **attributes)
    return lp.network(
        model([made], [value("x", x.shape)], [value("y", [None] * x.ndim)], **constants)
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_result_is_that_of_the_definition(seed):
    x, w, b, shape, given = drawn(seed)
    wanted = by_definition(
        x, w, b, shape, group=given["group"], strides=given["strides"],
        dilations=given["dilations"], before=given["pads"][: x.ndim - 2],
    )  # fmt: skip
    net = network(x, w, b, **given)
    for one in [net, net.channels_last()] if x.ndim == 4 else [net]:
        found = one.evaluate({"x": x})["y"]
        assert found.shape == shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.covering(2)
@pytest.mark.parametrize("seed", [1, 4, 6])
def test_it_runs_on_a_device(seed, runtime):
    x, w, b, _, given = drawn(seed)
    net = network(x, w, b, **given)
    wanted = net.evaluate({"x": x})["y"]
    for one in [net, net.channels_last()] if x.ndim == 4 else [net]:
        found = one.run({"x": x}, device=runtime)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        one.close()


@pytest.mark.parametrize(
    ("given", "before", "result"),
    [
        ({"auto_pad": "SAME_UPPER"}, 0, 10),  # of 1 element too many, the last one is left out
        ({"auto_pad": "SAME_LOWER"}, 1, 10),
        ({"auto_pad": "VALID"}, 0, 11),
        ({"output_shape": [9]}, 1, 9),
        ({"output_shape": [8]}, 2, 8),
        ({"output_shape": [8], "auto_pad": "VALID"}, 2, 8),
        ({"output_shape": [8], "auto_pad": "SAME_UPPER"}, 1, 8),
    ],
)
def test_padding_may_follow_from_the_length_of_the_result(given, before, result):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((1, 2, 5), np.float32), rng.standard_normal((2, 3, 3), np.float32)
    wanted = by_definition(
        x, w, None, (1, 3, result), group=1, strides=[2], dilations=[1], before=[before]
    )
    found = network(x, w, None, strides=[2], **given).evaluate({"x": x})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_kernel_as_long_as_the_stride_multiplies_nothing_by_zero():
    """The upsampling of a U-Net: each result reads one element of the input."""
    axis = Spread(7, 14, size=2, stride=2)
    assert (axis.taps, axis.windows, axis.padding, axis.skipped) == (1, 7, (0, 0), 0)
    axis = Spread(7, 14, size=4, stride=2, before=1)
    assert (axis.taps, axis.windows, axis.padding, axis.skipped) == (2, 8, (1, 1), 1)


def test_three_dimensions_are_declined():
    x, w = np.ones((1, 1, 2, 2, 2), np.float32), np.ones((1, 1, 2, 2, 2), np.float32)
    with pytest.raises(NetworkRefused, match="windows in 3 dimensions are not expressed"):
        network(x, w, None)


def test_same_lengths_with_output_padding_are_declined():
    """ONNX's text says twice the length, and its shape inference one element more."""
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)
    with pytest.raises(NetworkRefused, match="its shape inference differ"):
        network(x, w, None, strides=[2], auto_pad="SAME_UPPER", output_padding=[1])

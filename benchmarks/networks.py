"""Times networks with random weights: liftpy's plans and ONNX Runtime, in turns.

    python benchmarks/networks.py NETWORK [--size N] [--db FOLDER] [--explore SECONDS] [--repeats N]
        [--declared-order] [--memory-limit MIB]

NETWORK is a name of `NETWORKS`; --size is the height and width of the image, by default 224, and
299 for inception3. Images are stored with their channels last between operations unless
--declared-order is given. The operations are joined, and explored for --explore seconds with the
defaults of `liftpy explore`. The plan chooses among the candidates that the campaigns in the folder
--db have measured; an operation without a campaign has one like the best of a similar operation, or
its first. With --memory-limit, the plan is the fastest one that needs at most that many MiB of
device memory. The outputs are compared with ONNX Runtime's, if it is installed. A turn begins after
a rest in which the threads of the other library stop spinning.

The benchmark also prints the front of time and memory, and the memory that ONNX Runtime takes: the
growth of another process while it loads and runs the model. That process has already run a model of
one operation.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from turns import SPINNING, host, timed_alternately, turn

import liftpy as lp


class Building:
    """A model under construction: a tensor is its name and number of channels."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def node(self, operator: str, inputs: list[str], **given: Any) -> str:
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_out"], name=name, **given))
        return f"{name}_out"

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        scale = np.sqrt(2 / max(1, np.prod(shape[1:])))
        array = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int | tuple[int, int],
        stride: int = 1,
        groups: int = 1,
        *,
        relu: bool = True,
        padded: bool = True,
    ) -> str:
        before, after = channels
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        w = self.weight(after, before // groups, height, width)
        made = self.node(
            "Conv",
            [x, w, self.weight(after)],
            pads=[height // 2, width // 2] * 2 if padded else [0] * 4,
            strides=[stride] * 2,
            group=groups,
        )
        return self.node("Relu", [made]) if relu else made

    def pool(self, x: str, *, padded: bool = True) -> str:
        pads = [int(padded)] * 4
        return self.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=pads)

    def dense(self, x: str, before: int, after: int) -> str:
        return self.node("Gemm", [x, self.weight(after, before), self.weight(after)], transB=1)

    def model(self, y: str, size: int, name: str) -> Any:
        pooled = self.node("GlobalAveragePool", [y])
        return self.flattened(pooled, size, name)

    def flattened(self, y: str, size: int, name: str) -> Any:
        self.nodes.append(helper.make_node("Flatten", [y], ["y"], name="flatten"))
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, None])
        graph = helper.make_graph(self.nodes, name, [image], [result], self.weights)
        opsets = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def squeezenet(size: int) -> Any:
    """SqueezeNet 1.1: squeeze to few channels, expand by 1x1 and 3x3, concatenate."""
    b = Building()
    x, before = b.pool(b.conv("x", (3, 64), 3, 2)), 64
    for k, (squeeze, expand) in enumerate(
        [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
    ):
        if k in {2, 4}:
            x = b.pool(x)
        s = b.conv(x, (before, squeeze), 1)
        both = [b.conv(s, (squeeze, expand), 1), b.conv(s, (squeeze, expand), 3)]
        x, before = b.node("Concat", both, axis=1), 2 * expand
    return b.model(b.conv(x, (before, 1000), 1), size, "squeezenet")


def mobilenet(size: int) -> Any:
    """MobileNet v1: depthwise 3x3, then 1x1."""
    b = Building()
    x, before = b.conv("x", (3, 32), 3, 2), 32
    for after, stride in [
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
        (1024, 1),
    ]:  # fmt: skip
        x = b.conv(x, (before, before), 3, stride, groups=before)
        x, before = b.conv(x, (before, after), 1), after
    return b.model(b.conv(x, (before, 1000), 1, relu=False), size, "mobilenet")


def resnet50(size: int) -> Any:
    """ResNet-50: bottlenecks of 1x1, 3x3 and 1x1 beside a shortcut."""
    b = Building()
    x, before = b.pool(b.conv("x", (3, 64), 7, 2)), 64
    for width, count, first in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for k in range(count):
            stride, after = first if k == 0 else 1, 4 * width
            inner = b.conv(b.conv(x, (before, width), 1), (width, width), 3, stride)
            outer = b.conv(inner, (width, after), 1, relu=False)
            short = b.conv(x, (before, after), 1, stride, relu=False) if k == 0 else x
            x, before = b.node("Relu", [b.node("Add", [outer, short])]), after
    return b.model(b.conv(x, (before, 1000), 1, relu=False), size, "resnet50")


def mobilenet2(size: int) -> Any:
    """MobileNet v2: 1x1 to more channels, depthwise 3x3, 1x1 to fewer, and a shortcut."""
    b = Building()
    x, before = b.conv("x", (3, 32), 3, 2), 32
    for factor, after, count, first in [
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:  # fmt: skip
        for k in range(count):
            stride, width = first if k == 0 else 1, factor * before
            wide = b.conv(x, (before, width), 1) if factor > 1 else x
            deep = b.conv(wide, (width, width), 3, stride, groups=width)
            narrow = b.conv(deep, (width, after), 1, relu=False)
            x = b.node("Add", [x, narrow]) if stride == 1 and before == after else narrow
            before = after
    x = b.conv(x, (before, 1280), 1)
    return b.model(b.conv(x, (1280, 1000), 1, relu=False), size, "mobilenet2")


def vgg16(size: int) -> Any:
    """VGG-16: 3x3 convolutions, and three dense layers."""
    b = Building()
    x, before = "x", 3
    for width, count in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(count):
            x, before = b.conv(x, (before, width), 3), width
        x = b.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x, before = b.node("Flatten", [x]), before * (size // 32) ** 2
    for width in (4096, 4096):
        x, before = b.node("Relu", [b.dense(x, before, width)]), width
    return b.flattened(b.dense(x, before, 1000), size, "vgg16")


def inception3(size: int) -> Any:
    """Inception v3: branches of 1x1, 3x3, 5x5, 1x7 and 7x1 and poolings, concatenated."""
    b = Building()

    def convs(x: str, *widths: tuple[int, int, int | tuple[int, int]], stride: int = 1) -> str:
        """Convolutions one after another; only the last one has the stride, and then no padding."""
        for k, (before, after, kernel) in enumerate(widths):
            last = k == len(widths) - 1 and stride > 1
            x = b.conv(x, (before, after), kernel, stride if last else 1, padded=not last)
        return x

    def mean(x: str) -> str:
        window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}
        return b.node("AveragePool", [x], **window)

    def concat(*parts: str) -> str:
        return b.node("Concat", [*parts], axis=1)

    x = b.conv("x", (3, 32), 3, 2, padded=False)
    x = b.conv(b.conv(x, (32, 32), 3, padded=False), (32, 64), 3)
    x = b.conv(b.pool(x, padded=False), (64, 80), 1)
    x = b.pool(b.conv(x, (80, 192), 3, padded=False), padded=False)
    for n, pooled in [(192, 32), (256, 64), (288, 64)]:
        x = concat(
            convs(x, (n, 64, 1)),
            convs(x, (n, 48, 1), (48, 64, 5)),
            convs(x, (n, 64, 1), (64, 96, 3), (96, 96, 3)),
            convs(mean(x), (n, pooled, 1)),
        )
    x = concat(
        convs(x, (288, 384, 3), stride=2),
        convs(x, (288, 64, 1), (64, 96, 3), (96, 96, 3), stride=2),
        b.pool(x, padded=False),
    )
    row, column = (1, 7), (7, 1)
    for c in (128, 160, 160, 192):
        x = concat(
            convs(x, (768, 192, 1)),
            convs(x, (768, c, 1), (c, c, row), (c, 192, column)),
            convs(x, (768, c, 1), (c, c, column), (c, c, row), (c, c, column), (c, 192, row)),
            convs(mean(x), (768, 192, 1)),
        )
    x = concat(
        convs(x, (768, 192, 1), (192, 320, 3), stride=2),
        convs(x, (768, 192, 1), (192, 192, row), (192, 192, column), (192, 192, 3), stride=2),
        b.pool(x, padded=False),
    )
    for n in (1280, 2048):
        one, two = convs(x, (n, 384, 1)), convs(x, (n, 448, 1), (448, 384, 3))
        sides = [convs(y, (384, 384, k)) for y in (one, two) for k in ((1, 3), (3, 1))]
        x = concat(convs(x, (n, 320, 1)), *sides, convs(mean(x), (n, 192, 1)))
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    return b.flattened(b.dense(x, 2048, 1000), size, "inception3")


NETWORKS: dict[str, Callable[[int], Any]] = {
    "squeezenet": squeezenet,
    "mobilenet": mobilenet,
    "mobilenet2": mobilenet2,
    "resnet50": resnet50,
    "vgg16": vgg16,
    "inception3": inception3,
}
SIZES = {"inception3": 299}  # the height and width of its images, if not 224


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--size", type=int, default=None)
    parser.add_argument("--db", type=Path, default=None)
    parser.add_argument("--explore", type=float, default=0)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--declared-order", action="store_true")
    parser.add_argument("--memory-limit", type=float, default=None)
    given = parser.parse_args()
    if given.explore and given.db is None:
        parser.error("--explore needs --db, the folder for the campaigns")
    model = NETWORKS[given.network](given.size or SIZES.get(given.network, 224))
    net = lp.network(model)
    net = (net if given.declared_order else net.channels_last()).joined()
    if given.explore:
        explored = net.explore(db=given.db, time_limit=given.explore)
        print(f"{len(net)} operations; the sum of the best times is {explored.total:.3f} ms")
    limit = None if given.memory_limit is None else int(given.memory_limit * (1 << 20))
    plan = net.plan([given.db] if given.db else [], memory_limit=limit)
    x = plan.random_inputs()
    found = plan.run(x)["y"]
    runs = {"liftpy": host(lambda: plan.run(x))}
    try:
        import onnxruntime  # noqa: PLC0415  it is compared with if it is there
    except ImportError:
        print("ONNX Runtime is not installed: only liftpy is timed")
    else:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        wanted = np.asarray(session.run(None, x)[0])
        error = np.abs(found - wanted).max() / np.abs(wanted).max()
        print(f"the largest difference is {error:.1e} of the largest value")
        assert error < 1e-4, error
        runs["ONNX Runtime"] = host(lambda: session.run(None, x))
    turns = {name: partial(turn, run) for name, run in runs.items()}
    samples, others = timed_alternately(turns, given.repeats, rest=SPINNING)
    for name, figures in samples.items():
        print(f"{name:14}{statistics.median(figures['wall']) / 1e6:10.3f} ms")
    print(f"other work took {others:.0%} of the processors in the rests")
    p = plan.point
    print(f"arena {p.arena} bytes, at least {p.bound}; constants {p.constants} bytes")
    for one in plan.front:
        time_ms = "unknown time" if one.time_ns is None else f"{one.time_ns / 1e6:.3f} ms"
        print(f"  {one.memory / (1 << 20):9.2f} MiB {time_ms:>12}")
    plan.close()
    if "ONNX Runtime" in runs:
        print(f"ONNX Runtime took {runtime_memory(model, x):.1f} MiB")


GROWTH = """
import sys
import numpy as np, onnxruntime as runtime

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

def run(path, given):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for _ in range(3):
        session.run(None, given)
    return session

first, path, image = sys.argv[1:]
kept = run(first, {"x": np.zeros(2, np.float32)})
given, before = {"x": np.load(image)}, resident()
session = run(path, given)
print((resident() - before) / 1024)
"""
"""A program that prints the MiB by which it grows when it loads and runs a model."""


def runtime_memory(model: Any, inputs: dict[str, Any]) -> float:
    """The MiB that ONNX Runtime takes for a model and keeps: weights, packed weights, tensors."""
    two = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", two[:1], two[1:])
    one = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("one.onnx", "model.onnx", "x.npy")]
        paths[0].write_bytes(one.SerializeToString())
        paths[1].write_bytes(model.SerializeToString())
        np.save(paths[2], inputs["x"])
        command = [sys.executable, "-c", GROWTH, *map(str, paths)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()

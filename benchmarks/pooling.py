"""Pooling layers of four networks, timed alternately with PyTorch, ONNX Runtime and OpenVINO.

    python benchmarks/pooling.py [--backward] [--layers 'vgg16/*'] [--samples 40] [--rounds 15]

Forward, each layer is a campaign with the default search, limited to `--time-limit` seconds; its
fastest candidate is timed alternately with PyTorch in both memory layouts, ONNX Runtime, OpenVINO,
and a copy that reads and writes as many bytes as the layer's input and result have. `--backward`
times the gradients with respect to the image instead: that of maxima from the stored places of the
maxima, and that of averages as `lp.gradient` derives it. Their peers are PyTorch's backward
functions.

`ratio` is the fastest peer's time over liftpy's, `copy` the copy's over liftpy's. `error` is the
largest difference from PyTorch, relative to the largest number; maxima must agree exactly. Times
are medians on the host.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from gradients import Arrays, fastest, from_image, image, ours
from peers.graph import serialised
from turns import SPINNING, host, timed_alternately, turn

import liftpy as lp
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.ir.types import size_bytes
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.workloads.pool_gradients import from_argmax
from liftpy.workloads.pooling import Pooling, argmax, everywhere, inside, largest, pooled

Runs = dict[str, tuple[Callable[[], Any], Callable[[], np.ndarray]]]
"""For each peer, what is timed, and its result in the layout of the program."""

THREADS = 2


@dataclass(frozen=True)
class Layer:
    """A pooling layer with the image and the window that a network has in Keras.

    Windows of maxima are not padded, even where those of Keras are. Averages do not count padding.
    """

    network: str
    kind: str
    side: int
    channels: int
    window: int = 3
    stride: int = 2
    padding: int = 0

    @property
    def name(self) -> str:
        """Unique among the layers of this file."""
        return f"{self.network}/{self.kind}/{self.side}x{self.side}x{self.channels}"

    @property
    def sizes(self) -> Pooling:
        """The sizes of the program."""
        return Pooling(
            channels=self.channels,
            height=self.side,
            width=self.side,
            window=(self.window, self.window),
            stride=(self.stride, self.stride),
            padding=(self.padding, self.padding, self.padding, self.padding),
        )

    @property
    def forward(self) -> lp.Program:
        """The layer as a program."""
        body = {"max": largest, "average": inside, "global": everywhere}[self.kind]
        return pooled(self.sizes, "layer", body)

    @property
    def backward(self) -> lp.Program:
        """The gradient with respect to the image."""
        if self.kind == "max":
            return from_argmax(self.sizes, "layer_gradient")
        return lp.gradient(self.forward, "x")

    def peers(self, x: np.ndarray) -> Runs:
        """Each library that computes the layer, from one image."""
        functions = torch.nn.functional
        sizes = self.window, self.stride, self.padding
        compute: Callable[[torch.Tensor], torch.Tensor] = {
            "max": lambda t: functions.max_pool2d(t, *sizes),
            "average": lambda t: functions.avg_pool2d(t, *sizes, count_include_pad=False),
            "global": lambda t: functions.adaptive_avg_pool2d(t, 1),
        }[self.kind]
        found: Runs = {}
        for last in (True, False):
            given = image(x, last=last)
            found[f"PyTorch {'NHWC' if last else 'NCHW'}"] = (
                partial(compute, given),
                lambda given=given: self.result(compute(given).numpy()),
            )
        nchw = image(x, last=False).numpy()
        model = self.model(nchw.shape, compute(torch.from_numpy(nchw)).shape)
        return found | {
            "ONNX Runtime": self.onnx_runtime(model, nchw),
            "OpenVINO": self.openvino(model, nchw),
        }

    def result(self, nchw: np.ndarray) -> np.ndarray:
        """The result of a batch of one, in the layout of the program."""
        last = nchw[0].transpose(1, 2, 0)
        return last[0, 0] if self.kind == "global" else last

    def model(self, taken: tuple[int, ...], given: tuple[int, ...]) -> bytes:
        """The layer as an ONNX model."""
        sides = {
            "kernel_shape": [self.window] * 2,
            "strides": [self.stride] * 2,
            "pads": [self.padding] * 4,
        }
        operator = {"max": "MaxPool", "average": "AveragePool", "global": "GlobalAveragePool"}
        attributes: dict[str, Any] = {} if self.kind == "global" else sides
        node = onnx.helper.make_node(operator[self.kind], ["x"], ["y"], **attributes)
        return serialised([node], "layer", tuple(taken), tuple(given), {})

    def onnx_runtime(
        self, model: bytes, nchw: np.ndarray
    ) -> tuple[Callable[[], Any], Callable[[], np.ndarray]]:
        """A session with its input and its output bound."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        y = onnxruntime.OrtValue.ortvalue_from_numpy(
            np.empty(session.get_outputs()[0].shape, np.float32)
        )
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(nchw))
        binding.bind_ortvalue_output("y", y)
        return partial(session.run_with_iobinding, binding), lambda: self.result(y.numpy())

    def openvino(
        self, model: bytes, nchw: np.ndarray
    ) -> tuple[Callable[[], Any], Callable[[], np.ndarray]]:
        """A request with its input and its output set."""
        import openvino  # noqa: PLC0415  its TBB must not be loaded before that of Intel's OpenCL

        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": THREADS,
        }
        compiled = core.compile_model(core.read_model(model), "CPU", settings)
        request = compiled.create_infer_request()
        y = np.empty(tuple(compiled.output(0).shape), np.float32)
        request.set_input_tensor(openvino.Tensor(nchw, shared_memory=True))
        request.set_output_tensor(openvino.Tensor(y, shared_memory=True))
        return request.infer, lambda: self.result(y)

    def backward_peers(self, arrays: Arrays, x: np.ndarray) -> Runs:
        """PyTorch's backward function, in both memory layouts."""
        sizes = [self.window] * 2, [self.stride] * 2, [self.padding] * 2
        (d,) = (array for name, array in arrays.items() if name not in {"x", "places"})
        found: Runs = {}
        for last in (True, False):
            given = image(x, last=last)
            if self.kind == "global":
                cotangent = torch.from_numpy(d)[None, :, None, None]
                whole = float(self.side * self.side)

                def run(given: Any = given, ct: Any = cotangent, whole: float = whole) -> Any:
                    return (ct / whole).expand_as(given).contiguous()

            elif self.kind == "average":
                run = partial(
                    torch.ops.aten.avg_pool2d_backward,
                    *(image(d, last=last), given, *sizes, False, False, None),
                )
            else:
                form = *sizes, [1, 1], False
                _, places = torch.ops.aten.max_pool2d_with_indices(given, *form)
                run = partial(
                    torch.ops.aten.max_pool2d_with_indices_backward,
                    *(image(d, last=last), given, *form, places),
                )
            name = f"PyTorch {'NHWC' if last else 'NCHW'}"
            found[name] = run, lambda run=run: from_image(run())
        return found


def layers() -> Iterator[Layer]:
    """The layers, by network."""
    for side, channels in ((147, 64), (71, 192), (35, 288), (17, 768)):
        yield Layer("inceptionv3", "max", side, channels)
    for side, channels in ((35, 192), (35, 256), (35, 288), (17, 768), (8, 1280), (8, 2048)):
        yield Layer("inceptionv3", "average", side, channels, stride=1, padding=1)
    yield Layer("inceptionv3", "global", 8, 2048, window=8)
    for side, channels in ((147, 128), (74, 256), (37, 728), (19, 1024)):
        yield Layer("xception", "max", side, channels)
    yield Layer("xception", "global", 10, 2048, window=10)
    yield Layer("resnet50", "max", 112, 64)
    yield Layer("resnet50", "global", 7, 2048, window=7)
    for side, channels in ((224, 64), (112, 128), (56, 256), (28, 512), (14, 512)):
        yield Layer("vgg16", "max", side, channels, window=2)


def given_arrays(layer: Layer, program: lp.Program, x: np.ndarray) -> dict[str, np.ndarray]:
    """An array for each parameter; the places of maxima are those of the image."""
    rng = np.random.default_rng(1)
    found: dict[str, np.ndarray] = {}
    for p in program.params:
        if p.name == "x":
            found[p.name] = x
        elif p.name == "places":
            _, found[p.name] = lp.evaluate(pooled(layer.sizes, "places", argmax), x)
        else:
            shape = [int(n) for n in p.type.lengths()]
            found[p.name] = rng.uniform(-1, 1, shape).astype(np.float32)
    return found


def copy_of(count: int) -> Callable[[], Any]:
    """A copy that reads and writes `count` bytes in all."""
    source = torch.ones(count // 8)
    target = torch.empty_like(source)
    return partial(target.copy_, source)


def compare(
    layer: Layer, session: Session, folder: Path, given: argparse.Namespace
) -> tuple[str, float]:
    """A row of the table, and its ratio."""
    shape = layer.side, layer.side, layer.channels
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    program = layer.backward if given.backward else layer.forward
    arrays = given_arrays(layer, program, x)
    loaded = fastest(program, session, folder, given)
    mine = run_poisoned(loaded, arrays)
    peers = layer.backward_peers(arrays, x) if given.backward else layer.peers(x)
    error = 0.0
    for run, result in peers.values():
        run()
        wanted = result()
        error = max(error, float(np.abs(mine - wanted).max() / np.abs(wanted).max()))
    if error > (0.0 if layer.kind == "max" and not given.backward else 1e-5):
        raise SystemExit(f"{layer.name}: the results differ by {error:.1e}")
    needed = sum(int(size_bytes(p.type)) for p in program.params)
    needed += int(size_bytes(program.body.body.type))
    turns = {name: partial(turn, host(run)) for name, (run, _) in peers.items()}
    turns["copy"] = partial(turn, host(copy_of(needed)))
    turns["liftpy"] = partial(turn, partial(ours, loaded))
    samples, others = timed_alternately(turns, given.rounds, SPINNING)
    times = {name: statistics.median(found["wall"]) / 1e6 for name, found in samples.items()}
    loaded.close()
    own, copied = times.pop("liftpy"), times.pop("copy")
    best = min(times, key=times.__getitem__)
    ratio = times[best] / own
    row = (
        f"{layer.name:31} {own:8.3f} {times[best]:8.3f} {best:13} {ratio:6.2f} "
        f"{copied / own:6.2f} {error:8.1e} {others:5.0%}"
    )
    return row, ratio


def main() -> None:
    """Prints a row for each layer, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--layers", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    chosen = [x for x in layers() if any(fnmatch.fnmatch(x.name, p) for p in given.layers)]
    if not chosen:
        names = ", ".join(x.name for x in layers())
        parser.error(f"no layer has such a name: {' '.join(given.layers)}; there are {names}")
    rows: list[str] = []
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Session(find_device(given.device)) as session:
        print(f"{session.device.name} ({session.device.platform})")
        for layer in chosen:
            row, ratio = compare(layer, session, Path(folder), given)
            print(row, flush=True)
            rows.append(row)
            ratios.append(ratio)
    names = ("layer", "ms", "peer ms", "fastest peer", "ratio", "copy", "error")
    print("\n{:31} {:>8} {:>8} {:13} {:>6} {:>6} {:>8} others".format(*names))
    print("\n".join(rows))
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()

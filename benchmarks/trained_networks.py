"""Compares trained models that Python packages contain with ONNX Runtime.

    pip install --no-deps magika rapidocr-onnxruntime silero-vad
    python benchmarks/trained_networks.py [MODEL ...] [--seed N]

MODEL is a name of `MODELS`; the default is all of them. Models whose packages are not installed are
skipped. Python does not import the packages. Each model is imported, stored with channels last,
joined, and run on the device with the first candidate of each program. ONNX Runtime computes the
nodes without a program, such as `If`. The inputs are random (seed --seed).

The difference of a result is the largest distance of an element from ONNX Runtime's, divided by the
largest value of ONNX Runtime's result. The largest difference of each model is printed. The exit
status is 1 if one exceeds 1e-4, or if no model was compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import liftpy as lp

LARGEST = 1e-4
"""The largest allowed difference, relative to the largest value of a result."""


@dataclass(frozen=True)
class Model:
    """A model in an installed package: its file, and the lengths of its dynamic dimensions.

    `shapes` are the shapes of the inputs; `given` has the values of those that are not random.
    """

    package: str
    file: str
    shapes: dict[str, tuple[int, ...]]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, Any] = field(default_factory=dict[str, Any])

    def path(self) -> Path | None:
        """The file; None if the package is not installed."""
        try:
            found = files(self.package) or []
        except ModuleNotFoundError:
            return None
        return next((Path(str(f.locate())) for f in found if f.name == self.file), None)


PADDLE = "p2o.DynamicDimension"
VOICE = {"input": (1, 512), "state": (2, 1, 128), "sr": ()}
RATE = {"sr": np.array(16000, np.int64)}
MODELS = {
    "file type": Model("magika", "model.onnx", {"bytes": (1, 2048)}, {"unk__214": 1}),
    "text detection": Model(
        "rapidocr-onnxruntime",
        "ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 160, 224)},
        {f"{PADDLE}.0": 1, f"{PADDLE}.1": 160, f"{PADDLE}.2": 224},
    ),
    "text recognition": Model(
        "rapidocr-onnxruntime",
        "ch_PP-OCRv4_rec_infer.onnx",
        {"x": (1, 3, 48, 160)},
        {f"{PADDLE}.0": 1, "x.2": 48, f"{PADDLE}.1": 160},
    ),
    "text upside down": Model(
        "rapidocr-onnxruntime",
        "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": (1, 3, 48, 192)},
        {"x.2": 48, "x.3": 192},
    ),
    "voice": Model(
        "silero-vad", "silero_vad_op18_ifless.onnx", VOICE, {"batch": 1, "sequence": 512}, RATE
    ),
    "voice, 16 kHz": Model(
        "silero-vad", "silero_vad_16k_op15.onnx", VOICE, {"batch": 1, "sequence": 512}, RATE
    ),
}


def compare(name: str, path: Path, seed: int) -> bool:
    """Whether the results of a model agree with ONNX Runtime's; prints a line about them."""
    model, rng = MODELS[name], np.random.default_rng(seed)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    types = {one.name: one.type for one in session.get_inputs()}
    inputs = {
        n: (rng.integers(0, 256, shape) if "int" in types[n] else rng.standard_normal(shape))
        for n, shape in model.shapes.items()
    }
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    given = {n: np.asarray(array, kinds[types[n]]) for n, array in inputs.items()} | model.given
    start = time.perf_counter()
    net = lp.network(path, sizes=model.sizes, partial=True)
    nodes, hosted = len(net), len(net.unsupported)
    joined = net.channels_last().joined()
    found = joined.run(given, reference=True)
    seconds = time.perf_counter() - start
    joined.close()
    wanted: Any = session.run(None, given)
    errors = [
        float(np.abs(found[one.name] - array).max() / np.abs(array).max())
        for one, array in zip(session.get_outputs(), wanted, strict=True)
    ]
    print(
        f"{name:17}{nodes:5} nodes, {hosted:3} of them without a program, {len(joined):4} joined: "
        f"{max(errors):.1e}, after {seconds:.1f} s"
    )
    return max(errors) <= LARGEST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], default=[])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    paths = {name: MODELS[name].path() for name in given.models or MODELS}
    for name in (name for name, path in paths.items() if path is None):
        print(f"{name}: the package {MODELS[name].package} is not installed")
    known = {name: path for name, path in paths.items() if path is not None}
    right = [compare(name, path, given.seed) for name, path in known.items()]
    sys.exit(0 if right and all(right) else 1)


if __name__ == "__main__":
    main()

"""Compares the real graphs that the package onnx carries with ONNX Runtime.

    python benchmarks/real_networks.py [GRAPH ...] [--seed N] [--meaning]

GRAPH is bvlc_alexnet, densenet121, inception_v1, inception_v2, resnet50, shufflenet, squeezenet,
vgg19 or zfnet512; by default, all of them. All elements of a weight of these graphs are equal, so
wrong kernels may give right results: random weights (seed --seed) replace them. The operations are
joined, and the network runs on the device with the first candidate of each program. The result of
each joined operation and that of the whole network are compared with those of ONNX Runtime, or of
ONNX's reference evaluator if it is not installed. With --meaning, the meaning of each operation in
NumPy is compared instead, evaluated on the arrays that the other has computed. The exit status is 1
if a result differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

try:
    import onnxruntime
except ImportError:
    onnxruntime: Any = None

import liftpy as lp
from liftpy.networks.comparing import errors_of, tolerance_of
from liftpy.networks.evaluating import known_error
from liftpy.networks.executing import by_meaning

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx"))


def with_random_weights(name: str, seed: int, side: int | None = None) -> Any:
    """A graph with random weights, scaled so that values keep their magnitude from layer to layer.

    `side` replaces the height and width of the image, which only graphs that end in global pooling
    allow.
    """
    model: Any = onnx.load(FOLDER / f"light_{name}.onnx")
    model.ir_version = 8  # the first versions list every initializer among the inputs
    graph = model.graph
    rng = np.random.default_rng(seed)
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    norms = [node.input for node in graph.node if node.op_type == "BatchNormalization"]
    factors = {n for given in norms for n in (given[1], given[4])}  # the scale, the variance
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in made:
        shape = tuple(shapes[node.input[0]])
        if node.output[0] in factors:
            array = rng.uniform(0.5, 1.5, shape)
        elif len(shape) == 1:
            array = rng.standard_normal(shape) / 4
        else:
            array = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        tensor = numpy_helper.from_array(array.astype(np.float32), node.output[0])
        graph.initializer.append(tensor)
        graph.node.remove(node)
    if side is not None:
        weights = {t.name for t in graph.initializer}
        (image,) = [value for value in graph.input if value.name not in weights]
        for dim in image.type.tensor_type.shape.dim[2:]:
            dim.dim_value = side
        del graph.value_info[:]
    return model


def computed(model: Any, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors of a model as ONNX Runtime computes them, or the reference evaluator without it."""
    own: Any = onnx.ModelProto()
    own.CopyFrom(model)
    declared = {value.name for value in own.graph.output}
    for name in names:
        if name not in declared:
            own.graph.output.add(name=name)
    if onnxruntime is None:
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  it takes a second

        found = ReferenceEvaluator(own).run([*names], dict(given))
    else:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # it warns of each initializer that is an input
        session = onnxruntime.InferenceSession(
            own.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found = session.run([*names], dict(given))
    return dict(zip(names, found, strict=True))


def by_operation(graph: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The results of all operations by their meaning, each on the given arrays."""
    found: dict[str, Any] = {}
    for o in graph.operations:
        given = [graph.constants.get(n, arrays.get(n)) for n in o.inputs]
        found |= dict(zip(o.outputs, by_meaning(o, o.program, given), strict=True))
    return found


def compare(name: str, seed: int = 0, side: int | None = None, *, meaning: bool = False) -> str:
    """A line with the largest difference of a graph; AssertionError if it exceeds the tolerance."""
    start = time.perf_counter()
    model = with_random_weights(name, seed, side)
    net = lp.network(model).joined()
    graph = net.graph
    borders = [n for o in graph.operations for n in o.outputs]
    rng = np.random.default_rng(seed + 1)
    given = {
        n: rng.standard_normal(graph.tensors[n].shape).astype(np.float32) for n in graph.inputs
    }
    wanted = computed(model, borders, given)
    if meaning:
        found = by_operation(graph, {**wanted, **given})
    else:
        tensors = {n: replace(t, result=n in borders) for n, t in graph.tensors.items()}
        whole = lp.Network(replace(graph, tensors=tensors, outputs=tuple(borders)))
        found = whole.run(given)
        whole.close()
        shared = net.run(given)  # here the results of operations share memory; above, they do not
        net.close()
        for n, array in shared.items():
            assert np.array_equal(array, found[n]), f"{name}: {n} differs in a shared arena"
    wrong = [o for o in net if onnxruntime is None and known_error(graph, o)]
    errors: dict[str, float] = {}
    for n in [n for n in borders if n not in {out for o in wrong for out in o.outputs}]:
        t = graph.tensors[n].type
        assert np.ptp(wanted[n]) > 0, f"{name}: all elements of {n} are equal"
        errors[n] = float(errors_of(t, found[n], wanted[n]).max())
        assert errors[n] <= tolerance_of(t, None), f"{name}: {n} differs by {errors[n]:.2e}"
    worst = max(errors, key=errors.__getitem__)
    skipped = f", not compared: {', '.join(o.name for o in wrong)}" if wrong else ""
    return (
        f"{name:14}{len(net):4} operations  largest difference {errors[worst]:.1e} of the largest "
        f"value, in {worst}  {time.perf_counter() - start:.0f} s{skipped}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", nargs="*", choices=[[], *NAMES])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--meaning", action="store_true")
    given = parser.parse_args()
    failed = False
    for name in given.graph or NAMES:
        try:
            print(compare(name, given.seed, meaning=given.meaning), flush=True)
        except AssertionError as error:
            failed = True
            print(f"DIFFERS {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

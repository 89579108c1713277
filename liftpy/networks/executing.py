"""A network computed operation by operation, with arrays in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import ArgumentRefused, NetworkRefused, plural
from liftpy.ir.program import Program
from liftpy.networks.graph import Graph, Operation, listed
from liftpy.opencl.foreign import on_host
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.operations import DTYPES

Array = NDArray[Any]
Step = Callable[[Operation, Program, Sequence[Array]], Sequence[Array]]
"""Computes an operation's outputs by its program, from its inputs."""
Reference = Callable[[Graph, Operation, Mapping[str, Array]], Sequence[Array]]
"""Computes the outputs of an operation without a program, from all arrays that it reads."""


def result_of(part: Any) -> Any:
    """A result of another library: an array of NumPy, or for a sequence of ONNX, a list of them."""
    return [*map(result_of, part)] if isinstance(part, list) else np.asarray(part)


def by_meaning(_: Operation, program: Program, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of an operation by the meaning of its program."""
    found = evaluate(program, *arrays)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


def given_inputs(
    graph: Graph,
    inputs: Mapping[str, Any] | Sequence[Any],
    kept: Callable[[Any], bool] = lambda _: False,
) -> dict[str, Array]:
    """The inputs by name; ArgumentRefused if one is missing, unknown, or of another type.

    They are arrays of NumPy, except those that are `kept`: arrays on a device.
    """
    given = cast("object", inputs)
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str | bytes):
        raise ArgumentRefused(
            f"{graph.name} takes its inputs by name, {{'NAME': array}}, or as a list, "
            f"not {type(given).__name__}"
        )
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(graph.inputs):
            raise ArgumentRefused(
                f"{graph.name} takes {plural(len(graph.inputs), 'input')}, got {len(inputs)}\n"
                f"  its inputs are: {', '.join(graph.inputs) or 'none'}"
            )
        inputs = dict(zip(graph.inputs, inputs, strict=True))
    missing = [name for name in graph.inputs if name not in inputs]
    unknown = sorted(inputs.keys() - {*graph.inputs})
    if missing or unknown:
        what = f"misses {', '.join(missing)}" if missing else f"has no input {', '.join(unknown)}"
        raise ArgumentRefused(
            f"{graph.name} {what}\n  its inputs are: {', '.join(graph.inputs) or 'none'}"
        )
    found = {n: x if kept(x := inputs[n]) else on_host(n, x) for n in graph.inputs}
    for name, array in found.items():
        if name not in graph.tensors:
            continue  # of a type that the language does not have: only the reference reads it
        tensor = graph.tensors[name]
        wanted = np.dtype(DTYPES[tensor.type.name])
        if array.shape != tensor.shape or array.dtype != wanted:
            raise ArgumentRefused(
                f"{name} needs {wanted} numbers of shape {tensor.shape}, "
                f"got {array.dtype} of shape {array.shape}"
            )
    return found


def check_programs(
    graph: Graph, consequence: str = "with reference=True, the host computes them"
) -> None:
    """NetworkRefused if operations have no program; the message ends with `consequence`."""
    if graph.unsupported:
        raise NetworkRefused(
            f"{graph.name} has {plural(len(graph.unsupported), 'node')} without a program:\n"
            f"{listed(graph.unsupported)}\n  {consequence}",
            graph.unsupported,
        )


def execute(
    graph: Graph,
    inputs: Mapping[str, Any] | Sequence[Any],
    step: Step,
    reference: Reference | None = None,
) -> dict[str, Array]:
    """Computes all outputs, operation by operation; a tensor is freed after its last reader.

    NetworkRefused if operations have no program, unless `reference` computes these.
    """
    if reference is None:
        check_programs(graph)
    held = given_inputs(graph, inputs)
    held |= graph.constants
    place = {name: k for k, o in enumerate(graph.operations) for name in o.reads}
    for k, operation in enumerate(graph.operations):
        if operation.program is None:
            found = reference(graph, operation, held) if reference is not None else ()
        else:
            arrays = [held[name] for name in operation.inputs]
            found = step(operation, operation.program, arrays)
        held |= dict(zip(operation.outputs, found, strict=True))
        for name in {*operation.reads} - {*graph.outputs}:
            if place.get(name) == k and name in held and name not in graph.constants:
                del held[name]
    own = {*graph.inputs, *graph.constants}  # what a caller changes must not be read again
    return {name: held[name].copy() if name in own else held[name] for name in graph.outputs}


def random_arrays(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Random numbers for all inputs: normally distributed floats, and integers of 0 and 1.

    There are none for inputs of a type that the language does not have.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name in (name for name in graph.inputs if name in graph.tensors):
        tensor = graph.tensors[name]
        t = np.dtype(DTYPES[tensor.type.name])
        made = rng.standard_normal(tensor.shape)
        found[name] = np.asarray(made if t.kind == "f" else made > 0).astype(t)
    return found

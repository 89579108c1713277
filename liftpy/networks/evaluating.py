"""ONNX's reference evaluator: for nodes without a program, and to compare operations with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liftpy.errors import NetworkRefused, plural
from liftpy.ir.program import Program
from liftpy.networks import onnx_library as library
from liftpy.networks.channels_last import described
from liftpy.networks.comparing import errors_of, tolerance_of
from liftpy.networks.executing import Array, Step, by_meaning, execute, result_of
from liftpy.networks.graph import Graph, Operation, Tensor
from liftpy.networks.operators import REGISTRY
from liftpy.networks.operators.resizing import misread


def by_reference(graph: Graph, operation: Operation, held: Mapping[str, Array]) -> list[Array]:
    """The outputs of an operation by ONNX's reference evaluator, with axes ordered as stored."""
    if operation.parts:
        inner = dict(held)
        for part in operation.parts:
            inner |= zip(part.outputs, by_reference(graph, part, inner), strict=True)
        return [inner[name] for name in operation.outputs]
    node, opsets = library.node_from(operation.node), graph.opsets
    if operation.operator == "BatchNormalization" and opsets.get("", 0) in range(7, 14):
        # in these, the evaluator uses the statistics of the batch; at inference, 15 is the same
        opsets = {**opsets, "": 15}
        for attribute in [a for a in node.attribute if a.name == "spatial"]:
            node.attribute.remove(attribute)
    found = library.reference_results(node, opsets, declared_inputs(graph, operation, held))
    results = [result_of(part) for part in found if part is not None]
    if not operation.channels_last:
        return results
    tensors = {**graph.inside, **graph.tensors}
    return [tensors[n].stored(r) for n, r in zip(operation.outputs, results, strict=True)]


def declared_inputs(
    graph: Graph, operation: Operation, held: Mapping[str, Array]
) -> dict[str, Array]:
    """The arrays that a node reads, with axes ordered as the model declares them."""
    tensors = {**graph.inside, **graph.tensors}
    return {
        n: tensors[n].declared(held[n]) if n in tensors else held[n] for n in operation.reads if n
    }


# --- comparison -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """The first element of an output in which an operation and the reference differ."""

    operation: str
    operator: str
    tensor: str
    index: tuple[int, ...]
    got: Any
    wanted: Any
    tolerance: float

    def __str__(self) -> str:
        return (
            f"{self.operation} ({self.operator}): `{self.tensor}` at {[*self.index]} is "
            f"{self.got}, and ONNX's reference evaluator has {self.wanted}; "
            f"the tolerance is {self.tolerance:g}"
        )


@dataclass(frozen=True)
class Check:
    """A comparison of operations with ONNX's reference evaluator.

    `errors` are the largest differences of each operation, relative to the largest value of its
    result. `difference` is the first that exceeds the tolerance, or None. `skipped` are the
    operations that are not compared, since the evaluator fails or is known to be wrong, with the
    reason.
    """

    errors: Mapping[str, float]
    difference: Difference | None
    skipped: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Whether all operations that are compared agree."""
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        worst = max(self.errors.values(), default=0.0)
        many = plural(len(self.errors), "operation")
        agree = "agrees" if len(self.errors) == 1 else "agree"
        lines = [
            f"{many} {agree} with ONNX's reference evaluator; the largest error is {worst:.2g}"
        ]
        if self.skipped:
            lines.append(f"not compared: {plural(len(self.skipped), 'operation')}")
            lines += [f"  {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def known_error(graph: Graph, operation: Operation) -> str:
    """What ONNX's reference evaluator is known to compute wrongly in an operation, or nothing."""
    if operation.parts:
        return next(filter(None, (known_error(graph, part) for part in operation.parts)), "")
    node = library.node_from(operation.node)
    schema = library.schema_of(node, graph.opsets)
    given = library.attributes_of(node, schema)
    tensors = {**graph.inside, **graph.tensors}
    shape = next((tensors[n].declared_shape for n in operation.reads if n in tensors), (1,))
    match operation.operator:
        case "Softmax" | "LogSoftmax" | "Hardmax":
            if schema.since_version < 13 and given["axis"] % max(1, len(shape)) != len(shape) - 1:
                return "it does not join the axes from `axis` on, as opsets before 13 do"
        case "BatchNormalization":
            if schema.since_version < 7:
                return "it uses the statistics of the batch before opset 7, as in training"
        case "GlobalMaxPool":
            if len(shape) != 4:
                return "it reduces two spatial dimensions whatever the rank"
        case "LpNormalization":
            if given.get("p") == 1:
                return "it does not take the absolute values for p=1"
        case "LRN":
            if shape[:1] != shape[1:2]:
                return "it normalizes as many channels as there are images"
        case "Resize":
            known = replace(graph, tensors=tensors)
            if misread(described(known, operation, REGISTRY["Resize"])):
                return "it rounds coordinates to f64, and reads other elements"
        case _:
            pass
    return ""


def check(
    graph: Graph,
    inputs: Mapping[str, Any] | Sequence[Any],
    tolerance: float | None = None,
    step: Step = by_meaning,
) -> Check:
    """Compares each operation with ONNX's reference evaluator, on the inputs that `step` computes.

    The comparison ends at the first difference. Integers and booleans must be equal; the tolerance
    of floats is relative to the largest absolute value of the result, by default `TOLERANCES`.
    Operations in which the evaluator fails or is known to be wrong are not compared.
    """
    errors: dict[str, float] = {}
    skipped: dict[str, str] = {}
    found: list[Difference] = []

    def compared(
        operation: Operation, program: Program, arrays: Sequence[Array]
    ) -> Sequence[Array]:
        results = step(operation, program, arrays)
        if found:
            return results
        if reason := known_error(graph, operation):
            skipped[operation.name] = f"ONNX's reference evaluator is wrong: {reason}"
            return results
        held = {**graph.constants, **dict(zip(operation.inputs, arrays, strict=True))}
        try:
            wanted = by_reference(graph, operation, held)
        except NetworkRefused as refused:  # the result says so
            skipped[operation.name] = str(refused)
            return results
        for name, got, other in zip(operation.outputs, results, wanted, strict=True):
            tensor = graph.tensors[name]
            error, difference = compare(operation, tensor, got, other, tolerance)
            errors[operation.name] = max(error, errors.get(operation.name, 0.0))
            if difference is not None:
                found.append(difference)
                break
        return results

    execute(graph, inputs, compared, by_reference)
    return Check(errors, found[0] if found else None, skipped)


def compare(
    operation: Operation, tensor: Tensor, got: Array, wanted: Array, tolerance: float | None
) -> tuple[float, Difference | None]:
    """The largest relative difference of two arrays, and the first that exceeds the tolerance."""
    allowed = tolerance_of(tensor.type, tolerance)
    if got.shape != wanted.shape:
        what = Difference(
            operation.name, operation.operator, tensor.name, (), got.shape, wanted.shape, allowed
        )
        return np.inf, what
    errors = errors_of(tensor.type, got, wanted)
    worst = float(errors.max()) if errors.size else 0.0
    if worst <= allowed:
        return worst, None
    index = np.unravel_index(int(np.argmax(errors > allowed)), errors.shape)
    place = tuple(int(k) for k in index)
    return worst, Difference(
        operation.name,
        operation.operator,
        tensor.name,
        place,
        got[place].item(),
        np.asarray(wanted)[place].item(),
        allowed,
    )

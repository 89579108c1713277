"""Reading of ONNX models: this and `onnx_parts` alone import the library `onnx`.

A model is untrusted: it is data, nothing of it is executed, and nothing is written.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import checker, defs, helper, inliner, numpy_helper, reference, shape_inference
from onnx.backend.base import Backend, BackendRep

from liftpy.errors import MemoryRefused, NetworkRefused, a_few
from liftpy.files.reading import opened
from liftpy.ir.types import ScalarType
from liftpy.memory import available
from liftpy.networks.graph import SCALAR_OF
from liftpy.networks.onnx_parts import nodes_of, tensors_of
from liftpy.networks.operators.node import Shape

__all__ = ["Backend", "BackendRep", "Model", "NodeProto", "TypeProto"]

Model: TypeAlias = onnx.ModelProto
NodeProto: TypeAlias = onnx.NodeProto
TypeProto: TypeAlias = onnx.TypeProto

DOMAINS = ("", "ai.onnx")
"""The names of ONNX's own operator set."""

OLDEST, NEWEST = 6, defs.onnx_opset_version()
"""The opsets that are read. Before 11, operators whose attributes became inputs are read too."""


# --- reading --------------------------------------------------------------------------------------


def read(source: object) -> tuple[Model, str]:
    """A model, with the data of its external tensors, and its name for messages.

    The source is a path, bytes or a ModelProto. NetworkRefused if it is none of these, if it cannot
    be decoded, or if its data are outside of the model's folder.
    """
    if isinstance(source, onnx.ModelProto):
        model, name, folder = onnx.ModelProto(), "the model", None
        model.CopyFrom(source)
    elif isinstance(source, bytes):
        model, name, folder = decoded(source, "the model"), "the model", None
    elif not isinstance(source, str | os.PathLike):
        raise NetworkRefused(
            f"a model is a path, bytes or an onnx.ModelProto, not of type {type(source).__name__}"
        )
    else:
        path = Path(source)
        name, folder = str(path), path.parent
        with opened(path, available(), NetworkRefused) as file:
            model = decoded(file.read(), name)
    load_external(model, name, folder)
    return model, name


def decoded(data: bytes, name: str) -> Model:
    """A model in the protobuf encoding."""
    try:
        model = onnx.ModelProto.FromString(data)
    except (DecodeError, RecursionError) as error:
        raise NetworkRefused(
            f"{name} is not an ONNX model: it cannot be decoded as a protobuf; "
            "it may be truncated, or a file of another kind"
        ) from error
    if not model.HasField("graph"):
        raise NetworkRefused(f"{name} is not an ONNX model: it has no graph")
    return model


def load_external(model: Model, name: str, folder: Path | None) -> None:
    """Reads the data of tensors that are stored in other files, which must be in the folder."""
    for tensor in tensors_of(model):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        where = {entry.key: entry.value for entry in tensor.external_data}
        what = f"the data of `{tensor.name}`, which {name} keeps in `{where.get('location', '')}`,"
        if folder is None:
            raise NetworkRefused(
                f"{what} cannot be read: the model has no folder\n  pass the path of the model, or "
                "load its external data first"
            )
        path, root = (folder / where.get("location", "")).resolve(), folder.resolve()
        if not path.is_relative_to(root) or path == root:
            raise NetworkRefused(
                f"{what} cannot be read: it is outside of the model's folder\n  external data must "
                "be beside the model"
            )
        try:
            offset, length = int(where.get("offset", 0)), int(where.get("length", -1))
        except ValueError as error:
            raise NetworkRefused(f"{what} cannot be read: {error}") from error
        with opened(path, available(), NetworkRefused, what) as file:
            size = file.seek(0, os.SEEK_END)
            if not 0 <= offset <= offset + max(0, length) <= size:
                raise NetworkRefused(
                    f"{what} cannot be read: {length if length >= 0 else 'the'} bytes from "
                    f"{offset} are not in the file, which has {size}"
                )
            file.seek(offset)
            data = file.read(length if length >= 0 else -1)
        tensor.raw_data = data
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


# --- checking -------------------------------------------------------------------------------------

REFUSALS = (checker.ValidationError, shape_inference.InferenceError, ValueError, RuntimeError)
"""The exceptions of onnx for a model that is not valid."""


def checked(model: Model, name: str) -> Mapping[str, int]:
    """Checks a model with ONNX's checker; returns the versions of its operator sets by domain."""
    opsets = versions(model.opset_import)
    version = opsets.get("")
    if version is not None and not OLDEST <= version <= NEWEST:
        raise NetworkRefused(
            f"{name} uses opset {version} of ONNX\n  opsets {OLDEST} to {NEWEST} are read; "
            "onnx.version_converter converts between opsets"
        )
    for tensor in tensors_of(model):
        check_size(tensor.name, tuple(tensor.dims), tensor.data_type)
    check_names(model.graph, name)
    check_calls(model, name)  # before the checker and shape inference, which follow each call
    try:
        checker.check_model(model)
    except REFUSALS as error:
        raise NetworkRefused(f"{name} is not valid, says ONNX's checker:\n  {error}") from error
    return opsets


def check_names(graph: onnx.GraphProto, name: str) -> None:
    """NetworkRefused if two initializers or two nodes compute a tensor of the same name."""
    initial: set[str] = set()
    for tensor in graph.initializer:
        if tensor.name in initial:
            raise NetworkRefused(f"{name} is not valid: two initializers are named `{tensor.name}`")
        initial.add(tensor.name)
    found: dict[str, str] = {}
    for node in graph.node:
        own = node.name or node.op_type
        for output in filter(None, node.output):
            if output in found:
                raise NetworkRefused(
                    f"{name} is not valid: {own} ({node.op_type}) computes `{output}`, which "
                    f"{found[output]} computes too"
                )
            found[output] = own


def check_size(name: str, shape: Shape, kind: int) -> None:
    """MemoryRefused if a tensor is larger than the free memory."""
    if any(n < 0 for n in shape):
        raise NetworkRefused(f"the tensor `{name}` has a negative length: {[*shape]}")
    try:
        each = helper.tensor_dtype_to_np_dtype(kind).itemsize
    except (KeyError, ValueError) as error:
        raise NetworkRefused(f"the tensor `{name}` has the unknown type {kind}") from error
    total = each
    for n in shape:
        total *= n
    if total > (free := available()):
        raise MemoryRefused(
            f"the tensor `{name}` of shape {[*shape]} needs {total} bytes, and {free} are free"
        )


MOST_NODES = 1 << 15
"""The largest number of nodes of a model after its own functions are inlined."""


def check_calls(model: Model, name: str) -> None:
    """NetworkRefused if the calls of a model's own functions make too many nodes.

    Functions that call each other make a number of nodes exponential in the size of the model.
    """
    functions = {(f.domain, f.name, f.overload): f.node for f in model.functions}
    if not functions:
        return
    called = {
        own: Counter((n.domain, n.op_type, n.overload) for n in nodes_of(nodes))
        for own, nodes in {**functions, None: model.graph.node}.items()
    }
    counts: dict[Any, int] = {}
    try:
        for own in TopologicalSorter(called).static_order():
            if own in called:
                counts[own] = sum(many * counts[n] for n, many in called[own].items())
            else:
                counts[own] = 1
    except CycleError as error:
        words = " -> ".join(word for _, word, _ in error.args[1])
        raise NetworkRefused(f"{name} is not valid: a function calls itself: {words}") from error
    found = counts[None]
    if found > MOST_NODES:
        raise NetworkRefused(
            f"{name} has {found} nodes after its functions are inlined, and at most {MOST_NODES} "
            "are read\n  a function is inlined at each of its calls: call it less often"
        )


def inlined(model: Model, name: str, opsets: Mapping[str, int], kept: Container[str]) -> Model:
    """The model with calls of functions replaced by their bodies, until none is left.

    These are the model's own functions, and the operators that ONNX defines by a function, except
    those in `kept`. A function of ONNX that its inliner cannot take stays a node.
    """
    try:
        own = inliner.inline_local_functions(model)
    except REFUSALS as error:
        raise NetworkRefused(f"{name}: a function cannot be inlined:\n  {error}") from error
    before: Counter[tuple[str, str]] = Counter()
    while before != (calls := called_functions(own.graph, opsets, kept)):
        before = calls
        write_defaults(own, opsets, kept)
        for call in sorted(calls):
            try:
                own = inliner.inline_selected_functions(own, [call], inline_schema_functions=True)
            except REFUSALS:
                continue
    return own


def called_functions(
    graph: onnx.GraphProto, opsets: Mapping[str, int], kept: Container[str]
) -> Counter[tuple[str, str]]:
    """How often a graph calls each operator that ONNX defines by a function, except `kept`."""
    nodes = (n for n in graph.node if function_schema(n, opsets, kept) is not None)
    return Counter((n.domain, n.op_type) for n in nodes)


def function_schema(node: NodeProto, opsets: Mapping[str, int], kept: Container[str]) -> Any:
    """The schema of a node whose operator ONNX defines by a function; else, or if kept, None."""
    schema = None if node.op_type in kept else schema_of(node, opsets)
    if schema is None or not (schema.has_function or schema.has_context_dependent_function):
        return None
    return schema


def write_defaults(model: Model, opsets: Mapping[str, int], kept: Container[str]) -> None:
    """Gives calls of ONNX's functions, except those in `kept`, the attributes of their defaults.

    Neither the inliner nor shape inference does, for the attributes that the body refers to.
    """
    parts = [(node, opsets) for node in nodes_of(model.graph.node)]
    for function in model.functions:
        own = versions(function.opset_import)
        parts += [(node, own) for node in nodes_of(function.node)]
    for node, own in parts:
        schema = function_schema(node, own, kept)
        if schema is not None:
            given = {a.name for a in node.attribute}
            defaults = (a.default_value for n, a in schema.attributes.items() if n not in given)
            node.attribute.extend(a for a in defaults if a.type)


def versions(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The versions of operator sets by domain; "" is ONNX's own."""
    return {("" if o.domain in DOMAINS else o.domain): o.version for o in imports}


def check_shapes(model: Model, name: str) -> None:
    """Runs ONNX's shape inference over the whole model; NetworkRefused if types contradict."""
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except REFUSALS as error:
        raise NetworkRefused(
            f"{name} is not valid, says ONNX's shape inference:\n  {error}"
        ) from error


# --- nodes ----------------------------------------------------------------------------------------


def schema_of(node: NodeProto, opsets: Mapping[str, int]) -> Any:
    """The schema of a node's operator in its opset; None if ONNX has none."""
    domain = "" if node.domain in DOMAINS else node.domain
    if domain not in opsets or not defs.has(node.op_type, opsets[domain], domain):
        return None
    return defs.get_schema(node.op_type, opsets[domain], domain)


def attributes_of(node: NodeProto, schema: Any) -> dict[str, Any]:
    """The attributes of a node, with the defaults of its schema; words and tensors decoded."""
    given = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
    given |= {a.name: a for a in node.attribute}
    return {name: plain(helper.get_attribute_value(a)) for name, a in given.items()}


def plain(value: Any) -> Any:
    """The value of an attribute as Python's numbers, words, lists, or an array."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return array(value)
    return value


def array(tensor: onnx.TensorProto) -> NDArray[Any]:
    """The value of a tensor; NetworkRefused if its data do not have its shape.

    Data in another file are refused: `read` has loaded those, and onnx would look for the file in
    the current folder.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise NetworkRefused(
            f"the data of the tensor `{tensor.name}` are in another file, and are not loaded\n"
            "  pass the path of the model to lp.network"
        )
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise NetworkRefused(
            f"the tensor `{tensor.name}` has data that do not fit its shape {[*tensor.dims]}: "
            f"{error}"
        ) from error


def tensor_type(value: NDArray[Any] | list[Any]) -> TypeProto:
    """The type of an array, or of a sequence: of floats if it is empty."""
    if isinstance(value, list):
        first = value[0] if value else np.empty(0, np.float32)
        element = helper.np_dtype_to_tensor_dtype(first.dtype)
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element, None))
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def number_type(t: TypeProto) -> np.dtype[Any] | None:
    """NumPy's type for the elements of a tensor type; None if there is none."""
    kind = t.tensor_type.elem_type
    return helper.tensor_dtype_to_np_dtype(kind) if kind else None


def scalar_and_shape(t: TypeProto | None) -> tuple[ScalarType | None, Shape | None, str]:
    """The scalar type and shape of a tensor type, None if unknown, and its name for messages."""
    if t is None or not t.HasField("tensor_type"):
        kind = "unknown" if t is None or t.WhichOneof("value") is None else t.WhichOneof("value")
        return None, None, str(kind).replace("_type", "")
    kind = t.tensor_type.elem_type
    name = onnx.TensorProto.DataType.Name(kind) if kind else "unknown"
    scalar = None
    if name not in {"STRING", "UNDEFINED"} and kind:
        scalar = SCALAR_OF.get(helper.tensor_dtype_to_np_dtype(kind))
    shape = None
    dims = t.tensor_type.shape.dim
    if t.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
        shape = tuple(d.dim_value for d in dims)
    return scalar, shape, name


MOST_PROPAGATED = 1 << 12
"""The largest number of elements of a constant that shape inference is given."""


def result_types(
    node: NodeProto,
    schema: Any,
    types: Mapping[str, TypeProto],
    values: Mapping[str, NDArray[Any]],
    opsets: Mapping[str, int],
) -> dict[str, TypeProto]:
    """The types of a node's outputs, for its inputs' types and known values.

    NetworkRefused if the inputs contradict the operator.
    """
    data = {
        name: numpy_helper.from_array(values[name], name)
        for name in node.input
        if name in values and values[name].size <= MOST_PROPAGATED
    }
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        return shape_inference.infer_node_outputs(
            schema, node, {n: types[n] for n in node.input if n in types}, data, None, imports
        )
    except REFUSALS as error:
        what = node.name or a_few(node.output)
        raise NetworkRefused(f"{what} ({node.op_type}): {error}") from error


def with_old_defaults(node: NodeProto, opsets: Mapping[str, int]) -> NodeProto:
    """The node with the default attributes of its version that a newer version has changed.

    The reference evaluator has the newest defaults for all versions, as in the axis of Softmax.
    """
    schema = schema_of(node, opsets)
    if schema is None or not defs.has(node.op_type, node.domain):
        return node
    newest = defs.get_schema(node.op_type, node.domain).attributes
    given = {a.name for a in node.attribute}
    found = onnx.NodeProto()
    found.CopyFrom(node)
    for name, attribute in schema.attributes.items():
        own = attribute.default_value
        if name not in given and name in newest and own.type and own != newest[name].default_value:
            found.attribute.append(own)
    return found


UNEVALUATED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""The exceptions of the reference evaluator, which checks little before it computes."""


def reference_results(
    node: NodeProto, opsets: Mapping[str, int], inputs: Mapping[str, NDArray[Any]]
) -> list[Any]:
    """The outputs of a node by ONNX's reference evaluator; NetworkRefused if it cannot."""
    results = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
    model = model_of(with_old_defaults(node, opsets), opsets, inputs, results)
    try:
        with np.errstate(all="ignore"):
            found = reference.ReferenceEvaluator(model).run(None, dict(inputs))
    except UNEVALUATED as error:
        what = node.name or a_few(node.output)
        raise NetworkRefused(
            f"{what} ({node.op_type}): ONNX's reference evaluator fails: {error}"
        ) from error
    results = iter(list(found))
    return [next(results) if n else None for n in node.output]


def model_of(
    node: NodeProto,
    opsets: Mapping[str, int],
    inputs: Mapping[str, NDArray[Any]],
    results: Iterable[onnx.ValueInfoProto],
) -> Model:
    """A model of one node, whose inputs have the types of arrays."""
    declared = [helper.make_value_info(n, tensor_type(v)) for n, v in inputs.items()]
    graph = helper.make_graph([node], "node", declared, [*results])
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports)


def model_of_call(node: NodeProto, version: int, inputs: Mapping[str, NDArray[Any]]) -> Model:
    """A model of one node of ONNX's own operators; its results have the types that ONNX infers."""
    opsets = {"": version}
    schema = schema_of(node, opsets)
    if schema is None:
        raise NetworkRefused(f"ONNX has no operator {node.op_type} in opset {version}")
    types = {n: tensor_type(v) for n, v in inputs.items()}
    found = result_types(node, schema, types, inputs, opsets)
    results = [helper.make_value_info(n, found[n]) for n in node.output if n in found]
    return model_of(node, opsets, inputs, results)


def identity(name: str, to: str) -> NodeProto:
    """A node that copies a tensor."""
    return helper.make_node("Identity", [name], [to])


def node_from(data: bytes) -> NodeProto:
    """A node from its encoding."""
    return onnx.NodeProto.FromString(data)

"""ONNX models as graphs of programs: shapes fixed, constants folded, a program for each node."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import LiftError, NetworkRefused
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import ScalarType, TupleType, Type
from liftpy.language.embedded.lang import Constant, array_type, const, program
from liftpy.networks import onnx_library as library
from liftpy.networks.graph import Graph, Operation, Tensor, Unsupported, readers_of
from liftpy.networks.inputs import fix_sizes, given_values
from liftpy.networks.onnx_parts import captured, graphs_in, inputs_of
from liftpy.networks.operators import REGISTRY, Declined, Entry, Node, Operand
from liftpy.networks.operators.node import Body, known
from liftpy.semantics.operations import DTYPES

RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators whose results may differ from run to run: Dropout's do in training."""

COSTLY = frozenset(
    {
        "ImageDecoder",
        "RegexFullMatch",
        "StringConcat",
        "StringNormalizer",
        "StringSplit",
        "TfIdfVectorizer",
    }
)
"""Operators that run a parser on data of the model: matching an expression has no bound on time."""


def graph_of(
    source: Any,
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a model; nodes that have no program are marked in it.

    NetworkRefused, or another LiftError, if the model is not valid.
    """
    model, name = library.read(source)
    opsets = library.checked(model, name)
    constants = given_values(model, name, values or {})
    fixed = fix_sizes(model, name, sizes or {}, constants)
    library.write_defaults(model, opsets, REGISTRY)
    library.check_shapes(model, name)
    model = library.inlined(model, name, opsets, REGISTRY)
    return Importing(model, name, opsets, fixed, constants).graph()


MEASURED = frozenset({"Shape", "Size", "EyeLike"})
"""Operators whose results depend only on the shape of their input."""


# --- graphs ---------------------------------------------------------------------------------------


class Importing:
    """The import of one model: what is known of its tensors, in the order of its nodes."""

    def __init__(
        self,
        model: library.Model,
        name: str,
        opsets: Mapping[str, int],
        sizes: Mapping[str, int],
        values: Mapping[str, NDArray[Any]],
    ) -> None:
        self.model, self.name, self.opsets, self.sizes = model, name, opsets, sizes
        self.types: dict[str, library.TypeProto] = {}
        self.values: dict[str, NDArray[Any]] = {}
        self.sources: dict[str, frozenset[str]] = {}
        """The inputs of the network on which a tensor depends."""
        self.operations: list[Operation] = []
        self.names: set[str] = set()
        self.programs: dict[Any, Program | Declined] = {}
        self.distinct: dict[Program, Program] = {}
        self.inputs = self._inputs(values)
        self.used = {value.name for value in model.graph.output}
        for node in model.graph.node:
            self.used |= {*node.input, *captured(node)}
        """The tensors that nodes read or the network returns; other outputs are left out."""

    def _inputs(self, values: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
        """Declares initializers and inputs; returns the names of the inputs."""
        for tensor in self.model.graph.initializer:
            self.know(tensor.name, library.array(tensor))
        inputs: list[str] = []
        for value in inputs_of(self.model):
            self.types[value.name] = value.type
            self.sources[value.name] = frozenset({value.name})
            if value.name in values:
                self.know(value.name, values[value.name])
            else:
                inputs.append(value.name)
        return tuple(inputs)

    def know(self, name: str, value: NDArray[Any]) -> None:
        """Records the value of a constant tensor."""
        self.values[name] = value
        self.types[name] = library.tensor_type(value)
        self.sources[name] = frozenset()

    def graph(self) -> Graph:
        """The graph of all nodes that the outputs need."""
        for node in self.model.graph.node:
            self.visit(node)
        outputs = tuple(value.name for value in self.model.graph.output)
        operations = needed(self.operations, outputs)
        tensors = self.tensors(operations, outputs)
        read = {*outputs}.union(*(o.reads for o in operations))
        return Graph(
            self.model.graph.name or self.name,
            operations,
            tensors,
            {n: self.values[n] for n in sorted(read & self.values.keys() - tensors.keys())},
            self.inputs,
            outputs,
            dict(self.sizes),
            dict(self.opsets),
        )

    def visit(self, node: library.NodeProto) -> None:
        """Folds a node, or makes its operation."""
        called = self.call(node)
        schema = library.schema_of(node, self.opsets)
        if schema is None:
            domain = node.domain or "ai.onnx"
            self.add(node, called, Declined(f"domain {domain} has no such operator in this opset"))
            return
        for k, name in enumerate(node.output):
            last = len(schema.outputs) - 1
            if name not in self.used and schema.outputs[min(k, last)].option.name == "Optional":
                node.output[k] = ""
        typed = all(n in self.types for n in node.input if n)
        inner = any(graphs_in(node))
        found = {}
        if typed and not inner:
            found = library.result_types(node, schema, self.types, self.values, self.opsets)
        self.types |= found
        reads = (*node.input, *captured(node))
        depends = frozenset[str]().union(*(self.sources.get(n, frozenset()) for n in reads))
        self.sources |= {n: depends for n in node.output if n}
        if not inner and self.fold(node, called):
            return
        try:
            made = self.made(node, called, schema, inner=inner)
        except Declined as declined:
            made = declined
        self.add(node, called, made)

    def call(self, node: library.NodeProto) -> str:
        """The name of a node; those without a name are called by their operator and output."""
        wanted = node.name or f"{node.op_type}_{next((o for o in node.output if o), '')}"
        name, k = wanted, 1
        while name in self.names:
            k += 1
            name = f"{wanted}#{k}"
        self.names.add(name)
        return name

    def fold(self, node: library.NodeProto, called: str) -> bool:
        """Computes the outputs of a node in NumPy, if its inputs are constant or only measured."""
        if node.op_type in RANDOM | COSTLY or node.domain not in library.DOMAINS:
            return False
        inputs = [n for n in node.input if n]
        if node.op_type in MEASURED:
            scalar, shape, _ = library.scalar_and_shape(self.types.get(inputs[0]))
            if shape is None or scalar is None:
                return False
            given = {inputs[0]: np.broadcast_to(np.zeros((), DTYPES[scalar.name]), shape)}
        elif all(n in self.values for n in inputs):
            given = {n: self.values[n] for n in inputs}
        else:
            return False
        for n in filter(None, node.output):
            t = self.types.get(n)
            _, shape, _ = library.scalar_and_shape(t)
            if t is not None and shape is not None:
                library.check_size(f"{n} of {called}", shape, t.tensor_type.elem_type)
        try:
            results = library.reference_results(node, self.opsets, given)
        except NetworkRefused:  # it is then an operation like others, with a program or a reason
            return False
        if not all(isinstance(r, np.ndarray | np.generic | type(None)) for r in results):
            return False
        for n, value in zip(node.output, results, strict=True):
            if n:
                self.know(n, np.asarray(value))
        return True

    def add(
        self, node: library.NodeProto, called: str, made: tuple[Program, tuple[str, ...]] | Declined
    ) -> None:
        """Appends the operation of a node."""
        reads, writes = (*node.input, *captured(node)), tuple(node.output)
        outputs = tuple(n for n in writes if n)
        self.sources |= {n: self.sources.get(n, frozenset()) for n in outputs}
        refusal, program_, inputs = None, None, tuple(filter(None, reads))
        if isinstance(made, Declined):
            needs = self.sources.get(made.tensor, frozenset())
            domain = "" if node.domain in library.DOMAINS else f"{node.domain}."
            refusal = Unsupported(
                called, domain + node.op_type, made.attribute, made.reason, tuple(sorted(needs))
            )
        else:
            program_, inputs = made
        self.operations.append(
            Operation(
                called, node.op_type, inputs, outputs, program_, node.SerializeToString(), reads,
                writes, refusal,
            )
        )  # fmt: skip

    # --- programs ---------------------------------------------------------------------------------

    def made(
        self, node: library.NodeProto, called: str, schema: Any, *, inner: bool
    ) -> tuple[Program, tuple[str, ...]]:
        """The program of a node and the tensors that are its arguments; Declined if it has none."""
        entry = REGISTRY.get(node.op_type) if node.domain in library.DOMAINS else None
        if entry is None:
            why = (
                "control flow with inner graphs is not expressed" if inner else "it has no program"
            )
            raise Declined(why)
        operands = [
            self.operand(schema, k, n, decides=k in entry.decided_by)
            for k, n in enumerate(node.input)
        ]
        for k in entry.decided_by:
            if k < len(operands):
                known(operands[k])
        results = [self.typed(n, "output") if n else None for n in node.output]
        attributes = library.attributes_of(node, schema)
        described = Node(called, node.op_type, schema.since_version, attributes, operands, results)
        data = entry.data(described)
        key = recipe(described, entry)
        if key not in self.programs:
            self.programs[key] = self.built(described, entry, data)
        found = self.programs[key]
        if isinstance(found, Declined):
            raise found
        return found, tuple(o.tensor for o in data)

    def built(self, node: Node, entry: Entry, data: list[Operand]) -> Program | Declined:
        """The program of a node, one object for equal programs; Declined if it has none."""
        try:
            made = program_of(node, entry, data)
        except Declined as declined:
            return declined
        except LiftError as error:
            what, _, why = str(error).partition("\n")
            reasons = [line.strip() for line in why.splitlines() if " | " not in line][:1]
            return Declined(f"the language refuses its program: {': '.join([what, *reasons])}")
        return self.distinct.setdefault(made, made)

    def operand(self, schema: Any, position: int, name: str, *, decides: bool) -> Operand | None:
        """An input of a node; one that decides the program may have no elements."""
        if not name:
            return None
        t, shape = self.typed(name, "input", empty=decides and name in self.values)
        declared = schema.inputs[min(position, len(schema.inputs) - 1)]
        several = position >= len(schema.inputs) - 1 and declared.option.name == "Variadic"
        called = f"{declared.name}_{position}" if several else declared.name
        return Operand(called, name, t, shape, self.values.get(name))

    def typed(
        self, name: str, what: str, *, empty: bool = False
    ) -> tuple[ScalarType, tuple[int, ...]]:
        """The type and shape of a tensor; Declined if the language has no such arrays."""
        scalar, shape, kind = library.scalar_and_shape(self.types.get(name))
        if scalar is None:
            raise Declined(f"the {what} `{name}` has the type {kind}")
        if shape is None:
            raise Declined(f"the {what} `{name}` has no static shape: it depends on values")
        if 0 in shape and not empty:
            raise Declined(f"the {what} `{name}` of shape {[*shape]} has no elements")
        return scalar, shape

    def tensors(
        self, operations: Iterable[Operation], outputs: tuple[str, ...]
    ) -> dict[str, Tensor]:
        """The tensors that operations read and write, and the network's own."""
        operations = tuple(operations)
        producers = {n: o.name for o in operations for n in o.outputs}
        readers = readers_of(operations)
        read = {n for o in operations for n in o.reads if n}
        found: dict[str, Tensor] = {}
        for name in dict.fromkeys([*self.inputs, *producers, *sorted(read), *outputs]):
            scalar, shape, _ = library.scalar_and_shape(self.types.get(name))
            if scalar is None or shape is None:
                continue
            found[name] = Tensor(
                name,
                scalar,
                shape,
                producers.get(name),
                tuple(readers.get(name, ())),
                self.values.get(name),
                name in outputs,
            )
        return found


def needed(operations: list[Operation], outputs: tuple[str, ...]) -> tuple[Operation, ...]:
    """The operations whose outputs are needed, in their order."""
    wanted, kept = {*outputs}, list[Operation]()
    for operation in reversed(operations):
        if wanted & {*operation.outputs}:
            wanted |= {n for n in operation.reads if n}
            kept.append(operation)
    return tuple(reversed(kept))


# --- programs -------------------------------------------------------------------------------------


def recipe(node: Node, entry: Entry) -> Any:
    """What decides the program of a node: nodes with equal recipes have equal programs."""
    folded = entry.decided_by | entry.if_constant.keys()
    operands = tuple(
        None
        if o is None
        else (
            o.name,
            o.type,
            o.shape,
            o.last,
            o.value is None,
            o.value.tobytes() if k in folded and o.value is not None else b"",
        )
        for k, o in enumerate(node.operands)
    )
    attributes = tuple(
        (n, v.tobytes() if isinstance(v, np.ndarray) else str(v))
        for n, v in sorted(node.attributes.items())
    )
    results = tuple(node.results)
    return node.operator, node.version, attributes, operands, results, node.channels_last


def program_of(node: Node, entry: Entry, data: list[Operand]) -> Program:
    """The program of a node, whose parameters are its data inputs."""
    body = entry.build(node)
    names = [snake(o.name) for o in data]
    types: dict[str, Type | Constant] = {}
    for name, o in zip(names, data, strict=True):
        t = typed_array(o.type, o.stored_shape)
        types[name] = t if o.value is None else const(t)
    made = program(function(snake(node.operator), names, types, body))
    wanted = [typed_array(t, node.stored(shape)) for t, shape in filter(None, node.results)]
    found = made.body.body.type
    parts = found.elements if isinstance(found, TupleType) else (found,)
    if [*map(str, parts)] != [*map(str, wanted)]:
        raise Declined(
            f"its program returns {', '.join(map(str, parts))}, and ONNX's shape inference has "
            f"{', '.join(map(str, wanted))}"
        )
    return made


def typed_array(t: ScalarType, shape: tuple[int, ...]) -> Type:
    """The type of arrays of a shape; that of a scalar if there are no dimensions."""
    return array_type(t, *shape) if shape else t


def function(name: str, names: list[str], types: Mapping[str, Type | Constant], body: Body) -> Any:
    """A Python function with these parameters, as `lp.program` takes it."""

    def traced(*given: Expr) -> Expr:
        found = body(*given)
        if isinstance(found, tuple):
            return found[0] if len(found) == 1 else Tuple(found)
        return found

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(traced)["__signature__"] = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    traced.__name__ = name
    traced.__annotations__ = dict(types)
    return traced


def snake(name: str) -> str:
    """`GlobalAveragePool` as `global_average_pool`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

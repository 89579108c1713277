"""Plans as files: a header, a checksum, JSON with a schema, and the constants as bytes.

    8 bytes     LIFTPLAN
    4 bytes     the version of the format, little-endian as all numbers
    32 bytes    the sha256 of everything that follows
    8 bytes     the length of the JSON text
    the JSON text, in UTF-8
    the constants, one after another, each in C order

The file holds expressions and assignments, from which kernels are derived when it is loaded; it
holds no code. Their checksums are compared with those in the file. Nodes without a program, and the
constants that only such nodes read, are in ONNX's encoding, in base64.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from liftpy.constraints.device import Device
from liftpy.errors import InternalError, LiftError, StoreRefused
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.settings import Settings
from liftpy.files.reading import opened
from liftpy.ir.program import Program
from liftpy.ir.types import SCALARS, STORAGE
from liftpy.language.text.program import parse
from liftpy.memory import available
from liftpy.networks.graph import Graph, Operation, Tensor, Unsupported
from liftpy.networks.host_nodes import by_onnx
from liftpy.networks.layout import Layout
from liftpy.networks.planning import Point
from liftpy.opencl.arguments import DTYPES

MAGIC = b"LIFTPLAN"
FORMAT = 3
READABLE = (2, 3)  # plans of format 2 have no operations on the host
HEADER = len(MAGIC) + 4 + 32 + 8

Name = Annotated[str, StringConstraints(max_length=4096)]
LongText = Annotated[str, StringConstraints(max_length=1 << 22)]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Natural = Annotated[int, Field(ge=0, le=2**60)]
Nanoseconds = Annotated[int, Field(ge=0, le=10**15)]


@dataclass(frozen=True)
class PlannedCandidate:
    """The candidate of an operation: `kernels` is the sha256 of its kernels and manifest.

    `time_ns` is the sum of its kernels' times; None if it was not measured.
    """

    skeleton: str
    assignment: Settings
    time_ns: int | None
    kernels: str


def total_ns(choices: Iterable[PlannedCandidate]) -> int | None:
    """The sum of the times of some candidates; None if one of them was not measured."""
    times = [choice.time_ns for choice in choices]
    known = [t for t in times if t is not None]
    return sum(known) if len(known) == len(times) else None


@dataclass(frozen=True)
class PlanData:
    """What a plan consists of. `graph` has the order of execution, `choices` are by operation.

    An operation without kernels (`layout.unmoved`) has no choice.

    `front` are the costs of other plans too. `version` is that of liftpy.
    """

    graph: Graph
    choices: Mapping[str, PlannedCandidate]
    layout: Layout
    point: Point
    front: tuple[Point, ...]
    device: Device
    version: str


def _of_tensor(name: str) -> str:
    """The name of a scalar type, if tensors may have it; ValueError otherwise."""
    names = [n for n, scalar in SCALARS.items() if scalar not in STORAGE]
    if name not in names:
        raise ValueError(f"Input should be one of {', '.join(names)}")
    return name


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TensorFields(_Strict):
    """A tensor: an `offset` in the arena, or `constant`, an offset in the part with constants."""

    name: Name
    type: Annotated[str, AfterValidator(_of_tensor)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=2**40)]], Field(max_length=64)]
    offset: Natural | None = None
    constant: Natural | None = None


class HostFields(_Strict):
    """A node without a program, which the host computes: the node in ONNX's encoding, and why."""

    node: str
    reads: Annotated[list[Name], Field(max_length=1 << 16)]
    writes: Annotated[list[Name], Field(max_length=1 << 16)]
    operator: Name
    attribute: Name
    reason: LongText


class OperationFields(_Strict):
    """An operation: its program by number, its candidate, and the names of its tensors.

    An operation without kernels has no `skeleton`, no `time_ns` and no `kernels`. One that the host
    computes has no `program` either.
    """

    name: Name
    operator: Name
    program: Natural | None
    inputs: Annotated[list[Name], Field(max_length=1 << 16)]
    outputs: Annotated[list[Name], Field(max_length=1 << 16)]
    skeleton: LongText | None
    assignment: dict[Name, int | Name]
    time_ns: Nanoseconds | None
    kernels: Hash | None
    scratch: Natural | None
    host: HostFields | None = None


class PointFields(_Strict):
    """The costs of a plan."""

    time_ns: Nanoseconds | None
    arena: Natural
    constants: Natural
    bound: Natural
    proved: bool


class PlanFields(_Strict):
    """A plan without the values of constants."""

    network: Name
    version: Name
    device: dict[Name, Any]
    programs: Annotated[list[LongText], Field(max_length=1 << 16)]
    operations: Annotated[list[OperationFields], Field(max_length=1 << 16)]
    tensors: Annotated[list[TensorFields], Field(max_length=1 << 20)]
    inputs: Annotated[list[Name], Field(max_length=1 << 16)]
    outputs: Annotated[list[Name], Field(max_length=1 << 16)]
    alignment: Annotated[int, Field(ge=1, le=1 << 20)]
    point: PointFields
    front: Annotated[list[PointFields], Field(max_length=1 << 12)]
    opsets: dict[Name, Natural] = Field(default_factory=dict[str, int])
    foreign: dict[Name, str] = Field(default_factory=dict[str, str])


# --- writing --------------------------------------------------------------------------------------


def encoded(plan: PlanData) -> bytes:
    """A plan as the contents of a file."""
    graph, layout = plan.graph, plan.layout
    numbers = {id(program): k for k, program in enumerate(graph.programs)}
    used = {n for o in graph.operations for n in (*o.inputs, *o.outputs)}
    used = (used | {*graph.inputs, *graph.outputs}) & graph.tensors.keys()
    foreign = {n for o in graph.operations if o.program is None for n in o.reads}
    parts: list[bytes] = []
    tensors: list[dict[str, Any]] = []
    at = 0
    for name in sorted(used):
        tensor = graph.tensors[name]
        tensors.append({"name": name, "type": tensor.type.name, "shape": list(tensor.shape)})
        if tensor.value is not None:
            parts.append(np.ascontiguousarray(tensor.value).tobytes())
            tensors[-1]["constant"] = at
            at += len(parts[-1])
        elif name in layout.tensors:
            tensors[-1]["offset"] = layout.tensors[name]
    data = {
        "network": graph.name,
        "version": plan.version,
        "device": plan.device.to_json(),
        "programs": [program_text(program) for program in graph.programs],
        "operations": [
            {
                "name": o.name,
                "operator": o.operator,
                "program": None if o.program is None else numbers[id(o.program)],
                "inputs": list(o.inputs),
                "outputs": list(o.outputs),
                **_candidate(plan.choices.get(o.name)),
                "scratch": layout.scratch.get(o.name),
                "host": _host(graph, o),
            }
            for o in graph.operations
        ],
        "tensors": tensors,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "alignment": layout.alignment,
        "point": _point(plan.point),
        "front": [_point(point) for point in plan.front],
        "opsets": dict(graph.opsets),
        "foreign": {
            n: base64.b64encode(by_onnx("onnx_stored").encoded_array(array)).decode()
            for n, array in graph.foreign.items()
            if n in foreign
        },
    }
    text = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    rest = b"".join([len(text).to_bytes(8, "little"), text, *parts])
    return b"".join([MAGIC, FORMAT.to_bytes(4, "little"), hashlib.sha256(rest).digest(), rest])


def _host(graph: Graph, operation: Operation) -> dict[str, Any] | None:
    """The fields of a node that the host computes; null for an operation with a program."""
    why = operation.unsupported
    if operation.program is not None or why is None:
        return None
    tensors = [graph.tensors[n] for n in operation.reads if n in graph.tensors]
    if moved := [t.name for t in tensors if t.order]:
        raise InternalError(
            f"{graph.name}: {operation.name} has no program, and reads {moved[0]}, whose axes are "
            "not stored as declared"
        )
    return {
        "node": base64.b64encode(operation.node).decode(),
        "reads": list(operation.reads),
        "writes": list(operation.writes),
        "operator": why.operator,
        "attribute": why.attribute,
        "reason": why.reason,
    }


def _candidate(choice: PlannedCandidate | None) -> dict[str, Any]:
    """The fields of a candidate; null if there is none."""
    if choice is None:
        return {"skeleton": None, "assignment": {}, "time_ns": None, "kernels": None}
    return {
        "skeleton": choice.skeleton,
        "assignment": dict(choice.assignment),
        "time_ns": choice.time_ns,
        "kernels": choice.kernels,
    }


def _point(point: Point) -> dict[str, Any]:
    return {name: getattr(point, name) for name in PointFields.model_fields}


# --- reading --------------------------------------------------------------------------------------


def decoded(path: Path) -> PlanData:
    """The plan in a file. StoreRefused for a file that is damaged or no plan.

    Its graph is consistent; candidates and offsets are not checked here.
    """
    fields, constants = _parts(path)
    try:
        device = Device.from_json(fields.device)
        graph = _graph(path, fields, constants)
    except (TypeError, ValueError) as error:
        raise StoreRefused(f"{path} is not a valid plan: {error}") from error
    front = tuple(map(_costs, fields.front))
    return PlanData(
        graph,
        _choices(fields),
        _layout(fields),
        _costs(fields.point),
        front,
        device,
        fields.version,
    )


def _parts(path: Path) -> tuple[PlanFields, bytes]:
    """The fields of a plan and its constants. StoreRefused for a damaged file."""
    with opened(path, available(), StoreRefused) as file:
        data = file.read()
    if data[: len(MAGIC)] != MAGIC or len(data) < HEADER:
        raise StoreRefused(f"{path} is not a plan: `liftpy plan MODEL -o {path}` makes one")
    version = int.from_bytes(data[8:12], "little")
    if version not in READABLE:
        raise StoreRefused(
            f"{path} is a plan of format {version}, and this liftpy reads formats "
            f"{' and '.join(map(str, READABLE))}"
        )
    if hashlib.sha256(data[44:]).digest() != data[12:44]:
        raise StoreRefused(f"{path} is damaged: it does not match its checksum")
    length = int.from_bytes(data[44:HEADER], "little")
    if length > len(data) - HEADER:
        raise StoreRefused(f"{path} is damaged: its text would have {length} bytes")
    try:
        fields = PlanFields.model_validate_json(data[HEADER : HEADER + length])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreRefused(f"{path} is not a valid plan: {where}: {first['msg']}") from error
    return fields, data[HEADER + length :]


def _graph(path: Path, fields: PlanFields, constants: bytes) -> Graph:
    """The graph of a plan; ValueError if names or types do not fit."""
    programs = [_program(path, text) for text in fields.programs]
    producers = {n: o.name for o in fields.operations for n in o.outputs}
    readers: dict[str, list[str]] = {}
    for o in fields.operations:
        for n in dict.fromkeys(o.inputs):
            readers.setdefault(n, []).append(o.name)
    tensors = {
        t.name: Tensor(
            t.name,
            cast("Any", SCALARS[t.type]),
            tuple(t.shape),
            producers.get(t.name),
            tuple(readers.get(t.name, ())),
            _constant(t, constants),
            t.name in fields.outputs,
        )
        for t in fields.tensors
    }
    operations = tuple(_operation(o, programs) for o in fields.operations)
    foreign = {
        n: by_onnx("onnx_stored").decoded_array(n, base64.b64decode(data, validate=True))
        for n, data in fields.foreign.items()
    }
    graph = Graph(
        fields.network, operations, tensors, foreign, tuple(fields.inputs), tuple(fields.outputs),
        {}, fields.opsets,
    )  # fmt: skip
    _check_order(graph)
    return graph


def _operation(o: OperationFields, programs: list[Program]) -> Operation:
    """An operation; ValueError unless it has either a program or a node for the host."""
    inputs, outputs = tuple(o.inputs), tuple(o.outputs)
    if o.program is not None and o.host is None:
        program = _at(programs, o.program)
        return Operation(o.name, o.operator, inputs, outputs, program, b"", inputs, outputs)
    if o.host is None or o.program is not None or o.skeleton is not None:
        raise ValueError(f"{o.name} needs either a program or a node for the host")
    reads, writes = tuple(o.host.reads), tuple(o.host.writes)
    if (*filter(None, reads),) != inputs or (*filter(None, writes),) != outputs:
        raise ValueError(f"{o.name} and its node read or write different tensors")
    why = Unsupported(o.name, o.host.operator, o.host.attribute, o.host.reason)
    node = base64.b64decode(o.host.node, validate=True)
    by_onnx("onnx_stored").check_node(o.name, node)
    return Operation(o.name, o.operator, inputs, outputs, None, node, reads, writes, why)


def _program(path: Path, text: str) -> Program:
    try:
        return parse(text)
    except LiftError as error:
        raise StoreRefused(f"{path} is not a valid plan: it has no program: {error}") from error


def _at(programs: list[Program], k: int) -> Program:
    if k >= len(programs):
        raise ValueError(f"it has {len(programs)} programs, and an operation has number {k}")
    return programs[k]


def _constant(t: TensorFields, constants: bytes) -> Any:
    """The value of a constant."""
    if t.constant is None:
        return None
    size = math.prod(t.shape) * DTYPES[t.type].itemsize
    if t.constant + size > len(constants):
        raise ValueError(f"the constant {t.name} is not in the file")
    found = np.frombuffer(constants, DTYPES[t.type], math.prod(t.shape), t.constant)
    return found.reshape(t.shape)


def _check_order(graph: Graph) -> None:
    """ValueError unless each operation reads what is there, by the types of its program."""
    if len({o.name for o in graph.operations}) < len(graph.operations):
        raise ValueError("two operations have one name")
    known = {*graph.inputs} | graph.constants.keys()
    on_host = {n for o in graph.operations if o.program is None for n in (*o.inputs, *o.outputs)}
    for name in (*graph.inputs, *graph.outputs):
        if name not in graph.tensors and name not in on_host:
            raise ValueError(f"it has no tensor {name}")
    for o in graph.operations:
        if not known >= {*o.inputs}:
            raise ValueError(f"{o.name} reads a tensor that is not written before")
        if o.program is not None and (missing := {*o.inputs, *o.outputs} - graph.tensors.keys()):
            raise ValueError(f"it has no tensor {min(missing)}")
        if again := known & {*o.outputs}:
            raise ValueError(f"{o.name} cannot write {', '.join(sorted(again))}")
        if len({*o.outputs}) < len(o.outputs):
            raise ValueError(f"{o.name} writes a tensor twice")
        if o.program is not None and len(o.program.params) != len(o.inputs):
            raise ValueError(f"{o.name} has {len(o.inputs)} inputs, its program another number")
        known |= {*o.outputs}
    if not known >= {*graph.outputs}:
        raise ValueError("no operation writes an output")


def _choices(fields: PlanFields) -> dict[str, PlannedCandidate]:
    return {
        o.name: PlannedCandidate(o.skeleton, o.assignment, o.time_ns, o.kernels or "")
        for o in fields.operations
        if o.skeleton is not None
    }


def _layout(fields: PlanFields) -> Layout:
    return Layout(
        {t.name: t.offset for t in fields.tensors if t.offset is not None},
        {o.name: o.scratch for o in fields.operations if o.scratch is not None},
        fields.point.arena,
        fields.point.bound,
        fields.point.proved,
        fields.alignment,
        frozenset(
            o.name for o in fields.operations if o.skeleton is None and o.program is not None
        ),
    )


def _costs(point: PointFields) -> Point:
    return Point(point.time_ns, point.arena, point.constants, point.bound, point.proved)

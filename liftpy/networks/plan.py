"""`Plan`: a network with a candidate for each operation and a place for each tensor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from liftpy.constraints.device import Device
from liftpy.errors import InternalError, LiftError, StoreRefused, plural
from liftpy.explore.campaign.replay import named_candidate
from liftpy.explore.space.space import Space
from liftpy.explore.space.version import VERSION
from liftpy.files.writing import write_file
from liftpy.ir.function import Lambda
from liftpy.language.entry import entry
from liftpy.networks.comparing import compared
from liftpy.networks.executing import Array, by_meaning, execute, random_arrays
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.host_nodes import host_nodes
from liftpy.networks.layout import Layout, constant_bytes, layout_of
from liftpy.networks.options import Option, Options, firsts
from liftpy.networks.plan_file import PlanData, PlannedCandidate, decoded, encoded, total_ns
from liftpy.networks.planning import Planned, Point, planned, solved
from liftpy.networks.profiling import Profile, profiled
from liftpy.networks.running import Runner
from liftpy.networks.sharing import sharing
from liftpy.networks.verifying import verified
from liftpy.opencl.devices import devices, find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

REPEATS, WARMUP = 7, 2


class Plan:
    """A network ready to run on a device: `net.plan()` makes it, `lp.load` reads it from a file.

    >>> plan = net.plan(db=["conv1.db"], memory_limit=4_000_000)  # doctest: +SKIP
    >>> plan.save("model.plan")  # doctest: +SKIP
    >>> outputs = lp.load("model.plan").run({"x": x})  # doctest: +SKIP
    """

    def __init__(self, data: PlanData, modules: Mapping[str, Module] | None = None) -> None:
        self.data = data
        self._modules = modules
        self._runner: Runner | None = None

    @property
    def graph(self) -> Graph:
        """The operations in the order of execution, and the tensors."""
        return self.data.graph

    @property
    def choices(self) -> Mapping[str, PlannedCandidate]:
        """The candidate of each operation that has kernels."""
        return self.data.choices

    @property
    def layout(self) -> Layout:
        """The offsets of tensors and scratch in the arena."""
        return self.data.layout

    @property
    def point(self) -> Point:
        """The costs of the plan."""
        return self.data.point

    @property
    def front(self) -> tuple[Point, ...]:
        """The costs of the plans among which this one was chosen."""
        return self.data.front

    @property
    def device(self) -> Device:
        """The device that it is made for."""
        return self.data.device

    def __repr__(self) -> str:
        p = self.point
        return (
            f"<Plan of {self.graph.name} on {self.device.name}: "
            f"{plural(len(self.graph.operations), 'operation')}, arena {p.arena} bytes, constants "
            f"{p.constants} bytes>"
        )

    @property
    def predicted_ns(self) -> int | None:
        """The sum of the measured times of all kernels; None if an operation was not measured.

        Nodes that have no program are computed on the host, and their time is not known.
        """
        return self.point.time_ns

    @property
    def modules(self) -> Mapping[str, Module]:
        """The kernels of each operation that has some, derived from its candidate.

        StoreRefused if they are not those that the plan was made for.
        """
        if self._modules is None:
            made: dict[tuple[Any, ...], Module] = {}
            found: dict[str, Module] = {}
            shared = sharing(self.graph, self.layout.alignment)
            for operation in self.graph.operations:
                program, choice = operation.program, self.choices.get(operation.name)
                if program is None or choice is None:
                    continue
                view = shared.output_view(operation)
                key = id(program), choice.skeleton, repr(sorted(choice.assignment.items())), view
                if key not in made:
                    where = f" of the plan of {self.graph.name}"
                    made[key] = kernels_of(operation, choice, view, self.device, where)
                if digest(made[key]) != choice.kernels:
                    raise StoreRefused(
                        f"operation {operation.name} of the plan of {self.graph.name} has other "
                        "kernels than when it was planned: plan again with this liftpy"
                    )
                found[operation.name] = made[key]
            self._modules = found
        return self._modules

    def runner(self) -> Runner:
        """What runs the plan: device memory, uploaded constants and built kernels, made once."""
        if self._runner is None:
            self._runner = Runner(
                self.graph, self.modules, self.layout, self.device, host_nodes(self.graph)
            )
        return self._runner

    @property
    def queue(self) -> Any:
        """The queue of pyopencl on which the plan runs; its context has the plan's memory."""
        return self.runner().queue

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        poison: bool = False,
        on_device: bool = False,
    ) -> dict[str, Any]:
        """All outputs by name; `inputs` are arrays by name, or in the order of the inputs.

        They are arrays of NumPy or pyopencl, or objects with `__dlpack__`. Outputs are arrays of
        NumPy or, with `on_device`, of pyopencl. docs/networks.md states what is copied. With
        `poison`, memory that was not written is NaN. ArgumentRefused if an input does not fit.

        >>> import liftpy as lp, pyopencl.array
        >>> plan = lp.load("model.plan")  # doctest: +SKIP
        >>> x = pyopencl.array.to_device(plan.queue, image)  # doctest: +SKIP
        >>> plan.run([x], on_device=True)["y"].get()  # doctest: +SKIP
        """
        return self.runner().run(inputs, poison=poison, on_device=on_device)

    def renewed(self, graph: Graph) -> Plan | None:
        """The plan with the constants of a graph that differs from its own in their values only.

        None if the graph differs in another way. The new plan takes over the kernels and the device
        memory of this one, in which constants are uploaded and packed again.
        """
        if fixed_parts(graph) != fixed_parts(self.graph):
            return None
        tensors = {
            name: tensor if tensor.value is None else graph.tensors[name]
            for name, tensor in self.graph.tensors.items()
        }
        own = replace(self.graph, tensors=tensors, foreign=graph.foreign)
        made = Plan(replace(self.data, graph=own), self._modules)
        if self._runner is not None:
            self._runner.renew(own)
        made._runner, self._runner = self._runner, None
        return made

    def check(
        self, inputs: Mapping[str, Any] | Sequence[Any], tolerance: float | None = None
    ) -> dict[str, float]:
        """The largest error of each output against the meaning of the network, in NumPy.

        Errors are relative to the largest value of the output. The run is one with `poison`.
        Raises LiftError if an error exceeds the tolerance, which depends on the type by default.
        Nodes without a program are computed as in a run.
        """
        found = self.run(inputs, poison=True)
        wanted = execute(self.graph, inputs, by_meaning, host_nodes(self.graph))
        return compared(self.graph, found, wanted, tolerance)

    def profile(
        self,
        inputs: Mapping[str, Any] | Sequence[Any] | None = None,
        repeats: int = REPEATS,
        warmup: int = WARMUP,
    ) -> Profile:
        """Measured times of each operation: medians of repeated runs after a warm-up.

        The profile also has the rates of bytes and arithmetic operations, and the device's peaks.
        Without `inputs`, the plan runs on random numbers (seed 0).
        """
        given = self.random_inputs() if inputs is None else inputs
        times = self.runner().profile(given, repeats, warmup)
        predicted = {name: choice.time_ns for name, choice in self.choices.items()}
        return profiled(self.graph, self.layout, self.modules, predicted, self.device, times)

    def remeasured(self, device: Device | None = None) -> Plan:
        """The same candidates with a layout and times of this device, or of another one."""
        target = self.device if device is None else device
        alignment = alignment_of(target)
        shared, before = sharing(self.graph, alignment), sharing(self.graph, self.layout.alignment)
        kept = [o for o in self.graph.computed if o.name not in shared.unmoved]
        first = firsts(target)  # for operations that need kernels only with this alignment
        modules: dict[str, Module] = {}
        choices: dict[str, PlannedCandidate] = {}
        for o in kept:
            view = shared.output_view(o)
            if o.name not in self.choices:
                option = stored_in(first(o)[0], o, view, target)
                modules[o.name], choices[o.name] = option.module, chosen(option)
            elif view == before.output_view(o):
                modules[o.name] = self.modules[o.name]
                choices[o.name] = replace(self.choices[o.name], time_ns=None)
            else:
                own = self.choices[o.name]
                module = kernels_of(o, own, view, target)
                option = Option(own.skeleton, own.assignment, None, module)
                modules[o.name], choices[o.name] = module, chosen(option)
        layout = layout_of(self.graph, modules, alignment, solved)
        constants = constant_bytes(self.graph, modules)
        total = total_ns(choices.values())  # 0 if no operation has a kernel
        point = Point(total, layout.bytes, constants, layout.bound, proved=False)
        data = replace(
            self.data, choices=choices, layout=layout, point=point, device=target, version=VERSION
        )
        return Plan(data, modules).timed()

    def timed(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None) -> Plan:
        """The same plan with times of the operations that were not measured, from runs.

        Without `inputs`, the plan runs on random numbers. If it has inputs of a type that the
        language does not have, for which there are none, the operations stay without times.
        """
        if all(c.time_ns is not None for c in self.choices.values()):
            return self
        if inputs is None and not self.graph.tensors.keys() >= {*self.graph.inputs}:
            return self
        times = {row.operation: row.time_ns for row in self.profile(inputs).rows}
        choices = {
            n: c if c.time_ns is not None else replace(c, time_ns=times[n])
            for n, c in self.choices.items()
        }
        point = replace(self.point, time_ns=total_ns(choices.values()))
        self.close()
        return Plan(replace(self.data, choices=choices, point=point, front=(point,)), self.modules)

    def random_inputs(self, seed: int = 0) -> dict[str, Array]:
        """Random numbers for all inputs: normally distributed floats, and integers of 0 and 1."""
        return random_arrays(self.graph, seed)

    def save(self, path: str | Path) -> None:
        """Writes the plan to a file, which `lp.load` reads. LiftError if it cannot be written."""
        write_file(Path(path), encoded(self.data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the device memory."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def fixed_parts(graph: Graph) -> Any:
    """All that decides a plan of a graph: everything but the order and the values of constants."""
    operations = {
        o.name: (o.program, o.inputs, o.outputs, o.node if o.program is None else b"")
        for o in graph.operations
    }
    tensors = {
        name: (t.type, t.shape, t.producer, t.value is None, t.result)
        for name, t in graph.tensors.items()
    }
    opsets = graph.opsets if graph.unsupported else {}  # programs do not depend on these any more
    return operations, tensors, graph.foreign.keys(), graph.inputs, graph.outputs, opsets


def digest(module: Module) -> str:
    """The sha256 of a module's kernels and manifest."""
    return hashlib.sha256(f"{module.source}\0{module.manifest_json()}".encode()).hexdigest()


def chosen(option: Option) -> PlannedCandidate:
    """An option as a choice of a plan."""
    return PlannedCandidate(
        option.skeleton, option.assignment, option.time_ns, digest(option.module)
    )


def kernels_of(
    operation: Operation,
    choice: PlannedCandidate | Option,
    view: Lambda | None,
    device: Device,
    where: str = "",
) -> Module:
    """The kernels of a candidate. With an output view, they store the result in a larger array.

    StoreRefused if there is no such candidate; the message names the operation, and `where`.
    """
    program = operation.program
    if program is None:
        raise InternalError(f"{operation.name} has kernels and no program")
    place = f"operation {operation.name}{where}"
    named = named_candidate(program, choice.skeleton, choice.assignment, place)
    candidate = Space.of(program, device, [named.skeleton]).exactly(named.assignment)
    return compile_candidate(candidate.skeleton, candidate.point, view)


def stored_in(option: Option, operation: Operation, view: Lambda | None, device: Device) -> Option:
    """The option with kernels that store the result through an output view, if there is one."""
    if view is None:
        return option
    return replace(option, module=kernels_of(operation, option, view, device))


def alignment_of(device: Device) -> int:
    """The alignment of offsets in device memory, in bytes."""
    with Session(device) as session:
        return session.opened.alignment


def plan_of(
    graph: Graph,
    device: Device,
    options: Options | None = None,
    memory_limit: int | None = None,
    planning: Callable[..., Planned] = planned,
) -> Plan:
    """The fastest plan of a network within a limit; the options are first candidates by default.

    `planning` chooses: `planned`, or a function that also chooses the orders of tensors.
    """
    found = planning(graph, options or firsts(device), alignment_of(device), memory_limit)
    shared = sharing(found.graph, found.layout.alignment)
    placed = {
        o.name: stored_in(one, o, shared.output_view(o), device)
        for o in found.graph.operations
        if (one := found.options.get(o.name)) is not None
    }
    choices = {name: chosen(one) for name, one in placed.items()}
    data = PlanData(found.graph, choices, found.layout, found.point, found.front, device, VERSION)
    here = all(one.time_ns is None for one in placed.values())  # derived by this call
    return Plan(data, {name: one.module for name, one in placed.items()} if here else None)


@entry("lp.load")
def load(path: str | Path, device: Device | str | None = None, *, remeasure: bool = False) -> Plan:
    """The plan in a file, ready to run on the device that it was made for.

    With `remeasure`, it may be of another device, driver or version: it gets a layout for `device`,
    and its kernels are timed there. StoreRefused for a file that is damaged or no plan, whose
    layout is not valid, or whose device is not there.

        outputs = lp.load("model.plan").run({"x": x})
    """
    path = Path(path)
    data = decoded(path)
    if not remeasure:
        _check_version(path, data)
    target = _target(path, data.device, device, remeasure=remeasure)
    plan = _verified(path, replace(data, device=target))
    if remeasure:
        return plan.remeasured(target)
    if data.layout.alignment % alignment_of(target):
        raise StoreRefused(
            f"{path} has offsets at multiples of {data.layout.alignment} bytes, and {target.name} "
            f"needs {alignment_of(target)}: {AGAIN}"
        )
    return plan


def stored(path: Path) -> Plan:
    """The plan in a file, whose device need not be there. StoreRefused if it is not valid."""
    data = decoded(path)
    _check_version(path, data)
    return _verified(path, data)


def _check_version(path: Path, data: PlanData) -> None:
    if data.version != VERSION:
        raise StoreRefused(
            f"{path} is a plan of liftpy {data.version}, and this is {VERSION}: plan again, or "
            f"{AGAIN}"
        )


def _verified(path: Path, data: PlanData) -> Plan:
    """A plan with its kernels. StoreRefused if it is not valid."""
    plan = Plan(data)
    try:
        wrong = verified(data, plan.modules)
    except (LiftError, InternalError) as error:
        raise StoreRefused(f"{path} is not a valid plan: {error}") from error
    if wrong is not None:
        raise StoreRefused(f"{path} is not a valid plan: {wrong}")
    return plan


AGAIN = "load it with remeasure=True (--remeasure)"
"""What accepts a plan of another device or version."""


def _target(path: Path, own: Device, given: Device | str | None, *, remeasure: bool) -> Device:
    """The device to run on. StoreRefused if it is not the plan's, unless it is measured again."""
    if given is None and not remeasure:
        alike = [d for d in devices() if d.fingerprint == own.fingerprint]
        target = alike[0] if alike else find_device()
    else:
        target = given if isinstance(given, Device) else find_device(given)
    if not remeasure and target.fingerprint != own.fingerprint:
        raise StoreRefused(
            f"{path} is a plan for {own.label} with driver {own.driver_version}, and this is "
            f"{target.label} with driver {target.driver_version}: plan again, or {AGAIN}"
        )
    return target

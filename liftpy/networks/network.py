"""`lp.network`: an ONNX model as operations, each with a program of the language."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from liftpy.constraints.device import Device
from liftpy.errors import NetworkRefused, UnknownName, plural
from liftpy.explore.exploring import SAMPLES
from liftpy.language.entry import entry
from liftpy.networks.campaigns import NetworkCampaign, Turn, explore_network
from liftpy.networks.executing import by_meaning, execute
from liftpy.networks.graph import Graph, Operation, Unsupported, listed
from liftpy.networks.host_nodes import by_onnx, host_nodes, reference_evaluator
from liftpy.networks.layout import layout_of
from liftpy.networks.options import Measured, firsts
from liftpy.networks.plan import Plan, alignment_of, plan_of, stored_in
from liftpy.networks.planning import planned
from liftpy.networks.running import Runner
from liftpy.networks.sharing import sharing
from liftpy.opencl.devices import find_device


class Network:
    """An imported model.

    `graph` holds its operations and tensors; `net["conv1"]` is an operation by its name, and
    `net["conv1"].program` its program, which can be shown, explored and compiled like any other.

    >>> import onnx.parser
    >>> net = lp.network(onnx.parser.parse_model(
    ...     '<ir_version: 8, opset_import: ["": 18]> '
    ...     'relu (float[4] x) => (float[4] y) {y = Relu(x)}'
    ... ))
    >>> net, [operation.name for operation in net]
    (<Network relu: 1 operation, 1 distinct program>, ['Relu_y'])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._runners: dict[tuple[str, int, bool], Runner] = {}

    def __getitem__(self, name: str) -> Operation:
        for operation in self.graph.operations:
            if operation.name == name:
                return operation
        known = [o.name for o in self.graph.operations]
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownName(
            f"{self.graph.name} has no node '{name}'{hint}\n  `liftpy network MODEL` lists its "
            f"{plural(len(known), 'node')}"
        )

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.graph.operations)

    def __len__(self) -> int:
        return len(self.graph.operations)

    def __repr__(self) -> str:
        programs = plural(len(self.graph.programs), "distinct program")
        return f"<Network {self.graph.name}: {plural(len(self), 'operation')}, {programs}>"

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """The nodes without a program."""
        return self.graph.unsupported

    def channels_last(self) -> Network:
        """The network with images `[N][H][W][C]` between its operations (docs/networks.md).

        A convolution reads and returns such images, and so do the operations after it that have
        programs for this order, such as pooling, activations and concatenation. Inputs and results
        of the network keep the order that the model declares. An operation `Transpose` changes the
        order for operations that read the other one.

        >>> import liftpy as lp
        >>> net = lp.network("model.onnx").channels_last().joined()  # doctest: +SKIP
        >>> net.graph.tensors["conv1"].shape  # [1][64][56][56] in the model  # doctest: +SKIP
        (1, 56, 56, 64)
        """
        return Network(by_onnx("channels_last").with_channels_last(self.graph))

    def joined(self) -> Network:
        """The network with operations joined into larger programs (docs/networks.md).

        A joined operation is named `FIRST..LAST` by its first and last node, and has its nodes in
        `parts`. The same tensors are at its border, so all methods of a network apply to it.

        >>> import liftpy as lp
        >>> lp.network("model.onnx").joined()["conv1..relu1"].operator  # doctest: +SKIP
        'Conv+BatchNormalization+Relu'
        """
        return Network(by_onnx("joining").joined(self.graph))

    def evaluate(
        self, inputs: Mapping[str, Any] | Sequence[Any], *, reference: bool = False
    ) -> dict[str, NDArray[Any]]:
        """All outputs by name, computed in NumPy by the meaning of each program.

        `inputs` are arrays by name, or in the order of the model's inputs. With `reference`, ONNX's
        reference evaluator computes the nodes that have no program; otherwise these are refused.
        """
        return execute(self.graph, inputs, by_meaning, reference_evaluator() if reference else None)

    def check(
        self, inputs: Mapping[str, Any] | Sequence[Any], tolerance: float | None = None
    ) -> Any:
        """Compares every operation with ONNX's reference evaluator, each on the same arrays.

        The result says whether it `passed`, and has the first `difference`: node, index, both
        values and the tolerance, which is relative to the largest value of the node's result.
        """
        return by_onnx("evaluating").check(self.graph, inputs, tolerance)

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        device: Device | str | None = None,
        reference: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """All outputs by name, computed on a device.

        With `reference`, nodes that have no program are computed on the host, by ONNX Runtime if it
        is installed, otherwise by ONNX's reference evaluator; without it, they are refused. Each
        distinct program is compiled once, as its first candidate, with the tensors in one arena
        (`plan` chooses among measured candidates). Kernels and constants stay on the device until
        `close`.
        """
        target = device if isinstance(device, Device) else find_device(device)
        key = target.fingerprint, target.ordinal, reference
        if key not in self._runners:
            options, alignment = firsts(target), alignment_of(target)
            shared = sharing(self.graph, alignment)
            kept = [o for o in self if o.program is not None and o.name not in shared.unmoved]
            first = {o.name: options(o)[0] for o in kept}
            modules = {
                o.name: stored_in(first[o.name], o, shared.output_view(o), target).module
                for o in kept
            }
            layout = layout_of(self.graph, modules, alignment)
            hosted = host_nodes(self.graph) if reference else None
            self._runners[key] = Runner(self.graph, modules, layout, target, hosted)
        return self._runners[key].run(inputs)

    @entry("net.plan")
    def plan(
        self,
        db: str | Path | Sequence[str | Path] = (),
        *,
        device: Device | str | None = None,
        memory_limit: int | None = None,
        choose_orders: bool = False,
    ) -> Plan:
        """The fastest plan within a limit of device memory in bytes (docs/networks.md).

        `db` are campaigns of the network's programs, whose measured candidates are chosen from: a
        file, a folder, or several of these. A program without a campaign has the candidate
        that is most like the best one of a similar program, or its first candidate.
        The plan computes nodes that have no program on the host, as `run` does with `reference`;
        the predicted time does not contain them.
        With `choose_orders`, the plan chooses for each tensor whether images are stored as the
        model declares them or with channels last; the network must have the declared order.
        ConstraintRefused if no plan is within the limit, TypeRefused if an argument has the wrong
        type, and LiftError if the solver is needed and not installed.
        """
        target = device if isinstance(device, Device) else find_device(device)
        paths = [db] if isinstance(db, str | Path) else db
        limit = None if memory_limit is None else int(memory_limit)  # it may be an integer of NumPy
        planning = by_onnx("orders").planned_in_orders if choose_orders else planned
        options = Measured(map(Path, paths), target, self.graph.constant_bytes, self.graph.programs)
        return plan_of(self.graph, target, options, limit, planning)

    def explore(
        self,
        samples: int = SAMPLES,
        seed: int = 0,
        db: Path | str = "network.db",
        device: Device | str | None = None,
        *,
        time_limit: float | None = None,
        told: Callable[[Turn], None] = lambda _: None,
        choose_orders: bool = False,
        **settings: Any,
    ) -> NetworkCampaign:
        """Explores each distinct program once, and most where the network's time is.

        `db` is a folder, with a campaign's file for each program; other models share it. `samples`
        is the most candidates of each program, and `time_limit`, in seconds, ends this call: the
        same call continues. `told` is called with each turn of a program. With `choose_orders`,
        operations are also explored with their images in the other order, where this could make a
        plan faster (docs/networks.md). `settings` are those of `lp.explore` that apply to all
        programs, such as `search`, `families` or `tolerance`.

        The result has for each program its campaign, its best time and its share of the network.
        Raises NothingMeasured if no operation has a correct candidate, StoreRefused if `db` is a
        file.

        >>> import liftpy as lp
        >>> net = lp.network("model.onnx").joined()  # doctest: +SKIP
        >>> net.explore(time_limit=600, db="models.db").total  # in ms  # doctest: +SKIP
        12.7
        """
        exploring = by_onnx("orders").explore_in_orders if choose_orders else explore_network
        return exploring(
            self.graph, samples, seed, db, device, time_limit=time_limit, told=told, **settings
        )

    def close(self) -> None:
        """Frees the device memory that `run` uses."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()


def network(
    source: Any,
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    partial: bool = False,
) -> Network:
    """Imports an ONNX model: a path, bytes, or an `onnx.ModelProto`.

    `sizes` gives the lengths of dynamic dimensions by name; a batch dimension without a length is
    1. `values` gives inputs that become constants, for models whose shapes depend on them.

    NetworkRefused names all nodes that have no program, with attribute and reason. With `partial`,
    they are kept in the network instead, in `unsupported`. A model that is not valid is refused in
    any case.
    """
    found = Network(by_onnx("importing").graph_of(source, sizes, values))
    if found.unsupported and not partial:
        raise NetworkRefused(
            f"{found.graph.name} has {plural(len(found.unsupported), 'node')} without a program:\n"
            f"{listed(found.unsupported)}\n"
            "  with partial=True, the other nodes are imported and these are listed",
            found.unsupported,
        )
    return found

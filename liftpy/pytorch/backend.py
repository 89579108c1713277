"""`lp.torch_backend`: a backend of `torch.compile` that plans the subgraphs it knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused
from liftpy.explore.exploring import SAMPLES
from liftpy.explore.optional import needing
from liftpy.language.entry import entry
from liftpy.networks.network import Network
from liftpy.networks.plan import Plan


@entry("lp.torch_backend")
def torch_backend(
    device: Device | str | None = None,
    db: str | Path | Sequence[str | Path] = (),
    samples: int = 0,
    time_limit: float | None = None,
    *,
    weights: Literal["compared", "counted"] = "compared",
) -> Any:
    """A backend of `torch.compile`, for inference on the processor.

    Subgraphs whose operators have programs are planned and run by kernels; PyTorch runs the rest.
    What PyTorch runs, and why, is logged once for each graph, as a warning of `liftpy.pytorch`.

    device: the OpenCL device of the kernels.
    db: campaigns whose measured candidates are chosen from, as for `net.plan`. Without campaigns,
        the kernels are correct and slow.
    samples, time_limit: explore each subgraph first, in the folder `db`, as `net.explore` does:
        the most candidates of each program, and the seconds for each subgraph.
    weights: how changed weights, which are packed again, are noticed. "compared" compares their
        values in each call; "counted" compares their addresses and PyTorch's counters of changes,
        which miss writes through `.data` or by NumPy.

    Raises LiftError if PyTorch or onnx is not installed (`pip install 'liftpy[torch]'`).

        fast = torch.compile(model.eval(), backend=lp.torch_backend(db="models.db"))
        with torch.no_grad():
            y = fast(x)
    """
    folders = [db] if isinstance(db, str | Path) else [*db]
    explores = samples > 0 or time_limit is not None
    if explores and len(folders) != 1:
        raise ArgumentRefused(
            f"campaigns of lp.torch_backend need one folder\n  `db` names {len(folders)}, and "
            f"samples={samples}, time_limit={time_limit} request campaigns\n"
            '  write db="models.db", or leave samples and time_limit out'
        )

    def plan_of(network: Network) -> Plan:
        if explores:
            most = samples or SAMPLES
            network.explore(most, db=folders[0], device=device, time_limit=time_limit)
        return network.plan(folders, device=device)

    what = "a backend of torch.compile"
    torch = needing("torch", "torch", "torch", what)
    compiling = needing("onnx", "torch", "liftpy.pytorch.compiling", what)
    return compiling.TorchBackend(plan_of, weights, torch)


def liftpy(
    module: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **named: Any
) -> Any:
    """The backend of `torch.compile(model, backend="liftpy", options={...})`.

    The options are the arguments of `lp.torch_backend`; equal ones share a backend.
    """
    key = repr(sorted((options or {}).items()))
    if key not in MADE:
        MADE[key] = torch_backend(**(options or {}))
    return MADE[key](module, inputs, **named)


MADE: dict[str, Any] = {}
"""The backends of `backend="liftpy"` by their options."""

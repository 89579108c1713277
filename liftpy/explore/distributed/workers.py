"""Which workers of a dask cluster a campaign asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from liftpy.constraints.device import Device
from liftpy.explore.optional import needing

if TYPE_CHECKING:
    from liftpy.explore.distributed.pool import ClusterExecutor

RESOURCE = "DEVICE"
"""What a worker with a device offers, in the words of dask: `--resources "DEVICE=1"`."""

PATIENCE = 30.0
AHEAD = 3
"""A campaign draws so many candidates for each worker before it waits for outcomes."""


@dataclass(frozen=True)
class Workers:
    """The workers at a scheduler's address: `tcp://host:8786`, or `tls://...`.

    `device` is looked up on each worker that was not started with one of its own. `mixed` allows
    different devices. A campaign starts when `expected` workers are there, and goes on as long as
    there is one; `patience` is how long it waits for them, in seconds. `note` is told of workers
    that are refused or lost.
    """

    address: str
    device: str | None = None
    mixed: bool = False
    expected: int = 1
    patience: float = PATIENCE
    note: Callable[[str], None] = lambda _: None


def connect(
    workers: Workers, known: tuple[Device, tuple[Device, ...]] | None = None
) -> ClusterExecutor:
    """The cluster. LiftError without dask, which is an extra and is imported here."""
    module = needing(
        "distributed", "cluster", "liftpy.explore.distributed.pool", "a campaign on workers"
    )
    return module.ClusterExecutor(workers, known)

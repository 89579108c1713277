"""Where a campaign measures: on this machine, on a board, or on the workers of a cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from liftpy.constraints.device import Device, check_attached
from liftpy.errors import ArgumentRefused
from liftpy.explore.campaign.differences import setting
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.measure.modelling import ModelExecutor
from liftpy.explore.measure.pool import Executor, LocalExecutor
from liftpy.explore.measure.process import IdleProcesses
from liftpy.explore.optional import needing
from liftpy.opencl.devices import find_device


class Remote(Protocol):
    """A machine without Python that measures, such as `liftpy.boards.live.Board`."""

    @property
    def address(self) -> str:
        """What names it in messages."""
        ...

    def connect(
        self, device: str | None, begun: Identity | None
    ) -> AbstractContextManager[Executor]:
        """The executor that measures there; `device` selects one of its devices."""
        ...


def site_of(
    device: Device | str | None,
    workers: Workers | None,
    begun: Identity | None,
    seconds: float,
    board: Remote | None = None,
    *,
    modelled: bool = False,
    idle: IdleProcesses | None = None,
) -> AbstractContextManager[Executor]:
    """The executor of a campaign, which waits for workers for at most `seconds`.

    `begun` is the identity of the campaign that is resumed. `idle` holds worker processes that
    earlier campaigns left on this machine.
    """
    if modelled:
        if board is not None or workers is not None:
            raise ArgumentRefused(
                "a modelled campaign runs nothing: give neither workers nor a board"
            )
        target = device if isinstance(device, Device) else find_device(device)
        return nullcontext(ModelExecutor(target))
    if board is not None:
        if isinstance(device, Device):
            raise ArgumentRefused(
                f"a campaign on {board.address} takes a device by its name there, not a Device: "
                f"give device={device.name!r}"
            )
        return board.connect(device, begun)
    if workers is None:
        target = device if isinstance(device, Device) else find_device(device)
        check_attached(target)
        lag = None if begun is None else setting(begun, "lag")
        return nullcontext(LocalExecutor(target, lag, idle))
    known = None if begun is None else (Device.from_json(begun.device), begun.devices)
    return connect(replace(workers, patience=min(workers.patience, seconds)), known)


def connect(
    workers: Workers, known: tuple[Device, tuple[Device, ...]] | None = None
) -> AbstractContextManager[Executor]:
    """The cluster; raises LiftError without dask, which is an extra and is imported here."""
    module = needing(
        "distributed", "cluster", "liftpy.explore.distributed.pool", "a campaign on workers"
    )
    return module.ClusterExecutor(workers, known)

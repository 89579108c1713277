"""The functions that a dask worker runs for a campaign, on the machine that has the device.

    dask worker tcp://HOST:8786 --nthreads 1 --resources "DEVICE=1"
    dask worker ... --preload liftpy.explore.distributed.board --device pocl  one of several

It needs numpy, pyopencl and distributed, but not liftpy's compiler. Candidates are measured in a
separate process (`liftpy.explore.measure.bench`), which may hang or crash without harm to the
worker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import click
from distributed import Worker as DaskWorker
from distributed import get_worker

from liftpy.errors import InternalError, LiftError
from liftpy.explore.measure import bench, process
from liftpy.explore.measure.messages import Doubtful, Measure, Setup
from liftpy.explore.measure.outcome import Outcome
from liftpy.explore.space.version import VERSION
from liftpy.opencl.devices import find_device

IDLE_SECONDS = 600.0
"""A bench that has been idle for this long is ended when another campaign starts one."""


@dataclass
class Bench:
    """The process that measures for one campaign, and when it was last used."""

    process: process.Worker
    used: float = field(default_factory=time.monotonic)


@dataclass
class Board:
    """The device of a dask worker, if it was started with one, and its bench of each campaign."""

    selector: str | None = None
    benches: dict[str, Bench] = field(default_factory=dict[str, Bench])


_BOARDS: WeakKeyDictionary[DaskWorker, Board] = WeakKeyDictionary()
"""The boards by worker: a process may have several workers."""


@click.command()
@click.option("--device", default=None, help="The device of this worker, as `liftpy` takes it.")
def dask_setup(worker: DaskWorker, device: str | None) -> None:
    """Gives a worker its device when `dask worker` starts with `--preload`; raises if unknown."""
    if device is not None:
        find_device(device)
    _BOARDS[worker] = Board(device)


def _board() -> Board:
    return _BOARDS.setdefault(get_worker(), Board())


def describe(selector: str | None) -> dict[str, Any]:
    """The version of liftpy on a worker, and its device as JSON data, or a refusal.

    `selector` is the device that the campaign requests. The answer is plain data, because other
    versions of liftpy read it.
    """
    own = _board().selector
    try:
        device = find_device(selector if own is None else own)
        asked = device if selector is None else find_device(selector)
    except LiftError as refusal:
        return {"version": VERSION, "refusal": str(refusal)}
    if device.fingerprint != asked.fingerprint:
        refusal = f"it was started with --device {own}, and the campaign needs {selector}"
        return {"version": VERSION, "refusal": refusal}
    return {"version": VERSION, "device": device.to_json()}


def prepare(campaign: str, setup: Setup) -> str | None:
    """Starts the bench of a campaign; returns why it cannot work, or None."""
    board = _board()
    for name, other in list(board.benches.items()):
        if name == campaign or time.monotonic() - other.used > IDLE_SECONDS:
            dismiss(name)
    try:
        made = Bench(process.Worker("measures candidates", bench.__name__, setup))
        made.process.start()
    except (LiftError, InternalError) as refusal:
        return str(refusal)
    board.benches[campaign] = made
    return None


def measure(campaign: str, request: Measure, limit: float) -> Doubtful | Outcome | None:
    """The answer to a request; None if the worker has no bench of this campaign."""
    mine = _board().benches.get(campaign)
    if mine is None:
        return None
    answer = mine.process.ask(request, request.seconds, limit, "measuring it")
    mine.used = time.monotonic()
    return answer


def dismiss(campaign: str) -> None:
    """Ends the bench of a campaign."""
    mine = _board().benches.pop(campaign, None)
    if mine is not None:
        mine.process.kill()

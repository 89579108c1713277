"""The workers of a dask cluster, each with one device: which are connected, and which may measure.

A worker is asked for its version and device, and is used or refused. Every message from the cluster
is queued as a step, which the campaign's thread runs, so that threads share no other data.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from distributed import Client, Future, fire_and_forget
from distributed.comm.core import connect
from distributed.security import Security
from distributed.utils import LoopRunner

from liftpy.constraints.device import Device, meet, shortfalls
from liftpy.errors import ClusterRefused, DeviceRefused, plural
from liftpy.explore.distributed import board
from liftpy.explore.distributed.workers import AHEAD, RESOURCE, Workers
from liftpy.explore.space.version import VERSION

POLL = 5.0
"""Seconds between checks of the cluster when it sends no message."""

START = f'dask worker HOST:PORT --nthreads 1 --resources "{RESOURCE}=1"'

RESULT_SECONDS = 10.0
"""Seconds that a finished result may take to arrive before its worker counts as lost."""

GOODBYE_SECONDS = 2.0

State = Literal["asked", "described", "preparing", "idle", "busy"]


@dataclass
class ClusterWorker:
    """A worker: its name, its state, and its device once it is known."""

    address: str
    name: str
    state: State = "asked"
    device: Device | None = None
    future: Future[Any] | None = None


async def reach(address: str, patience: float) -> None:
    """Raises OSError or ValueError if nothing answers at an address.

    This is called before a Client is made: a Client that cannot connect is closed when Python
    exits, and then waits a minute for a loop that has stopped.
    """
    secured: dict[str, Any] = Security().get_connection_args("client")
    comm = await connect(address, timeout=patience, **secured)
    await comm.close()


class Cluster:
    """The workers that a campaign may use. Use it in a `with`.

    `known` has the limits and the devices of a campaign that is resumed.

    Raises ClusterRefused if the scheduler cannot be reached or has no suitable worker,
    DeviceRefused if workers have different devices without `mixed`.
    """

    def __init__(self, workers: Workers, known: tuple[Device, tuple[Device, ...]] | None) -> None:
        self.workers = workers
        self.boards: dict[str, ClusterWorker] = {}
        self.refused: dict[str, str] = {}
        self.events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.on_lost: Callable[[ClusterWorker], None] = lambda _: None
        self.on_described: Callable[[ClusterWorker], None] = lambda _: None
        logging.getLogger("distributed.client").addFilter(is_news)
        wait = f"up to {workers.patience:g} s"
        workers.note(f"connecting to the dask scheduler at {workers.address} ({wait})")
        try:
            LoopRunner().run_sync(reach, workers.address, workers.patience)
            self.client = Client(
                workers.address,
                timeout=workers.patience,
                set_as_default=False,
                name="liftpy",
            )
        except (OSError, ValueError) as error:
            raise ClusterRefused(
                f"no dask scheduler at {workers.address} ({error}). Start one with "
                "`dask scheduler`, which prints its address, and open its port (8786) to this "
                "machine"
            ) from error
        self.client.subscribe_topic("all", self._overhear)
        self._alone_since = time.monotonic()
        self._looked = 0.0
        try:
            present = self._gather()
            self.devices = self._agreed(present) if known is None else known[1]
            self.limits = meet(self.devices) if known is None else known[0]
            self._keep()
        except BaseException:
            self._leave()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    @property
    def lag(self) -> int:
        """Several candidates per worker, so that no worker waits for another."""
        return AHEAD * len(self.fit)

    # --- connected workers ------------------------------------------------------------------------

    def step(self) -> None:
        """Handles the next message from the cluster, or checks the cluster if none arrives."""
        try:
            self.events.get(timeout=POLL if len(self.fit) >= self.workers.expected else 0.2)()
        except queue.Empty:
            self.look()
        if time.monotonic() - self._looked > POLL:
            self.look()

    def look(self) -> None:
        """Updates the list of workers; raises ClusterRefused after `patience` without one.

        While the scheduler cannot be reached, no worker counts as lost.
        """
        self._looked = time.monotonic()
        if self.connected:
            self._compare(self.client.scheduler_info(n_workers=-1)["workers"])
        if self.connected and self.boards:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self.workers.patience:
            raise ClusterRefused(self._why_nobody())

    @property
    def connected(self) -> bool:
        """Whether the scheduler can be reached."""
        return self.client.status == "running"

    def has(self, one: ClusterWorker) -> bool:
        """Whether this is the present worker at its address: a lost one may have been replaced."""
        return self.boards.get(one.address) is one

    def _compare(self, there: dict[str, Any]) -> None:
        """Drops the workers that have disconnected, and greets new ones."""
        for address in self.boards.keys() - there.keys():
            self._drop(self.boards.pop(address))
        for address in self.refused.keys() - there.keys():
            del self.refused[address]
        for address, worker in there.items():
            if address not in self.boards and address not in self.refused:
                self._greet(ClusterWorker(address, str(worker["name"])), worker["resources"])

    @property
    def fit(self) -> list[ClusterWorker]:
        """The described workers that are not refused, sorted by name."""
        described = (b for b in self.boards.values() if b.device is not None)
        return sorted(described, key=lambda b: (b.name, b.address))

    def ask(
        self, to: ClusterWorker, then: Callable[[Future[Any]], None], what: Any, *given: Any
    ) -> None:
        """Submits a call of `what` to a worker; queues the step `then` when it is done."""
        uses = {RESOURCE: 1} if what is board.measure else {}
        to.future = self.client.submit(
            what, *given, pure=False, workers=[to.address], resources=uses, retries=0
        )
        to.future.add_done_callback(lambda future: self.events.put(partial(then, future)))

    def forget(self, one: ClusterWorker) -> None:
        """Forgets a worker whose answer is lost; if it is still connected, it is greeted again."""
        if self.has(one):
            del self.boards[one.address]

    def lose(self, one: ClusterWorker) -> None:
        """Forgets a worker with a note, unless it has been dropped, which has its own note."""
        if self.has(one):
            self.workers.note(f"worker {one.name} ({one.address}) is lost")
        self.forget(one)

    def refuse(self, one: ClusterWorker, why: str) -> None:
        """Forgets a worker, and notes why it is not used."""
        self.forget(one)
        self.refused[one.address] = why
        self.workers.note(f"worker {one.name} ({one.address}) is not used: {why}")

    def dismiss(self, campaign: str) -> None:
        """Ends the benches of a campaign; busy workers do this when they have finished."""
        if not self.connected:
            return
        told: list[Future[Any]] = []
        for one in self.boards.values():
            busy, future = one.state in {"busy", "preparing"}, one.future
            self.ask(one, lambda _: None, board.dismiss, campaign)
            if one.future is not None:
                fire_and_forget(one.future)  # this client may close before it is done
                told += [] if busy else [one.future]
            if one.state == "busy" and future is not None:
                future.cancel()
        end = time.monotonic() + GOODBYE_SECONDS
        while any(not future.done() for future in told) and time.monotonic() < end:
            time.sleep(0.01)

    def examine(self, one: ClusterWorker) -> bool:
        """Whether a worker has one of the campaign's devices and its limits; refuses it if not."""
        found = one.device
        if found is None:
            return False
        if found.fingerprint not in {d.fingerprint for d in self.devices}:
            campaigns = " or ".join(spell(d) for d in self.devices)
            self.refuse(one, f"it has {spell(found)}, the campaign runs on {campaigns}")
            return False
        if missing := shortfalls(found, self.limits):
            self.refuse(
                one, f"the limits of its {spell(found)} are too small: {'; '.join(missing)}"
            )
            return False
        return True

    def _gather(self) -> list[Device]:
        """The devices of the workers; waits up to `patience` seconds until all are described."""
        end = time.monotonic() + self.workers.patience
        self.look()
        if not self.boards or len(self.boards) < self.workers.expected:
            self.workers.note(
                f"waiting for {plural(self.workers.expected, 'worker')} at {self.workers.address} "
                f"(up to {self.workers.patience:g} s); {len(self.boards)} connected"
            )
        while len(self.fit) < self.workers.expected or self._some_are_asked:
            if time.monotonic() > end and self.boards:
                if len(self.fit) < self.workers.expected:
                    raise ClusterRefused(self._why_so_few())
                break  # a worker that has not answered is busy; it joins when it does
            self.step()
        return [b.device for b in self.fit if b.device is not None]

    @property
    def _some_are_asked(self) -> bool:
        return any(b.state == "asked" for b in self.boards.values())

    def _agreed(self, present: list[Device]) -> tuple[Device, ...]:
        """The devices of a new campaign."""
        kinds: dict[str, list[Device]] = {}
        for device in sorted(present, key=lambda d: (d.platform, d.name, d.driver_version)):
            kinds.setdefault(device.fingerprint, []).append(device)
        if len(kinds) > 1 and not self.workers.mixed:
            lines = "\n".join(
                f"  {one.name} ({one.address}): {spell(one.device)}"
                for one in self.fit
                if one.device is not None
            )
            raise DeviceRefused(
                f"the workers at {self.workers.address} have different devices, whose times cannot "
                f"be compared:\n{lines}\nName one with --device, or use all of them with "
                "--mixed: candidates then keep the limits of all, and each device has a front"
            )
        return tuple(meet(same) for same in kinds.values())

    def _keep(self) -> None:
        """Refuses unsuitable workers; raises ClusterRefused if none is left."""
        for one in self.fit:
            self.examine(one)
        if not self.fit:
            raise ClusterRefused(self._why_nobody())

    def _leave(self) -> None:
        if self.connected:
            self.client.unsubscribe_topic("all")
        self.client.close(timeout=GOODBYE_SECONDS)

    def _overhear(self, event: tuple[float, Any]) -> None:
        """Handles an event of the scheduler; called in the client's thread."""
        said: Any = event[1]
        if isinstance(said, dict) and said.get("action") in {"add-worker", "remove-worker"}:
            self.events.put(self.look)

    def _greet(self, one: ClusterWorker, resources: dict[str, float]) -> None:
        if resources.get(RESOURCE, 0) < 1:
            self.refuse(one, f"it has no resource {RESOURCE}: start it with {START}")
            return
        self.boards[one.address] = one
        self.ask(one, partial(self._described, one), board.describe, self.workers.device)

    def _described(self, one: ClusterWorker, future: Future[Any]) -> None:
        if not self.has(one):
            return
        try:
            said = heard(future)
        except Gone:
            self.lose(one)
            return
        except Failed as failure:
            self.refuse(one, f"it cannot run liftpy {VERSION}: {failure}")
            return
        if said["version"] != VERSION:
            self.refuse(one, f"it has liftpy {said['version']}, the campaign has {VERSION}")
        elif "refusal" in said:
            self.refuse(one, said["refusal"])
        else:
            one.device = Device.from_json(said["device"])
            one.state = "described"
            self.on_described(one)

    def _drop(self, one: ClusterWorker) -> None:
        self.workers.note(f"worker {one.name} ({one.address}) is lost")
        self.on_lost(one)
        if one.future is not None:
            one.future.cancel()

    def _why_so_few(self) -> str:
        there = ", ".join(f"{one.name} ({one.address})" for one in self.fit) or "none"
        lines = "".join(f"\n  {address}: {why}" for address, why in self.refused.items())
        return (
            f"{self.workers.expected} workers are expected at {self.workers.address}, but after "
            f"{self.workers.patience:g} s only {len(self.fit)} can be used: {there}{lines}\n"
            f"Start more with {START}, or expect fewer (--expect)"
        )

    def _why_nobody(self) -> str:
        lines = [f"  {address}: {why}" for address, why in self.refused.items()]
        if not self.connected:
            return (
                f"the dask scheduler at {self.workers.address} is gone. Measurements are kept: "
                "restart it and its workers, and repeat the command to continue"
            )
        if not lines:
            return (
                f"the dask scheduler at {self.workers.address} has had no worker for "
                f"{self.workers.patience:g} s. Start some with {START}; measurements are kept, "
                "repeat the command to continue"
            )
        reasons = "\n".join(lines)
        return f"no worker at {self.workers.address} can measure for this campaign:\n{reasons}"


def is_news(record: logging.LogRecord) -> bool:
    """Whether a log record of dask's client tells the user something that liftpy does not report.

    For a lost connection dask logs a traceback; liftpy prints a sentence with what to do.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, OSError | CancelledError | asyncio.CancelledError)


class Gone(Exception):
    """The worker or the scheduler was lost before the answer arrived."""


class Failed(Exception):
    """The call raised an exception on the worker."""


def heard(future: Future[Any]) -> Any:
    """The answer of a worker; raises Gone, or Failed with the exception on the worker."""
    if future.status not in {"finished", "error"}:
        raise Gone
    try:
        failure = future.exception(RESULT_SECONDS)
        if failure is not None:
            raise Failed(f"{type(failure).__name__}: {failure}")
        return future.result(RESULT_SECONDS)
    except (CancelledError, TimeoutError, OSError) as error:
        raise Gone from error


def spell(device: Device) -> str:
    """A device as text, with the data that its fingerprint consists of."""
    return f"{device.platform}: {device.name}, driver {device.driver_version}"

"""Campaigns on real dask workers on this machine: Intel's runtime and PoCL, killed and refused."""

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import psutil
import pytest
from distributed import Client, get_worker
from distributed.comm.core import CommClosedError

from liftpy.errors import ClusterRefused, DeviceRefused
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.distributed import board, sites
from liftpy.explore.distributed.board import describe
from liftpy.explore.distributed.pool import ClusterPool
from liftpy.explore.distributed.sites import connect
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.exploring import explore
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import BENCH, Limits
from liftpy.explore.measure.messages import Setup
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.version import VERSION
from liftpy.explore.spaces import space_of
from liftpy.opencl.devices import find_device
from liftpy.workloads import Convolution, convolution
from tests.conftest import absent
from tests.explore.clusters import cluster
from tests.explore.spaces import places
from tests.processes import SECONDS, started, until
from tests.shared import in_one_process

pytestmark = pytest.mark.usefixtures("derived_once", "plain_workers")

PROGRAM = convolution(Convolution(3, 16, 7, 4, (3, 3), (3, 1), (1, 1, 1, 1)), "tiny")
ROOT = Path(__file__).parents[2]


@contextmanager
def dask(*arguments, log):
    """The command `dask` with these arguments, killed in the end."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": path},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


#: As docs/cluster.md says it for one machine. Without an address of its own the HTTP server that
#: each of dask's processes has is open to all, with `--no-dashboard` too.
LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")


def open_to_others(process):
    """The addresses that a process listens on, but for those of loopback."""
    connections = psutil.Process(process.pid).net_connections("inet")
    listening = [c.laddr for c in connections if c.status == psutil.CONN_LISTEN]
    assert listening
    return [address for address in listening if address.ip != "127.0.0.1"]


@pytest.mark.soak  # a worker: the test of one that is killed
def test_a_scheduler_listens_on_loopback_only(tmp_path):
    file, log = tmp_path / "scheduler.json", tmp_path / "log"
    options = (*LOOPBACK, "--port", 0, "--scheduler-file", file)
    with dask("scheduler", *options, log=log) as process:
        written = lambda: file.exists() and file.read_text().rstrip().endswith("}")
        until(written, log.read_text)
        assert not open_to_others(process)


def worker(scheduler, folder, device):
    """A worker that has a device, with its log beside the database."""
    preload = ("--preload", "tests.explore.plain_board", "--device", device)
    return dask(
        *("worker", scheduler, *LOOPBACK, "--nthreads", 1, "--no-nanny"),
        *("--name", device, "--resources", "DEVICE=1", *preload),
        log=folder / f"{device}.log",
    )


def devices():
    """A device of each runtime."""
    found = []
    for name in ("intel", "pocl"):
        try:
            found.append(find_device(name))
        except (DeviceRefused, LookupError) as refusal:
            absent(name, str(refusal))
    return found


def run(path, samples, workers, progress=lambda _: None, search="random"):
    return explore(
        PROGRAM,
        samples,
        0,
        path,
        families=["plain", "direct"],
        search=search,
        workers=workers,
        progress=progress,
    )


class Killing:
    """Kills the worker `one` while it has its second candidate or a later one.

    Each worker is stopped once its device has an outcome, so that candidates are left for `one`,
    however fast the machine is.
    """

    def __init__(self, one, other, path):
        self.one, self.other, self.path = one, other, path
        self.candidates = []
        self._still = threading.Lock()  # `other` is not stopped after it is told to go on
        self._thread = threading.Thread(target=self._kill, daemon=True)

    def step(self, known, one, other):
        """To be called after each outcome, with the rows and the devices of the workers."""
        measured_on = {row.device for row in known if row.outcome == "measured"}
        with self._still:
            if other.fingerprint in measured_on and not self.candidates:
                self.other.send_signal(signal.SIGSTOP)
        if one.fingerprint in measured_on and self._thread.ident is None:
            assert not open_to_others(self.one)
            self.one.send_signal(signal.SIGSTOP)
            self._device = one.fingerprint
            self._thread.start()

    def _kill(self):
        """Waits for one that runs for two seconds: an outcome sent before has arrived by then."""
        here, before = [], []
        while not here or here != before:
            time.sleep(2)
            running = [row for row in rows(self.path) if row.outcome == "running"]
            before, here = here, [row.id for row in running if row.device == self._device]
        with self._still:
            self.candidates.extend(here)
            self.one.kill()
            self.other.send_signal(signal.SIGCONT)


def test_a_killed_workers_candidate_is_given_to_another(tmp_path):
    intel, pocl = devices()
    path = tmp_path / "mixed.db"
    outcomes, notes = [], []
    with ExitStack() as opened:
        scheduler = opened.enter_context(cluster(real=True))
        both = Workers(scheduler, mixed=True, expected=2, patience=SECONDS, note=notes.append)
        workers = [opened.enter_context(worker(scheduler, tmp_path, d)) for d in ("intel", "pocl")]
        killing = Killing(*workers, path)

        def progress(now):
            if now.outcome:
                outcomes.append(now.candidate.key)
            known = rows(path)
            assert len([row for row in known if row.outcome == "running"]) <= 2
            killing.step(known, intel, pocl)

        with pytest.raises(DeviceRefused, match=r"(?s)have different devices.*--mixed"):
            run(path, 6, Workers(scheduler, expected=2, patience=SECONDS))
        assert not path.exists()
        found = run(path, 6, both, progress)
        assert found.counts == {"measured": 6}, [row.reason for row in found.rows]
        assert [row.ordinal for row in found.rows] == list(range(6))
        assert sorted(outcomes) == sorted(row.id for row in found.rows)
        measured_by = {row.id: row.device for row in found.rows}
        assert set(measured_by.values()) == {intel.fingerprint, pocl.fingerprint}
        assert [measured_by[key] for key in killing.candidates] == [pocl.fingerprint]
        assert any(note.startswith("worker intel") and note.endswith("lost") for note in notes)

        # each device has its own front, and candidates keep the limits of both
        assert {d.fingerprint for d in found.devices} == {intel.fingerprint, pocl.fingerprint}
        for device in found.devices:
            mine = [row for row in found.rows if row.device == device.fingerprint]
            best = min(row.time_ns for row in mine)
            assert best in [row.time_ns for row in found.pareto() if row in mine]
        assert found.device.local_memory == min(intel.local_memory, pocl.local_memory)

        # the campaign goes on with the worker that is left
        longer = run(path, 7, Workers(scheduler, patience=SECONDS))
        assert longer.rows[:6] == found.rows
        assert longer.counts == {"measured": 7}
        assert {row.device for row in longer.rows[6:]} == {pocl.fingerprint}


def test_without_a_scheduler_the_command_ends_when_it_has_said_so(tmp_path):
    options = ("--workers", "localhost", "--db", tmp_path / "none.db")
    line = [sys.executable, "-m", "liftpy", "explore", "matmul/4x4x4", *options]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 1
    said = (line for line in ended.stderr.splitlines() if not line.startswith("liftpy: "))
    first, second, *_ = said  # without how long it takes, which it says where that is long
    assert first == "connecting to the dask scheduler at localhost (up to 30 s)"
    assert second.startswith("error: no dask scheduler at localhost")


def test_what_is_waited_for_is_said_before_it_is_waited_for():
    told = []

    def note(text):
        told.append(text)
        if len(told) == 2:
            raise KeyboardInterrupt

    with cluster() as address, pytest.raises(KeyboardInterrupt):
        connect(Workers(address, expected=3, patience=9, note=note))
    assert [re.sub(r"tcp\S+", "HOST", text) for text in told] == [
        "connecting to the dask scheduler at HOST (up to 9 s)",
        "waiting for 3 workers at HOST (up to 9 s); 0 connected",
    ]


def rows(path):
    return Campaign.read(path).rows if path.exists() and path.stat().st_size else ()


def test_workers_that_do_not_fit_are_refused_and_all_lost_is_said(tmp_path, monkeypatch):
    devices()
    made = []

    def connected(*given):
        made.append(connect(*given))
        return made[-1]

    def described(selector):
        found = describe(selector)
        return found | {"version": "0.0.9"} if get_worker().name == "old" else found

    monkeypatch.setattr(sites, "connect", connected)
    monkeypatch.setattr(board, "describe", described)
    path = tmp_path / "pocl.db"
    notes = []
    with ExitStack() as opened:
        scheduler = opened.enter_context(cluster("intel", real=True, mute=["mute"], old="pocl"))
        only = opened.enter_context(worker(scheduler, tmp_path, "pocl"))
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(4, timeout=SECONDS)
        asked = Workers(scheduler, "pocl", patience=SECONDS, note=notes.append)

        def kill(now):
            if now.done == 1 and now.outcome:
                only.kill()
                only.wait()
                site = made[-1]
                site.workers = replace(site.workers, patience=2)  # for another, that does not come

        with pytest.raises(ClusterRefused, match=r"no worker at .* can measure"):
            run(path, 4, asked, kill)
        said = "\n".join(notes)
        assert "worker intel" in said
        assert "it was started with --device intel, and the campaign needs pocl" in said
        assert re.search(
            r"worker mute .*: it has no resource DEVICE: start it with dask worker", said
        )
        assert re.search(rf"worker old .*: it has liftpy 0.0.9, the campaign has {VERSION}", said)
        assert any(note.endswith("lost") for note in notes)
        assert all(row.outcome in {"measured", "pending"} for row in rows(path))
    families = ["plain", "direct"]
    with in_one_process(tmp_path):  # with another worker: the test before
        found = explore(PROGRAM, 4, 0, path, "pocl", families=families, search="random")
    assert found.counts == {"measured": 4}
    drawn = places(space_of(PROGRAM, found.device, families=families), 4)
    assert [row.id for row in found.rows] == [candidate.key for candidate in drawn]


def test_a_scheduler_out_of_reach_costs_no_candidate_a_worker(monkeypatch):
    """Its connection breaks twice: only a worker that is really gone counts as lost."""
    back = threading.Event()
    again = Client._ensure_connected

    async def connected(self, *args, **kwargs):
        while not back.is_set():  # noqa: ASYNC110  a thread sets it
            await asyncio.sleep(0.01)
        return await again(self, *args, **kwargs)

    lost = []
    back.set()
    monkeypatch.setattr(Client, "_ensure_connected", connected)
    with cluster("one") as address, connect(Workers(address, patience=SECONDS)) as made:
        made.on_lost = lost.append
        (one,) = made.boards.values()
        one.state = "busy"
        for _ in range(2):
            back.clear()
            made.client.loop.add_callback(made.client.scheduler_comm.comm.abort)
            until(lambda: not made.connected)
            made.look()
            assert (lost, made.has(one)) == ([], True)
            back.set()
            until(lambda: made.connected)
            made.look()
            assert (lost, made.has(one)) == ([], True)
        made.client.retire_workers([one.address])
        until(lambda: made.look() or not made.boards)
        assert lost == [one]


def test_an_answer_that_was_for_a_lost_worker_says_nothing_of_the_one_at_its_address():
    with cluster("one") as address, connect(Workers(address, patience=SECONDS)) as made:
        (old,) = made.boards.values()
        gone = made.client.submit(time.sleep, 0, workers=["nowhere"])
        gone.cancel()
        until(gone.done)
        new = made.boards[old.address] = replace(old)
        pool = ClusterPool(made, Setup("", old.device, Inputs(()), ()), Limits(1.0), mock.Mock())
        for told in (made._described, pool._prepared):
            told(old, gone)
            assert made.boards == {old.address: new}
            told(new, gone)
            assert made.boards == {}
            made.boards[old.address] = new
        pool._close()


def test_a_campaign_that_does_not_begin_leaves_no_bench_on_its_workers(monkeypatch):
    devices()
    given, arrays = Inputs.of(PROGRAM)
    wanted = expected(PROGRAM, arrays)
    with cluster("intel", "pocl", real=True) as address:
        both = Workers(address, mixed=True, expected=2, patience=SECONDS)
        with connect(both) as made:
            step, seen = type(made).step, []

            def stopped(self):
                step(self)
                seen.extend(started(BENCH))
                if any(one.state == "idle" for one in self.fit):
                    raise KeyboardInterrupt

            monkeypatch.setattr(type(made), "step", stopped)
            setup = Setup(program_text(PROGRAM), made.limits, given, wanted)
            with pytest.raises(KeyboardInterrupt), made.pool(setup, Limits(9.0), mock.Mock()):
                pass
            assert seen
        until(lambda: not started(BENCH))


def test_what_a_cluster_of_a_test_listens_on_is_loopback():
    with cluster("one"):
        assert not open_to_others(psutil.Process())


@pytest.mark.parametrize(
    ("error", "told"),
    [(CommClosedError("lost"), False), (asyncio.CancelledError(), False), (KeyError("x"), True)],
)
def test_a_connection_that_dask_loses_is_no_traceback_of_its_own(error, told):
    """The campaign says it in a sentence; what else goes wrong in dask's client is told."""
    with cluster("one") as address, connect(Workers(address)):
        log = logging.getLogger("distributed.client")
    kind = (type(error), error, None)
    assert bool(log.filter(log.makeRecord(log.name, 40, "", 0, "", (), kind))) is told

"""A campaign on a dask cluster: what it costs a candidate, and how many workers it can feed.

    python benchmarks/cluster.py              about two minutes

Real dask over TCP on this machine, real messages, the real loop and a real database. Candidates are
compiled before; instead of measuring, a worker sleeps as long as the candidate took when it was
measured (a small campaign at the beginning), or one second where boards are counted.
"""

import pickle
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
from distributed import LocalCluster

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.campaign.run import CampaignRun
from liftpy.explore.campaign.store import Store
from liftpy.explore.distributed import board
from liftpy.explore.distributed import pool as cluster_pool
from liftpy.explore.distributed.sites import connect
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.exploring import explore
from liftpy.explore.measure.check import TOLERANCE
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import Limits
from liftpy.explore.measure.messages import Compile, Compiled, Measure, Setup
from liftpy.explore.measure.outcome import Measured
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.spaces import space_of
from liftpy.opencl.devices import find_device
from liftpy.pipeline import compile_candidate
from liftpy.workloads import Convolution, convolution

PROGRAM = convolution(Convolution(16, 28, 28, 16, (3, 3), padding=(1, 1, 1, 1)), "layer")
DEVICE = find_device()
STORED = 24  # candidates that are measured, for their times
BOARDS = (1, 10, 25, 50, 100)
EACH = 4  # candidates for each board
LIMITS = Limits(60.0)

MADE: dict[tuple[str, str], Compiled] = {}  # by skeleton and sizes
SECONDS: dict[str, float] = {}  # by the hash of the kernels


class Compiler:
    """Gives kernels that were compiled before."""

    def __init__(self, *_given: object, **_named: object) -> None:
        """Nothing to start."""

    def ask(self, request: Compile, *_limits: object) -> Compiled:
        return MADE[request.skeleton, str(request.sizes)]

    def kill(self) -> None:
        """Nothing to end."""


class Sleeper:
    """Takes as long as the bench would, and says what it said of the memory."""

    def __init__(self, *_given: object, **_named: object) -> None:
        """Nothing to start."""

    def start(self) -> None:
        """Is ready."""

    def ask(self, request: Measure, *_limits: object) -> Measured:
        seconds = SECONDS[source_sha(request.module.source)]
        time.sleep(seconds)
        return Measured(((int(seconds * 1e9),),), 0, request.module.memory, 0.0, 0.0, 0.0)

    def kill(self) -> None:
        """Nothing to end."""


def stored(folder: Path) -> tuple[Campaign, list[float]]:
    """A real campaign, and how long each candidate took."""
    path = folder / "stored.db"
    found = explore(PROGRAM, STORED, 0, path, DEVICE, search="random")
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT finished - started FROM outcome WHERE kind = 'measured'")
        return found, [seconds for (seconds,) in rows]


def prepared(count: int) -> list[Candidate]:
    """Candidates, compiled."""
    candidates = space_of(PROGRAM, DEVICE).sample(count, 0)
    for candidate in candidates:
        module = compile_candidate(candidate.skeleton, candidate.assignment)
        made = Compiled(module, source_sha(module.source))
        MADE[candidate.skeleton.key, str(candidate.point)] = made
    return candidates


def simulated(
    folder: Path,
    identity: Identity,
    candidates: list[Candidate],
    seconds: list[float],
    boards: int,
) -> tuple[float, int]:
    """A campaign on so many workers; wall seconds, and the most tasks that the scheduler held."""
    for candidate, taken in zip(candidates, seconds, strict=True):
        made = MADE[candidate.skeleton.key, str(candidate.point)]
        SECONDS[made.sha] = taken
    held: list[int] = []
    cluster = LocalCluster(
        n_workers=boards,
        processes=False,
        protocol="tcp",
        threads_per_worker=1,
        resources={"DEVICE": 1},
        memory_limit=0,  # all of them are one process here
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
    )
    given, arrays = Inputs.of(PROGRAM)
    wanted = expected(PROGRAM, arrays, tolerance=TOLERANCE)
    setup = Setup(identity.text, DEVICE, given, wanted)
    path = folder / f"{boards}-{len(candidates)}.db"
    workers = Workers(cluster.scheduler_address, expected=boards, patience=120)
    scheduler = cluster.scheduler
    assert scheduler is not None  # it runs in this process
    with cluster, connect(workers) as site, Store.open(path, identity) as store:
        run = CampaignRun(
            store,
            DEVICE,
            len(candidates),
            site.lag,
            lambda _: held.append(len(scheduler.tasks)),
        )
        with site.pool(setup, LIMITS, run) as pool:
            start = time.perf_counter()
            run.follow(iter(candidates), pool)
            wall = time.perf_counter() - start
        assert Campaign.read(path).counts == {"measured": len(candidates)}
    return wall, max(held)


def messages(candidates: list[Candidate]) -> None:
    """Bytes of what travels: once for each worker, and for each candidate there and back."""
    given, arrays = Inputs.of(PROGRAM)
    setup = Setup("", DEVICE, given, expected(PROGRAM, arrays, tolerance=TOLERANCE))
    there = [
        len(pickle.dumps(Measure(MADE[c.skeleton.key, str(c.point)].module, 1, 60.0)))
        for c in candidates
    ]
    answer = Sleeper().ask(Measure(next(iter(MADE.values())).module, 1, 60.0))
    print(f"a worker is told {len(pickle.dumps(setup))} bytes once")
    print(f"a candidate is {statistics.median(there):.0f} bytes, {max(there)} at most")
    print(f"its answer is {len(pickle.dumps(answer))} bytes")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    found, times = stored(folder)
    print(f"{PROGRAM.name}: {statistics.mean(times):.3f} s a candidate, as measured")
    board.process = SimpleNamespace(Worker=Sleeper)  # from here on nothing is measured
    cluster_pool.Worker = Compiler
    candidates = prepared(max(48, EACH * max(BOARDS)))

    few = candidates[:48]
    taken = [times[k % len(times)] for k in range(len(few))]
    walls = {}
    for count in (1, 2):
        walls[count], _ = simulated(folder, found.identity, few, taken, count)
        rate = 60 * len(few) / walls[count]
        print(f"{count} worker(s): {rate:.0f} candidates a minute")
    overhead = (walls[1] - sum(taken)) / len(few)
    print(f"two workers: {walls[1] / walls[2]:.2f} times one")
    print(f"overhead: {1e3 * overhead:.1f} ms a candidate")
    messages(few)

    print("boards that take 1 s a candidate:")
    for count in BOARDS:
        some = candidates[: EACH * count]
        wall, held = simulated(folder, found.identity, some, [1.0] * len(some), count)
        rss = psutil.Process().memory_info().rss >> 20
        print(
            f"  {count:4} boards: {len(some) / wall:6.1f} candidates/s of {count}, "
            f"{held} tasks held, {rss} MiB with all workers in this process"
        )


if __name__ == "__main__":
    main()

"""Campaigns that are killed: for tests/explore/test_kill.py and benchmarks/kill.py."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.measure.outcome import KINDS
from liftpy.explore.space.candidate import program_text
from liftpy.workloads import Convolution, convolution
from tests.processes import runs, until

ROOT = Path(__file__).parents[2]
TINY = convolution(Convolution(3, 16, 7, 4, (3, 3), (3, 1), (1, 1, 1, 1)), "tiny")
VICTIMS = ("campaign", "workers", "both")
COMMAND = """
from liftpy.cli import main
from liftpy.explore.measure import process
process.START = "tests.plainly"
main()
"""
LIMIT = 300


@dataclass(frozen=True)
class Command:
    """`liftpy explore` of the tiny convolution in a folder; its workers build plainly."""

    folder: Path
    samples: int
    device: str = "intel"
    search: str = "random"

    def start(self, db):
        """The command's process, in a session of its own; what it says goes to a file."""
        program = self.folder / "tiny.lift"
        program.write_text(program_text(TINY))
        line = [sys.executable, "-c", COMMAND, "explore", program, "--db", db]
        line += ["--samples", self.samples, "--search", self.search, "--device", self.device]
        line += ["--family", "plain", "--family", "direct"]
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(
                list(map(str, line)),
                stdout=said,
                stderr=said,
                start_new_session=True,
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )

    def finish(self, db):
        """Runs it to the end; the campaign."""
        process = self.start(db)
        try:
            code = process.wait(LIMIT)
        finally:
            process.kill()
        assert code == 0, (self.folder / "said.txt").read_text()
        return Campaign.read(db)


def kill_after(process, db, done, seconds, victim):
    """Kills the campaign, its workers, or both, some time after so many candidates were done.

    A worker that is to be killed is waited for. How many processes it were; 0 if the campaign ended
    before.
    """
    while process.poll() is None and finished(db) < done:
        time.sleep(0.01)
    time.sleep(seconds)
    workers, hit = [], []
    while process.poll() is None and not hit:
        campaign = psutil.Process(process.pid)  # not waited for, so it is in the list
        workers = campaign.children(recursive=True)
        hit = {"campaign": [campaign], "workers": workers, "both": [*workers, campaign]}[victim]
    for one in hit:
        try:
            one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue  # it ended just now
    if hit and victim != "workers":
        process.wait(LIMIT)
        until(lambda: not any(map(runs, workers)))  # they leave when their campaign is gone
    return len(hit)


def finished(db):
    """How many candidates have their outcome."""
    if not db.exists():
        return 0
    with CampaignReader.read(db) as store:
        return len(store.done())


def integrity(db):
    """What SQLite says of the file and its log, as the killed process left them."""
    with tempfile.TemporaryDirectory() as folder:
        for file in db.parent.glob(f"{db.name}*"):
            shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder) / db.name)) as copy:
            return copy.execute("PRAGMA integrity_check").fetchone()[0]


UNTIMED = {
    "time_ns": None,
    "times_ns": None,
    "prepare_ns": None,
    "build_seconds": None,
    "reason": "",  # how many runs there was time for
    "disturbed": False,
}


def content(db):
    """Every candidate that a campaign holds, with its kernels; times aside."""
    with CampaignReader.read(db) as store:
        return [(replace(row, **UNTIMED), store.kernels(row.id)) for row in store.rows()]


def front_with_times_of(reference, campaign):
    """The front of a campaign if its candidates took as long as those of another."""
    known = {row.id: {"time_ns": row.time_ns, "times_ns": row.times_ns} for row in reference.rows}
    rows = tuple(replace(row, **known[row.id]) for row in campaign.rows)
    return [row.id for row in replace(campaign, rows=rows).pareto()]


def moment(command, db, rng):
    """A campaign killed at some moment and resumed: what happened in words, and what it has then.

    Of eight moments one is somewhere in the start, before the first candidate is done.
    """
    victim, done = rng.choice(VICTIMS), rng.randrange(command.samples)
    seconds = rng.uniform(0, 0.3)
    if rng.randrange(8) == 0:
        done, seconds = 0, rng.uniform(0, 4)
    process = command.start(db)
    try:
        hit = kill_after(process, db, done, seconds, victim)
        if victim == "workers":
            process.wait(LIMIT)  # it goes on with another
        before = Campaign.read(db).rows if db.exists() else ()
        if db.exists():
            assert integrity(db) == "ok"
    finally:
        process.kill()
        process.wait()
    assert sum(row.outcome not in KINDS for row in before) <= 1, "one candidate is under way"
    after = command.finish(db)
    assert integrity(db) == "ok"
    kept = {row.id: row for row in before if row.outcome in KINDS}
    assert kept.items() <= {row.id: row for row in after.rows}.items(), "what was measured stays"
    assert [row.ordinal for row in after.rows] == list(range(command.samples))
    assert after.counts == {"measured": command.samples}, after.counts
    assert [p.name for p in db.parent.glob(f"{db.name}*")] == [db.name]
    how = "ended before" if not hit else f"{done} done, {seconds:.2f} s later"
    return f"{victim:8} {how}, {hit} killed, {len(kept)} kept", after


def rng_of(seed):
    """Moments and victims."""
    return random.Random(seed)

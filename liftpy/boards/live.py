"""A campaign that measures on a board: kernels go there in batches, results come back as rows.

Candidates are drawn and compiled here. A batch is a folder with the kernels and a plan, as in a
bundle; the data that all batches share is copied once. The board's program prints each row when it
has it, and the row is checked like that of an imported file.

If the link breaks, the board's program ends at its next line, and the candidates without a row are
sent again. A candidate is blamed only if the program died, or the board was started again, while it
was running.
"""

from __future__ import annotations

import hashlib
import math
import queue
import re
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from liftpy.boards.bundle import SharedData, check_types, shared_data
from liftpy.boards.connection import one_connection
from liftpy.boards.importing import judged
from liftpy.boards.judgement import Judgement
from liftpy.boards.link import Link, Lost, Machine, ending, is_final
from liftpy.boards.output import Output
from liftpy.boards.plan import REFERENCE, BundledCandidate, plan_text
from liftpy.boards.results import FORMAT, ResultsReader
from liftpy.boards.transports import transport_of
from liftpy.constraints.device import PROFILE, Device, fits, meet, those_named
from liftpy.constraints.profile import profile
from liftpy.errors import BoardRefused, DeviceRefused, UnknownName, plural
from liftpy.explore.campaign.differences import device_text, setting
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.campaign.store import ATTEMPTS
from liftpy.explore.measure.measurer import COMPILING, Allowance, Limits
from liftpy.explore.measure.messages import Compile, Compiled, Setup
from liftpy.explore.measure.outcome import Crashed, Measured, Outcome, TimedOut
from liftpy.explore.measure.pool import Finished, Notes
from liftpy.explore.measure.process import Worker
from liftpy.explore.measure.reference import MODULE
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.version import VERSION
from liftpy.language.text.program import parse

BATCH = 16
LATE = 124
"""The exit code of the runner if a candidate took too long (`guard.h`)."""

KILLED = 128  # exit codes above are those of a program that a signal ended

SILENCE = 30.0  # seconds beyond a candidate's limit after which a silent board is lost

RETRIES = 8
LONGEST_WAIT = 60.0
LOST_WITH = 5
"""How many links may be lost while a candidate runs, before it is given up."""

BEFORE = 100  # lines that a board may print before its results, such as those of a login script


@dataclass(frozen=True)
class Board:
    """The board that a campaign requests: its address, and how kernels are sent to it.

    `compiler` builds the runner on this machine, if it is given. A lost link is tried again
    `retries` times in a row, the first time after `backoff` seconds, then after twice as many.
    `note` is called with messages.
    """

    address: str
    batch: int = BATCH
    compiler: str | None = None
    note: Callable[[str], None] = lambda _: None
    retries: int = RETRIES
    backoff: float = 1.0

    @contextmanager
    def connect(self, device: str | None, begun: Identity | None) -> Generator[BoardExecutor]:
        """The executor that measures on the board.

        `begun` is the identity of the campaign that is resumed. Raises BoardRefused if the board
        cannot be reached or run kernels, UnknownName if it has no such device.
        """
        transport = one_connection(transport_of(self.address))
        with transport as shared, closing(Link(shared, self.compiler, self.note)) as link:
            self.note(f"connecting to {self.address}")
            try:
                machine = link.machine()
            except Lost as lost:
                raise BoardRefused(link.why(str(lost))) from lost
            number, limits = chosen(self.address, machine, device, begun)
            lag = self.batch if begun is None else setting(begun, "lag")
            yield BoardExecutor(self, link, machine, number, limits, lag)


def chosen(
    address: str, machine: Machine, named: str | None, begun: Identity | None
) -> tuple[int, Device]:
    """The number of the board's device that is requested, and the device with its limits.

    The limits are those of the device and, if a profile is named, of the profile. A campaign that
    is resumed keeps its own: a driver may derive limits from the memory that is free.
    """
    known = machine.devices
    given = None
    if named is not None and named.startswith(PROFILE):
        given = profile(named.removeprefix(PROFILE)).device
    if given is not None:
        found = [d for d in known if fits(d, given.name.casefold())]
    elif named is not None:
        found = those_named(named, known)
    else:
        found = [*(d for d in known if d.type == "GPU"), *known]
    if not found:
        listed = "".join(f"\n  {k}: {d.label}" for k, d in enumerate(known))
        raise UnknownName(
            f"{address} has no device '{named if given is None else given.name}'; it has:{listed}\n"
            "Name one of these with --device"
        )
    device = found[0]
    if begun is not None and begun.device["fingerprint"] == device.fingerprint:
        return known.index(device), Device.from_json(begun.device)
    if given is None:
        return known.index(device), device
    texts = {k: getattr(device, k) for k in ("name", "vendor", "platform", "driver_version")}
    limits = replace(
        meet((device, given)), **texts, opencl_c=device.opencl_c, ordinal=device.ordinal, profile=""
    )
    return known.index(device), limits


@dataclass(frozen=True)
class BoardExecutor:
    """A board as the executor of a campaign; `number` is that of its device."""

    board: Board
    link: Link
    machine: Machine
    number: int
    limits: Device
    lag: int

    measures = True
    bounds = False
    """A board compares results with the tolerance alone."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device of the board."""
        return (self.limits,)

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> BoardPool:
        """The pool that measures on the board."""
        return BoardPool(self, setup, limits, notes)


@dataclass
class Job:
    """A candidate without an outcome; `crashes` and `lost` count what happened while it ran."""

    candidate: Candidate
    made: Compiled | None = None
    begun: bool = False
    crashes: int = 0
    lost: int = 0


@dataclass
class Run:
    """A batch that the board runs: its jobs without a row by id, and what the board has printed."""

    jobs: dict[str, Job]
    sha: str
    allowed: Allowance
    output: Output
    reader: ResultsReader
    started: bool = False
    lines: int = 0
    current: Job | None = field(default=None)


class BoardPool:
    """The pool of a board. Use it in a `with`."""

    shares_fate = False

    def __init__(self, on: BoardExecutor, setup: Setup, limits: Limits, notes: Notes) -> None:
        program = parse(setup.text)
        check_types(program)
        self._on = on
        self._link = on.link
        self._limits = limits
        self._notes = notes
        self._compiler = Worker("compiles candidates", COMPILING, setup, deadline=limits.deadline)
        self._judge = Judgement(program, setup.inputs.arrays, lambda _: setup.wanted)
        data = shared_data(program, setup.inputs.arrays(), setup.wanted)
        hashes = "".join(f"{name} {sha}\n" for name, sha in data.inputs)
        hashes += "".join(f"{w.file} {w.sha256}\n" for w in data.wanted)
        self._folder = f"data-{hashlib.sha256(hashes.encode()).hexdigest()[:16]}"
        self._files = data.files
        self._data = SharedData(
            {},
            tuple((f"../{name}", sha) for name, sha in data.inputs),
            tuple(replace(w, file=f"../{w.file}") for w in data.wanted),
        )
        self._campaign = {"program": program.name, "text": setup.text, "version": VERSION}
        self._boot = on.machine.boot
        self._name, self._batches = uuid.uuid4().hex[:8], 0
        self._waiting: deque[Job] = deque()
        self._finished: deque[Finished] = deque()
        self._run: Run | None = None
        self._ready = False  # whether the board has the runner and the data
        self._failures = self._faults = 0  # in a row: lost links, and runners that failed
        self._best = 0.0  # the median time of the fastest candidate in ns
        self._suspect: Job | None = None  # ran when the link was lost

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._compiler.kill()
        self._close()

    # --- the campaign's side ----------------------------------------------------------------------

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        self._waiting.append(Job(candidate))

    def next(self) -> Finished:
        """Waits for the next outcome.

        If the board is this machine, the batch ends first: work here would disturb its times.
        """
        while not self._finished or (self._run is not None and not self._link.transport.apart):
            self._limits.deadline.refuse_if_over("candidates were measured on the board")
            try:
                if self._run is None:
                    self._start()
                else:
                    self._step(self._run)
            except Lost as lost:
                self._lost(str(lost))
        return self._finished.popleft()

    def halt(self) -> tuple[Finished, ...]:
        """Ends the run; returns the candidates with outcomes that `next` has not returned."""
        self._close()
        return tuple(self._finished)

    # --- a batch ----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Compiles the next batch, sends it and starts it."""
        self._prepare()  # first: a candidate that it gives up must be in no batch
        jobs = self._compiled()
        if not jobs:
            return
        try:
            self._send(jobs)
        except Lost:
            self._waiting.extendleft(reversed(jobs.values()))
            raise

    def _send(self, jobs: dict[str, Job]) -> None:
        self._batches += 1
        name = f"{self._name}-{self._batches}"
        place = f"{self._link.folder}/{self._folder}"
        parts = [
            BundledCandidate(job.candidate, job.made.module, f"kernels/{key}.cl", job.made.sha)
            for key, job in jobs.items()
            if job.made is not None
        ]
        plan = plan_text(
            self._campaign, self._on.limits, self._data.inputs, self._data.wanted, parts, self._best
        ).encode()
        kernels = {part.file: part.module.source.encode() for part in parts}
        kernels[REFERENCE] = MODULE.source.encode()
        self._link.copy(name, {"plan.txt": plan, **kernels, **self._link.libraries}, place)
        allowed = self._limits.allowance()
        seconds = max(1, math.ceil(allowed.seconds))
        options = f"--device {self._on.number} --limit {seconds} --lock ../../lock"
        command = ending(
            f"cd {place}/{name} && exec ../../{self._link.runner} {options}",
            f"rm -rf {place}/{name}",
        )
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the run
        output = Output(self._link.transport.start(command, errors), errors)
        reader = ResultsReader(Path(self._link.address), "", partial=True)
        sha = hashlib.sha256(plan).hexdigest()
        self._run = Run(jobs, sha, allowed, output, reader)

    def _prepare(self) -> None:
        """Makes sure of the runner and the data, at the beginning and after each failure."""
        if self._ready:
            return
        if self._failures or self._faults:
            machine = self._link.machine()
            if machine.boot != self._boot:
                self._boot = machine.boot
                self._restarted()
            self._link.remove(f"{self._folder}/{self._name}-*")  # batches that were cut off
        if self._faults:
            self._link.remove(self._folder)
        self._link.send_data(self._folder, self._files)
        self._ready = True

    def _compiled(self) -> dict[str, Job]:
        """The jobs of the next batch, with their kernels."""
        jobs: dict[str, Job] = {}
        while self._waiting and len(jobs) < self._on.board.batch:
            job = self._waiting.popleft()
            if job.made is None and (made := self._compile(job)) is not None:
                self._begin(job)
                self._finish(job, made)
                continue
            jobs[job.candidate.key] = job
        return jobs

    def _compile(self, job: Job) -> Outcome | None:
        """Compiles a candidate; its outcome, if it has no kernels."""
        allowed = self._limits.allowance()
        request = Compile(job.candidate.skeleton.key, job.candidate.point)
        made = self._compiler.ask(request, allowed.seconds, allowed.seconds, "compiling it")
        if isinstance(made, Compiled):
            job.made = made
            return None
        return allowed.said(made)

    def _begin(self, job: Job) -> None:
        if not job.begun:
            job.begun = True
            self._notes.begin(job.candidate)
            if job.made is not None:
                self._notes.compiled(job.candidate, job.made, self._on.limits)

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._finished.append(Finished(job.candidate, outcome))

    # --- its output -------------------------------------------------------------------------------

    def _step(self, run: Run) -> None:
        """Handles the next line of the board."""
        streams = self._link.transport.streams
        silence = SILENCE + run.allowed.seconds * (1 if streams else len(run.jobs))
        try:
            line = run.output.line(min(silence, self._limits.deadline.left))
        except queue.Empty:
            self._limits.deadline.refuse_if_over("candidates were measured on the board")
            if not run.started and run.output.has_said_more():  # it waits for another run
                return
            raise Lost(f"it printed nothing for {silence:.0f} s") from None
        if line is None:
            raise Lost(run.output.said() or "the output ended before that of the board")
        run.lines += 1
        key, _, rest = line.removeprefix("# ").partition(" ")
        if line.startswith("# exit "):
            self._ended(run, rest)
        elif not run.started:
            run.started = line == FORMAT
            if not run.started and run.lines > BEFORE:
                raise BoardRefused(
                    f"{self._link.address} prints {BEFORE} lines, and none is '{FORMAT}': the "
                    "login there must not print anything"
                )
        elif line.startswith("# begin ") and rest in run.jobs:
            if "bundle" not in run.reader.said:
                what = "prints no '# bundle' before a candidate: is it of another version?"
                raise BoardRefused(f"the runner of {self._link.address} {what}")
            run.current = run.jobs[rest]
            self._begin(run.current)
        else:
            self._take(run, line, key)

    def _take(self, run: Run, line: str, key: str) -> None:
        """Takes a remark or a row."""
        row = run.reader.take(run.lines, line)
        if key == "device":
            self._check_device(run.reader.device())
        elif key == "bundle" and run.reader.the("bundle")[1] != run.sha:
            raise Lost("the plan did not arrive whole")
        if row is None:
            return
        job = run.jobs.get(row.candidate)
        if job is None or job.made is None or job is not run.current:
            raise BoardRefused(
                f"{self._link.address} prints a row of candidate {row.candidate}, which it does "
                "not run. Is another program writing to its output?"
            )
        outcome = judged(run.reader.path, row, job.made.module, self._judge)
        if isinstance(outcome, Measured):
            self._best = min(self._best or math.inf, outcome.time_ns)
        self._failures = self._faults = 0
        self._suspect = run.current = None
        del run.jobs[row.candidate]
        self._finish(job, outcome)

    def _check_device(self, found: Device) -> None:
        wanted = self._on.limits
        if (found.fingerprint, found.ordinal) != (wanted.fingerprint, wanted.ordinal):
            raise DeviceRefused(
                f"the device of {self._link.address} is now {device_text(found.to_json())}, the "
                f"campaign runs on {device_text(wanted.to_json())}: times of two devices, or of "
                "two drivers, cannot be mixed. Name another --db"
            )

    # --- its end ----------------------------------------------------------------------------------

    def _ended(self, run: Run, code: str) -> None:
        """Handles the end of the runner: candidates without a row are sent again, or blamed."""
        said, current = run.output.said(), run.current
        number = int(code) if re.fullmatch("[0-9]{1,3}", code) else -1
        self._close()
        if number == LATE and current is not None:
            outcome = TimedOut(run.allowed.seconds, "running it on the board")
            self._give_up(current, run.allowed.said(outcome))
        elif number > KILLED and current is not None:
            current.crashes += 1
            self._blame(current, f"its runner ended with code {number} {said}".strip())
        elif number or run.jobs:
            self._fault(
                f"its runner ended with code {number} before all candidates had a result", said
            )

    def _fault(self, what: str, said: str) -> None:
        """Makes the next batch check runner and data; BoardRefused for a second fault in a row."""
        self._ready = False
        self._faults += 1
        if self._faults > 1:
            raise BoardRefused(
                f"{self._link.address} gave no result twice in a row: {what}"
                f"{f', and said: {said}' if said else ''}. Mend this there"
            )

    def _blame(self, job: Job, how: str) -> None:
        """Gives up a candidate if it has had all its attempts."""
        if job.crashes >= ATTEMPTS:
            self._give_up(job, Crashed(f"{job.crashes} times while it ran on the board, {how}"))
        elif job.lost >= LOST_WITH:
            self._give_up(job, Crashed(f"{job.lost} times while it ran on the board, {how}"))

    def _give_up(self, job: Job, outcome: Outcome) -> None:
        self._waiting = deque(other for other in self._waiting if other is not job)
        if self._suspect is job:
            self._suspect = None
        self._finish(job, outcome)

    def _restarted(self) -> None:
        """Blames the candidate that ran when the link was lost, since the board was restarted."""
        self._on.board.note(f"{self._link.address} was started again")
        if self._suspect is not None:
            self._suspect.crashes += 1
            self._blame(self._suspect, "the board was started again")

    def _lost(self, why: str) -> None:
        """Handles a lost link: waits before another attempt, of which there are not too many."""
        if self._run is not None:
            self._suspect = self._run.current
        self._close()
        self._ready = False
        if is_final(why):
            raise BoardRefused(self._link.why(why))
        board = self._on.board
        self._failures += 1
        if self._failures > board.retries:
            raise BoardRefused(
                f"{self._link.address} gave no result in {plural(self._failures, 'attempt')}; the "
                f"last time: {why}. Is it on, and connected?"
            )
        if self._suspect is not None and self._failures == 1:
            self._suspect.lost += 1
            self._blame(self._suspect, f"the link was lost: {why}")
        wait = min(board.backoff * 2 ** (self._failures - 1), LONGEST_WAIT)
        board.note(f"the link to {self._link.address} is lost ({why}); next attempt in {wait:g} s")
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            self._limits.deadline.refuse_if_over("the board could not be reached")
            time.sleep(min(left, 0.5))

    def _close(self) -> None:
        """Ends the run in progress; its candidates without a row wait again, the first first."""
        run, self._run = self._run, None
        if run is not None:
            run.output.close()
            self._waiting.extendleft(reversed(run.jobs.values()))

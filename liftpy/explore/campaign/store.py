"""Writing a campaign to its SQLite file: its identity, every candidate, every outcome.

A candidate's row is written before it is launched, with the outcome `running`. So after a crash of
any kind, the file shows which candidate was in progress. Rows are never deleted.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.errors import BoardRefused, StoreRefused, WorkerRefused
from liftpy.explore.campaign.database import MOST, Seed, create, saying, writable
from liftpy.explore.campaign.differences import differences
from liftpy.explore.campaign.lock import Lock
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.rows import Call, Identity
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.seals import CAMPAIGN, seal
from liftpy.explore.measure.outcome import BuildFailed, ByModel, Measured, Outcome, Refused
from liftpy.explore.measure.samples import departs, farthest
from liftpy.explore.space.candidate import Candidate, steps_text
from liftpy.files.reading import check
from liftpy.opencl.clock import BY_HOST
from liftpy.opencl.kernel import MemoryFigures, Module
from liftpy.opencl.session import BUILD_OPTIONS, options_of

ATTEMPTS = 2
"""How often a campaign may end abruptly during a candidate before the candidate is blamed."""


class Store(CampaignReader):
    """The open database of the campaign that this process runs; use it in a `with`."""

    def __init__(self, path: Path, db: sqlite3.Connection, lock: Lock, identity: Identity) -> None:
        super().__init__(path, db)
        self._lock = lock
        self._identity = identity
        self._call: int | None = None
        self._together = False
        self._by_host = False

    # --- opening ----------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, identity: Identity) -> Store:
        """The database of a campaign, created if there is no file; only one process has it open.

        Raises StoreRefused, and leaves the file unchanged, if it is not a database of liftpy or
        belongs to another campaign.
        """
        with saying(path):
            target = path.resolve()  # one lock per file, whatever its name
            is_folder, has_folder = path.is_dir(), path.parent.is_dir()
            there = target.exists()
        if is_folder:
            raise StoreRefused(f"{path} is a folder: name a file, such as {path / 'liftpy.db'}")
        if there:
            check(path, target.stat(), MOST, StoreRefused)
        if not has_folder:
            raise StoreRefused(f"{path} cannot be created: there is no folder {path.parent}")
        lock = Lock(target)
        try:
            if not target.exists() or target.stat().st_size == 0:
                create(target, _seeds(identity))
            else:
                _check(path, identity)
            return cls(path, writable(target), lock, identity)
        except BaseException:
            lock.release()
            raise

    def note(self, call: Call) -> None:
        """Records a call that starts or resumes the campaign; closing the store records its end."""
        values = (call.started, call.command, _json(call.limits), _json(call.environment))
        with self._writing(CAMPAIGN) as db:
            self._call = db.execute(
                "INSERT INTO call (started, command, limits, environment) VALUES (?, ?, ?, ?)",
                values,
            ).lastrowid

    def stop(self, why: str) -> None:
        """Records why the call ends before the campaign is complete."""
        with self._writing(CAMPAIGN) as db:
            db.execute(
                "UPDATE call SET limits = json_set(limits, '$.stopped', ?) WHERE id = ?",
                (why, self._call),
            )

    def close(self) -> None:
        """Closes the file, and lets other processes run the campaign."""
        try:
            if self._call is not None:
                with self._writing(CAMPAIGN) as db:
                    ended = (time.time(), self._call)
                    db.execute("UPDATE call SET ended = ? WHERE id = ?", ended)
                self._call = None
        finally:
            super().close()
            self._lock.release()

    @contextmanager
    def resumable(self) -> Generator[None]:
        """Adds to WorkerRefused and BoardRefused how much is stored, and how to resume."""
        try:
            yield
        except (WorkerRefused, BoardRefused) as refusal:
            n = len(self.done())
            kept = "1 candidate is" if n == 1 else f"{n} candidates are"
            raise type(refusal)(
                f"the campaign stopped: {refusal}\n{kept} stored in {self.path}; fix this, "
                "and repeat the command to continue"
            ) from refusal

    def borrow(self, stage: str, times: Sequence[dict[str, Any]]) -> None:
        """Stores the times of other campaigns that a stage's search begins with."""
        with self._writing(CAMPAIGN) as db:
            db.execute("INSERT INTO borrowed VALUES (?, ?)", (stage, json.dumps(times)))

    # --- writing ----------------------------------------------------------------------------------

    def begin(self, candidate: Candidate) -> None:
        """Records that a candidate is in progress.

        Raises StoreRefused if another candidate has its position in the drawing order.
        """
        self._check_place(candidate)
        expression, steps = digest(self._identity.text), steps_text(candidate.skeleton)
        derivation = digest(expression, candidate.skeleton.key, steps)
        chosen = {"words": candidate.skeleton.words, "sizes": candidate.point}
        with self._writing(candidate.key) as db:
            db.execute(
                "INSERT INTO derivation VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (derivation, expression, candidate.skeleton.key, steps),
            )
            db.execute(
                'INSERT INTO candidate VALUES (?, ?, ?, ?, ?) ON CONFLICT ("key") DO NOTHING',
                (
                    candidate.key,
                    candidate.ordinal,
                    derivation,
                    json.dumps(chosen),
                    self._identity.version,
                ),
            )
            db.execute(
                "INSERT INTO outcome (candidate, kind, reason, attempts, started)"
                " VALUES (?, 'running', 'under way', 1, ?) ON CONFLICT (candidate) DO UPDATE"
                " SET kind = 'running', reason = 'under way', attempts = attempts + 1,"
                " started = excluded.started",
                (candidate.key, time.time()),
            )
            db.execute('UPDATE campaign SET "cursor" = max("cursor", ? + 1)', (candidate.ordinal,))

    def _check_place(self, candidate: Candidate) -> None:
        """Raises StoreRefused if another candidate has its position in the drawing order."""
        query = 'SELECT "key" FROM candidate WHERE ordinal = ?'
        for there in self._ask(query, candidate.ordinal):
            if there["key"] != candidate.key:
                raise StoreRefused(
                    f"{self.path} has {there['key']} as candidate {candidate.ordinal}, this liftpy "
                    f"draws {candidate.key} ({candidate.label}) there: liftpy has changed since, "
                    "or the device had other limits. Name another file with --db"
                )

    def place(self, candidate: Candidate) -> None:
        """Gives an imported candidate the position at which the campaign has drawn it.

        Raises StoreRefused if another candidate has this position.
        """
        self._check_place(candidate)
        with self._writing(candidate.key) as db:
            db.execute(
                'UPDATE candidate SET ordinal = ? WHERE "key" = ? AND ordinal < 0',
                (candidate.ordinal, candidate.key),
            )
            db.execute('UPDATE campaign SET "cursor" = max("cursor", ? + 1)', (candidate.ordinal,))

    def compiled(
        self, candidate: Candidate, module: Module, sha: str, device: Device | None = None
    ) -> None:
        """Records the kernels of a candidate and their build options, before they are launched.

        `device` is the campaign's by default. If a candidate moves to another device, this replaces
        its record.
        """
        on = Device.from_json(self._identity.device) if device is None else device
        with self._writing(candidate.key) as db:
            db.execute(
                "INSERT OR REPLACE INTO build VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
                (
                    candidate.key,
                    on.fingerprint,
                    on.driver_version,
                    " ".join(options_of(module, on, BUILD_OPTIONS)),
                    module.source,
                    sha,
                    module.manifest_json(),
                ),
            )

    @contextmanager
    def together(self) -> Generator[None]:
        """A transaction around several writes: all of them are kept, or none after an exception."""
        with self._writing():
            self._together = True
            try:
                yield
            finally:
                self._together = False
        self._checkpoint()

    def end(self, key: str, outcome: Outcome, origin: str = "") -> None:
        """Records the outcome of a candidate in progress; `origin` is appended to its reason.

        A checkpoint then moves the data from the log (`-wal`) to the file itself, so that a copy of
        only the file has it.
        """
        reason = f"{outcome.reason}; {origin}" if origin else outcome.reason
        try:
            with self._writing(key) as db:
                db.execute(
                    "UPDATE outcome SET kind = ?, reason = ?, finished = ? WHERE candidate = ?",
                    (outcome.kind, reason, time.time(), key),
                )
                if isinstance(outcome, Measured):
                    _write_measured(db, key, outcome)
                elif isinstance(outcome, ByModel):
                    _write_times(db, key, outcome.time_ns, None, outcome.memory)
                    _write_runs(db, key, [outcome.kernels_ns], 0)
                elif isinstance(outcome, BuildFailed):
                    db.execute("UPDATE build SET log = ? WHERE candidate = ?", (outcome.log, key))
                elif isinstance(outcome, Refused) and outcome.limit is not None:
                    db.execute(
                        "INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)",
                        (key, *astuple(outcome.limit)),
                    )
            if isinstance(outcome, Measured):
                self._note_clock(outcome)
            if not self._together:
                self._checkpoint()
        except StoreRefused:
            self.excuse_if_possible(key, "its outcome could not be written")
            raise

    def _note_clock(self, measured: Measured) -> None:
        """Records in the environment of the call if the device's clock was not used."""
        if measured.clock == "host" and self._call is not None and not self._by_host:
            with self._writing(CAMPAIGN) as db:
                db.execute(
                    "UPDATE call SET environment = json_set(environment, '$.clock', ?)"
                    " WHERE id = ?",
                    (BY_HOST, self._call),
                )
            self._by_host = True

    def sharpen(self, key: str, outcome: Outcome) -> None:
        """Records the outcome of measuring a candidate again: more samples, or a failure.

        Searches see its first time only. The stored departure is that of the more disturbed
        measurement.
        """
        if not isinstance(outcome, Measured):
            self.end(key, outcome)
            return
        with self._writing(key) as db:
            query = 'SELECT coalesce(max("repeat") + 1, 0) FROM run WHERE candidate = ?'
            (first,) = db.execute(query, (key,)).fetchone()
            _write_runs(db, key, outcome.times_ns, first)
            query = "SELECT departure FROM outcome WHERE candidate = ?"
            (before,) = db.execute(query, (key,)).fetchone()
            known = [ratio for ratio in (before, outcome.departure) if ratio is not None]
            _write_departure(db, key, farthest(known) if known else None)
        self._note_clock(outcome)

    def excuse(self, key: str, why: str = "stopped by the user") -> None:
        """Records that the candidate in progress did not cause the end of the campaign."""
        with self._writing(key) as db:
            db.execute(
                "UPDATE outcome SET kind = 'pending', reason = ?, attempts = attempts - 1"
                " WHERE candidate = ? AND kind = 'running'",
                (why, key),
            )

    def excuse_if_possible(self, key: str, why: str) -> None:
        """Calls `excuse`, and ignores a failure to write: an earlier error ended the campaign."""
        try:
            self.excuse(key, why)
        except StoreRefused:
            return  # the earlier error is reported; the candidate is tried once more

    def _checkpoint(self) -> None:
        """Moves the written data from the log into the file."""
        with saying(self.path):
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _writing(self, *keys: str) -> Generator[sqlite3.Connection]:
        """A transaction about some candidates or `CAMPAIGN`; it seals their rows at its end.

        Raises StoreRefused if it cannot be written; then nothing of it is.
        """
        if self._together:  # the outer one is the transaction
            yield self._db
            seal(self._db, keys)
            return
        with saying(self.path), self._db:
            yield self._db
            seal(self._db, keys)


def _seeds(identity: Identity) -> list[Seed]:
    """The rows that a campaign begins with."""
    expression = digest(identity.text)
    return [
        ("INSERT INTO expression VALUES (?, ?)", (expression, identity.text)),
        (
            "INSERT INTO campaign VALUES (1, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
            (
                identity.program,
                expression,
                _json(identity.device),
                identity.device["driver_version"],
                identity.version,
                identity.seed,
                _json(identity.settings),
                time.time(),
            ),
        ),
    ]


def _check(path: Path, wanted: Identity) -> None:
    """Refuses a file of another campaign, with all differences."""
    with CampaignReader.read(path) as there:
        lines = "".join(f"\n  {line}" for line in differences(there.identity, wanted))
    if lines:
        raise StoreRefused(
            f"{path} belongs to another campaign; it was not changed. Differences:{lines}\n"
            "Name another file with --db, or repeat the command that made this one"
        )


def _write_measured(db: sqlite3.Connection, key: str, measured: Measured) -> None:
    _write_times(db, key, measured.time_ns, measured.prepare_ns, measured.memory)
    _write_departure(db, key, measured.departure)
    _write_runs(db, key, measured.times_ns, 0)
    db.execute(
        "INSERT OR REPLACE INTO verification VALUES (?, ?, ?)", (key, measured.error, measured.rms)
    )
    db.execute(
        "UPDATE build SET log = ?, seconds = ? WHERE candidate = ?",
        (measured.build_log, measured.build_seconds, key),
    )


def _write_times(
    db: sqlite3.Connection, key: str, time_ns: int, prepare_ns: int | None, memory: MemoryFigures
) -> None:
    figures: dict[str, Any] = {"time_ns": time_ns, "prepare_ns": prepare_ns, **asdict(memory)}
    columns = ", ".join(f'"{name}" = :{name}' for name in figures)
    db.execute(
        f"UPDATE outcome SET {columns} WHERE candidate = :key",  # noqa: S608  names above
        {**figures, "key": key},
    )


def _write_departure(db: sqlite3.Connection, key: str, departure: float | None) -> None:
    disturbed = None if departure is None else departs(departure)
    db.execute(
        "UPDATE outcome SET disturbed = ?, departure = ? WHERE candidate = ?",
        (disturbed, departure, key),
    )


def _write_runs(
    db: sqlite3.Connection, key: str, times_ns: Sequence[Sequence[int]], first: int
) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?)",
        (
            (key, repeat, launch, ns)
            for repeat, launches in enumerate(times_ns, first)
            for launch, ns in enumerate(launches)
        ),
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)

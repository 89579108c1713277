"""A campaign in an SQLite file: what was asked, every candidate, and what became of it.

A candidate's row is written before it is launched, with the outcome `running`; a crash of whatever
kind therefore marks the candidate that was under way. Nothing is ever deleted.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from liftpy.constraints.device import Device
from liftpy.errors import StoreRefused, UnknownName
from liftpy.explore.candidate import Candidate, steps_text, words
from liftpy.explore.outcome import KINDS, KernelLimit, Measured, Outcome, Refused
from liftpy.explore.rows import Identity, Row, to_row
from liftpy.explore.schema import APPLICATION_ID, LEARNED, PLACE, SCHEMA, SCHEMA_VERSION
from liftpy.opencl.kernel import Memory, Module

ATTEMPTS = 2
"""How often a candidate may be under way when its campaign ends abruptly, before it is to blame."""

BEFORE = {"search": "random", "sampler": "uniform", "lag": 1}
"""Settings that older files do not have, and what they were then."""


class Store:
    """An open campaign database; use it in a `with`."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: sqlite3.Connection | None = None
    ) -> None:
        self.path = path
        self._db = connection
        self._lock = lock

    # --- opening ----------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, identity: Identity) -> Store:
        """The database of a campaign, created if there is no file.

        Raises StoreRefused if the file is something else, or belongs to another campaign.
        """
        if path.is_dir():
            raise StoreRefused(f"{path} is a folder: name a file, such as {path / 'liftpy.db'}")
        if not path.parent.is_dir():
            raise StoreRefused(f"{path} cannot be created: there is no folder {path.parent}")
        lock = _lock(path)
        store: Store | None = None
        try:
            with _readable(path):
                new = not path.exists() or path.stat().st_size == 0
                store = cls(path, _connect(path), lock)
                if new:
                    store._create(identity)
                store._check_kind()
                store._check(identity)
                store._db.execute(LEARNED)
                store._db.execute(PLACE)
                store._db.execute("PRAGMA journal_mode = WAL")
                store._db.execute("PRAGMA synchronous = NORMAL")
        except StoreRefused:
            _release(lock, path) if store is None else store.close()
            raise
        return store

    @classmethod
    def read(cls, path: Path) -> Store:
        """The database of a campaign that exists. Raises StoreRefused if it does not."""
        if not path.is_file():
            raise StoreRefused(
                f"there is no campaign {path}: `liftpy explore PROGRAM --db {path}` makes one"
            )
        _remove_stale_lock(path)
        with _readable(path):
            store = cls(path, _connect(path))
            store._check_kind()
        return store

    def _create(self, identity: Identity) -> None:
        with self._db:
            self._db.executescript(f"BEGIN; {SCHEMA}")
            self._db.execute(
                "INSERT INTO campaign VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    identity.program,
                    identity.text,
                    json.dumps(identity.device, sort_keys=True),
                    identity.device["driver_version"],
                    identity.version,
                    identity.seed,
                    json.dumps(identity.settings, sort_keys=True),
                    time.time(),
                ),
            )

    def _check_kind(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise StoreRefused(
                f"{self.path} is a database, but not one of liftpy; it was left as it is. "
                "Name another file with --db"
            )
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreRefused(
                f"{self.path} has the database format {version}, this liftpy reads format "
                f"{SCHEMA_VERSION}; it was left as it is. Name another file with --db, or read it "
                "with the liftpy that wrote it"
            )

    def _check(self, wanted: Identity) -> None:
        """Refuses a campaign that is not the wanted one, with all differences."""
        there = self.identity
        differences: list[str] = []
        if there.text != wanted.text:
            name = "another program" if there.program != wanted.program else "another text of it"
            differences.append(
                f"the program: it holds {there.program}, this is {wanted.program} ({name})"
            )
        if _place(there.device) != _place(wanted.device):
            differences.append(
                f"the device: it holds {_spell(there.device)}, this is {_spell(wanted.device)}"
            )
        if there.version != wanted.version:
            differences.append(
                f"the version of liftpy: it holds {there.version}, this is {wanted.version}"
            )
        if there.seed != wanted.seed:
            differences.append(f"the seed: it holds {there.seed}, this is {wanted.seed}")
        for name in sorted(there.settings.keys() | wanted.settings.keys()):
            old, new = (s.settings.get(name, BEFORE.get(name)) for s in (there, wanted))
            same = name == "sizes" and there.text == wanted.text  # the numbers are in the text
            if old != new and not same:
                was, now = ("none" if v is None else _spell_setting(v) for v in (old, new))
                differences.append(f"{name.replace('_', ' ')}: it holds {was}, this is {now}")
        if differences:
            lines = "\n".join(f"  {line}" for line in differences)
            raise StoreRefused(
                f"{self.path} belongs to another campaign; it was left as it is. What differs:\n"
                f"{lines}\nName another file with --db, or go back to what made this one"
            )

    @property
    def identity(self) -> Identity:
        """What the campaign is."""
        row = self._db.execute("SELECT * FROM campaign").fetchone()
        return Identity(
            row["program"],
            row["text"],
            json.loads(row["device"]),
            row["version"],
            row["seed"],
            json.loads(row["settings"]),
        )

    def close(self) -> None:
        """Closes the file."""
        self._db.close()
        if self._lock is not None:
            _release(self._lock, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- writing ----------------------------------------------------------------------------------

    def begin(self, candidate: Candidate) -> None:
        """Notes that a candidate is under way.

        Raises StoreRefused if this place in the drawing order was another candidate's.
        """
        there = self._db.execute(
            "SELECT key FROM candidate WHERE ordinal = ?", (candidate.ordinal,)
        ).fetchone()
        if there is not None and there["key"] != candidate.key:
            raise StoreRefused(
                f"{self.path} has {there['key']} as candidate {candidate.ordinal}, this liftpy "
                f"draws {candidate.key} ({candidate.label}) there: liftpy was changed since. "
                "Name another file with --db"
            )
        with self._db:
            self._db.execute(
                "INSERT INTO candidate (key, ordinal, skeleton, steps, assignment)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                (
                    candidate.key,
                    candidate.ordinal,
                    candidate.skeleton.key,
                    steps_text(candidate.skeleton),
                    json.dumps({"words": words(candidate.skeleton), "sizes": candidate.assignment}),
                ),
            )
            self._db.execute(
                "INSERT INTO outcome (candidate, kind, reason, attempts, started)"
                " VALUES (?, 'running', 'under way', 1, ?) ON CONFLICT (candidate) DO UPDATE"
                " SET kind = 'running', reason = 'under way', attempts = attempts + 1,"
                " started = excluded.started",
                (candidate.key, time.time()),
            )

    def compiled(
        self, candidate: Candidate, module: Module, sha: str, device: Device | None = None
    ) -> None:
        """Notes the kernels of a candidate, before they are launched on a device.

        Without one, that is the campaign's.
        """
        fingerprint = self.identity.device["fingerprint"] if device is None else device.fingerprint
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO place VALUES (?, ?)", (candidate.key, fingerprint)
            )
            self._db.execute(
                "UPDATE candidate SET source = ?, source_sha = ?, manifest = ? WHERE key = ?",
                (module.source, sha, module.manifest_json(), candidate.key),
            )

    def end(self, key: str, outcome: Outcome) -> None:
        """Notes the outcome of a candidate that is under way."""
        measured = outcome if isinstance(outcome, Measured) else None
        figures = dict.fromkeys(Memory.__dataclass_fields__) if measured is None else None
        values: dict[str, Any] = {
            "kind": outcome.kind,
            "reason": outcome.reason,
            "time_ns": measured and measured.time_ns,
            "times_ns": measured and json.dumps(measured.times_ns),
            "prepare_ns": measured and measured.prepare_ns,
            "error": measured and measured.error,
            "build_seconds": measured and measured.build_seconds,
            "finished": time.time(),
            **(figures or (asdict(measured.memory) if measured else {})),
        }
        columns = ", ".join(f"{name} = :{name}" for name in values)
        with self._db:
            self._db.execute(
                f"UPDATE outcome SET {columns} WHERE candidate = :key",  # noqa: S608  names above
                {**values, "key": key},
            )
            if isinstance(outcome, Refused) and outcome.limit is not None:
                self._db.execute(
                    "INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)",
                    (key, *astuple(outcome.limit)),
                )

    def excuse(self, key: str, why: str = "stopped by the user") -> None:
        """Notes that the candidate under way is not to blame for the end of the campaign."""
        with self._db:
            self._db.execute(
                "UPDATE outcome SET kind = 'pending', reason = ?,"
                " attempts = attempts - 1 WHERE candidate = ? AND kind = 'running'",
                (why, key),
            )

    # --- reading ----------------------------------------------------------------------------------

    def attempts(self, key: str) -> int:
        """How often a candidate without an outcome was begun; 0 if never."""
        row = self._db.execute(
            "SELECT attempts FROM outcome WHERE candidate = ? AND kind = 'running'", (key,)
        ).fetchone()
        return 0 if row is None else row["attempts"]

    def under_way(self) -> list[str]:
        """The candidates that were begun and have no outcome."""
        rows = self._db.execute("SELECT candidate FROM outcome WHERE kind = 'running'")
        return [row["candidate"] for row in rows.fetchall()]

    def device_of(self, key: str) -> str | None:
        """The fingerprint of the device that a candidate's kernels were launched on."""
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE name = 'place'")
        if tables.fetchone() is None:  # an older file, opened to be read
            return None
        row = self._db.execute("SELECT device FROM place WHERE candidate = ?", (key,)).fetchone()
        return None if row is None else row["device"]

    def done(self) -> set[str]:
        """The candidates that have their outcome."""
        rows = self._db.execute("SELECT candidate, kind FROM outcome")
        return {row["candidate"] for row in rows if row["kind"] in KINDS}

    def learned(self) -> dict[str, KernelLimit]:
        """What drivers said of built kernels, by the candidate that was refused for it."""
        rows = self._db.execute("SELECT * FROM learned")
        return {
            row["candidate"]: KernelLimit(row["kernel"], row["figure"], row["number"])
            for row in rows
        }

    def kinds(self) -> Iterator[str]:
        """The kind of every outcome there is."""
        rows = self._db.execute("SELECT kind FROM outcome").fetchall()
        return (row["kind"] for row in rows if row["kind"] in KINDS)

    def best_ns(self, device: Device | None = None) -> int | None:
        """The shortest time measured so far, on a device if one is given."""
        query = "SELECT min(time_ns) FROM outcome"
        if device is None:
            (best,) = self._db.execute(query).fetchone()
        else:
            on = f"{query} NATURAL JOIN place WHERE device = ?"
            (best,) = self._db.execute(on, (device.fingerprint,)).fetchone()
        return best

    def rows(self) -> list[Row]:
        """Every candidate, in the order drawn."""
        query = "SELECT * FROM candidate JOIN outcome ON key = candidate ORDER BY ordinal"
        return [to_row(row, self.device_of(row["key"])) for row in self._db.execute(query)]

    def row(self, id_: str) -> Row:
        """The candidate whose id begins with these digits. UnknownName if there is not just one."""
        fitting = [row for row in self.rows() if id_ and row.id.startswith(id_)]
        if len(fitting) != 1:
            found = f"{len(fitting)} candidates" if fitting else "no candidate"
            raise UnknownName(
                f"{self.path} has {found} '{id_}'; `liftpy candidates {self.path}` lists them"
            )
        return fitting[0]

    def costs(self, key: str) -> tuple[int | None, int | None]:
        """Time in ns and peak in bytes of a candidate; None where it was not measured."""
        row = self._db.execute(
            "SELECT time_ns, peak FROM outcome WHERE candidate = ?", (key,)
        ).fetchone()
        return row["time_ns"], row["peak"]

    def kernels(self, key: str) -> tuple[str | None, str | None]:
        """The stored source of a candidate and its manifest; None where it was not compiled."""
        row = self._db.execute(
            "SELECT source, manifest FROM candidate WHERE key = ?", (key,)
        ).fetchone()
        return row["source"], row["manifest"]


def _spell_setting(value: Any) -> str:
    if isinstance(value, list):  # families, conditions
        return ", ".join(map(str, cast("list[Any]", value)))
    if isinstance(value, dict):  # sizes
        return ", ".join(f"{n} = {v}" for n, v in cast("dict[str, int]", value).items())
    return str(value)


def _place(device: dict[str, Any]) -> tuple[str, int]:
    return device["fingerprint"], device["ordinal"]


def _spell(device: dict[str, Any]) -> str:
    ordinal = f" (number {device['ordinal'] + 1})" if device["ordinal"] else ""
    return f"{device['platform']}: {device['name']}, driver {device['driver_version']}{ordinal}"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.row_factory = sqlite3.Row
    return connection


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-lock")


def _lock(path: Path) -> sqlite3.Connection:
    """Makes this process the only one that runs the campaign, as long as it lives.

    An exclusive transaction in a file beside the database: the operating system ends it with the
    process, however that dies, and readers of the database itself are not in its way. The file
    that a killed process leaves holds no lock; who comes next takes it over or removes it.
    """
    while True:
        lock: sqlite3.Connection | None = None
        try:
            before = _touched(_lock_path(path))
            lock = sqlite3.connect(_lock_path(path), timeout=0.5, isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
            after = _lock_path(path).stat() if _lock_path(path).exists() else None
        except (sqlite3.DatabaseError, OSError) as error:
            if lock is not None:
                lock.close()
                if not _lock_path(path).exists():  # somebody removed it meanwhile
                    continue
            if not str(error).startswith("database is locked"):
                raise StoreRefused(
                    f"{path} cannot be used: its lock {_lock_path(path)} cannot be written "
                    f"({error}). Name a file in a folder that you may write to with --db"
                ) from error
            raise StoreRefused(
                f"another process is running the campaign {path} ({error}). Wait for it, stop it, "
                "or name another file with --db"
            ) from error
        if after is not None and os.path.samestat(before, after):
            return lock
        lock.close()  # another file has the name by now: this lock keeps nobody out


def _touched(path: Path) -> os.stat_result:
    """A file that exists from now on."""
    path.touch()
    return path.stat()


def _is_free(path: Path) -> bool:
    """Whether nobody holds the lock of a campaign that has a lock file, or there is none."""
    if not _lock_path(path).exists():
        return True
    other = sqlite3.connect(_lock_path(path), timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return False
    finally:
        other.close()
    return True


def _remove_stale_lock(path: Path) -> None:
    """Removes the lock file that a killed process left; one that is held stays."""
    if _lock_path(path).exists() and _is_free(path):
        _lock_path(path).unlink(missing_ok=True)


def _release(lock: sqlite3.Connection, path: Path) -> None:
    lock.close()
    _lock_path(path).unlink(missing_ok=True)


@contextmanager
def _readable(path: Path) -> Generator[None]:
    """Turns what SQLite says of a file it cannot read into a sentence."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise StoreRefused(
            f"{path} is not a liftpy database ({error}); it was left as it is. "
            "Name another file with --db"
        ) from error

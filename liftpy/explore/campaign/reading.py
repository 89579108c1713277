"""Reading a campaign's database."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from liftpy.constraints.device import Device
from liftpy.errors import StoreRefused, UnknownName, a_few
from liftpy.explore.campaign.database import MOST, saying, snapshot, understanding
from liftpy.explore.campaign.rows import Call, Identity, Row, to_row
from liftpy.explore.campaign.schema import digest
from liftpy.explore.measure.outcome import KINDS, KernelLimit
from liftpy.explore.measure.samples import Interval, interval_of
from liftpy.files.reading import check


class CampaignReader:
    """A campaign read through a connection; use it in a `with`."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    @staticmethod
    def read(path: Path) -> CampaignReader:
        """The present state of a campaign, which may be running.

        Raises StoreRefused if there is none.
        """
        with saying(path):
            there = path.exists()
            inside = sorted(p.name for p in path.glob("*.db")) if path.is_dir() else []
        if inside:
            raise StoreRefused(
                f"{path} is a folder of campaigns, one for each program of a network\n"
                f"  name one of its files, as in {path / inside[0]}; "
                f"it has: {a_few(inside)}"
            )
        if not there:
            raise StoreRefused(
                f"no campaign is stored in {path}: `liftpy explore PROGRAM --db {path}` starts one"
            )
        with saying(path):
            check(path, path.stat(), MOST, StoreRefused)
        return CampaignReader(path, snapshot(path))

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- the campaign -----------------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """The identity of the campaign."""
        (row,) = self._ask("SELECT * FROM campaign JOIN expression ON expression = hash")
        with understanding(self.path):
            device: object = json.loads(row["device"])
            settings: object = json.loads(row["settings"])
            if not isinstance(settings, dict) or not isinstance(device, dict):
                raise TypeError("its device or its settings are not a JSON object")
            identity = Identity(
                row["program"],
                row["text"],
                cast("dict[str, Any]", device),
                row["version"],
                row["seed"],
                cast("dict[str, Any]", settings),
            )
            _ = identity.devices  # raises TypeError if a device lacks a field
            return identity

    def calls(self) -> list[Call]:
        """The calls that started or resumed the campaign, in order."""
        with understanding(self.path):
            return [
                Call(
                    row["command"],
                    json.loads(row["limits"]),
                    json.loads(row["environment"]),
                    row["started"],
                    row["ended"],
                )
                for row in self._ask("SELECT * FROM call ORDER BY id")
            ]

    def learned(self) -> dict[str, KernelLimit]:
        """Limits that drivers reported for built kernels, by the candidate refused for them."""
        return {
            row["candidate"]: KernelLimit(row["kernel"], row["figure"], row["number"])
            for row in self._ask("SELECT * FROM learned")
        }

    def borrowed(self, stage: str) -> list[dict[str, Any]] | None:
        """The times of other campaigns that a stage's search began with; None if not looked up.

        Each is JSON data, as `liftpy.explore.campaign.borrowed` writes it.
        """
        with understanding(self.path):
            for row in self._ask("SELECT times FROM borrowed WHERE stage = ?", stage):
                return json.loads(row["times"])
        return None

    # --- candidates -------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Every candidate, in the order drawn."""
        times: dict[str, list[list[int]]] = {}
        for run in self._ask('SELECT * FROM run ORDER BY candidate, "repeat", launch'):
            repeats = times.setdefault(run["candidate"], [])
            if run["launch"] == 0:
                repeats.append([])
            repeats[-1].append(run["ns"])
        found = self._ask(_CANDIDATES)
        with understanding(self.path):
            return [to_row(row, times.get(row["key"])) for row in found]

    def row(self, id_: str) -> Row:
        """The candidate whose id begins with `id_`; raises UnknownName unless exactly one does."""
        fitting = [row for row in self.rows() if id_ and row.id.startswith(id_)]
        if len(fitting) != 1:
            found = f"{len(fitting)} candidates" if fitting else "no candidate"
            raise UnknownName(
                f"{self.path} has {found} '{id_}'; `liftpy candidates {self.path}` lists them"
            )
        return fitting[0]

    def attempts(self, key: str) -> int:
        """How often a candidate without an outcome was started; 0 if never."""
        query = "SELECT attempts FROM outcome WHERE candidate = ? AND kind = 'running'"
        return next((row["attempts"] for row in self._ask(query, key)), 0)

    def done(self) -> set[str]:
        """The candidates that have an outcome."""
        found = self._ask("SELECT candidate, kind FROM outcome")
        return {row["candidate"] for row in found if row["kind"] in KINDS}

    def strangers(self) -> set[str]:
        """The candidates that were imported and that the campaign has not drawn itself."""
        return {row["key"] for row in self._ask('SELECT "key" FROM candidate WHERE ordinal < 0')}

    def kinds(self) -> Iterator[str]:
        """The kind of every outcome."""
        found = self._ask("SELECT kind FROM outcome")
        return (row["kind"] for row in found if row["kind"] in KINDS)

    def under_way(self) -> list[str]:
        """The candidates that were started and have no outcome."""
        found = self._ask("SELECT candidate FROM outcome WHERE kind = 'running'")
        return [row["candidate"] for row in found]

    def device_of(self, key: str) -> str | None:
        """The fingerprint of the device that a candidate's kernels were launched on."""
        found = self._ask("SELECT fingerprint FROM build WHERE candidate = ?", key)
        return next((row["fingerprint"] for row in found), None)

    def best_ns(self, device: Device) -> int | None:
        """The shortest time measured so far on a device."""
        (row,) = self._ask(
            "SELECT min(CASE WHEN kind IN ('measured', 'modelled') THEN time_ns END) AS best"
            " FROM outcome JOIN build USING (candidate) WHERE fingerprint = ?",
            device.fingerprint,
        )
        return row["best"]

    def points(self) -> dict[str, tuple[str | None, int]]:
        """The device's fingerprint and the peak in bytes of each measured candidate, by key."""
        query = (
            "SELECT candidate, fingerprint, peak FROM outcome LEFT JOIN build USING (candidate)"
            " WHERE kind IN ('measured', 'modelled') AND peak IS NOT NULL"
        )
        return {row["candidate"]: (row["fingerprint"], row["peak"]) for row in self._ask(query)}

    def span(self, key: str) -> Interval | None:
        """The median time of a candidate in ns and its interval; None without samples."""
        query = 'SELECT sum(ns) AS ns FROM run WHERE candidate = ? GROUP BY "repeat"'
        samples = [row["ns"] for row in self._ask(query, key)]
        return interval_of(samples) if samples else None

    def costs(self, key: str) -> tuple[int | None, int | None]:
        """Time in ns and peak in bytes of a candidate; None if it was not measured."""
        (row,) = self._ask("SELECT time_ns, peak FROM outcome WHERE candidate = ?", key)
        return row["time_ns"], row["peak"]

    def launches(self, key: str) -> tuple[int, ...]:
        """The median time in ns of each launch of a candidate in its first measurement.

        Later samples are left out: a resumed search sees the same times as in the first call.
        """
        time_ns, _ = self.costs(key)
        query = 'SELECT "repeat", ns FROM run WHERE candidate = ? ORDER BY "repeat", launch'
        samples: dict[int, list[int]] = {}
        for row in self._ask(query, key) if time_ns is not None else ():
            samples.setdefault(row["repeat"], []).append(row["ns"])
        first: list[list[int]] = []
        for launches in samples.values():
            first.append(launches)
            if round(statistics.median(map(sum, first))) == time_ns:
                break
        return tuple(round(statistics.median(of)) for of in zip(*first, strict=True))

    def kernels(self, key: str) -> tuple[str | None, str | None]:
        """The stored source of a candidate and its manifest; None if it was not compiled."""
        for row in self._ask("SELECT * FROM build WHERE candidate = ?", key):
            with understanding(self.path):
                if digest(row["source"]) != row["source_sha"]:
                    raise ValueError(f"the kernels of {key} do not match their checksum")
            return row["source"], row["manifest"]
        return None, None

    def options(self, key: str) -> str | None:
        """The build options of a stored candidate; None if they are not known."""
        found = self._ask("SELECT options FROM build WHERE candidate = ?", key)
        return next((row["options"] for row in found), None)

    def _ask(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with saying(self.path):
            return self._db.execute(query, values).fetchall()


_CANDIDATES = """
SELECT candidate."key", ordinal, skeleton, steps, assignment, outcome.*, max_error, rms_error,
       seconds, fingerprint
FROM candidate
JOIN derivation ON derivation = hash
JOIN outcome ON outcome.candidate = "key"
LEFT JOIN verification ON verification.candidate = "key"
LEFT JOIN build ON build.candidate = "key"
ORDER BY ordinal
"""


def begun_in(path: Path) -> Identity | None:
    """The identity of the campaign in a file, which is not changed; None if there is none."""
    with saying(path):
        if not path.exists() or path.is_dir() or (path.is_file() and not path.stat().st_size):
            return None
    with CampaignReader.read(path) as there:
        return there.identity

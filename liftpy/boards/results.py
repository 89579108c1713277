"""The output of a board: the rows that the program `board` prints, read line by line.

Each candidate has one row, on one line. Other lines begin with `#`: the bundle, its campaign and
the device before the rows; `begin ID` before each row; `end N` after the last of N rows.
docs/boards.md describes the columns.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from liftpy.boards.outcomes import OUTCOMES
from liftpy.boards.schema import DeviceFields, RowFields, checked, table
from liftpy.constraints.device import Device
from liftpy.errors import ResultsRefused, plural
from liftpy.files.reading import MIB, read_text

FORMAT = "# liftpy-results 1"
COLUMNS: tuple[str, ...] = (
    "candidate",
    "ordinal",
    "skeleton",
    "sizes",
    "device",
    "driver",
    "source",
    "outcome",
    "reason",
    "error",
    "rms",
    "build_seconds",
    "prepare_ns",
    "allocated",
    "times_ns",
    "detail",
)
MOST = 64 * MIB
"""The largest file of results in bytes: a row of a hundred runs takes some thousand bytes."""

AGAIN = "Copy the file again"

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """A row: the outcome of a candidate. Times are in nanoseconds, with a tuple for each run."""

    line: int
    candidate: str
    ordinal: int
    skeleton: str
    sizes: dict[str, int]
    source: str
    outcome: str
    reason: str
    error: float
    rms: float
    build_seconds: float
    prepare_ns: int
    allocated: int
    times_ns: tuple[tuple[int, ...], ...]
    detail: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Results:
    """The content of a file of results.

    `bundle` is the hash of the plan, `started` the start by the board's clock, and `campaign` the
    bundle's description of its campaign. `lines` has the line numbers of the campaign and the
    device.
    """

    path: Path
    bundle: str
    campaign: dict[str, Any]
    device: Device
    started: str
    rows: tuple[Result, ...]
    lines: dict[str, int]


def refusal(path: Path, line: int, what: str) -> ResultsRefused:
    """The error for a refused line of a file."""
    return ResultsRefused(f"{path}, line {line}: {what}")


def read_results(path: Path, *, partial: bool = False) -> Results:
    """The results in a file.

    `partial` reads the complete rows of a truncated file. ResultsRefused, with the line, for a file
    that is not the output of `board`, or is truncated.
    """
    return ResultsReader(path, read_text(path, MOST, ResultsRefused), partial=partial).read()


class ResultsReader:
    """Reads one file of results."""

    def __init__(self, path: Path, text: str, *, partial: bool) -> None:
        self.path = path
        self.partial = partial
        self.lines = text.split("\n")
        self.said: dict[str, tuple[int, str]] = {}
        self.rows: dict[str, Result] = {}
        self.ended = 0

    def read(self) -> Results:
        """Reads the whole file."""
        self._first()
        for line, text in self._whole():
            self.take(line, text)
        if not self.ended and not self.partial:
            raise refusal(
                self.path,
                len(self.lines),
                f"the file ends after {plural(len(self.rows), 'row')} without `# end`: it is "
                "incomplete. Copy it again, continue with `board --resume`, or import its rows "
                "with --partial",
            )
        campaign, at = self._json("campaign")
        _, where = self._json("device")
        return Results(
            path=self.path,
            bundle=self.the("bundle")[1],
            campaign=campaign,
            device=self.device(),
            started=self.the("started")[1],
            rows=tuple(self.rows.values()),
            lines={"campaign": at, "device": where},
        )

    def take(self, line: int, text: str) -> Result | None:
        """Reads a line after the first; the result, if it is a row. ResultsRefused if invalid."""
        if text.startswith("#"):
            self._remark(line, text)
        elif text != ",".join(COLUMNS):
            return self._row(line, text)
        return None

    def the(self, key: str) -> tuple[int, str]:
        """The number and the rest of the line `# key ...`."""
        if key not in self.said:
            raise refusal(
                self.path, 1, f"the file has no line `# {key} ...`. {AGAIN}, from its beginning"
            )
        return self.said[key]

    def _first(self) -> None:
        if self.lines[0] != FORMAT:
            raise refusal(
                self.path,
                1,
                f"it begins with '{self.lines[0][:40]}', output of `board` with '{FORMAT}'",
            )

    def _whole(self) -> Iterator[tuple[int, str]]:
        """Yields the complete lines with their numbers; a line before `# torn` was truncated."""
        *lines, last = self.lines
        if last and not self.partial:
            raise refusal(
                self.path,
                len(self.lines),
                f"it is cut off after '{last[-40:]}'. {AGAIN}, continue with `board --resume`, or "
                "import the complete rows with --partial",
            )
        for number, text in enumerate(lines[1:], 2):
            if text and (number == len(lines) or lines[number] != "# torn"):
                yield number, text

    def _remark(self, line: int, text: str) -> None:
        key, _, rest = text.removeprefix("# ").partition(" ")
        if key in {"bundle", "campaign", "device", "started"}:
            if key in self.said:
                raise refusal(
                    self.path,
                    line,
                    f"a second line `# {key}`; the first is line {self.said[key][0]}: a file "
                    "has the output of one bundle on one device",
                )
            self.said[key] = line, rest
        elif key == "end":
            self.ended = line
            count = self._read(line, "# end", rest, natural)
            if count != len(self.rows):
                raise refusal(
                    self.path,
                    line,
                    f"{count} rows were printed, the file has {len(self.rows)}. {AGAIN}",
                )
        elif key not in {"begin", "resumed", "torn"}:
            raise refusal(self.path, line, f"unknown line '# {key}'")

    def _row(self, line: int, text: str) -> Result:
        try:
            cells = next(csv.reader([text], strict=True))
        except csv.Error as error:
            raise refusal(self.path, line, f"it is not a CSV row ({error}). {AGAIN}") from error
        if len(cells) != len(COLUMNS):
            raise refusal(
                self.path,
                line,
                f"a row has {len(COLUMNS)} columns, this has {len(cells)}. {AGAIN}",
            )
        row = dict(zip(COLUMNS, cells, strict=True))
        device, where = self._json("device")
        for column, key in (("device", "name"), ("driver", "driver_version")):
            if row[column] != device.get(key):
                raise refusal(
                    self.path,
                    line,
                    f"the {column} is '{row[column]}', in line {where} '{device.get(key)}'",
                )
        if row["candidate"] in self.rows:
            first = self.rows[row["candidate"]].line
            raise refusal(
                self.path, line, f"candidate {row['candidate']} already has a row, line {first}"
            )
        if row["outcome"] not in OUTCOMES:
            raise refusal(
                self.path,
                line,
                f"'{row['outcome']}' is not an outcome; these are {', '.join(OUTCOMES)}",
            )
        result = self.rows[row["candidate"]] = self._result(line, row)
        self.ended = 0
        return result

    def _result(self, line: int, row: dict[str, str]) -> Result:
        def number(column: str, of: Callable[[str], T]) -> T:
            return self._read(line, column, row[column], of)

        measured = row["outcome"] == "measured"
        result = Result(
            line=line,
            candidate=row["candidate"],
            ordinal=number("ordinal", signed),
            skeleton=row["skeleton"],
            sizes=number("sizes", sizes),
            source=row["source"],
            outcome=row["outcome"],
            reason=unescaped(row["reason"]),
            error=number("error", finite) if measured else math.nan,
            rms=number("rms", finite) if measured else math.nan,
            build_seconds=number("build_seconds", finite),
            prepare_ns=number("prepare_ns", natural),
            allocated=number("allocated", natural),
            times_ns=number("times_ns", times) if measured else (),
            detail=number("detail", detail),
        )
        said = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "line"}
        if not measured:
            said |= {"error": None, "rms": None}
        self._read(line, "the row", row["candidate"], lambda _: checked(RowFields, said))
        if measured and len({len(run) for run in result.times_ns}) != 1:
            raise refusal(
                self.path, line, f"the runs of times_ns '{row['times_ns']}' differ in length"
            )
        return result

    def _read(self, line: int, column: str, text: str, of: Callable[[str], T]) -> T:
        try:
            return of(text)
        except ValueError as error:
            raise refusal(
                self.path, line, f"{column} cannot be '{text[:60]}' ({error}). {AGAIN}"
            ) from error

    def _json(self, key: str) -> tuple[dict[str, Any], int]:
        line, text = self.the(key)
        return self._read(line, f"# {key}", text, table), line

    def device(self) -> Device:
        """The device of the results."""
        data, line = self._json("device")
        needed = {field.name for field in fields(Device) if field.default is MISSING}
        if needed - data.keys():
            lacking = ", ".join(sorted(needed - data.keys()))
            raise refusal(self.path, line, f"the device lacks {lacking}. {AGAIN}")
        self._read(line, "# device", json.dumps(data), lambda _: checked(DeviceFields, data))
        return Device.from_json(data)


def sizes(text: str) -> dict[str, int]:
    """Parses sizes, such as `kappa=2 sigma=3`."""
    pairs = detail(text)
    found = {name: natural(value) for name, value in pairs}
    if len(found) < len(pairs):
        raise ValueError("a size is given twice")
    return found


def natural(text: str) -> int:
    """Parses a non-negative integer."""
    if not re.fullmatch("[0-9]{1,19}", text):
        raise ValueError("it is not a whole number of at most 19 digits")
    return int(text)


def signed(text: str) -> int:
    """Parses an integer."""
    return -natural(text[1:]) if text.startswith("-") else natural(text)


def detail(text: str) -> tuple[tuple[str, str], ...]:
    """Parses words NAME=VALUE."""
    pairs = [word.partition("=") for word in text.split()]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"{name} is not NAME=VALUE")
    return tuple((name, value) for name, _, value in pairs)


def times(text: str) -> tuple[tuple[int, ...], ...]:
    """Parses times in nanoseconds: runs separated by `;`, launches of a run by blanks."""
    return tuple(tuple(map(natural, run.split())) for run in text.split(";"))


def finite(text: str) -> float:
    """Parses a finite number."""
    if not re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?", text):
        raise ValueError("it is not a finite number")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("it is not finite")
    return number


def unescaped(text: str) -> str:
    """The text with escaped line breaks and backslashes restored."""
    return text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")

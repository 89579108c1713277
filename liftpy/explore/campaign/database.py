"""Opening a campaign's SQLite file, and what is said when SQLite fails."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from liftpy.errors import StoreRefused, a_few
from liftpy.explore.campaign.migrate import migrate
from liftpy.explore.campaign.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from liftpy.explore.campaign.seals import broken, seal

BUSY_SECONDS = 30.0
"""How long to wait for another process that has the file for a moment."""

MOST = 4 << 30
"""Bytes of a database that are read: whoever reads one holds a copy of it in memory."""

Seed = tuple[str, tuple[object, ...]]
"""A statement and its values."""


# --- opening --------------------------------------------------------------------------------------


def snapshot(path: Path) -> sqlite3.Connection:
    """What a file holds now, in memory and in the present format; on disk nothing is changed.

    Whoever reads is therefore in nobody's way, and needs to write nowhere. Raises StoreRefused for
    what is no campaign, is damaged, or was written by a newer liftpy.
    """
    with saying(path), _readable(path) as source:
        _check_kind(path, source)
        held = _connect(":memory:")
        source.backup(held)
    with saying(path):
        _check_whole(path, held)
        migrate(held)
        _check_seals(path, held)
    return held


def create(path: Path, seeds: list[Seed]) -> None:
    """Makes a database with some rows in it: the whole of it, or no file."""
    new = path.with_name(f"{path.name}-new")
    parts = (new, path.with_name(f"{new.name}-journal"))
    try:
        with saying(path):
            for left in parts:  # by a process that was killed
                left.unlink(missing_ok=True)
            with closing(_connect(new)) as db:
                db.executescript(f"BEGIN; {SCHEMA}")
                for statement, values in seeds:
                    db.execute(statement, values)
                seal(db)
                db.commit()
                db.execute("PRAGMA journal_mode = WAL")
            new.replace(path)
    finally:
        for left in parts:
            left.unlink(missing_ok=True)


def writable(path: Path) -> sqlite3.Connection:
    """A file that `snapshot` could read, to write to, in the present format."""
    with saying(path):
        db = _connect(path)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            migrate(db)
            db.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            db.close()
            raise
    return db


def _connect(where: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(where, timeout=BUSY_SECONDS, uri=uri)
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def _readable(path: Path) -> Generator[sqlite3.Connection]:
    """The file opened so that reading makes no file beside it.

    Without a log beside it (`-wal`) nobody writes to it, and it is read as if it never changed:
    even SQLite's own index of the log would be a new file. With a log it is read through that;
    where the index of the log can neither be found nor made, as on a medium that is read-only, file
    and log are copied and read elsewhere.
    """
    path = path.resolve()  # a log has the name of the file itself
    log = path.with_name(f"{path.name}-wal")
    address = path.as_uri()
    if not log.exists():
        with closing(_connect(f"{address}?mode=ro&immutable=1", uri=True)) as db:
            _check_length(path, db)
            yield db
        return
    with closing(_connect(f"{address}?mode=ro", uri=True)) as db:
        readable = _answers(db)
        if readable:
            yield db
    if not readable:
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(shutil.copy(path, folder))
            shutil.copy(log, folder)
            with closing(_connect(copied)) as db:
                yield db


def _answers(db: sqlite3.Connection) -> bool:
    """Whether SQLite can open the file. It only tries when something is asked."""
    try:
        db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError as error:
        if _class(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            return False
        raise
    return True


def _check_kind(path: Path, db: sqlite3.Connection) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise StoreRefused(
            f"{path} is not a liftpy database; it was not changed. Name another file"
        )
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 0 < version <= SCHEMA_VERSION:
        raise StoreRefused(
            f"{path} has the database format {version}, this liftpy reads formats up to "
            f"{SCHEMA_VERSION}; it was not changed. Name another file, or read it with the "
            "liftpy that wrote it"
        )


def _check_length(path: Path, db: sqlite3.Connection) -> None:
    """That all pages are there: SQLite reads zeros for what is missing of the last one."""
    (size,) = db.execute("PRAGMA page_size").fetchone()
    (count,) = db.execute("PRAGMA page_count").fetchone()
    length = path.stat().st_size
    if length % size or length < count * size:
        message = f"it has {length} bytes, not {count} pages of {size}"
        raise StoreRefused(_sentence(path, message, sqlite3.SQLITE_CORRUPT))


def _check_whole(path: Path, db: sqlite3.Connection) -> None:
    (verdict, *more) = [text for (text,) in db.execute("PRAGMA quick_check")]
    if verdict != "ok" or more:
        raise StoreRefused(
            _sentence(path, "PRAGMA quick_check finds broken pages", sqlite3.SQLITE_CORRUPT)
        )


def _check_seals(path: Path, db: sqlite3.Connection) -> None:
    if changed := broken(db):
        whose = a_few(f"candidate {key}" if key else "the campaign" for key in changed)
        message = f"the rows of {whose} do not match their checksums"
        raise StoreRefused(_sentence(path, message, sqlite3.SQLITE_CORRUPT))


# --- what SQLite says -----------------------------------------------------------------------------

_SENTENCES = {
    sqlite3.SQLITE_NOTADB: "is not a liftpy database ({}); it was not changed. Name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged ({}); it was not changed. Use an intact copy, or "
    "name another file; SQLite's `.recover` may save rows",
    sqlite3.SQLITE_FULL: "cannot grow ({}). Earlier measurements are kept: free disk space, and "
    "repeat the command to continue",
    sqlite3.SQLITE_IOERR: "cannot be read or written to the end ({}): the disk fails, is full or "
    "over its quota. Earlier measurements are kept: fix that, and repeat the command to continue",
    sqlite3.SQLITE_READONLY: "cannot be written ({}); it was not changed. Make it writable, or "
    "name another file with --db",
    sqlite3.SQLITE_BUSY: "is locked by another program ({}). End it, and repeat the command",
}
_OTHERWISE = "cannot be used ({}). Earlier measurements are kept: fix that, or name another file"


@contextmanager
def saying(path: Path) -> Generator[None]:
    """Turns what SQLite or the system say of a file into a sentence."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise StoreRefused(_sentence(path, error, _class(error))) from error


@contextmanager
def understanding(path: Path) -> Generator[None]:
    """Turns values that are not what liftpy writes into the sentence that a file is damaged."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        how = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StoreRefused(_sentence(path, how, sqlite3.SQLITE_CORRUPT)) from error


def _class(error: Exception) -> int:
    """The class of an error, the low byte of SQLite's code. Errors of text have no code."""
    if isinstance(error, OSError):
        return sqlite3.SQLITE_ERROR
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _sentence(path: Path, how: object, kind: int) -> str:
    text = how.strerror if isinstance(how, OSError) else str(how).split("\n", 1)[0]
    return f"{path} {_SENTENCES.get(kind, _OTHERWISE).format(text)}"

"""Opening a campaign's SQLite file, and the messages for SQLite's errors."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from liftpy.errors import StoreRefused, a_few
from liftpy.explore.campaign.migrate import migrate
from liftpy.explore.campaign.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION, digest
from liftpy.explore.campaign.seals import broken, seal

BUSY_SECONDS = 30.0
"""How long to wait for another process that briefly locks the file."""

MOST = 4 << 30
"""The largest database that is read, in bytes: a reader copies it into memory."""

Seed = tuple[str, tuple[object, ...]]
"""An SQL statement and its values."""


# --- opening --------------------------------------------------------------------------------------


def snapshot(path: Path) -> sqlite3.Connection:
    """A copy of a file's contents in memory, in the present format; the file is not changed.

    So a reader blocks no other process and needs no write access. Raises StoreRefused if the file
    is not a campaign, is damaged, or was written by a newer liftpy.
    """
    with saying(path), _readable(path) as source:
        _check_kind(path, source)
        held = _connect(":memory:")
        with _closed_on_error(held):
            source.backup(held)
    with saying(path), _closed_on_error(held):
        _check_whole(path, held)
        migrate(held)
        _check_seals(path, held)
        _check_links(path, held)
    return held


def create(path: Path, seeds: list[Seed]) -> None:
    """Creates a database with some rows, atomically: on an error there is no file."""
    new = path.with_name(f"{path.name}-new")
    parts = (new, path.with_name(f"{new.name}-journal"))
    try:
        with saying(path):
            for left in parts:  # files of a process that was killed
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
    """A connection that writes to a file that `snapshot` could read, migrated to this format."""
    with saying(path):
        db = _connect(path)
        with _closed_on_error(db):
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            migrate(db)
            db.execute("PRAGMA foreign_keys = ON")
    return db


@contextmanager
def _closed_on_error(db: sqlite3.Connection) -> Generator[None]:
    """Close a connection if the body of the `with` statement raises an error."""
    try:
        yield
    except BaseException:
        db.close()
        raise


def _connect(where: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(where, timeout=BUSY_SECONDS, uri=uri)
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def _readable(path: Path) -> Generator[sqlite3.Connection]:
    """The file opened so that reading creates no file next to it.

    If there is no log (`-wal`), no process writes to the file, and it is opened as immutable:
    otherwise SQLite would create an index of the log. If there is a log, it is read too. If the
    index of the log neither exists nor can be created, for example on a read-only medium, file and
    log are copied to a temporary folder and read there.
    """
    path = path.resolve()  # the log is named after the file itself, not after a link to it
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
    """Whether SQLite can open the file: it only tries on the first query."""
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
    """Refuses a file that is too short: SQLite reads the missing part of the last page as zeros."""
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


def _check_links(path: Path, db: sqlite3.Connection) -> None:
    """Refuses rows that refer to missing ones, and texts that differ from the hash in their key."""
    (count,) = db.execute("SELECT count(*) FROM campaign").fetchone()
    found = [] if count == 1 else [f"it has {count} campaigns, not one"]
    for of, named in db.execute('SELECT DISTINCT "table", parent FROM pragma_foreign_key_check'):
        found.append(f"a row of {of} names a row of {named} that is missing")
    for table, query in _HASHED.items():
        if any(digest(*map(str, parts)) != key for key, *parts in db.execute(query)):
            found.append(f"a row of {table} does not match its hash")
    if found:
        raise StoreRefused(_sentence(path, found[0], sqlite3.SQLITE_CORRUPT))


_HASHED = {
    "expression": "SELECT hash, text FROM expression",
    "derivation": "SELECT hash, expression, skeleton, steps FROM derivation",
}


# --- SQLite's errors ------------------------------------------------------------------------------

_SENTENCES = {
    sqlite3.SQLITE_NOTADB: "is not a liftpy database ({}); it was not changed. Name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged ({}); it was not changed. Use an intact copy, or "
    "name another file; SQLite's `.recover` may save rows",
    sqlite3.SQLITE_FULL: "cannot grow ({}). Earlier measurements are kept: free disk space, and "
    "repeat the command to continue",
    sqlite3.SQLITE_IOERR: "cannot be read or written completely ({}): the disk fails, is full or "
    "over its quota. Earlier measurements are kept: fix that, and repeat the command to continue",
    sqlite3.SQLITE_READONLY: "cannot be written ({}); it was not changed. Make it writable, or "
    "name another file with --db",
    sqlite3.SQLITE_BUSY: "is locked by another program ({}). End it, and repeat the command",
}
_OTHERWISE = "cannot be used ({}). Earlier measurements are kept: fix that, or name another file"


@contextmanager
def saying(path: Path) -> Generator[None]:
    """Turns errors of SQLite or the system about a file into StoreRefused with a sentence."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise StoreRefused(_sentence(path, error, _class(error))) from error


@contextmanager
def understanding(path: Path) -> Generator[None]:
    """Turns errors from values that liftpy would not write into StoreRefused: a damaged file."""
    try:
        yield
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        how = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StoreRefused(_sentence(path, how, sqlite3.SQLITE_CORRUPT)) from error


def _class(error: Exception) -> int:
    """The class of an error, the low byte of SQLite's code; decoding errors have no code."""
    if isinstance(error, OSError):
        return sqlite3.SQLITE_ERROR
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _sentence(path: Path, how: object, kind: int) -> str:
    text = how.strerror if isinstance(how, OSError) else str(how).split("\n", 1)[0]
    return f"{path} {_SENTENCES.get(kind, _OTHERWISE).format(text)}"

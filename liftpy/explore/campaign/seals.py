"""Checksums of each candidate's rows and of the campaign's rows, to detect changed bytes.

SQLite detects broken pages, but not a changed value. The checksum is not a signature: a program
that changes a file on purpose can compute it again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

CAMPAIGN = ""
"""The key of the campaign itself; all other keys are candidates'."""

# The sealed columns of each table, the candidate's key first. The texts of expressions, derivations
# and kernels have their own hashes; the campaign's cursor changes with every candidate.
_ROWS = (
    'SELECT "key", ordinal, derivation, assignment, version FROM candidate {} ORDER BY "key"',
    (
        "SELECT candidate, fingerprint, driver, options, source_sha, manifest, log, seconds"
        " FROM build {} ORDER BY candidate"
    ),
    "SELECT outcome.candidate, outcome.* FROM outcome {} ORDER BY candidate",
    'SELECT run.candidate, run.* FROM run {} ORDER BY candidate, "repeat", launch',
    "SELECT verification.candidate, verification.* FROM verification {} ORDER BY candidate",
    "SELECT learned.candidate, learned.* FROM learned {} ORDER BY candidate",
)
_CAMPAIGN_ROWS = (
    (
        "SELECT '', program, expression, device, driver, version, seed, settings, created"
        " FROM campaign"
    ),
    "SELECT '', call.* FROM call ORDER BY id",
    "SELECT '', borrowed.* FROM borrowed ORDER BY stage",
)


def seal(db: sqlite3.Connection, keys: Iterable[str] | None = None) -> None:
    """Stores the checksums of the present rows of `keys`, or of all candidates and the campaign."""
    sums: dict[str, str] = {}
    if keys is None:
        sums = sums_of(db)
    else:
        for key in keys:
            sums |= sums_of(db, key)
    db.executemany("INSERT OR REPLACE INTO seal VALUES (?, ?)", sums.items())


def broken(db: sqlite3.Connection) -> list[str]:
    """The keys whose rows have changed or are missing."""
    noted = {str(key): str(sum_) for key, sum_ in db.execute("SELECT * FROM seal")}
    found = sums_of(db)
    return sorted(key for key in noted.keys() | found.keys() if noted.get(key) != found.get(key))


def sums_of(db: sqlite3.Connection, key: str | None = None) -> dict[str, str]:
    """The checksums of the present rows by key, for one key or for all."""
    rows: dict[str, list[str]] = {}
    if key is None or key == CAMPAIGN:
        _gather(rows, (db.execute(query) for query in _CAMPAIGN_ROWS))
    if key is None:
        _gather(rows, (db.execute(query.format("")) for query in _ROWS))
    elif key != CAMPAIGN:
        of = [query.format(f"WHERE {_column(query)} = ?") for query in _ROWS]
        _gather(rows, (db.execute(query, (key,)) for query in of))
    return {
        name: hashlib.sha256("\n".join(mine).encode(errors="surrogatepass")).hexdigest()
        for name, mine in rows.items()
    }


def _column(query: str) -> str:
    """The column that has the candidate's key in the table of a query."""
    return '"key"' if "FROM candidate " in query else "candidate"


def _gather(rows: dict[str, list[str]], tables: Iterable[sqlite3.Cursor]) -> None:
    """Appends the rows of tables to the lists of their keys."""
    for number, table in enumerate(tables):
        for row in table:
            key, *values = row
            rows.setdefault(str(key), []).append(repr((number, values)))

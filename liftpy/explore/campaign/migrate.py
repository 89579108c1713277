"""Migrations of a database from an older format to the present one; every row is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from liftpy.explore.campaign.schema import SCHEMA_VERSION, TABLES, digest
from liftpy.explore.campaign.seals import seal


def migrate(db: sqlite3.Connection) -> None:
    """Migrates a database to the present format in one transaction."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == SCHEMA_VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        MIGRATIONS[version](db)
        if version < 3:  # only the reason, a text, mentions it
            db.execute(_DISTURBED)
        if version < 4:  # later formats have the checksums that were made when rows were written
            seal(db)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _from_1(db: sqlite3.Connection) -> None:
    """Format 1 has three tables, in some files a fourth, `learned`."""
    db.create_function("digest", -1, digest, deterministic=True)
    old = ("campaign", "candidate", "outcome", "learned")
    here = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in old:
        if table in here:
            db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in (*_statements(TABLES), *_statements(_MOVE_1)):
        db.execute(statement)
    if "learned" in here:
        db.execute("INSERT INTO learned SELECT * FROM old_learned")
    for table in reversed(old):
        db.execute(f"DROP TABLE IF EXISTS old_{table}")


def _from_2(db: sqlite3.Connection) -> None:
    """Format 2 has no columns for disturbed measurements."""
    for column in ("disturbed INTEGER", "departure REAL"):
        db.execute(f"ALTER TABLE outcome ADD COLUMN {column}")
    _from_3(db)


def _from_3(db: sqlite3.Connection) -> None:
    """Format 3 has no checksums."""
    db.execute('CREATE TABLE seal ("key" TEXT PRIMARY KEY, hash TEXT NOT NULL)')
    _from_4(db)


def _from_4(db: sqlite3.Connection) -> None:
    """Format 4 has no times of other campaigns."""
    db.execute("CREATE TABLE borrowed (stage TEXT PRIMARY KEY, times TEXT NOT NULL)")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would first commit."""
    held = ""
    for piece in script.split(";"):  # a semicolon in a comment does not end a statement
        held += piece + ";"
        if sqlite3.complete_statement(held):
            yield held
            held = ""


_MOVE_1 = """
INSERT INTO expression SELECT digest(text), text FROM old_campaign;
INSERT INTO campaign
    SELECT id, program, digest(text), device, driver, version, seed,
           (SELECT coalesce(max(ordinal) + 1, 0) FROM old_candidate), settings, created
    FROM old_campaign;
INSERT OR IGNORE INTO derivation
    SELECT digest(campaign.expression, skeleton, steps), campaign.expression, skeleton, steps
    FROM old_candidate, campaign;
INSERT INTO candidate
    SELECT key, ordinal, digest(campaign.expression, skeleton, steps), assignment, campaign.version
    FROM old_candidate, campaign;
INSERT INTO build
    SELECT key, coalesce(json_extract(campaign.device, '$.fingerprint'), ''), campaign.driver, NULL,
           source, source_sha, manifest,
           CASE kind WHEN 'build_failed' THEN reason END, build_seconds
    FROM campaign, old_candidate LEFT JOIN old_outcome ON key = candidate
    WHERE source IS NOT NULL;
INSERT INTO outcome (candidate, kind, reason, attempts, time_ns, prepare_ns, peak, allocated,
                     scratch, local, private, "prepare", started, finished)
    SELECT candidate, kind, reason, attempts, time_ns, prepare_ns, peak, allocated, scratch, local,
           private, "prepare", started, finished
    FROM old_outcome;
INSERT INTO run
    SELECT candidate, repeats.key, launches.key, launches.value
    FROM old_outcome, json_each(times_ns) AS repeats, json_each(repeats.value) AS launches;
INSERT INTO verification
    SELECT candidate, error, NULL FROM old_outcome WHERE error IS NOT NULL;
"""

_DISTURBED = """
UPDATE outcome
SET disturbed = 1,
    departure = CAST(substr(reason, instr(reason, 'a fixed kernel took ') + 20) AS REAL)
WHERE kind = 'measured' AND instr(reason, 'disturbed: a fixed kernel took ')
"""

MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    1: _from_1,
    2: _from_2,
    3: _from_3,
    4: _from_4,
}
"""By format, the function that creates the tables of the present one."""

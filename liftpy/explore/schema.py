"""The tables of a campaign database."""

APPLICATION_ID = 0x6C696674
"""Marks an SQLite file as liftpy's: "lift" in ASCII."""

SCHEMA_VERSION = 1
"""Counts the formats of the database."""

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE campaign (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    program  TEXT NOT NULL,
    text     TEXT NOT NULL,
    device   TEXT NOT NULL,
    driver   TEXT NOT NULL,
    version  TEXT NOT NULL,
    seed     INTEGER NOT NULL,
    settings TEXT NOT NULL,
    created  REAL NOT NULL
);
CREATE TABLE candidate (
    key        TEXT PRIMARY KEY,
    ordinal    INTEGER NOT NULL UNIQUE,
    skeleton   TEXT NOT NULL,
    steps      TEXT NOT NULL,
    assignment TEXT NOT NULL,
    source     TEXT,
    source_sha TEXT,
    manifest   TEXT
);
CREATE TABLE outcome (
    candidate     TEXT PRIMARY KEY REFERENCES candidate (key),
    kind          TEXT NOT NULL,
    reason        TEXT NOT NULL,
    attempts      INTEGER NOT NULL,
    time_ns       INTEGER,
    times_ns      TEXT,
    prepare_ns    INTEGER,
    peak          INTEGER,
    allocated     INTEGER,
    scratch       INTEGER,
    local         INTEGER,
    private       INTEGER,
    "prepare"     INTEGER,
    error         REAL,
    build_seconds REAL,
    started       REAL NOT NULL,
    finished      REAL
);
"""

LEARNED = """
CREATE TABLE IF NOT EXISTS learned (
    candidate TEXT PRIMARY KEY REFERENCES candidate (key),
    kernel    TEXT NOT NULL,
    figure    TEXT NOT NULL,
    number    INTEGER NOT NULL
)
"""
"""What drivers said of built kernels, by the candidate that was refused for it. Made at opening."""

PLACE = """
CREATE TABLE IF NOT EXISTS place (
    candidate TEXT PRIMARY KEY REFERENCES candidate (key),
    device    TEXT NOT NULL
)
"""
"""The fingerprint of the device that a candidate's kernels were launched on. Made at opening."""

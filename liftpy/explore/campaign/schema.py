"""The tables of a campaign database.

Candidates are addressed by content: the keys of `expression`, `derivation` and `candidate` are
hashes, and that of a candidate covers expression, derivation, sizes and the version of liftpy.
Columns that end in `ns` are times in nanoseconds; `started`, `ended`, `created` and `finished` are
seconds since 1970; memory is in bytes.
"""

import hashlib

APPLICATION_ID = 0x6C696674
"""The application id of liftpy's SQLite files: "lift" in ASCII."""

SCHEMA_VERSION = 5
"""The number of the database format; `migrate.py` migrates from each earlier one."""

TABLES = """
CREATE TABLE expression (
    hash TEXT PRIMARY KEY,               -- sha256 of the text
    text TEXT NOT NULL
);
CREATE TABLE campaign (                  -- one row
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    program    TEXT NOT NULL,
    expression TEXT NOT NULL REFERENCES expression (hash),
    device     TEXT NOT NULL,            -- JSON: its limits, driver and fingerprint
    driver     TEXT NOT NULL,
    version    TEXT NOT NULL,            -- of liftpy
    seed       INTEGER NOT NULL,
    "cursor"   INTEGER NOT NULL,         -- the next place in the drawing order
    settings   TEXT NOT NULL,            -- JSON: what decides candidates and their check
    created    REAL NOT NULL
);
CREATE TABLE call (                      -- each time that the campaign was started or resumed
    id          INTEGER PRIMARY KEY,
    started     REAL NOT NULL,
    ended       REAL,                    -- NULL: it runs, or ended abruptly
    command     TEXT NOT NULL,
    limits      TEXT NOT NULL,           -- JSON: what may differ between calls
    environment TEXT NOT NULL            -- JSON: versions, system, processor
);
CREATE TABLE derivation (
    hash       TEXT PRIMARY KEY,         -- sha256 of expression, skeleton and steps
    expression TEXT NOT NULL REFERENCES expression (hash),
    skeleton   TEXT NOT NULL,
    steps      TEXT NOT NULL             -- JSON: rule, place and sizes of each step
);
CREATE TABLE candidate (
    "key"      TEXT PRIMARY KEY,
    ordinal    INTEGER NOT NULL UNIQUE,  -- its place in the order; below 0: not drawn
    derivation TEXT NOT NULL REFERENCES derivation (hash),
    assignment TEXT NOT NULL,            -- JSON: words and sizes
    version    TEXT NOT NULL             -- of liftpy
);
CREATE TABLE build (                     -- written before anything is launched
    candidate   TEXT PRIMARY KEY REFERENCES candidate ("key"),
    fingerprint TEXT NOT NULL,           -- of device, driver and platform
    driver      TEXT NOT NULL,
    options     TEXT,                    -- NULL: format 1 did not keep them
    source      TEXT NOT NULL,
    source_sha  TEXT NOT NULL,
    manifest    TEXT NOT NULL,           -- JSON: launches, buffers, memory
    log         TEXT,                    -- what the driver wrote
    seconds     REAL
);
CREATE TABLE outcome (                   -- `running` before anything is launched
    candidate  TEXT PRIMARY KEY REFERENCES candidate ("key"),
    kind       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    time_ns    INTEGER,                  -- the median when it was first measured
    prepare_ns INTEGER,
    peak       INTEGER,
    allocated  INTEGER,
    scratch    INTEGER,
    local      INTEGER,
    private    INTEGER,
    "prepare"  INTEGER,
    started    REAL NOT NULL,
    finished   REAL,
    disturbed  INTEGER,                  -- 1: the times may not be its own; NULL: not known
    departure  REAL                      -- of a fixed kernel: its time over its usual time
);
CREATE TABLE run (                       -- every sample
    candidate TEXT NOT NULL REFERENCES candidate ("key"),
    "repeat"  INTEGER NOT NULL,
    launch    INTEGER NOT NULL,          -- in the order of the manifest's run phase
    ns        INTEGER NOT NULL,
    PRIMARY KEY (candidate, "repeat", launch)
) WITHOUT ROWID;
CREATE TABLE verification (              -- relative to the largest value of the meaning
    candidate TEXT PRIMARY KEY REFERENCES candidate ("key"),
    max_error REAL NOT NULL,
    rms_error REAL                       -- NULL: format 1 did not keep it
);
CREATE TABLE learned (                   -- what drivers said of built kernels
    candidate TEXT PRIMARY KEY REFERENCES candidate ("key"),
    kernel    TEXT NOT NULL,
    figure    TEXT NOT NULL,
    number    INTEGER NOT NULL
);
CREATE TABLE borrowed (                  -- times of other campaigns that searches begin with
    stage TEXT PRIMARY KEY,              -- sha256 of its text without names, and of its forms
    times TEXT NOT NULL                  -- JSON: choices, sizes, ns, peak and file of each
);
CREATE TABLE seal (                      -- checksums (liftpy/explore/campaign/seals.py)
    "key" TEXT PRIMARY KEY,              -- of a candidate; '' is the campaign
    hash  TEXT NOT NULL                  -- sha256 of its rows
);
"""

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
{TABLES}
"""


def digest(*parts: str) -> str:
    """The hash of texts: the key of an expression, a derivation or kernels."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

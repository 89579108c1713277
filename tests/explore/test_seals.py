"""Every figure of a campaign's file is covered: a byte of a row that changed is said."""

import sqlite3
from contextlib import closing

import pytest

from liftpy.errors import StoreRefused
from liftpy.explore.campaign.rows import Call
from liftpy.explore.campaign.schema import SCHEMA_VERSION, digest
from liftpy.explore.campaign.seals import seal
from liftpy.explore.campaign.store import Store
from tests.explore.spaces import small_space
from tests.explore.test_store import IDENTITY, MEASURED, MODULE, filled

#: Not sealed: what has a hash of its own, and the cursor, which only saves looking.
APART = {
    ("campaign", "cursor"),
    ("campaign", "id"),
    ("build", "source"),
    *(
        (table, column)
        for table in ("expression", "derivation", "seal")
        for column in ("hash", "text", "expression", "skeleton", "steps", "key")
    ),
}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a.db"
    filled(found, small_space().sample(4, seed=0))
    return found


def filled_in(db, table):
    return db.execute(f"SELECT * FROM {table}").fetchone()  # noqa: S608  our own names


def columns(db):
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for _, column, *_ in db.execute(f"PRAGMA table_info({table})"):
            if (table, column) not in APART and filled_in(db, table):
                yield table, column


def test_a_value_that_is_another_one_is_said_whichever_it_is(path):
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        every = list(columns(db))
    assert {table for table, _ in every} >= {"campaign", "candidate", "build", "outcome", "run"}
    for table, column in every:
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("PRAGMA ignore_check_constraints = 1")
            other = f"CASE typeof({column}) WHEN 'text' THEN {column} || 'x' ELSE 77 END"
            first = f"(SELECT min({column}) FROM {table})"  # noqa: S608
            where = f"WHERE {column} IS {first}"
            db.execute(f'UPDATE OR IGNORE {table} SET "{column}" = {other} {where}')  # noqa: S608
        with pytest.raises(StoreRefused, match="do not match their checksums"):
            Store.read(path)


def test_a_file_is_whole_after_each_thing_that_is_noted(path):
    """Whoever reads it meanwhile, or after the process was killed there, finds what was written."""
    (one,) = small_space().sample(5, seed=0)[4:]
    with Store.open(path, IDENTITY) as store:
        for noted in (
            lambda: store.note(Call("liftpy explore", {}, {}, 1.0)),
            lambda: store.begin(one),
            lambda: store.compiled(one, MODULE, digest(MODULE.source)),
            lambda: store.excuse(one.key),
            lambda: store.begin(one),
            lambda: store.end(one.key, MEASURED),
            lambda: store.sharpen(one.key, MEASURED),
            lambda: store.borrow("stage", [{"time_ns": 7}]),
            lambda: store.stop("the time limit ended"),
        ):
            noted()
            Store.read(path).close()


def test_rows_that_are_gone_are_said(path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM run WHERE ns = (SELECT max(ns) FROM run)")
    with pytest.raises(StoreRefused, match="do not match their checksums"):
        Store.read(path)


def test_a_file_of_format_3_is_read_and_sealed_when_it_is_written(path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE seal")
        db.execute("DROP TABLE borrowed")
        db.execute("PRAGMA user_version = 3")
    before = path.read_bytes()
    with Store.read(path) as store:
        rows = store.rows()
    assert path.read_bytes() == before
    with Store.open(path, IDENTITY) as store:
        assert store.rows() == rows
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert len(db.execute("SELECT * FROM seal").fetchall()) == 1 + len(rows)
    Store.read(path).close()


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_of_format_4_keeps_its_checksums(path, changed):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE borrowed")
        db.execute("PRAGMA user_version = 4")
        if changed:
            db.execute("UPDATE run SET ns = ns + 1")
    if changed:
        with pytest.raises(StoreRefused, match="do not match their checksums"):
            Store.read(path)
        return
    with Store.open(path, IDENTITY) as store:
        store.borrow("stage", [{"time_ns": 7}])
        assert store.borrowed("stage") == [{"time_ns": 7}]
        assert store.borrowed("another") is None
    Store.read(path).close()


def changed_and_sealed(path, statement):
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(statement)
        db.execute("DELETE FROM seal")
        seal(db)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM campaign", "it has 0 campaigns"),
        ("DELETE FROM expression", "names a row of expression that is missing"),
        ("DELETE FROM derivation", "names a row of derivation that is missing"),
        ("DELETE FROM candidate", "names a row of candidate that is missing"),
        ("UPDATE expression SET text = text || ' '", "expression does not match its hash"),
        ("UPDATE derivation SET skeleton = 'x'", "derivation does not match its hash"),
        ("UPDATE derivation SET steps = steps || ' '", "derivation does not match its hash"),
    ],
)
def test_a_file_with_missing_or_changed_texts_is_refused(path, statement, why):
    """These rows have no checksum, or whoever changed them computed it again."""
    changed_and_sealed(path, statement)
    with pytest.raises(StoreRefused, match=why):
        Store.read(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE campaign SET device = replace(hex(zeroblob(100000)), '00', '[')",
        "UPDATE campaign SET device = '{}'",
        "UPDATE campaign SET device = '[]'",
        "UPDATE campaign SET settings = '[]'",
        """UPDATE campaign SET settings = '{"devices": [{}]}'""",
    ],
)
def test_values_that_liftpy_would_not_write_are_a_damaged_file(path, statement):
    changed_and_sealed(path, statement)
    with Store.read(path) as store, pytest.raises(StoreRefused, match="is damaged"):
        _ = store.identity

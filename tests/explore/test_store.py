import json
import platform
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import StoreRefused, UnknownName
from liftpy.explore.campaign.environment import commit, environment
from liftpy.explore.campaign.lock import Lock
from liftpy.explore.campaign.rows import Call, Identity
from liftpy.explore.campaign.same_kernel import Kernels
from liftpy.explore.campaign.schema import SCHEMA_VERSION, TABLES, digest
from liftpy.explore.campaign.store import ATTEMPTS, Store
from liftpy.explore.measure.outcome import KernelLimit, Measured, Refused, WrongResult
from liftpy.ir.types import INTEGER_DOTS
from liftpy.opencl.clock import BY_HOST
from liftpy.opencl.dots import DOT_FEATURE
from liftpy.opencl.kernel import MemoryFigures, Module
from liftpy.opencl.session import BUILD_OPTIONS, NEWER, options_of
from tests.explore.spaces import small_space

VERSION_1, VERSION_2 = (Path(__file__).with_name(f"version_{n}.sql") for n in (1, 2))
IDENTITY = Identity(
    program="twice",
    text="def twice(x: [12]f32) = x |> map(x => x + x)\n",
    device=DEFAULT_DEVICE.to_json(),
    version="0.1.0",
    seed=0,
    settings={"families": None, "memory_limit": None},
)
MEMORY = MemoryFigures(peak=40, allocated=50, scratch=10, local=3, private=4, prepare=5)
MEASURED = Measured(((30, 1), (10, 1), (20, 5)), 7, MEMORY, 2.5e-7, 1e-7, 0.5, "built")
MODULE = Module("twice", "kernel void k() {}", (), (), (), "out", MEMORY)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def candidates():
    return small_space().sample(4, seed=0)


def filled(path, candidates):
    """One measured, one refused, one under way."""
    with Store.open(path, IDENTITY) as store:
        store.begin(candidates[0])
        store.compiled(candidates[0], MODULE, digest(MODULE.source))
        store.end(candidates[0].key, MEASURED)
        store.begin(candidates[1])
        store.end(candidates[1].key, Refused("too large"))
        store.begin(candidates[2])


def note(store, *candidates):
    with store.together():
        for candidate in candidates:
            store.begin(candidate)
            store.end(candidate.key, MEASURED, "from a board")


def test_what_is_noted_together_is_kept_together(path, candidates):
    first, second, *_ = candidates
    with Store.open(path, IDENTITY) as store:
        with pytest.raises(StoreRefused, match="as candidate 0"):
            note(store, first, replace(second, ordinal=first.ordinal))
        assert store.rows() == []
        note(store, first, second)
    with Store.read(path) as store:
        assert [row.reason for row in store.rows()] == [f"{MEASURED.reason}; from a board"] * 2


def test_what_was_noted_can_be_read(path, candidates):
    filled(path, candidates)
    with Store.read(path) as store:
        assert store.identity == IDENTITY
        measured, refused, running = store.rows()
        assert store.best_ns(DEFAULT_DEVICE) == 25
        assert store.done() == {measured.id, refused.id}
        assert store.kernels(measured.id) == (MODULE.source, MODULE.manifest_json())
    assert (measured.time_ns, measured.memory, measured.peak) == (25, MEMORY, 40)
    assert measured.times_ns == [[30, 1], [10, 1], [20, 5]]
    assert measured.assignment == candidates[0].assignment
    assert (refused.outcome, refused.reason, refused.memory) == ("refused", "too large", None)
    assert (running.outcome, running.time_ns) == ("running", None)


def test_what_is_wrong_when_it_is_measured_again_has_no_figures(path, candidates):
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        store.sharpen(candidates[0].key, WrongResult((0,), 1.0, 2.0))
        assert store.costs(candidates[0].key) == (MEASURED.time_ns, MEMORY.peak)  # for searches
        assert store.best_ns(DEFAULT_DEVICE) is None
        row = store.rows()[0]
    assert (row.outcome, row.time_ns, row.memory, row.span) == ("wrong", None, None, None)
    assert row.costs("peak") is None


def test_a_call_that_only_measures_again_notes_the_clock_of_the_host(path, candidates):
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        store.note(Call(started=3.0, command="explore", limits={}, environment={}))
        store.sharpen(candidates[0].key, MEASURED)
        assert "clock" not in store.calls()[-1].environment
        store.sharpen(candidates[0].key, replace(MEASURED, clock="host"))
        assert store.calls()[-1].environment["clock"] == BY_HOST


def test_a_candidate_left_running_counts_its_attempts(path, candidates):
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        assert store.attempts(candidates[2].key) == 1
        store.begin(candidates[2])
        assert store.attempts(candidates[2].key) == ATTEMPTS == 2
        assert store.attempts(candidates[0].key) == 0
        assert store.attempts(candidates[3].key) == 0


def test_a_candidate_that_the_user_stopped_is_excused(path, candidates):
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        store.excuse(candidates[2].key)
        assert store.attempts(candidates[2].key) == 0
        assert candidates[2].key not in store.done()


def test_each_call_is_noted_with_its_environment_and_its_end(path):
    here = environment(DEFAULT_DEVICE)
    call = Call("liftpy explore twice", {"samples": 3}, here, 12.5)
    with Store.open(path, IDENTITY) as store:
        store.note(call)
        assert store.calls() == [call], "it runs"
    with Store.read(path) as store:
        (ended,) = store.calls()
    assert ended.ended is not None
    assert replace(ended, ended=None) == call
    assert here["python"] == platform.python_version()
    assert here["libraries"]["numpy"] == np.__version__
    assert here["processor"]


@pytest.mark.skipif(shutil.which("git") is None, reason="no command `git`")
def test_the_environment_names_the_commit_of_the_checkout():
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    head = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    assert (commit() or "").removesuffix("+") == head  # empty outside of a checkout


def cursor(store: Store) -> int:
    (row,) = store._ask("SELECT cursor FROM campaign")
    return row["cursor"]


def test_the_cursor_is_the_next_place_in_the_drawing_order(path, candidates):
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        assert cursor(store) == 3
        store.begin(candidates[0])
        assert cursor(store) == 3
        store.begin(candidates[3])
        assert cursor(store) == 4


def test_a_file_of_format_1_keeps_all_its_rows(path):
    with closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1.read_text())
    before = path.read_bytes()
    with Store.read(path) as store:
        read = store.rows(), store.identity, store.learned(), cursor(store)
    assert path.read_bytes() == before, "a reader migrates what is in memory"
    with Store.open(path, IDENTITY) as store:
        assert (store.rows(), store.identity, store.learned(), cursor(store)) == read
        measured, refused, running, limited = store.rows()
        assert store.kernels(measured.id) == (MODULE.source, MODULE.manifest_json())
        assert store.attempts(running.id) == 1
        store.begin(small_space().sample(3, seed=0)[2])  # under way then: tried again
        assert store.attempts(running.id) == 2
    assert replace(read[1], device=IDENTITY.device) == IDENTITY
    assert Device.from_json(read[1].device) == Device.from_json(IDENTITY.device)
    assert read[2] == {limited.id: KernelLimit("k", "group", 64)}
    assert measured.times_ns == [[30, 1], [10, 1], [20, 5]]
    assert (measured.time_ns, measured.memory) == (25, MEMORY)
    assert (measured.error, measured.rms, measured.build_seconds) == (2.5e-7, None, 0.5)
    assert (refused.outcome, refused.reason) == ("refused", "too large")
    assert refused.assignment == {"family": "staged", "unroll": "no", "theta": 532, "rho": 539}


def test_a_file_of_format_2_tells_in_columns_what_was_disturbed(path):
    with closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_2.read_text())
        kept = list(old.execute("SELECT * FROM outcome ORDER BY candidate"))
    before = path.read_bytes()
    with Store.read(path) as store:
        read = store.rows(), store.calls()
    assert path.read_bytes() == before, "a reader migrates what is in memory"
    with Store.open(path, IDENTITY) as store:
        assert (store.rows(), store.calls()) == read
    with closing(sqlite3.connect(path)) as new:
        found = list(new.execute("SELECT * FROM outcome ORDER BY candidate"))
        assert new.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        columns = [column for _, column, *_ in new.execute("PRAGMA table_info(outcome)")]
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(TABLES)
        assert columns == [name for _, name, *_ in fresh.execute("PRAGMA table_info(outcome)")]
    assert [row[:-2] for row in found] == kept, "every row, as it was"
    assert [row[-2:] for row in found] == [(None, None)] * 2 + [(1, 1.7)] + [(None, None)]
    assert [row.disturbed for row in read[0]] == [False, False, False, True]


@pytest.mark.parametrize(
    ("first", "later", "told"),
    [
        (None, None, (None, None)),
        (1.1, 1.2, (0, 1.2)),
        (1.1, 0.5, (1, 0.5)),
        (1.7, 1.0, (1, 1.7)),
        (None, 1.7, (1, 1.7)),
    ],
)
def test_what_was_disturbed_has_a_column_however_often_it_was_measured(
    path, candidates, first, later, told
):
    with Store.open(path, IDENTITY) as store:
        store.begin(candidates[0])
        store.end(candidates[0].key, replace(MEASURED, departure=first))
        store.sharpen(candidates[0].key, replace(MEASURED, departure=later))
        (row,) = store.rows()
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT disturbed, departure FROM outcome").fetchone() == told
    assert row.disturbed is bool(told[0])


def test_a_migration_that_fails_leaves_the_file_as_it_was(path):
    with closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1.read_text())
        old.execute("UPDATE outcome SET times_ns = '[[3' WHERE times_ns IS NOT NULL")
        old.commit()
    before = path.read_bytes()
    for use in (lambda: Store.open(path, IDENTITY), lambda: Store.read(path)):
        with pytest.raises(StoreRefused, match="malformed JSON"):
            use()
    assert path.read_bytes() == before


def test_a_row_is_found_by_how_its_id_begins(path, candidates):
    filled(path, candidates)
    with Store.read(path) as store:
        assert store.row(candidates[0].key[:6]).id == candidates[0].key
        for unknown in ("zz", ""):
            with pytest.raises(UnknownName, match=r"has no candidate|has 3 candidates"):
                store.row(unknown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"program": "thrice", "text": "def thrice..."},
            "the program: it has twice, this is thr",
        ),
        (
            {"text": "def twice(x: [13]f32) = ..."},
            r"the text of the program twice: it has `def .* \[12\]f32\).*, this has `def .* \[13\]",
        ),
        (
            {"text": "def twice(x: [16]f32) = ...", "settings": {"sizes": {"n": 16}}},
            r"Differences:\n  sizes: it has none, this has n = 16\nName",
        ),
        ({"version": "0.2.0"}, "the version of liftpy: it has 0.1.0, this is 0.2.0"),
        ({"seed": 3}, "the seed: it has 0, this is 3"),
        (
            {"settings": {"families": None, "memory_limit": 9}},
            "memory limit: it has none, this has 9",
        ),
        (
            {"device": replace(DEFAULT_DEVICE, driver_version="1").to_json()},
            "the device: it has generic: generic, driver 0, this is generic: generic, driver 1",
        ),
        (
            {"device": replace(DEFAULT_DEVICE, ordinal=1).to_json()},
            r"this is generic: generic, driver 0 \(number 2\)",
        ),
    ],
)
def test_another_campaigns_database_is_refused_and_left_alone(path, candidates, change, message):
    filled(path, candidates)
    before = path.read_bytes()
    with pytest.raises(StoreRefused, match=message) as refusal:
        Store.open(path, replace(IDENTITY, **change))
    assert "--db" in str(refusal.value)
    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["a.db"]


def test_a_campaign_of_before_a_setting_was_there_had_what_was_done_then(path, candidates):
    filled(path, candidates)
    now = {**IDENTITY.settings, "search": "random", "sampler": "uniform", "conditions": None}
    with Store.open(path, replace(IDENTITY, settings=now)) as store:
        assert len(list(store.rows())) == 3
    with pytest.raises(StoreRefused, match="sampler: it has uniform, this has incremental"):
        Store.open(path, replace(IDENTITY, settings={**now, "sampler": "incremental"}))


def test_a_file_that_is_no_database_is_refused_and_left_alone(path):
    path.write_text("my thesis\n" * 1000)
    before = path.read_bytes()
    for use in (lambda: Store.open(path, IDENTITY), lambda: Store.read(path)):
        with pytest.raises(StoreRefused, match="is not a liftpy database"):
            use()
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_alone(path):
    with closing(sqlite3.connect(path)) as foreign, foreign:
        foreign.execute("CREATE TABLE campaign (id INTEGER)")
    foreign.close()
    before = path.read_bytes()
    for use in (lambda: Store.open(path, IDENTITY), lambda: Store.read(path)):
        with pytest.raises(StoreRefused, match="is not a liftpy database"):
            use()
    assert path.read_bytes() == before


def test_a_database_of_another_format_is_refused(path, candidates):
    filled(path, candidates)
    with closing(sqlite3.connect(path)) as later, later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(
        StoreRefused, match=f"format 99, this liftpy reads formats up to {SCHEMA_VERSION}"
    ):
        Store.read(path)


def test_a_database_that_does_not_exist_is_refused_with_the_command_that_makes_one(path):
    with pytest.raises(StoreRefused, match="`liftpy explore PROGRAM --db"):
        Store.read(path)
    assert not path.exists()
    with pytest.raises(StoreRefused, match="there is no folder"):
        Store.open(path / "x.db", IDENTITY)


def test_two_processes_do_not_run_one_campaign(path):
    with Store.open(path, IDENTITY):
        with pytest.raises(StoreRefused, match="another process is running the campaign"):
            Store.open(path, IDENTITY)
        with Store.read(path) as reader:
            assert reader.rows() == []
    with Store.open(path, IDENTITY):
        pass


def test_a_place_in_the_drawing_order_belongs_to_one_candidate(path, candidates):
    filled(path, candidates)
    other = replace(candidates[3], ordinal=0)
    with (
        Store.open(path, IDENTITY) as store,
        pytest.raises(
            StoreRefused, match="liftpy has changed since, or the device had other limits"
        ),
    ):
        store.begin(other)


def test_the_tables_can_be_read_without_liftpy(path, candidates):
    filled(path, candidates)
    with closing(sqlite3.connect(path)) as plain, plain:
        key, assignment, time_ns = plain.execute(
            "SELECT key, assignment, time_ns FROM candidate JOIN outcome ON key = candidate"
            " WHERE kind = 'measured'"
        ).fetchone()
        times = plain.execute("SELECT ns FROM run WHERE candidate = ? AND launch = 0", (key,))
        assert [ns for (ns,) in times] == [30, 10, 20]
        built = plain.execute("SELECT driver, options, log, seconds FROM build").fetchone()
        assert built == ("0", " ".join(BUILD_OPTIONS), "built", 0.5)
        errors = plain.execute("SELECT max_error, rms_error FROM verification").fetchone()
        assert errors == (2.5e-7, 1e-7)
        (text,) = plain.execute("SELECT text FROM expression").fetchone()
        assert text == IDENTITY.text
    plain.close()
    assert (key, time_ns) == (candidates[0].key, 25)
    assert json.loads(assignment)["words"]["family"] == "plain"


@pytest.mark.parametrize("known", [(), INTEGER_DOTS])
def test_the_options_are_those_that_the_device_is_given(path, candidates, known):
    """With dot products of integers, they name another OpenCL C; borrowed times depend on them."""
    device = replace(DEFAULT_DEVICE, extensions=known)
    module = replace(MODULE, source=f"#if defined({DOT_FEATURE})\n#endif\n{MODULE.source}")
    with Store.open(path, IDENTITY) as store:
        store.begin(candidates[0])
        store.compiled(candidates[0], module, digest(module.source), device)
        options = store.options(candidates[0].key)
    assert options == " ".join(options_of(module, device, BUILD_OPTIONS))
    assert (NEWER in options) is bool(known)
    assert Kernels.of(module, device).options == options


def test_the_lock_that_a_killed_process_left_is_taken_over(path, candidates):
    filled(path, candidates)
    lock = path.with_name("a.db-lock")
    lock.touch()
    with Store.open(path, IDENTITY) as store:
        assert len(store.rows()) == 3
    assert [p.name for p in path.parent.iterdir()] == ["a.db"]


def test_what_a_process_left_that_was_killed_while_it_made_the_file_is_removed(path):
    for end in ("-new", "-new-journal", "-lock"):
        path.with_name(f"a.db{end}").write_bytes(b"half a page" * 50 if "new" in end else b"")
    with Store.open(path, IDENTITY) as store:
        assert store.identity == IDENTITY
    assert [p.name for p in path.parent.iterdir()] == ["a.db"]


def test_one_file_by_two_names_is_one_campaign(path, candidates):
    filled(path, candidates)
    other = path.with_name("b.db")
    other.symlink_to(path)
    with Store.open(other, IDENTITY) as store:
        store.begin(candidates[3])
        with pytest.raises(StoreRefused, match="another process"):
            Store.open(path, IDENTITY)
        with Store.read(path) as one, Store.read(other) as two:
            assert len(one.rows()) == 4
            assert one.rows() == two.rows()


def test_a_name_that_the_system_refuses_is_a_refusal(tmp_path):
    for use in (lambda p: Store.open(p, IDENTITY), Store.read):
        with pytest.raises(StoreRefused, match="File name too long"):
            use(tmp_path / ("a" * 300))


def test_a_lock_that_was_removed_meanwhile_keeps_nobody_out_and_is_taken_again(
    path, candidates, monkeypatch
):
    filled(path, candidates)
    real, removed = sqlite3.connect, []

    def connect(name, *args, **kwargs):
        made = real(name, *args, **kwargs)
        if str(name).endswith("-lock") and not removed:
            made.execute("PRAGMA user_version")  # the file is open from now on
            Path(name).unlink()
            removed.append(name)
        return made

    monkeypatch.setattr(sqlite3, "connect", connect)
    with Store.open(path, IDENTITY):
        assert removed
        with pytest.raises(StoreRefused, match="another process"):
            Store.open(path, IDENTITY)


def test_nobody_takes_a_lock_between_its_end_and_that_of_its_file(path, monkeypatch):
    lock, unlink, refused = Lock(path), Path.unlink, []

    def wait_first(name, *, missing_ok=False):
        with pytest.raises(StoreRefused, match="another process"):
            Lock(path)
        refused.append(name)
        unlink(name, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", wait_first)
    lock.release()
    monkeypatch.undo()
    assert refused == [lock.path]
    Lock(path).release()
    assert not lock.path.exists()

"""What becomes of a campaign when disk, file or folder fail: the real thing each time."""

import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from liftpy.errors import StoreRefused
from liftpy.explore.campaign.store import Store
from tests.explore.spaces import small_space
from tests.explore.test_store import IDENTITY, MEASURED, MODULE, filled
from tests.processes import SECONDS

KIB = 1024


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def candidates():
    return small_space().sample(4, seed=0)


@pytest.fixture
def disk(tmp_path):
    """A file system of 256 KiB, and how to make it read-only; skipped where nobody may mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={256 * KIB}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


def remount(folder, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)  # noqa: S607


@contextmanager
def full(folder):
    """Not a byte is left on the disk of a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4 * KIB))
        except OSError:
            pass
    yield
    ballast.unlink()


def integrity(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchone()[0]


def measure(store, candidate):
    store.begin(candidate)
    store.compiled(candidate, MODULE, "")
    store.end(candidate.key, MEASURED)


@contextmanager
def child(does):
    """A process that is forked from this one, so that it imports nothing, and a connection to it.

    It calls `does` with the other end of the connection. The context waits for its end.
    """
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    process = forking.Process(target=does, args=(theirs,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads hold nothing it needs
        process.start()
    theirs.close()
    with ours:
        yield process, ours
        process.join(SECONDS)


# --- full -----------------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing_and_blames_no_candidate(disk, candidates):
    path = disk / "a.db"
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        store.begin(candidates[3])
        with full(disk):
            for write in (
                lambda: store.end(candidates[3].key, MEASURED),
                lambda: store.begin(candidates[2]),
            ):
                with pytest.raises(StoreRefused, match="disk is full"):
                    [write() for _ in range(100)]  # some room is left in pages begun
            with Store.read(path) as reader:
                assert len(reader.rows()) == 4, "a reader needs no room on the disk"
        measure(store, candidates[3])
    assert integrity(path) == "ok"
    with Store.open(path, IDENTITY) as store:
        assert store.rows()[3].times_ns == [[30, 1], [10, 1], [20, 5]]
        measure(store, candidates[2])


def test_a_campaign_does_not_begin_on_a_full_disk_and_leaves_nothing(disk, candidates):
    with full(disk), pytest.raises(StoreRefused, match=r"disk is full|No space left|lock"):
        Store.open(disk / "a.db", IDENTITY)
    assert list(disk.iterdir()) == []
    filled(disk / "a.db", candidates)
    assert integrity(disk / "a.db") == "ok"


def test_a_file_that_may_not_grow_keeps_what_it_has(path, candidates):
    """A quota: what the process may write ends in the middle of a transaction."""
    filled(path, candidates)

    def limited(said):
        try:
            with Store.open(path, IDENTITY) as store:
                resource.setrlimit(resource.RLIMIT_FSIZE, (60 * KIB, 60 * KIB))
                while True:
                    measure(store, candidates[3])
        except StoreRefused as refused:
            said.send(str(refused))

    with child(limited) as (process, says):
        said = says.recv()
    assert process.exitcode == 0
    assert "cannot be read or written completely" in said
    assert integrity(path) == "ok"
    with Store.open(path, IDENTITY) as store:
        assert [row.outcome for row in store.rows()][:3] == ["measured", "refused", "running"]


# --- read-only ------------------------------------------------------------------------------------


@pytest.fixture
def others_file(tmp_path, candidates):
    """A campaign that belongs to somebody else, in a folder of theirs, both readable."""
    if os.geteuid() != 0:
        path = tmp_path / "a.db"
        filled(path, candidates)
        path.chmod(0o444)
        tmp_path.chmod(0o555)
        yield path
        tmp_path.chmod(0o755)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        filled(path, candidates)
        path.parent.chmod(0o755)
        os.seteuid(65534)
        yield path
        os.seteuid(0)


def test_a_read_only_file_is_read_and_refused_to_a_campaign(disk, candidates):
    path = disk / "a.db"
    filled(path, candidates)
    remount(disk, "ro")
    try:
        with Store.read(path) as store:
            assert len(store.rows()) == 3
        with pytest.raises(StoreRefused, match=r"lock .* cannot be written"):
            Store.open(path, IDENTITY)
        assert sorted(p.name for p in disk.iterdir()) == ["a.db"]
    finally:
        remount(disk, "rw")


@pytest.mark.parametrize("with_index", [True, False])
def test_what_a_killed_campaign_left_is_read_on_a_read_only_disk(disk, candidates, with_index):
    """Its last rows are in the log (`-wal`); the log's index (`-shm`) is there, or is not."""
    path = disk / "a.db"
    filled(path, candidates)
    killed(path, candidates[3])
    with Store.read(path) as store:
        assert len(store.rows()) == 4
    if not with_index:
        path.with_name("a.db-shm").unlink()
    before = sorted(p.name for p in disk.iterdir())
    assert "a.db-wal" in before
    remount(disk, "ro")
    try:
        with Store.read(path) as store:
            assert len(store.rows()) == 4
        assert sorted(p.name for p in disk.iterdir()) == before
    finally:
        remount(disk, "rw")


def killed(path, candidate):
    """A process that began a candidate and was gone."""

    def begins(_):
        Store.open(path, IDENTITY).begin(candidate)
        os._exit(9)

    with child(begins) as (process, _):
        pass
    assert process.exitcode == 9


def test_a_file_that_a_user_may_not_write_is_read_by_them(others_file):
    with Store.read(others_file) as store:
        assert len(store.rows()) == 3
    with pytest.raises(StoreRefused, match="cannot be"):
        Store.open(others_file, IDENTITY)
    assert [p.name for p in others_file.parent.iterdir()] == ["a.db"]


def test_a_copy_taken_while_a_campaign_runs_has_what_was_measured(path, candidates):
    copy = path.with_name("copy.db")
    with Store.open(path, IDENTITY) as store:
        measure(store, candidates[0])
        store.begin(candidates[1])
        shutil.copy(path, copy)
        with Store.read(path) as reader:
            assert [row.outcome for row in reader.rows()] == ["measured", "running"]
    with Store.read(copy) as reader:
        assert [row.outcome for row in reader.rows()] == ["measured"]
    assert integrity(copy) == "ok"


def test_reading_makes_no_file(path, candidates):
    filled(path, candidates)
    Store.read(path).close()
    assert [p.name for p in path.parent.iterdir()] == ["a.db"]


# --- damaged --------------------------------------------------------------------------------------


def everything(path):
    """All that can be read, then what a campaign writes."""
    with Store.read(path) as store:
        for row in store.rows():
            store.kernels(row.id)
        _ = store.identity, store.calls(), store.learned(), store.done()
    candidates = small_space().sample(4, seed=0)
    with Store.open(path, IDENTITY) as store:
        measure(store, candidates[3])


def sizeable(path, candidates):
    """A campaign of some pages."""
    filled(path, candidates)
    with Store.open(path, IDENTITY) as store:
        for _ in range(3):
            measure(store, candidates[3])
    return path.read_bytes()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused_and_left_as_it_is(path, candidates, part):
    whole = sizeable(path, candidates)
    path.write_bytes(whole[: int(part * len(whole))])
    before = path.read_bytes()
    for use in (lambda: Store.open(path, IDENTITY), lambda: Store.read(path)):
        with pytest.raises(StoreRefused, match="is damaged"):
            use()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["a.db"]


def test_garbage_anywhere_in_a_file_is_a_refusal_or_does_no_harm(path, candidates):
    whole = sizeable(path, candidates)
    rng = random.Random(20240229)
    said: list[str] = []
    for _ in range(60):
        at, length = rng.randrange(len(whole)), rng.choice([1, 16, 4096])
        garbage = whole[:at] + rng.randbytes(min(length, len(whole) - at)) + whole[at + length :]
        path.write_bytes(garbage)
        try:
            everything(path)
        except StoreRefused as refusal:
            said.append(str(refusal))
        for left in path.parent.iterdir():
            left.unlink()
    assert len(said) > 20
    assert all(str(path) in refusal for refusal in said)


def test_a_log_of_garbage_loses_only_what_was_in_it(path, candidates):
    filled(path, candidates)
    log = path.with_name("a.db-wal")
    log.write_bytes(bytes(range(256)) * 64)
    with Store.read(path) as store:
        assert len(store.rows()) == 3
    with Store.open(path, IDENTITY) as store:
        assert len(store.rows()) == 3


# --- two campaigns --------------------------------------------------------------------------------


def test_of_campaigns_started_at_once_one_runs(path):
    """Each says what it became; the one with the file waits until the other has spoken."""

    def campaign(told):
        told.send("ready")
        told.recv()
        try:
            with Store.open(path, IDENTITY):
                told.send("runs")
                told.recv()
        except StoreRefused as refusal:
            told.send(str(refusal))

    with child(campaign) as (one, of_one), child(campaign) as (other, of_other):
        several = of_one, of_other
        assert [each.recv() for each in several] == ["ready"] * 2
        for each in several:
            each.send("go")
        said = [each.recv() for each in several]
        for each in several:
            with suppress(BrokenPipeError):  # the one that was refused has ended
                each.send("end")
    assert (one.exitcode, other.exitcode) == (0, 0)
    assert sorted(line.startswith("runs") for line in said) == [False, True], said
    assert sum("another process is running the campaign" in line for line in said) == 1
    assert integrity(path) == "ok"
    assert [p.name for p in path.parent.iterdir()] == ["a.db"]

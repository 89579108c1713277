"""Campaigns on boards: over a real ssh server on loopback, and by adb's commands."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from liftpy.boards.link import Link
from liftpy.boards.live import Board
from liftpy.boards.output import Output
from liftpy.boards.transports import transport_of
from liftpy.errors import BoardRefused
from liftpy.explore.exploring import explore
from liftpy.language.text.program import parse
from tests.boards import loopback
from tests.processes import started, until

PROGRAM = parse("def thrice(x: [60]f32) = x |> map(x => x * 3)")
SAMPLES = 5


def rows_of(db: Path, board: Board | None = None):
    return explore(
        PROGRAM,
        SAMPLES,
        0,
        db,
        device="pocl" if board is None else "portable",
        board=board,
        search="random",
        tolerance=1e-4,
        again=False,
    ).rows


def explored(db: Path, board: Board | None = None):
    return [(row.id, row.ordinal, row.outcome, row.peak) for row in rows_of(db, board)]


@pytest.fixture(scope="module")
def local(pocl, tmp_path_factory):
    """The candidates of a campaign on this machine."""
    return explored(tmp_path_factory.mktemp("local") / "a.db")


def test_a_campaign_over_ssh_has_the_candidates_of_a_local_one(ssh, host, local, tmp_path):
    """It makes one connection, which ends with it."""
    before = loopback.admissions(host[0])
    assert explored(tmp_path / "a.db", Board(ssh, batch=3)) == local
    assert {outcome for _, _, outcome, _ in local} == {"measured"}
    assert loopback.admissions(host[0]) == before + 1
    until(lambda: not loopback.holders())


@pytest.mark.parametrize(
    "lines",
    [pytest.param(cuts, marks=pytest.mark.soak) for cuts in ("0 3 9", "7 1 10", "12 8 6")],
)
def test_a_link_that_breaks_at_any_line_changes_nothing(ssh, host, local, tmp_path, lines):
    """The process that holds the connection is killed, and leaves its socket."""
    cuts, before = host[0] / "cuts", loopback.admissions(host[0])
    cuts.write_text(lines)
    told = []
    board = Board(ssh, batch=3, backoff=0.01, note=told.append)
    assert explored(tmp_path / "a.db", board) == local
    assert cuts.read_text() == ""
    assert sum("is lost" in said for said in told) == 3
    assert loopback.admissions(host[0]) >= before + 4
    until(lambda: not loopback.holders())


def test_a_host_with_an_unknown_key_gets_nothing(ssh, host, tmp_path):
    known = host[0] / "known"
    kept = known.read_text()
    try:
        loopback.keygen(tmp_path / "other")
        key = (tmp_path / "other.pub").read_text().split()
        known.write_text(f"{kept.split()[0]} {key[0]} {key[1]}\n")
        with pytest.raises(BoardRefused, match="is unknown or has changed, so nothing was sent"):
            explored(tmp_path / "a.db", Board(ssh))
        assert not loopback.holders()
    finally:
        known.write_text(kept)


def commands(folder: Path, run: str = '["sh", "-c", "{command}"]', copy='"cp", "-r"') -> str:
    """The address of a board that a file describes: a folder of this machine."""
    file = folder / "board.toml"
    file.write_text(
        f'copy = [{copy}, "{{from}}", "{{to}}/"]\nrun = {run}\nfolder = "{folder}/there"\n'
    )
    return f"commands:{file}"


def script(path: Path, text: str) -> str:
    """A program, quoted as a command of a file that describes a board."""
    path.write_text(text)
    path.chmod(0o755)
    return f'"{path}"'


def with_runner(folder: Path, board: Path, link: Link) -> None:
    """Puts the runner where a board has it, below a folder; the board of `ssh` builds its own."""
    runner = folder / link.folder.removeprefix("/") / link.runner
    runner.parent.mkdir(parents=True)
    shutil.copy(board, runner)
    link.close()


@pytest.fixture(scope="module")
def beside(board, tmp_path_factory):
    """A folder that is a board, with the runner."""
    folder = tmp_path_factory.mktemp("beside")
    with_runner(Path("/"), board, Link(transport_of(commands(folder))))
    return folder


def test_a_runner_of_another_version_is_named(beside):
    link = Link(transport_of(commands(beside)))
    runner = Path(link.folder) / link.runner
    kept = runner.with_name("kept")
    runner.rename(kept)
    try:
        runner.write_text("#!/bin/sh\necho '# liftpy-board 9'\n")
        runner.chmod(0o755)
        with pytest.raises(
            BoardRefused, match="is of another version: it prints '# liftpy-board 9"
        ):
            link.machine()
        runner.write_text("#!/bin/sh\necho 'board: no OpenCL library can be loaded' >&2; exit 1\n")
        with pytest.raises(BoardRefused, match="cannot run kernels: board: no OpenCL library"):
            link.machine()
    finally:
        kept.replace(runner)
        link.close()


HOT = """#!/bin/sh
unset OCL_ICD_VENDORS
case "$1" in *--lock*) ;; *) exec sh -c "$1";; esac
echo >> {folder}/batches
case $(wc -l < {folder}/batches) in 2) now=1500;; *) now=1000;; esac
sh -c "$1" | sed "s/reference=[0-9]*:[0-9]*/reference=$now:$now/"
"""


def test_the_rows_of_a_hot_board_are_disturbed(beside, tmp_path):
    """The reference kernel takes half as long again in the second of three batches."""
    hot = script(beside / "hot", HOT.format(folder=tmp_path))
    rows = rows_of(tmp_path / "a.db", Board(commands(beside, f'[{hot}, "{{command}}"]'), batch=2))
    assert [row.disturbed for row in rows] == [False] * 2 + [True] * 2 + [False]


UNNAMED = """#!/bin/sh
unset OCL_ICD_VENDORS
case "$1" in *--lock*) sh -c "$1" | sed "/^# bundle/d";; *) exec sh -c "$1";; esac
"""


def test_a_runner_that_does_not_name_its_bundle_is_refused(beside, tmp_path):
    address = commands(beside, f'[{script(beside / "unnamed", UNNAMED)}, "{{command}}"]')
    with pytest.raises(BoardRefused, match="prints no '# bundle' before a candidate"):
        rows_of(tmp_path / "a.db", Board(address, batch=3))


def test_what_a_run_says_while_it_waits_is_a_sign_of_life():
    with tempfile.TemporaryFile() as errors:
        pipe = subprocess.PIPE
        command = ["sh", "-c", "read x; echo waiting >&2; echo said; read x"]
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
        )
        output = Output(process, errors)
        assert not output.has_said_more()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert output.line(300.0) == "said"
        assert output.has_said_more()
        assert not output.has_said_more()
        process.stdin.close()
        output.close()


BREAKING = """#!/bin/sh
unset OCL_ICD_VENDORS
case "$1" in
*--lock*) [ -e {broken} ] && exec sh -c "$1"; touch {broken}; sh -c "$1" | head -n 9;;
*) exec sh -c "$1";;
esac
"""


def test_a_link_that_breaks_changes_nothing(beside, local, tmp_path):
    """The ninth line is within the results; over ssh, links break at any line (`make soak`)."""
    text, told = BREAKING.format(broken=tmp_path / "broken"), []
    address = commands(beside, f'[{script(beside / "breaking", text)}, "{{command}}"]')
    board = Board(address, batch=3, backoff=0.01, note=told.append)
    assert explored(tmp_path / "a.db", board) == local
    assert sum("is lost" in said for said in told) == 1


RESTARTING = """#!/bin/sh
unset OCL_ICD_VENDORS
boots=$(wc -l < {boots})
case "$1" in
*--describe*) sh -c "$1" | sed "s/^# boot .*/# boot $boots/";;
*--lock*) [ $boots -ge {restarts} ] && exec sh -c "$1"; echo >> {boots}; sh -c "$1" | head -n 7;;
*) exec sh -c "$1";;
esac
"""


@pytest.mark.parametrize("restarts", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_candidate_during_which_the_board_restarts_twice_crashed(
    beside, local, tmp_path, restarts
):
    """The seventh line says that the first candidate is in progress."""
    (tmp_path / "boots").touch()
    text = RESTARTING.format(boots=tmp_path / "boots", restarts=restarts)
    address = commands(beside, f'[{script(beside / "restarting", text)}, "{{command}}"]')
    told = []
    rows = rows_of(tmp_path / "a.db", Board(address, batch=3, backoff=0.01, note=told.append))
    assert sum("was started again" in said for said in told) == restarts
    assert [row.id for row in rows] == [id_ for id_, *_ in local]
    crashed = [row for row in rows if row.outcome != "measured"]
    assert len(crashed) == restarts - 1
    for row in crashed:
        assert (row.ordinal, row.outcome) == (0, "crashed")
        assert "2 times while it ran on the board, the board was started again" in row.reason


CUT_OFF = """#!/bin/sh
# As cp -r; of the copies that `cuts` marks by a 1, half of each file arrives.
read -r now later < {cuts}
printf %s "$later" > {cuts}
cp -r "$1" "$2"
[ "$now" = 1 ] || exit 0
for file in $(find "$2/$(basename "$1")" -type f -name '*.*'); do
  truncate -s $(($(stat -c %s "$file") / 2)) "$file"
done
exit 1
"""


def test_a_copy_that_is_cut_off_is_made_again(beside, local, tmp_path):
    """Of the data and of batches; the parts that arrived are removed."""
    for data in (beside / "there").glob("data-*"):
        shutil.rmtree(data)
    cuts = tmp_path / "cuts"
    cuts.write_text("1 1 0 1 1 0 1")
    copy = script(beside / "cut_off", CUT_OFF.format(cuts=cuts))
    bare = '["env", "-u", "OCL_ICD_VENDORS", "sh", "-c", "{command}"]'
    told = []
    board = Board(commands(beside, bare, copy), batch=3, backoff=0.01, note=told.append)
    assert explored(tmp_path / "a.db", board) == local
    assert cuts.read_text() == ""
    assert sum("a copy ended with code 1" in said for said in told) == 5
    (data,) = (beside / "there").glob("data-*")
    kept = {path.name.rpartition("-")[2] for path in data.glob("*-*")}
    assert not kept & {"1", "2", "4"}


def endless(folder: Path):
    """A transport whose copies do not end."""
    return transport_of(commands(folder, copy='"sh", "-c", "sleep 600; true"'))


def test_a_copy_that_does_not_end_in_time_is_killed(tmp_path):
    assert endless(tmp_path).copy(tmp_path, "there", 0.1) == (-signal.SIGKILL, "")


def test_a_copy_that_is_interrupted_is_killed(tmp_path, monkeypatch):
    """Ctrl-C reaches only the campaign: a copy runs in a session of its own."""
    wait, transport = subprocess.Popen.wait, endless(tmp_path)

    def interrupted(process, timeout=None):
        if timeout is not None:
            until(lambda: started(str(tmp_path)))  # at first it is not yet the command
            raise KeyboardInterrupt
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transport.copy(tmp_path, "there", 600)
    assert not started(str(tmp_path))


def test_a_full_disk_is_named(pocl, tmp_path):
    limited = commands(tmp_path, '["sh", "-c", "ulimit -f 4; {command}"]')
    link = Link(transport_of(limited))
    link.call(f"mkdir -p {tmp_path}/there")
    link.copy("small", {"file": b"1"}, f"{tmp_path}/there")
    (tmp_path / "there" / "large").touch()  # a folder cannot be copied onto a file
    with pytest.raises(BoardRefused, match=r"cannot store 99999 bytes in .*Is its disk full"):
        link.copy("large", {"file": bytes(99999)}, f"{tmp_path}/there")
    link.close()


def test_adb_is_used_by_its_commands(board, local, tmp_path, monkeypatch):
    """A program in place of adb runs its commands here: what a phone does is not tested."""
    tools, phone = tmp_path / "tools", tmp_path / "phone"
    tools.mkdir()
    phone.mkdir()
    (tools / "adb").write_text(f"""#!/bin/sh
[ "$1 $2" = "-s emulator-5554" ] || exit 9
cd {phone}; case "$3" in
push) cp -r "$4" ".$5";;
shell) unset OCL_ICD_VENDORS; sh -c "$(printf %s "$4" | sed 's|/data/local|./data/local|g')";;
esac
""")
    (tools / "adb").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with_runner(phone, board, Link(transport_of("adb:emulator-5554")))
    assert explored(tmp_path / "a.db", Board("adb:emulator-5554")) == local


@pytest.mark.parametrize(
    "address",
    [
        "ssh:",
        "ssh:-oProxyCommand=x",
        "ssh:a b",
        "ssh:a;b",
        "ssh:u@-h",
        "adb:-s",
        "adb:a b",
        "local:x",
        "usb:1",
        "ssh:h:99999999",
        "commands:",
    ],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(BoardRefused, match="is not the address of a board"):
        transport_of(address)

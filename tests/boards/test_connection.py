"""The one connection of a campaign over ssh: shared, opened again when it is cut, never left."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from liftpy.boards import connection
from liftpy.boards.connection import folder_of_sockets, has_sockets, one_connection
from liftpy.boards.link import Link, Lost
from liftpy.boards.live import Board
from liftpy.boards.output import Output
from liftpy.boards.transports import transport_of
from liftpy.errors import BoardRefused
from tests.boards import loopback
from tests.cli.test_stopping import measured
from tests.processes import started, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shared(ssh):
    """A transport with a connection of its own."""
    with one_connection(transport_of(ssh)) as transport:
        yield transport
    until(lambda: not loopback.holders())


@pytest.fixture
def link(shared):
    with closing(Link(shared)) as link:
        yield link


def said(link: Link, word: str = "here") -> str:
    return link.call(f"echo {word}").output


def socket_of(transport) -> Path:
    (path,) = (word for word in transport.running if word.startswith("ControlPath="))
    return Path(path.removeprefix("ControlPath="))


def test_all_commands_share_one_connection(link, host):
    before = loopback.admissions(host[0])
    assert said(link) == "here"
    link.copy("sent", {"a/b": b"there\n"}, ".")
    assert link.call("cat sent/a/b; exit 3").output == "there"
    assert loopback.admissions(host[0]) == before + 1
    assert len(loopback.holders()) == 1


def test_the_socket_is_private(link):
    said(link)
    socket = socket_of(link.transport)
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o777 == 0o700


def test_a_connection_whose_process_died_is_opened_again(link, host):
    """It leaves its socket, at which nobody listens."""
    before = loopback.admissions(host[0])
    said(link)
    (holder,) = loopback.holders()
    holder.kill()
    until(lambda: not loopback.holders())
    assert socket_of(link.transport).is_socket()
    assert [said(link), said(link)] == ["here"] * 2
    assert loopback.admissions(host[0]) == before + 2
    assert len(loopback.holders()) == 1


def sessions(folder: Path) -> list[psutil.Process]:
    """The processes of the server in `folder` that serve connections."""
    (server,) = started(f"{folder}/sshd_config")
    return server.children(recursive=True)


def test_a_connection_that_the_server_cuts_is_lost_and_opened_again(link, host):
    before = loopback.admissions(host[0])
    errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the output
    output = Output(link.transport.start("echo begun; sleep 600", errors), errors)
    assert output.line(60) == "begun"
    for session in sessions(host[0]):
        session.kill()
    assert output.line(60) is None
    output.close()
    until(lambda: not loopback.holders())
    assert said(link) == "here"
    assert loopback.admissions(host[0]) == before + 2


def test_a_command_that_is_ended_leaves_the_connection_open(link, host):
    before = loopback.admissions(host[0])
    said(link)
    with pytest.raises(Lost, match="no answer within 1 s"):
        link.call("sleep 600", 1)
    assert said(link) == "here"
    assert loopback.admissions(host[0]) == before + 1


def test_each_campaign_has_a_connection_of_its_own(ssh):
    with one_connection(transport_of(ssh)) as one, closing(Link(one)) as first:
        said(first)
        with one_connection(transport_of(ssh)) as two, closing(Link(two)) as second:
            said(second)
            assert len(loopback.holders()) == 2
        until(lambda: len(loopback.holders()) == 1)
        assert said(first) == "here"
    until(lambda: not loopback.holders())


def test_a_connection_that_nobody_ends_does_not_stay(ssh, monkeypatch):
    """As after liftpy was killed."""
    monkeypatch.setattr(connection, "PERSIST", 1)
    with one_connection(transport_of(ssh)) as transport, closing(Link(transport)) as link:
        said(link)
        until(lambda: not loopback.holders())
        assert not socket_of(transport).exists()


def test_an_open_connection_of_the_user_is_used_and_kept(ssh, host):
    """A socket left by a dead ssh process is ignored."""
    folder = Path(tempfile.gettempdir())
    config, before = host[0] / "ssh_config", loopback.admissions(host[0])
    kept = config.read_text()
    config.write_text(f"{kept}ControlPath {folder}/own\n")
    try:
        keeping = ("-M", "-o", "ControlPersist=600")
        command = [shutil.which("ssh"), "-p", str(host[1]), *keeping, "127.0.0.1", "true"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        transport = transport_of(ssh)
        with one_connection(transport) as found, closing(Link(found)) as link:
            assert found is transport
            assert said(link) == "here"
            link.copy("kept", {"file": b""}, ".")
        assert loopback.admissions(host[0]) == before + 1
        (holder,) = loopback.holders()
        holder.kill()
        until(lambda: not loopback.holders())
        with one_connection(transport) as found:
            assert found is not transport
    finally:
        config.write_text(kept)
        (folder / "own").unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["long" * 20, "100%", "a b", "a'b"])
def test_a_folder_in_which_ssh_can_have_no_socket_is_not_used(monkeypatch, name):
    with tempfile.TemporaryDirectory(prefix="lp-", dir="/tmp") as short:
        folder = Path(short) / name
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        assert folder_of_sockets() == "/tmp"  # noqa: S108  its name is compared
        monkeypatch.setattr(tempfile, "tempdir", short)
        assert folder_of_sockets() == short


def test_the_longest_folder_that_is_used_is_not_too_long_for_ssh(ssh, monkeypatch):
    short = tempfile.gettempdir()
    for length in range(40, 80):
        folder = Path(short) / ("x" * (length - len(short)))
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        if folder_of_sockets() != str(folder):
            break
        longest = folder
    monkeypatch.setattr(tempfile, "tempdir", str(longest))
    with one_connection(transport_of(ssh)) as transport, closing(Link(transport)) as link:
        assert said(link) == "here"
        assert socket_of(transport).is_relative_to(longest)
        assert len(loopback.holders()) == 1
    until(lambda: not loopback.holders())


def test_a_folder_whose_file_system_has_no_sockets_is_not_used():
    assert not has_sockets("/proc/self")


def test_commands_connect_on_their_own_if_no_folder_can_have_a_socket(ssh, host, monkeypatch):
    monkeypatch.setattr(connection, "folder_of_sockets", lambda: None)
    transport, before = transport_of(ssh), loopback.admissions(host[0])
    with one_connection(transport) as found, closing(Link(found)) as link:
        assert found is transport
        assert [said(link), said(link)] == ["here"] * 2
    assert loopback.admissions(host[0]) == before + 2


@pytest.mark.parametrize("address", ["adb:emulator-5554", "local:"])
def test_other_transports_are_as_they_were(address):
    transport = transport_of(address)
    with one_connection(transport) as found:
        assert found is transport


def test_a_host_that_cannot_be_reached_is_named(ssh):
    port = loopback.free_port()
    with (
        pytest.raises(BoardRefused, match="cannot be reached: ssh: connect to host"),
        Board(f"ssh:127.0.0.1:{port}").connect(None, None),
    ):
        pass


def test_a_refused_board_leaves_nothing_running(ssh, host):
    """The folder of liftpy cannot be made there."""
    (host[0] / "home" / ".cache").touch()
    try:
        with (
            pytest.raises(BoardRefused, match=r"the folder \.cache/liftpy cannot be made"),
            Board(ssh).connect(None, None),
        ):
            pass
        until(lambda: not loopback.holders())
    finally:
        (host[0] / "home" / ".cache").unlink()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_campaign_that_is_stopped_leaves_nothing_running(ssh, board, host, tmp_path, number):
    with closing(Link(transport_of(ssh))) as link:
        runner = host[0] / "home" / link.folder / link.runner
    runner.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(board, runner)
    (tmp_path / "thrice.lift").write_text("def thrice(x: [60]f32) = x |> map(x => x * 3)")
    words = ["explore", "thrice.lift", "--db", "a.db", "-n", "100000", "--search", "random"]
    process = subprocess.Popen(
        [sys.executable, "-m", "liftpy", *words, "--board", ssh, "--board-batch", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": tempfile.gettempdir()},
    )
    until(lambda: measured(tmp_path / "a.db") or process.poll() is not None)
    begun = [*psutil.Process(process.pid).children(recursive=True), *loopback.holders()]
    assert loopback.holders()
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    _, alive = psutil.wait_procs([*begun, *loopback.holders()], timeout=30)
    assert not alive  # in 30 s: an open connection ends by itself in 60

"""What is exported is derived as anything is, and built by boards: tests/shared.py."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from liftpy.boards import connection
from tests.boards import loopback
from tests.conftest import absent


@pytest.fixture(scope="module", autouse=True)
def _shared(in_one_process):
    """What bundles have in common is made once."""


@pytest.fixture(scope="module")
def host(pocl, tmp_path_factory):
    """The folder and the port of a running ssh server."""
    if shutil.which("sshd", path="/usr/sbin:" + os.environ["PATH"]) is None:
        absent("sshd", "openssh-server is not installed")
    folder = tmp_path_factory.mktemp("sshd")
    with loopback.server(folder) as port:
        loopback.client(folder, port)
        yield folder, port


@pytest.fixture
def ssh(host, monkeypatch):
    """The address of the server; its `ssh` and `scp` are found first.

    Temporary files are in a folder of the test's own, with a path that is short enough for sockets.
    A connection that nobody ends stays open for longer than tests wait.
    """
    folder, port = host
    monkeypatch.setenv("PATH", f"{folder / 'tools'}:{os.environ['PATH']}")
    monkeypatch.setattr(connection, "PERSIST", 600)
    with tempfile.TemporaryDirectory(prefix="lp-", dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        try:
            yield f"ssh:127.0.0.1:{port}"
            assert not list(Path(short).glob("liftpy-*"))
        finally:
            for holder in loopback.holders():  # of a test that failed
                holder.kill()

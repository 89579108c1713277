"""An ssh server on loopback with a key and a port of its own, and an `ssh` that can be cut."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

CUT = """#!/usr/bin/env python3
# As ssh, whose link breaks after a number of lines of its output, as long as {cuts} has numbers.
import os, pathlib, re, signal, subprocess, sys
cuts = pathlib.Path({cuts!r})
numbers = cuts.read_text().split()
command = [{tool!r}, "-F", {config!r}, *sys.argv[1:]]
if "--describe" in sys.argv[-1] or "--lock" not in sys.argv[-1]:
    os.execv(command[0], command)
cuts.write_text(" ".join(numbers[1:]))
process = subprocess.Popen(command, stdout=subprocess.PIPE)
for _ in range(int(numbers[0])):
    sys.stdout.buffer.write(process.stdout.readline())
    sys.stdout.flush()
holder = subprocess.run([*command[:-3], "-O", "check", *command[-3:-1]], stderr=subprocess.PIPE)
os.kill(int(re.search(rb"pid=(\\d+)", holder.stderr)[1]), signal.SIGKILL)
process.kill()  # it may be about to open a connection of its own
process.wait()
sys.exit(255)
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def admissions(folder: Path) -> int:
    """How many connections the server in `folder` has admitted."""
    return (folder / "sshd.log").read_text().count("Accepted publickey")


def holders() -> list[psutil.Process]:
    """The processes that hold a connection of ssh with a socket among the temporary files."""
    found, title = [], f"ssh: {tempfile.gettempdir()}/"
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):  # of which ZombieProcess is a kind
            if "".join(process.cmdline()).startswith(title):
                found.append(process)
    return found


def keygen(path: Path) -> None:
    command = [shutil.which("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True)


@contextmanager
def server(folder: Path, command: tuple[str, ...] = ()):
    """A running sshd, and the port; `command` starts it, such as a shell with limits."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
    keygen(folder / "host")
    keygen(folder / "user")
    shutil.copy(folder / "user.pub", folder / "admitted")
    port, home = free_port(), folder / "home"
    home.mkdir()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/admitted\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\nSubsystem sftp /usr/lib/openssh/sftp-server\n"
        "SetEnv POCL_WORK_GROUP_SPECIALIZATION=0 CFLAGS=-O0\n"
        'ForceCommand case "$SSH_ORIGINAL_COMMAND" in */sftp-server) '
        f"exec /usr/lib/openssh/sftp-server -d {home};; esac; cd {home} && export HOME={home} "
        '&& eval "$SSH_ORIGINAL_COMMAND"\n'
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, sshd, "-D", "-e", "-f", str(folder / "sshd_config")],
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def client(folder: Path, port: int) -> Path:
    """A folder with `ssh` and `scp` that use the keys of the server in `folder`."""
    key = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    config = folder / "ssh_config"
    config.write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "GlobalKnownHostsFile none\n"
    )
    tools = folder / "tools"
    tools.mkdir()
    cuts, cut, ssh = folder / "cuts", folder / "cut", shutil.which("ssh")
    cut.write_text(CUT.format(cuts=str(cuts), tool=ssh, config=str(config)))
    cut.chmod(0o755)
    (tools / "ssh").write_text(
        f'#!/bin/sh\n[ -s {cuts} ] && exec {cut} "$@"\nexec {ssh} -F {config} "$@"\n'
    )
    (tools / "scp").write_text(f'#!/bin/sh\nexec {shutil.which("scp")} -F {config} "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return tools

"""How files reach a board and commands run there: ssh, adb, this machine, or commands of a file.

ssh:[USER@]HOST[:PORT]   the system's ssh and scp, with the user's configuration and keys
adb:SERIAL               the system's adb
local:                   this machine
commands:FILE            a TOML file with a command that copies and one that runs

Nothing here passes through a shell of this machine: commands are lists of words. What a board runs
is one command line for a POSIX shell, whose words are quoted.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from liftpy.errors import BoardRefused
from liftpy.files.reading import MIB, read_text, toml

CONNECT_SECONDS = 15
ALIVE_SECONDS = 10
"""Seconds of silence after which ssh asks whether the other side is there; twice, then it ends."""

CONTROL = 5.0  # seconds: requests to a process of this machine

SSH_OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": str(CONNECT_SECONDS),
    "ServerAliveInterval": str(ALIVE_SECONDS),
    "ServerAliveCountMax": "2",
}
HOME_FOLDER = ".cache/liftpy"
PHONE_FOLDER = "/data/local/tmp/liftpy"
KEYS = ("copy", "run", "folder", "streams")

USER = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
HOST = r"[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]"
SERIAL = r"[A-Za-z0-9_][A-Za-z0-9._:-]*"
PLACE = r"[A-Za-z0-9._/][A-Za-z0-9._/-]*"


@dataclass(frozen=True)
class Transport:
    """A way to a board.

    `copying` is the command that copies the folder `{from}` of this machine into the folder `{to}`
    of the board, and `running` the one that runs the command line `{command}` there. `folder` is
    the board's folder for all files of liftpy; a relative one is in the folder in which commands
    run. `streams`: whether output arrives while the command runs. `apart`: whether the board is
    another machine, which work on this one does not disturb. `controlling` is the command that
    sends `{request}` to the process that holds an open connection; only ssh has one.
    """

    address: str
    copying: tuple[str, ...]
    running: tuple[str, ...]
    folder: str
    streams: bool = True
    apart: bool = True
    here: Path | None = None
    controlling: tuple[str, ...] = ()

    def copy(self, source: Path, target: str, seconds: float) -> tuple[int, str]:
        """Copies a folder into one of the board; the exit code and what the command printed.

        A command that does not end in time is killed, and has the code -9.
        """
        command = filled(self.copying, {"from": str(source), "to": target})
        with tempfile.TemporaryFile() as printed:
            code = code_of(self._start(command, printed, printed), seconds)
            printed.seek(0)
            return code, plain(printed.read(MIB))

    def start(
        self, command: str, errors: Any, output: Any = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """Starts a command line on the board; its output is a pipe or goes to a file."""
        words = filled(self.running, {"command": f"exec sh -c {quoted(command)}"})
        return self._start(words, output, errors)

    def control(self, request: str) -> bool:
        """Whether a process holds an open connection and obeys the request, `check` or `exit`."""
        words = filled(self.controlling, {"request": request})
        return code_of(self._start(words, subprocess.DEVNULL, subprocess.DEVNULL), CONTROL) == 0

    def with_options(self, *options: str) -> Transport:
        """The transport whose commands have more options, which precede all others."""
        commands = (self.copying, self.running, self.controlling)
        copying, running, controlling = ((words[0], *options, *words[1:]) for words in commands)
        return replace(self, copying=copying, running=running, controlling=controlling)

    def _start(self, command: Sequence[str], output: Any, errors: Any) -> subprocess.Popen[bytes]:
        """Starts a command in a session of its own: Ctrl-C goes to the campaign, which ends it."""
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=self.here,
                start_new_session=True,
            )
        except OSError as error:
            raise BoardRefused(
                f"{self.address} cannot be reached: {command[0]} cannot be started "
                f"({error.strerror}). Install it, or name another way (docs/boards.md)"
            ) from error


def code_of(process: subprocess.Popen[bytes], seconds: float) -> int:
    """The exit code of a command. One that does not end in time is killed, and has the code -9."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:  # also after Ctrl-C
        kill(process)
        process.wait()
    return process.returncode


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a command with the processes that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words of a command, with values in place of `{name}`."""
    pattern = re.compile("|".join(rf"\{{{name}\}}" for name in values))
    return [pattern.sub(lambda m: values[m[0][1:-1]], word) for word in command]


def quoted(text: str) -> str:
    """A word for a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def plain(printed: bytes | str, most: int = 600) -> str:
    """The end of what a board or a command printed, as one line without control characters."""
    text = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
    lines = ["".join(c for c in line if c.isprintable()).strip() for line in text.splitlines()]
    whole = "; ".join(line for line in lines if line)
    return whole if len(whole) <= most else f"...{whole[-most:]}"


def transport_of(address: str) -> Transport:
    """The transport of an address. BoardRefused if it is not one of the forms above."""
    kind, _, rest = address.partition(":")
    if kind == "ssh" and (found := re.fullmatch(rf"(?:({USER})@)?({HOST})(?::(\d{{1,5}}))?", rest)):
        return ssh(address, found[1], found[2], found[3])
    if kind == "adb" and re.fullmatch(SERIAL, rest):
        adb = ("adb", "-s", rest)
        copying, running = (*adb, "push", "{from}", "{to}/"), (*adb, "shell", "{command}")
        return Transport(address, copying, running, PHONE_FOLDER)
    if address == "local:":
        copying, running = ("cp", "-r", "--", "{from}", "{to}/"), ("sh", "-c", "{command}")
        here = Path.home()
        return Transport(address, copying, running, HOME_FOLDER, apart=False, here=here)
    if kind == "commands" and rest:
        return commands(address, Path(rest))
    raise BoardRefused(
        f"'{address[:200]}' is not the address of a board: give ssh:HOST, ssh:USER@HOST:PORT, "
        "adb:SERIAL (`adb devices` lists them), local: or commands:FILE. Names of users, hosts and "
        "devices have letters, digits, '.', '_' and '-'"
    )


def ssh(address: str, user: str | None, host: str, port: str | None) -> Transport:
    """The transport of a host; everything not in its address is in the configuration of ssh."""
    options = [word for name, value in SSH_OPTIONS.items() for word in ("-o", f"{name}={value}")]
    bare = host.strip("[]")
    if port is not None:
        options += ["-o", f"Port={port}"]
    if user is not None:
        options += ["-o", f"User={user}"]
    return Transport(
        address,
        ("scp", "-r", *options, "--", "{from}", f"{host if ':' in bare else bare}:{{to}}/"),
        ("ssh", "-T", *options, "--", bare, "{command}"),
        HOME_FOLDER,
        controlling=("ssh", *options, "-O", "{request}", "--", bare),
    )


def commands(address: str, path: Path) -> Transport:
    """The transport that a file describes."""
    what = f"the file {path} of --board"
    try:
        data: dict[str, Any] = toml(read_text(path, MIB, BoardRefused, what), what, BoardRefused)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BoardRefused(f"{what} is not TOML: {error}") from error
    for key in data:
        if key not in KEYS:
            raise BoardRefused(f"{what} has the key '{key}'; known keys: {', '.join(KEYS)}")
    for key, needed in (("copy", ("{from}", "{to}")), ("run", ("{command}",))):
        words: list[Any] = data[key] if isinstance(data.get(key), list) else []
        fits = all(isinstance(word, str) for word in words)
        if not fits or any(not any(part in word for word in words) for part in needed):
            raise BoardRefused(
                f"{what} needs `{key}`, a list of words that contain {' and '.join(needed)}, such "
                f"as {EXAMPLES[key]}"
            )
    folder, streams = data.get("folder"), data.get("streams", True)
    if not isinstance(folder, str) or not re.fullmatch(PLACE, folder) or ".." in folder:
        raise BoardRefused(
            f'{what} needs `folder`, a folder of the board for liftpy, such as "/tmp/liftpy", of '
            "letters, digits and ./_-"
        )
    if not isinstance(streams, bool):
        raise BoardRefused(f"{what} has `streams` = {streams!r}; it is true or false")
    if shutil.which(data["run"][0]) is None:
        raise BoardRefused(f"{what} runs {data['run'][0]}, which is not installed here")
    copying, running = tuple(data["copy"]), tuple(data["run"])
    return Transport(address, copying, running, folder, streams)


EXAMPLES = {
    "copy": 'copy = ["rsync", "-r", "{from}", "board:{to}/"]',
    "run": 'run = ["ssh", "board", "{command}"]',
}

"""A board that is reached by a transport: its runner, its devices, and the data of a campaign.

Everything is in one folder of the board:

board-HASH/board        the program `board`, built from the sources with this hash
data-HASH/inputs/       the inputs of a program, and expected/; `whole` marks a complete copy
data-HASH/ID-N/         a batch: plan.txt and kernels/, removed when it has been run
lock                    held by the run in progress

The output of a board is not trusted: it is bounded, and validated before it is used.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from liftpy.boards.bundle import HOST
from liftpy.boards.schema import DeviceFields, checked, table
from liftpy.boards.transports import Transport, kill, plain
from liftpy.constraints.device import KNOWN_EXTENSIONS, Device
from liftpy.errors import BoardRefused
from liftpy.files.reading import MIB
from liftpy.opencl.runtimes import libraries

RUNNER = "# liftpy-board 2"
"""The version that the program `board` must print; `board.c` has the same line."""

CALL_SECONDS = 60.0
BUILD_SECONDS = 300.0
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # variables that make sets for its subprocesses
LEAST_RATE = 50_000
"""Bytes a second that a copy may be as slow as, beyond `CALL_SECONDS`."""

EXIT = re.compile(r"# exit (\d{1,3})")
NAME = re.compile(r"[A-Za-z0-9_.+-]+")

NO_TRUST = ("Host key verification failed", "HOST IDENTIFICATION HAS CHANGED")
NO_LOGIN = "Permission denied ("


class Lost(Exception):
    """The link to a board broke, or its command gave no answer in time; has what was printed."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code of a command on a board, and what it printed."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Machine:
    """A board: an identifier of its last start, and its devices in the order of the runner."""

    boot: str
    devices: tuple[Device, ...]


def ending(command: str, then: str = "") -> str:
    """A command line that prints the exit code of `command` as its last line, then runs `then`."""
    return f'({command}); echo "# exit $?"' + (f" && {then}" if then else "")


class Link:
    """A board. `compiler` builds its runner here; by default the board's compiler does, there.

    Every method may raise Lost. The caller closes it.
    """

    def __init__(
        self,
        transport: Transport,
        compiler: str | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.transport = transport
        self.address = transport.address
        self.folder = transport.folder
        self._compiler = compiler
        self._note = note
        self._staged = tempfile.TemporaryDirectory(prefix="liftpy-board-")
        sources = hashlib.sha256(b"".join(path.read_bytes() for path in HOST)).hexdigest()
        self._made = f"board-{sources[:12]}"
        self.runner = f"{self._made}/board"
        """The path of the runner in the folder of the board."""
        self.libraries: dict[str, bytes] = {}
        if not transport.apart:  # the runtimes that liftpy finds may not be the system's
            self.libraries["library.txt"] = "".join(f"{line}\n" for line in libraries()).encode()

    def close(self) -> None:
        """Removes the temporary files of this machine."""
        self._staged.cleanup()

    @property
    def _path(self) -> str:
        return f"{self.folder}/{self.runner}"

    # --- commands ---------------------------------------------------------------------------------

    def call(self, command: str, seconds: float = CALL_SECONDS) -> CommandResult:
        """Runs a short command on the board."""
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
            process = self.transport.start(ending(command), errors, output)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Lost(f"no answer within {seconds:.0f} s") from None
            finally:
                kill(process)
                process.wait()
            output.seek(0)
            errors.seek(0)
            printed, said = output.read(MIB).decode(errors="replace"), plain(errors.read(MIB))
        lines = printed.replace("\r\n", "\n").rstrip("\n").split("\n")
        found = EXIT.fullmatch(lines.pop())
        if found is None:
            raise Lost(said or f"the command ended with code {process.returncode}")
        return CommandResult(int(found[1]), "\n".join(lines), said)

    def copy(self, name: str, files: Mapping[str, bytes], target: str) -> None:
        """Copies files as a new folder `name` into a folder of the board, which exists.

        Raises BoardRefused if the board cannot store them.
        """
        here = Path(self._staged.name) / name
        size = sum(map(len, files.values()))
        try:
            for file, content in files.items():
                (here / file).parent.mkdir(parents=True, exist_ok=True)
                (here / file).write_bytes(content)
            if (here / "board").exists():
                (here / "board").chmod(0o755)
            code, said = self.transport.copy(here, target, CALL_SECONDS + size / LEAST_RATE)
        finally:
            shutil.rmtree(here, ignore_errors=True)
        if code:
            self._check_room(size, said)
            raise Lost(f"a copy ended with code {code}: {said}")

    def _check_room(self, size: int, said: str) -> None:
        """Raises BoardRefused if the board cannot store this many bytes."""
        blocks, file = size // 1024 + 1, f"{self.folder}/room"
        write = f"dd if=/dev/zero of={file} bs=1024 count={blocks}"
        found = self.call(f"{write}; code=$?; rm -f {file}; exit $code")
        if found.code:
            raise BoardRefused(
                f"{self.address} cannot store {size} bytes in its folder {self.folder}: "
                f"{found.errors or said}. Is its disk full? Free space there"
            )

    # --- the runner -------------------------------------------------------------------------------

    def machine(self) -> Machine:
        """The board and its devices; the runner is built and copied if it is not there.

        Raises BoardRefused if it cannot be built, or finds no device.
        """
        made = self.call(f"mkdir -p {self.folder}")
        if made.code:
            raise BoardRefused(
                f"the folder {self.folder} cannot be made on {self.address}: {made.errors}. Is its "
                "disk full, or read-only?"
            )
        if self.call(f"test -x {self._path}").code:
            self._install()
        bundle = self.folder
        if self.libraries:
            bundle = self._staged.name
            (Path(bundle) / "library.txt").write_bytes(self.libraries["library.txt"])
        return self._described(self.call(f"{self._path} --describe --bundle {bundle}"))

    def _described(self, told: CommandResult) -> Machine:
        if told.code in (126, 127):
            raise BoardRefused(
                f"the runner {self._path} cannot be started on {self.address}: {told.errors}. "
                "Remove it there, and name a compiler for that machine with --board-cc"
            )
        version, *lines = told.output.split("\n")
        if told.code and not told.output:
            raise BoardRefused(
                f"{self.address} cannot run kernels: {told.errors}. Install an OpenCL driver there"
            )
        if version != RUNNER or told.code:
            raise BoardRefused(
                f"the runner {self._path} on {self.address} is of another version: it prints "
                f"'{plain(version, 60)}{told.errors}', and this liftpy needs '{RUNNER}'. Remove it "
                "there, and repeat the command, which builds and copies it"
            )
        boot, devices = "", list[Device]()
        for line in lines:
            key, _, rest = line.removeprefix("# ").partition(" ")
            if key == "boot":
                boot = plain(rest, 64)
            elif key == "device":
                devices.append(self._device(rest))
        if not devices:
            raise BoardRefused(f"{self.address} lists no device. Install an OpenCL driver there")
        return Machine(boot, tuple(devices))

    def _device(self, text: str) -> Device:
        try:
            data = table(text)
            data["extensions"] = [e for e in KNOWN_EXTENSIONS if e in data["extensions"]]
            checked(DeviceFields, data)
        except (ValueError, KeyError, TypeError) as error:
            raise BoardRefused(
                f"{self.address} describes a device that is not valid ({error}): "
                f"'{plain(text, 80)}'. Remove {self._path} there, and repeat the command"
            ) from error
        return Device.from_json(data)

    def _install(self) -> None:
        """Builds the runner, there or here, and copies it or its sources."""
        sources = {path.name: path.read_bytes() for path in HOST}
        asked = self.call(
            "uname -sm; for c in cc gcc clang; do command -v $c >/dev/null && "
            "command -v make >/dev/null && echo compiler $c && break; done; true"
        ).output.split("\n")
        kind, compilers = asked[0].strip(), [x for x in asked[1:] if x.startswith("compiler ")]
        if self._compiler is None and compilers:
            name = compilers[0].removeprefix("compiler ")
            if not NAME.fullmatch(name):
                raise BoardRefused(f"{self.address} names the compiler '{plain(name, 60)}'")
            self._note(f"building the runner on {self.address} with {name}")
            self.copy(self._made, sources, self.folder)
            command = f"cd {self.folder}/{self._made} && make board CC={name}"
            built = self.call(command, BUILD_SECONDS)
            if built.code:
                raise BoardRefused(
                    f"the runner cannot be built on {self.address} with {name}: {built.errors}. "
                    "Mend this, or build it here with --board-cc"
                )
            return
        ours = f"{os.uname().sysname} {os.uname().machine}"
        if self._compiler is None and kind != ours:
            raise BoardRefused(
                f"{self.address} is a machine '{plain(kind, 60)}' without a compiler: name one of "
                "this machine that builds for it, such as --board-cc aarch64-linux-gnu-gcc"
            )
        compiler = self._compiler or "cc"
        self._note(f"building the runner for {self.address} here with {compiler}")
        self.copy(self._made, {"board": built_here(compiler)}, self.folder)

    # --- data -------------------------------------------------------------------------------------

    def send_data(self, name: str, files: Mapping[str, bytes]) -> None:
        """Copies the data of a campaign, unless the board has a complete copy."""
        place = f"{self.folder}/{name}"
        if not self.call(f"test -f {place}/whole").code:
            return
        self._note(f"copying {sum(map(len, files.values()))} bytes of data to {self.address}")
        self.remove(name)
        self.copy(name, files, self.folder)
        if self.call(f"touch {place}/whole").code:
            raise BoardRefused(f"{self.address} cannot write into {place}: is its disk full?")

    def remove(self, name: str) -> None:
        """Removes a folder of the board, if it is there."""
        self.call(f"rm -rf {self.folder}/{name}")

    def why(self, lost: str) -> str:
        """A sentence about a lost link, with what would satisfy it."""
        host = self.address.partition(":")[2]
        if any(text in lost for text in NO_TRUST):
            return (
                f"the host key of {self.address} is unknown or has changed, so nothing was sent: "
                f"{lost}. Find out whose key it is; then `ssh {host.rpartition('@')[2]}` adds it"
            )
        if NO_LOGIN in lost:
            return (
                f"{self.address} does not admit this user: {lost}. liftpy cannot ask for a "
                "password: install a key there (`ssh-copy-id`), and load it (`ssh-add`)"
            )
        return f"{self.address} cannot be reached: {lost}. Is it on, and connected?"


def is_final(lost: str) -> bool:
    """Whether a link that was lost for this reason cannot come back."""
    return any(text in lost for text in (*NO_TRUST, NO_LOGIN))


def built_here(compiler: str) -> bytes:
    """The program `board`, built on this machine. BoardRefused if that fails."""
    with tempfile.TemporaryDirectory(prefix="liftpy-board-") as folder:
        for path in HOST:
            shutil.copy(path, folder)
        try:
            made = subprocess.run(
                ["make", "board", f"CC={compiler}"],  # noqa: S607  the user's own make
                cwd=folder,
                # the options of a make that started this program must not change the build
                env={name: text for name, text in os.environ.items() if name not in OF_MAKE},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=BUILD_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BoardRefused(f"the runner cannot be built with make: {error}") from error
        if made.returncode:
            raise BoardRefused(
                f"the runner cannot be built with {compiler}: {plain(made.stderr)}. Name another "
                "compiler with --board-cc"
            )
        return (Path(folder) / "board").read_bytes()

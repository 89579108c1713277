"""The host programs of bundles, built by a cross compiler and run by QEMU."""

import shutil
import subprocess

import pytest

from liftpy.boards.bundle import HOST
from liftpy.boards.network_bundle import HOST_OF_NETWORK
from tests.boards.emulated import COMPILER
from tests.conftest import absent, built

EMULATOR, LIBRARIES = "qemu-aarch64-static", "/usr/aarch64-linux-gnu"


@pytest.mark.parametrize(("name", "files"), [("board", HOST), ("network", HOST_OF_NETWORK)])
def test_a_host_program_runs_on_aarch64(tmp_path, name, files):
    program = built(files, tmp_path, COMPILER, "aarch64") / name
    emulator = shutil.which(EMULATOR)
    if emulator is None:
        absent("aarch64", f"no {EMULATOR}")
    machine = program.read_bytes()[18:20]
    assert int.from_bytes(machine, "little") == 183, "the number of AArch64 in an ELF file"

    def run(*options):
        command = [emulator, "-L", LIBRARIES, str(program), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    said = run("--help")
    assert said.returncode == 0
    assert "--library FILE" in said.stdout
    said = run("--list", "--library", str(tmp_path / "no.so"))
    assert said.returncode != 0
    assert "no.so" in said.stderr

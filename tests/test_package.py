"""What is built and installed: the wheel is made of the sdist, and has all that liftpy needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hatchling", reason="hatchling builds the wheel: make setup")
pytest.importorskip("pip", reason="pip installs the wheel: make setup")

ROOT = Path(__file__).parents[1]
DOT = "def dot(xs: [1024]f32, ys: [1024]f32) = zip(xs, ys) |> map(mul) |> reduce(add, 0)\n"
INSTALLED = """
import ast, sys
import liftpy
from liftpy.constraints.profile import profiles
from liftpy.rewrite.proof_cache import grounds, is_proved, is_unchanged, proof_cache
from liftpy.rewrite.rules import RULES

assert liftpy.__file__.startswith(sys.prefix), liftpy.__file__
assert any("mali-g72" in str(profile) for profile in profiles())
assert all(map(is_proved, RULES.values()))
assert "z3" not in sys.modules

from liftpy.semantics.proof_recording import record

done = record(RULES.values())
assert (done.kept, done.verdicts) == (len(RULES), {})

def refused(*_, **__):
    raise AssertionError("a source was parsed")

ast.parse = refused
for known in (proof_cache, is_unchanged, grounds):
    known.cache_clear()
assert is_unchanged()
assert all(map(is_proved, RULES.values()))
"""


def ran(*command: object, folder: Path) -> str:
    """What a command prints, in a folder and without this checkout; AssertionError if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel that is built of the unpacked sdist."""
    folder = tmp_path_factory.mktemp("built")
    ran(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, folder=ROOT)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    source = folder / packed.name.removesuffix(".tar.gz")
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=source)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel; what it depends on is seen where it is installed now."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(ran(python, "-c", asked, folder=folder).strip())
    (site / "dependencies.pth").write_text(f"{Path(np.__file__).parents[1]}\n", "utf-8")
    quietly = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    again = "--ignore-installed"  # this checkout is seen there too
    ran(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        *quietly,
        again,
        wheel,
        folder=folder,
    )
    return scripts


def test_the_wheel_has_every_file_of_the_package(wheel):
    files = (path for path in (ROOT / "liftpy").rglob("*") if path.is_file())
    ours = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("liftpy/")}
    assert packed == ours


@pytest.mark.slow
def test_the_installed_command_says_what_it_does(installed, tmp_path):
    assert "explore" in ran(installed / "liftpy", "--help", folder=tmp_path)


@pytest.mark.slow
def test_the_installed_proofs_hold_and_once_recorded_no_source_is_parsed(installed, tmp_path):
    """As of a release. In between, files may differ in what no proof depends on."""
    ran(installed / "python", "-c", INSTALLED, folder=tmp_path)


@pytest.mark.slow
def test_the_installed_liftpy_runs_a_program(installed, device, tmp_path):
    (tmp_path / "dot.lift").write_text(DOT, "utf-8")
    said = ran(installed / "liftpy", "run", "dot.lift", "-d", device.platform, folder=tmp_path)
    assert "peak 8.00 KiB" in said

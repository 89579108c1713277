"""What all tests share: Hypothesis profiles, OpenCL runtimes, golden files."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from liftpy.boards.bundle import HOST
from liftpy.errors import DeviceRefused, UnknownName
from liftpy.opencl.devices import find_device

TESTS = Path(__file__).parent

# What may not be absent: its absence is a failure, not a skip. Continuous integration has
# intel,pocl,oclgrind and, to build C programs, opencl-dev.
REQUIRED = frozenset(filter(None, os.environ.get("LIFTPY_TEST_REQUIRE", "").split(",")))

C99 = "-O2 -std=c99 -Wall -Wextra -Werror -pedantic"

# The same commit gives the same verdict; `--hypothesis-profile=wander` looks further, elsewhere.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("wander", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew; look at the diff before you commit it",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("oclgrind") and shutil.which("oclgrind") is None:
        absent("oclgrind", "no command `oclgrind`: install the Debian package oclgrind")


@pytest.fixture(scope="module", params=["intel", "pocl"])
def runtime(request: pytest.FixtureRequest):
    """A device of each OpenCL runtime that liftpy is tested on.

    By module, so that what a module makes for one runtime is still there for the other.
    """
    try:
        return find_device(request.param)
    except (DeviceRefused, UnknownName) as refusal:
        absent(request.param, str(refusal))


@pytest.fixture(scope="session")
def device():
    """The device that is taken by default, for what does not depend on the runtime."""
    try:
        return find_device()
    except (DeviceRefused, UnknownName) as refusal:
        absent("intel", str(refusal))


@pytest.fixture(scope="session")
def pocl():
    """PoCL's device, on which a program of C can run too."""
    try:
        return find_device("pocl")
    except (DeviceRefused, UnknownName) as refusal:
        absent("pocl", str(refusal))


@pytest.fixture(scope="session")
def board(pocl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that bundles are run with, built as a bundle builds it."""
    folder = tmp_path_factory.mktemp("host")
    for path in HOST:
        shutil.copy(path, folder)
    make = shutil.which("make")
    if make is None or shutil.which("cc") is None:
        absent("opencl-dev", "no make or no C compiler")
    made = subprocess.run(
        [make, f"CFLAGS={C99}"], cwd=folder, capture_output=True, text=True, check=False
    )
    if "CL/cl.h" in made.stderr or "-lOpenCL" in made.stderr:
        absent("opencl-dev", "install opencl-headers and ocl-icd-opencl-dev")
    assert made.returncode == 0, made.stderr
    return folder / "board"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares a text with the one that was reviewed: `golden(text)`, `golden(source, "cl")`.

    The file is `tests/golden/<module>/<test name>.<ext>`, the module with its folder.
    """
    folder = TESTS / "golden" / request.path.relative_to(TESTS).with_suffix("")
    name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")

    def compare(text: str, ext: str = "txt") -> None:
        file = folder / f"{name}.{ext}"
        if request.config.getoption("--update-golden"):
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif not file.exists():
            pytest.fail(f"no golden file {file}: write it with --update-golden, then read it")
        assert text == file.read_text(encoding="utf-8"), f"differs from {file} (--update-golden)"

    return compare


def absent(runtime: str, reason: str) -> None:
    """Skips the test for want of a runtime, or fails it where the runtime is required."""
    if runtime in REQUIRED:
        pytest.fail(f"{runtime} is required (LIFTPY_TEST_REQUIRE) and absent: {reason}")
    pytest.skip(f"{runtime}: {reason}")

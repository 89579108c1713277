"""What all tests share: Hypothesis profiles, OpenCL runtimes, golden files, and what is left."""

import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

# Tests start processes that would each compile liftpy anew; pytest would, every test file.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# PoCL otherwise compiles a kernel again for each size of its work-groups, which takes most of the
# time of a test: `pytest tests/compile/test_new_layouts.py -k pocl` three times as much.
os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")

from liftpy.boards.bundle import HOST  # noqa: E402
from liftpy.errors import DeviceRefused, UnknownName  # noqa: E402
from liftpy.explore.measure.process import Process  # noqa: E402
from liftpy.ir.types import SUBGROUPS  # noqa: E402
from liftpy.opencl.devices import find_device  # noqa: E402
from liftpy.opencl.session import BUILD_OPTIONS  # noqa: E402
from tests import plainly, processes, shared  # noqa: E402
from tests.covering import OPTION, thinned  # noqa: E402

TESTS = Path(__file__).parent

# What may not be absent: its absence is a failure, not a skip. Continuous integration has
# intel,pocl,oclgrind, opencl-dev to build C programs, and aarch64 to build and run those of another
# machine.
REQUIRED = frozenset(filter(None, os.environ.get("LIFTPY_TEST_REQUIRE", "").split(",")))

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h

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
    parser.addoption(
        OPTION,
        action="store_true",
        help="run all cases of all tests (tests/covering.py)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out cases of the tests that are marked `covering`, after `-k` and `-m`."""
    if config.getoption(OPTION):
        return
    kept = thinned(items)
    left_out = {*items} - {*kept}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Has the garbage collector leave alone what is there to stay: modules, tests, z3."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()
        keep_freed_memory()


def keep_freed_memory() -> None:
    """Has glibc keep what z3 frees, for the context of the next query.

    Else each of its pages is given back and taken again, which took as long as a small query.
    """
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, 256 << 20)
        mallopt(M_MMAP_THRESHOLD, 32 << 20)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """No process outlives the module whose tests started it, nor the processes in between."""
    yield
    left = processes.of_these_tests()
    processes.until(
        lambda: not any(map(processes.runs, left)),
        lambda: f"left running: {[p.as_dict(['pid', 'cmdline']) for p in left]}",
    )


@pytest.fixture(scope="session", autouse=True)
def mostly_unoptimized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Most kernels are built without the driver's optimizer (tests/plainly.py).

    Workers that build so too keep what they have built for each other.
    """
    with plainly.building_plainly(), pytest.MonkeyPatch.context() as patch:
        patch.setenv(plainly.BINARIES, str(of_all_workers(tmp_path_factory, "binaries")))
        yield


@pytest.fixture
def as_users_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test whose kernels are all built as users build them."""
    monkeypatch.setattr(plainly, "PLAINLY", BUILD_OPTIONS)


@pytest.fixture(scope="module")
def plain_workers() -> Iterator[None]:
    """The workers of the module's campaigns build most kernels so too (tests/plainly.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Process.__module__], "START", plainly.__name__)
        yield


@pytest.fixture(scope="module")
def derived_once() -> Iterator[None]:
    """Programs of one text are derived once, for all runtimes and modules (tests/shared.py)."""
    with shared.deriving_once():
        yield


@pytest.fixture(scope="module")
def in_one_process(derived_once, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands and campaigns of the module make once what they have in common (tests/shared.py)."""
    with shared.in_one_process(of_all_workers(tmp_path_factory, "binaries")):
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where draws are kept (tests/draws.py)."""
    return of_all_workers(tmp_path_factory, "draws")


@pytest.fixture
def processes_of_its_own(in_one_process, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test in such a module whose campaigns have real processes all the same."""
    monkeypatch.setattr(sys.modules[Process.__module__], "Process", Process)


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with `subgroups` on Intel's runtime, and on others here that have subgroups."""
    if "subgroups" in metafunc.fixturenames:
        others = [name for name in ("pocl", "rusticl") if has_subgroups(name)]
        metafunc.parametrize("subgroups", ["intel", *others], indirect=True, scope="module")


def has_subgroups(name: str) -> bool:
    """Whether there is a device of this name with subgroups; PoCL has them from version 4 on."""
    try:
        return not {*SUBGROUPS}.isdisjoint(find_device(name).extensions)
    except (DeviceRefused, UnknownName):
        return False


@pytest.fixture(scope="module")
def subgroups(request: pytest.FixtureRequest):
    """A device of each runtime that has subgroups here."""
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
    return built(HOST, tmp_path_factory.mktemp("host")) / "board"


def built(
    files: Iterable[Path], folder: Path, compiler: str = "cc", needed: str = "opencl-dev"
) -> Path:
    """A folder with the host program of a bundle, built from its files as a bundle builds it."""
    for path in files:
        shutil.copy(path, folder)
    make = shutil.which("make")
    if make is None or shutil.which(compiler) is None:
        absent(needed, f"no make or no C compiler {compiler}")
    made = subprocess.run(
        [make, f"CC={compiler}", f"CFLAGS={C99}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder


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


def of_all_workers(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this run of the tests, the same for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    return folder


def absent(runtime: str, reason: str) -> None:
    """Skips the test for want of a runtime, or fails it where the runtime is required."""
    if runtime in REQUIRED:
        pytest.fail(f"{runtime} is required (LIFTPY_TEST_REQUIRE) and absent: {reason}")
    pytest.skip(f"{runtime}: {reason}")

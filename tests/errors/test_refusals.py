"""Every refusal has a golden message, and every place that makes one has a case."""

import pickle
import re
from functools import cache
from pathlib import Path

import pytest

import liftpy
from liftpy.errors import BuildFailed, LiftError
from liftpy.opencl.devices import devices
from liftpy.opencl.session import BUILD_OPTIONS
from liftpy.semantics.sizes import parse
from tests.conftest import of_all_workers
from tests.errors.cases import CASES
from tests.errors.sites import came_from, sites, traced
from tests.errors.test_messages import TEXTS

#: Places that make an error which no user can bring about, and why they stand there.
UNREACHABLE = {
    "cli/arguments.py:python_module:2": "importlib has a loader for every name ending in .py",
    "loops/viewing.py:Viewing.materialise:1": "kernels.launch refuses toLocal under mapLcl before",
    "networks/onnx_library.py:array:2": "ONNX's checker compares data and shape before",
    "networks/onnx_library.py:inlined:1": "recursive functions are refused before",
    "rewrite/instantiate.py:TemplateBuilder.build:1": "told to a rule's author; no rule has it",
    "semantics/contract.py:instance_to_try:1": "told to a primitive's author by the contract tests",
    "semantics/general.py:general:1": "told to a primitive's author by the contract tests",
    "semantics/general.py:general:2": "told to a primitive's author by the contract tests",
}


def said(error: BaseException, folder: Path) -> str:
    """A message without what differs from machine to machine and from run to run."""
    message = str(error).partition("\n")[0] if isinstance(error, BuildFailed) else str(error)
    text = f"{type(error).__name__}: {message}\n".replace(str(folder), "FOLDER")
    for part in sorted(
        {p for d in devices() for p in (d.name, d.platform, d.driver_version)},
        key=len,
        reverse=True,
    ):
        text = text.replace(part, "...")
    text = re.sub(r"(?<=(?:cases|oards|torch)\.py:)\d+", lambda n: "N" * len(n[0]), text)
    text = re.sub(r"\b[0-9a-f]{12}\b", "0123456789ab", text)
    text = re.sub(r"\d+\.\d{6,}", "0.123456", text)  # a result, as a device rounds it
    return re.sub(r"(m|n) = \d+(?=, n|: split)", r"\1 = ...", text)  # a witness, as z3 finds it


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, in_one_process):
    """What a case raised, in a folder of its own, and where.

    The first worker of pytest-xdist that asks for a case tries it, and the others read what it
    found: one test asks for all cases.
    """
    if not devices():
        pytest.skip("some refusals are a device's, and there is none")
    known = of_all_workers(tmp_path_factory, "refusals")

    @cache
    def found(name):
        file = known / name
        if not file.exists():
            draft = tmp_path_factory.mktemp("draft") / name
            draft.write_bytes(pickle.dumps(tried(name)))
            draft.replace(file)
        return pickle.loads(file.read_bytes())  # noqa: S301  our own

    def tried(name):
        folder = tmp_path_factory.mktemp(name)
        with traced(), pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr("sys.excepthook", print)
            patch.setattr("tests.plainly.PLAINLY", BUILD_OPTIONS)  # messages tell the options
            try:
                CASES[name](folder)
            except LiftError as error:
                came = came_from(error)
                made = getattr(error, "made_by", "nowhere that was looked at")
                return said(error, folder), came, f"{made}, liftpy is {liftpy.__file__}"
            except Exception as error:  # noqa: BLE001  its case will fail
                return f"{type(error).__name__}: {error}", set(), "no LiftError"
        return None

    return found


@pytest.mark.parametrize("name", CASES)
def test_refusal(outcome, golden, name):
    assert outcome(name) is not None, "nothing was refused"
    text, came, where = outcome(name)
    assert came, f"no refusal of liftpy: {text}\nmade at {where}"
    golden(text)


def test_every_place_that_refuses_has_a_case(outcome):
    hit = set().union(*(found[1] for name in CASES if (found := outcome(name)) is not None))
    with traced():
        for text in TEXTS:
            try:
                parse(text.read_text(encoding="utf-8"))
            except LiftError as error:
                hit |= came_from(error)
    every = {str(site) for site in sites()}
    missing = every - hit - UNREACHABLE.keys()
    assert not missing, "give each a case in tests/errors:\n" + "\n".join(sorted(missing))
    assert UNREACHABLE.keys() <= every - hit, "these have a case, or are gone"

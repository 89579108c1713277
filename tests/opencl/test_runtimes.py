"""The ICD loader reads the environment once in a process: what it sees is tested in children."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from liftpy.opencl import devices as devices_module
from liftpy.opencl import runtimes

INTEL = runtimes.installed("intel-opencl-rt", runtimes.INTEL)
REPORT = """
import json, os
from liftpy.opencl.devices import device_notes, devices
from liftpy.opencl.runtimes import libraries
found = devices()
print(json.dumps({
    "vendors": os.environ.get("OCL_ICD_VENDORS"),
    "platforms": [device.platform for device in found],
    "notes": device_notes(),
    "libraries": libraries(),
}))
"""

needs_intel = pytest.mark.skipif(INTEL is None, reason="intel-opencl-rt is not installed")


def start(cache, vendors=None, first=""):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    # With rusticl, Mesa reports that the folder of its cache is missing.
    for other in ("OCL_ICD_VENDORS", runtimes.RUSTICL_DRIVERS):
        environment.pop(other, None)
    if vendors is not None:
        environment["OCL_ICD_VENDORS"] = str(vendors)
    return subprocess.Popen(
        [sys.executable, "-c", first + REPORT],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def report(child):
    """What the child saw; it must have said nothing else."""
    output, errors = child.communicate(timeout=120)
    assert (child.returncode, errors) == (0, "")
    return json.loads(output)


@pytest.mark.sampled(2)
@needs_intel
def test_intel_is_registered_beside_the_runtimes_of_the_system(tmp_path, runtime):
    seen = report(start(tmp_path))
    folder = Path(seen["vendors"])
    assert folder.is_relative_to(tmp_path)
    assert Path((folder / "liftpy-intel.icd").read_text().strip()) == INTEL
    assert seen["platforms"][0] == "Intel(R) OpenCL"
    assert runtime.platform in seen["platforms"]
    assert [note for note in seen["notes"] if runtimes.RUSTICL not in note] == []


@needs_intel
def test_a_bundle_is_told_of_the_same_runtimes_in_a_process_of_a_process(tmp_path):
    """`register` finds the environment set where a parent process has set it already."""
    first = report(start(tmp_path))["libraries"]
    assert [line.split()[0] for line in first] == ["needs"] * 5 + ["vendors", "library"]
    assert report(start(tmp_path, first[-2].split()[1]))["libraries"] == first


@needs_intel
def test_processes_that_start_at_once_agree_and_a_later_one_writes_nothing(tmp_path):
    children = [start(tmp_path) for _ in range(2)]
    folders = {report(child)["vendors"] for child in children}
    assert len(folders) == 1
    folder = Path(folders.pop())
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert report(start(tmp_path))["vendors"] == str(folder)
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    assert all(name.endswith(".icd") for name in before)


@needs_intel
def test_without_a_cache_the_folder_is_temporary_and_goes_with_the_process():
    seen = report(start("/dev/null"))
    assert "Intel(R) OpenCL" in seen["platforms"]
    assert not Path(seen["vendors"]).exists()


@needs_intel
def test_a_child_inherits_the_registration(tmp_path):
    first = report(start(tmp_path))
    assert report(start(tmp_path / "other", first["vendors"])) == first
    assert not (tmp_path / "other" / "liftpy").exists()


def test_the_users_choice_of_vendors_stays(tmp_path):
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    seen = report(start(tmp_path / "cache", vendors))
    assert (seen["vendors"], seen["platforms"], seen["notes"]) == (str(vendors), [], [])
    assert not (tmp_path / "cache" / "liftpy").exists()


@pytest.mark.sampled(3)
@needs_intel
@pytest.mark.parametrize("form", ["folder", "file", "library"])
def test_the_users_choice_of_intel_works(tmp_path, form):
    (tmp_path / "mine.icd").write_text(f"{INTEL}\n")
    vendors = {"folder": tmp_path, "file": tmp_path / "mine.icd", "library": INTEL}[form]
    seen = report(start(tmp_path / "cache", vendors))
    assert seen["platforms"] == ["Intel(R) OpenCL"]
    assert seen["vendors"] == str(vendors)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@needs_intel
def test_a_library_of_the_same_name_that_was_loaded_before_is_named(tmp_path):
    other = tmp_path / runtimes.installed("tbb", "libtbb.so.").name
    source = tmp_path / "empty.c"
    source.write_text("")
    command = ["gcc", "-shared", f"-Wl,-soname,{other.name}", "-o", str(other), str(source)]
    subprocess.run(command, check=True)
    seen = report(start(tmp_path / "cache", first=f"import ctypes; ctypes.CDLL({str(other)!r})"))
    assert "Intel(R) OpenCL" not in seen["platforms"]
    (note,) = (n for n in seen["notes"] if runtimes.RUSTICL not in n)
    assert f"had already loaded {other}" in note
    assert "Call lp.devices() before" in note


def test_a_library_that_was_loaded_before_has_the_same_name_up_to_its_version(monkeypatch):
    lines = (
        "7f00-7f01 r-xp 00000000 00:00 1    /usr/lib/libtbb.so.12.8",
        "7f01-7f02 r-xp 00000000 00:00 2    /own/lib/libtbb.so.12",
        "7f02-7f03 r-xp 00000000 00:00 3    /usr/lib/libtbbmalloc.so.2",
        "7f03-7f04 rw-p 00000000 00:00 0",
    )
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "\n".join(lines))
    found = runtimes.loaded_before([Path("/own/lib/libtbb.so.12")])
    assert found == [Path("/usr/lib/libtbb.so.12.8")]


def test_nothing_is_known_of_loaded_libraries_where_the_system_does_not_say(monkeypatch):
    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refused)
    assert runtimes.loaded_before([Path("/own/lib/libtbb.so.12")]) == []


def test_the_default_device_is_named_if_an_installed_runtime_cannot_be_used(device, monkeypatch):
    found = devices_module._found()[0]
    monkeypatch.setattr(devices_module, "_found", lambda: (found, ("It failed.",), ()))
    said = re.escape(f"It failed. Using {device.name} ({device.platform}).")
    with pytest.warns(UserWarning, match=said):
        assert devices_module.find_device() == found[0][0]


def test_icd_files_that_name_nothing_or_intel_again_are_left_out(tmp_path):
    intel, other = tmp_path / "libintelocl.so", tmp_path / "libother.so"
    intel.touch()
    other.touch()
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "wrong.icd").write_text("/nowhere/libintelocl.so\n")
    (first / "again.icd").write_text(f"{intel}\n")
    (first / "other.icd").write_text(f"{other}\n")
    (first / "name.icd").write_text("libpocl.so.2\n")
    (first / "notes.txt").write_text(f"{other}\n")
    (second / "name.icd").write_text("libpocl.so.3\n")
    files = runtimes.icd_files(intel, (first, second, tmp_path / "absent"))
    assert files == {
        "liftpy-intel.icd": f"{intel}\n",
        "name.icd": "libpocl.so.2\n",
        "other.icd": f"{other}\n",
    }


def test_a_damaged_icd_file_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = runtimes.write({"a.icd": "liba.so\n", "b.icd": "libb.so\n"})
    (folder / "a.icd").write_text("li")
    (folder / "b.icd").unlink()
    assert runtimes.write({"a.icd": "liba.so\n", "b.icd": "libb.so\n"}) == folder
    assert (folder / "a.icd").read_text() == "liba.so\n"
    assert (folder / "b.icd").read_text() == "libb.so\n"


def test_other_files_go_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert runtimes.write({"a.icd": "liba.so\n"}) != runtimes.write({"a.icd": "libb.so\n"})


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """An installed Intel runtime that cannot be loaded and has none of what it needs."""
    library = tmp_path / "libintelocl.so"
    library.write_text("no library")
    known = {"intel-opencl-rt": library}
    monkeypatch.setattr(runtimes, "installed", lambda distribution, name: known.get(distribution))
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    return library


@pytest.mark.skipif(sys.platform != "linux", reason="the runtime is registered on Linux only")
def test_a_runtime_that_cannot_be_loaded_is_not_registered_and_the_note_says_why(broken):
    (note,) = runtimes.register.__wrapped__()
    assert "OCL_ICD_VENDORS" not in os.environ
    assert str(broken) in note
    assert "intel-cmplr-lib-rt and tbb not installed" in note
    assert "pip install 'liftpy[cpu]'" in note


def test_nothing_happens_on_other_systems(broken, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert runtimes.register.__wrapped__() == ()


def test_a_distribution_that_is_not_installed_has_no_files():
    assert runtimes.installed("no-such-distribution-of-liftpy", "lib.so") is None


def test_the_file_of_a_distribution_is_found_by_name_and_by_prefix():
    assert runtimes.installed("numpy", "METADATA").is_file()
    assert runtimes.installed("numpy", "matlib.").name == "matlib.py"
    assert runtimes.installed("numpy", "no such file") is None

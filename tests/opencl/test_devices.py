"""The devices of this machine: their order, their names, and what is said where there is none."""

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, fits
from liftpy.errors import DeviceRefused, UnknownName
from liftpy.ir.types import SUBGROUPS
from liftpy.opencl.devices import (
    _numbered,
    _rank,
    device_notes,
    devices,
    extensions_of,
    find_device,
)
from liftpy.opencl.runtimes import RUSTICL, RUSTICL_DRIVERS, why_empty
from liftpy.opencl.session import Session


def test_devices_come_in_order(runtime):
    known = devices()
    assert runtime in known
    assert known == devices()
    processors = [d.platform for d in known if d.type == "CPU"]
    assert "Intel(R) OpenCL" not in processors[1:] or processors[0] == "Intel(R) OpenCL"
    assert find_device() == known[0]
    assert [note for note in device_notes() if RUSTICL not in note] == []


def test_a_device_is_found_by_number_and_by_part_of_its_name(runtime):
    assert find_device(str(devices().index(runtime))) == runtime
    assert find_device(runtime.platform.upper()[2:]) == runtime


def test_an_unknown_device_is_refused_with_the_known_ones(runtime):
    for selector in ("abacus", "99", "-1", ""):
        with pytest.raises(UnknownName, match=f"no device matches '{selector}'") as refusal:
            find_device(selector)
        assert f"{devices().index(runtime)}  {runtime.platform}: {runtime.name}" in str(
            refusal.value
        )


def test_the_name_of_a_runtime_does_not_mean_a_processor_of_that_make():
    portable = replace(
        DEFAULT_DEVICE, platform="Portable Computing Language", name="pthread-Intel(R) Xeon"
    )
    assert fits(portable, "pocl")
    assert fits(portable, "xeon")
    assert not fits(portable, "intel")


def test_a_platform_without_devices_says_what_would_give_it_some(monkeypatch):
    """Mesa's rusticl has none unless a driver is named; of others nothing is known."""
    monkeypatch.delenv(RUSTICL_DRIVERS, raising=False)
    (note,) = why_empty("rusticl")
    assert "because RUSTICL_ENABLE is not set in the environment: RUSTICL_ENABLE=llvmpipe" in note
    monkeypatch.setenv(RUSTICL_DRIVERS, "iris")
    assert "has no device, with RUSTICL_ENABLE=iris: " in why_empty("rusticl")[0]
    assert why_empty("Portable Computing Language") == ()


def test_gpus_come_first_and_simulators_last():
    gpu = replace(DEFAULT_DEVICE, platform="NVIDIA CUDA")
    intel = replace(DEFAULT_DEVICE, platform="Intel(R) OpenCL", type="CPU")
    pocl = replace(DEFAULT_DEVICE, platform="A portable computing language", type="CPU")
    simulator = replace(DEFAULT_DEVICE, platform="Oclgrind", type="CPU")
    shuffled = [simulator, pocl, intel, gpu]
    assert sorted(shuffled, key=_rank) == [gpu, intel, pocl, simulator]


def test_equal_devices_are_told_apart():
    other = replace(DEFAULT_DEVICE, name="other")
    numbered = _numbered([(DEFAULT_DEVICE, None), (other, None), (DEFAULT_DEVICE, None)])
    assert [d for d, _ in numbered] == [DEFAULT_DEVICE, other, replace(DEFAULT_DEVICE, ordinal=1)]


def test_a_device_of_another_machine_is_refused(runtime):
    with pytest.raises(DeviceRefused, match="has no device generic: generic with driver 0"):
        Session(DEFAULT_DEVICE)


NO_DEVICE = """
from liftpy.errors import DeviceRefused
from liftpy.opencl.devices import devices, find_device
assert devices() == ()
try:
    find_device("intel")
except DeviceRefused as refusal:
    print(refusal)
"""


def without_devices(**environment):
    child = subprocess.run(
        [sys.executable, "-c", NO_DEVICE],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert "pip install 'liftpy[cpu]'" in child.stdout
    assert "pocl-opencl-icd" in child.stdout
    return child.stdout


def test_without_a_device_the_message_says_what_to_install(tmp_path):
    assert without_devices(OCL_ICD_VENDORS=str(tmp_path)).startswith("no OpenCL device was found.")


def test_without_an_icd_loader_the_message_says_so(tmp_path):
    (tmp_path / "pyopencl.py").write_text("raise ImportError('libOpenCL.so.1: cannot open')")
    path = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
    assert "libOpenCL.so.1: cannot open" in without_devices(PYTHONPATH=path)


def test_the_features_of_opencl_3_count_as_extensions():
    """Mesa's devices have subgroups by a feature of the compiler only."""
    features = [SimpleNamespace(name="__opencl_c_images"), SimpleNamespace(name=SUBGROUPS[2])]
    newer = SimpleNamespace(
        version="OpenCL 3.0 ", extensions="cl_khr_fp64", opencl_c_features=features
    )
    assert extensions_of(newer) == {"cl_khr_fp64", "__opencl_c_images", SUBGROUPS[2]}
    older = SimpleNamespace(version="OpenCL 1.2 pocl", extensions="cl_khr_fp64")
    assert extensions_of(older) == {"cl_khr_fp64"}

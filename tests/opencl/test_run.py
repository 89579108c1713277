"""The runtime on a module written by hand: out = y + (2 w) x, with the 2 w prepared."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import (
    ArgumentRefused,
    BuildFailed,
    ClockRefused,
    DeviceRefused,
    InternalError,
    StrayWrite,
    UnknownName,
)
from liftpy.opencl import run
from liftpy.opencl.arguments import check_launch, check_memory, check_times
from liftpy.opencl.guards import ZONE, zone
from liftpy.opencl.kernel import Buffer, Launch, Memory, Module
from liftpy.opencl.run import KEPT, Session, device_notes, devices, find_device
from tests.oclgrind import check_under_oclgrind, oclgrind_complaints

N = 101
SOURCE = """
kernel void pack(global const float* w, global float* w2) {
  int i = get_global_id(0);
  w2[i] = 2.0f * w[i];
}
kernel void scale(global const float* w2, global const float* x, global float* t) {
  int i = get_global_id(0);
  t[i] = w2[i] * x[i];
}
kernel void add(global const float* t, global const float* y, global float* out) {
  int i = get_global_id(0);
  out[i] = t[i] + y[i];
}
"""
NO_FIGURES = Memory(peak=0, allocated=0, scratch=0, local=0, private=0, prepare=0)


def f32(name, role, slot, n=N):
    return Buffer(name, role, "f32", (n,), 4 * n, slot)


def saxpy(source=SOURCE, n=N):
    """The output lives where x did, which is dead by then."""
    return Module(
        name="saxpy",
        source=source,
        buffers=(
            f32("w", "constant", "raw", n),
            f32("w2", "packed", "weights", n),
            f32("x", "input", "first", n),
            f32("y", "input", "second", n),
            f32("t", "temporary", "between", n),
            f32("out", "output", "first", n),
        ),
        launches=(
            Launch("pack", ("w", "w2"), (n,), None, "prepare"),
            Launch("scale", ("w2", "x", "t"), (n,), None, "run"),
            Launch("add", ("t", "y", "out"), (n,), (1,), "run"),
        ),
        parameters=("x", "w", "y"),
        result="out",
        memory=NO_FIGURES,
    )


def single(source, local=None, n=N, scalar="f32", result_shape=None):
    """A module of one kernel `k(x, out)`."""
    out = Buffer(
        "out", "output", scalar, (n,) if result_shape is None else result_shape, 4 * n, "o"
    )
    return Module(
        name="single",
        source=source,
        buffers=(Buffer("x", "input", scalar, (n,), 4 * n, "x"), out),
        launches=(Launch("k", ("x", "out"), (n,), local, "run"),),
        parameters=("x",),
        result="out",
        memory=NO_FIGURES,
    )


COPY = "kernel void k(global const float* x, global float* out) { int i = get_global_id(0); %s }"

X = np.arange(N, dtype=np.float32) * 3 + 1
Y = np.arange(N, dtype=np.float32)[::-1] - 7
W = np.arange(N, dtype=np.float32) ** 2 + 5
EXPECTED = Y + 2 * W * X


@pytest.fixture(scope="module")
def session(runtime):
    with Session(runtime) as session:
        yield session


@pytest.fixture
def loaded(session):
    with session.load(saxpy()) as loaded:
        yield loaded


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [False, True])
def test_a_module_computes_its_result(loaded, poison):
    loaded.set_constants({"w": W}, poison=poison)
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}, poison=poison), EXPECTED)
    np.testing.assert_array_equal(loaded.run({"x": Y, "y": X}, poison=poison), X + 2 * W * Y)


def test_constants_can_be_set_again(loaded):
    loaded.set_constants({"w": X})
    loaded.run({"x": X, "y": Y})
    loaded.set_constants({"w": W})
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), EXPECTED)


def test_a_strided_array_is_made_contiguous(loaded):
    both = np.stack([X, Y], axis=1)
    loaded.set_constants({"w": np.flip(W)[::-1]})
    np.testing.assert_array_equal(loaded.run({"x": both[:, 0], "y": both[:, 1]}), EXPECTED)


def test_a_result_may_be_one_number(session):
    source = (
        COPY % "if (i == 0) { float s = 0; for (int j = 0; j < 101; ++j) s += x[j]; *out = s; }"
    )
    with session.load(single(source, result_shape=())) as loaded:
        output = loaded.run({"x": X})
    assert output.shape == ()
    assert output == X.sum()


def test_the_build_options_keep_nan_and_infinity(session):
    with session.load(single(COPY % "out[i] = x[i] - x[i];")) as loaded:
        assert np.isnan(loaded.run({"x": np.full(N, np.inf, np.float32)})).all()


def test_closing_the_session_releases_everything(runtime):
    with Session(runtime) as session:
        loaded = session.load(saxpy())
        loaded.set_constants({"w": W})
        loaded.run({"x": X, "y": Y})
    assert loaded.allocated_bytes == 0


# --- poison ---------------------------------------------------------------------------------------


def test_poison_shows_an_element_that_is_not_written(session):
    with session.load(single(COPY % "if (i != 7) out[i] = x[i];")) as loaded:
        output = loaded.run({"x": X}, poison=True)
    assert np.flatnonzero(np.isnan(output)).tolist() == [7]


def test_poison_of_integers_is_a_number_nobody_computes(session):
    source = (COPY % "if (i != 7) out[i] = x[i];").replace("float", "int")
    with session.load(single(source, scalar="i32")) as loaded:
        output = loaded.run({"x": np.arange(N, dtype=np.int32)}, poison=True)
    assert np.flatnonzero(output != np.arange(N)).tolist() == [7]
    assert output[7] == 0x7F7F7F7F


@pytest.mark.parametrize(
    "statement", ["t[i] = w2[i] * x[i]", "w2[i] = 2.0f * w[i]"], ids=["temporary", "packed"]
)
def test_poison_shows_what_is_not_written_between_kernels(session, statement):
    source = SOURCE.replace(statement, f"if (i != 7) {statement}")
    assert source != SOURCE
    with session.load(saxpy(source)) as loaded:
        loaded.set_constants({"w": W}, poison=True)
        output = loaded.run({"x": X, "y": Y}, poison=True)
    assert np.flatnonzero(np.isnan(output)).tolist() == [7]


# --- guard zones ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "wrong", "buffer", "first"),
    [
        ("prepare", "w2[i] = 2.0f * w[i]; if (i == 3) w2[-1] = 1;", "weights", -4),
        ("run", "t[i] = w2[i] * x[i]; if (i == 3) t[i + 98] = 1;", "between", 4 * N),
    ],
)
def test_a_stray_write_is_refused_in_a_checked_run_only(session, phase, wrong, buffer, first):
    right = wrong.split(";")[0]
    assert right in SOURCE
    with session.load(saxpy(SOURCE.replace(f"{right};", wrong))) as loaded:

        def run():
            loaded.set_constants({"w": W}, poison=True)
            assert phase == "run", "the prepare phase is looked at as well"
            loaded.run({"x": X, "y": Y}, poison=True)

        with pytest.raises(StrayWrite, match=f"wrote from byte {first} to byte") as stray:
            run()
        assert stray.value.offset == first
        assert loaded.module.buffer(stray.value.buffer).slot == buffer


def test_guard_zones_are_not_the_modules_memory_and_timed_runs_have_none(loaded):
    loaded.set_constants({"w": W}, poison=True)
    loaded.run({"x": X, "y": Y}, poison=True)
    assert loaded.allocated_bytes == 4 * 4 * N
    assert {size for _, size in loaded.created} == {4 * N}
    assert len(loaded._zones) == 4
    loaded.profile(1, 0)
    assert loaded.allocated_bytes == 4 * 4 * N
    assert not loaded._zones
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), EXPECTED)


def test_zones_are_aligned_and_as_large_as_a_buffer_may_be():
    assert zone(400, 1 << 30, 128) == ZONE
    assert zone(400, 1400, 128) == 384
    assert zone(400, 500, 128) == 0
    assert zone(400, 300, 128) == 0


# --- a room ---------------------------------------------------------------------------------------


@pytest.fixture
def room(session):
    room = session.room()
    assert room is not None
    return room


def test_modules_of_a_room_are_checked_in_the_memory_that_another_left(session, room):
    with session.load(saxpy(), room=room) as loaded:
        loaded.set_constants({"w": W}, poison=True)
        np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}, poison=True), EXPECTED)
        held = room.held
        loaded.profile(1, 0)
        assert (loaded.allocated_bytes, room.held) == (4 * 4 * N, held)
        np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), EXPECTED)
    with session.load(single(COPY % "if (i != 7) out[i] = x[i];"), room=room) as loaded:
        output = loaded.run({"x": X}, poison=True)
    assert np.flatnonzero(np.isnan(output)).tolist() == [7]
    assert room.held == held


@pytest.mark.parametrize(("at", "buffer"), [("-1", "out"), ("i + 100", "out")])
def test_a_stray_write_between_the_buffers_of_a_room_is_refused(session, room, at, buffer):
    source = COPY % f"out[i] = x[i]; if (i == {N - 1}) out[{at}] = 1;"
    with session.load(single(source), room=room) as loaded:
        with pytest.raises(StrayWrite) as stray:
            loaded.run({"x": X}, poison=True)
        assert stray.value.buffer == buffer


def test_a_room_holds_what_one_module_needs_and_keeps_what_is_not_too_much(session, room):
    most = session.device.global_memory // KEPT
    for asked, held in [(64, 64), (32, 64), (96, 96), (most + 64, most + 64), (most + 64,) * 2]:
        given = room.take(asked)
        assert (given.size, room.held) == (held, held)
    assert room.take(32).size == 32
    assert room.take(session.device.largest_buffer + 1) is None
    assert room.held == 0


# --- memory and time ------------------------------------------------------------------------------


def test_memory_is_created_by_slot_when_needed_and_raw_constants_are_released(loaded):
    assert (loaded.created, loaded.allocated_bytes) == ([], 0)
    loaded.set_constants({"w": W})
    assert loaded.created == [("raw", 4 * N), ("weights", 4 * N)]
    assert loaded.allocated_bytes == 4 * N
    loaded.run({"x": X, "y": Y})
    assert sorted(loaded.created[2:]) == [("between", 4 * N), ("first", 4 * N), ("second", 4 * N)]
    assert loaded.allocated_bytes == 4 * 4 * N
    loaded.run({"x": X, "y": Y}, poison=True)
    loaded.profile(repeats=1, warmup=1)
    assert len(loaded.created) == 5


def test_a_constant_that_a_run_reads_stays(session):
    module = saxpy()
    module = replace(
        module,
        launches=(replace(module.launches[1], arguments=("w", "x", "t")), module.launches[2]),
    )
    with session.load(module) as loaded:
        loaded.set_constants({"w": W})
        np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), Y + W * X)
        assert "weights" not in dict(loaded.created)
        assert loaded.prepare_ns == 0


def test_times_are_device_nanoseconds_of_each_launch(loaded):
    loaded.set_constants({"w": W})
    loaded.run({"x": X, "y": Y})
    times = loaded.profile(repeats=3, warmup=2)
    assert [len(row) for row in times] == [2, 2, 2]
    assert all(isinstance(ns, int) and 0 < ns < 10**9 for row in times for ns in row)
    assert 0 < loaded.prepare_ns < 10**9
    assert 0 < loaded.build_seconds < 60


def test_profiling_restores_inputs_that_a_run_destroys(loaded, monkeypatch):
    loaded.set_constants({"w": W})
    loaded.run({"x": X, "y": Y})
    uploads = []
    monkeypatch.setattr(loaded, "_upload", lambda arrays: uploads.append(sorted(arrays)))
    loaded.profile(repeats=2, warmup=1)
    assert uploads == [["x"], ["x"], ["x"]]


# --- refused arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, r"lacks an array for its input 'y'; it takes: x: f32\[101\], y: f32\[101\]"),
        ({"x": X, "y": Y, "z": X}, r"has no input 'z'; it takes: x"),
        ({"x": X, "y": Y, "w": W}, r"has no input 'w'"),
        (
            {"x": X[:-1], "y": Y},
            r"'x' is \[101\]f32; it got an array of shape \(100,\)\. Pass one of .*\(101,\)",
        ),
        (
            {"x": X, "y": Y.astype(np.float64)},
            r"'y' is \[101\]f32; it got float64 .* \.astype\(np\.float32\)",
        ),
        ({"x": X.tolist(), "y": Y}, r"it got a list\. Pass np\.asarray\(\.\.\., dtype=np\.float32"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(loaded, arrays, message):
    loaded.set_constants({"w": W})
    with pytest.raises(ArgumentRefused, match=message):
        loaded.run(arrays)


def test_a_run_without_constants_is_refused(loaded):
    with pytest.raises(ArgumentRefused, match=r"not set: w; call set_constants\(\)"):
        loaded.run({"x": X, "y": Y})


def test_profiling_without_inputs_is_refused(loaded):
    loaded.set_constants({"w": W})
    with pytest.raises(ArgumentRefused, match=r"call run\(\) first"):
        loaded.profile(repeats=1, warmup=0)


# --- refused programs -----------------------------------------------------------------------------


def test_a_failed_build_says_program_device_and_place(session):
    source = SOURCE.replace("t[i] + y[i]", "t[i] + nobody")
    with pytest.raises(BuildFailed, match="does not compile saxpy with -cl-std") as refusal:
        session.load(saxpy(source))
    assert session.device.name in str(refusal.value)
    assert "nobody" in refusal.value.log
    assert "nobody" in str(refusal.value)
    assert "  12    out[i] = t[i] + nobody;" in refusal.value.source


def test_a_warning_of_the_driver_is_no_failure(session):
    source = "#warning careful\n" + COPY % "int unused; out[i] = x[i];"
    with session.load(single(source)) as loaded:
        np.testing.assert_array_equal(loaded.run({"x": X}), X)


def test_a_launch_of_a_kernel_that_is_not_there_is_our_defect(session):
    with pytest.raises(InternalError, match="names the kernel k"):
        session.load(single(SOURCE))


def test_a_buffer_that_is_too_short_is_our_defect(session):
    module = single(COPY % "")
    short = replace(module.buffers[0], bytes=8)
    with pytest.raises(InternalError, match=r"buffer x of f32\[101\] has 8 bytes"):
        session.load(replace(module, buffers=(short, module.buffers[1])))


def test_a_work_group_that_is_too_large_is_refused(session):
    size = 2 * session.device.max_work_group_size
    with pytest.raises(DeviceRefused, match=rf"work-groups of {size} work-items; .* at most \d+"):
        session.load(single(COPY % "out[i] = x[i];", local=(size,), n=size))


def test_what_the_driver_refuses_at_launch_names_launch_sizes_and_error(session):
    source = (COPY % "out[i] = x[i];").replace(
        "kernel void", "kernel __attribute__((reqd_work_group_size(7, 1, 1))) void"
    )
    with (
        session.load(single(source, local=(3,), n=21)) as loaded,
        pytest.raises(
            DeviceRefused,
            match=r"launch of k \(global \[21\], local \[3\]\).*INVALID_WORK_GROUP_SIZE",
        ),
    ):
        loaded.run({"x": X[:21]})


def test_a_buffer_larger_than_the_device_allows_is_refused_before_it_is_asked_for(session):
    n = session.device.largest_buffer // 4 + 1
    with pytest.raises(DeviceRefused, match=rf"buffer of {4 * n} bytes for w; .* at most \d+"):
        session.load(saxpy(n=n))


def test_memory_is_refused_by_what_lives_at_once():
    module = saxpy()
    check_memory(module, replace(DEFAULT_DEVICE, global_memory=4 * 4 * N))
    with pytest.raises(DeviceRefused, match=f"needs {4 * 4 * N} bytes in its run phase"):
        check_memory(module, replace(DEFAULT_DEVICE, global_memory=4 * 4 * N - 1))


def test_times_that_cannot_be_are_refused():
    module = saxpy()
    launches = module.launches[1:]
    check_times(module, DEFAULT_DEVICE, launches, [0, 700], 800)
    for times, why in (
        ([10, -3], r" ended 3 ns before it began"),
        ([0, 0], "took 0 ns"),
        ([10, 1601], "took 1601 ns; the host waited 800 ns"),
    ):
        with pytest.raises(ClockRefused, match=why):
            check_times(module, DEFAULT_DEVICE, launches, times, 800)


def test_a_launch_is_refused_by_dimension_and_by_local_memory():
    module = single(COPY % "", local=(1, 1, 64))
    small = replace(DEFAULT_DEVICE, max_work_item_sizes=(64, 64, 63))
    with pytest.raises(DeviceRefused, match=r"64 work-items in dimension 2 .* at most 63"):
        check_launch(module, module.launches[0], small, group=64, local=0)
    check_launch(module, module.launches[0], DEFAULT_DEVICE, group=64, local=32768)
    with pytest.raises(DeviceRefused, match=r"32769 bytes of local memory; .* has 32768"):
        check_launch(module, module.launches[0], DEFAULT_DEVICE, group=64, local=32769)


# --- devices --------------------------------------------------------------------------------------


def test_devices_come_in_order(runtime):
    known = devices()
    assert runtime in known
    assert known == devices()
    processors = [d.platform for d in known if d.type == "CPU"]
    assert "Intel(R) OpenCL" not in processors[1:] or processors[0] == "Intel(R) OpenCL"
    assert find_device() == known[0]
    assert device_notes() == ()


def test_a_device_is_found_by_number_and_by_part_of_its_name(runtime):
    assert find_device(str(devices().index(runtime))) == runtime
    assert find_device(runtime.platform.upper()[2:]) == runtime


def test_an_unknown_device_is_refused_with_the_known_ones(runtime):
    for selector in ("abacus", "99", "-1", ""):
        with pytest.raises(UnknownName, match=f"there is no device '{selector}'") as refusal:
            find_device(selector)
        assert f"{devices().index(runtime)}  {runtime.platform}: {runtime.name}" in str(
            refusal.value
        )


def test_the_name_of_a_runtime_does_not_mean_a_processor_of_that_make():
    portable = replace(
        DEFAULT_DEVICE, platform="Portable Computing Language", name="pthread-Intel(R) Xeon"
    )
    assert run._fits(portable, "pocl")
    assert run._fits(portable, "xeon")
    assert not run._fits(portable, "intel")


def test_gpus_come_first_and_simulators_last():
    gpu = replace(DEFAULT_DEVICE, platform="NVIDIA CUDA")
    intel = replace(DEFAULT_DEVICE, platform="Intel(R) OpenCL", type="CPU")
    pocl = replace(DEFAULT_DEVICE, platform="A portable computing language", type="CPU")
    simulator = replace(DEFAULT_DEVICE, platform="Oclgrind", type="CPU")
    shuffled = [simulator, pocl, intel, gpu]
    assert sorted(shuffled, key=run._rank) == [gpu, intel, pocl, simulator]


def test_equal_devices_are_told_apart():
    other = replace(DEFAULT_DEVICE, name="other")
    numbered = run._numbered([(DEFAULT_DEVICE, None), (other, None), (DEFAULT_DEVICE, None)])
    assert [d for d, _ in numbered] == [DEFAULT_DEVICE, other, replace(DEFAULT_DEVICE, ordinal=1)]


def test_a_device_of_another_machine_is_refused(runtime):
    with pytest.raises(DeviceRefused, match="has no device generic: generic with driver 0"):
        Session(DEFAULT_DEVICE)


NO_DEVICE = """
from liftpy.errors import DeviceRefused
from liftpy.opencl.run import devices, find_device
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
    assert without_devices(OCL_ICD_VENDORS=str(tmp_path)).startswith("there is no OpenCL device.")


def test_without_an_icd_loader_the_message_says_so(tmp_path):
    (tmp_path / "pyopencl.py").write_text("raise ImportError('libOpenCL.so.1: cannot open')")
    path = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
    assert "libOpenCL.so.1: cannot open" in without_devices(PYTHONPATH=path)


# --- oclgrind -------------------------------------------------------------------------------------


@pytest.mark.oclgrind
def test_oclgrind_has_nothing_to_say_of_a_good_module():
    output, complaints = check_under_oclgrind(saxpy(), {"x": X, "y": Y, "w": W})
    np.testing.assert_array_equal(output, EXPECTED)
    assert complaints == []


@pytest.mark.oclgrind
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("out[0] = x[i];", "Write-write data race at global memory"),
        ("out[i] = x[i]; if (i) out[i] = out[i - 1];", "Read-write data race at global memory"),
        ("out[i + 1] = x[i];", "Invalid write of size 4 at global memory"),
        ("out[i] = x[i + 1];", "Invalid read of size 4 at global memory"),
        ("out[i] += x[i];", "Uninitialized value written to global memory"),
        ("if (out[i] != 7.0f) out[i] = x[i];", "Controlflow depends on uninitialized value"),
    ],
)
def test_oclgrind_reports_a_planted_fault(body, complaint):
    module = single(COPY % body, local=(13,), n=13)
    _, complaints = check_under_oclgrind(module, {"x": X[:13]})
    assert any(c.startswith(complaint) and f"(k, line 1: {COPY[:9]}" in c for c in complaints)


def test_questions_of_pyopencl_are_no_complaints():
    text = (
        "\nOclgrind - OpenCL runtime error detected\n\tFunction: {}\n\tError:    CL_INVALID_VALUE\n"
    )
    assert oclgrind_complaints(text.format("clGetDeviceInfo")) == []
    assert oclgrind_complaints(text.format("clSetKernelArg")) == [
        "Oclgrind - OpenCL runtime error detected (clSetKernelArg)"
    ]

"""What is built, and what is refused before and after it is built."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from liftpy.errors import BuildFailed, DeviceRefused, InternalError
from liftpy.opencl.driver import cl
from liftpy.opencl.session import Session
from tests.opencl.modules import COPY, SOURCE, N, W, X, Y, saxpy, single


def test_closing_the_session_releases_everything(runtime):
    with Session(runtime) as session:
        loaded = session.load(saxpy())
        loaded.set_constants({"w": W})
        loaded.run({"x": X, "y": Y})
    assert loaded.allocated_bytes == 0


def test_the_build_options_keep_nan_and_infinity(session, as_users_build):
    with session.load(single(COPY % "out[i] = x[i] - x[i];")) as loaded:
        assert np.isnan(loaded.run({"x": np.full(N, np.inf, np.float32)})).all()


def test_a_failed_build_says_program_device_and_place(session):
    source = SOURCE.replace("t[i] + y[i]", "t[i] + nobody")
    with pytest.raises(BuildFailed, match="cannot compile saxpy with -cl-std") as refusal:
        session.load(saxpy(source))
    assert session.device.name in str(refusal.value)
    assert "nobody" in refusal.value.log
    assert "nobody" in str(refusal.value)
    assert "  12    out[i] = t[i] + nobody;" in refusal.value.source


def test_a_warning_of_the_driver_is_no_failure(session):
    source = "#warning careful\n" + COPY % "int unused; out[i] = x[i];"
    with session.load(single(source)) as loaded:
        np.testing.assert_array_equal(loaded.run({"x": X}), X)


def test_threads_that_build_at_the_same_time_leave_the_filters_of_warnings_alone(session):
    def build(k):
        session.load(single(f"#warning {k}\n" + COPY % f"out[i] = x[i] + {k};")).close()

    before = [*warnings.filters]
    with ThreadPoolExecutor(4) as threads:
        for built in threads.map(build, range(12)):
            assert built is None
    assert warnings.filters == before


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


def test_a_buffer_larger_than_the_device_allows_is_refused_before_it_is_asked_for(session):
    n = session.device.largest_buffer // 4 + 1
    with pytest.raises(DeviceRefused, match=rf"buffer of {4 * n} bytes for w; .* at most \d+"):
        session.load(saxpy(n=n))


@dataclass(frozen=True)
class Described:
    """A kernel with the figures of its groups that a driver reports."""

    most: int
    made_for: tuple[int, ...]

    def get_work_group_info(self, info, _device):
        known = cl.kernel_work_group_info
        figures = {
            known.WORK_GROUP_SIZE: self.most,
            known.LOCAL_MEM_SIZE: 0,
            known.COMPILE_WORK_GROUP_SIZE: self.made_for,
        }
        return figures[info]


def test_a_kernel_may_have_the_group_that_it_was_compiled_for(session):
    """NVIDIA's driver reports 256 for a kernel that it compiled for 448 work-items."""
    module = single(COPY % "out[i] = x[i];", local=(8, 4, 1), n=64)
    (launch,) = module.launches
    session._check_launch(module, launch, Described(16, (8, 4, 1)))
    for made_for in ((0, 0, 0), (4, 8, 1)):
        with pytest.raises(DeviceRefused, match=r"work-groups of 32 work-items; .* at most 16"):
            session._check_launch(module, launch, Described(16, made_for))

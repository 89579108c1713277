"""What a module asks of a device, and times that cannot be."""

from dataclasses import replace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ClockRefused, DeviceRefused
from liftpy.opencl.arguments import check_launch, check_memory, check_times
from tests.opencl.modules import COPY, N, saxpy, single


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
        ([0, 0], "reports 0 ns"),
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

"""Launches: their times, and which one the driver refused."""

from dataclasses import replace

import pyopencl as cl
import pytest

from liftpy.errors import DeviceRefused
from liftpy.opencl import driver
from tests.opencl.modules import COPY, SOURCE, W, X, Y, saxpy, single


def test_times_are_device_nanoseconds_of_each_launch(loaded):
    loaded.set_constants({"w": W})
    loaded.run({"x": X, "y": Y})
    times = loaded.profile(repeats=3, warmup=2)
    assert [len(row) for row in times] == [2, 2, 2]
    assert all(isinstance(ns, int) and 0 < ns < 10**9 for row in times for ns in row)
    assert 0 < loaded.prepare_ns < 10**9
    assert 0 < loaded.build_seconds < 60


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


@pytest.mark.parametrize("refused", ["scale", "add"])
def test_of_several_launches_the_one_that_is_refused_is_named_when_timed_too(session, refused):
    attribute = "__attribute__((reqd_work_group_size(7, 1, 1)))"
    module = saxpy(SOURCE.replace(f"void {refused}", f"{attribute} void {refused}"))
    launches = tuple(replace(x, local_size=(1,)) for x in module.launches)
    why = rf"refused the launch of {refused} \(global \[101\], local \[1\]\) of saxpy: clEnqueue"
    with session.load(replace(module, launches=launches)) as loaded:
        loaded.set_constants({"w": W})
        with pytest.raises(DeviceRefused, match=why):
            loaded.run({"x": X, "y": Y})
        with pytest.raises(DeviceRefused, match=why):
            loaded.timed(repeats=1, warmup=0)


def test_a_launch_that_fails_on_the_device_is_named(session, monkeypatch):
    """No kernel of ours fails there: an event that does, the driver's own, stands for `add`'s."""
    enqueue = cl.enqueue_nd_range_kernel

    def failing(queue, kernel, size, group):
        if kernel.function_name != "add":
            return enqueue(queue, kernel, size, group)
        cause = cl.UserEvent(queue.context)
        event = cl.enqueue_marker(queue, wait_for=[cause])
        cause.set_status(cl.status_code.OUT_OF_RESOURCES)
        return event

    with session.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        loaded.run({"x": X, "y": Y})
        monkeypatch.setattr(driver.cl, "enqueue_nd_range_kernel", failing)
        with pytest.raises(DeviceRefused, match=r"refused the launch of add \(.* of saxpy: clWait"):
            loaded.run({"x": X, "y": Y})
        with pytest.raises(DeviceRefused, match=r"refused the launch of add \(.* of saxpy: clWait"):
            loaded.timed(repeats=1, warmup=0)

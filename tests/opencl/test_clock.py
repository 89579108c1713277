"""Times where the device has no clock that advances: those of the host's clock are used."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from liftpy.errors import DeviceRefused
from liftpy.explore.measure.measurement import run_once
from liftpy.explore.measure.outcome import Measured
from liftpy.opencl import driver
from liftpy.opencl.clock import BY_HOST, clock_of
from liftpy.opencl.kernel import Launch
from liftpy.opencl.resident import Place, Resident
from liftpy.opencl.session import Session
from tests.opencl.modules import NO_FIGURES, W, X, Y, saxpy


class Frozen:
    """An event of a driver whose timestamps count the states of a launch, as Mesa's do."""

    profile = SimpleNamespace(queued=0, submit=1, start=2, end=3)

    def __init__(self, event):
        self.wait = event.wait


@pytest.fixture
def frozen(runtime, monkeypatch):
    """A session of a device whose clock stands still."""
    for name in ("enqueue_fill_buffer", "enqueue_nd_range_kernel"):
        enqueue = getattr(driver.cl, name)
        monkeypatch.setattr(driver.cl, name, lambda *given, of=enqueue: Frozen(of(*given)))
    monkeypatch.setattr(driver, "_CLOCKS", {})
    with Session(runtime) as session:
        yield session


def test_a_clock_is_used_if_it_shows_half_of_the_time_that_must_have_passed():
    assert clock_of(7, 7 + 500, 1000) == "device"
    assert clock_of(7, 7 + 499, 1000) == "host"
    assert clock_of(7, 3, 1000) == "host"


def test_the_clock_of_a_device_is_used_where_it_advances(session):
    assert session.opened.clock == "device"


def test_a_clock_that_stands_still_is_replaced_by_the_host_s(frozen):
    assert frozen.opened.clock == "host"
    with frozen.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        got = loaded.run({"x": X, "y": Y})
        np.testing.assert_allclose(got, Y + 2 * W * X, rtol=1e-6)
        for row, total in loaded.timed(repeats=3, warmup=1):
            assert len(row) == 2
            assert all(ns > 100 for ns in row), "the frozen clock says 1 ns"
            assert sum(row) <= total
        assert loaded.prepare_ns > 100


@pytest.fixture
def unstamped(runtime, monkeypatch):
    """A session of a device whose events have no timestamps: to ask for them is an error."""
    make = driver.cl.CommandQueue
    monkeypatch.setattr(driver.cl, "CommandQueue", lambda context, properties: make(context))
    monkeypatch.setattr(driver, "_CLOCKS", {})
    with Session(runtime) as session:
        yield session


def test_a_device_without_timestamps_has_the_clock_of_the_host(unstamped):
    assert unstamped.opened.clock == "host"
    with unstamped.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        np.testing.assert_allclose(loaded.run({"x": X, "y": Y}), Y + 2 * W * X, rtol=1e-6)
        ((row, total),) = loaded.timed(repeats=1, warmup=1)
        assert 100 < sum(row) <= total


def failing_launch(enqueue, function):
    """An `enqueue_nd_range_kernel` in whose place launches of one function fail."""

    def launch(queue, kernel, size, group):
        if kernel.function_name != function:
            return enqueue(queue, kernel, size, group)
        cause = driver.cl.UserEvent(queue.context)
        event = driver.cl.enqueue_marker(queue, wait_for=[cause])
        cause.set_status(driver.cl.status_code.OUT_OF_RESOURCES)
        return event

    return launch


def test_a_launch_that_fails_is_named_without_timestamps_too(unstamped, monkeypatch):
    launch = failing_launch(driver.cl.enqueue_nd_range_kernel, "add")
    with unstamped.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        monkeypatch.setattr(driver.cl, "enqueue_nd_range_kernel", launch)
        with pytest.raises(DeviceRefused, match=r"refused the launch of add \(.* of saxpy: clWait"):
            loaded.run({"x": X, "y": Y})


def test_a_run_and_an_outcome_say_which_clock_timed_them(frozen):
    assert run_once(saxpy(), frozen.device, {"x": X, "w": W, "y": Y}).clock == "host"
    figures = (((7, 9),), 0, NO_FIGURES, 0.0, 0.0, 0.1)
    assert Measured(*figures, clock="host").reason.endswith(f"1 run {BY_HOST}")
    assert BY_HOST not in Measured(*figures).reason


def test_a_launch_that_fails_is_named_by_the_host_s_clock_too(frozen, monkeypatch):
    launch = failing_launch(driver.cl.enqueue_nd_range_kernel, "add")
    with frozen.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        monkeypatch.setattr(driver.cl, "enqueue_nd_range_kernel", lambda *x: Frozen(launch(*x)))
        with pytest.raises(DeviceRefused, match=r"refused the launch of add \(.* of saxpy: clWait"):
            loaded.run({"x": X, "y": Y})


def test_launches_in_shared_memory_are_timed_by_the_host_too(frozen):
    module = saxpy()
    with Resident(frozen) as device:
        device.allocate("arena", 1 << 14)
        places = {b.name: Place("arena", k << 10, b.bytes) for k, b in enumerate(module.buffers)}
        part = device.armed(module, "run", places)
        spans, total = device.launch([part])
        ((scale, add),) = spans()
        assert 0 < scale[1] - scale[0] < total
        assert scale[1] <= add[0] < add[1] <= scale[0] + total
        assert isinstance(part.launches[0], Launch)


def test_by_the_host_s_clock_what_was_queued_before_is_over_at_the_first_launch(
    frozen, monkeypatch
):
    module, done, enqueue = saxpy(), [], driver.cl.enqueue_nd_range_kernel
    complete = driver.cl.command_execution_status.COMPLETE

    def launch(*given):
        done.append(before.command_execution_status == complete)
        return enqueue(*given)

    monkeypatch.setattr(driver.cl, "enqueue_nd_range_kernel", launch)
    with Resident(frozen) as device:
        device.allocate("arena", 1 << 14)
        places = {b.name: Place("arena", k << 10, b.bytes) for k, b in enumerate(module.buffers)}
        part = device.armed(module, "run", places)
        cause = driver.cl.UserEvent(device.queue.context)
        before = driver.cl.enqueue_marker(device.queue, wait_for=[cause])
        timer = threading.Timer(0.1, cause.set_status, [complete])
        timer.start()
        device.launch([part])
        timer.join()
    assert done == [True, True]

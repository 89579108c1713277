"""Times where the device's clock does not advance: those of the host's clock are used."""

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


def test_a_run_and_an_outcome_say_which_clock_timed_them(frozen):
    assert run_once(saxpy(), frozen.device, {"x": X, "w": W, "y": Y}).clock == "host"
    figures = (((7, 9),), 0, NO_FIGURES, 0.0, 0.0, 0.1)
    assert Measured(*figures, clock="host").reason.endswith(f"1 run {BY_HOST}")
    assert BY_HOST not in Measured(*figures).reason


def test_a_launch_that_fails_is_named_by_the_host_s_clock_too(frozen, monkeypatch):
    enqueue = driver.cl.enqueue_nd_range_kernel

    def failing(queue, kernel, size, group):
        if kernel.function_name != "add":
            return enqueue(queue, kernel, size, group)
        cause = driver.cl.UserEvent(queue.context)
        event = driver.cl.enqueue_marker(queue, wait_for=[cause])
        cause.set_status(driver.cl.status_code.OUT_OF_RESOURCES)
        return Frozen(event)

    with frozen.load(saxpy()) as loaded:
        loaded.set_constants({"w": W})
        monkeypatch.setattr(driver.cl, "enqueue_nd_range_kernel", failing)
        with pytest.raises(DeviceRefused, match=r"refused the launch of add \(.* of saxpy: clWait"):
            loaded.run({"x": X, "y": Y})


def test_launches_in_shared_memory_are_timed_by_the_host_too(frozen):
    module = saxpy()
    with Resident(frozen) as device:
        device.allocate("arena", 1 << 14)
        places = {b.name: Place("arena", k << 10, b.bytes) for k, b in enumerate(module.buffers)}
        part = device.armed(module, "run", places)
        ((scale, add),), total = device.launch([part])
        assert 0 < scale[1] - scale[0] < total
        assert scale[1] <= add[0] < add[1] <= scale[0] + total
        assert isinstance(part.launches[0], Launch)

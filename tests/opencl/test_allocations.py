"""Device memory by slot, between guard zones, and in a room."""

from dataclasses import replace

import numpy as np
import pytest

from liftpy.errors import StrayWrite
from liftpy.opencl.allocations import KEPT
from liftpy.opencl.guards import ZONE, zone
from tests.opencl.modules import COPY, EXPECTED, N, W, X, Y, saxpy, single


def test_memory_is_created_by_slot_when_needed_and_raw_constants_are_released(loaded):
    assert (loaded.memory.created, loaded.allocated_bytes) == ([], 0)
    loaded.set_constants({"w": W})
    assert loaded.memory.created == [("raw", 4 * N), ("weights", 4 * N)]
    assert loaded.allocated_bytes == 4 * N
    loaded.run({"x": X, "y": Y})
    assert sorted(loaded.memory.created[2:]) == [
        ("between", 4 * N),
        ("first", 4 * N),
        ("second", 4 * N),
    ]
    assert loaded.allocated_bytes == 4 * 4 * N
    loaded.run({"x": X, "y": Y}, poison=True)
    loaded.profile(repeats=1, warmup=1)
    assert len(loaded.memory.created) == 5


def test_a_constant_that_a_run_reads_stays(session):
    module = saxpy()
    module = replace(
        module,
        launches=(replace(module.launches[1], arguments=("w", "x", "t")), module.launches[2]),
    )
    with session.load(module) as loaded:
        loaded.set_constants({"w": W})
        np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), Y + W * X)
        assert "weights" not in dict(loaded.memory.created)
        assert loaded.prepare_ns == 0


def test_guard_zones_are_not_the_modules_memory_and_timed_runs_have_none(loaded):
    loaded.set_constants({"w": W}, poison=True)
    loaded.run({"x": X, "y": Y}, poison=True)
    assert loaded.allocated_bytes == 4 * 4 * N
    assert {size for _, size in loaded.memory.created} == {4 * N}
    assert len(loaded.memory._zones) == 4
    loaded.profile(1, 0)
    assert loaded.allocated_bytes == 4 * 4 * N
    assert not loaded.memory._zones
    np.testing.assert_array_equal(loaded.run({"x": X, "y": Y}), EXPECTED)


def test_zones_are_aligned_and_as_large_as_a_buffer_may_be():
    assert zone(400, 1 << 30, 128) == ZONE
    assert zone(400, 1400, 128) == 384
    assert zone(400, 500, 128) == 0
    assert zone(400, 300, 128) == 0


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

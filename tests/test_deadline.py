"""A deadline is asked in the phase that it is in force in, by that thread."""

import threading
import time

import pytest

from liftpy.deadline import MANY, Deadline, check, checked, seconds_left
from liftpy.errors import TimeUp

OVER = Deadline.after(5, began=time.monotonic() - 5)


def test_nothing_ends_without_a_phase():
    check()
    assert seconds_left(3.0) == 3.0


def test_what_ends_says_the_limit_and_the_phase():
    why = r"the time limit of 5 s \(--time-limit\) ended while counting"
    with pytest.raises(TimeUp, match=why), OVER.phase("counting"):
        pass


def test_a_phase_ends_where_it_ends():
    with Deadline().phase("counting"):
        check()
        with pytest.raises(TimeUp), OVER.phase("drawing"):
            pass
        check()


def test_phases_are_told_when_they_begin():
    told = []
    deadline = Deadline.after(None, told=told.append)
    with deadline.phase("deriving"), deadline.phase("counting"):
        assert told == ["deriving", "counting"]


def test_another_thread_has_its_own():
    found = []
    with pytest.raises(TimeUp), OVER.phase("counting"):
        pass
    with Deadline().phase("counting"):
        thread = threading.Thread(target=lambda: found.append(seconds_left(7.0)))
        thread.start()
        thread.join()
    assert found == [7.0]


def test_a_long_loop_has_all_its_numbers_and_ends():
    for length in (0, 3, MANY, MANY + 1, 3 * MANY - 5):
        assert [*checked(range(2, 2 + length))] == [*range(2, 2 + length)]
    numbers = checked(range(10**12))
    deadline = Deadline.after(3600)
    with deadline.phase("counting"):
        assert next(iter(numbers)) == 0
    late = Deadline(time.monotonic() + 0.05, 0.05)
    with pytest.raises(TimeUp), late.phase("counting"):
        for _ in numbers:
            pass

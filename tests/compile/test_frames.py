"""The frames of a compilation lie in one chunk of memory, however deep it is called."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import pytest

from liftpy.pipeline import FRAME, compile_candidate, compile_program, in_one_chunk

CALLS = 500
DEPTHS = 300  # more than a chunk holds


def called(depth: int, work: Callable[[], None]) -> None:
    """Some work under so many frames."""
    if depth:
        called(depth - 1, work)
    else:
        work()


def many_calls() -> None:
    """Calls that return at once."""
    for _ in range(CALLS):
        called(1, lambda: None)


def most_faults(work: Callable[[], None]) -> int:
    """The most page faults of some work, over all depths at which it is called."""

    def faults(depth: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        called(depth, work)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    return max(map(faults, range(DEPTHS)))


def test_no_call_asks_the_system_for_memory() -> None:
    """Without it, there is a depth at which every call of a loop does."""
    assert most_faults(in_one_chunk(many_calls)) < CALLS / 5
    if sys.implementation.cache_tag == "cpython-311":  # later ones may keep their chunks
        assert most_faults(many_calls) > CALLS / 2


@pytest.mark.parametrize("function", [compile_candidate, compile_program])
def test_the_compiler_is_called_in_one_chunk(function: Callable[..., object]) -> None:
    assert function.__code__.co_stacksize == FRAME


def test_a_function_in_one_chunk_is_the_function() -> None:
    def difference(a: int, *, b: int) -> int:
        """A difference."""
        return a - b

    made = in_one_chunk(difference)
    assert made(5, b=3) == 2
    assert made.__doc__ == "A difference."

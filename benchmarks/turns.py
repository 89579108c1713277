"""How a contestant is timed: in turns, each after a rest.

In the rests nothing of ours runs, so what keeps processors busy then is other work, and it says how
far the machine was ours.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

TURN = 0.02
"""Seconds that a turn fills with runs."""

WARM = 0.02
"""Seconds that a turn fills with runs first, which are not counted.

A library's threads have slept while the others had their turns. Until the system has given each a
processor of its own again, some milliseconds pass in which a short run takes twice its time.
"""

MOST_IN_A_TURN = 100
SLOW = 0.1
"""Seconds from which on a run is its own warm-up: of it, the threads' waking is a small part."""

REST = 0.02
"""Seconds before a turn, in which the processors are seen to be free."""

SPINNING = 0.4
"""Such a rest where libraries share a process: their threads spin for 0.2 s after a call."""

Figures = dict[str, float]
Timed = Callable[[], Figures]
"""A run, and its figures in nanoseconds; `wall` is among them."""


def host(run: Callable[[], object]) -> Timed:
    """A run timed on the host."""

    def timed() -> Figures:
        start = time.perf_counter_ns()
        run()
        return {"wall": time.perf_counter_ns() - start}

    return timed


def turn(timed: Timed) -> Figures:
    """One sample of each figure: the median of a turn."""
    first = timed()
    if first["wall"] > SLOW * 1e9:
        return first
    for _ in range(min(MOST_IN_A_TURN, int(WARM * 1e9 / max(first["wall"], 1)))):
        timed()
    runs = [timed()]
    count = min(MOST_IN_A_TURN, int(TURN * 1e9 / max(runs[0]["wall"], 1)))
    runs += [timed() for _ in range(count - 1)]
    return {figure: statistics.median(r[figure] for r in runs) for figure in first}


def ticks() -> tuple[int, int]:
    """Ticks that the processors were busy, and all ticks, since the system started."""
    with open("/proc/stat", encoding="ascii") as stat:  # noqa: PTH123  read thousands of times
        user, nice, system, idle, waiting, *others = map(int, stat.readline().split()[1:9])
    busy = user + nice + system + sum(others)
    return busy, busy + idle + waiting


def timed_alternately(
    contestants: dict[str, Callable[[], Figures]], rounds: int, rest: float = REST
) -> tuple[dict[str, dict[str, list[float]]], float]:
    """Samples by contestant and figure, after one round that is not counted; others' share.

    A contestant is a function that takes its turn; each round has another order. The share is that
    of the processors' time that went to others in the rests.
    """
    order, samples = list(contestants), dict[str, dict[str, list[float]]]()
    busy = whole = 0
    shuffled = random.Random(0)
    for k in range(rounds + 1):
        shuffled.shuffle(order)
        for name in order:
            before = ticks()
            time.sleep(rest)
            after = ticks()
            busy, whole = busy + after[0] - before[0], whole + after[1] - before[1]
            for figure, value in contestants[name]().items():
                column = samples.setdefault(name, {}).setdefault(figure, [])
                if k:
                    column.append(value)
    return samples, busy / max(whole, 1)

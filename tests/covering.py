"""Selects cases of large tests for `make test`, such that every parameter value occurs.

A test whose parameters are programs, families and runtimes has a case for each combination. If it
is marked `covering(n)`, about one case in `n` runs: cases are chosen until each value of each
parameter occurs, and then further ones. `covering(n, "name", "family")` chooses combinations of
these parameters only, and runs each with all values of the others. If the cases of a test differ
only by a seed, or not every value is worth its time on each commit, the test is marked
`sampled(n)`: one case in `n` runs, whatever its values. An expensive case of what cheaper tests
show too is marked `soak`. `--every-case`, as in `make soak`, runs all cases.

The choice depends only on the name of a test and its cases, so runs of the same commit give the
same verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias
from zlib import crc32

import pytest

Case: TypeAlias = tuple[int, ...]
"""For each parameter, the number of its value among those that occur."""

OPTION = "--every-case"


def thinned(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that run: all of unmarked tests, and the chosen ones of the others."""
    items = [item for item in items if item.get_closest_marker("soak") is None]
    cases: defaultdict[str, dict[Case, None]] = defaultdict(dict)
    of_item: dict[pytest.Item, tuple[str, Case]] = {}
    choice: dict[str, tuple[Callable[[Sequence[Case], int, str], set[Case]], int]] = {}
    values: defaultdict[tuple[str, str], dict[Hashable, int]] = defaultdict(dict)
    for item in items:
        covers = item.get_closest_marker("covering")
        marker = covers or item.get_closest_marker("sampled")
        spec = getattr(item, "callspec", None)
        if marker is None or spec is None:
            continue
        test = item.nodeid.partition("[")[0]
        part, *names = marker.args
        case = tuple(
            values[test, name].setdefault(known(spec.params[name]), len(values[test, name]))
            for name in names or sorted(spec.params)
        )
        choice[test] = (covering if covers else sampled), part
        cases[test][case] = None
        of_item[item] = test, case
    chosen = {}
    for test, found in cases.items():
        choose, part = choice[test]
        chosen[test] = choose(list(found), part, test)
    return [i for i in items if i not in of_item or of_item[i][1] in chosen[of_item[i][0]]]


def known(value: object) -> Hashable:
    """A key for a value of a parameter: its type and the value, or its id if it has no hash.

    So 1, 1.0 and True have three keys.
    """
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def covering(cases: Sequence[Case], part: int, seed: str) -> set[Case]:
    """One case in `part`, rounded up, or as many as are needed for each value to occur."""
    waiting = shuffled(cases, seed)
    chosen: list[Case] = []
    missing = {value for case in cases for value in enumerate(case)}
    while missing:
        best = max(waiting, key=lambda case: len(missing & {*enumerate(case)}))
        waiting.remove(best)
        chosen.append(best)
        missing -= {*enumerate(best)}
    most = -(-len(cases) // part)
    return {*chosen, *waiting[: max(0, most - len(chosen))]}


def sampled(cases: Sequence[Case], part: int, seed: str) -> set[Case]:
    """One case in `part`, rounded up."""
    return {*shuffled(cases, seed)[: -(-len(cases) // part)]}


def shuffled(cases: Sequence[Case], seed: str) -> list[Case]:
    return sorted(cases, key=lambda case: crc32(f"{seed} {case}".encode()))

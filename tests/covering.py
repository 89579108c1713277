"""Selects cases of large tests for `make test`, such that every parameter value occurs.

A test whose parameters are programs, families and runtimes has a case for each combination. If it
is marked `covering(n)`, about one case in `n` runs: cases are chosen until each value of each
parameter occurs, and then further ones. `covering(n, "name", "family")` chooses combinations of
these parameters only, and runs each with all values of the others. `--every-case`, as in
`make soak`, runs all cases.

The choice depends only on the name of a test and its cases, so runs of the same commit give the
same verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeAlias
from zlib import crc32

import pytest

Case: TypeAlias = tuple[int, ...]
"""For each parameter, the number of its value among those that occur."""

OPTION = "--every-case"


def thinned(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that run: all items of unmarked tests, and a covering part of the others."""
    cases: defaultdict[str, dict[Case, None]] = defaultdict(dict)
    of_item: dict[pytest.Item, tuple[str, Case]] = {}
    share: dict[str, int] = {}
    values: defaultdict[tuple[str, str], dict[Hashable, int]] = defaultdict(dict)
    for item in items:
        marker = item.get_closest_marker("covering")
        spec = getattr(item, "callspec", None)
        if marker is None or spec is None:
            continue
        test = item.nodeid.partition("[")[0]
        part, *names = marker.args
        case = tuple(
            values[test, name].setdefault(known(spec.params[name]), len(values[test, name]))
            for name in names or sorted(spec.params)
        )
        share[test] = part
        cases[test][case] = None
        of_item[item] = test, case
    chosen = {test: covering(list(found), share[test], test) for test, found in cases.items()}
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
    waiting = sorted(cases, key=lambda case: crc32(f"{seed} {case}".encode()))
    chosen: list[Case] = []
    missing = {value for case in cases for value in enumerate(case)}
    while missing:
        best = max(waiting, key=lambda case: len(missing & {*enumerate(case)}))
        waiting.remove(best)
        chosen.append(best)
        missing -= {*enumerate(best)}
    most = -(-len(cases) // part)
    return {*chosen, *waiting[: max(0, most - len(chosen))]}

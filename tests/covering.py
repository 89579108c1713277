"""Which cases of a test with many run in `make test`: a part in which every value occurs.

A test whose parameters are programs, families and runtimes has a case for each combination. Marked
`covering(n)`, it runs about one case in `n`: first cases until each value of each parameter is in
one, then further ones. `covering(n, "name", "family")` chooses combinations of these parameters
only and runs all others with each. `--every-case`, as in `make soak`, runs all of them.

Which are chosen depends on the test's name and its number of cases alone, so that the same commit
gives the same verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeAlias
from zlib import crc32

import pytest

Case: TypeAlias = tuple[int, ...]
"""The number of the value of each parameter, among those that occur."""

OPTION = "--every-case"


def thinned(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that run: all of tests that are not marked, and a covering part of the others."""
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
    """What tells a value from others of its parameter: the value, or the object if it has no hash.

    So 1, 1.0 and True are three values.
    """
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def covering(cases: Sequence[Case], part: int, seed: str) -> set[Case]:
    """One case in `part`, rounded up, or as many more as it takes for each value to occur."""
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

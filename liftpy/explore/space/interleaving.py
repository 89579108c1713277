"""The order in which the candidates of a space are drawn: skeletons take turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from liftpy.constraints.draw import Sampler
from liftpy.explore.space.member import Drawing, Drawn, subseed


class Unit(Protocol):
    """Something that takes turns: a skeleton, or a partition of a program into stages."""

    @property
    def words(self) -> Mapping[str, str]:
        """Its structural choices."""
        ...

    @property
    def key(self) -> str:
        """Its name."""
        ...

    def count(self) -> int:
        """The number of its candidates."""
        ...

    def draws(self, how: Drawing) -> Iterator[Drawn]:
        """Its candidates, each once."""
        ...


def interleaved(units: Sequence[Unit], how: Drawing) -> Iterator[Drawn]:
    """The draws of units that take turns, choice by choice.

    Units are grouped by their first choice, each group by the second choice, and so on; the groups
    take turns. The next turn is that of the group with the fewest turns relative to its weight. The
    seed breaks ties, so short samples with different seeds see different skeletons.
    """
    names = dict.fromkeys(
        name for unit in units for name in unit.words
    )  # units may have different names
    name = next((name for name in names if len([*by_word(units, name)]) > 1), None)
    if name is None:
        for unit in units:
            yield from unit.draws(how)
        return
    groups = sorted(by_word(units, name), key=lambda g: subseed(how.seed, f"turn {g[0].key}"))
    weights = [weight(group, how.sampler) for group in groups]
    draws = [interleaved(group, how) for group in groups]
    taken = [0] * len(groups)
    left = {k for k in range(len(groups)) if weights[k]}
    while left:
        k = min(left, key=lambda k: (taken[k] / weights[k], k))
        found = next(draws[k], None)
        if found is None:
            left.discard(k)
            continue
        taken[k] += 1
        yield found


def by_word(units: Iterable[Unit], name: str) -> Iterator[list[Unit]]:
    """The units grouped by their word for the choice `name`, in order of first occurrence."""
    groups: dict[str | None, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.words.get(name), []).append(unit)
    yield from groups.values()


def weight(units: Iterable[Unit], sampler: Sampler) -> int:
    """How often units have a turn: the bit length of their count, 1 if the sampler counts nothing.

    Logarithms in floating point would differ between platforms.
    """
    return sum(unit.count() for unit in units).bit_length() if sampler == "uniform" else 1

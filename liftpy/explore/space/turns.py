"""The order in which the candidates of a space are drawn: skeletons take turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from liftpy.constraints.draw import Sampler
from liftpy.explore.space.member import Drawing, Drawn, subseed


class Unit(Protocol):
    """What takes turns: a skeleton, or a partition of a program into stages."""

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


def turns(units: Sequence[Unit], how: Drawing) -> Iterator[Drawn]:
    """The draws of units that take turns, choice by choice.

    Those that make each first choice take turns, among them those that make each second one, and so
    on. The next turn is that of the group which has had the fewest for its weight; equals are told
    apart by the seed, so that short samples with other seeds see other skeletons.
    """
    names = dict.fromkeys(
        name for unit in units for name in unit.words
    )  # some have more than others
    name = next((name for name in names if len([*by_word(units, name)]) > 1), None)
    if name is None:
        for unit in units:
            yield from unit.draws(how)
        return
    groups = sorted(by_word(units, name), key=lambda g: subseed(how.seed, f"turn {g[0].key}"))
    weights = [weight(group, how.sampler) for group in groups]
    draws = [turns(group, how) for group in groups]
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
    """The units that make each choice of one name, words in the order met."""
    groups: dict[str | None, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.words.get(name), []).append(unit)
    yield from groups.values()


def weight(units: Iterable[Unit], sampler: Sampler) -> int:
    """How often units have a turn; in whole digits, as logarithms differ between platforms.

    Where nothing is counted all are alike.
    """
    return sum(unit.count() for unit in units).bit_length() if sampler == "uniform" else 1

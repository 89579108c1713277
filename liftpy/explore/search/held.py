"""The search for stages that hold values: begin with the settings that are best when stored.

A held value has a form and sizes with the same names as those of its own stage, or sizes that it
shares with other values of its family. So this search begins with the settings that the search for
that stage has found, in a few members that are unlike each other. Then it tries the neighbours of
the fastest candidate so far: the next larger and smaller block, another choice, the next value of
another size. A faster neighbour immediately becomes the fastest candidate. When all neighbours have
been tried, those of the fastest candidate with other choices are next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from liftpy.explore.search.local import distance
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member
from liftpy.rewrite.composition import prefixed
from liftpy.rewrite.cuts import RESULT
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families.blocked import COLUMNS, FORM

Best = Mapping[str, Sequence[tuple[int, Drawn]]]
"""For each stored stage, the fastest candidate of each form, with its time; fastest first."""

STARTS = 4  # starting points, tried before the first neighbour of the fastest
BLOCK = "block"


class HeldSearch:
    """The search for a stage whose members hold values; `stage` is empty for a whole program.

    `trials` are those of the stage, and may include other members; `drawn` translates their names.
    """

    def __init__(
        self,
        members: Sequence[Member],
        stage: str,
        trials: Sequence[Trial],
        drawn: Callable[[Candidate], Drawn],
    ) -> None:
        self._members = {member.skeleton.key: member for member in members}
        self.stage = stage
        self._trials = trials
        self._drawn = drawn
        self._tried: set[tuple[str, frozenset[tuple[str, int]]]] = set()
        self._fastest: dict[str, tuple[int, Drawn]] = {}  # of each member

    @property
    def fastest(self) -> Drawn | None:
        """The fastest candidate so far."""
        return next(iter(self._by_time()), None)

    def _by_time(self) -> list[Drawn]:
        """The fastest candidate of each member, fastest first."""
        return [drawn for _, drawn in sorted(self._fastest.values(), key=lambda found: found[0])]

    def next(self, best: Best) -> Drawn | None:
        """The candidate to try next, each only once; None if none is left."""
        self._learn()
        for member, sizes in self._proposals(best):
            found = member.skeleton, sizes
            if (key := key_of(found)) not in self._tried:
                self._tried.add(key)
                return found
        return None

    def _learn(self) -> None:
        """Reads all trials again, since those known from other campaigns may have new times."""
        self._fastest.clear()
        for trial in self._trials:
            found = self._drawn(trial.candidate)
            if found[0].key not in self._members:
                continue
            self._tried.add(key_of(found))
            known = self._fastest.get(found[0].key)
            if trial.time_ns is not None and (known is None or trial.time_ns < known[0]):
                self._fastest[found[0].key] = trial.time_ns, found

    def _proposals(self, best: Best) -> Iterator[tuple[Member, dict[str, int]]]:
        if len(self._tried) >= STARTS:
            for skeleton, sizes in self._by_time():
                yield from self._around(skeleton, sizes, best)
        yield from self._starts(best)

    def _starts(self, best: Best) -> Iterator[tuple[Member, dict[str, int]]]:
        """Members with the best settings when stored, each the most unlike the earlier ones.

        The first has the forms with the least total time when stored.
        """
        known = [(m, self.forms_of(m, best)) for m in self._members.values()]
        left = [(m, forms) for m, forms in known if forms]
        left.sort(key=lambda start: sum(time for time, _ in start[1].values()))
        before: list[Member] = []
        while left:
            far = [min((distance(m.words, b.words) for b in before), default=0) for m, _ in left]
            member, _ = left.pop(far.index(max(far)))
            before.append(member)
            if (sizes := nearest(member, self.sizes_of(member, best))) is not None:
                yield member, sizes

    def _around(
        self, skeleton: Skeleton, at: Mapping[str, int], best: Best
    ) -> Iterator[tuple[Member, dict[str, int]]]:
        """The neighbours of a candidate: in its blocks, in its choices, in its other sizes."""
        member = self._members[skeleton.key]
        blocks = [name for name in at if name.rpartition(".")[2] == BLOCK]
        others = [name for name in at if name not in blocks]
        apart = {key: distance(member.words, m.words) for key, m in self._members.items()}
        unlike = sorted((k for k in apart if apart[k]), key=lambda k: apart[k])
        like = [k for k in unlike if apart[k] == apart[unlike[0]]]
        if wanted := self.sizes_of(member, best):
            yield from self._nearest((member.skeleton.key,), {**at, **wanted})
        yield from ((member, sizes) for name in blocks for sizes in steps(member, at, name))
        yield from self._nearest(like, at)
        yield from ((member, sizes) for name in others for sizes in steps(member, at, name))
        yield from self._nearest(unlike[len(like) :], at)

    def _nearest(
        self, keys: Iterable[str], wanted: Mapping[str, int]
    ) -> Iterator[tuple[Member, dict[str, int]]]:
        """The members with the given keys, each with its sizes nearest to those wanted."""
        for member in map(self._members.__getitem__, keys):
            if (sizes := nearest(member, wanted)) is not None:
                yield member, sizes

    def forms_of(self, member: Member, best: Best) -> dict[str, tuple[int, Drawn]]:
        """For each value of a member, the fastest stored candidate of the same form.

        Empty if this is not known for every value.
        """
        words, found = member.skeleton.words, dict[str, tuple[int, Drawn]]()
        for name, word in words.items():
            value, _, choice = name.rpartition(".")
            if choice != FORM:
                continue
            form = word, words.get(prefixed(value, COLUMNS))
            stored = best.get(self.stage if self.stage and value == RESULT else value, ())
            alike = [own for own in stored if form_of(own[1][0]) == form]
            if not alike:
                return {}
            found[value] = alike[0]
        return found

    def sizes_of(self, member: Member, best: Best) -> dict[str, int]:
        """The best known sizes of a member's values when they are stored in the same form.

        A size that all values of a family have in common is that of the last of these values.
        """
        found: dict[str, int] = {}
        for value, (_, (stored, sizes)) in self.forms_of(member, best).items():
            for size, number in sizes.items():
                for around in (value, stored.family):
                    there = prefixed(around, size.rpartition(".")[2])
                    there = prefixed(self.stage, there) if self.stage else there
                    if there in member.system.by_name:
                        found[there] = number
        return found


def form_of(skeleton: Skeleton) -> tuple[str, str | None]:
    """The form that a held value shares with a stored one: the family, and an input in columns."""
    return skeleton.family, skeleton.words.get(COLUMNS)


def key_of(drawn: Drawn) -> tuple[str, frozenset[tuple[str, int]]]:
    """A key that distinguishes a drawn candidate from others of its stage."""
    return drawn[0].key, frozenset(drawn[1].items())


def positive(size: float) -> float:
    """A size on a logarithmic scale, on which 0 is as far from 1 as 2 is."""
    return size or 0.5


def nearest(
    member: Member, wanted: Mapping[str, int], moved: Callable[[str, int], bool] | None = None
) -> dict[str, int] | None:
    """The valid sizes nearest to those in `wanted`, size by size; other sizes get middle values.

    If `moved` is given, only values that it accepts are used. None if there are no such sizes.
    """

    def preference(name: str, values: Sequence[int]) -> Sequence[int]:
        if not values:
            return ()
        centre = wanted.get(name, math.sqrt(positive(values[0]) * positive(values[-1])))
        among = values if moved is None else [v for v in values if moved(name, v)]
        return sorted(among, key=lambda v: abs(math.log(positive(v) / positive(centre))))

    return member.points.completed(preference)


def steps(member: Member, at: Mapping[str, int], name: str) -> Iterator[dict[str, int]]:
    """The nearest valid sizes with a larger value for one size, then with a smaller one."""
    for sign in (1, -1):

        def moved(other: str, value: int, sign: int = sign) -> bool:
            return other != name or sign * (value - at[name]) > 0

        if (sizes := nearest(member, at, moved)) is not None:
            yield sizes

"""The space of a program: its skeletons, each with the sizes that satisfy its conditions."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from liftpy.constraints.collect import collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Sampler, first
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.explain import Explanation, explain, least_memory, out_of_range
from liftpy.constraints.system import ConstraintSystem
from liftpy.constraints.user import Wish, asked_too, wishes
from liftpy.deadline import check
from liftpy.errors import ArgumentRefused, ConstraintRefused, UnknownName, a_few
from liftpy.explore.candidate import Candidate, program_text
from liftpy.explore.settings import Choice, Fixed, Settings
from liftpy.ir.entry import entry
from liftpy.ir.expr import Program
from liftpy.primitives.text import parse
from liftpy.rewrite.origin import origins
from liftpy.rewrite.skeleton import FAMILY, Skeleton

Allows: TypeAlias = Callable[[Skeleton, Mapping[str, int]], bool]


def everything(_skeleton: Skeleton, _sizes: Mapping[str, int]) -> bool:
    """Allows every point."""
    return True


@dataclass(frozen=True)
class Member:
    """A skeleton, the conditions on its sizes, and the points that satisfy them."""

    skeleton: Skeleton
    system: ConstraintSystem

    @cached_property
    def points(self) -> Points:
        """The valid sizes, counted when first asked."""
        return Points(self.system)

    @cached_property
    def possible(self) -> bool:
        """Whether it has points: one is looked for, none are counted."""
        return first(self.system) is not None

    @cached_property
    def words(self) -> dict[str, str]:
        """Its structural choices, the family first."""
        return self.skeleton.words

    @property
    def family(self) -> str:
        """The family that its turns are counted in."""
        return self.skeleton.family

    def fits(self, settings: Mapping[str, str | int]) -> bool:
        """Whether it makes these choices and has these sizes."""
        mine = self.words
        return all(
            mine[name] == str(value) if name in mine else name in self.system.by_name
            for name, value in settings.items()
        )

    def sizes(self, settings: Mapping[str, str | int]) -> dict[str, int]:
        """The sizes among settings that fit."""
        return {n: int(value) for n, value in settings.items() if n in self.system.by_name}

    def at(self, settings: Mapping[str, str | int]) -> Member | None:
        """The member with these sizes fixed; they remain parameters. None if no point has them."""
        sizes = self.sizes(settings)
        if not sizes:
            return self if self.possible else None
        if self.system.broken(sizes):
            return None
        fixed = Member(self.skeleton, self.system.fix(sizes))
        return fixed if fixed.possible else None

    def first(self, settings: Mapping[str, str | int], seed: int) -> dict[str, int] | None:
        """Valid sizes that agree with settings; None if there are none."""
        sizes = self.sizes(settings)
        if sizes.keys() == self.system.by_name.keys():
            return sizes if self.system.holds(sizes) else None
        fixed = self.at(settings)
        return None if fixed is None else next(fixed.points.draws(seed), None)

    def agreeing(self, settings: Mapping[str, str | int]) -> Iterator[tuple[tuple[str, int], ...]]:
        """All points that agree with settings."""
        sizes = self.sizes(settings)
        if sizes.keys() == self.system.by_name.keys():
            names = (p.name for p in self.system.parameters)
            if self.system.holds(sizes):
                yield tuple((name, sizes[name]) for name in names)
        elif (fixed := self.at(settings)) is not None:
            yield from (tuple(point.items()) for point in fixed.points.draws(0))


@dataclass(frozen=True)
class Answer:
    """What `explain` found: whether the settings have a valid point, and a text that says why.

    `count` is the number of such points; `clashes` has an explanation for each set of skeletons
    without one, as JSON data.
    """

    valid: bool
    text: str
    count: int = 0
    clashes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, repr=False)
class Space:
    """All candidates of a program on a device.

    `asked` has the user's conditions as texts in a normal form and order; `wished` has those on
    sizes. `sampler` is the way candidates are drawn.
    """

    program: Program
    device: Device
    members: tuple[Member, ...]
    asked: tuple[str, ...] = ()
    wished: tuple[Wish, ...] = ()
    sampler: Sampler = "uniform"

    @classmethod
    def of(
        cls,
        program: Program,
        device: Device,
        skeletons: Iterable[Skeleton],
        *,
        memory_limit: int | None = None,
        where: Sequence[str] = (),
        fixed: Fixed | None = None,
    ) -> Space:
        """The space of skeletons on a device.

        `memory_limit` bounds `peak`, in bytes. `where` are conditions on sizes (liftpy/constraints/
        user.py), `fixed` has settings with the value, or the values, that they may have.
        """
        members: list[Member] = []
        for skeleton in skeletons:
            check()
            members.append(Member(skeleton, collect(skeleton, device, memory_limit=memory_limit)))
        return cls(program, device, tuple(members)).asking(where, fixed or {})

    def __repr__(self) -> str:
        return (
            f"<Space of {self.program.name} on {self.device.name}: {len(self.members)} skeletons>"
        )

    def __str__(self) -> str:
        """The parameters and the constraints, with who asked for each."""
        lines = [f"{self.program.name} on {self.device.name}: {len(self.members)} skeletons"]
        for p in self.parameters:
            if "words" in p:
                lines.append(f"  {p['name']}: {', '.join(p['words'])}")
            else:
                lines.append(f"  {p['name']}: {p['low']} .. {p['high']}, {p['meaning']}")
        lines += ["constraints:"] if self.constraints else ["no constraints"]
        lines += [f"  {c['text']}  (asked by {c['asked_by']})" for c in self.constraints]
        return "\n".join(lines)

    # --- what there is to choose ------------------------------------------------------------------

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The structural choices and the words each has, the family first."""
        found: dict[str, list[str]] = {}
        for member in self.members:
            for name, word in member.words.items():
                if word not in found.setdefault(name, []):
                    found[name].append(word)
        return found

    @property
    def families(self) -> list[str]:
        """The families that have a skeleton."""
        return self.choices.get(FAMILY, [])

    @cached_property
    def by_key(self) -> dict[str, Member]:
        """The members by the keys of their skeletons."""
        return {member.skeleton.key: member for member in self.members}

    @cached_property
    def parameters(self) -> list[dict[str, Any]]:
        """Choices and sizes as JSON data; a size has the range that covers all its skeletons'."""
        found: dict[str, dict[str, Any]] = {}
        for member in self.members:
            for p in member.system.parameters:
                entry = found.setdefault(
                    p.name, {"low": p.low, "high": p.high, "meaning": p.meaning, "families": []}
                )
                entry["low"] = min(entry["low"], p.low)
                entry["high"] = max(entry["high"], p.high)
                if member.family not in entry["families"]:
                    entry["families"].append(member.family)
        choices = [{"name": name, "words": known} for name, known in self.choices.items()]
        return [*choices, *({"name": name, **entry} for name, entry in found.items())]

    @cached_property
    def reached(self) -> dict[str, list[int]]:
        """The values that each size takes in some candidate, ascending."""
        found: dict[str, set[int]] = {}
        for member in self.members:
            for p in member.system.parameters:
                found.setdefault(p.name, set()).update(member.points.values(p.name))
        return {name: sorted(values) for name, values in found.items()}

    @cached_property
    def constraints(self) -> list[dict[str, Any]]:
        """Every condition as JSON data: its text, who asked for it, in which skeletons."""
        found: dict[tuple[str, str], list[str]] = {}
        for member in self.members:
            for clause in member.system.clauses:
                place = found.setdefault((str(clause.constraint), clause.asked_by), [])
                place.append(member.skeleton.key)
        return [
            {"text": text, "asked_by": asked_by, "skeletons": keys}
            for (text, asked_by), keys in found.items()
        ]

    @property
    def possible(self) -> bool:
        """Whether there are candidates; none are counted."""
        return any(member.possible for member in self.members)

    def count(self) -> int:
        """The exact number of candidates."""
        return sum(member.points.count() for member in self.members)

    def only_one(self) -> str | None:
        """That there is one candidate only, in a sentence that names it; None if there are others.

        As few skeletons are counted as that takes.
        """
        found = 0
        for member in self.members:
            found += member.points.count()
            if found > 1:
                return None
        if not found:
            return None
        (only,) = self.sample(1, 0)
        return (
            f"{self.program.name} has one candidate on {self.device.name}, {only.label}: there is "
            "nothing to choose, and no front to find"
        )

    def counts(self) -> dict[str, int]:
        """The number of candidates of each skeleton."""
        return {member.skeleton.key: member.points.count() for member in self.members}

    # --- drawing ----------------------------------------------------------------------------------

    def draws(self, seed: int, allows: Allows = everything, start: int = 0) -> Iterator[Candidate]:
        """All candidates in an order that the seed decides, from place `start` of that order.

        Families take turns, and within a family the skeletons of each choice, in proportion to the
        logarithm of their number of points. Within a skeleton, draws are uniform without
        replacement. A skeleton without points left loses its turn. So a sample has every family,
        and a longer sample begins with the shorter one. Points that `allows` refuses are skipped;
        it is called at a point's turn, and may depend on the candidates before it.

        The sampler `incremental`, the published one, counts nothing: skeletons take equal turns,
        and it ends when it has drawn too many candidates twice.
        """
        how = Drawing(seed, allows, self.sampler)
        turns = _turns(list(self.members), how) if self.members else iter(())
        for ordinal, (member, sizes) in itertools.islice(enumerate(turns), start, None):
            yield Candidate(self.program, member.skeleton, tuple(sizes.items()), ordinal)

    @entry("space.sample")
    def sample(
        self, n: int, seed: int = 0, family: str | None = None, start: int = 0
    ) -> list[Candidate]:
        """The first `n` draws from place `start`, or all if there are fewer.

        UnknownName for the family.
        """
        if n < 0 or start < 0:
            raise ArgumentRefused(f"{min(n, start)} candidates cannot be drawn: give 0 or more")
        space = self if family is None else self.choosing({FAMILY: family})
        return list(itertools.islice(space.draws(seed, start=start), n))

    # --- choosing ---------------------------------------------------------------------------------

    @entry("space.narrow")
    def narrow(self, settings: Mapping[str, str | int]) -> Space:
        """The candidates that have these settings.

        UnknownName for a name or word that no skeleton has, ConstraintRefused for a combination
        of choices that no skeleton makes. Empty if no point has these sizes.
        """
        members = (m.at(settings) for m in self._fitting(settings))
        return replace(self, members=tuple(m for m in members if m is not None))

    def asking(self, where: Sequence[str], fixed: Fixed) -> Space:
        """The space with the user's conditions; errors as in `narrow`.

        What is fixed has to be there: skeletons without that choice or size are left out. A
        condition is asked of the skeletons that have its sizes; the others stay as they are.
        """
        if isinstance(where, str):  # one condition, not its letters
            where = (where,)
        if not where and not fixed:
            return self
        sizes: dict[str, tuple[int, ...]] = {}
        chosen: list[str] = []
        members = list(self.members)
        given: Any
        for name, given in fixed.items():
            several = isinstance(given, Iterable) and not isinstance(given, str)
            values: tuple[Any, ...] = tuple(given) if several else (given,)
            if not values:
                raise ConstraintRefused(
                    f"{name} is fixed to an empty list: give it at least one value"
                )
            fitting = {id(m) for value in values for m in self._fitting({name: value})}
            members = [m for m in members if id(m) in fitting]
            if name in self.choices:
                chosen.append(f"{name} is {','.join(sorted({str(value) for value in values}))}")
            else:
                sizes[name] = tuple(int(value) for value in values)
        if not members:
            raise ConstraintRefused(self._no_skeleton(fixed))
        names = {p.name for m in self.members for p in m.system.parameters}
        asked = wishes(where, sizes, names)
        for wish in asked:
            wish.refuse_if_hopeless(m.system for m in self.members)
        restricted = (Member(m.skeleton, asked_too(m.system, asked)) for m in members)
        texts = (*sorted(chosen), *(wish.text for wish in asked))
        return replace(self, members=tuple(restricted), asked=texts, wished=asked)

    @property
    def unbound(self) -> dict[str, int]:
        """The user's conditions that lack a size in some skeletons, with how many these are."""
        found = {
            wish.text: sum(wish.on(m.system.parameters) is None for m in self.members)
            for wish in self.wished
        }
        return {text: count for text, count in found.items() if count}

    def choosing(self, choices: Mapping[str, str | int]) -> Space:
        """The skeletons that make these structural choices, uncounted. Errors as in `narrow`."""
        return replace(self, members=tuple(self._fitting(choices)))

    @entry("space.candidate")
    def candidate(self, settings: Settings, seed: int = 0) -> Candidate:
        """A candidate that has these settings; ConstraintRefused with the reason if none has."""
        for member in self._fitting(settings):
            if (sizes := member.first(settings, seed)) is not None:
                return Candidate(self.program, member.skeleton, tuple(sizes.items()))
        raise ConstraintRefused(self.explain(settings).text)

    @entry("space.exactly")
    def exactly(self, assignment: Mapping[str, str | int]) -> Candidate:
        """The one candidate that an assignment determines.

        ConstraintRefused if several have these settings, or none.
        """
        fitting = self._fitting(assignment)
        whole = [m for m in fitting if {*m.words, *m.system.by_name} == {*assignment}]
        meant = whole or fitting
        points = ((m, point) for m in meant for point in m.agreeing(assignment))
        found = [
            Candidate(self.program, m.skeleton, point) for m, point in itertools.islice(points, 2)
        ]
        if not found:
            raise ConstraintRefused(self.explain(assignment).text)
        if len(found) == 1:
            return found[0]
        names = dict.fromkeys(n for m in meant for n in (*m.words, *m.system.by_name))
        left = [name for name in names if name not in assignment]
        keys = [m.skeleton.key for m in meant]
        raise ConstraintRefused(
            f"the assignment {_spell(assignment)} of {self.program.name} fits several candidates, "
            f"such as {found[0].label} and {found[1].label}: {', '.join(left)} "
            f"{'is' if len(left) == 1 else 'are'} open in {a_few(keys)}; give a complete one, such "
            "as `assignment` of a campaign's row or of `lp.space(program).sample(1, seed=0)[0]`"
        )

    @entry("space.explain")
    def explain(self, settings: Mapping[str, str | int]) -> Answer:
        """Whether some candidate has these settings; if none, what clashes and what would work.

        Errors as in `narrow`, and ConstraintRefused for what is out of range in every skeleton.
        """
        keys: dict[tuple[object, ...], list[str]] = {}
        found: dict[tuple[object, ...], tuple[Member, Explanation]] = {}
        outside: dict[str, list[str]] = {}
        valid: list[str] = []
        for member in self._fitting(settings):
            sizes = member.sizes(settings)
            if (why := out_of_range(member.system, sizes)) is not None:
                outside.setdefault(why, []).append(member.skeleton.key)
            elif member.at(settings) is not None:
                valid.append(member.skeleton.key)
            else:
                explanation = explain(member.system, sizes)
                keys.setdefault(explanation.gist, []).append(member.skeleton.key)
                found.setdefault(explanation.gist, (member, explanation))
        if not valid and not found:
            raise ConstraintRefused("\n".join(outside))
        clashes = tuple({"skeletons": keys[g], **e.to_json()} for g, (_, e) in found.items())
        if valid:
            count = self.narrow(settings).count()
            what = "a valid candidate" if count == 1 else f"{count} valid candidates"
            return Answer(
                True, f"{self._spell(settings)}: {what} in {a_few(valid)}", count, clashes
            )
        parts = [
            f"{a_few(keys[gist])}:\n"
            + _indent("\n".join([explanation.text(), *self._places(member, explanation)]))
            for gist, (member, explanation) in found.items()
        ]
        parts += [f"{a_few(mine)}:\n{_indent(why)}" for why, mine in outside.items()]
        return Answer(
            False, "\n".join([f"{self._spell(settings)}: no valid candidate", *parts]), 0, clashes
        )

    def _spell(self, settings: Mapping[str, str | int]) -> str:
        """Settings, and the user's conditions."""
        return ", ".join([*([_spell(settings)] if settings else []), *self.asked]) or "no settings"

    def why_empty(self, memory_limit: int | None = None) -> str:
        """Why there is no candidate: in one sentence, where all skeletons have one reason.

        With a memory limit it has the least possible one.
        """
        what = f"{self.program.name} has no candidate on {self.device.name}"
        least = None
        if memory_limit is not None:
            found = (least_memory(member.system) for member in self.members)
            least = min((bytes_ for bytes_ in found if bytes_ is not None), default=None)
        if least is not None:
            return (
                f"{what} within a memory limit of {memory_limit} bytes: the least possible "
                f"limit is {least} bytes"
            )
        reasons = [explain(member.system, {}).clashes for member in self.members]
        for clause in reasons[0]:
            if not clause.names and all(clause in reason for reason in reasons):
                return f"{what}: {clause} does not hold"
        if all(reason == reasons[0] for reason in reasons):
            return f"{what}: {'; '.join(map(str, reasons[0]))} exclude each other"
        _, _, why = self.explain({}).text.partition("\n")
        return f"{what}:\n{why}"

    @cached_property
    def _written(self) -> Program:
        """The program with the places of its parts in its text: in its own, if it was read."""
        return parse(program_text(self.program)) if self.program.spans is None else self.program

    def _places(self, member: Member, explanation: Explanation) -> list[str]:
        """What of the program's text the rules work on that ask for clashing conditions."""
        steps = {k: who for clause in explanation.clashes for k, who in clause.steps.items()}
        written = self._written
        if written.spans is None:
            return []
        source = written.spans.source
        whose = "" if written is self.program else " of its text (`liftpy show`)"
        named: dict[str, list[str]] = {}
        for number, places in origins(written, member.skeleton.derivation, steps).items():
            spelled: list[str] = []
            for place in places:
                line, column = source.position(place)
                spelled.append(f"`{source.snippet(place)}` at line {line}, column {column}")
            named.setdefault(" or ".join(spelled), []).append(steps[number])
        return [f"{' and '.join(who)}: on {where}{whose}." for where, who in named.items()]

    def _outline(self) -> str:
        """The choices and the sizes of each family."""
        lines: list[str] = []
        for family in self.families:
            mine = [m for m in self.members if m.family == family]
            names = dict.fromkeys(name for m in mine for name in (*m.words, *m.system.by_name))
            named = ", ".join(n for n in names if n != FAMILY)
            lines.append(f"  {family}: {named or 'nothing to choose'}")
        return "\n".join(lines)

    def _fitting(self, settings: Mapping[str, str | int]) -> list[Member]:
        """The members that make the choices and have the sizes among these settings."""
        sizes = {p.name for member in self.members for p in member.system.parameters}
        for name, value in settings.items():
            known = self.choices.get(name)
            if known is None and name not in sizes:
                names = ", ".join([*self.choices, *sorted(sizes)])
                raise UnknownName(
                    f"{self.program.name} has no parameter '{name}'; its parameters are: {names}"
                )
            if known is not None and str(value) not in known:
                raise UnknownName(f"{name} cannot be '{value}'; it is one of: {', '.join(known)}")
            if known is None and not _is_number(value):
                raise ConstraintRefused(f"{name} is a size: it needs a whole number, not '{value}'")
        fitting = [member for member in self.members if member.fits(settings)]
        if not fitting:
            raise ConstraintRefused(self._no_skeleton(settings))
        return fitting

    def _no_skeleton(self, settings: Fixed) -> str:
        return (
            f"no skeleton of {self.program.name} has {_spell(settings)} together; it has "
            f"these choices and sizes:\n{self._outline()}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, str) and value.removeprefix("-").isdecimal()
    )


def _spell(settings: Fixed) -> str:
    spelled = (f"{name}={_spell_choice(value)}" for name, value in settings.items())
    return ", ".join(spelled) or "no settings"


def _spell_choice(value: Choice) -> str:
    return str(value) if isinstance(value, str | int) else ",".join(map(str, value))


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


# --- the order of drawing -------------------------------------------------------------------------

Draw = tuple[Member, dict[str, int]]


@dataclass(frozen=True)
class Drawing:
    """How candidates are drawn: see `Space.draws`."""

    seed: int
    allows: Allows
    sampler: Sampler


def _allowed(member: Member, how: Drawing) -> Iterator[dict[str, int]]:
    """The draws of one skeleton, less what is not allowed."""
    draws = member.points.draws(subseed(how.seed, member.skeleton.key), how.sampler)
    return (sizes for sizes in draws if how.allows(member.skeleton, sizes))


def subseed(seed: int, name: str) -> int:
    """A seed for a part, independent of what other parts there are."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8])


def _by_word(members: Iterable[Member], name: str) -> Iterator[list[Member]]:
    """The members that make each choice of one name, words in the order met."""
    groups: dict[str | None, list[Member]] = {}
    for member in members:
        groups.setdefault(member.words.get(name), []).append(member)
    yield from groups.values()


def _turns(members: list[Member], how: Drawing) -> Iterator[Draw]:
    """The draws of skeletons that take turns, choice by choice.

    Those that make each first choice take turns, among them those that make each second one, and so
    on. The next turn is that of the group which has had the fewest for its weight; equals are told
    apart by the seed, so that short samples with other seeds see other skeletons.
    """
    apart = (name for name in members[0].words if len([*_by_word(members, name)]) > 1)
    name = next(apart, None)
    if name is None:
        for member in members:
            for sizes in _allowed(member, how):
                yield member, sizes
        return
    groups = sorted(
        _by_word(members, name), key=lambda g: subseed(how.seed, f"turn {g[0].skeleton.key}")
    )
    weights = [_weight(group, how.sampler) for group in groups]
    draws = [_turns(group, how) for group in groups]
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


def _weight(members: list[Member], sampler: Sampler) -> int:
    """How often skeletons have a turn; in whole digits, as logarithms differ between platforms.

    Where nothing is counted all are alike.
    """
    return sum(m.points.count() for m in members).bit_length() if sampler == "uniform" else 1

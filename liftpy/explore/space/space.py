"""The space of a program: its skeletons, each with the sizes that satisfy its conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from liftpy.constraints.collect import collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Sampler
from liftpy.constraints.system import ConstraintSystem
from liftpy.constraints.user import Wish, asked_too, wishes
from liftpy.deadline import check
from liftpy.errors import ArgumentRefused, ConstraintRefused, UnknownName, a_few
from liftpy.explore.space.across import crosses, sizes_of
from liftpy.explore.space.answer import Answer, answer, why_empty
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.interleaving import interleaved
from liftpy.explore.space.member import Allows, Drawing, Drawn, Member, everything
from liftpy.explore.space.precision import LeftOut, within_error
from liftpy.explore.space.product import Product
from liftpy.explore.space.settings import Fixed, Settings, is_number, spelled
from liftpy.explore.space.units import in_list, units_of, with_words
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import FAMILY, Skeleton
from liftpy.rewrite.stages import WINOGRAD

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Space:
    """All candidates of a program on a device.

    `members` are the skeletons of the program as one stage, `products` its partitions into several
    stages (`liftpy.rewrite.partition`). `asked` has the user's conditions as texts in a normal form
    and order; `wished` has those on sizes. `sampler` is the method that draws candidates, and
    `left_out` has the forms whose error bounds exceed the user's limit. `kept` has the results of
    `once`.

    >>> squares = lp.parse("def squares(xs: [64]f32) = xs |> map(x => x * x)")
    >>> space = lp.space(squares, "profile:mali-g72", families=["plain"])
    >>> space.count(), space.sample(1, seed=0)[0].label
    (1, 'plain(pad=fused, map=glb0)')
    """

    program: Program
    device: Device
    members: tuple[Member, ...]
    products: tuple[Product, ...] = ()
    asked: tuple[str, ...] = ()
    wished: tuple[Wish, ...] = ()
    sampler: Sampler = "uniform"
    left_out: tuple[LeftOut, ...] = ()
    kept: dict[object, tuple[Space, Any]] = field(default_factory=dict, compare=False)

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

        `memory_limit` bounds `peak`, in bytes. `where` has conditions on sizes
        (liftpy/constraints/user.py), `fixed` has settings with their allowed value or values.
        """
        members: list[Member] = []
        for skeleton in skeletons:
            check()
            members.append(Member(skeleton, collect(skeleton, device, memory_limit=memory_limit)))
        return cls(program, device, tuple(members)).asking(where, fixed or {})

    @classmethod
    def whole(
        cls,
        program: Program,
        device: Device,
        *,
        families: Sequence[str] | None = None,
        memory_limit: int | None = None,
        max_error: float | None = None,
        fixed: Fixed | None = None,
        made: Callable[[Program], Iterable[Partition]] = partitions,
        images: bool | None = None,
    ) -> Space:
        """The space of a program on a device: all its partitions, lowered by these families.

        `made` returns the partitions to derive; the default is all of them. A partition is left out
        if one of its stages has no skeleton of these families, or if it uses an F(m, r) whose error
        bound exceeds `max_error`. Partitions that do not have the words in `fixed` are not derived;
        `asking` applies the other settings. `images` as in `units_of`.
        """
        forms, left_out = within_error(tuple(made(program)), max_error)
        forms = with_words(forms, fixed or {})
        units = units_of(device, forms, families=families, memory_limit=memory_limit, images=images)
        found = [*units]
        members = tuple(unit for unit in found if isinstance(unit, Member))
        products = tuple(unit for unit in found if isinstance(unit, Product))
        return cls(program, device, members, products, left_out=left_out)

    @property
    def units(self) -> tuple[Member | Product, ...]:
        """Skeletons of the whole program, and partitions."""
        return (*self.members, *self.products)

    @cached_property
    def every(self) -> tuple[Member, ...]:
        """The members of all stages, each once; those of the program as one stage come first."""
        found = {member.key: member for unit in self.units for member in unit.members}
        return tuple(found.values())

    def __repr__(self) -> str:
        return f"<Space of {self.program.name} on {self.device.name}: {len(self.every)} skeletons>"

    def __str__(self) -> str:
        """The parameters and the constraints, each with its source."""
        lines = [f"{self.program.name} on {self.device.name}: {len(self.every)} skeletons"]
        for p in self.parameters:
            if "words" in p:
                lines.append(f"  {p['name']}: {', '.join(p['words'])}")
            else:
                lines.append(f"  {p['name']}: {p['low']} .. {p['high']}, {p['meaning']}")
        lines += ["constraints:"] if self.constraints else ["no constraints"]
        lines += [f"  {c['text']}  (required by {c['asked_by']})" for c in self.constraints]
        return "\n".join(lines)

    # --- contents ---------------------------------------------------------------------------------

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The structural choices with their words, the family first."""
        found: dict[str, list[str]] = {}
        for unit in (*self.units, *self.every):
            for name, word in unit.words.items():
                if word not in found.setdefault(name, []):
                    found[name].append(word)
        return found

    @property
    def families(self) -> list[str]:
        """The families that have a skeleton."""
        return self.choices.get(FAMILY, [])

    @cached_property
    def by_key(self) -> dict[str, Member]:
        """The skeletons of the whole program by their keys."""
        return {member.skeleton.key: member for member in self.members}

    @cached_property
    def parameters(self) -> list[dict[str, Any]]:
        """Choices and sizes as JSON data; a size's range covers its ranges in all skeletons."""
        found: dict[str, dict[str, Any]] = {}
        for member in self.every:
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
        parts = (part for product in self.products for part in product.summands)
        for member in (*self.members, *(m for part in parts for m in part.members)):
            for p in member.system.parameters:
                found.setdefault(p.name, set()).update(member.points.values(p.name))
        return {name: sorted(values) for name, values in found.items()}

    @cached_property
    def constraints(self) -> list[dict[str, Any]]:
        """Every condition as JSON data: its text, its source, and its skeletons."""
        found: dict[tuple[str, str], list[str]] = {}
        for member in self.every:
            for clause in member.system.clauses:
                place = found.setdefault((str(clause.constraint), clause.asked_by), [])
                place.append(member.key)
        for product in self.products:
            for wish in product.across:
                found.setdefault((str(wish.constraint), wish.asker), []).append(product.key)
        return [
            {"text": text, "asked_by": asked_by, "skeletons": keys}
            for (text, asked_by), keys in found.items()
        ]

    @property
    def possible(self) -> bool:
        """Whether there are candidates, without counting them."""
        return any(unit.possible for unit in self.units)

    def count(self) -> int:
        """The exact number of candidates."""
        return sum(unit.count() for unit in self.units)

    def only_one(self) -> str | None:
        """A sentence that names the only candidate; None unless there is exactly one.

        Counting stops at the second candidate.
        """
        found = 0
        for unit in self.units:
            found += unit.count()
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
        """The number of candidates of each skeleton, and of each partition into stages."""
        return {unit.key: unit.count() for unit in self.units}

    # --- what is kept ---

    def once(self, result: Callable[[Space], T]) -> T:
        """The result of a function of this space, computed on the first call.

        It is kept for all spaces that are made from this one and have the same skeletons.
        """
        key = result, self.program, self.sampler, *map(id, self.units)
        if key not in self.kept:
            self.kept[key] = self, result(self)  # this space keeps its units
        return self.kept[key][1]

    def common(self, make: Callable[[], T]) -> T:
        """An object that all spaces made from this one share; the first call makes it."""
        if make not in self.kept:
            self.kept[make] = self, make()
        return self.kept[make][1]

    def of_stage(self, program: Program, group: tuple[Member, ...]) -> Space:
        """The space of a stage, whose skeletons are a group of this space."""
        return Space(program, self.device, group, sampler=self.sampler, kept=self.kept)

    # --- drawing ----------------------------------------------------------------------------------

    def draws(self, seed: int, allows: Allows = everything, start: int = 0) -> Iterator[Candidate]:
        """All candidates in an order that the seed determines, from position `start` on.

        Families take turns, and within a family the skeletons of each choice, in proportion to the
        logarithm of their number of points. Within a skeleton, draws are uniform without
        replacement. All stages of a partition advance together (`product.py`). Units without
        remaining points are skipped. So a sample has every family, and a longer sample begins with
        the shorter one. Points that `allows` refuses are skipped; it is called at a point's turn,
        and may depend on the candidates before it.

        The sampler `incremental`, the published one, counts nothing: skeletons have equally many
        turns, and it ends when it has drawn too many candidates twice.
        """
        how = Drawing(seed, allows, self.sampler)
        drawn = interleaved(self.units, how) if self.units else iter(())
        for ordinal, (skeleton, sizes) in itertools.islice(enumerate(drawn), start, None):
            yield Candidate(self.program, skeleton, tuple(sizes.items()), ordinal)

    @entry("space.sample")
    def sample(
        self, n: int, seed: int = 0, family: str | None = None, start: int = 0
    ) -> list[Candidate]:
        """The first `n` draws from position `start` on, or all if there are fewer.

        Raises UnknownName if no skeleton is of the family.
        """
        if n < 0 or start < 0:
            raise ArgumentRefused(f"{min(n, start)} candidates cannot be drawn: give 0 or more")
        space = self if family is None else self.of_families([family])
        return list(itertools.islice(space.draws(seed, start=start), n))

    # --- choosing ---------------------------------------------------------------------------------

    @entry("space.narrow")
    def narrow(self, settings: Mapping[str, str | int]) -> Space:
        """The candidates that have these settings.

        Raises UnknownName for a name or word that no skeleton has, ConstraintRefused for a
        combination of choices that no skeleton makes. The result is empty if no point has these
        sizes.
        """
        found = (unit.at(settings) for unit in self._fitting(settings))
        return self._having([unit for unit in found if unit is not None])

    def _having(self, units: Iterable[Member | Product]) -> Space:
        """The space of some units."""
        kept = list(units)
        members = tuple(unit for unit in kept if isinstance(unit, Member))
        products = tuple(unit for unit in kept if isinstance(unit, Product))
        return replace(self, members=members, products=products)

    def asking(self, where: Sequence[str], fixed: Fixed) -> Space:
        """The space with the user's conditions; errors as in `narrow`.

        Skeletons that lack a fixed choice or size are left out. A condition restricts only the
        skeletons that have its sizes.
        """
        if isinstance(where, str):  # one condition: do not iterate over its letters
            where = (where,)
        if not where and not fixed:
            return self
        sizes: dict[str, tuple[int, ...]] = {}
        chosen: list[str] = []
        kept = list(self.units)
        for name, given in fixed.items():
            values = in_list(given)
            if not values:
                raise ConstraintRefused(
                    f"{name} is fixed to an empty list: give it at least one value"
                )
            fitting = {
                id(m) for value in values for u in self._fitting({name: value}) for m in u.members
            }
            kept = [only for unit in kept if (only := unit.only(fitting)) is not None]
            if name in self.choices:
                chosen.append(f"{name} is {','.join(sorted({str(value) for value in values}))}")
            else:
                sizes[name] = tuple(int(value) for value in values)
        if not kept:
            raise ConstraintRefused(self._no_skeleton(fixed))
        names = {p.name for m in self.every for p in m.system.parameters}
        asked = wishes(where, sizes, names)
        for wish in asked:
            wish.refuse_if_hopeless(self._systems_with(wish))
        restricted = [unit.restricted(lambda system: asked_too(system, asked)) for unit in kept]
        restricted = [u.asking(asked) if isinstance(u, Product) else u for u in restricted]
        texts = (*sorted(chosen), *(wish.text for wish in asked))
        return replace(self._having(restricted), asked=texts, wished=asked)

    def _systems_with(self, wish: Wish) -> Iterator[ConstraintSystem]:
        """The systems of all members; if the condition joins stages, also systems of its sizes."""
        yield from (m.system for m in self.every)
        names = wish.constraint.names()
        for product in self.products:
            if crosses(wish, product.groups):
                own = [
                    dict.fromkeys(
                        tuple(p for p in m.system.parameters if p.name in names) for m in group
                    )
                    for group in product.groups
                ]
                for each in itertools.product(*own):
                    yield ConstraintSystem(tuple(p for some in each for p in some), ())

    @property
    def unbound(self) -> dict[str, int]:
        """For each user's condition, how many skeletons lack one of its sizes, if there are any."""
        found = {wish.text: len(self.every) - len(self._bound(wish)) for wish in self.wished}
        return {text: count for text, count in found.items() if count}

    def _bound(self, wish: Wish) -> set[str]:
        """The skeletons that a condition bounds, alone or together with those of other stages."""
        bound = {m.key for m in self.every if wish.on(m.system.parameters) is not None}
        names = wish.constraint.names()
        for group in (g for p in self.products if crosses(wish, p.groups) for g in p.groups):
            mine = sizes_of(group, names)
            bound |= {m.key for m in group if mine and mine <= m.system.by_name.keys()}
        return bound

    def choosing(self, choices: Mapping[str, str | int]) -> Space:
        """The skeletons with these structural choices, without counting; errors as in `narrow`."""
        return self._having(self._fitting(choices))

    def of_families(self, families: Iterable[str]) -> Space:
        """The candidates whose stages are all of these families.

        Raises UnknownName for a family that no skeleton is of.
        """
        wanted = [*families]
        known = dict.fromkeys(member.family for member in self.every)
        for name in wanted:
            if name not in known:
                raise UnknownName(f"family cannot be '{name}'; it is one of: {', '.join(known)}")
        members = {id(m) for m in self.every if m.family in wanted}
        found = (unit.only(members) for unit in self.units)
        return self._having([unit for unit in found if unit is not None])

    @entry("space.candidate")
    def candidate(self, settings: Settings, seed: int = 0) -> Candidate:
        """A candidate with these settings; raises ConstraintRefused with the reason if none has."""
        for unit in self._fitting(settings):
            if (found := unit.first(settings, seed)) is not None:
                return self._candidate(found)
        raise ConstraintRefused(self.explain(settings).text)

    def _candidate(self, drawn: Drawn) -> Candidate:
        skeleton, sizes = drawn
        return Candidate(self.program, skeleton, tuple(sizes.items()))

    @entry("space.exactly")
    def exactly(self, assignment: Mapping[str, str | int]) -> Candidate:
        """The one candidate that an assignment determines.

        Raises ConstraintRefused if several candidates have these settings, or none.
        """
        fitting = self._fitting(assignment)
        whole = [only for u in fitting if (only := u.exactly({*assignment})) is not None]
        meant = whole or fitting
        points = (point for unit in meant for point in unit.agreeing(assignment))
        found = [self._candidate(point) for point in itertools.islice(points, 2)]
        if not found:
            raise ConstraintRefused(self.explain(assignment).text)
        if len(found) == 1:
            return found[0]
        inside = (part for u in meant for part in (u, *u.members))
        names = dict.fromkeys(name for part in inside for name in names_of(part))
        left = [name for name in names if name not in assignment]
        keys = [unit.key for unit in meant]
        raise ConstraintRefused(
            f"the assignment {spelled(assignment)} of {self.program.name} fits several candidates, "
            f"such as {found[0].label} and {found[1].label}: {', '.join(left)} "
            f"{'is' if len(left) == 1 else 'are'} open in {a_few(keys)}; give a complete one, such "
            "as `assignment` of a campaign's row or of `lp.space(program).sample(1, seed=0)[0]`"
        )

    @entry("space.explain")
    def explain(self, settings: Mapping[str, str | int]) -> Answer:
        """Whether some candidate has these settings; if none, what clashes and what would work.

        Errors as in `narrow`, and ConstraintRefused for a size out of range in every skeleton.
        """
        return answer(self.program, self._fitting(settings), settings, self.asked)

    def why_empty(self, memory_limit: int | None = None) -> str:
        """Why there is no candidate, in one sentence if all skeletons have the same reason.

        If a memory limit is given, the text names the least possible one.
        """
        what = f"{self.program.name} has no candidate on {self.device.name}"
        return why_empty(what, self.units, lambda: self.explain({}), memory_limit)

    def _outline(self) -> str:
        """The choices and the sizes of each family."""
        lines: list[str] = []
        for family in self.families:
            mine = [u for u in self.units if u.family == family]
            inside = (part for u in mine for part in (u, *u.members))
            names = dict.fromkeys(name for part in inside for name in names_of(part))
            named = ", ".join(n for n in names if n != FAMILY)
            lines.append(f"  {family}: {named or 'nothing to choose'}")
        return "\n".join(lines)

    def _fitting(self, settings: Mapping[str, str | int]) -> list[Member | Product]:
        """The units that make the choices and have the sizes among these settings.

        A product is narrowed to the part that does.
        """
        sizes = {p.name for member in self.every for p in member.system.parameters}
        for name, value in settings.items():
            known = self.choices.get(name)
            for form in self.left_out if name == WINOGRAD else ():
                if form.word == str(value):
                    raise ConstraintRefused(form.why)
            if known is None and name not in sizes:
                names = ", ".join([*self.choices, *sorted(sizes)])
                raise UnknownName(
                    f"{self.program.name} has no parameter '{name}'; its parameters are: {names}"
                )
            if known is not None and str(value) not in known:
                raise UnknownName(f"{name} cannot be '{value}'; it is one of: {', '.join(known)}")
            if known is None and not is_number(value):
                raise ConstraintRefused(f"{name} is a size: it needs a whole number, not '{value}'")
        parts = (unit.fitting(settings) for unit in self.units)
        fitting = [part for part in parts if part is not None]
        if not fitting:
            raise ConstraintRefused(self._no_skeleton(settings))
        return fitting

    def _no_skeleton(self, settings: Fixed) -> str:
        return (
            f"no skeleton of {self.program.name} has {spelled(settings)} together; it has "
            f"these choices and sizes:\n{self._outline()}"
        )


def names_of(unit: Member | Product) -> Iterator[str]:
    """The names of the choices and sizes that a unit has, without those of its stages."""
    yield from unit.words
    if isinstance(unit, Member):
        yield from unit.system.by_name

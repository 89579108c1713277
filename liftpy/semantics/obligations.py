"""The conditions of a program with open sizes: proved, refuted, or recorded until sizes are known.

Conditions are taken in the order of the data, and each is judged under those before it, because it
may be meaningless where they do not hold. Small numbers are tried first, since they make readable
witnesses; z3 decides for all sizes. A condition that it cannot decide in time is recorded, and
checked when numbers are given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import z3

from liftpy.errors import LiftError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint, at_least, divides
from liftpy.ir.function import UserFun
from liftpy.ir.nat import ONE, Nat, Quotient, Remainder
from liftpy.ir.open_sizes import show_range, size_ranges
from liftpy.ir.place import named
from liftpy.ir.primitive import Primitive, index_fields, sizes_agree
from liftpy.ir.program import Program
from liftpy.ir.types import Type
from liftpy.ir.walk import bottom_up
from liftpy.semantics.smt import FEWER_STEPS, Terms, ask
from liftpy.source.spans import Span

POINTS = 2000  # small assignments that are tried as witnesses

Sizes: TypeAlias = Mapping[str, int]


class Outcome(StrEnum):
    """What is known of a condition before its sizes are numbers."""

    PROVED = "proved"
    REFUTED = "refuted"
    RECORDED = "recorded"


@dataclass(frozen=True)
class Asked:
    """A condition, what requires it, where that is in words, and its place in the text, if any."""

    condition: Constraint
    who: str
    where: str
    place: Span | None

    @property
    def asker(self) -> str:
        """What requires the condition, and where."""
        return f"{self.who}{self.where}"


@dataclass(frozen=True)
class Obligation:
    """A condition and its outcome; if known, sizes that break it, and sizes that satisfy it.

    At both, the conditions before it hold.
    """

    condition: Constraint
    asked: tuple[Asked, ...]
    outcome: Outcome
    breaks: Sizes | None = None
    works: Sizes | None = None

    def __str__(self) -> str:
        text = f"{self.condition}: {self.outcome}"
        if self.breaks is not None:
            broken = self.condition.substitute(self.breaks).denial()
            text += f" ({spell(self.breaks)}: {broken})" if self.breaks else f" ({broken})"
        return f"{text}, required by {'; '.join(dict.fromkeys(a.asker for a in self.asked))}"


def spell(sizes: Sizes) -> str:
    """An assignment as text."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


# --- conditions ---------------------------------------------------------------------------------


def conditions(program: Program) -> Iterator[Asked]:
    """Yield every condition on a program's sizes, in the order of the data.

    Lengths of parameters are at least 1; divisors in sizes are positive, and exact quotients exact;
    primitives have the conditions that they require.
    """
    for p in program.params:
        place = None if program.spans is None else program.spans.params.get(p.name)
        for condition in of_type(p.type):
            yield Asked(condition, f"parameter {p.name}", "", place)
    for path, part in bottom_up(program.body.body):
        if isinstance(part, FunCall):
            who, where = named(program, path)
            place = None if program.spans is None else program.spans.call(path)
            yield from (Asked(c, who, where, place) for c in of_call(part))


def of_call(call: FunCall) -> Iterator[Constraint]:
    """Yield what a call requires of its sizes: a primitive, or a user function with its body."""
    types = tuple(a.type for a in call.args)
    match call.fun:
        case Primitive() as fun:
            numbers = {} if index_fields(type(fun)) else fun.numbers()
            for size in numbers.values():
                yield from defined(size)
            yield from fun.conditions(*types)
        case UserFun() as fun:
            for p, t in zip(fun.params, types, strict=True):
                yield from sizes_agree(p.type, t)
            for _, part in bottom_up(fun.body):
                if isinstance(part, FunCall):
                    yield from of_call(part)
        case _:
            return


def of_type(t: Type) -> Iterator[Constraint]:
    """Yield what the type of a parameter requires of its sizes."""
    for length in t.lengths():
        yield from defined(length)
        yield at_least(1, length)


def defined(size: Nat) -> Iterator[Constraint]:
    """Yield that a natural has a value: its divisors are positive and exact quotients exact."""
    for atom in size.atoms():
        if isinstance(atom, Quotient | Remainder) and atom.denominator.constant is None:
            yield at_least(1, atom.denominator)
    for over, under in size.fractions:
        if under != ONE:
            yield at_least(1, under)
            yield divides(under, over)


def holds(condition: Constraint, sizes: Sizes) -> bool:
    """Whether a condition holds at numbers for all its sizes."""
    closed = condition.substitute(sizes)
    known = closed.known()
    return closed.holds({}) if known is None else known


def first_broken(asked: Iterable[Asked], sizes: Sizes) -> Asked | None:
    """The first condition that numbers for all sizes break; later ones may be meaningless."""
    return next((a for a in asked if not holds(a.condition, sizes)), None)


# --- outcomes -----------------------------------------------------------------------------------


def obligations(program: Program) -> tuple[Obligation, ...]:
    """The conditions of a program with their outcomes; equal ones are merged, with all sources."""
    askers: dict[Constraint, list[Asked]] = {}
    for one in conditions(program):
        askers.setdefault(one.condition, []).append(one)
    ranges = size_ranges(program)
    breaks, works = witnesses(tuple(askers), ranges)
    judged: list[Obligation] = []
    assumed: list[Constraint] = []
    for condition, asked in askers.items():
        broken, fine = breaks.get(condition), works.get(condition)
        known = condition.known()
        if known is not None:
            outcome = Outcome.PROVED if known else Outcome.REFUTED
            if known is False and broken is None:
                broken = model(assumed, [condition], ranges, negated=True)[1]
        else:
            outcome = Outcome.RECORDED
            if broken is None:
                status, broken = model(assumed, [condition], ranges, negated=True)
                outcome = Outcome.PROVED if status == "unsat" else outcome
            if fine is None and outcome is not Outcome.PROVED:
                status, fine = model(assumed, [condition], ranges, negated=False)
                outcome = Outcome.REFUTED if status == "unsat" else outcome
        if outcome is Outcome.RECORDED:
            assumed.append(condition)
        judged.append(Obligation(condition, tuple(asked), outcome, broken, fine))
    return tuple(judged)


Ranges: TypeAlias = Mapping[str, tuple[int | None, int | None]]
Found: TypeAlias = dict[Constraint, Sizes]


def small(ranges: Ranges) -> Iterator[dict[str, int]]:
    """Small assignments of all sizes, those with the smallest numbers first."""
    each = max(2, int(POINTS ** (1 / max(1, len(ranges)))))
    starts = {n: min(0, high or 0) if low is None else low for n, (low, high) in ranges.items()}
    domains = [
        range(starts[n], starts[n] + each if high is None else min(high + 1, starts[n] + each))
        for n, (_, high) in ranges.items()
    ]
    points = itertools.islice(itertools.product(*domains), POINTS)
    for point in sorted(points, key=lambda p: (max(p, default=0), p)):
        yield dict(zip(ranges, point, strict=True))


def witnesses(asked: tuple[Constraint, ...], ranges: Ranges) -> tuple[Found, Found]:
    """For each condition, small sizes that break and that satisfy it; earlier ones hold there."""
    breaks: Found = {}
    works: Found = {}
    open_ones = [c for c in asked if c.names()]
    for point in small(ranges):
        for condition in open_ones:
            mine = {n: point[n] for n in sorted(condition.names())}
            if not holds(condition, mine):
                breaks.setdefault(condition, mine)
                break
            works.setdefault(condition, mine)
    return breaks, works


def model(
    assumed: Iterable[Constraint], wanted: list[Constraint], ranges: Ranges, *, negated: bool
) -> tuple[str, Sizes | None]:
    """Whether sizes satisfy the assumptions and all of `wanted`, or break it; and such sizes.

    The sizes are None if z3 gives none, or if they fail a check by evaluation.
    """
    terms = Terms(z3.Context())
    given = [terms.assume(c) for c in assumed]
    claims = [claim for c in wanted for claim in terms.claims(c)]
    goal = z3.Not(z3.And(claims)) if negated else z3.And(claims)
    answer = ask([*terms.facts, *given, goal], FEWER_STEPS)
    if answer.status != "sat":
        return answer.status, None
    names = sorted({n for c in wanted for n in c.names()})
    sizes = {
        n: answer.model.eval(z3.Int(n, terms.context), model_completion=True).as_long()
        for n in ranges
        if n in names
    }
    borne_out = all(holds(c, sizes) for c in wanted) != negated if sizes else True
    return ("sat", sizes) if borne_out else ("unknown", None)


# --- refusals -----------------------------------------------------------------------------------


def admitted(program: Program) -> Program:
    """The program; TypeRefused if no sizes satisfy its conditions."""
    ranges = size_ranges(program)
    if not ranges:
        return program
    judged = obligations(program)
    for obligation in judged:
        if obligation.outcome is Outcome.REFUTED:
            raise impossible(program, obligation, judged)
    return program


def impossible(program: Program, refuted: Obligation, judged: Iterable[Obligation]) -> LiftError:
    """The error for a condition that no sizes satisfy, together with those before it."""
    ranges = size_ranges(program)
    names = refuted.condition.names()
    before = [
        o.condition
        for o in itertools.takewhile(lambda o: o is not refuted, judged)
        if o.outcome is Outcome.RECORDED
    ]
    alone = model((), [refuted.condition], ranges, negated=False)[0] == "unsat"
    clashing = [] if alone else [c for c in before if c.names() & names]
    names = names.union(*(c.names() for c in clashing))
    asked = refuted.asked[0]
    who = asked.who if asked.place is not None else asked.asker
    what = f"{who} requires that {refuted.condition}, and no sizes satisfy it"
    why = [f"together with {c}" for c in clashing]
    if refuted.breaks:
        broken = refuted.condition.substitute(refuted.breaks).denial()
        why.append(f"for example {spell(refuted.breaks)}: {broken}")
    declared = ", ".join(show_range(n, *ranges[n]) for n in sorted(names & ranges.keys()))
    why.append(f"the declared sizes are {declared}; change a range, or a number in the condition")
    return refusal(program, TypeRefused, what, asked.place, *why)


def refusal(
    program: Program, kind: type[LiftError], what: str, place: Span | None, *why: str
) -> LiftError:
    """An error about a program, with its place if the program has a text."""
    what = f"{program.name}: {what}"
    if program.spans is None or place is None:
        return kind("\n".join([what, *(f"  {reason}" for reason in why)]))
    return program.spans.source.refusal(kind, what, place, *why)

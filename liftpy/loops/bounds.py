"""Prove for the code as printed that each access of a kernel is inside its memory.

The index of an access is a natural over counters and ids, whose ranges are those of the loops
around it and of the launch, and over variables that hold clamped data-dependent indices. The guards
around the access hold there. The first of three ways that shows it is used:

- *ranges*: the index is inside whatever the counters are;
- *a guard*: the goal is a sum of the room of tests that hold, and of a part that the ranges
  decide;
- *the solver*: z3 finds no counters at which the guards hold and the index is outside.

The proof does not depend on how the code was made: neither the views nor the passes have to be
trusted. It says that what the code reads is in the memory, not that it is the right element: a
guard also chooses between an element and a border. So it is proved, too, that each end of a guard
that views and unrolled loops left out always holds, or never, and what the passes assume of the
tests that they remove from a version of a loop (`guards`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from liftpy.ir.constraint import Constraint, at_most, equal
from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import INTEGERS
from liftpy.loops.lower import LoopKernel
from liftpy.loops.show import test_text
from liftpy.loops.tree import (
    Assume,
    Block,
    For,
    If,
    Let,
    Simple,
    Statement,
    Store,
    Update,
    statements_in,
)
from liftpy.loops.values import (
    All,
    Both,
    Cell,
    Condition,
    Const,
    Fails,
    Name,
    Operate,
    RangeTest,
    Select,
    Value,
)
from liftpy.semantics.smt import Undecided, Witness, find_point
from liftpy.views.terms import Decided

Way: TypeAlias = Literal["ranges", "guard", "solver"]

MOST_GOALS = 500
"""The most goals that `follows` tries; if none of them is shown, the solver decides."""


def link(loop: For, start: Nat, made: str) -> Iterator[Constraint]:
    """The equation for a loop's counter: start plus step times the number of earlier iterations.

    `made` is the name of the variable for that number. There is none if the step is not a number.
    """
    if isinstance(loop.step, int):
        low = 0 if isinstance(loop.first, str) else loop.first
        passes = var(made, 0, (loop.bound - 1 - low) // loop.step)
        yield equal(var(loop.counter, low, loop.bound - 1), start + loop.step * passes)


@dataclass(frozen=True)
class CodePlace:
    """The position of a piece of code: the ranges of counters and ids, and what holds there.

    `links` relate the counter of a loop over ids to the id. Of each of `failing`, some test fails.
    `ends` has what is known of the integers that variables hold.
    """

    ranges: Mapping[str, Nat]
    holding: tuple[RangeTest, ...] = ()
    failing: tuple[All, ...] = ()
    links: tuple[Constraint, ...] = ()
    ends: Mapping[str, Ends] = field(default_factory=dict[str, "Ends"])

    @property
    def key(self) -> object:
        """A key that distinguishes positions."""
        return tuple(self.ranges.items()), self.holding, self.failing, self.links

    def where(self, condition: Condition, *, holds: bool) -> CodePlace:
        """The place where, in addition, a condition holds or fails."""
        match condition:
            case Fails(inner):
                return self.where(inner, holds=not holds)
            case Both(left, right):
                if not holds:
                    return self  # one of the two fails: it is not known which
                return self.where(left, holds=True).where(right, holds=True)
            case All(tests) if holds:
                return replace(self, holding=(*self.holding, *tests))
            case All():
                return replace(self, failing=(*self.failing, condition))

    def declaring(self, name: str, found: Ends) -> CodePlace:
        """The place after the declaration of a variable with these ends."""
        if found == OPEN:
            return self
        low, high = found
        known = {**self.ends, name: found}
        if low is None or high is None:
            return replace(self, ends=known)
        return replace(self, ends=known, ranges={**self.ranges, name: var(name, low, high)})

    def inside(self, loop: For) -> CodePlace:
        """The place in a loop's body."""
        counter, links = loop.counter, self.links
        low = 0 if isinstance(loop.first, str) else loop.first
        if isinstance(loop.first, str) or loop.step != 1:
            start = self.ranges[loop.first] if isinstance(loop.first, str) else nat(low)
            links = (*links, *link(loop, start, f"pass of {counter}"))
        ranges = {**self.ranges, counter: var(counter, low, loop.bound - 1)}
        return replace(self, ranges=ranges, links=links)


Ends: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value of an integer; None where it is not known."""

OPEN: Ends = None, None


def ends(value: Value, known: Mapping[str, Ends]) -> Ends:
    """The ends of an integer that is made by `min` and `max`; `known` has those of variables."""
    match value:
        case Const(number) if value.type in INTEGERS:
            return int(number), int(number)
        case Name(name):
            return known.get(name, OPEN)
        case Operate("max" | "min" as op, (left, right), t, 1) if t in INTEGERS:
            pairs = zip(ends(left, known), ends(right, known), strict=True)
            low, high = ([end for end in pair if end is not None] for pair in pairs)
            if op == "max":  # each low end is one of the maximum, which has a high end of both
                return max(low, default=None), max(high) if len(high) == 2 else None
            return min(low) if len(low) == 2 else None, min(high, default=None)
        case _:
            return OPEN


@dataclass(frozen=True)
class ProvedAccess:
    """An access of `cell` and why it is inside its memory; `outside` says where it is not."""

    cell: Cell
    store: bool
    way: Way | None
    outside: str = ""

    def __str__(self) -> str:
        memory, width = self.cell.memory, self.cell.width
        lanes = f", {width} lanes" if width > 1 else ""
        what = f"{'store to' if self.store else 'load of'} {memory.name}[{self.cell.index}]{lanes}"
        if self.way is None:
            return f"{what}: not shown to be in 0..{memory.length - 1}: {self.outside}"
        return f"{what}: in 0..{memory.length - 1} by {self.way}"


@dataclass(frozen=True, slots=True)
class DecidedTest:
    """A test that is not made at a place of the code, where it always or never holds.

    With `like`, the code makes that test instead, which has the same outcome.
    """

    test: RangeTest
    holds: bool = True
    like: RangeTest | None = None

    @property
    def rooms(self) -> tuple[Nat, ...]:
        """Naturals which the claim says to be at least 0."""
        if self.like is None:
            return (self.test.room if self.holds else -1 - self.test.room,)
        apart = self.test.room - self.like.room
        return apart, -apart

    def __str__(self) -> str:
        if self.like is not None:
            return f"{test_text(self.test)} exactly where {test_text(self.like)}"
        return f"{test_text(self.test)} {'holds' if self.holds else 'fails'} wherever it was tested"


@dataclass(frozen=True)
class ProvedGuard:
    """A guard that was left out; `fault` says why that is not proved, or is empty."""

    decided: Decided | DecidedTest
    fault: str = ""

    def __str__(self) -> str:
        if self.fault:
            return f"guard left out, not shown that {self.decided}: {self.fault}"
        return f"guard left out: {self.decided}"


def guards(code: LoopKernel) -> tuple[ProvedGuard, ...]:
    """Every end of a guard that the views left out, and every test that a pass has removed.

    Ids and the counters of loops have the ranges of the code, not those that the views assumed; a
    test is decided where it was, by the loops and branches around it.
    """
    ranges = ranges_in(code)
    each = (replace(d, index=d.index.substitute(ranges)) for d in code.decided)
    decided = tuple(sorted(each, key=str))
    # If all are right, one query shows it: starting the solver takes most of a query's time.
    left_out = map(ProvedGuard if all_right(decided) else guard_of, decided)
    removed: dict[object, ProvedGuard] = {}
    for s, place in places(code.block, CodePlace(code.indices)):
        if isinstance(s, Assume):
            for test in tests_of(s):
                key = test, place.key
                if key not in removed:
                    removed[key] = removed_test(test, place)
    return (*left_out, *removed.values())


def tests_of(assumed: Assume) -> Iterator[DecidedTest]:
    """What an assumption says of each of its tests."""
    yield from (DecidedTest(test) for test in assumed.holding)
    yield from (DecidedTest(test, holds=False) for test in assumed.failing)
    yield from (DecidedTest(test, like=simple) for test, simple in assumed.same)


def removed_test(test: DecidedTest, place: CodePlace) -> ProvedGuard:
    """Whether a test may be left out at a place."""
    _, fault = shown(test.rooms, place)
    return ProvedGuard(test, fault)


def ranges_in(code: LoopKernel) -> dict[str, Nat]:
    """The ids and the counters of a kernel's loops; loops of one name have a range together."""
    found = {name: (0, count - 1) for name, count in code.ranges.items()}
    for s in statements_in(code.block):
        if isinstance(s, For):
            first, last = 0 if isinstance(s.first, str) else s.first, s.bound - 1
            low, high = found.get(s.counter, (first, last))
            found[s.counter] = min(low, first), max(high, last)
    return {name: var(name, low, high) for name, (low, high) in found.items()}


@lru_cache(maxsize=1 << 12)
def all_right(claims: tuple[Decided, ...]) -> bool:
    """Whether the solver finds no values of the counters at which a decision is wrong."""
    return not claims or find_point((), [list(map(is_wrong, claims))]) is None


def is_wrong(decided: Decided) -> Constraint:
    """The condition that an end of a guard is not as decided."""
    return at_most(decided.room + 1, 0)


def guard_of(decided: Decided) -> ProvedGuard:
    """Whether an end of a guard may be left out for all values of the counters in their ranges."""
    answer = find_point([is_wrong(decided)])
    if answer is None:
        return ProvedGuard(decided)
    return ProvedGuard(decided, counterexample(answer))


def counterexample(answer: Witness | Undecided) -> str:
    """The point at which a claim is false, or that the solver gave up."""
    if isinstance(answer, Undecided):
        return f"the solver gave up ({answer.reason})"
    at = ", ".join(f"{name} = {number}" for name, number in sorted(answer.at.items()))
    return f"at {at or 'every place'}"


def bounds(code: LoopKernel) -> tuple[ProvedAccess, ...]:
    """Every access of a kernel to memory with addresses, and why it is inside."""
    known: dict[object, ProvedAccess] = {}
    found: list[ProvedAccess] = []
    for cell, store, place, _ in accesses(code.block, CodePlace(code.indices)):
        key = (cell, store, place.key)
        if key not in known:
            known[key] = bound_of(cell, place, store=store)
        found.append(known[key])
    return tuple(found)


def places(block: Block, place: CodePlace) -> Iterator[tuple[Statement, CodePlace]]:
    """The statements of a block in order, each before those inside it, and its position."""
    for s in block:
        yield s, place
        match s:
            case For(body=body):
                if s.bound > (0 if isinstance(s.first, str) else s.first):
                    yield from places(body, place.inside(s))
            case If(condition, then, otherwise):
                yield from places(then, place.where(condition, holds=True))
                yield from places(otherwise, place.where(condition, holds=False))
            case Let(name, value):
                place = place.declaring(name, ends(value, place.ends))
            case _:
                pass


class PlacedAccess(NamedTuple):
    """An access, whether it stores, its position, and the operator of an atomic update."""

    cell: Cell
    store: bool
    place: CodePlace
    op: str = ""


def accesses(block: Block, start: CodePlace) -> Iterator[PlacedAccess]:
    """The accesses of a block in order."""
    for s, place in places(block, start):
        if isinstance(s, Simple):
            yield from loads(s.value, place)
        if isinstance(s, Store | Update) and s.cell.memory.space != "private":
            op = s.op if isinstance(s, Update) else ""
            yield PlacedAccess(s.cell, store=True, place=place, op=op)


def loads(value: Value, place: CodePlace) -> Iterator[PlacedAccess]:
    """The loads of an expression."""
    if isinstance(value, Cell) and value.memory.space != "private":
        yield PlacedAccess(value, store=False, place=place)
    if isinstance(value, Select):
        yield from loads(value.then, place.where(value.condition, holds=True))
        yield from loads(value.otherwise, place.where(value.condition, holds=False))
        return
    for part in value.parts:
        yield from loads(part, place)


def bound_of(cell: Cell, place: CodePlace, *, store: bool) -> ProvedAccess:
    """Why an access is inside, or where it is not."""
    last = cell.memory.length - cell.width
    return ProvedAccess(cell, store, *shown((cell.index, last - cell.index), place))


def shown(naturals: Sequence[Nat], place: CodePlace) -> tuple[Way | None, str]:
    """Why some indices are at least 0 at a place; or None, and where one of them is not."""
    names = frozenset[str]().union(*(n.names() for n in naturals))
    unknown = {name: var(name, None) for name in names - place.ranges.keys()}
    ranged = (n.substitute({**place.ranges, **unknown}) for n in naturals)
    goals = [goal for goal in ranged if not is_natural(goal)]
    if not goals:
        return "ranges", ""
    rooms = [test.room.substitute(place.ranges) for test in place.holding]
    open_goals = [goal for goal in goals if not follows(goal, rooms)]
    if not open_goals:
        return "guard", ""
    for goal in open_goals:
        answer = find_point(
            [at_most(goal + 1, 0), *place.links, *(at_most(0, room) for room in rooms)],
            [
                [at_most(t.room.substitute(place.ranges) + 1, 0) for t in tests.tests]
                for tests in place.failing
            ],
        )
        if answer is not None:
            return None, counterexample(answer)
    return "solver", ""


def follows(goal: Nat, rooms: Sequence[Nat]) -> bool:
    """Whether ranges and the room of guards show that an index is 0 or more.

    Multiples of some of the rooms are subtracted from the goal, each such that one of its terms
    vanishes; ranges must show that the rest is 0 or more. Rests with fewer rooms are tried first,
    and at most `MOST_GOALS` in total, because their number is exponential in that of the rooms.
    """
    waiting, tried = deque([(goal, 0)]), 0
    while waiting and tried < MOST_GOALS:
        left, first = waiting.popleft()
        tried += 1
        if is_natural(left):
            return True
        for k, room in enumerate(rooms[first:], first):
            for monomial, each in room.terms.items():
                times, rest = divmod(left.terms.get(monomial, 0), each)
                if monomial and times > 0 and not rest:
                    waiting.append((left - times * room, k + 1))
    return False


def is_natural(n: Nat) -> bool:
    """Whether the ranges of its variables show that an index is 0 or more."""
    low = n.bounds[0]
    return low is not None and low >= 0

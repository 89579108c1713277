"""Code with padding gets a version for each class of border, if its kernel asks for that.

Places where the same guards hold form a class: of the tiles of an image, the first, the inner and
the last ones in each dimension, so 9 classes for a window of 3 x 3. A version has only the guards
that its class does not decide (index set splitting: U. Banerjee, 1979), and the inner one has none:

    if (first fails) { the code of the first } else if (last holds) { inner } else { the last }

A kernel asks for versions by `byClasses` (`liftpy.primitives.border`). The index of a test is
`place + inner + number`: `place` is made of ids and of counters of loops around the code, `inner`
of counters of loops in it. For each value of `place`, the test holds for all values of `inner`,
fails for all, or depends on `inner`. The classes are the ranges of `place` in which this does not
change. A value for which a test depends on `inner` is a class of its own, in which the test has a
constant for its place. A loop whose counter is the place becomes a loop for each class; for other
places, branches select the class.

All versions compute the same values in the same order, so the meaning is preserved. Code is split
only while the kernel has at most `MOST_STATEMENTS`, and not if it has a barrier or a fold of
subgroups, because work-items might take different branches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod

from liftpy.ir.call import FunCall
from liftpy.ir.nat import Extreme, Nat
from liftpy.ir.polynomial import Atom
from liftpy.ir.walk import every_part
from liftpy.loops.lower import LoopKernel
from liftpy.loops.nest import MOST_STATEMENTS
from liftpy.loops.silent_stores import names_in
from liftpy.loops.together import has_broadcast
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Statement,
    is_collective,
    statements_in,
)
from liftpy.loops.unswitch import Given, tests_in
from liftpy.loops.values import (
    All,
    RangeTest,
)
from liftpy.loops.zeros import without_zeros
from liftpy.primitives import ByClasses

MOST_CLASSES = 16
"""The most classes of a place; one with more is not split."""

MOST_VALUES = 1 << 12
"""The most values of a place that are computed one by one."""


def in_classes(code: LoopKernel) -> Block:
    """The code of a kernel, with a version for each class if the kernel asks for them."""
    calls = (e.fun for e in every_part(code.kernel.body) if isinstance(e, FunCall))
    if not any(isinstance(fun, ByClasses) for fun in calls):
        return code.block
    return without_zeros(of_block(code.block, frozenset(code.ids), MOST_STATEMENTS))


# --- classes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Class:
    """A range of values of a place, the least and the greatest, and the known results of tests."""

    least: int
    greatest: int
    given: Given


@dataclass(frozen=True)
class ClassifiedPlace:
    """A place of some tests, and its classes, at least two, in ascending order."""

    place: Nat
    tests: tuple[RangeTest, ...]
    classes: tuple[Class, ...]

    @staticmethod
    def of(place: Nat, tests: Iterable[RangeTest]) -> ClassifiedPlace | None:
        """The classes of a place; None if it has fewer than two, or too many."""
        values = values_of(place)
        cut = {t: ends for t in tests if (ends := mixed(t, place, values)) is not None}
        cuts = {k for low, high in cut.values() for k in range(low, high + 1)}
        ends = sorted({0, len(values), *cuts})
        if not 2 < len(ends) <= MOST_CLASSES + 1:
            return None
        classes = (class_of(place, cut, values, a, b) for a, b in pairwise(ends))
        return ClassifiedPlace(place, tuple(cut), tuple(classes))

    def branches(self, version: Callable[[Class], Block]) -> Block:
        """The versions for all classes, each guarded by the test of its class."""
        made = version(self.classes[-1])
        for one, following in reversed([*pairwise(self.classes)]):
            test = self.between(one, following)
            parts = version(one), made
            made = Block((If(All((test,)), *(parts if test.bound is not None else parts[::-1])),))
        return made

    def between(self, one: Class, following: Class) -> RangeTest:
        """A test that distinguishes two adjacent classes: it holds in the first if it has a bound.

        It is one of the code's tests, if one of these depends on the place alone.
        """
        for test in self.tests:
            number = (test.index - self.place).constant
            if number is not None:
                turn = (test.bound or 0) - number
                if one.greatest < turn <= following.least:
                    return test
        return RangeTest(self.place - following.least)

    def loops(self, s: For) -> list[For] | None:
        """A loop for each class; None if its iterations do not take the classes in order."""
        if s.first != 0 or s.step != 1 or self.place.names() != frozenset((s.counter,)):
            return None
        values = [self.place.value({s.counter: k}) for k in range(s.bound)]
        if values != sorted(values):
            return None
        begins = [bisect_left(values, c.least) for c in self.classes]
        parts = zip(self.classes, pairwise([*begins, s.bound]), strict=True)
        return [replace(s, first=a, bound=b, body=c.given.block(s.body)) for c, (a, b) in parts]


def class_of(
    place: Nat,
    cut: dict[RangeTest, tuple[int, int]],
    values: Sequence[int],
    start: int,
    end: int,
) -> Class:
    """The class of the values from the one at `start` to the one before `end`."""
    least = values[start]
    below = {t for t, (low, _) in cut.items() if end <= low}
    above = {t for t, (_, high) in cut.items() if start >= high}
    bounded = {t for t in cut if t.bound is not None}
    failing = (below - bounded) | (above & bounded)
    here = {t: RangeTest(t.index - place + least, t.bound) for t in cut.keys() - below - above}
    return Class(
        least,
        values[end - 1],
        Given(frozenset((below | above) - failing), frozenset(failing), here),
    )


def mixed(test: RangeTest, place: Nat, values: Sequence[int]) -> tuple[int, int] | None:
    """The range of positions of the values for which a test also depends on counters inside.

    For all other values, it holds everywhere or fails everywhere. None if there are too many.
    """
    low, high = (test.index - place).bounds
    if low is None or high is None:
        return None
    first, after = (bisect_left(values, (test.bound or 0) - end) for end in (high, low))
    return (first, after) if after - first <= MOST_CLASSES else None


def values_of(place: Nat) -> Sequence[int]:
    """The values that a place may have, in ascending order; none if they are not known."""
    found = digits(place)
    if all(len(m) == 1 and m[0] in {(a, 1) for a in found} for m in place.terms):
        low, high = place.bounds
        return (
            () if low is None or high is None else range(low, high + 1, gcd(*place.terms.values()))
        )
    if len(found) != 1:
        return ()
    (low, high), *_ = (a.bounds for a in found)
    if low is None or high is None or high - low >= MOST_VALUES:
        return ()
    (digit,) = found
    return sorted({value_of(place, digit, k) for k in range(low, high + 1)})


def digits(place: Nat) -> set[Atom]:
    """The atoms of a place, and those in its minima and maxima instead of these."""
    atoms = {a for monomial in place.terms for a, _ in monomial}
    bent = {a for a in atoms if isinstance(a, Extreme)}
    return (atoms - bent).union(*(digits(part) for a in bent for part in a.parts()))


def value_of(place: Nat, digit: Atom, number: int) -> int:
    """The value of a place whose only digit is a constant."""

    def of(a: Atom) -> int:
        if a == digit:
            return number
        parts = [value_of(part, digit, number) for part in a.parts()]
        return max(parts) if isinstance(a, Extreme) and a.largest else min(parts)

    return sum(c * prod(of(a) ** e for a, e in monomial) for monomial, c in place.terms.items())


def axes_of(block: Block, known: frozenset[str]) -> Iterator[ClassifiedPlace]:
    """The axes of a block in which ids and counters of outer loops are `known`."""
    inner = {s.counter for s in statements_in(block) if isinstance(s, For)}
    found: dict[Nat, dict[RangeTest, None]] = {}
    for test in tests_in(block):
        terms = test.index.terms
        outer = {m: c for m, c in terms.items() if m and all(a.names <= known for a, _ in m)}
        place = Nat(outer)
        rest = (test.index - place).names()
        if outer and rest <= inner and rest.isdisjoint(known):
            found.setdefault(place, {})[test] = None
    for place, tests in found.items():
        axis = ClassifiedPlace.of(place, tests)
        if axis is not None:
            yield axis


# --- versions -------------------------------------------------------------------------------------


def of_block(block: Block, known: frozenset[str], room: int) -> Block:
    """A block in versions, of at most `room` statements; `known` are ids and counters around it."""
    start, end = guarded_part(block)
    part = Block(block.statements[start:end])
    if not part:
        return block
    before, after = block.statements[:start], block.statements[end:]
    room -= size_of(Block((*before, *after)))
    axes: list[ClassifiedPlace] = []
    for axis in axes_of(part, known) if not is_shared(part) else ():
        if count(*axes, axis) * (size_of(part) + 1) <= room:
            axes.append(axis)
    made = with_versions(part, axes, known, room // count(*axes) - 1)
    return Block((*before, *made, *after))


def with_versions(
    block: Block, axes: Sequence[ClassifiedPlace], known: frozenset[str], room: int
) -> Block:
    """The versions of a block along some axes, and those of the loops in each of them."""
    if axes:
        first, *others = axes
        return first.branches(lambda c: with_versions(c.given.block(block), others, known, room))
    share = room / max(1, size_of(block))
    return block.each(lambda s: of_statement(s, known, int(share * size_of(Block((s,))))))


def of_statement(s: Statement, known: frozenset[str], room: int) -> Iterator[Statement]:
    """A statement with versions of the code in it."""
    match s:
        case For(body=body):
            within = known | {s.counter}
            for axis in axes_of(body, within) if not is_shared(body) else ():
                fits = count(axis) * size_of(Block((s,))) <= room
                if fits and (parts := axis.loops(s)) is not None:
                    for part in parts:
                        yield from of_statement(part, known, room // len(parts))
                    return
            yield replace(s, body=of_block(body, within, room - 1))
        case If(condition, then, otherwise):
            half = (room - 1) // 2
            yield If(condition, of_block(then, known, half), of_block(otherwise, known, half))
        case _:
            yield s


def is_shared(block: Block) -> bool:
    """Whether work-items compute something in a block together."""
    return is_collective(block) or has_broadcast(block)


def count(*axes: ClassifiedPlace) -> int:
    """The number of classes of all axes together."""
    return prod(len(axis.classes) for axis in axes)


def guarded_part(block: Block) -> tuple[int, int]:
    """The first statement of a block with tests, and the first after which none is needed.

    No later statement has tests or uses a declaration between these two.
    """
    tested = [k for k, s in enumerate(block) if any(True for _ in tests_in(Block((s,))))]
    if not tested:
        return 0, 0
    start, end = tested[0], tested[-1] + 1
    part, after = block.statements[start:end], block.statements[end:]
    own = {s.name for s in part if isinstance(s, Let)}
    return start, len(block.statements) if any(own & {*names_in(s)} for s in after) else end


def size_of(block: Block) -> int:
    """The number of statements in a block."""
    return sum(1 for _ in statements_in(block))

"""Loops get versions without the guards that hold in most of their iterations.

A padded array that is read where it is needed is guarded at every read, although nearly all reads
are inside. So a loop whose body has guards gets a version without them, for when they hold; both
versions compute the same values in the same order. The first of three ways that fits is used:

- *In front of the loop* (loop unswitching: F. E. Allen and J. Cocke, A Catalogue of Optimizing
  Transformations, 1971). No guard depends on the loop's counters: one test decides, in front of
  the outermost such loop.

      if (all tests hold) { the loop, nothing guarded } else { the loop as it was }

  A loop without loops inside may also have guards that depend on its counter. Then only the other
  guards are tested in front of it, and its first version is split as in the next way.

- *Iterations apart* (index set splitting: U. Banerjee, 1979). What a guard needs depends only on
  the counter, so it holds from one number to another: three loops, the middle one without it,
  and each without the guards that have the same outcome in all its iterations.
- *For all iterations*. What a guard needs in every iteration is tested in front of the outermost
  loop, as above: the guard at the iteration where its index is least, or largest. If loops inside
  get versions, this is done as well if it leaves no guard: most blocks lie in the middle of their
  array.

Guards that mention a variable declared in the loop (a data-dependent index) stay in every version,
and are not counted here. A loop with a barrier or a fold of subgroups stays as it is, because
work-items might take different branches. A loop with a broadcast first gets versions for large and
for small subgroups. Its further versions are chosen only by tests that have the same outcome for
all work-items of a subgroup (`loops/together.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from liftpy.loops.merge_stores import decided_by
from liftpy.loops.terms import at_all, turning_point
from liftpy.loops.together import common_counters, has_broadcast, is_same
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
    is_collective,
    statements_in,
    with_blocks,
)
from liftpy.loops.values import (
    SUBGROUP_SIZE,
    All,
    Both,
    Condition,
    Fails,
    RangeTest,
    Select,
    Value,
    rebuilt,
    values_in,
)


def unswitched(block: Block) -> Block:
    """A block whose loops have versions without guards."""
    return block.each(lambda s: _versions(s, outermost=True))


def _versions(s: Statement, *, outermost: bool) -> list[Statement]:
    """The replacement of a statement."""
    if not isinstance(s, For) or is_collective(s.body):
        return [s]
    tests = _movable(s)
    if not tests:
        return [s]
    if sizes := tuple(t for t in tests if set(t.index.names()) == {SUBGROUP_SIZE}):
        return [_by_size(s, sizes, outermost=outermost)]
    if known := _known(s, tests):
        free = _free(s, known)
        passes = _passes(free, _movable(free))
        inside = _apart(free, *passes) if passes else [free]
        return [If(All(known), Block(tuple(inside)), Block((s,)))]
    counters = counters_of(s)
    needed = {t: end for t in tests if (end := _always(t, counters)) is not None}
    made = s
    if any(_splits(inner) for inner in _loops(s.body)):
        made = replace(s, body=s.body.each(lambda t: _versions(t, outermost=False)))
        if not outermost or len(needed) < len(tests):
            return [made]
    elif passes := _passes(s, tests):
        return _apart(s, *passes)
    if not needed:
        return [made]
    tested = All(tuple(dict.fromkeys(needed.values())))
    return [If(tested, Block((_free(s, needed),)), Block((made,)))]


def _splits(s: For) -> bool:
    """Whether a loop, or one in it, can be split at guards that depend at most on its counter."""
    tests = _movable(s)
    return bool(_known(s, tests) or _passes(s, tests)) or any(map(_splits, _loops(s.body)))


def _movable(s: For) -> dict[RangeTest, None]:
    """The tests in a loop that mention no variable of the loop: its value is an index.

    If the loop has a broadcast, only those with the same outcome for all work-items of a subgroup.
    """
    own = declared_in(s)
    found = {t: None for t in tests_in(s.body) if own.isdisjoint(t.index.names())}
    if found and has_broadcast(s.body):
        common = common_counters(s)
        return {t: None for t in found if is_same(t, common)}
    return found


def declared_in(s: For) -> frozenset[str]:
    """The variables that are declared in a loop."""
    return frozenset(t.name for t in statements_in(s.body) if isinstance(t, Let))


def _known(s: For, tests: Collection[RangeTest]) -> tuple[RangeTest, ...]:
    """The tests that are decided in front of a loop: all, or some if it contains no loop."""
    counters = counters_of(s)
    known = tuple(t for t in tests if counters.keys().isdisjoint(t.index.names()))
    return known if len(known) == len(tests) or len(counters) == 1 else ()


def _free(s: For, holding: Iterable[RangeTest]) -> For:
    """A loop in which some tests hold."""
    return replace(s, body=Given(frozenset(holding)).block(s.body))


def _by_size(s: For, tests: tuple[RangeTest, ...], *, outermost: bool) -> If:
    """The versions of a loop for large subgroups and for small ones.

    If there is only one test on the size, the version for small subgroups has no broadcasts, and
    does not load what they would read.
    """
    large = _versions(_free(s, tests), outermost=outermost)
    small: list[Statement] = [s]
    if len(tests) == 1:
        apart = replace(s, body=Given(frozenset(), frozenset(tests)).block(s.body))
        small = _versions(apart, outermost=outermost)
    return If(All(tests), Block(tuple(large)), Block(tuple(small)))


def _passes(s: For, tests: Iterable[RangeTest]) -> tuple[int, int, list[RangeTest]] | None:
    """The range of iterations in which the tests on a loop's counter hold, and these tests.

    A test that depends on counters of inner loops as well has to hold in all their iterations.
    """
    if s.first != 0 or s.step != 1:
        return None
    inner = counters_of(s)
    del inner[s.counter]
    own = {
        t: end
        for t in tests
        if (end := _always(t, inner)) and set(end.index.names()) == {s.counter}
    }
    low, high = 0, s.bound
    for test in own.values():
        turn = turning_point(test, s.counter)
        if turn is None:
            return None
        number, rises = turn
        low, high = (max(low, number), high) if rises else (low, min(high, number))
    return (low, high, list(own)) if own and low < high else None


def _apart(s: For, low: int, high: int, own: list[RangeTest]) -> list[Statement]:
    """A loop split into up to three: before, while, and after the tests of its counter hold."""
    free = _free(s, own)
    parts = ((s, 0, low), (free, low, high), (s, high, s.bound))
    return [_decided(replace(loop, first=a, bound=b), a) for loop, a, b in parts if a < b]


def _decided(s: For, first: int) -> For:
    """A loop without the tests that have the same outcome in all its iterations."""
    holding, failing = set[RangeTest](), set[RangeTest]()
    for test in _movable(s):
        turn = turning_point(test, s.counter)
        if turn is None or set(test.index.names()) != {s.counter}:
            continue
        number, rises = turn
        if s.bound <= number or number <= first:
            holds = rises == (number <= first)
            (holding if holds else failing).add(test)
    if not holding and not failing:
        return s
    return replace(s, body=Given(frozenset(holding), frozenset(failing)).block(s.body))


def _always(test: RangeTest, counters: Mapping[str, int]) -> RangeTest | None:
    """The test that this one holds in all iterations; None if there is none, or it never holds."""
    found: RangeTest | None = test
    for name in sorted(test.index.names() & counters.keys()):
        if found is not None:
            found = at_all(found, name, 0, counters[name] - 1)
    return found if found is not None and found.index.constant is None else None


def _loops(block: Block) -> Iterator[For]:
    """The loops directly in a block."""
    return (s for s in block if isinstance(s, For))


def counters_of(s: For) -> dict[str, int]:
    """The counters of a loop and of all loops in it, each with its bound."""
    return {t.counter: t.bound for t in statements_in(Block((s,))) if isinstance(t, For)}


def tests_in(block: Block) -> Iterator[RangeTest]:
    """The tests of all guarded values and stores."""
    for s in statements_in(block):
        yield from s.tests if isinstance(s, Simple) else decided_by(s)


def own_tests(s: Statement) -> Iterator[RangeTest]:
    """The tests that a statement makes, without those of statements inside it."""
    if isinstance(s, Store):
        yield from s.silent
    if isinstance(s, Simple) and s.is_guarded:
        selects = (v for value in s.values for v in values_in(value) if isinstance(v, Select))
        yield from (test for select in selects for test in select.condition.tests)
    elif isinstance(s, If):
        yield from decided_by(s)


@dataclass(frozen=True)
class Given:
    """Code where some tests hold and others fail, and where others are the same as simpler ones."""

    holding: frozenset[RangeTest]
    failing: frozenset[RangeTest] = frozenset()
    instead: Mapping[RangeTest, RangeTest] = field(default_factory=dict[RangeTest, RangeTest])

    def block(self, block: Block) -> Block:
        """A block there."""
        return block.each(self.statement)

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement there, after what is assumed of its tests."""
        if assumed := self.assumed_of(s):
            yield assumed
        match s:
            case Store(_, value, silent) if silent or s.is_guarded:
                if self.failing.isdisjoint(silent):
                    value = self.value(value) if s.is_guarded else value
                    yield replace(s, value=value, silent=self.left(silent))
            case Let(_, value) | Update(_, value) if s.is_guarded:
                yield replace(s, value=self.value(value))
            case If(All(tests), then, otherwise) if (known := self.decided(tests)) is not None:
                yield from self.block(then if known else otherwise)
            case If(All(tests), then, otherwise):
                yield If(All(self.left(tests)), self.block(then), self.block(otherwise))
            case _:
                yield with_blocks(s, self.block)

    def assumed_of(self, s: Statement) -> Assume | None:
        """What is known of the tests that a statement itself makes; None if that is nothing."""
        own = dict.fromkeys(own_tests(s))
        holding = tuple(t for t in own if t in self.holding)
        failing = tuple(t for t in own if t in self.failing)
        same = tuple((t, self.instead[t]) for t in own if t in self.instead)
        return Assume(holding, failing, same) if holding or failing or same else None

    def value(self, value: Value) -> Value:
        """An expression there."""
        match value:
            case Select(condition, then, otherwise) if (known := self.known(condition)) is not None:
                return self.value(then if known else otherwise)
            case Select(All(tests), then, otherwise):
                return Select(All(self.left(tests)), self.value(then), self.value(otherwise))
            case _:
                return rebuilt(value, self.value)

    def known(self, condition: Condition) -> bool | None:
        """Whether a condition holds; None if that is not known."""
        match condition:
            case All(tests):
                return self.decided(tests)
            case Fails(inner):
                known = self.known(inner)
                return None if known is None else not known
            case Both(left, right):
                both = self.known(left), self.known(right)
                return False if False in both else True if all(both) else None

    def decided(self, tests: tuple[RangeTest, ...]) -> bool | None:
        """Whether all of some tests hold; None if that is not known."""
        if not self.failing.isdisjoint(tests):
            return False
        return True if self.holding.issuperset(tests) else None

    def left(self, tests: tuple[RangeTest, ...]) -> tuple[RangeTest, ...]:
        """The tests that are not known to hold."""
        return tuple(self.instead.get(t, t) for t in tests if t not in self.holding)

"""From a nest of terms to the loop IR: each value is computed where it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat, var
from liftpy.loops.in_place import stays
from liftpy.loops.nest import Assign, Bind, Loop, Nest, Restore, Snapshot, Statement, old
from liftpy.loops.reading import Reading, widened
from liftpy.loops.silent import Silent
from liftpy.loops.terms import (
    condition_of,
    guards,
    in_all_lanes,
    tests_of,
    where_fails,
)
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    For,
    If,
    Store,
    Update,
)
from liftpy.loops.values import (
    All,
    RangeTest,
)
from liftpy.views.access import decided_ends, left_to_test
from liftpy.views.terms import Apply, Choice, Condition, Constant, Load, Memory, Term, Variable


def stored(nest: Nest) -> Block:
    """A nest in the loop IR."""
    made = Storing(nest.read, set(nest.noted))
    return made.block(lambda: made.statements(nest.body))


@dataclass
class Storing(Reading):
    """Translates the statements of a nest to those of the loop IR."""

    silent: Silent = field(init=False, default_factory=Silent)

    def block(self, fill: Callable[[], None]) -> Block:
        """The block of the statements that `fill` makes."""
        before, self.made = self.made, []
        fill()
        block, self.made = Block(tuple(self.made)), before
        return block

    def statements(self, statements: Iterable[Statement]) -> None:
        """Statements in their order."""
        for s in statements:
            match s:
                case Assign(target, term):
                    indexed = self.with_indices(target), self.with_indices(term)
                    self.put_store(s._replace(target=indexed[0], term=indexed[1]))
                case Bind(_, term):
                    self.bind(s._replace(term=self.with_indices(term)))
                case Loop(counter, first, bound, step, body, _, ahead):
                    inner = self.block(lambda body=body: self.statements(body))
                    if inner:
                        self.made.append(For(counter, first, bound, step, inner, ahead))
                case Barrier():
                    self.made.append(s)
                case Snapshot(number, memories):
                    self.taken.add(number)
                    for m in memories:
                        self.copy(m, old(number, m))
                case Restore(number, memory):
                    self.copy(old(number, memory), memory)

    def copy(self, source: Memory, target: Memory) -> None:
        """Copy all of a memory to another one."""
        counter, length = f"copy of {source.name}", source.length
        i = var(counter, 0, length - 1) if length > 1 else ZERO
        made = Assign(Load(target, i), Load(source, i))
        self.statements([Loop(counter, 0, length, 1, (made,)) if length > 1 else made])

    def put_store(self, store: Assign) -> None:
        """Emit a store; nothing if there is no place for it."""
        match store.target:
            case Choice() as place:
                self.put_where_placed(place, store)
            case Load() as place:
                self.put_at(place, store)
            case Constant():
                return
            case target:
                message = f"no destination in {type(target).__name__}"
                raise InternalError(message)

    def put_where_placed(self, target: Choice, store: Assign) -> None:
        """A store behind conditions: a whole vector if all its lanes have places, else by lane.

        Conditions that are the same for all lanes go around the others.
        """
        lane, width = store.lane, store.width
        conditions, place, otherwise = guards(target)
        shared = [c for c in conditions if width == 1 or lane not in c.index.names()]
        if shared:
            apart = [c for c in conditions if c not in shared]
            inner = store._replace(target=self.behind(apart, place, otherwise))
            then = self.block(lambda: self.put_store(inner))
            self.made.append(If(condition_of(shared), then))
            return
        tests = in_all_lanes(condition_of(conditions).tests, lane, width)
        if tests is None:
            self.put_lanes(store, {})
            return
        known = where_fails(*tests) if len(tests) == 1 else {}
        whole = self.block(lambda: self.put_store(store._replace(target=place)))
        each = self.block(lambda: self.put_lanes(store, known))
        self.made.append(If(All(tuple(tests)), whole, each))

    def put_at(self, dest: Load, store: Assign) -> None:
        """Emit a store to a known place; nothing if the value is already in it."""
        value, lane, width = store.term, store.lane, store.width
        if store.op:
            self.begin(value)
            operand = self.vector(value, lane, width)
            self.made.append(Update(self.cell(dest, width), operand, store.op))
            return
        if isinstance(value, Load) and stays(store) and value.snapshot not in self.taken:
            return
        first = self.start(dest.index, lane, width) if lane else dest.index
        if first is None:
            if isinstance(value, Apply) and self.computes_at_once(value, lane, width):
                self.put_computed(store)
            else:
                self.put_lanes(store, {})
            return
        self.begin(value)
        whole = widened(self.vector(value, lane, width), width)
        silent: tuple[RangeTest, ...] = ()
        if not self.taken:  # a term that reads the place reads its present value, not a snapshot
            tests = self.silent.unchanged(dest, value) or ()
            silent = tuple(t for t in tests if lane not in t.index.names())
        nontemporal = (
            store.nontemporal and dest.memory.space == "global" and is_aligned(first, width)
        )
        self.made.append(
            Store(self.cell(Load(dest.memory, first), width), whole, silent, nontemporal)
        )

    def computes_at_once(self, value: Term, lane: str, width: int) -> bool:
        """Whether operators on vectors compute all lanes of a value, from whole vectors."""
        if lane not in value.names:
            return True
        if isinstance(value, Apply):
            return all(self.computes_at_once(a, lane, width) for a in value.args)
        return isinstance(value, Load) and self.start(value.index, lane, width) is not None

    def put_computed(self, store: Assign) -> None:
        """Compute all lanes at once, and store each at its own place."""
        self.begin(store.term)
        whole = self.whole(store.term, store.lane, store.width)
        for k in range(store.width):
            target = self.substitution.term(store.target, store.lane, k)
            one = Variable(whole.name, whole.type, whole.width, k)
            self.put_store(Assign(target, one))

    def put_lanes(self, store: Assign, known: dict[str, Nat]) -> None:
        """Store each lane at its own place; `known` are narrower ranges of variables there."""
        lanes = range(store.width)
        targets = [self.substitution.term(store.target, store.lane, k) for k in lanes]
        if known:
            targets = [self.narrowed(target, known) for target in targets]
        for k, target in zip(lanes, targets, strict=True):
            self.put_store(Assign(target, self.substitution.term(store.term, store.lane, k)))

    def narrowed(self, target: Term, known: dict[str, Nat]) -> Term:
        """A place where variables have narrower ranges; states what these decide of its tests."""
        if not isinstance(target, Choice):
            return target
        conditions, place, otherwise = guards(target)
        left: list[Condition] = []
        assumed: dict[bool, list[RangeTest]] = {True: [], False: []}
        for c in conditions:
            index = c.index.substitute(known)
            decided = decided_ends(index, c.length)
            left.append(left_to_test(index, c.length, decided))
            ends = {d.end: d.holds for d in decided}
            for test in tests_of(c):
                end = "low" if test.bound is None else "high"
                if end in ends:
                    assumed[ends[end]].append(test)
        if any(assumed.values()):
            self.made.append(Assume(tuple(assumed[True]), tuple(assumed[False])))
        return self.behind(left, place, otherwise)

    def behind(self, conditions: Sequence[Condition], place: Term, otherwise: Term) -> Term:
        """A place behind conditions."""
        for condition in reversed(conditions):
            place = self.read.either(condition, place, otherwise)
        return place


def is_aligned(index: Nat, width: int) -> bool:
    """Whether a vector at an index is aligned to its size, given that its memory is."""
    return width & (width - 1) == 0 and index % width == ZERO

"""From a nest of terms to the loop IR: its statements, with variables for what they mention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat
from liftpy.loops.nest import (
    MOST_STATEMENTS,
    Assign,
    Bind,
    Loop,
    Nest,
    Restore,
    Snapshot,
    Statement,
    too_long,
)
from liftpy.loops.reading import Reading, widened
from liftpy.loops.silent import Silent
from liftpy.loops.terms import (
    at_all,
    at_lane,
    condition_of,
    guards,
    tests_of,
    where_fails,
)
from liftpy.loops.tree import All, Barrier, Block, For, If, RangeTest, Store
from liftpy.views.access import Choice, Constant, Inside, Load, Term


def with_variables(nest: Nest) -> Block:
    """A nest in the loop IR. TypeRefused for more statements than a kernel may have."""
    made = Storing(nest.read)
    made.shared |= nest.noted
    made.statements(nest.body)
    if made.emitted > MOST_STATEMENTS:
        raise too_long(nest.kernel)
    return made.block.closed()


@dataclass
class Storing(Reading):
    """The statements of a nest as those of the loop IR."""

    silent: Silent = field(init=False, default_factory=Silent)

    def statements(self, statements: Iterable[Statement]) -> None:
        """Statements in their order."""
        for s in statements:
            match s:
                case Assign(target, term):
                    self.put_store(
                        s._replace(target=self.resolved(target), term=self.resolved(term))
                    )
                case Bind():
                    self.bind(s)
                case Loop(counter, first, bound, step, body):
                    self.open(counter)
                    self.statements(body)
                    inner = self.close()
                    if inner:
                        self.put(For(counter, first, bound, step, inner))
                case Barrier():
                    self.put(s)
                case Snapshot() | Restore():
                    message = "a snapshot is left"
                    raise InternalError(message)

    def put_store(self, store: Assign) -> None:
        """The statement of a store; none where there is no place for it."""
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
        """A store behind conditions; a vector whole where all its lanes have places, else by lane.

        Conditions that are the same for all lanes stand around the others.
        """
        lane, width = store.lane, store.width
        conditions = guards(target)[0]
        shared = [c for c in conditions if width == 1 or lane not in c.index.names()]
        if shared:
            with self.branch() as then:
                self.put_store(store._replace(target=without(shared, target)))
            self.put(If(condition_of(shared), then.closed()))
            return
        ends = [at_all(t, lane, 0, width - 1) for c in conditions for t in tests_of(c)]
        tests = tuple(dict.fromkeys(end for end in ends if end is not None))
        if None in ends:
            self.put_lanes(store, {})
            return
        with self.branch() as then:
            self.put_store(store._replace(target=without(conditions, target)))
        with self.branch() as otherwise:
            self.put_lanes(store, where_fails(tests[0]) if len(tests) == 1 else {})
        self.put(If(All(tests), then.closed(), otherwise.closed()))

    def put_at(self, dest: Load, store: Assign) -> None:
        """The statement of a store that has its place: none where a value stays where it is."""
        value, lane, width = store.term, store.lane, store.width
        if isinstance(value, Load) and value.memory == dest.memory and value.index == dest.index:
            return
        if width == 1:
            self.share(value)
            stored = self.scalar(value)
            self.put(Store(self.cell(dest, 1), stored, self.silent.unchanged(dest, value)))
            self.stores += 1
        elif (first := self.start(dest.index, lane, width)) is not None:
            self.put_vector(dest, store, Load(dest.memory, first))
        else:
            self.put_lanes(store, {})

    def put_lanes(self, store: Assign, known: dict[str, Nat]) -> None:
        """Each lane at its own place, where so much more is known of variables' ranges."""
        for k in range(store.width):
            place = self.narrowed(at_lane(self.read, store.target, store.lane, k), known)
            self.put_store(Assign(place, at_lane(self.read, store.term, store.lane, k)))

    def narrowed(self, place: Term, known: dict[str, Nat]) -> Term:
        """A place behind the conditions that are left where more is known of variables' ranges."""
        if not (known and isinstance(place, Choice)):
            return place
        inside = self.read.inside(place.condition.index.substitute(known), place.condition.length)
        return self.read.either(inside, self.narrowed(place.then, known), place.otherwise)

    def put_vector(self, dest: Load, store: Assign, start: Load) -> None:
        """The statement of lanes that go to `dest` one after another, from `start`."""
        value, lane, width = store.term, store.lane, store.width
        self.share(value)
        whole = widened(self.vector(value, lane, width), width)
        silent: tuple[RangeTest, ...] = ()
        if start.memory.space == "private":
            tests = self.silent.unchanged(dest, value)
            silent = tuple(t for t in tests if lane not in t.index.names())
        streamed = store.streamed and start.memory.space == "global"
        streamed = streamed and is_aligned(start.index, width)
        self.put(Store(self.cell(start, width), whole, silent, streamed))
        self.stores += 1


def is_aligned(index: Nat, width: int) -> bool:
    """Whether a vector at an index is aligned as its type is, as its memory begins."""
    return width & (width - 1) == 0 and index % width == ZERO


def without(held: list[Inside], place: Term) -> Term:
    """A place without those of its conditions that hold."""
    if not isinstance(place, Choice):
        return place
    inner = without(held, place.then)
    return inner if place.condition in held else Choice(place.condition, inner, place.otherwise)

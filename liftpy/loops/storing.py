"""Stores, and the steps of unrolled loops.

Note [One step for all]. The steps of an unrolled loop differ in its counter alone. So the body is
read once, with the counter as a variable: that gives its stores, as terms. Each step is these terms
at its number, which costs far less than reading the views again. A body that does more than to
store (it declares a variable, opens a loop, needs memory) raises `NotUniformError` before anything
is emitted, and its steps are read one by one.

Note [Places behind a condition]. A result may be written through a layout that has a constant where
there is no place (`coverOnce`). What would go there is dropped: a store stands behind the condition
of its place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat, nat, var
from liftpy.ir.pull import Pull
from liftpy.loops.carried import Vector
from liftpy.loops.idle import Idle
from liftpy.loops.reading import Reading, widened
from liftpy.loops.scopes import NotUniformError
from liftpy.loops.terms import (
    at_all,
    at_lane,
    condition_of,
    guards,
    tests_of,
    where_fails,
)
from liftpy.loops.tree import All, If, RangeTest
from liftpy.loops.tree import Store as StoreCode
from liftpy.views.access import Apply, Choice, Constant, FromIndex, Inside, Lanes, Load, Term


class Store(NamedTuple):
    """A value and its place; of `width` lanes, which both depend on by the variable `lane`.

    A `streamed` one passes the caches by, where it is a whole vector at a multiple of its length.

    The place may stand behind conditions, with a constant where they fail (Note [Places behind a
    condition]).
    """

    target: Term
    term: Term
    lane: str = ""
    width: int = 1
    streamed: bool = False


class Steps(NamedTuple):
    """An unrolled loop: what each step does, with `counter` for its number."""

    counter: str
    length: int
    actions: tuple[Action, ...]


#: What a step does; a function is called as it is.
Action: TypeAlias = Store | Steps | Callable[[], None]


@dataclass
class Storing(Reading):
    """Stores: now, or as a part of the step that is being read."""

    depth: int = field(init=False, default=0)
    parted: dict[tuple[Nat, str], tuple[Nat, Nat]] = field(init=False, default_factory=dict)
    idle: Idle = field(init=False, default_factory=Idle)
    placed: dict[tuple[int, str, int], tuple[Term, Term]] = field(init=False, default_factory=dict)
    streams: bool = field(init=False, default=False)

    # --- unrolled loops ---

    def unrolled(
        self, length: int, body: Callable[[Nat], None], *, where_needed: bool = False
    ) -> None:
        """The steps of a loop one after the other (Note [One step for all]).

        where_needed: within a step, only if private memory would be indexed by the counter.
        """
        if self.step is not None:
            steps = self.read_once(length, body)
            if where_needed and not any(indexes(a, steps.counter) for a in steps.actions):
                raise NotUniformError("for")
            self.step.append(steps)
            return
        try:
            steps = self.read_once(length, body)
        except NotUniformError:
            self.check_steps(length)
            for k in range(length):
                body(nat(k))
        else:
            self.perform(steps)

    def read_once(self, length: int, body: Callable[[Nat], None]) -> Steps:
        """What a step does."""
        outer, counter = self.step, f"#{self.depth}"
        self.step = actions = list[Action]()
        self.depth += 1
        try:
            body(var(counter, 0, length - 1))
        finally:
            self.step = outer
            self.depth -= 1
        return Steps(counter, length, tuple(actions))

    def perform(self, action: Action) -> None:
        """Emit what was read."""
        match action:
            case Store():
                self.put_store(action)
            case Steps(counter, length, actions):
                self.check_steps(length)
                for k in range(length):
                    for inner in actions:
                        self.perform(self.at_step(inner, counter, k))
            case _:
                action()

    def do(self, action: Action) -> None:
        """Perform an action, or note it as a part of the step that is being read."""
        if self.step is None:
            self.perform(action)
        else:
            self.step.append(action)

    def at_step(self, action: Action, counter: str, k: int) -> Action:
        """An action at one step of a loop around it."""
        match action:
            case Store(target, term):
                target, term = self.term_at(target, counter, k), self.term_at(term, counter, k)
                return Store(target, term, action.lane, action.width, action.streamed)
            case Steps(inner, length, actions):
                return Steps(inner, length, tuple(self.at_step(a, counter, k) for a in actions))
            case _:
                return action

    def term_at(self, term: Term, counter: str, k: int) -> Term:
        """A term at one step; what of it is held in variables is so there too."""
        if counter not in term.names:
            return term
        key = (id(term), counter, k)
        found = self.placed.get(key)
        if found is None:
            found = self.placed[key] = term, self.worked_out_at(term, counter, k)
        if term.parts and term in self.shared:  # it may have become so since it was placed
            self.shared.add(found[1])
        return found[1]

    def worked_out_at(self, term: Term, counter: str, k: int) -> Term:
        """`term_at`, worked out."""
        match term:
            case Load():
                return self.load_at(term, counter, k)
            case FromIndex(index, t):
                return FromIndex(index.substitute({counter: k}), t)
            case Apply(op, args, _):
                return self.read.operate(op, tuple(self.term_at(a, counter, k) for a in args))
            case Choice(condition, then, otherwise):
                index = condition.index.substitute({counter: k})
                inside = self.read.inside(index, condition.length)
                return self.read.either(
                    inside, self.term_at(then, counter, k), self.term_at(otherwise, counter, k)
                )
            case Lanes(init, vector, lane, width, step, t):
                init, vector = self.term_at(init, counter, k), self.term_at(vector, counter, k)
                return Lanes(init, vector, lane, width, step, t)
            case _:
                return term

    def load_at(self, load: Load, name: str, k: int) -> Load:
        """A load, or a place, where a variable is a number."""
        if name not in load.index.names():
            return load
        key = load.index, name
        found = self.parted.get(key)
        if found is None:
            still, moving = load.index.parted(name)
            found = self.parted[key] = still.recombined(), moving
        still, moved = found[0], found[1].substitute({name: k})
        number = moved.constant  # with a number more, `still` is recombined as it was
        index = (still + moved).recombined() if number is None else still + number
        return Load(load.memory, index, load.alias)

    # --- stores ---

    @contextmanager
    def streaming(self, *, streams: bool) -> Generator[None]:
        """Whether stores in between are streamed; they are where those around are."""
        before, self.streams = self.streams, self.streams or streams
        try:
            yield
        finally:
            self.streams = before

    def store(self, dest: Term, value: Term) -> None:
        """One scalar."""
        self.do(Store(dest, value))

    def store_vector(self, value: Vector, dest: Pull) -> None:
        """All lanes of a vector at once, if the destination allows it."""
        width = int(dest.length)
        if width == 1:
            self.store(dest[ZERO], value[ZERO])
            return
        lane = f"store{width}"
        index = var(lane, 0, width - 1)
        self.do(Store(dest[index], value[index], lane, width, self.streams))

    def put_store(self, store: Store) -> None:
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

    def put_where_placed(self, target: Choice, store: Store) -> None:
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

    def put_at(self, dest: Load, store: Store) -> None:
        """The statement of a store that has its place: none where a value stays where it is."""
        value, lane, width = store.term, store.lane, store.width
        if isinstance(value, Load) and value.memory == dest.memory and value.index == dest.index:
            for k in range(width):
                self.check_alias(self.load_at(value, lane, k), 1)
        elif width == 1:
            self.share(value)
            stored = self.scalar(value)
            self.put(StoreCode(self.cell(dest, 1), stored, self.idle.unchanged(dest, value)))
            self.note_store(dest, 1)
        elif (first := self.start(dest.index, lane, width)) is not None:
            self.put_vector(dest, store, Load(dest.memory, first, dest.alias))
        else:
            self.put_lanes(store, {})

    def put_lanes(self, store: Store, known: dict[str, Nat]) -> None:
        """Each lane at its own place, where so much more is known of variables' ranges."""
        for k in range(store.width):
            place = self.narrowed(at_lane(self.read, store.target, store.lane, k), known)
            self.put_store(Store(place, at_lane(self.read, store.term, store.lane, k)))

    def narrowed(self, place: Term, known: dict[str, Nat]) -> Term:
        """A place behind the conditions that are left where more is known of variables' ranges."""
        if not (known and isinstance(place, Choice)):
            return place
        inside = self.read.inside(place.condition.index.substitute(known), place.condition.length)
        return self.read.either(inside, self.narrowed(place.then, known), place.otherwise)

    def put_vector(self, dest: Load, store: Store, start: Load) -> None:
        """The statement of lanes that go to `dest` one after another, from `start`."""
        value, lane, width = store.term, store.lane, store.width
        self.share(value)
        whole = widened(self.vector(value, lane, width), width)
        idle: tuple[RangeTest, ...] = ()
        if start.memory.space == "private":
            tests = self.idle.unchanged(dest, value)
            idle = tuple(t for t in tests if lane not in t.index.names())
        streamed = store.streamed and start.memory.space == "global"
        streamed = streamed and is_aligned(start.index, width)
        self.put(StoreCode(self.cell(start, width), whole, idle, streamed))
        self.note_store(start, width)

    def note_store(self, dest: Load, width: int) -> None:
        """Remember a store, for hazards."""
        self.stores += 1
        if dest.memory.space == "private":
            key = self.live.get(dest.memory, 0), dest.memory
            stored = self.stored.setdefault(key, set())
            stored.update(range(int(dest.index), int(dest.index) + width))


def is_aligned(index: Nat, width: int) -> bool:
    """Whether a vector at an index is aligned as its type is, as its memory begins."""
    return width & (width - 1) == 0 and index % width == ZERO


def without(held: list[Inside], place: Term) -> Term:
    """A place without those of its conditions that hold."""
    if not isinstance(place, Choice):
        return place
    inner = without(held, place.then)
    return inner if place.condition in held else Choice(place.condition, inner, place.otherwise)


def indexes(action: Action, counter: str) -> bool:
    """Whether an action has private memory indexed by a counter."""
    match action:
        case Store(target, term):
            return is_indexed(target, counter) or is_indexed(term, counter)
        case Steps(_, _, actions):
            return any(indexes(a, counter) for a in actions)
        case _:
            return False


def is_indexed(term: Term, counter: str) -> bool:
    """Whether a term reads private memory at an index with a counter in it."""
    if counter not in term.names:
        return False
    if isinstance(term, Load):
        return term.memory.space == "private"
    return any(is_indexed(part, counter) for part in term.parts)

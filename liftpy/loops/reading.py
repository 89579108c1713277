"""Terms of views as values of the loop IR: from which memory, behind which conditions, in lanes.

The nest (loops/nest.py) says what is computed where; here a scalar or a vector becomes a value, and
what it mentions more than once a variable (loops/scopes.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.nat import Nat, var
from liftpy.ir.types import F32
from liftpy.loops.nest import Bind
from liftpy.loops.scopes import Scopes
from liftpy.loops.substitute import Substitution
from liftpy.loops.terms import (
    at_all,
    at_lane,
    condition_of,
    guards,
    in_a_row,
    number,
    part_of,
    repeated,
    tests_of,
)
from liftpy.loops.tree import (
    All,
    Cell,
    Condition,
    Const,
    Dot,
    Name,
    Operate,
    Pack,
    Part,
    Select,
    Splat,
)
from liftpy.loops.tree import Value as Code
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    Constant,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Term,
    Variable,
)


@dataclass
class Reading(Scopes):
    """The terms of a nest as values.

    `bound` has the variable of the code for each of the nest; where that of another one serves,
    `renamed` has this other one, so that equal terms are one.
    """

    read: AccessReader
    substitution: Substitution = field(init=False)
    bound: dict[str, Name] = field(init=False, default_factory=dict)
    renamed: dict[str, Variable] = field(init=False, default_factory=dict)
    first: dict[str, str] = field(init=False, default_factory=dict)
    starts: dict[tuple[Nat, str, int], Nat | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.substitution = Substitution(self.read, self.shared)

    # --- variables of the nest ---

    def bind(self, s: Bind) -> None:
        """A variable of the nest, in one of the code."""
        term = self.resolved(s.term)
        held = self.in_variable(term) if s.width == 1 else self.whole(term, s.lane, s.width)
        first = self.first.setdefault(held.name, s.name)
        if first == s.name:
            self.bound[first] = held
            self.depths[first] = self.depths[held.name]
        else:
            self.renamed[s.name] = Variable(first, term.type, s.width)

    def resolved(self, term: Term) -> Term:
        """A term without variables that others serve for."""
        for name in self.renamed.keys() & term.names if self.renamed else ():
            term = self.substitution.term(term, name, self.renamed[name])
        return term

    def in_variable(self, term: Term) -> Name:
        """A term in a variable, from now on."""
        self.share(term)
        self.shared.add(term)
        held = self.scalar(term)
        if not isinstance(held, Name):
            message = f"{held} is no variable"
            raise InternalError(message)
        return held

    # --- places and scalars ---

    def cell(self, place: Load, width: int) -> Cell:
        """Memory cells to store in or to load."""
        if any(name.startswith(("store", "lane")) for name in place.index.names()):
            message = "a function of vector lanes needs a stored value: store it with toPrivate"
            raise TypeRefused(message)
        return Cell(place.memory, place.index, width)

    def scalar(self, term: Term) -> Code:
        """A scalar term."""
        match term:
            case Load():
                return self.loaded(term, lambda: self.cell(term, 1), 1)
            case Constant(value, t):
                return Const(value, t)
            case FromIndex(index, t):
                return number(index, t)
            case Apply(op, args, t):
                return self.held(
                    term, 1, lambda: Operate(op, tuple(self.scalar(a) for a in args), t)
                )
            case Choice() if term.stable and term not in self.shared:
                return self.named(term, lambda: self.unconditional(term))
            case Choice():
                return self.held(term, 1, lambda: self.unconditional(term))
            case Lanes():
                return self.held(term, 1, lambda: self.fold_lanes(term))
            case Variable(name, t, width, lane):
                held = self.bound.get(name) or Name(name, t, width)
                return held if lane is None else Part(held, lane)

    def unconditional(self, term: Term) -> Code:
        """A term behind a condition: nothing of it may be moved in front."""
        if isinstance(term, Load):
            return self.cell(term, 1)
        match term:
            case Apply(op, args, t):
                return self.held_behind(
                    term, lambda: Operate(op, tuple(self.unconditional(a) for a in args), t)
                )
            case Choice():
                return self.held_behind(term, lambda: self.chosen(term))
            case Lanes():
                message = "a reduceVec cannot be read through a pad: store its result with toGlobal"
                raise TypeRefused(message)
            case _:
                return self.scalar(term)

    def chosen(self, term: Choice) -> Code:
        """One of two scalars."""
        conditions, then, otherwise = guards(term)
        with self.behind(conditions, holds=True):
            inner = self.unconditional(then)
        with self.behind(conditions, holds=False):
            other = self.unconditional(otherwise)
        return Select(condition_of(conditions), inner, other)

    def loaded(self, load: Load, compute: Callable[[], Code], width: int) -> Code:
        """A load; from memory that the kernel only reads, each address is loaded once per block."""
        if load.memory.space == "private" or load.memory.writable:
            return compute()
        return self.named((load.memory.name, load.index, width), compute)

    # --- vectors ---

    def start(self, index: Nat, lane: str, width: int) -> Nat | None:
        """An index at lane 0, if lane `k` is `k` after it."""
        key = index, lane, width
        if key not in self.starts:
            first, moving = index.parted(lane)
            self.starts[key] = first if moving == var(lane, 0, width - 1) else None
        return self.starts[key]

    def vector(self, term: Term, lane: str, width: int) -> Code:
        """A term over all lanes: a vector, or a scalar that every lane equals."""
        if lane not in term.names:
            return self.scalar(term)
        if isinstance(term, Choice):
            return self.chosen_lanes(term, lane, width)
        if not isinstance(term, Apply):
            return self.lanes_of(term, lane, width)
        return self.held(term, width, lambda: self.applied(term, lane, width))

    def applied(self, term: Apply, lane: str, width: int) -> Code:
        """An operator applied to all lanes."""
        args = tuple(self.vector(a, lane, width) for a in term.args)
        return Operate(term.op, args, term.type, width)

    def chosen_lanes(self, term: Choice, lane: str, width: int) -> Code:
        """A guarded vector, in a variable if it may be: others with these lanes are the same."""

        def compute() -> Code:
            return self.vector_unconditional(term, lane, width)

        if not term.stable:
            return compute()
        key = ("choice", *(at_lane(self.read, term, lane, k) for k in range(width)))
        return self.named(key, compute)

    def lanes_of(self, term: Term, lane: str, width: int) -> Code:
        """All lanes of a load or of an index."""
        if isinstance(term, Lanes):
            message = "a reduceVec cannot be inside a mapVec: store its result first"
            raise TypeRefused(message)
        first = self.start(term.index, lane, width) if isinstance(term, Load) else None
        if isinstance(term, Load) and first is not None:
            start = Load(term.memory, first)
            if term.memory.space == "private":
                return self.cell(start, width)
            return self.loaded(start, lambda: self.cell(start, width), width)
        row = self.row(term, (), lane, width) if term.stable else None
        if row is None:
            lanes = (self.scalar(at_lane(self.read, term, lane, k)) for k in range(width))
            return Pack(tuple(lanes))
        each = Pack(tuple(self.lanes_behind(term, lane, width)))
        return self.named(("row", term, width), lambda: Select(*row, each))

    def row(
        self, term: Term, conditions: Sequence[Inside], lane: str, width: int
    ) -> tuple[Condition, Code] | None:
        """A load of all lanes behind conditions as one, and the tests for that, if it can be one.

        The tests are those of the lanes at the ends: where they fail, lanes are read one by one.
        """
        if not isinstance(term, Load) or term.memory.space == "private":
            return None
        found = in_a_row(term.index, lane, width)
        ends = [at_all(t, lane, 0, width - 1) for c in conditions for t in tests_of(c)]
        if found is None or None in ends:
            return None
        first, tests = found
        start = Load(term.memory, first)
        whole = self.cell(start, width)
        needed = (*(end for end in ends if end is not None), *tests)
        return All(tuple(dict.fromkeys(needed))), whole

    def vector_unconditional(self, term: Term, lane: str, width: int) -> Code:
        """A vector behind a condition: one choice where all lanes share it, else lane by lane."""
        if lane not in term.names:
            return self.unconditional(term)
        if isinstance(term, Choice):
            conditions, then, otherwise = guards(term)
            if not any(lane in c.index.names() for c in conditions):

                def part(t: Term, *, holds: bool) -> Code:
                    with self.behind(conditions, holds=holds):
                        return widened(self.vector_unconditional(t, lane, width), width)

                inner, other = part(then, holds=True), part(otherwise, holds=False)
                return Select(condition_of(conditions), inner, other)
            row = self.row(then, conditions, lane, width)
            if row is not None:
                each = Pack(tuple(self.lanes_behind(term, lane, width)))
                return Select(*row, each)
        if isinstance(term, Load) and term.memory.space != "private":
            start = self.start(term.index, lane, width)
            if start is not None:
                return self.cell(Load(term.memory, start), width)
        return Pack(tuple(self.lanes_behind(term, lane, width)))

    def lanes_behind(self, term: Term, lane: str, width: int) -> Iterator[Code]:
        """Lanes behind a condition, each by itself."""
        for k in range(width):
            one = at_lane(self.read, term, lane, k)
            self.share(one)
            yield self.unconditional(one)

    def fold_lanes(self, term: Lanes) -> Code:
        """A fold over lanes: `dot` for a sum of products of up to four lanes, else lane by lane."""
        if term.width == 1:
            return self.scalar(
                self.step_of(term, term.init, at_lane(self.read, term.vector, term.lane, 0))
            )
        product = term.vector
        zero = isinstance(term.init, Constant) and term.init.value == 0
        factors = product.args if isinstance(product, Apply) and product.op == "*" else ()
        adds = term.step is self.read.operate("+", (term.total, term.element))
        if factors and term.type.name == "f32" and adds:
            vectors = [self.whole(a, term.lane, term.width) for a in factors]
            parts: list[Code] = [] if zero else [self.scalar(term.init)]
            for start in range(0, term.width, 4):
                stop = min(start + 4, term.width)
                left, right = (part_of(v, start, stop) for v in vectors)
                parts.append(Dot(left, right))
            return functools.reduce(lambda total, part: Operate("+", (total, part), F32), parts)
        vector = self.whole(term.vector, term.lane, term.width)
        result = term.init
        for k in range(term.width):
            lane = Variable(vector.name, vector.type, vector.width, k)
            result = self.step_of(term, result, lane)
            if repeated(result):  # nested, the steps would be deeper than Python goes
                result = Variable(self.in_variable(result).name, term.type)
        return self.scalar(result)

    def step_of(self, fold: Lanes, total: Term, element: Term) -> Term:
        """A step of a fold over lanes."""
        step = self.substitution.term(fold.step, fold.element.name, element)
        return self.substitution.term(step, fold.total.name, total)

    def whole(self, term: Term, lane: str, width: int) -> Name:
        """A vector in a variable, so that its lanes can be named."""
        made = widened(self.vector(term, lane, width), width)
        return made if isinstance(made, Name) else self.declare(made)


def widened(value: Code, width: int) -> Code:
    """A value in all lanes."""
    return value if value.width == width else Splat(value, width)

"""Terms of views as values of the loop IR: memory cells, conditions, and lanes.

A term is a graph, a value is a tree: a part that a term mentions more than once becomes a variable,
which is declared where the term is stored. So does each element that it reads from memory that the
kernel only reads. Passes decide which of these are merged, and which leave their loops
(`liftpy.loops.common`, `liftpy.loops.hoisting`).

Note [Behind a condition]. A part that only a guarded value mentions may read out of bounds where
the guard does not hold. It is held in a variable that is computed under the same conditions, and is
zero where they fail: `const float v1 = (i >= 1) ? a[i - 1] * 2.0f : 0.0f;`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from liftpy.errors import TypeRefused
from liftpy.ir.nat import Nat, var
from liftpy.ir.types import F32, I8, I32, U8
from liftpy.loops.nest import DATA_INDEX, LANES, Bind, old
from liftpy.loops.substitute import Substitution
from liftpy.loops.terms import (
    condition_of,
    guards,
    in_a_row,
    in_all_lanes,
    is_small,
    repeated,
)
from liftpy.loops.tree import (
    Let,
    Statement,
)
from liftpy.loops.values import (
    All,
    Both,
    Cell,
    Condition,
    Const,
    Dot,
    Fails,
    Index,
    Name,
    Operate,
    Pack,
    Select,
    Splat,
    SubgroupBroadcast,
    SubgroupReduce,
    SubgroupsReduce,
    VectorSlice,
    every_second,
    is_in_texels,
)
from liftpy.loops.values import (
    Value as Code,
)
from liftpy.primitives.vector import LANES_OF_A_DOT
from liftpy.views.access import AccessReader
from liftpy.views.terms import (
    Apply,
    Choice,
    Constant,
    FromIndex,
    Inside,
    Lanes,
    Load,
    OfSubgroup,
    OfSubgroups,
    OfWorkItem,
    Term,
    Variable,
)


@dataclass
class Reading:
    """Translates the terms of a nest to values, and declares variables for them.

    `bound` maps variables of the nest to those of the code; `taken` has the snapshots that are
    copied. For the statement in progress, `repeated` has the terms that it mentions more than once,
    and `held` its variables.
    """

    read: AccessReader
    noted: set[Term]
    made: list[Statement] = field(init=False, default_factory=list)
    declared: int = field(init=False, default=0)
    guard: tuple[Condition, ...] = field(init=False, default=())
    repeated: set[Term] = field(init=False, default_factory=set)
    held: dict[object, Code] = field(init=False, default_factory=dict)
    bound: dict[str, Name] = field(init=False, default_factory=dict)
    substitution: Substitution = field(init=False)
    taken: set[int] = field(init=False, default_factory=set)
    starts: dict[tuple[Nat, str, int], Nat | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.substitution = Substitution(self.read, self.noted)

    # --- variables ---

    def begin(self, term: Term) -> None:
        """Begin the statement of a term."""
        self.held.clear()
        self.repeated = repeated(term)

    def declare(self, value: Code) -> Name:
        """A new variable."""
        name = f"v{self.declared}"
        self.declared += 1
        self.made.append(Let(name, value))
        return Name(name, value.type, value.width)

    def named(self, key: object, compute: Callable[[], Code]) -> Code:
        """The variable that holds a value, declared at its first use."""
        found = self.held.get(key)
        if found is None:
            found = self.held[key] = self.declare(compute())
        return found

    def is_shared(self, term: Term) -> bool:
        """Whether a term is to be held in a variable."""
        return term in self.repeated or term in self.noted

    def in_variable(self, term: Term, width: int, compute: Callable[[], Code]) -> Code:
        """A term of `width` lanes, in a variable if it is shared."""
        return self.named((term, width), compute) if self.is_shared(term) else compute()

    def bind(self, s: Bind) -> None:
        """Declare a variable of the nest in the code."""
        self.begin(s.term)
        self.bound[s.name] = self.whole(s.term, s.lane, s.width)

    def with_indices(self, term: Term) -> Term:
        """A term whose indices mention variables of the code, not of the nest."""
        for name in sorted(n for n in term.names if n.startswith(DATA_INDEX)):
            term = self.substitution.term(term, name, Variable(self.bound[name].name, I32))
        return term

    def held_behind(self, term: Term, compute: Callable[[], Code], width: int = 1) -> Code:
        """A value where the current conditions hold (Note [Behind a condition])."""
        if not self.is_shared(term) or not self.guard:
            return compute()
        condition = functools.reduce(Both, self.guard)
        zeros = widened(Const(0, term.type), width)
        return self.held.get((term, width)) or self.named(
            (term, width, self.guard), lambda: Select(condition, compute(), zeros)
        )

    # --- places and scalars ---

    def cell(self, place: Load, width: int) -> Cell:
        """Memory cells to store in or to load."""
        if any(name.startswith(LANES) for name in place.index.names()):
            message = "a function of vector lanes needs a stored value: store it with toPrivate"
            raise TypeRefused(message)
        memory = old(place.snapshot, place.memory) if place.snapshot in self.taken else place.memory
        return Cell(memory, place.index, width)

    def adjacent(self, place: Load, width: int) -> Code:
        """Adjacent elements: one cell, or single elements if they are not whole texels."""
        cell = self.cell(place, width)
        if cell.memory.space != "image" or is_in_texels(cell):
            return cell
        return Pack(tuple(Cell(cell.memory, cell.index + k) for k in range(width)))

    def scalar(self, term: Term) -> Code:
        """A scalar term."""
        match term:
            case Load():
                return self.loaded(term, 1)
            case Constant(value, t):
                return Const(value, t)
            case FromIndex(index, t):
                number = index.constant
                return Index(index, t) if number is None else Const(number, t)
            case Apply():
                return self.in_variable(term, 1, lambda: self.applied(term, "", 1))
            case Choice() if term.stable:
                return self.named((term, 1), lambda: self.unconditional(term))
            case Choice():
                return self.in_variable(term, 1, lambda: self.unconditional(term))
            case Lanes():
                return self.in_variable(term, 1, lambda: self.fold_lanes(term))
            case OfSubgroup(op, value):
                return SubgroupReduce(op, self.scalar(value))
            case OfSubgroups(op, result):
                return SubgroupsReduce(op, self.cell(result, 1))
            case OfWorkItem():
                values, row, item = term.left
                return SubgroupBroadcast(tuple(map(self.scalar, values)), row, item)
            case Variable(name, t, width, lane):
                held = self.bound.get(name) or Name(name, t, width)
                return held if lane is None else VectorSlice(held, lane)

    def unconditional(self, term: Term) -> Code:
        """A term behind a condition: no part of it may be moved in front of the condition."""
        if isinstance(term, Load):
            return self.cell(term, 1)
        match term:
            case Apply(op, args, t):
                return self.held_behind(
                    term, lambda: Operate(op, tuple(self.unconditional(a) for a in args), t)
                )
            case Choice():
                return self.held_behind(term, lambda: self.chosen(term, self.unconditional))
            case Lanes():
                return self.held_behind(term, lambda: self.lane_by_lane(term))
            case _:
                return self.scalar(term)

    def lane_by_lane(self, fold: Lanes) -> Code:
        """A fold over lanes behind a condition, in which each lane is read separately."""
        total = fold.init
        for k in range(fold.width):
            total = self.step_of(fold, total, self.substitution.term(fold.vector, fold.lane, k))
            if not is_small(total):
                self.repeated |= {total, *repeated(total)}
                held = self.unconditional(total)
                name = held if isinstance(held, Name) else self.declare(held)
                total = Variable(name.name, total.type)
        return self.unconditional(total)

    def chosen(self, term: Choice, part: Callable[[Term], Code]) -> Code:
        """A choice between two terms, each translated by `part` behind the conditions."""
        conditions, then, otherwise = guards(term)
        around, condition = self.guard, condition_of(conditions)
        self.guard = (*around, condition)
        inner = part(then)
        self.guard = (*around, Fails(condition))
        other = part(otherwise)
        self.guard = around
        return Select(condition, inner, other)

    def loaded(self, start: Load, width: int) -> Code:
        """Adjacent elements, in a variable if the kernel only reads their memory."""
        read = self.adjacent(start, width)
        return self.named((start, width), lambda: read) if start.stable else read

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
        if isinstance(term, Apply):
            return self.in_variable(term, width, lambda: self.applied(term, lane, width))
        if not isinstance(term, Choice):
            return self.lanes_of(term, lane, width)
        if not term.stable:
            return self.vector_unconditional(term, lane, width)
        return self.named((term, width), lambda: self.vector_unconditional(term, lane, width))

    def applied(self, term: Apply, lane: str, width: int) -> Code:
        """An operator applied to all lanes."""
        args = tuple(self.vector(a, lane, width) for a in term.args)
        return Operate(term.op, args, term.type, width)

    def lanes_of(self, term: Term, lane: str, width: int) -> Code:
        """All lanes of a load or of an index."""
        if isinstance(term, Lanes):
            message = "a reduceVec cannot be inside a mapVec: store its result first"
            raise TypeRefused(message)
        first = self.start(term.index, lane, width) if isinstance(term, Load) else None
        if isinstance(term, Load) and first is not None:
            return self.loaded(Load(term.memory, first, term.snapshot), width)
        row = self.row(term, (), lane, width) if term.stable else None
        if row is None:
            lanes = [self.substitution.term(term, lane, k) for k in range(width)]
            cells = tuple(self.cell(one, 1) for one in lanes if isinstance(one, Load))
            if term.stable and cells and every_second(cells):  # one shuffle, not many variables
                return self.named((term, width), lambda: Pack(cells))
            return Pack(tuple(map(self.scalar, lanes)))
        return self.named((term, width), lambda: Select(*row, self.lanes_behind(term, lane, width)))

    def row(
        self, term: Term, conditions: Sequence[Inside], lane: str, width: int
    ) -> tuple[Condition, Code] | None:
        """A load of all lanes behind conditions as one, with its tests; None if impossible.

        The tests are those of the lanes at the ends: if they fail, lanes are read one by one.
        """
        if not isinstance(term, Load) or term.memory.space == "private":
            return None
        found = in_a_row(term.index, lane, width)
        ends = in_all_lanes(condition_of(conditions).tests, lane, width)
        if found is None or ends is None:
            return None
        first, tests = found
        needed = All(tuple(ends | dict.fromkeys(tests)))
        return needed, self.adjacent(Load(term.memory, first), width)

    def vector_unconditional(self, term: Term, lane: str, width: int) -> Code:
        """A vector behind a condition: one value if all lanes share it, else lane by lane."""
        if lane not in term.names:
            return self.unconditional(term)
        if isinstance(term, Choice):
            conditions, then, _ = guards(term)
            if not any(lane in c.index.names() for c in conditions):
                return self.chosen(
                    term, lambda t: widened(self.vector_unconditional(t, lane, width), width)
                )
            row = self.row(then, conditions, lane, width)
            if row is not None:
                return Select(*row, self.lanes_behind(term, lane, width))
        if isinstance(term, Apply):
            return self.held_behind(term, lambda: self.applied_behind(term, lane, width), width)
        if isinstance(term, Load) and term.memory.space != "private":
            start = self.start(term.index, lane, width)
            if start is not None:
                return self.adjacent(Load(term.memory, start), width)
        return self.lanes_behind(term, lane, width)

    def applied_behind(self, term: Apply, lane: str, width: int) -> Code:
        """An operator applied to all lanes behind a condition."""
        args = tuple(self.vector_unconditional(a, lane, width) for a in term.args)
        return Operate(term.op, args, term.type, width)

    def lanes_behind(self, term: Term, lane: str, width: int) -> Pack:
        """Lanes behind a condition, each read separately."""
        lanes: list[Code] = []
        for k in range(width):
            one = self.substitution.term(term, lane, k)
            self.repeated |= repeated(one)
            lanes.append(self.unconditional(one))
        return Pack(tuple(lanes))

    def fold_lanes(self, term: Lanes) -> Code:
        """A fold over lanes: as dot products if `factors_of_dots` finds any, else lane by lane."""
        if term.width == 1:
            return self.scalar(
                self.step_of(term, term.init, self.substitution.term(term.vector, term.lane, 0))
            )
        zero = isinstance(term.init, Constant) and term.init.value == 0
        adds = term.step is self.read.operate("+", (term.total, term.element))
        factors = factors_of_dots(term) if adds else ()
        if factors:
            vectors = [self.whole(a, term.lane, term.width) for a in factors]
            parts: list[Code] = [] if zero else [self.scalar(term.init)]
            for start in range(0, term.width, LANES_OF_A_DOT):
                lanes = min(LANES_OF_A_DOT, term.width - start)
                left, right = (
                    v if v.width == lanes else VectorSlice(v, start, lanes) for v in vectors
                )
                parts.append(Dot((left, right)))
            return functools.reduce(
                lambda total, part: Operate("+", (total, part), term.type), parts
            )
        vector = self.whole(term.vector, term.lane, term.width)
        result = term.init
        for k in range(term.width):
            lane = Variable(vector.name, vector.type, vector.width, k)
            result = self.step_of(term, result, lane)
            if not is_small(result):
                self.repeated |= repeated(result)
                result = Variable(self.whole(result, "", 1).name, term.type)
        return self.scalar(result)

    def step_of(self, fold: Lanes, total: Term, element: Term) -> Term:
        """A step of a fold over lanes."""
        step = self.substitution.term(fold.step, fold.element.name, element)
        return self.substitution.term(step, fold.total.name, total)

    def whole(self, term: Term, lane: str, width: int) -> Name:
        """A vector in a variable, so that its lanes can be named."""
        made = widened(self.vector(term, lane, width), width)
        return made if isinstance(made, Name) else self.declare(made)


def factors_of_dots(fold: Lanes) -> tuple[Term, ...]:
    """The two vectors whose products a fold over lanes adds, if `Dot` can add them; else nothing.

    `Dot` adds products of f32, and products of 8-bit integers converted to i32 if their number is a
    multiple of `LANES_OF_A_DOT`.
    """
    product = fold.vector
    if not isinstance(product, Apply) or product.op != "*":
        return ()
    if fold.type == F32:
        return product.args
    narrow = tuple(a.args[0] for a in product.args if isinstance(a, Apply) and a.op == I32.name)
    whole = fold.type == I32 and fold.width % LANES_OF_A_DOT == 0
    eight_bits = len(narrow) == 2 and all(a.type in (I8, U8) for a in narrow)
    return narrow if whole and eight_bits else ()


def widened(value: Code, width: int) -> Code:
    """A value in all lanes."""
    return value if value.width == width else Splat(value, width)

"""Terms of views as C: what is read, from which memory, under which conditions, in how many lanes.

The emitter (opencl/emit.py) decides what is computed where; here a scalar or a vector becomes an
expression, and what it mentions more than once a variable (opencl/scopes.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.nat import Nat, var
from liftpy.ir.pull import Value
from liftpy.ir.types import FLOATS
from liftpy.opencl.c import All, C, CallC, Infix, Private, Ternary, Text, vector_type
from liftpy.opencl.indices import MAX_INT, index_c, magnitude
from liftpy.opencl.loops import HazardError
from liftpy.opencl.scalars import INFIX, literal_c, operator_c
from liftpy.opencl.scopes import Scopes
from liftpy.opencl.terms import (
    at_all,
    at_lane,
    condition_c,
    guards,
    in_a_row,
    lanes_c,
    number_c,
    repeated,
    tests_of,
)
from liftpy.opencl.trace import Access
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    Constant,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Memory,
    Term,
    Variable,
)


class UnrollError(Exception):
    """A private memory is indexed by loop variables; never leaves `emit_kernel`."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


@dataclass
class Reading(Scopes):
    """The accesses of a kernel so far, and which private memory holds what under which name."""

    read: AccessReader = field(init=False, default_factory=AccessReader)
    live: dict[Memory, int] = field(init=False, default_factory=dict)
    stored: dict[tuple[int, Memory], set[int]] = field(init=False, default_factory=dict)
    sums: dict[Callable[[Term, Term], Term], bool] = field(init=False, default_factory=dict)
    starts: dict[tuple[Nat, str, int], Nat | None] = field(init=False, default_factory=dict)

    # --- values that are held ---

    def noted(self, value: Value) -> Value:
        """A value whose scalars are held in variables where they are read."""
        if isinstance(value, tuple):
            return tuple(map(self.noted, value))
        if value.parts:
            self.shared.add(value)
        return value

    def variable(self, term: Term) -> Term:
        """A term in a variable, from now on."""
        self.only_now("a variable")
        self.share(term)
        self.shared.add(term)
        c = self.scalar(term)
        if not isinstance(c, Text):
            message = f"{c} is no variable"
            raise InternalError(message)
        return Variable(c.text, term.type)

    # --- places and scalars ---

    def place(self, dest: Load, width: int) -> C:
        """A memory cell as something to assign to or read."""
        if dest.memory.space == "private":
            if dest.index.constant is None:
                raise UnrollError(dest.index.names())
            return Private(dest.memory, dest.index.constant, width)
        return Text(self.cell(dest))

    def cell(self, place: Load) -> str:
        """A memory cell as C; its index is computed in 64 bits where it may pass 2^31."""
        open_lanes = sorted(n for n in place.index.names() if n.startswith(("store", "lane")))
        if open_lanes:
            message = "a function of vector lanes needs a stored value: store it with toPrivate"
            raise TypeRefused(message)
        index = index_c(place.index, wide=magnitude(place.index) > MAX_INT)
        return f"{place.memory.name}[{index}]"

    def check_alias(self, load: Load, width: int) -> None:
        """Refuse to read an accumulator under an old name, or after it was overwritten."""
        if load.memory.space != "private":
            return
        current = self.live.get(load.memory, 0)
        if load.index.constant is None:
            raise UnrollError(load.index.names())
        start = load.index.constant
        overwritten = self.stored.get((current, load.memory), set())
        if load.alias != current or (
            current and not overwritten.isdisjoint(range(start, start + width))
        ):
            raise HazardError(load.memory)

    def scalar(self, term: Term) -> C:
        """A scalar term as C."""
        match term:
            case Load():
                self.check_alias(term, 1)
                return self.loaded(term, lambda: self.place(term, 1), 1)
            case Constant(value, t):
                return literal_c(value, t)
            case FromIndex(index, t):
                return number_c(index, t)
            case Apply(op, args, _):
                return self.held(
                    term, 1, lambda: operator_c(op, [self.scalar(a) for a in args], args)
                )
            case Choice() if term.stable and term not in self.shared:
                return self.named(
                    term, lambda: self.unconditional(term), vector_type(term.type.name, 1)
                )
            case Choice():
                return self.held(term, 1, lambda: self.unconditional(term))
            case Lanes():
                return self.held(term, 1, lambda: self.fold_lanes(term))
            case Variable(name, _, lane):
                return Text(name if lane is None else f"{name}.s{lane:x}")

    def unconditional(self, term: Term) -> C:
        """A term behind a condition: nothing of it may be moved in front."""
        if isinstance(term, Load):
            self.check_alias(term, 1)
            self.trace.append(Access(term.memory, term.index, 1, store=False))
            return self.place(term, 1)
        match term:
            case Apply(op, args, _):
                return self.held_behind(
                    term, lambda: operator_c(op, [self.unconditional(a) for a in args], args)
                )
            case Choice():
                return self.held_behind(term, lambda: self.chosen(term))
            case Lanes():
                message = "a reduceVec cannot be read through a pad: store its result with toGlobal"
                raise TypeRefused(message)
            case _:
                return self.scalar(term)

    def chosen(self, term: Choice) -> C:
        """One of two scalars."""
        conditions, then, otherwise = guards(term)
        with self.behind(conditions, holds=True):
            inner = self.unconditional(then)
        with self.behind(conditions, holds=False):
            other = self.unconditional(otherwise)
        return Ternary(condition_c(conditions), inner, other)

    def loaded(self, load: Load, compute: Callable[[], C], width: int) -> C:
        """A load; from memory that the kernel only reads, each address is loaded once per block."""
        self.trace.append(Access(load.memory, load.index, width, store=False))
        if load.memory.space == "private" or load.memory.writable:
            return compute()
        return self.named(
            (load.memory.name, load.index, width), compute, vector_type(load.type.name, width)
        )

    # --- vectors ---

    def start(self, index: Nat, lane: str, width: int) -> Nat | None:
        """An index at lane 0, if lane `k` is `k` after it."""
        key = index, lane, width
        if key not in self.starts:
            first, moving = index.parted(lane)
            self.starts[key] = first if moving == var(lane, 0, width - 1) else None
        return self.starts[key]

    def vector(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A term over all lanes as C, and whether that is a vector; else every lane equals it."""
        if lane not in term.names:
            return self.scalar(term), False
        if isinstance(term, Choice):
            return self.chosen_lanes(term, lane, width), True
        if not isinstance(term, Apply):
            return self.lanes_of(term, lane, width), True
        return self.held(term, width, lambda: self.applied(term, lane, width)), True

    def applied(self, term: Apply, lane: str, width: int) -> C:
        """An operator applied to all lanes."""
        op, args = term.op, term.args
        parts = [self.vector(a, lane, width) for a in args]
        kinds = [vector_type(a.type.name, width) for a in args]
        if op == "select" and not parts[0][1]:  # a condition that all lanes share
            then, otherwise = (
                c if is_vector else CallC(f"({kind})", (c,))
                for (c, is_vector), kind in zip(parts[1:], kinds[1:], strict=True)
            )
            return Ternary(parts[0][0], then, otherwise)
        narrow = op in INFIX and args[-1].type in FLOATS  # C makes vectors of these itself
        widened = [
            c if is_vector or narrow else CallC(f"({kind})", (c,))
            for (c, is_vector), kind in zip(parts, kinds, strict=True)
        ]
        return operator_c(op, widened, args, width)

    def chosen_lanes(self, term: Choice, lane: str, width: int) -> C:
        """A guarded vector, in a variable if it may be: others with these lanes are the same."""

        def compute() -> C:
            return self.vector_unconditional(term, lane, width)[0]

        if not term.stable:
            return compute()
        key = ("choice", *(at_lane(self.read, term, lane, k) for k in range(width)))
        return self.named(key, compute, vector_type(term.type.name, width))

    def lanes_of(self, term: Term, lane: str, width: int) -> C:
        """All lanes of a load or of an index."""
        if isinstance(term, Lanes):
            message = "a reduceVec cannot be inside a mapVec: store its result first"
            raise TypeRefused(message)
        first = self.start(term.index, lane, width) if isinstance(term, Load) else None
        if isinstance(term, Load) and first is not None:
            start = Load(term.memory, first, term.alias)
            self.check_alias(start, width)
            if term.memory.space == "private":
                return self.place(start, width)
            return self.loaded(start, lambda: self.run_of(start, width), width)
        kind = vector_type(term.type.name, width)
        row = self.row(term, (), lane, width) if term.stable else None
        if row is None:
            lanes = (self.scalar(at_lane(self.read, term, lane, k)) for k in range(width))
            return CallC(f"({kind})", tuple(lanes))
        each = CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width)))
        return self.named(("row", term, width), lambda: Ternary(*row, each), kind)

    def run_of(self, start: Load, width: int) -> C:
        """A load of `width` scalars in a row."""
        return CallC(f"vload{width}", (Text("0"), Text(f"&{self.cell(start)}")))

    def row(
        self, term: Term, conditions: Sequence[Inside], lane: str, width: int
    ) -> tuple[C, C] | None:
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
        self.trace.append(Access(term.memory, first, width, store=False))
        whole = self.run_of(start, width)
        needed = (*(end for end in ends if end is not None), *tests)
        return All(tuple(dict.fromkeys(needed))), whole

    def vector_unconditional(self, term: Term, lane: str, width: int) -> tuple[C, bool]:
        """A vector behind a condition: one ternary where all lanes share it, else lane by lane."""
        if lane not in term.names:
            return self.unconditional(term), False
        kind = vector_type(term.type.name, width)
        if isinstance(term, Choice):
            conditions, then, otherwise = guards(term)
            if not any(lane in c.index.names() for c in conditions):

                def part(t: Term, *, holds: bool) -> C:
                    with self.behind(conditions, holds=holds):
                        c, is_vector = self.vector_unconditional(t, lane, width)
                    return c if is_vector else CallC(f"({kind})", (c,))

                inner, other = part(then, holds=True), part(otherwise, holds=False)
                return Ternary(condition_c(conditions), inner, other), True
            row = self.row(then, conditions, lane, width)
            if row is not None:
                each = CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width)))
                return Ternary(*row, each), True
        if isinstance(term, Load) and term.memory.space != "private":
            start = self.start(term.index, lane, width)
            if start is not None:
                self.trace.append(Access(term.memory, start, width, store=False))
                return self.run_of(Load(term.memory, start), width), True
        return CallC(f"({kind})", tuple(self.lanes_behind(term, lane, width))), True

    def lanes_behind(self, term: Term, lane: str, width: int) -> Iterator[C]:
        """Lanes behind a condition, each by itself."""
        for k in range(width):
            one = at_lane(self.read, term, lane, k)
            self.share(one)
            yield self.unconditional(one)

    def fold_lanes(self, term: Lanes) -> C:
        """A fold over lanes: `dot` for a sum of products of up to four lanes, else lane by lane."""
        if term.width == 1:
            return self.scalar(term.step(term.init, at_lane(self.read, term.vector, term.lane, 0)))
        product = term.vector
        zero = isinstance(term.init, Constant) and term.init.value == 0
        factors = product.args if isinstance(product, Apply) and product.op == "*" else ()
        if factors and term.type.name == "f32" and self.adds(term):
            vectors = [self.whole(a, term.lane, term.width) for a in factors]
            parts: list[C] = [] if zero else [self.scalar(term.init)]
            for start in range(0, term.width, 4):
                stop = min(start + 4, term.width)
                part = CallC("dot", tuple(lanes_c(v, start, stop, term.width) for v in vectors))
                parts.append(part)
            return functools.reduce(lambda total, part: Infix("+", total, part), parts)
        name = self.whole(term.vector, term.lane, term.width).text
        result = term.init
        for k in range(term.width):
            result = term.step(result, Variable(name, term.vector.type, k))
            if repeated(result):  # nested, the steps would be deeper than Python goes
                result = self.variable(result)
        return self.scalar(result)

    def adds(self, term: Lanes) -> bool:
        """Whether a fold over lanes is a sum; all steps of a loop have one function for it."""
        found = self.sums.get(term.step)
        if found is None:
            probe = Variable("probe", term.type, 0), Variable("probe", term.vector.type, 1)
            adds = term.step(*probe) is self.read.operate("+", probe)
            found = self.sums[term.step] = adds
        return found

    def whole(self, term: Term, lane: str, width: int) -> Text:
        """A vector in a variable, so that its lanes can be named."""
        c, is_vector = self.vector(term, lane, width)
        if isinstance(c, Text) and is_vector:
            return c
        kind = vector_type(term.type.name, width)
        return self.declare(kind, c if is_vector else CallC(f"({kind})", (c,)))

"""Loops that carry values from step to step in registers: scans, iterations, rotating windows.

See Note [Accumulators in place] in `liftpy.loops.emit` for the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.expr import Expr
from liftpy.ir.nat import ZERO, Nat, nat, var
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.primitives import IterateSeq, ScanSeq, Slide, SlideSeq
from liftpy.primitives.map import array_of
from liftpy.views.access import Choice, Constant, Load, Memory, memory_view

if TYPE_CHECKING:
    from liftpy.loops.emit import Emitter, Env

#: Code that leaves step `k`'s accumulator, of which the value before is known, in a place.
Step: TypeAlias = Callable[[Nat, Value, Value], None]


class HazardError(Exception):
    """An accumulator in place is read too late; it never leaves `accumulate`."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.name)
        self.memory = memory


class After(Protocol):
    """Code at the end of step `k` that may read the new accumulator."""

    def __call__(self, k: Nat, held: Value) -> None: ...


class Vector(Pull):
    """A pull array that is a vector: its lanes are stored together."""


def vectors(t: Type, value: Value) -> Value:
    """A value with its vectors marked as such."""
    match t:
        case VectorType():
            return Vector(value.length, value.__getitem__)
        case ArrayType(element, _):
            return Pull(value.length, lambda i: vectors(element, value[i]))
        case TupleType(elements):
            return tuple(vectors(e, value[k]) for k, e in enumerate(elements))
        case _:
            return value


def memories_of(value: Value) -> list[Memory]:
    """The memories that a destination consists of."""
    match value:
        case Pull():
            return memories_of(value[ZERO])
        case Parts() | tuple():
            return [m for part in value for m in memories_of(part)]
        case _:
            return [value.memory]


def anywhere(value: Value) -> Value:
    """The element of a pull array at unknown indices."""
    depth = 0
    while isinstance(value, Pull):
        value = value[var(f"any{depth}", 0, int(value.length) - 1)]
        depth += 1
    return value


def is_private(dest: Value) -> bool:
    """Whether a destination is registers of the work-item, a place for every scalar."""
    match anywhere(dest):
        case Load(memory):
            return memory.space == "private"
        case Parts(pairs):
            return is_private(pairs)
        case tuple(parts):
            return all(map(is_private, parts))
        case Choice() | Constant():
            return False
        case place:
            message = f"no destination in {type(place).__name__}"
            raise InternalError(message)


def accumulate(
    emitter: Emitter,
    dest: Value,
    t: Type,
    length: int,
    step: Step,
    *,
    unroll: bool = False,
    after: After | None = None,
) -> None:
    """The loop of a fold in private memory `dest`, which holds the initial value.

    A step works in place; if it reads too late what it has overwritten, it is emitted again with a
    place of its own for its result.
    """

    def fold(place: Callable[[Nat, Value], None]) -> None:
        def body(k: Nat, held: Value) -> None:
            place(k, held)
            if after is not None:
                with emitter.settled(dest):
                    after(k, held)

        emitter.fold(dest, length, body, unroll=unroll)

    def apart(k: Nat, held: Value) -> None:
        value = memory_view(emitter.fresh("next"), t, emitter.new_private)
        step(k, held, value)
        emitter.copy(vectors(t, value), dest)

    marks = emitter.mark()
    try:
        fold(lambda k, held: step(k, held, dest))
    except HazardError as hazard:
        if hazard.memory not in memories_of(dest):
            raise
        emitter.back(marks)
        fold(apart)


def scan(emitter: Emitter, fun: ScanSeq, init: Expr, xs: Expr, env: Env, dest: Pull) -> None:
    """A scan: a fold that stores its accumulator after each step."""
    held = memory_view(emitter.fresh("acc"), init.type, emitter.new_private)
    emitter.generate(init, env, held)
    source = emitter.view(xs, env)
    accumulate(
        emitter,
        held,
        init.type,
        int(source.length),
        lambda k, old, place: emitter.generate(
            fun.f.body, {**env, **emitter.computed(fun.f, old, source[k])}, place
        ),
        after=lambda k, held: emitter.copy(vectors(init.type, held), dest[k]),
    )


def iterate(emitter: Emitter, fun: IterateSeq, x: Expr, env: Env, dest: Value) -> None:
    """An iteration within a work-item: a fold whose steps see the accumulator alone."""
    value = dest
    if not is_private(dest):
        value = memory_view(emitter.fresh("acc"), x.type, emitter.new_private)
    emitter.generate(x, env, value)
    (param,) = fun.f.params
    accumulate(
        emitter,
        value,
        x.type,
        int(fun.times),
        lambda _, old, place: emitter.generate(fun.f.body, {**env, param: old}, place),
    )
    if value is not dest:
        emitter.copy(vectors(x.type, value), dest)


def slide(emitter: Emitter, fun: SlideSeq, xs: Expr, env: Env, dest: Pull) -> None:
    """Windows in registers: each step moves what is shared and loads `step` new elements.

    Element `j` of window `i + 1` is element `j + step` of window `i` (proof: tests/contracts).
    """
    windows = Slide(fun.size, fun.step).meaning(emitter.read, emitter.view(xs, env))
    element = array_of(fun.name, xs.type).element
    size, shared = int(fun.size), int(fun.size) - int(fun.step)
    emitter.check_steps(size)
    held = memory_view(emitter.fresh("p"), ArrayType(element, fun.size), emitter.new_private)

    def load(i: Nat, j: int) -> None:
        emitter.copy(vectors(element, windows[i][nat(j)]), held[nat(j)])

    (param,) = fun.f.params

    def body(i: Nat) -> None:
        for j in range(shared, size):
            load(i, j)
        emitter.generate(fun.f.body, {**env, param: held}, dest[i])
        for j in range(shared):
            emitter.copy(vectors(element, held[nat(j + size - shared)]), held[nat(j)])

    for j in range(shared):
        load(ZERO, j)
    emitter.sequential(int(windows.length), body)

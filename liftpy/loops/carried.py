"""Loops that carry values from step to step in registers: folds, scans, iterations, windows.

A fold in private memory keeps its accumulator there. A step stores the new value, and reads the old
one as a snapshot (`liftpy.loops.in_place`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from liftpy.ir.expr import Expr, Lambda
from liftpy.ir.nat import ZERO, Nat, var
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.loops.nest import Snapshot
from liftpy.primitives import IterateSeq, ScanSeq, Slide, SlideSeq
from liftpy.primitives.map import array_of
from liftpy.views.access import Load, Memory

if TYPE_CHECKING:
    from liftpy.loops.emit import Emitter, Env


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
    """Whether a destination is in the work-item's registers, with a place for every scalar."""
    match anywhere(dest):
        case Parts(pairs):
            return is_private(pairs)
        case tuple(parts):
            return all(map(is_private, parts))
        case place:  # behind a condition, not every scalar has one
            return isinstance(place, Load) and place.memory.space == "private"


def accumulate(
    emitter: Emitter,
    dest: Value,
    length: int,
    step: Callable[[Nat, Value], None],
    *,
    unroll: bool = False,
) -> None:
    """The loop of a fold in private memory `dest`, which holds the initial value.

    `step` receives the previous accumulator, and leaves the new one in `dest`.
    """
    emitter.snapshots += 1
    number = emitter.snapshots

    def body(k: Nat) -> None:
        emitter.put(Snapshot(number, tuple(memories_of(dest))))
        step(k, as_of(dest, number))

    emitter.sequential(length, body, unroll=unroll)


def as_of(value: Value, snapshot: int) -> Value:
    """A value in memory as a snapshot has it."""
    match value:
        case Pull():
            return type(value)(value.length, lambda i: as_of(value[i], snapshot))
        case tuple():
            return tuple(as_of(part, snapshot) for part in value)
        case _:
            return Load(value.memory, value.index, snapshot)


def fold(
    emitter: Emitter,
    f: Lambda,
    init: Expr,
    xs: Expr,
    env: Env,
    dest: Value,
    after: Callable[[Nat], None] = lambda k: None,
    *,
    unroll: bool = False,
) -> None:
    """A fold in registers; `after` is called after each step."""
    emitter.generate(init, env, dest)
    source = emitter.view(xs, env)

    def step(k: Nat, old: Value) -> None:
        emitter.generate(f.body, {**env, **emitter.computed(f, old, source[k])}, dest)
        after(k)

    accumulate(emitter, dest, int(source.length), step, unroll=unroll)


def scan(emitter: Emitter, fun: ScanSeq, init: Expr, xs: Expr, env: Env, dest: Pull) -> None:
    """A scan: a fold that stores its accumulator after each step."""
    t = init.type
    held = emitter.registers("acc", t)
    fold(emitter, fun.f, init, xs, env, held, lambda k: emitter.copy(vectors(t, held), dest[k]))


def iterate(emitter: Emitter, fun: IterateSeq, x: Expr, env: Env, dest: Value) -> None:
    """An iteration in registers: a fold whose steps read only the accumulator."""
    emitter.generate(x, env, dest)
    (param,) = fun.f.params

    def step(_: Nat, old: Value) -> None:
        emitter.generate(fun.f.body, {**env, param: old}, dest)

    accumulate(emitter, dest, int(fun.times), step)


def slide(emitter: Emitter, fun: SlideSeq, xs: Expr, env: Env, dest: Pull) -> None:
    """Windows in registers: each step moves the shared elements and loads `step` new ones.

    Element `j` of window `i + 1` is element `j + step` of window `i` (proof: tests/contracts).
    """
    windows = Slide(fun.size, fun.step).meaning(emitter.read, emitter.view(xs, env))
    element = array_of(fun.name, xs.type).element
    size, shared = int(fun.size), int(fun.size) - int(fun.step)
    held = emitter.registers("p", ArrayType(element, fun.size))

    def load(i: Nat, first: int, last: int) -> None:
        emitter.sequential(
            last - first,
            lambda j: emitter.copy(vectors(element, windows[i][first + j]), held[first + j]),
            unroll=True,
        )

    (param,) = fun.f.params

    def body(i: Nat) -> None:
        load(i, shared, size)
        emitter.generate(fun.f.body, {**env, param: held}, dest[i])
        emitter.sequential(
            shared,
            lambda j: emitter.copy(vectors(element, held[j + size - shared]), held[j]),
            unroll=True,
        )

    load(ZERO, 0, shared)
    emitter.sequential(int(windows.length), body)

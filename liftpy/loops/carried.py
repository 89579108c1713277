"""Loops that carry values from step to step in registers: folds, scans, iterations, windows.

A fold in private memory keeps its accumulator there. A step stores the new value, and reads the old
one as a snapshot (`liftpy.loops.in_place`).
"""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ZERO, Nat
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import ArrayType
from liftpy.loops.nest import Snapshot
from liftpy.loops.stepping import Stepping, memories_of, vectors
from liftpy.loops.viewing import Env
from liftpy.primitives import AnyScan, IterateSeq, Slide, SlideSeq
from liftpy.primitives.map import array_of
from liftpy.views.terms import Load


def accumulate(
    emitter: Stepping,
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
    emitter: Stepping,
    f: Lambda,
    init: Expr,
    xs: Expr,
    env: Env,
    dest: Value,
    *,
    unroll: bool = False,
) -> None:
    """A fold in registers."""
    emitter.generate(init, env, dest)
    source = emitter.argument(xs, env)

    def step(k: Nat, old: Value) -> None:
        emitter.generate(f.body, {**env, **emitter.computed(f, old, source[k])}, dest)

    accumulate(emitter, dest, int(source.length), step, unroll=unroll)


def scan(emitter: Stepping, fun: AnyScan, init: Expr, xs: Expr, env: Env, dest: Pull) -> None:
    """A scan: a fold that stores its accumulator after each step, or before it if `exclusive`."""
    t, f = init.type, fun.f
    held = emitter.registers("acc", t)
    emitter.generate(init, env, held)
    source = emitter.argument(xs, env)

    def step(k: Nat, old: Value) -> None:
        if fun.exclusive:
            emitter.copy(vectors(t, held), dest[k])
        emitter.generate(f.body, {**env, **emitter.computed(f, old, source[k])}, held)
        if not fun.exclusive:
            emitter.copy(vectors(t, held), dest[k])

    accumulate(emitter, held, int(source.length), step)


def iterate(emitter: Stepping, fun: IterateSeq, x: Expr, env: Env, dest: Value) -> None:
    """An iteration in registers: a fold whose steps read only the accumulator."""
    emitter.generate(x, env, dest)
    (param,) = fun.f.params

    def step(_: Nat, old: Value) -> None:
        emitter.generate(fun.f.body, {**env, param: old}, dest)

    accumulate(emitter, dest, int(fun.times), step)


def slide(emitter: Stepping, fun: SlideSeq, xs: Expr, env: Env, dest: Pull) -> None:
    """Windows in registers: each step moves the shared elements and loads `step` new ones.

    Element `j` of window `i + 1` is element `j + step` of window `i` (proof: tests/contracts).
    """
    windows = Slide(fun.size, fun.step).meaning(emitter.read, emitter.argument(xs, env))
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

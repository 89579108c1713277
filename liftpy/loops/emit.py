"""From a kernel of a lowered program to its loop tree.

The expression is walked with a destination. Loops come from the lowered maps and reductions,
indices from views: what is read is the meaning of the argument applied to memory, what is written
the inverse of the layouts at the end applied to the destination.

Private memory has no addresses, so a loop whose variable would index it is unrolled. That is found
while emitting: the access raises `UnrollError`, the loop of that variable is emitted again,
unrolled.

Note [Accumulators in place]. A reduction whose destination is private works in it. While its step
runs, the accumulator has a name (an `alias`) of its own: reading the memory under an older name, or
reading an element that this step has already overwritten, would see a new value for an old one.
Such a read raises `HazardError`, and the reduction is emitted again with the step's result in
memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from liftpy.errors import InternalError
from liftpy.ir.expr import (
    Expr,
    FunCall,
    Lambda,
    Primitive,
    Tuple,
)
from liftpy.ir.nat import ZERO, Nat, var
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import Type
from liftpy.loops import carried
from liftpy.loops.carried import Vector, anywhere, memories_of, vectors
from liftpy.loops.reading import UnrollError
from liftpy.loops.tree import For
from liftpy.loops.viewing import Env, Viewing
from liftpy.primitives import (
    LAYOUTS,
    IterateSeq,
    Map,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqUnroll,
    MapWrg,
    ReduceSeq,
    ReduceSeqUnroll,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToStreamed,
)
from liftpy.primitives import (
    Memory as MemoryPrimitive,
)
from liftpy.primitives.output import through
from liftpy.primitives.work import computes
from liftpy.views.access import (
    Choice,
    Constant,
    Load,
    is_known,
    memory_view,
)


@dataclass
class Emitter(Viewing):
    """The state of one kernel's emission."""

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Code that leaves the value of `expr` in `dest`."""
        match expr:
            case FunCall(MapGlb() | MapWrg() | MapLcl() | MapSeq() as fun, (xs,)):
                source = self.view(xs, env)
                self.loop(
                    fun,
                    int(source.length),
                    lambda i: self.generate(
                        fun.f.body, {**env, **self.computed(fun.f, source[i])}, dest[i]
                    ),
                    unroll=carried.is_private(dest),
                )
            case FunCall(ReduceSeq() | ReduceSeqUnroll() as fun, (init, xs)):
                self.reduce(fun, init, xs, expr.type, env, dest)
            case FunCall(ScanSeq() as fun, (init, xs)):
                carried.scan(self, fun, init, xs, env, dest)
            case FunCall(IterateSeq() as fun, (x,)):
                carried.iterate(self, fun, x, env, dest)
            case FunCall(SlideSeq() as fun, (xs,)):
                carried.slide(self, fun, xs, env, dest)
            case FunCall(Lambda() as f, args):
                values = [self.view(a, env) for a in args]
                self.generate(f.body, {**env, **self.computed(f, *values)}, dest)
            case FunCall(MemoryPrimitive() as m, (arg,)):
                if isinstance(m, ToGlobal):
                    with self.streaming(streams=isinstance(m, ToStreamed)):
                        self.generate(arg, env, dest)
                else:
                    self.copy(self.materialise(m, arg, env), dest)
            case Tuple(elements):
                for k, e in enumerate(elements):
                    self.generate(e, env, dest[k])
            case FunCall(Primitive() as p, args) if (
                inner := self.inner(p, args, dest)
            ) is not None:
                for arg, place in zip(args, inner, strict=True):
                    self.generate(arg, env, place)
            case _:
                value = self.view(expr, env)
                if not self.stands_there(value, dest):
                    self.copy(vectors(expr.type, value), dest)

    def inner(self, p: Primitive, args: tuple[Expr, ...], dest: Value) -> tuple[Value, ...] | None:
        """Where the arguments of a layout at the end go; None if they have to be read instead."""
        if not isinstance(p, (*LAYOUTS, Map)) or not any(map(computes, args)):
            return None
        return through(p, args, dest, self.read)

    def copy(self, value: Value, dest: Value) -> None:
        """Store a value that needs no further computation than its terms."""
        match dest:
            case Pull():
                if isinstance(value, Vector):
                    for lanes, place in by_component(value, dest):
                        self.store_vector(lanes, place)
                else:
                    self.sequential(
                        int(dest.length),
                        lambda i: self.copy(value[i], dest[i]),
                        unroll=carried.is_private(dest),
                    )
            case tuple():
                for k, part in enumerate(dest):
                    self.copy(value[k], part)
            case Load() | Choice() | Constant():
                self.store(dest, value)
            case _:
                message = f"no destination in {type(dest).__name__}"
                raise InternalError(message)

    def stands_there(self, value: Value, dest: Value) -> bool:
        """Whether a value is the memory that it is to be copied to, under its name of now."""
        if isinstance(value, tuple) and isinstance(dest, tuple):
            return all(map(self.stands_there, value, dest))
        if not (is_known(value) and is_known(dest)):
            return False
        source, target = anywhere(value), anywhere(dest)
        if not (isinstance(source, Load) and isinstance(target, Load)):
            return False
        if source.memory == target.memory:
            self.only_now("what is live")
        return (
            source.memory == target.memory
            and source.index == target.index
            and source.alias == self.live.get(source.memory, 0)
            and not (source.alias and self.stored.get((source.alias, source.memory)))
        )

    def loop(
        self,
        fun: MapGlb | MapWrg | MapLcl | MapSeq,
        length: int,
        body: Callable[[Nat], None],
        *,
        unroll: bool,
    ) -> None:
        """A map's loop: over ids where it is parallel, unrolled if private memory asks for it."""
        match fun:
            case MapGlb():
                self.parallel(f"gid{fun.dim}", self.global_size[fun.dim], length, body)
            case MapWrg():
                groups = self.global_size[fun.dim] // self.local_size[fun.dim]
                self.parallel(f"wid{fun.dim}", groups, length, body)
            case MapLcl():
                size = self.local_size[fun.dim]
                even = length % size == 0
                self.uneven += not even
                try:
                    self.parallel(f"lid{fun.dim}", size, length, body)
                finally:
                    self.uneven -= not even
            case _:
                self.sequential(length, body, unroll=unroll or isinstance(fun, MapSeqUnroll))

    def parallel(self, name: str, launched: int, length: int, body: Callable[[Nat], None]) -> None:
        """The loop over ids; none where the launch covers the extent."""
        self.ids.add(name)
        if launched == length:
            body(var(name, 0, length - 1) if length > 1 else ZERO)
            return
        counter = self.fresh("i")
        self.open(counter)
        body(var(counter, 0, length - 1))
        self.put(For(counter, name, length, launched, self.end()))

    def sequential(self, length: int, body: Callable[[Nat], None], *, unroll: bool = False) -> None:
        """A loop of one work-item."""
        if length == 1:
            body(ZERO)
            return
        if not unroll and self.step is None:
            marks = self.mark()
            counter = self.fresh("i")
            self.open(counter)
            try:
                body(var(counter, 0, length - 1))
            except UnrollError as error:
                self.back(marks)
                if counter not in error.names:
                    raise
            else:
                inner = self.end()
                if inner.statements:
                    self.put(For(counter, 0, length, 1, inner))
                return
        self.unrolled(length, body, where_needed=not unroll)

    def reduce(
        self, fun: ReduceSeq | ReduceSeqUnroll, init: Expr, xs: Expr, t: Type, env: Env, dest: Value
    ) -> None:
        """A fold into private memory: into `dest` where that is private."""
        if not carried.is_private(dest):
            value = memory_view(self.fresh("acc"), t, self.new_private)
            self.reduce(fun, init, xs, t, env, value)
            self.copy(vectors(t, value), dest)
            return
        self.generate(init, env, dest)
        source = self.view(xs, env)
        carried.accumulate(
            self,
            dest,
            t,
            int(source.length),
            lambda k, held, place: self.generate(
                fun.f.body, {**env, **self.computed(fun.f, held, source[k])}, place
            ),
            unroll=isinstance(fun, ReduceSeqUnroll),
        )

    @contextmanager
    def settled(self, dest: Value) -> Generator[None]:
        """While a step's result is read: what the step has stored is its new value, no hazard."""
        self.only_now("a scan's result")
        keys = [(self.live.get(m, 0), m) for m in memories_of(dest)]
        stored = {key: self.stored.get(key, set[int]()) for key in keys}
        for key in keys:
            self.stored[key] = set()
        yield
        for key in keys:
            self.stored.setdefault(key, set()).update(stored[key])

    def fold(
        self, dest: Value, length: int, step: Callable[[Nat, Value], None], *, unroll: bool
    ) -> None:
        """The loop of a fold; in `step` the accumulator has a name of its own."""
        memories = memories_of(dest)
        before = {m: self.live.get(m, 0) for m in memories}
        alias = self.fresh_alias()

        def begin() -> None:
            for m in memories:
                self.live[m] = alias
                self.stored[alias, m] = set()

        def body(k: Nat) -> None:
            self.do(begin)
            step(k, renamed(dest, alias))

        self.sequential(length, body, unroll=unroll)
        for m in memories:
            written = self.stored.pop((alias, m), set[int]())
            self.live[m] = before[m]
            self.stored.setdefault((before[m], m), set()).update(written)

    def fresh_alias(self) -> int:
        """A name for an accumulator, different from every other."""
        self.only_now("an accumulator")
        self.counters["#alias"] = self.counters.get("#alias", 0) + 1
        return self.counters["#alias"]


def by_component(value: Vector, dest: Pull) -> Iterator[tuple[Vector, Pull]]:
    """A vector of tuples as vectors of its components, each with where it goes."""
    first = dest[ZERO]
    if not isinstance(first, tuple):
        yield value, dest
        return
    for k in range(len(first)):
        part = Vector(value.length, lambda i, k=k: value[i][k])
        yield from by_component(part, Pull(dest.length, lambda i, k=k: dest[i][k]))


def renamed(value: Value, alias: int) -> Value:
    """The same memory under another name."""
    match value:
        case Pull():
            return type(value)(value.length, lambda i: renamed(value[i], alias))
        case tuple():
            return tuple(renamed(part, alias) for part in value)
        case _:
            return Load(value.memory, value.index, alias)

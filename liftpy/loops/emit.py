"""Lower the expression of a kernel to its loop nest.

The expression is walked with a destination. Loops come from the lowered maps and reductions, and
indices from views: a read is the meaning of the argument applied to memory, a write is the inverse
of the final layouts applied to the destination. Each loop is visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from liftpy.ir.expr import Expr, FunCall, Lambda, Tuple
from liftpy.ir.nat import ZERO, Nat, var
from liftpy.ir.pull import Pull, Value
from liftpy.loops import carried
from liftpy.loops.carried import Vector, anywhere, is_private, vectors
from liftpy.loops.nest import Assign, Loop, Restore
from liftpy.loops.tree import Barrier
from liftpy.loops.viewing import Env, Viewing
from liftpy.primitives import (
    IterateSeq,
    Layout,
    Map,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapWrg,
    MemoryPrimitive,
    ReduceSeq,
    ReduceSeqUnroll,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToStreamed,
)
from liftpy.primitives.output import through
from liftpy.primitives.work import computes
from liftpy.views.access import Load, is_known


@dataclass
class Emitter(Viewing):
    """The state of one kernel's emission."""

    snapshots: int = field(init=False, default=0)

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Emit code that leaves the value of `expr` in `dest`."""
        match expr:
            case FunCall(MapGlb() | MapWrg() | MapLcl() | MapSeq() as fun, (xs,)):
                source = self.view(xs, env)
                self.loop(
                    fun,
                    int(source.length),
                    lambda i: self.generate(
                        fun.f.body, {**env, **self.computed(fun.f, source[i])}, dest[i]
                    ),
                    unroll=is_private(dest),
                )
            case FunCall(ReduceSeq() | ReduceSeqUnroll() as fun, (init, xs)) if is_private(dest):
                unroll = isinstance(fun, ReduceSeqUnroll)
                carried.fold(self, fun.f, init, xs, env, dest, unroll=unroll)
            case FunCall(ScanSeq() as fun, (init, xs)):
                carried.scan(self, fun, init, xs, env, dest)
            case FunCall(IterateSeq() as fun, (x,)) if is_private(dest):
                carried.iterate(self, fun, x, env, dest)
            case FunCall(SlideSeq() as fun, (xs,)):
                carried.slide(self, fun, xs, env, dest)
            case FunCall(Lambda() as f, args):
                values = [self.view(a, env) for a in args]
                self.generate(f.body, {**env, **self.computed(f, *values)}, dest)
            case FunCall(MemoryPrimitive() as m, (arg,)):
                if isinstance(m, ToGlobal) and not is_private(dest):
                    before, self.nontemporal = (
                        self.nontemporal,
                        self.nontemporal or isinstance(m, ToStreamed),
                    )
                    self.generate(arg, env, dest)
                    self.nontemporal = before
                else:
                    self.copy(self.materialise(m, arg, env), dest)
            case Tuple(elements):
                for k, e in enumerate(elements):
                    self.generate(e, env, dest[k])
            case FunCall(Layout() | Map() as p, args) if any(map(computes, args)) and (
                inner := through(p, args, dest, self.read)
            ):
                for arg, place in zip(args, inner, strict=True):
                    self.generate(arg, env, place)
            case _:
                value = self.view(expr, env)
                if not self.keeps(value, dest):
                    self.copy(vectors(expr.type, value), dest)

    def keeps(self, value: Value, dest: Value) -> bool:
        """Whether a value is the present or an earlier value of its memory, and needs no copy."""
        if isinstance(value, tuple) and isinstance(dest, tuple):
            return all(self.keeps(v, d) for v, d in zip(value, dest, strict=True))
        if not (is_known(value) and is_known(dest)):
            return False
        source, target = anywhere(value), anywhere(dest)
        if not (isinstance(source, Load) and isinstance(target, Load)):
            return False
        if (source.memory, source.index) != (target.memory, target.index):
            return False
        if source.snapshot:
            self.put(Restore(source.snapshot, source.memory))
        return True

    def copy(self, value: Value, dest: Value) -> None:
        """Store a value whose terms are all that has to be computed."""
        match dest:
            case Pull():
                if isinstance(value, Vector):
                    for lanes, place in by_component(value, dest):
                        self.store_vector(lanes, place)
                else:
                    self.sequential(
                        int(dest.length),
                        lambda i: self.copy(value[i], dest[i]),
                        unroll=is_private(dest),
                    )
            case tuple():
                for k, part in enumerate(dest):
                    self.copy(value[k], part)
            case _:
                self.put(Assign(dest, value))

    def store_vector(self, value: Vector, dest: Pull) -> None:
        """Store all lanes of a vector together."""
        width = int(dest.length)
        if width == 1:
            self.put(Assign(dest[ZERO], value[ZERO]))
            return
        lane = f"store{width}"
        index = var(lane, 0, width - 1)
        self.put(Assign(dest[index], value[index], lane, width, self.nontemporal))

    def loop(
        self,
        fun: MapGlb | MapWrg | MapLcl | MapSeq,
        length: int,
        body: Callable[[Nat], None],
        *,
        unroll: bool,
    ) -> None:
        """The loop of a map, over ids if it is parallel."""
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
                self.parallel(f"lid{fun.dim}", size, length, body)
                self.uneven -= not even
            case _:
                unroll = unroll or isinstance(fun, MapSeqUnroll)
                self.sequential(length, body, unroll=unroll, ahead=isinstance(fun, MapSeqAhead))

    def parallel(self, name: str, launched: int, length: int, body: Callable[[Nat], None]) -> None:
        """The loop over ids; none if the launch covers the extent."""
        self.ids.add(name)
        if launched == length:
            body(var(name, 0, length - 1) if length > 1 else ZERO)
        else:
            self.read_once(self.fresh("i"), name, length, launched, body)

    def sequential(
        self,
        length: int,
        body: Callable[[Nat], None],
        *,
        unroll: bool = False,
        ahead: bool = False,
    ) -> None:
        """A loop of one work-item."""
        if length == 1:
            body(ZERO)
        else:
            counter = self.fresh("u" if unroll else "i")  # loops that stay are numbered in a row
            self.read_once(counter, 0, length, 1, body, asked=unroll, ahead=ahead)

    def read_once(
        self,
        counter: str,
        first: str | int,
        length: int,
        step: int,
        body: Callable[[Nat], None],
        *,
        asked: bool = False,
        ahead: bool = False,
    ) -> None:
        """A loop; one that fills local memory ends with a barrier for its readers."""
        self.blocks.append([])
        body(var(counter, 0, length - 1))
        made = self.blocks.pop()
        if any(isinstance(s, Barrier) for s in made):
            made.append(Barrier())
        if made:
            self.put(Loop(counter, first, length, step, tuple(made), asked, ahead))


def by_component(value: Vector, dest: Pull) -> Iterator[tuple[Vector, Pull]]:
    """A vector of tuples as vectors of its components, each with its destination."""
    first = dest[ZERO]
    if not isinstance(first, tuple):
        yield value, dest
        return
    for k in range(len(first)):
        part = Vector(value.length, lambda i, k=k: value[i][k])
        yield from by_component(part, Pull(dest.length, lambda i, k=k: dest[i][k]))

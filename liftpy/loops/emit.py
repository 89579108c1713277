"""Lower the expression of a kernel to its loop nest.

The expression is walked with a destination. Loops come from the lowered maps and reductions, and
indices from views: a read is the meaning of the argument applied to memory, a write is the inverse
of the final layouts applied to the destination. Each loop is visited once.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.pull import Value
from liftpy.loops import bins, carried, updates
from liftpy.loops.nest import Restore
from liftpy.loops.stepping import Stepping, anywhere, is_private, scalar_count, vectors
from liftpy.loops.subgroups import by_items, by_subgroups, in_subgroup, over_items
from liftpy.loops.viewing import Env
from liftpy.primitives import (
    ExclusiveScanSeq,
    IterateSeq,
    Layout,
    Map,
    MapGlb,
    MapHost,
    MapItem,
    MapLcl,
    MapSeq,
    MapSubgroup,
    MapWrg,
    MemoryPrimitive,
    ReduceByIndexAtomic,
    ReduceByIndexSeq,
    ReduceInPlace,
    ReduceItems,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceSubgroups,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToStreamed,
    ToSubgroup,
)
from liftpy.primitives.output import through
from liftpy.primitives.work import computes
from liftpy.views.access import is_known
from liftpy.views.terms import Load


class Emitter(Stepping):
    """The emission of one kernel: the cases of `generate`."""

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Emit code that leaves the value of `expr` in `dest`."""
        match expr:
            case FunCall(
                MapHost() | MapGlb() | MapWrg() | MapLcl() | MapSubgroup() | MapSeq() as fun, (xs,)
            ):
                source = self.argument(xs, env)
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
            case FunCall(MapItem() as fun, (xs,)):
                over_items(self, fun, xs, env, dest)
            case FunCall(ReduceItems() as fun, (init, xs)) if is_private(dest):
                by_items(self, fun, init, xs, env, dest)
            case FunCall(ReduceSubgroups() as fun, (init, xs)) if is_private(dest):
                by_subgroups(self, fun, init, xs, env, dest)
            case FunCall(ReduceInPlace() as fun, (init, xs)):
                updates.in_passes(self, fun, init, xs, env, dest)
            case FunCall((ScanSeq() | ExclusiveScanSeq()) as fun, (init, xs)):
                carried.scan(self, fun, init, xs, env, dest)
            case FunCall(ReduceByIndexSeq() as fun, (init, pairs)):
                bins.by_index(self, fun, init, pairs, env, dest)
            case FunCall(ReduceByIndexAtomic() as fun, (_, pairs)):
                bins.atomically(self, fun, pairs, env, dest)
            case FunCall(IterateSeq() as fun, (x,)) if is_private(dest):
                carried.iterate(self, fun, x, env, dest)
            case FunCall(SlideSeq() as fun, (xs,)):
                carried.slide(self, fun, xs, env, dest)
            case FunCall(Lambda() as f, args):
                values = [self.argument(a, env) for a in args]
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

    def materialise(self, m: MemoryPrimitive, arg: Expr, env: Env) -> Value:
        if isinstance(m, ToSubgroup):
            return in_subgroup(self, arg, env)
        return super().materialise(m, arg, env)

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
        if source.snapshot and scalar_count(dest) < source.memory.length:
            return False  # a part of the accumulator: other parts may have their new values
        if source.snapshot:
            self.put(Restore(source.snapshot, source.memory))
        return True

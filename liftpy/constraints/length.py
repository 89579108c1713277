"""An upper bound on the statements in the code of a kernel, over sizes that may be open.

It follows the emitter step by step (`liftpy.loops.emit`), with the meanings of the primitives over
variables: what is read, what is held in a variable, what has to be stored first. A loop whose
counter indexes registers is unrolled: code that depends on the counter counts once per iteration,
and a load that does not counts once. A term that only guarded values mention is computed once for
each path of conditions that leads to it, and if these conditions differ by lane, for each lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from liftpy.constraints.accumulators import may_read_overwritten
from liftpy.constraints.subgroup_length import Env, SubgroupLength
from liftpy.constraints.terms import NOTHING, Term, TermReader
from liftpy.errors import InternalError
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Function, Lambda, UserFun
from liftpy.ir.nat import ONE, ZERO, Nat, NatLike, greatest, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, ScalarType, TupleType, Type, VectorType
from liftpy.ir.uses import Component, Uses, used_often
from liftpy.ir.walk import children, has_call, with_child
from liftpy.kernels.chain import Kernel
from liftpy.kernels.launch import demand, divided
from liftpy.primitives import (
    AnyIterate,
    AnyReduce,
    AnyReduceByIndex,
    AnyScan,
    ByClasses,
    Layout,
    Map,
    MapGlb,
    MapHost,
    MapItem,
    MapLcl,
    MapSeq,
    MapSeqUnroll,
    MapSubgroup,
    MapWrg,
    MemoryPrimitive,
    ReduceInPlace,
    ReduceItems,
    ReduceSeqUnroll,
    ReduceSubgroups,
    ReduceVec,
    Slide,
    SlideSeq,
    ToGlobal,
    ToLocal,
    ToSubgroup,
)
from liftpy.primitives.levels import PARALLEL
from liftpy.primitives.map import array_of
from liftpy.primitives.output import through
from liftpy.primitives.work import computes


class Length(SubgroupLength):
    """The statements of a kernel, counted by following the emitter."""

    def __init__(self, kernel: Expr, *, one_cell_at_no_index: bool = False) -> None:
        super().__init__(one_cell_at_no_index=one_cell_at_no_index)
        self.read.hold = self.variable
        self.read.compare = self.compared
        self.kernel = kernel

    def compared(self, count: NatLike) -> None:
        """Count variables that hold comparisons."""
        self.frame.each = self.frame.each + count

    def statements(self, reads: tuple[Param, ...], writes: Param) -> Nat:
        """The number of statements of the kernel."""
        self.begin()
        env: Env = {p: self.memory(p.type, "load", p.name) for p in reads}
        dest = own = self.memory(writes.type, "global", writes.name)
        if self.kernel.type != writes.type:  # each iteration of the host fills it again
            dest = self.memory(self.kernel.type, "global", writes.name)
        self.generate(self.kernel, {**env, writes: own}, dest)
        return self.frame.total()

    # --- values ---

    def view(self, expr: Expr, env: Env) -> Value:
        """The value of an argument; parts that must be stored first are stored."""
        match expr:
            case Param():
                return env[expr]
            case FunCall(fun, args):
                return self.called(expr, fun, args, env)
            case Literal(value, t):
                return self.read.literal(value, t)
            case Tuple(elements):
                return tuple(self.view(e, env) for e in elements)
            case _:
                message = f"no view of {type(expr).__name__}"
                raise InternalError(message)

    def called(self, expr: FunCall, fun: Function, args: tuple[Expr, ...], env: Env) -> Value:
        """`view` for a call."""
        match fun:
            case ToSubgroup():
                return self.in_subgroup(self.view(args[0], env), args[0].type)
            case MemoryPrimitive():
                (arg,) = args
                value = self.memory(arg.type, space_of(fun))
                self.generate(arg, env, value)
                barriers = 2 if isinstance(fun, ToLocal) else 0  # one ends a loop around it
                self.frame.each = self.frame.each + barriers
                return value
            case AnyReduce() | AnyIterate():
                value = self.memory(expr.type, "private")
                self.generate(expr, env, value)
                return value
            case ReduceVec():
                init, vector = args
                return self.lanes(fun, self.view(init, env), self.view(vector, env), env)
            case _:
                pass
        values = [self.view(a, env) for a in args]
        match fun:
            case Primitive():
                f = fun.function
                if f is None:
                    return fun.meaning(self.read, *values)
                return fun.meaning(
                    self.read,
                    lambda *vs: self.view(f.body, {**env, **dict(zip(f.params, vs, strict=True))}),
                    *values,
                )
            case Lambda():
                return self.view(fun.body, {**env, **self.given(fun, values, self.noted)})
            case UserFun():
                return self.view(fun.body, dict(zip(fun.params, values, strict=True)))
            case _:
                message = f"no view of a call of {type(fun).__name__}"
                raise InternalError(message)

    def lanes(self, r: ReduceVec, init: Term, vector: Pull, env: Env) -> Term:
        """A fold of scalars over lanes; values that its steps store are stored in each step."""
        lane, width = self.fresh("lane"), nat(vector.length)
        whole = vector[var(lane, 0)]
        step = self.read.one(lane, lambda: Term("number", names=frozenset({lane})))
        total = self.read.operate(r.name, (step,))
        made: list[Term] = []
        values = dict(zip(r.f.params, (total, step), strict=True))
        self.branch(lambda: made.append(self.view(r.f.body, {**env, **values})), width)
        parts = (init, whole, *made)
        names = NOTHING.union(*(p.names for p in parts)) - {lane}
        return self.read.one(
            ("lanes", lane),
            lambda: Term("lanes", parts, names, place=lane, stable=False, width=width),
        )

    def given(self, f: Lambda, values: list[Value], name: Callable[[Term], Term]) -> Env:
        """A function's variables; `name` is applied to computed values used more than once."""
        env = dict(zip(f.params, values, strict=True))
        for param, used in used_often(f):
            env[param] = self.often(env[param], param.type, used, (), name)
        return env

    def often(
        self, value: Value, t: Type, used: Uses, part: Component, name: Callable[[Term], Term]
    ) -> Value:
        """`given` for a component of a variable."""
        match t:
            case TupleType(elements) if isinstance(value, tuple):
                return tuple(
                    self.often(value[k], e, used, (*part, k), name) for k, e in enumerate(elements)
                )
            case VectorType() if used.many(part):
                return Pull(value.length, lambda i: self.noted(value[i]))
            case ScalarType() if used.many(part) and value.parts:
                return name(value)
            case _:
                return value

    # --- statements ---

    def generate(self, expr: Expr, env: Env, dest: Value) -> None:
        """Count the code that leaves the value of `expr` in `dest`."""
        match expr:
            case FunCall(MapHost() | MapGlb() | MapWrg() | MapLcl() | MapSeq() as fun, (xs,)):
                source = self.view(xs, env)
                self.loop(
                    fun,
                    array_of(fun.name, xs.type).length,
                    lambda i: self.generate(fun.f.body, self.inner(fun.f, env, source[i]), dest[i]),
                    unroll=is_private(dest),
                )
            case FunCall(MapSubgroup() | MapItem() as fun, (xs,)):
                self.over(fun, xs, env, dest)
            case FunCall(ReduceItems() as fun, (init, FunCall(MapItem() as made, (xs,)))):
                self.by_items(fun, init, made, xs, env, dest)
            case FunCall(ReduceInPlace() as fun, (init, xs)):
                self.in_passes(fun, init, xs, env, dest)
            case FunCall(ReduceSubgroups() as fun, (init, FunCall(MapLcl() as made, (xs,)))):
                self.by_group(fun, init, made, xs, env, dest)
            case FunCall(AnyReduce() as fun, (init, xs)):
                self.fold(fun.f, init, xs, env, dest, unroll=isinstance(fun, ReduceSeqUnroll))
            case FunCall(AnyScan() as fun, (init, xs)):
                held = self.memory(init.type, "private")
                self.generate(init, env, held)
                source = self.view(xs, env)

                def step(k: Nat) -> None:
                    if fun.exclusive:
                        self.copy(init.type, held, dest[k])
                    self.step(fun.f, env, init.type, held, held, source[k])
                    if not fun.exclusive:
                        self.copy(init.type, held, dest[k])

                self.sequential(array_of(fun.name, xs.type).length, step)
            case FunCall(AnyReduceByIndex() as fun, (init, pairs)):
                self.by_index(fun, init, pairs, env, dest)
            case FunCall(AnyIterate() as fun, (x,)):
                value = dest if is_private(dest) else self.memory(x.type, "private")
                self.generate(x, env, value)
                self.sequential(fun.times, lambda _: self.step(fun.f, env, x.type, value, value))
                if value is not dest:
                    self.copy(x.type, value, dest)
            case FunCall(SlideSeq() as fun, (xs,)):
                self.slide(fun, xs, env, dest)
            case FunCall(Lambda() as f, args):
                values = [self.view(a, env) for a in args]
                self.generate(f.body, self.inner(f, env, *values), dest)
            case FunCall(MemoryPrimitive() as m, (arg,)):
                if isinstance(m, ToGlobal) and not is_private(dest):
                    self.generate(arg, env, dest)
                else:
                    self.copy(expr.type, self.view(expr, env), dest)
            case Tuple(elements):
                for k, e in enumerate(elements):
                    self.generate(e, env, dest[k])
            case FunCall(Primitive() as p, args) if (
                isinstance(p, Layout | Map)
                and any(map(computes, args))
                and (places := through(p, args, dest, self.read)) is not None
            ):
                for arg, place in zip(args, places, strict=True):
                    self.generate(arg, env, place)
            case _:
                self.copy(expr.type, self.view(expr, env), dest)

    def by_index(
        self, fun: AnyReduceByIndex, init: Expr, pairs: Expr, env: Env, dest: Pull
    ) -> None:
        """A loop over pairs: the index and the value of a bin are held in variables."""
        self.generate(init, env, dest)
        source, bins = self.view(pairs, env), array_of(fun.name, init.type)

        def update(place: Value, here: Term, value: Value) -> None:
            """Hold a bin, compute its new value, and store one of the two."""
            old = each_scalar(place, self.variable)
            new = self.view(fun.f.body, self.inner(fun.f, env, old, value))
            self.copy(bins.element, chosen(self.read, here, new, old), place)

        def step(k: Nat) -> None:
            index, value = source[k]
            clamped, inside = self.read.clamped(index)
            held = self.variable(clamped)
            if is_private(dest):
                here = self.read.operate("==", (held, self.read.number))
                self.unrolled(bins.length, lambda j: update(dest[j], here, value))
            else:
                update(dest[ZERO], inside, value)

        self.sequential(array_of(fun.name, pairs.type).length, step)

    def inner(self, f: Lambda, env: Env, *values: Value) -> Env:
        """The environment of a function that is emitted here."""
        return {**env, **self.given(f, list(values), self.variable)}

    def fold(self, f: Lambda, init: Expr, xs: Expr, env: Env, dest: Value, *, unroll: bool) -> None:
        """A fold into registers."""
        t = init.type
        if not is_private(dest):
            value = self.memory(t, "private")
            self.fold(f, init, xs, env, value, unroll=unroll)
            self.copy(t, value, dest)
            return
        extents, made = divided(init)
        # elements that a work-item already has are not stored, unless it reads them from a copy
        self.continues = (bool(extents) or not computes(init)) and not self.copied
        self.generate(init, env, dest)
        self.continues = False
        source = self.view(xs, env)
        own = dest
        for _ in extents:
            own = own[ZERO]  # a work-item copies its own elements

        def step(k: Nat) -> None:
            self.update(f, env, dest, dest, source[k])
            self.kept(f, made.type, own)

        self.sequential(array_of("reduce", xs.type).length, step, unroll=unroll)

    def in_passes(self, fun: AnyReduce, init: Expr, xs: Expr, env: Env, dest: Value) -> None:
        """A fold in memory: its first pass, and a loop for the others."""
        source = self.view(xs, env)

        def update(old: Value, k: Nat) -> None:
            self.generate(fun.f.body, self.inner(fun.f, env, old, source[k]), dest)

        length = array_of(fun.name, xs.type).length
        self.generate(init, env, dest)
        update(dest, ZERO)
        if length != ONE:
            self.sequential(length, lambda k: update(dest, k))

    def step(self, f: Lambda, env: Env, t: Type, held: Value, dest: Value, *more: Value) -> None:
        """A step of a fold; if it overwrites a value that it still reads, its result is copied."""
        self.update(f, env, dest, held, *more)
        self.kept(f, t, dest)

    def update(self, f: Lambda, env: Env, dest: Value, *values: Value) -> None:
        """The result of a step; `copied` if the step reads a copy of its first argument."""
        outer = self.copied
        self.copied = outer or may_read_overwritten(f)
        self.generate(f.body, self.inner(f, env, *values), dest)
        self.copied = outer

    def kept(self, f: Lambda, t: Type, dest: Value) -> None:
        """The copy of what a step overwrites and still reads."""
        if may_read_overwritten(f):
            self.copy(t, self.memory(t, "private"), dest)

    def slide(self, fun: SlideSeq, xs: Expr, env: Env, dest: Pull) -> None:
        """Windows in registers."""
        windows = Slide(fun.size, fun.step).meaning(self.read, self.view(xs, env))
        element = array_of(fun.name, xs.type).element
        held = self.memory(ArrayType(element, fun.size), "private")
        shared = fun.size - fun.step

        def load(i: Nat, count: Nat) -> None:
            self.unrolled(count, lambda j: self.copy(element, windows[i][j], held[j]))

        def body(i: Nat) -> None:
            load(i, fun.step)
            self.generate(fun.f.body, self.inner(fun.f, env, held), dest[i])
            load(ZERO, shared)

        load(ZERO, shared)
        self.sequential(nat(windows.length), body)

    def copy(self, t: Type, value: Value, dest: Value) -> None:
        """Store a value whose terms are all that has to be computed."""
        match t:
            case ArrayType(element, length):
                self.sequential(
                    length,
                    lambda i: self.copy(element, value[i], dest[i]),
                    unroll=is_private(dest),
                )
            case VectorType(element, width):
                lane = self.fresh("store")
                index = var(lane, 0)
                self.copy_lanes(element, value[index], dest[index], lane, width)
            case TupleType(elements):
                for k, e in enumerate(elements):
                    self.copy(e, value[k], dest[k])
            case _:
                self.store(value, dest)

    def copy_lanes(self, t: Type, value: Value, dest: Value, lane: str, width: Nat) -> None:
        """Store the lanes of a vector."""
        if isinstance(t, TupleType):
            for k, e in enumerate(t.elements):
                self.copy_lanes(e, value[k], dest[k], lane, width)
        else:
            self.store(value, dest, lane, width)

    # --- loops ---

    def loop(self, fun: Any, length: Nat, body: Callable[[Nat], None], *, unroll: bool) -> None:
        """The loop of a map."""
        match fun:
            case MapHost():
                self.open(length, body, looped=False, over_ids=True)
            case MapGlb() | MapWrg() | MapLcl():
                lengths = demand(self.kernel).extents(type(fun))[fun.dim]
                self.open(length, body, looped=length != lengths[0], over_ids=True)
            case _:
                self.sequential(length, body, unroll=unroll or isinstance(fun, MapSeqUnroll))


def space_of(m: MemoryPrimitive) -> str:
    """The memory of a value that a kernel stores and reads."""
    if isinstance(m, ToGlobal):
        return "global"
    return "local" if isinstance(m, ToLocal) else "private"


def each_scalar(value: Value, change: Callable[[Term], Term]) -> Value:
    """A scalar or a tuple with its scalars changed."""
    if isinstance(value, tuple):
        return tuple(each_scalar(part, change) for part in value)
    return change(value)


def chosen(read: TermReader, here: Term, new: Value, old: Value) -> Value:
    """One of two values of a bin."""
    if isinstance(old, tuple):
        return tuple(chosen(read, here, new[k], part) for k, part in enumerate(old))
    return read.operate("select", (here, new, old))


def is_private(dest: Value) -> bool:
    """Whether a destination is in the work-item's registers."""
    while isinstance(dest, Pull):
        dest = dest[var("any", 0)]
    if isinstance(dest, Parts):
        return is_private(dest.pairs)
    return all(map(is_private, dest)) if isinstance(dest, tuple) else dest.kind == "private"


def length(kernel: Kernel) -> Nat:
    """An upper bound on the statements of a kernel, before loops get versions without guards."""
    return _length(kernel.of_all, kernel.reads, kernel.writes)


def serial_length(kernel: Kernel) -> Nat | None:
    """An upper bound on `length`, the same for kernels that differ only in levels or `byClasses`.

    It is the length of a kernel in which one work-item runs every map as a loop, which takes one
    statement more than a map over ids. None if that kernel may be shorter: a work-item has its own
    elements of an accumulator, subgroups fold, or a map over ids has one element and so no loop.
    """
    asked = kernel.demand
    levels = (asked.glb, asked.wrg, asked.lcl)
    if asked.divided or asked.folded or asked.grouped:
        return None
    if any(ONE in extents for level in levels for extents in level.values()):
        return None
    return _length(serial(kernel.of_all), kernel.reads, kernel.writes)


@by_identity(1 << 14)
def serial(expr: Expr) -> Expr:
    """The expression with a loop in place of each parallel map, and without `byClasses`."""
    if not has_call(expr, *PARALLEL, ByClasses):
        return expr
    for position, child in enumerate(children(expr)):
        if (new := serial(child)) is not child:
            expr = with_child(expr, position, new)
    match expr:
        case FunCall(MapGlb() | MapWrg() | MapLcl() as fun, args):
            return expr.with_parts(MapSeq(fun.f), args)
        case FunCall(ByClasses(), (xs,)):
            return xs
        case _:
            return expr


@lru_cache(maxsize=1 << 12)
def _length(body: Expr, reads: tuple[Param, ...], writes: Param) -> Nat:
    """`length`, cached: skeletons of a program share many kernels, and devices share all.

    A loop that reads an array of one register may be unrolled or not: the bound is the larger one.
    """
    found = Length(body)
    every = _counted(found, reads, writes)
    if not found.has_one_cell:
        return every
    return greatest(every, _counted(Length(body, one_cell_at_no_index=True), reads, writes))


def _counted(found: Length, reads: tuple[Param, ...], writes: Param) -> Nat:
    """The statements of a kernel, counted again if another pass may count differently."""
    every = found.statements(reads, writes)
    # A value that a later statement mentions again is held in a variable in earlier statements too,
    # because these follow it in the next iteration of a loop. Which choices are decided is known
    # once all loops that are unrolled are.
    again = found.has_met_later_shared
    found.left_out = found.only_alternatives()
    if found.left_out or again:
        every = found.statements(reads, writes)
    if not found.left_out <= found.only_alternatives():  # this pass has read one of them again
        found.left_out = set()
        every = found.statements(reads, writes)
    return every

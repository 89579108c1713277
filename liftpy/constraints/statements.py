"""The statements that update values in private memory, over sizes that may be open.

Loops over them are unrolled, so their number bounds the length of a kernel's straight-line code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ONE, ZERO, Nat
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.ir.walk import children, every_part, has_call
from liftpy.kernels.launch import divided
from liftpy.primitives import (
    AnyIterate,
    AnyReduce,
    AnyScan,
    AsScalar,
    Layout,
    Map,
    MapSeq,
    MapSeqUnroll,
    ReduceInPlace,
    ReduceItems,
    ReduceSeqUnroll,
    SlideSeq,
    ToPrivate,
)
from liftpy.primitives.map import array_of
from liftpy.primitives.work import computes

PRIVATE = (AnyReduce, AnyScan, AnyIterate, SlideSeq, ToPrivate, MapSeqUnroll)
"""The primitives with values in private memory, or whose function is written out."""

Held: TypeAlias = frozenset[Param]
NONE: Held = frozenset()


def statements(expr: Expr, held: Held = NONE, *, ends_step: bool = False) -> Nat:
    """An estimate of the number of statements that update values in private memory.

    A reduction initializes its accumulator and updates it in its step; a reduction that ends the
    step of another is that update. A private copy is one statement per value, a reduction that is
    stored there two. A vector is one value; so are the scalars that a step computes in vectors. A
    scan or an iteration initializes and updates its accumulator; a window is loaded, and the part
    that it shares with the next one is moved. `reduceSeqUnroll` and `mapSeqUnroll` repeat their
    function; so do a reduction and a map that read an array in registers, with a variable in
    `held`. (A step that overwrites what it still reads is only detected when it is unrolled: it
    takes up to twice as many. Each loop counts once, though the emitter may make up to three
    versions of it, `loops/unswitch.py`.)
    """
    if not has_call(expr, *PRIVATE):
        return ZERO
    return _statements(expr, held, ends_step) if held or ends_step else _statements_alone(expr)


@by_identity(1 << 14)
def _statements_alone(expr: Expr) -> Nat:
    """`statements` of an expression that reads nothing in registers; skeletons share many."""
    return _statements(expr, NONE, ends_step=False)


def _statements(expr: Expr, held: Held, ends_step: bool) -> Nat:  # noqa: FBT001  as in `statements`
    """`statements` of an expression that has some."""
    if not isinstance(expr, FunCall):
        return sum_of(statements(child, held) for child in children(expr))
    own = ZERO
    match expr.fun:
        case ReduceInPlace():
            pass
        case AnyReduce() as fun:
            init, xs = expr.args
            update = values(divided(init)[1].type).exact_div(lanes(fun.f.body))
            step = statements(fun.f.body, reading(fun.f, expr.args, held), ends_step=True)
            if not ends_in_reduction(fun.f.body):
                step = step + update
            if isinstance(fun, ReduceSeqUnroll) or not held.isdisjoint(xs.free):
                step = step * array_of(fun.name, xs.type).length
            start = ZERO if ends_step else update
            if isinstance(fun, ReduceItems):  # the fold of the results of the work-items
                start = start + update
            return start + step + statements(init, held) + statements(xs, held)
        case ToPrivate():
            (arg,) = expr.args
            return in_registers(arg, held)
        case MapSeqUnroll() as fun:
            (xs,) = expr.args
            each = statements(fun.f.body, held) + values(fun.f.body.type)
            return statements(xs, held) + array_of(fun.name, xs.type).length * each
        case MapSeq() as fun if not held.isdisjoint(expr.args[0].free):
            (xs,) = expr.args
            each = statements(fun.f.body, reading(fun.f, expr.args, held), ends_step=ends_step)
            return statements(xs, held) + array_of(fun.name, xs.type).length * each
        case AnyScan():
            own = values(expr.args[0].type) * 2
        case AnyIterate():
            own = values(expr.type) * 2
        case SlideSeq() as fun:
            own = (fun.size * 2 - fun.step) * values(array_of(fun.name, expr.args[0].type).element)
        case _:
            pass
    function = function_of(expr.fun)
    passes_on = ends_step and isinstance(expr.fun, Primitive) and function is None
    own = own + sum_of(statements(a, held, ends_step=passes_on) for a in expr.args)
    if function is None:
        return own
    return own + statements(function.body, reading(function, expr.args, held), ends_step=ends_step)


def in_registers(expr: Expr, held: Held = NONE) -> Nat:
    """`statements` of a value in private memory: what its maps do, they do for each element."""
    match expr:
        case FunCall(AnyReduce()):
            return statements(expr, held)
        case FunCall(MapSeq() as fun, (xs,)):
            length = array_of(fun.name, xs.type).length
            each = in_registers(fun.f.body, reading(fun.f, expr.args, held))
            return statements(xs, held) + length * each
        case FunCall(Lambda() as f, args):
            before = sum_of(statements(a, held) for a in args)
            return before + in_registers(f.body, reading(f, args, held))
        case FunCall(Layout() | Map() as fun, args) if any(map(computes, args)):
            lanes_apart = values(expr.type) if isinstance(fun, AsScalar) else ZERO
            return lanes_apart + sum_of(in_registers(a, held) for a in args)
        case Tuple(elements):
            return sum_of(in_registers(e, held) for e in elements)
        case _:
            return values(expr.type) + statements(expr, held)


def reading(f: Lambda, args: Iterable[Expr], held: Held) -> Held:
    """The variables with arrays in registers in the body of a function of these arguments."""
    return held.union(
        p
        for p, arg in zip(f.params, args, strict=False)
        if not held.isdisjoint(arg.free)
        or (isinstance(arg, FunCall) and isinstance(arg.fun, ToPrivate))
    )


def ends_in_reduction(expr: Expr) -> bool:
    """Whether a reduction computes the value of an expression, apart from layouts and maps."""
    if not isinstance(expr, FunCall) or isinstance(expr.fun, AnyReduce):
        return isinstance(expr, FunCall)
    function = function_of(expr.fun)
    if function is not None:
        return ends_in_reduction(function.body)
    return isinstance(expr.fun, Primitive) and any(ends_in_reduction(a) for a in expr.args)


def values(t: Type) -> Nat:
    """The number of scalars and vectors in a value of a type."""
    match t:
        case ArrayType(element, length):
            return length * values(element)
        case TupleType(elements):
            return sum_of(values(e) for e in elements)
        case _:
            return ONE


def lanes(step: Expr) -> Nat:
    """The width of the vectors that a step splits into the scalars it returns; 1 if none."""
    if not has_call(step, AsScalar):
        return ONE
    widths = {
        t.element.width
        for part in every_part(step)
        if isinstance(part, FunCall) and isinstance(part.fun, AsScalar)
        for t in (part.args[0].type,)
        if isinstance(t, ArrayType) and isinstance(t.element, VectorType)
    }
    return widths.pop() if len(widths) == 1 else ONE


def sum_of(sizes: Iterable[Nat]) -> Nat:
    """The sum of naturals."""
    return sum(sizes, ZERO)

"""Cotangents through layouts: each element goes back to where it was read.

Layouts move elements without changing them, so the components of a tuple are treated separately.
"""

from __future__ import annotations

from liftpy.gradient.bins import zeros
from liftpy.gradient.cotangent import (
    Cotangent,
    Leaf,
    at_leaf,
    components,
    dense,
    float_leaves,
    from_leaves,
    got,
    leaves,
    summed,
)
from liftpy.gradient.data_index import adding
from liftpy.gradient.refusal import NoDerivative
from liftpy.gradient.scope import Pull, Scope
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Get, Layout
from liftpy.ir.types import I32, ArrayType, TupleType, Type
from liftpy.language.embedded.functions import bind
from liftpy.primitives import Concat, Drop, Gather, Generate, Repeat, SplitAt, Take, Unzip, Zip
from liftpy.primitives.map import array_of


def through_layout(
    pull: Pull, expr: FunCall, layout: Layout, ct: Cotangent
) -> tuple[Cotangent, ...]:
    """The cotangents of the arguments of a layout, from that of its result."""
    types = tuple(a.type for a in expr.args)
    match layout:
        case Get(index=index):
            return (component_of(types[0], index, ct),)
        case Zip():
            return components(ct)
        case Unzip():
            return (ct,)
        case Concat():
            return apart(ct, types)
        case SplitAt():
            return (together(layout, types[0], components(ct)),)
        case _:
            own = dict(float_leaves(types[0]))
            back = [
                (leaf, moved_back(pull, expr, layout, value, own[leaf]))
                for leaf, value in leaves(ct)
            ]
            return (from_leaves(types[0], back),)


def component_of(t: Type, index: int, ct: Cotangent) -> Cotangent:
    """The cotangent of a tuple of which only one component has a cotangent."""
    count = len(t.elements) if isinstance(t, TupleType) else 0
    return tuple(ct if k == index else None for k in range(count))


def apart(ct: Cotangent, types: tuple[Type, ...]) -> tuple[Cotangent, ...]:
    """The cotangents of two arrays that are concatenated."""
    first = SplitAt(array_of("concat", types[0]).length)
    both = [(leaf, call(first, value)) for leaf, value in leaves(ct)]
    return tuple(
        from_leaves(t, ((leaf, got(k, parts)) for leaf, parts in both)) for k, t in enumerate(types)
    )


def together(layout: SplitAt, t: Type, halves: tuple[Cotangent, ...]) -> Cotangent:
    """The cotangent of an array whose two parts have the cotangents `halves`."""
    found: list[tuple[Leaf, Expr]] = []
    for leaf, whole in float_leaves(t):
        given = [at_leaf(half, leaf) for half in halves]
        if any(part is not None for part in given):
            types = Take(layout.first).type_of(whole), Drop(layout.first).type_of(whole)
            parts = (dense(part, own) for part, own in zip(given, types, strict=True))
            found.append((leaf, call(Concat(), *parts)))
    return from_leaves(t, found)


def moved_back(pull: Pull, expr: FunCall, layout: Layout, value: Expr, t: Type) -> Expr:
    """The cotangent of an argument of type `t` that has no tuples, from that of the result."""
    if isinstance(layout, Repeat):
        return summed(value)
    if isinstance(layout, Gather):
        return sums_by_index(layout, value, array_of(layout.name, t))
    if (adjoint := layout.adjoint(t)) is not None:
        return call(adjoint, value)
    source = Param("source", t)
    if (equivalent := layout.equivalent(source)) is None:
        raise NoDerivative(expr, *unknown_copies(layout, t))
    scope = Scope(None, {source: source}, {source: frozenset(((),))})
    pull(equivalent, value, scope)
    return dense(scope.found[source], t)


def unknown_copies(layout: Layout, t: Type) -> tuple[str, str]:
    """Why a layout has no adjoint for an argument of type `t`, and what would have one."""
    sizes = (*layout.numbers().values(), *t.lengths())
    if all(size.constant is not None for size in sizes):
        why = f"{layout} repeats an array of {t} more than once"
        return why, "add at most as many elements at a time as there are"
    why = f"which elements {layout} repeats depends on sizes that are not known"
    return why, "give the sizes as numbers, or declare ranges such as `size n: 1..`"


def sums_by_index(layout: Gather, value: Expr, t: ArrayType) -> Expr:
    """For each element of the argument, the sum of the cotangents of its copies."""
    places = call(layout, indices(t.length))
    return call(adding(t.element), zeros(t), call(Zip(), places, value))


def indices(length: Nat, t: Type = I32) -> Expr:
    """The array of the indices below a length, as numbers of a type."""
    return call(Generate(length, bind(["i"], [t], lambda i: i)))

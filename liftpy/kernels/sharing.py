"""Which work-items write a memory, and whether they share it.

A kernel is refused if a memory would hold values of work-items that do not share it, or if parts
of the kernel are stored over different levels. Both checks need the expression only, not the
extents of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.walk import children, has_call
from liftpy.primitives import (
    AnyMap,
    MapGlb,
    MapItem,
    MapLcl,
    MapSubgroup,
    MapWrg,
    ReduceByIndexAtomic,
    ReduceInPlace,
    ReduceItems,
    ReduceSubgroups,
    ToGlobal,
    ToLocal,
)
from liftpy.primitives.in_place import is_pure
from liftpy.primitives.levels import PARALLEL, Level, level_of, word
from liftpy.primitives.work import computes, is_layout


def check_step(expr: Expr, own: frozenset[int], who: str) -> None:
    """Check that the step of a fold leaves each work-item its own elements of the accumulator.

    Its local maps are over dimensions that divide the accumulator (`own`), or fill local memory.
    """
    match expr:
        case FunCall(ToLocal()):
            return  # `launch` checks who writes it
        case FunCall(ReduceItems(), (init, _)):  # all work-items of the subgroup get the result
            check_step(init, own, who)
        case FunCall(MapLcl() as made) if made.dim not in own:
            level = word(level_of(made))
            message = (
                f"{who} cannot hold the result of {made.name}: its initial value is not made "
                f"by {level}, so each work-item would need all elements\n"
                f"  make the initial value by {level} too: each work-item then has its own elements"
            )
            raise TypeRefused(message)
        case FunCall(MapGlb() | MapWrg() | MapSubgroup() | MapItem() as made):
            raise _not_shared(who, made)
        case _:
            for child in children(expr):
                check_step(child, own, who)


def check_writers(body: Expr) -> None:
    """Check that everything a kernel stores is stored over the same levels (rule 7).

    If a level is missing, every work-item along it would store the same elements: a data race.
    """
    first, *others = dict.fromkeys(map(of_launch, writers(body, ())))
    for other in others:
        missing = sorted(map(word, first ^ other))
        message = (
            f"one part of the kernel is stored over {', '.join(missing)} and another is not: "
            "several work-items would store its elements; use the same levels for both, or "
            "toGlobal between them"
        )
        raise TypeRefused(message)


def of_launch(levels: frozenset[Level]) -> frozenset[Level]:
    """Levels with `mapLcl(0)` in place of `mapSubgroup` and `mapItem`.

    Either way, the work-items of a group divide what is stored. Raises TypeRefused if all
    work-items of a subgroup would store the same elements.
    """
    subgroup, item = (MapSubgroup, 0), (MapItem, 0)
    if subgroup in levels and item not in levels:
        raise TypeRefused(
            f"all work-items of a subgroup would store the same elements: the function of "
            f"{MapSubgroup.name} makes them outside of {MapItem.name}. Make them by "
            f"{MapItem.name}; for a single element, apply it to an array of one element"
        )
    if subgroup in levels:
        return levels - {subgroup, item} | {(MapLcl, 0)}
    return levels


def writers(expr: Expr, above: tuple[Level, ...]) -> Iterator[frozenset[Level]]:
    """The levels around each part of a kernel that stores memory shared by work-items."""
    match expr:
        case Tuple(elements):
            for e in elements:
                yield from writers(e, above)
        case FunCall(Lambda() as f, args):
            for a in args:
                yield from staged(a, above)
            yield from writers(f.body, above)
        case FunCall(ToGlobal() | ToLocal(), (arg,)):
            yield from writers(arg, above)
        case FunCall(AnyMap() as fun, (xs,)) if not is_layout(fun):
            yield from staged(xs, above)
            inner = (*above, level_of(fun)) if isinstance(fun, PARALLEL) else above
            yield from writers(fun.f.body, inner)
        case FunCall(Primitive() as fun, args) if is_layout(fun) and any(map(computes, args)):
            for a in args:
                yield from writers(a, above)
        case FunCall(ReduceByIndexAtomic()):  # work-items may update one bin
            yield frozenset((*above, (MapGlb, 0)))
        case FunCall(ReduceInPlace() as fun, (init, xs)):
            yield from staged(init, above) if is_pure(init) else writers(init, above)
            yield from staged(xs, above)
            yield from writers(fun.f.body, above)
        case _:
            yield from staged(expr, above)
            yield frozenset(above)


def staged(expr: Expr, above: tuple[Level, ...]) -> Iterator[frozenset[Level]]:
    """`writers` of the parts that an expression stages in local memory, or folds by subgroups."""
    if not has_call(expr, ToLocal, ReduceSubgroups):
        return
    if isinstance(expr, FunCall) and isinstance(expr.fun, ReduceSubgroups):
        yield frozenset((*above, (MapLcl, 0)))
    if isinstance(expr, FunCall) and isinstance(expr.fun, ToLocal):
        yield from writers(expr, above)
        return
    for child in children(expr):
        yield from staged(child, above)


def check_storage(expr: Expr, levels: tuple[type[Primitive], ...], who: str) -> None:
    """Check that memory of a level is written only by work-items that share it."""
    if not has_call(expr, *levels):
        return
    parts = children(expr)
    if isinstance(expr, FunCall) and isinstance(expr.fun, ReduceItems):
        parts = expr.args[:1]  # all work-items of the subgroup get the result
    for child in parts:
        if isinstance(child, FunCall) and isinstance(child.fun, levels):
            raise _not_shared(who, child.fun)
        check_storage(child, levels, who)


def _not_shared(who: str, made: Primitive) -> TypeRefused:
    """The error for a memory that is written by work-items that do not share it."""
    return TypeRefused(
        f"{who} cannot hold the result of {made.name}: "
        "the work-items that compute it do not share this memory"
    )

"""What a lowered expression requires of its launch: extents, private and local bytes, scratch.

All sizes are symbolic, so that `constraints` can compare them with a device's limits before any
parameter has a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ONE, ZERO, Nat
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.types import components, size_bytes
from liftpy.ir.walk import children, has_call
from liftpy.kernels.sharing import check_step, check_storage, check_writers
from liftpy.primitives import (
    AnyIterate,
    AnyMap,
    AnyReduce,
    AnyScan,
    ExclusiveScanSeq,
    IterateSeq,
    MapGlb,
    MapItem,
    MapLcl,
    MapSubgroup,
    MapWrg,
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
    ToLocal,
    ToPrivate,
    ToSubgroup,
)
from liftpy.primitives.atomics import ATOMIC_OPERATORS, ATOMIC_TYPES, atomic_operator
from liftpy.primitives.in_place import is_pure, rereads
from liftpy.primitives.levels import PARALLEL, Level, Parallel, has_levels, level_of, misplaced
from liftpy.primitives.map import array_of
from liftpy.primitives.parallel import AnyReduceBySubgroups
from liftpy.primitives.subgroups import (
    SUBGROUP_OPERATORS,
    SUBGROUP_TYPES,
    cannot_hold,
    subgroup_operator,
)
from liftpy.primitives.work import computes, is_layout, writable

LOCAL_ALIGNMENT = 16
"""The bytes to which arrays in local memory are aligned."""


@dataclass
class Demand:
    """Extents by level and dimension, in order of occurrence; bytes per group and per work-item.

    The first extent of `lcl` in dimension 0 is the size that a `mapSubgroup` states, if there is
    one.
    """

    glb: dict[int, list[Nat]] = field(default_factory=dict)
    wrg: dict[int, list[Nat]] = field(default_factory=dict)
    lcl: dict[int, list[Nat]] = field(default_factory=dict)
    local: Nat = ZERO
    local_arrays: int = 0
    """The number of arrays in local memory, each of which is aligned."""
    private: Nat = ZERO
    scratch: tuple[FunCall, ...] = ()
    """The `toGlobal`s whose values belong to a single work-item."""
    divided: list[tuple[str, dict[int, Nat]]] = field(default_factory=list)
    """The folds over parallel maps: the extents, by dimension, that divide their accumulators."""
    folded: list[Nat] = field(default_factory=list[Nat])
    """The lengths of the arrays that subgroups fold."""
    spread: list[Nat] = field(default_factory=list[Nat])
    """The lengths of the rows that subgroups hold in registers."""
    grouped: list[Nat] = field(default_factory=list[Nat])
    """The sizes of groups that the `mapSubgroup`s state."""

    def extents(self, level: type) -> dict[int, list[Nat]]:
        """The extents of one parallel level of the launch."""
        return {MapGlb: self.glb, MapWrg: self.wrg, MapLcl: self.lcl}[level]

    @property
    def groups(self) -> bool:
        """Whether the kernel uses work-groups explicitly."""
        return bool(self.wrg or self.lcl)

    def local_size(self) -> tuple[Nat, Nat, Nat]:
        """Work-items per work-group in each dimension: the first extent of `lcl`."""
        x, y, z = (self.lcl[d][0] if d in self.lcl else ONE for d in range(3))
        return x, y, z

    def global_size(self) -> tuple[Nat, Nat, Nat]:
        """Work-items in each dimension of the launch."""
        outer = self.wrg if self.groups else self.glb
        local = self.local_size()
        x, y, z = ((outer[d][0] if d in outer else ONE) * local[d] for d in range(3))
        return x, y, z

    @property
    def items(self) -> Nat:
        """The number of work-items in the launch."""
        x, y, z = self.global_size()
        return x * y * z


@lru_cache(maxsize=1 << 12)  # skeletons of a program share many kernels
def demand(body: Expr) -> Demand:
    """The demand of the kernel that computes `body`; TypeRefused if a level is misplaced."""
    found = Demand(private=private_bytes(body), scratch=tuple(own_values(body, is_stored=True)))
    _walk(body, found, ())
    _check_alone(body)
    for value in found.scratch:
        check_storage(value, PARALLEL, ToGlobal.name)
    check_writers(body)
    _check_divided(found)
    _check_folded(found)
    _check_subgroup_levels(found)
    if found.glb and found.groups:
        message = (
            "mapGlb cannot be mixed with mapWrg or mapLcl in one kernel: use toGlobal between them"
        )
        raise TypeRefused(message)
    return found


def _walk(expr: Expr, found: Demand, above: tuple[Level, ...]) -> None:
    """Note what an expression inside some levels demands; a refusal has the innermost call."""
    try:
        _note(expr, found, above)
    except TypeRefused as refused:
        if refused.part is None:
            refused.part = expr
        raise


def _note(expr: Expr, found: Demand, above: tuple[Level, ...]) -> None:
    inner = above
    if isinstance(expr, FunCall):
        match expr.fun:
            case MapGlb() | MapWrg() | MapLcl() | MapSubgroup() | MapItem() as fun:
                _check_level(fun, expr.args[0], found, above)
                inner = (*above, level_of(fun))
            case ToLocal() as store:
                _check_of_group(store.name, above, "a work-group shares its memory")
                check_storage(expr, (MapGlb, MapWrg), "toLocal")
                found.local = found.local + store.stored_bytes(expr.type)
                found.local_arrays += len(components(expr.type))
            case ToPrivate():
                check_storage(expr, PARALLEL, "toPrivate")
            case ReduceItems() as fun:
                _check_items(fun, expr.args[1], above)
            case ToSubgroup():
                found.spread.append(_row_of_subgroup(expr.args[0], above))
            case ReduceSeq() | ReduceSeqUnroll() as fun:
                extents, _ = divided(expr.args[0])
                check_step(fun.f.body, frozenset(extents), fun.name)
                if extents:
                    found.divided.append((fun.name, extents))
            case ReduceSubgroups() as fun:
                _check_subgroups(fun, expr.args[1], above)
                found.local = found.local + size_bytes(expr.args[1].type)
                found.local_arrays += 1
                found.folded.append(array_of(fun.name, expr.args[1].type).length)
            case ReduceInPlace() as fun:
                check_in_place(fun)
                if has_levels(fun.f) and not is_pure(expr.args[0]):
                    raise TypeRefused(
                        f"the passes of {fun.name} are shared by work-items, so what it begins "
                        "with must be computed element by element: a fold, an iteration or a "
                        "stored value would be stored by other work-items than those of the passes"
                        "\n  begin with a constant or a buffer, or leave the passes to one "
                        "work-item"
                    )
            case ReduceByIndexAtomic() as fun:
                check_atomic(fun, expr.args[1], above)
            case (ReduceByIndexSeq() | ScanSeq() | ExclusiveScanSeq() | IterateSeq()) as fun:
                check_storage(fun.f.body, PARALLEL, fun.name)
            case _:
                pass
        for a in expr.args:
            _walk(a, found, above)
        function = function_of(expr.fun)
        if function is not None:
            _walk(function.body, found, inner)
    else:
        for child in children(expr):
            _walk(child, found, above)


def _check_level(fun: Parallel, xs: Expr, found: Demand, above: tuple[Level, ...]) -> None:
    """Check that a parallel map is where its level may be, and note its extent."""
    if (why := misplaced(level_of(fun), above)) is not None:
        raise TypeRefused(why)
    match fun:
        case MapSubgroup():
            if not found.grouped:  # it states the size of groups, which a mapLcl(0) need not have
                others = [n for n in found.lcl.get(0, []) if n != fun.items]
                found.lcl[0] = [fun.items, *others]
            found.grouped.append(fun.items)
        case MapItem():
            pass
        case _:
            extent = array_of(fun.name, xs.type).length
            lengths = found.extents(type(fun)).setdefault(fun.dim, [])
            if extent not in lengths:
                lengths.append(extent)


def divided(init: Expr) -> tuple[dict[int, Nat], Expr]:
    """The extents of the local maps that make a fold's initial value, and what a work-item makes.

    A work-item has its own elements of the accumulator in registers, and no others. A fold that
    starts from the result of another fold uses the same accumulator.
    """
    extents: dict[int, Nat] = {}
    while isinstance(init, FunCall) and isinstance(init.fun, AnyReduce):
        init = init.args[0]
    while isinstance(init, FunCall) and isinstance(init.fun, MapLcl):
        (xs,) = init.args
        extents[init.fun.dim] = array_of(init.fun.name, xs.type).length
        init = init.fun.f.body
    return extents, init


def _check_divided(found: Demand) -> None:
    """Check that each accumulator that is divided has one element for each local id."""
    launched = found.local_size()
    for name, extents in found.divided:
        for dim, extent in extents.items():
            if extent != launched[dim]:
                message = (
                    f"the accumulator of {name} has {extent} elements over mapLcl({dim}), and a "
                    f"work-group has {launched[dim]} work-items in dimension {dim}: give each "
                    f"work-item a block of elements, with split inside mapLcl({dim})"
                )
                raise TypeRefused(message)


def _check_of_group(name: str, above: tuple[Level, ...], why: str) -> None:
    """Check that all work-items of a group compute the primitive `name` together."""
    levels = {level for level, _ in above}
    if MapWrg in levels and levels.isdisjoint({MapGlb, MapLcl, MapSubgroup, MapItem}):
        return
    outside = "mapSubgroup" if MapSubgroup in levels else "mapLcl"
    raise TypeRefused(f"{name} must be inside a mapWrg and outside every {outside}: {why}")


def _check_function(fun: AnyReduceBySubgroups) -> None:
    """Check that subgroups have the function of a fold."""
    if subgroup_operator(fun.f) is None:
        types = ", ".join(map(str, SUBGROUP_TYPES))
        raise TypeRefused(
            f"{fun.name} folds elements of type {types} by {', '.join(SUBGROUP_OPERATORS)}, and "
            f"not by this function of {fun.f.body.type}: OpenCL has no subgroup function for it. "
            "Use reduceSeq"
        )


def _check_subgroups(fun: ReduceSubgroups, xs: Expr, above: tuple[Level, ...]) -> None:
    """Check that subgroups have the function of a fold, and that a work-item has each element."""
    _check_function(fun)
    if not (isinstance(xs, FunCall) and isinstance(xs.fun, MapLcl) and xs.fun.dim == 0):
        raise TypeRefused(
            f"{fun.name} folds an element of each work-item, which mapLcl(0) makes: "
            f"write ... |> mapLcl(0, x => ...) |> {fun.name}(...)"
        )
    _check_of_group(fun.name, above, "the work-items of a group compute it together")


def _check_items(fun: ReduceItems, xs: Expr, above: tuple[Level, ...]) -> None:
    """Check that a subgroup has the function of a fold, and that its work-items make the array."""
    _check_function(fun)
    if not (isinstance(xs, FunCall) and isinstance(xs.fun, MapItem)):
        raise TypeRefused(
            f"{fun.name} folds elements that mapItem divides among the work-items of a subgroup: "
            f"write ... |> mapItem(x => ...) |> {fun.name}(...), without a `let` between them"
        )
    levels = {level for level, _ in above}
    if MapSubgroup not in levels or MapItem in levels:
        raise TypeRefused(
            f"{fun.name} must be inside a mapSubgroup and outside every mapItem: "
            "the work-items of a subgroup compute it together"
        )


def _check_folded(found: Demand) -> None:
    """Check that each array that subgroups fold has an element for each work-item of a group."""
    x, y, z = found.local_size()
    for length in found.folded:
        if (length, y, z) != (x, ONE, ONE):
            raise TypeRefused(
                f"{ReduceSubgroups.name} folds {length} elements, and a work-group has {x} * {y} * "
                f"{z} work-items: make an element for each work-item of a group of one dimension, "
                "with split inside mapLcl(0)"
            )


def _row_of_subgroup(xs: Expr, above: tuple[Level, ...]) -> Nat:
    """The length of the rows of an array that subgroups hold.

    Raises TypeRefused if the elements have no broadcast, if the kernel computes the array, or if
    the array is at a wrong level.
    """
    name = ToSubgroup.name
    if (why := cannot_hold(xs.type)) is not None:
        raise TypeRefused(
            f"{name} of {xs.type}: {why}. Convert the elements with map before {name}, or apply it "
            "to each component of a tuple"
        )
    if not is_pure(xs) or has_call(xs, *PARALLEL):
        raise TypeRefused(
            f"{name} holds an array in buffers that its kernel only reads, and not one that the "
            "kernel computes or stores: use toLocal"
        )
    levels = {level for level, _ in above}
    if MapItem in levels:
        raise TypeRefused(
            f"{name} must be outside every mapItem: the work-items of a subgroup load the array "
            "together. Name it with `let` outside of the mapItem"
        )
    if MapSubgroup not in levels:
        _check_of_group(name, above, "the work-items of a subgroup load the array together")
    *_, length = xs.type.lengths()
    return length


def _check_subgroup_levels(found: Demand) -> None:
    """Check that arrays held by subgroups fit their groups, and that groups have one size.

    The groups of such an array have one dimension, and its rows are not longer than a group. Every
    `mapSubgroup` states the size of the group.
    """
    x, y, z = found.local_size()
    if found.spread and (y, z) != (ONE, ONE):
        raise TypeRefused(
            f"{ToSubgroup.name} is in groups of {x} * {y} * {z} work-items, and subgroups are "
            "formed along one dimension: use mapLcl(0) or mapSubgroup only"
        )
    for items in found.grouped:
        if items != x:
            raise TypeRefused(
                f"{MapSubgroup.name}({items}, ...) is in a group of {x} work-items: a kernel has "
                f"groups of one size. Write {MapSubgroup.name}({x}, ...)"
            )
    for row in found.spread:
        if row.constant is not None and x.constant is not None and row.constant > x.constant:
            raise TypeRefused(
                f"{ToSubgroup.name} holds rows of {row} elements, and a work-group has {x} "
                f"work-items: no subgroup has as many. Use rows of at most {x} elements, with "
                "split, or a larger group"
            )


def check_in_place(fun: ReduceInPlace) -> None:
    """Check that no fold in place in the step reads the accumulator other than to begin with it."""
    if rereads(fun.f, ReduceInPlace):
        raise TypeRefused(
            f"the step of {fun.name} has a fold in place whose array or function reads the outer "
            "accumulator: its later passes would read elements that its earlier ones have updated\n"
            f"  only begin with the accumulator, or use reduceSeq for the inner fold"
        )


def check_atomic(fun: ReduceByIndexAtomic, pairs: Expr, above: tuple[Level, ...]) -> None:
    """Check that there is an atomic function for an update, and that ids run over the pairs."""
    if atomic_operator(fun.f) is None:
        types = " or ".join(map(str, ATOMIC_TYPES))
        raise TypeRefused(
            f"{fun.name} needs a function that applies {', '.join(ATOMIC_OPERATORS)} to {types}; "
            f"for this one, which returns {fun.f.body.type}, OpenCL has no atomic function whose "
            "result is independent of the order of the updates. Use reduceByIndexSeq"
        )
    mapped = isinstance(pairs, FunCall) and isinstance(pairs.fun, MapGlb) and pairs.fun.dim == 0
    if above or not mapped:
        raise _misplaced_updates()


def _check_alone(body: Expr) -> None:
    """Check that a kernel with atomic updates does nothing else: another one stores the bins."""
    alone = isinstance(body, FunCall) and isinstance(body.fun, ReduceByIndexAtomic)
    inside = body.args if isinstance(body, FunCall) and alone else (body,)
    if any(has_call(part, ReduceByIndexAtomic) for part in inside):
        raise _misplaced_updates()


def _misplaced_updates() -> TypeRefused:
    name = ReduceByIndexAtomic.name
    return TypeRefused(
        f"{name} must be outside the functions of all maps, and its pairs must come from "
        f"mapGlb(0): write ... |> mapGlb(0, p => p) |> {name}(...)"
    )


def own_values(expr: Expr, *, is_stored: bool) -> Iterator[FunCall]:
    """The `toGlobal`s whose values the kernel itself reads.

    A `toGlobal` around a value that is stored in shared memory anyway (`is_stored`) does not count.
    """
    if not has_call(expr, ToGlobal):
        return
    match expr:
        case Tuple(elements):
            for e in elements:
                yield from own_values(e, is_stored=is_stored)
        case FunCall(Lambda() as f, args):
            for a in args:
                yield from own_values(a, is_stored=False)
            yield from own_values(f.body, is_stored=is_stored)
        case FunCall(ToGlobal(), (arg,)):
            if not is_stored:
                yield expr
            yield from own_values(arg, is_stored=True)
        case FunCall(ToLocal(), (arg,)):
            yield from own_values(arg, is_stored=True)
        case FunCall(AnyMap() as fun, (xs,)) if not is_layout(fun):
            yield from own_values(xs, is_stored=False)
            yield from own_values(fun.f.body, is_stored=is_stored)
        case FunCall(Primitive() as fun, args) if (
            is_layout(fun) and any(map(computes, args)) and writable(fun, args)
        ):
            for a in args:
                yield from own_values(a, is_stored=is_stored)
        case _:
            for child in children(expr):
                yield from own_values(child, is_stored=False)


def private_bytes(expr: Expr, *, ends_step: bool = False) -> Nat:
    """Bytes of accumulators, windows and private copies of one work-item, without reuse.

    A reduction or an iteration that ends the step of another (`ends_step`) uses the other's
    accumulator. So does a reduction from whose result another one continues.
    """
    total = ZERO
    if not has_call(expr, AnyReduce, AnyIterate, AnyScan, SlideSeq, ToPrivate, ToSubgroup):
        return total
    if not isinstance(expr, FunCall):
        for child in children(expr):
            total = total + private_bytes(child)
        return total
    match expr.fun:
        case AnyReduce() as fun:
            init, xs = expr.args
            elsewhere = ends_step or isinstance(fun, ReduceInPlace)
            own = ZERO if elsewhere else size_bytes(divided(init)[1].type)
            continues = isinstance(init, FunCall) and isinstance(init.fun, AnyReduce)
            return (
                own
                + private_bytes(init, ends_step=continues)
                + private_bytes(xs)
                + private_bytes(fun.f.body, ends_step=True)
            )
        case AnyIterate():
            total = ZERO if ends_step else size_bytes(expr.type)
        case AnyScan():
            total = size_bytes(expr.args[0].type)
        case SlideSeq() as fun:
            (window,) = fun.parameter_types(expr.args[0].type)
            total = size_bytes(window)
        case ToPrivate():
            total = size_bytes(expr.type)
        case ToSubgroup():
            *_, length = expr.type.lengths()
            total = size_bytes(expr.type) // length
        case _:
            pass
    function = function_of(expr.fun)
    passes_on = ends_step and isinstance(expr.fun, Primitive)
    for a in expr.args:
        total = total + private_bytes(a, ends_step=passes_on and function is None)
    if function is not None:
        total = total + private_bytes(function.body, ends_step=ends_step)
    return total

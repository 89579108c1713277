"""The words of lowered primitives."""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, nat
from liftpy.ir.types import ArrayType
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.folds import Start, reduction
from liftpy.language.embedded.functions import Callee, element, function
from liftpy.language.embedded.stages import layout, mapping
from liftpy.language.embedded.words import Section, applied
from liftpy.primitives.lowered import (
    ExclusiveScanSeq,
    IterateSeq,
    MapHost,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapVec,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToLocal,
    ToLocalPadded,
    ToPrivate,
    ToStreamed,
    ToSubgroup,
)
from liftpy.primitives.parallel import (
    MapGlb,
    MapItem,
    MapLcl,
    MapSubgroup,
    MapWrg,
    ReduceItems,
    ReduceSubgroups,
)


@word(MapSeq)
def map_seq(f: Callee) -> Section:
    """Runs `lp.map` as a loop of one work-item.

    >>> lp.evaluate(lp.iota(3) >> lp.map_seq(lambda x: x + 1)).tolist()
    [1, 2, 3]
    """
    return mapping(MapSeq, f)


@word(MapSeqUnroll)
def map_seq_unroll(f: Callee) -> Section:
    """Runs `lp.map` as straight-line code of one work-item.

    >>> lp.evaluate(lp.iota(3) >> lp.map_seq_unroll(lambda x: x + 1)).tolist()
    [1, 2, 3]
    """
    return mapping(MapSeqUnroll, f)


@word(MapSeqAhead)
def map_seq_ahead(f: Callee) -> Section:
    """Runs `lp.map` as a loop that prefetches the data of its next iteration.

    >>> lp.evaluate(lp.iota(3) >> lp.map_seq_ahead(lambda x: x + 1)).tolist()
    [1, 2, 3]
    """
    return mapping(MapSeqAhead, f)


@word(MapHost)
def map_host(f: Callee) -> Section:
    """Runs `lp.map` as a loop of the host, which launches the function's kernels for each element.

    Each iteration reuses the buffers of the values that the function stores with `lp.to_global`.

    >>> squared = lp.map_glb(0, lambda x: x * x) >> lp.to_global
    >>> bands = lp.iota(4) >> lp.split(2)
    >>> lp.evaluate(bands >> lp.map_host(squared >> lp.map_glb(0, lambda x: x + 1))).tolist()
    [[1, 2], [5, 10]]
    """
    return mapping(MapHost, f)


@word(MapGlb)
def map_glb(dim: int, f: Callee) -> Section:
    """Runs `lp.map` over the global ids of dimension `dim`.

    >>> lp.evaluate(lp.iota(3) >> lp.map_glb(0, lambda x: x + 1)).tolist()
    [1, 2, 3]
    """
    return mapping(lambda g: MapGlb(g, dim), f)


@word(MapWrg)
def map_wrg(dim: int, f: Callee) -> Section:
    """Runs `lp.map` over the work-groups of dimension `dim`.

    >>> lp.evaluate(
    ...     lp.iota(4) >> lp.split(2) >> lp.map_wrg(0, lp.map_lcl(0, lambda x: x + 1))
    ... ).tolist()
    [[1, 2], [3, 4]]
    """
    return mapping(lambda g: MapWrg(g, dim), f)


@word(MapLcl)
def map_lcl(dim: int, f: Callee) -> Section:
    """Runs `lp.map` over local ids of dimension `dim`, inside an `lp.map_wrg` of that dimension.

    >>> lp.evaluate(
    ...     lp.iota(4) >> lp.split(2) >> lp.map_wrg(0, lp.map_lcl(0, lambda x: x + 1))
    ... ).tolist()
    [[1, 2], [3, 4]]
    """
    return mapping(lambda g: MapLcl(g, dim), f)


@word(MapSubgroup)
def map_subgroup(items: NatLike, f: Callee) -> Section:
    """Runs `lp.map` over the subgroups of a group of `items` work-items, inside an `lp.map_wrg`.

    >>> doubled = lp.map_subgroup(2, lp.map_item(lambda x: x + x))
    >>> lp.evaluate(
    ...     lp.iota(4) >> lp.split(2) >> lp.split(1) >> lp.map_wrg(0, doubled)
    ... ).tolist()
    [[[0, 2]], [[4, 6]]]
    """
    return mapping(lambda g: MapSubgroup(g, nat(items)), f)


@word(MapItem)
def map_item(f: Callee) -> Section:
    """Runs `lp.map` over the work-items of a subgroup, inside an `lp.map_subgroup`.

    >>> lp.evaluate(lp.iota(3) >> lp.map_item(lambda x: x + 1)).tolist()
    [1, 2, 3]
    """
    return mapping(MapItem, f)


@word(MapVec)
def map_vec(f: Callee) -> Section:
    """Applies a scalar function to all lanes of a vector.

    >>> doubled = lp.map(lp.map_vec(lambda x: x + x))
    >>> lp.evaluate(lp.iota(4) >> lp.as_vector(2) >> doubled >> lp.as_scalar()).tolist()
    [0, 2, 4, 6]
    """
    return mapping(MapVec, f)


@word(ReduceSeq)
def reduce_seq(f: Callee, init: Start) -> Section:
    """Runs `lp.reduce` as a loop of one work-item.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce_seq(lp.add, 0)).item()
    10
    """
    return reduction(ReduceSeq, f, init)


@word(ReduceSeqUnroll)
def reduce_seq_unroll(f: Callee, init: Start) -> Section:
    """Runs `lp.reduce` as straight-line code of one work-item.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce_seq_unroll(lp.add, 0)).item()
    10
    """
    return reduction(ReduceSeqUnroll, f, init)


@word(ReduceSubgroups)
def reduce_subgroups(f: Callee, init: Start) -> Section:
    """Folds one element of each work-item of a group by the subgroup functions of a device.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce_subgroups(lp.add, 0)).item()
    10
    """
    return reduction(ReduceSubgroups, f, init)


@word(ReduceItems)
def reduce_items(f: Callee, init: Start) -> Section:
    """Folds the array that an `lp.map_item` makes, by the work-items of a subgroup.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce_items(lp.add, 0)).item()
    10
    """
    return reduction(ReduceItems, f, init)


@word(ReduceVec)
def reduce_vec(f: Callee, init: Start) -> Section:
    """Folds the lanes of a vector from the left.

    >>> lp.evaluate(lp.iota(4) >> lp.as_vector(2) >> lp.map(lp.reduce_vec(lp.add, 0))).tolist()
    [1, 5]
    """
    return reduction(ReduceVec, f, init)


@word(ScanSeq)
def scan_seq(f: Callee, init: Start) -> Section:
    """Runs `lp.scan` as a loop of one work-item.

    >>> lp.evaluate(lp.iota(5) >> lp.scan_seq(lp.add, 0)).tolist()
    [0, 1, 3, 6, 10]
    """
    return reduction(ScanSeq, f, init)


@word(ExclusiveScanSeq)
def exclusive_scan_seq(f: Callee, init: Start) -> Section:
    """Runs `lp.exclusive_scan` as a loop of one work-item.

    >>> lp.evaluate(lp.iota(5) >> lp.exclusive_scan_seq(lp.add, 0)).tolist()
    [0, 0, 1, 3, 6]
    """
    return reduction(ExclusiveScanSeq, f, init)


@word(IterateSeq)
def iterate_seq(times: NatLike, f: Callee) -> Section:
    """Runs `lp.iterate` as a loop; `f` must keep the type.

    >>> lp.evaluate(lp.iota(3) >> lp.iterate_seq(2, lp.map(lambda x: 2 * x))).tolist()
    [0, 4, 8]
    """
    return Section(lambda x: applied(IterateSeq(function(f, (x.type,)), nat(times)), x))


@word(SlideSeq)
def slide_seq(size: NatLike, step: NatLike, f: Callee) -> Section:
    """Applies `f` to overlapping windows in a loop that keeps the window in registers.

    >>> lp.evaluate(lp.iota(4) >> lp.slide_seq(2, 1, lp.reduce(lp.add, 0))).tolist()
    [1, 3, 5]
    """

    def build(xs: Expr) -> Expr:
        (one,) = element(xs)
        window = ArrayType(one, nat(size))
        return applied(SlideSeq(function(f, (window,)), nat(size), nat(step)), xs)

    return Section(build)


@word(ToGlobal)
def to_global(x: Expr) -> Expr:
    """Stores the value in global memory; outside every parallel map, this ends a kernel.

    >>> lp.evaluate(lp.iota(3) >> lp.to_global).tolist()
    [0, 1, 2]
    """
    return applied(ToGlobal(), x)


@word(ToStreamed)
def to_streamed(x: Expr) -> Expr:
    """Stores the value in global memory with stores that bypass the caches, if the device can.

    >>> lp.evaluate(lp.iota(3) >> lp.to_streamed).tolist()
    [0, 1, 2]
    """
    return applied(ToStreamed(), x)


@word(ToLocal)
def to_local(x: Expr) -> Expr:
    """Stores the value in the local memory of the work-group.

    >>> lp.evaluate(lp.iota(3) >> lp.to_local).tolist()
    [0, 1, 2]
    """
    return applied(ToLocal(), x)


@word(ToLocalPadded)
def to_local_padded(gap: NatLike) -> Section:
    """Stores an array in local memory with `gap` unused scalars behind each of its elements.

    >>> lp.evaluate(lp.iota(4) >> lp.split(2) >> lp.to_local_padded(1)).tolist()
    [[0, 1], [2, 3]]
    """
    return layout(ToLocalPadded(nat(gap)))


@word(ToPrivate)
def to_private(x: Expr) -> Expr:
    """Stores the value in registers of the work-item.

    >>> lp.evaluate(lp.iota(3) >> lp.to_private).tolist()
    [0, 1, 2]
    """
    return applied(ToPrivate(), x)


@word(ToSubgroup)
def to_subgroup(x: Expr) -> Expr:
    """Holds an array in the registers of each subgroup: a work-item has an element of each row.

    >>> lp.evaluate(lp.iota(3) >> lp.to_subgroup).tolist()
    [0, 1, 2]
    """
    return applied(ToSubgroup(), x)

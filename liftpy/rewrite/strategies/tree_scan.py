"""Scans of an array by work-groups, each of which scans a part in a tree through local memory.

The law of `strategies/chunked.py` is applied to the array, which it cuts into parts; to each part,
which it cuts into chunks, one for each work-item; and repeatedly to the totals of the chunks:

    exclusiveScan(f, z)(xs)
    -> let totals = toLocal(mapLcl(pair -> reduce(f, e)(pair))(split(2)(xs))),
           begins = toLocal(exclusiveScan(f, z)(totals))
       in join(mapLcl((begin, pair) -> exclusiveScan(f, begin)(pair))(zip(begins, split(2)(xs))))

So the number of totals is halved step by step. Then the number of values from which work-items
begin is doubled step by step.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, nat
from liftpy.rewrite.strategies.chunked import BEGINS, PARTS, TOTALS, scanned
from liftpy.rewrite.strategies.lower import sequential, store_sequences
from liftpy.rewrite.strategies.shapes import array_type
from liftpy.rewrite.strategies.tree import Tree, ceiling, of_rows
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, rule, seq

EXTENSIONS = {
    "scan_split": "scan_extension",
    "exclusive_scan_split": "exclusive_scan_extension",
}
"""For each law that cuts an array, the law that extends the array before."""


def of_scan(tree: Tree, chunk: Nat) -> Strategy:
    """Scan an array by groups, each of whose items scans `chunk` adjacent elements.

    Groups fold their parts to totals, one work-item scans these, and groups scan their parts.
    """
    part = tree.items * chunk
    parallel = at_path((1,), by_items(chunk, begins_of(tree)))

    def in_parts(expr: Expr) -> Result:
        return seq(
            rule(scanned(expr) or "", m=part),
            at_path(TOTALS, seq(of_rows(tree), rule("to_global"))),
            at_path(BEGINS, seq(rule("exclusive_scan_to_seq"), rule("to_global"))),
            at_path(PARTS, seq(parallel, rule("map_to_wrg_0"), sequential())),
        )(expr)

    def run(expr: Expr) -> Result:
        if scanned(expr) is None:
            return Failure("tree", "the result is not a scan")
        groups = ceiling(array_type(expr).length, part)
        return seq(store_sequences(), extended(groups * part, in_parts))(expr)

    return run


def extended(length: Nat, strategy: Strategy) -> Strategy:
    """Apply a strategy to a scan, after extending its array to a length if it is shorter."""

    def run(expr: Expr) -> Result:
        extra = length - array_type(expr).length
        if extra == 0:
            return strategy(expr)
        law = EXTENSIONS[scanned(expr) or ""]
        return seq(rule(law, extra=extra), at_path((0,), strategy))(expr)

    return run


def by_items(size: Nat, begins: Strategy) -> Strategy:
    """Scan chunks of `size` elements, one for each work-item.

    Totals and beginnings of the chunks are named in local memory; `begins` makes the beginnings.
    """

    def run(expr: Expr) -> Result:
        local = rule("to_local")
        scans = seq(
            rule("let_introduction", {"v": BEGINS}),
            at_path((0,), seq(begins, local)),
            at_path((1, *PARTS), rule("map_to_lcl_0")),
        )
        return seq(
            rule(scanned(expr) or "", m=size),
            rule("let_introduction", {"v": TOTALS}),
            at_path((0,), seq(rule("map_to_lcl_0"), local)),
            at_path((1,), scans),
        )(expr)

    return run


def begins_of(tree: Tree) -> Strategy:
    """Make the exclusive scan of the totals of a tree's work-items."""
    return extended(nat(2**tree.steps), doubled(tree.steps))


def doubled(steps: int) -> Strategy:
    """Make an exclusive scan of 2 to the `steps` totals from that of half as many."""
    if steps == 1:
        pairs = rule("exclusive_scan_split", m=nat(2))
        return seq(pairs, at_path(PARTS, rule("map_to_lcl_0")))
    return by_items(nat(2), doubled(steps - 1))

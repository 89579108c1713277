"""Scans in three kernels: totals of chunks in parallel, their scan, and a scan of each chunk.

    scan(f, z)(xs)  ->  join(map((begin, chunk) -> scan(f, begin)(chunk))(zip(begins, chunks)))
    totals  =  toGlobal(map(reduce(f, e))(chunks))
    begins  =  toGlobal(exclusiveScan(f, z)(totals))

The laws of the operator permit this: it is associative, with the neutral element `e`.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.primitives import ExclusiveScan, Scan
from liftpy.rewrite.strategies.lower import over_ids, sequential, store_sequences
from liftpy.rewrite.strategy import Failure, Result, Strategy, at_path, rule, seq

PARTS = (0,)
BEGINS = (*PARTS, 0, 0)
TOTALS = (*BEGINS, 1)


def scanned(expr: Expr) -> str | None:
    """The rule that cuts a scan into chunks, if an expression is one."""
    match expr:
        case FunCall(Scan()):
            return "scan_split"
        case FunCall(ExclusiveScan()):
            return "exclusive_scan_split"
        case _:
            return None


def in_chunks(chunk: Nat) -> Strategy:
    """Scan chunks of `chunk` elements in parallel; a computed array is stored first."""

    def run(expr: Expr) -> Result:
        name = scanned(expr)
        if name is None:
            return Failure("in_chunks", "the result is not a scan")
        parallel = seq(over_ids("glb"), sequential())
        return seq(
            store_sequences(),
            rule(name, m=chunk),
            at_path(TOTALS, seq(parallel, rule("to_global"))),
            at_path(BEGINS, seq(rule("exclusive_scan_to_seq"), rule("to_global"))),
            at_path(PARTS, parallel),
        )(expr)

    return run

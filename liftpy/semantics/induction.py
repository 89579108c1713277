"""Inductions over folds of folds: blocks and exchange. Each step is a query of its own.

A fold of folds is an outer fold whose step from accumulator `A` is `C(i, A, B)`, where `B` is the
result of an inner fold from `init` with steps `step(j, ...)`; both may depend on the outer
position `i`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from liftpy.ir.nat import Nat, nat
from liftpy.ir.pull import Value
from liftpy.semantics.agree import Hypotheses, Proof, lockstep
from liftpy.semantics.dependence import dependence, named_in, replaced
from liftpy.semantics.symbolic import Fold, FoldComponent, view
from liftpy.semantics.verdict import Open

SHAPE = "the sides are folds of the form that the proof method is about"


@dataclass(frozen=True, slots=True)
class FoldNest:
    """One step of an outer fold: how it uses the result of the inner fold, and that fold."""

    combine: Callable[[Any], Any]
    inner: Fold


def complete_fold(part: Value) -> Fold:
    """The fold that a component is the whole result of."""
    if not isinstance(part, FoldComponent):
        raise Open(SHAPE, "a side is not a fold")
    if part.path:
        raise Open(SHAPE, "the accumulator is an array")
    return part.fold


def nest(proof: Proof, outer: Fold, i: Nat, accumulator: Any) -> FoldNest:
    """The step of a fold of folds at position `i`."""
    known = len(proof.reader.named)
    value = outer.step(i, accumulator)
    if isinstance(value, FoldComponent):
        return FoldNest(lambda result: result, complete_fold(value))
    before = {n.constant for n in proof.reader.named[:known]}
    new = [n for n in named_in(proof.reader, value) if n.constant not in before]
    if len(new) != 1 or not isinstance(new[0].value, FoldComponent):
        raise Open(SHAPE, f"a step reads {len(new)} inner results, not one fold's")
    (name,) = new
    inner = complete_fold(name.value)
    return FoldNest(lambda result: replaced(proof.reader, value, name.constant, result), inner)


def is_folded_twice(proof: Proof, fold: Fold) -> bool:
    """Whether the steps of a fold are folds or read folds."""
    known = len(proof.reader.named)
    i, _ = proof.index(fold.length)
    value = fold.step(i, proof.reader.state(fold.init))
    return isinstance(value, FoldComponent) or len(proof.reader.named) > known


def fresh(proof: Proof, fold: Fold) -> Any:
    """An arbitrary accumulator of a fold."""
    return proof.reader.scalar(proof.reader.state(fold.init))


def blocks(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """One side folds once, the other block by block.

    With `L(t)` the accumulator after `t` steps, `R(i)` the other one after `i` blocks, `S(i, j)`
    the inner one of block `i` after `j` steps and `m` the length of a block, the invariant is

        L(i*m + j) = C(i, R(i), S(i, j))

    It holds at `j = 0` if it held at the end of the previous block, because then `L(i*m) = R(i)`.
    A step preserves it. At `j = m` it says `L((i+1)*m) = C(i, R(i), S(i, m)) = R(i+1)`, where the
    next block begins. If the inner fold starts from the outer accumulator, `C(i, A, B) = B`.
    """
    one, two = complete_fold(left), complete_fold(right)
    if is_folded_twice(proof, one):
        one, two = two, one
    terms = proof.terms
    (i, in_blocks), a = proof.index(two.length), fresh(proof, two)
    block = nest(proof, two, i, a)
    m = nat(block.inner.length)
    if i.names() & m.names():
        raise Open(SHAPE, "the blocks differ in length")
    counts = terms.nat(one.length) == terms.nat(two.length * m)
    proof.show("the blocks have all steps", counts, hypotheses)
    proof.agree(one.init, two.init, hypotheses, "the folds start alike")
    begins = block.combine(proof.reader.scalar(block.inner.init))
    proof.agree(begins, a, (*hypotheses, in_blocks), "a block begins where the one before ended")
    (j, in_block), b = proof.index(m), fresh(proof, block.inner)
    stepped = one.step(i * m + j, block.combine(b))
    inside = block.combine(proof.reader.scalar(block.inner.step(j, b)))
    ranges = (*hypotheses, in_blocks, in_block)
    proof.agree(stepped, inside, ranges, "a step within a block keeps the invariant")


def chunks(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """One side is a single fold; the other folds the chunks before a chunk, then a part of it.

    Let `d` be the length of the single fold less that of the fold within the chunk. Its first `d`
    steps are a fold that `blocks` compares with the fold of chunks; the others are the steps
    within the chunk.
    """
    one, two = complete_fold(left), complete_fold(right)
    if isinstance(one.init, FoldComponent):
        one, two = two, one
    done = nat(one.length) - nat(two.length)
    first = Fold(done, one.init, one.step)
    blocks(proof, view(first, first.init, ()), two.init, hypotheses)
    (k, in_range), a = proof.index(two.length), fresh(proof, two)
    here = (*hypotheses, in_range)
    proof.agree(one.step(done + k, a), two.step(k, a), here, "a step is one of the second fold's")


def exchange(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """Both sides fold rows and columns of the same elements, in exchanged order.

    Let `L(i)` be the left accumulator after `i` rows, and `F(i)` the right side's result when its
    inner folds stop after `i` rows; `T(j)` is the inner state of column `j` after `i` rows. An
    induction over `i` shows that `L(i) = F(i)`:

        i = 0      every right step from an inner result that is still `init` changes nothing
        i -> i+1   with `G(j)`, `H(j)` the partial results of `F(i+1)`, `F(i)` after `j` columns
                   and `S(j)` the state of row `i` after `j` elements, `G(j) = CL(i, H(j), S(j))`
                   by an induction over `j`; at the last column it says
                   `F(i+1) = CL(i, F(i), row) = L(i+1)`

    At the last row `F` is the right side.
    """
    one, two = complete_fold(left), complete_fold(right)
    terms = proof.terms
    i, in_rows = proof.index(one.length)
    j, in_columns = proof.index(two.length)
    proof.agree(one.init, two.init, hypotheses, "the folds start alike")
    h = fresh(proof, one)
    row, column = nest(proof, one, i, h), nest(proof, two, j, h)
    b, t = fresh(proof, row.inner), fresh(proof, column.inner)
    for nested, mine in (row, i), (column, j):
        if nat(nested.inner.length).names() & mine.names():
            raise Open(SHAPE, "the inner folds differ in length")
    rows = terms.nat(one.length) == terms.nat(column.inner.length)
    columns = terms.nat(two.length) == terms.nat(row.inner.length)
    proof.show("both sides fold the same rows and columns", z3.And(rows, columns), hypotheses)
    ranges = (*hypotheses, in_rows, in_columns)
    nothing = "an inner fold without elements changes nothing"
    for nested, in_range in (row, in_rows), (column, in_columns):
        start = proof.reader.scalar(nested.inner.init)
        proof.agree(nested.combine(start), h, (*hypotheses, in_range), nothing)
        if h in dependence(proof.reader, start):
            raise Open(SHAPE, "an inner fold starts from the outer accumulator")
    next_b = proof.reader.scalar(row.inner.step(j, b))
    next_t = proof.reader.scalar(column.inner.step(i, t))
    if any(h in dependence(proof.reader, stepped) for stepped in (next_b, next_t)):
        raise Open(SHAPE, "an inner step depends on the outer accumulator")
    late = replaced(proof.reader, column.combine(next_t), h, row.combine(b))
    early = replaced(proof.reader, row.combine(next_b), h, column.combine(t))
    proof.agree(late, early, ranges, "an element may join its row or its column first")


def folded(method: Callable[..., None]) -> Callable[..., None]:
    """A method applied to the folds of both sides, with lockstep for the folds inside."""

    def induct(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
        proof.induction = lockstep
        try:
            method(proof, left, right, hypotheses)
        finally:
            proof.induction = induct

    return induct

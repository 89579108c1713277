"""Inductions step by step: reordered steps, idle steps, carried results, consecutive folds.

The inductions over folds of folds are in `induction`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import z3

from liftpy.ir.nat import Nat, Var, atom, nat
from liftpy.ir.pull import Value
from liftpy.semantics.agree import Bool, Hypotheses, Proof
from liftpy.semantics.dependence import named_in, replaced
from liftpy.semantics.induction import SHAPE, complete_fold, fresh
from liftpy.semantics.symbolic import Fold, FoldComponent, Named, Read
from liftpy.semantics.verdict import Open


def read_at(proof: Proof, fold: Fold, k: Nat, accumulator: Any) -> list[Read]:
    """The reads of step `k` from the first array that it reads, an index for each dimension."""
    before = len(proof.reader.reads)
    proof.reader.scalar(fold.step(k, accumulator))
    reads = proof.reader.reads[before:]
    if not reads:
        raise Open(SHAPE, "a step reads no element")
    return [read for read in reads if read.array == reads[0].array]


def permuted(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """Both sides take the same steps, in a different order.

    On each side, different steps read different elements of an array that has as many elements as
    there are steps, so each element is read exactly once. Steps that read the same element do the
    same, and any two steps may be exchanged, so their order does not matter.
    """
    one, two = complete_fold(left), complete_fold(right)
    terms = proof.terms
    proof.agree(one.init, two.init, hypotheses, "the folds start alike")
    a = fresh(proof, one)
    read: list[tuple[Nat, Bool, list[Read]]] = []
    for fold in (one, two):
        (k, in_range), (j, also) = proof.index(fold.length), proof.index(fold.length)
        here, there = read_at(proof, fold, k, a), read_at(proof, fold, j, a)
        ranges = (*hypotheses, in_range, also)
        for r in here:
            index = terms.nat(r.index)
            inside = z3.And(index >= 0, index < terms.nat(r.length))
            proof.show("a step reads inside its array", inside, ranges)
        elements = math.prod((r.length for r in here), start=nat(1))
        proof.same_length(fold.length, elements, hypotheses)
        apart = z3.Implies(same_place(proof, here, there), terms.nat(k) == terms.nat(j))
        proof.show("no element is read twice", apart, ranges)
        read.append((k, in_range, here))
    (k, in_range, here), (j, also, there) = read
    meet = same_place(proof, here, there)
    steps = one.step(k, a), two.step(j, a)
    what = "steps that read the same element do the same"
    proof.agree(*steps, (*hypotheses, in_range, also, meet), what)
    i, too = proof.index(two.length)
    late, early = (two.step(y, proof.reader.scalar(two.step(x, a))) for x, y in ((i, j), (j, i)))
    proof.agree(late, early, (*hypotheses, also, too), "two steps may change places")


def same_place(proof: Proof, here: list[Read], there: list[Read]) -> Bool:
    """The formula that two reads access the same element of the same array."""
    if [r.array for r in here] != [r.array for r in there]:
        raise Open(SHAPE, "the sides read different arrays")
    equal = (
        proof.terms.nat(r.index) == proof.terms.nat(s.index)
        for r, s in zip(here, there, strict=True)
    )
    return z3.And(*equal)


def idle(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """The longer side takes steps that change nothing, before and after those of the shorter side.

    The number of idle steps before is searched among the sizes in the difference of the lengths.
    """
    one, two = complete_fold(left), complete_fold(right)
    more = nat(one.length) - nat(two.length)
    if len(more.terms) == 0 or (more.bounds[1] is not None and more.bounds[1] <= 0):
        one, two, more = two, one, -more
    proof.agree(one.init, two.init, hypotheses, "the folds start alike")
    left_open: Open | None = None
    for before in offsets(more):
        shown = list(proof.shown)
        try:
            idle_but(proof, one, two, before, hypotheses)
        except Open as why:
            proof.shown, left_open = shown, left_open or why
        else:
            return
    raise left_open or Open(SHAPE, "both sides take as many steps")


def offsets(more: Nat) -> Iterator[Nat]:
    """Yield possible numbers of idle steps before the others: none, all, or one of two parts."""
    yield nat(0)
    yield more
    for a in sorted({a for a in more.atoms() if isinstance(a, Var)}, key=lambda a: a.name):
        yield from (atom(a), more - atom(a))


def idle_but(proof: Proof, one: Fold, two: Fold, before: Nat, hypotheses: Hypotheses) -> None:
    """Show that `one` takes the steps of `two` from step `before` on, and no others do anything."""
    terms = proof.terms
    k, in_range = proof.index(one.length)
    a = fresh(proof, two)
    at, first, count = terms.nat(k), terms.nat(before), terms.nat(two.length)
    fits = z3.And(first >= 0, first + count <= terms.nat(one.length))
    proof.show("the longer side has the steps of the shorter", fits, hypotheses)
    outside = z3.Or(at < first, at >= first + count)
    nothing = (*hypotheses, in_range, outside)
    proof.agree(one.step(k, a), a, nothing, "a further step changes nothing")
    inside = (*hypotheses, in_range, z3.Not(outside))
    stepped = one.step(k, a), two.step(k - before, a)
    proof.agree(*stepped, inside, "a step does what the other's does")


def carried(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """One side is a function `C` of the other side's accumulator, before and after every step.

    The one side starts at `C(init)`, and a step from `C(b)` leads to `C` of a step from `b`.
    """
    fold, other = (left, right) if isinstance(left, FoldComponent) else (right, left)
    one, term = complete_fold(fold), proof.reader.scalar(other)
    names = named_in(proof.reader, term)
    if len(names) != 1:
        raise Open(SHAPE, f"a side reads {len(names)} folds, not one")
    carried_by(proof, one, term, names[0], hypotheses)


def carried_by(proof: Proof, one: Fold, term: Any, name: Named, hypotheses: Hypotheses) -> None:
    """`carried` for one fold: it is a term, `C` of the fold that a name in the term stands for."""
    two = complete_fold(name.value)

    def carry(accumulator: Any) -> Any:
        return replaced(proof.reader, term, name.constant, accumulator)

    lengths = proof.terms.nat(one.length) == proof.terms.nat(two.length)
    proof.show("both sides fold over as many steps", lengths, hypotheses)
    start = carry(proof.reader.scalar(two.init))
    proof.agree(one.init, start, hypotheses, "the folds start alike")
    k, in_range = proof.index(one.length)
    b = fresh(proof, two)
    stepped = one.step(k, carry(b))
    after = carry(proof.reader.scalar(two.step(k, b)))
    proof.agree(stepped, after, (*hypotheses, in_range), "a step keeps the function")


def sequel(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """One side folds once; the other continues from the result of a first fold with a second.

    The steps of the one side are those of the first fold, followed by those of the second.
    """
    one, two = complete_fold(left), complete_fold(right)
    if isinstance(one.init, FoldComponent):
        one, two = two, one
    first = complete_fold(two.init)
    terms = proof.terms
    count, steps = terms.nat(first.length), terms.nat(one.length)
    together = steps == count + terms.nat(two.length)
    proof.show("the two folds have all steps", together, hypotheses)
    proof.agree(one.init, first.init, hypotheses, "the folds start alike")
    k, in_range = proof.index(one.length)
    a, at = fresh(proof, first), terms.nat(k)
    early, late = (*hypotheses, in_range, at < count), (*hypotheses, in_range, at >= count)
    proof.agree(one.step(k, a), first.step(k, a), early, "a step is one of the first fold's")
    after = two.step(k - first.length, a)
    proof.agree(one.step(k, a), after, late, "or one of the second's")

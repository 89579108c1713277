"""Inductions over folds whose steps read the result of another fold, by a law that rescales it.

`rescales(r, k)` and `keeps(r, e)` say that `r(m, n, ..)` turns what steps `k(m, ..)` accumulate
from `e` into what steps `k(n, ..)` accumulate (`rewrite.rule.Assumption`). So a fold can begin
before the result `m` that its steps read is known.
"""

from __future__ import annotations

from typing import Any

import z3

from liftpy.ir.nat import Nat
from liftpy.ir.pull import Value
from liftpy.semantics.agree import Bool, Hypotheses, Proof, lockstep
from liftpy.semantics.dependence import named_in, replaced
from liftpy.semantics.induction import SHAPE, complete_fold, fresh
from liftpy.semantics.laws import subterms
from liftpy.semantics.reordering import carried_by
from liftpy.semantics.symbolic import Fold, FoldComponent, Named, along
from liftpy.semantics.verdict import Open


def rescaling(proof: Proof) -> str:
    """The name of the function that rescales."""
    names = [a.function for a in proof.assuming if a.law == "rescales"]
    if len(names) != 1:
        raise Open(SHAPE, f"{len(names)} functions are assumed to rescale, not one")
    return names[0]


def folds_named(proof: Proof, term: Any) -> list[Named]:
    """The folds that a term mentions by a name."""
    return [name for name in named_in(proof.reader, term) if isinstance(name.value, FoldComponent)]


def online(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """One side is a fold that reads the result of a fold `K`; the other folds pairs.

    Let `L[u]` be the one side's fold with `u` in place of the result of `K`, and `r` the function
    that rescales. One component of the pairs is `K` in lockstep. An induction shows that the other
    component is `L[K]` after every step, for what `K` has accumulated so far:

        lemma      `r(v, w, L[v]) = L[w]` after every step, for any `v` and `w`: it holds at the
                   start, and a step of `L[w]` from `r(v, w, b)` leads to `r(v, w, b')` if a step
                   of `L[v]` leads from `b` to `b'`
        start      the component starts as `L` does
        step       from `a` and `b` it leads to the step of `L[a']` from `r(a, a', b)`, where `a'`
                   is the step of `K` from `a`; by the lemma `r(a, a', b)` is `L[a']` if `b` is
                   `L[a]`

    After the last step `K` has its result, and `L` of that result is the one side.
    """
    if not isinstance(left, FoldComponent) or not isinstance(right, FoldComponent):
        raise Open(SHAPE, "a side is not a fold")
    if left.path:
        left, right = right, left
    one, two = complete_fold(left), right.fold
    inner = read_by(proof, one)
    if inner is None:
        lockstep(proof, left, right, hypotheses)
        return
    terms, reader = proof.terms, proof.reader
    for other in (inner.fold, two):
        as_many = terms.nat(one.length) == terms.nat(other.length)
        proof.show("the folds have as many steps", as_many, hypotheses)
    paired = component(proof, inner, two, right, hypotheses)
    v, w, b = fresh(proof, inner.fold), fresh(proof, inner.fold), fresh(proof, one)
    name = rescaling(proof)
    r = z3.Function(name, v.sort(), w.sort(), b.sort(), b.sort())
    k, in_range = proof.index(one.length)
    ranges = (*hypotheses, in_range)

    def stepped(result: Any, accumulator: Any) -> Any:
        """A step of `L[result]`."""
        return with_result(proof, one, inner, k, result, accumulator)

    start = reader.scalar(one.init)
    proof.agree(r(v, w, start), start, hypotheses, "what is accumulated of nothing is kept")
    rescaled_step = r(v, w, stepped(v, b))
    proof.agree(stepped(w, r(v, w, b)), rescaled_step, ranges, "a step may be rescaled")
    proof.agree(along(two.init, right.path), start, hypotheses, "the folds start alike")
    state = reader.state(two.init)
    before = reader.scalar(along(state, paired))
    after = reader.scalar(inner.fold.step(k, before))
    found = along(two.step(k, state), right.path)
    wanted = stepped(after, r(before, after, reader.scalar(along(state, right.path))))
    proof.agree(found, wanted, ranges, "a step of the pair rescales and goes on")


def read_by(proof: Proof, fold: Fold) -> FoldComponent | None:
    """The fold whose result the steps of another fold read; None if they read no fold."""
    i, _ = proof.index(fold.length)
    names = folds_named(proof, proof.reader.scalar(fold.step(i, fresh(proof, fold))))
    parts = [name.value for name in names]
    if any(part is not parts[0] for part in parts):
        raise Open(SHAPE, "the steps read more folds than one")
    if not parts:
        return None
    complete_fold(parts[0])
    return parts[0]


def with_result(
    proof: Proof, fold: Fold, inner: FoldComponent, k: Nat, result: Any, accumulator: Any
) -> Any:
    """Step `k` of a fold, with `result` in place of the result of the fold that it reads."""
    term = proof.reader.scalar(fold.step(k, accumulator))
    for name in folds_named(proof, term):
        if name.value is inner:
            term = replaced(proof.reader, term, name.constant, result)
    return term


def component(
    proof: Proof, inner: FoldComponent, pairs: Fold, other: FoldComponent, hypotheses: Hypotheses
) -> tuple[Any, ...]:
    """The path of the other component in a fold of pairs, shown to be `inner` in lockstep."""
    if not isinstance(pairs.init, tuple) or len(pairs.init) != 2 or len(other.path) != 1:
        raise Open(SHAPE, "the accumulator is not a pair")
    path = (1 - other.path[0],)
    lockstep(proof, inner, FoldComponent(pairs, path, inner.sort), hypotheses)
    return path


def rescaled(proof: Proof, left: Value, right: Value, hypotheses: Hypotheses) -> None:
    """Lockstep, where a fold that a step reads on one side is rescaled on the other.

    A fold `L` in the one side's step equals the term `r(o, n, M)` in the other's, where `M` is a
    fold, if `L` is `r(o, n, M)` before and after each of their steps (`carried`).
    """
    one, two = complete_fold(left), complete_fold(right)
    same_length = proof.terms.nat(one.length) == proof.terms.nat(two.length)
    proof.show("both sides fold over as many steps", same_length, hypotheses)
    proof.agree(one.init, two.init, hypotheses, "the folds start alike")
    k, in_range = proof.index(one.length)
    ranges = (*hypotheses, in_range)
    a = fresh(proof, one)
    mine, theirs = (proof.reader.scalar(fold.step(k, a)) for fold in (one, two))
    facts = [
        *carried_folds(proof, mine, theirs, ranges),
        *carried_folds(proof, theirs, mine, ranges),
    ]
    proof.agree(mine, theirs, (*ranges, *facts), "steps keep the accumulators equal")


def carried_folds(proof: Proof, mine: Any, theirs: Any, hypotheses: Hypotheses) -> list[Bool]:
    """The equations that can be shown between folds in a term and rescaled folds in another."""
    name = rescaling(proof)
    calls = [t for t in subterms([theirs]) if z3.is_app(t) and t.decl().name() == name]
    facts: list[Bool] = []
    for fold in folds_named(proof, mine):
        for call in calls:
            of = [n for n in folds_named(proof, call.arg(2)) if n.constant.eq(call.arg(2))]
            if of and is_carried(proof, fold, call, of[0], hypotheses):
                facts.append(fold.constant == call)
    return facts


def is_carried(proof: Proof, fold: Named, call: Any, of: Named, hypotheses: Hypotheses) -> bool:
    """Whether a fold can be shown to be a term, a function of the fold behind a name."""
    shown = list(proof.shown)
    try:
        carried_by(proof, complete_fold(fold.value), call, of, hypotheses)
    except Open:
        proof.shown = shown
        return False
    return True

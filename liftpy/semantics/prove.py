"""Prove a rule: both sides are read as z3 terms, with symbolic sizes.

Obligations, in order:

1.  the assumptions can hold for an array of more than 8 elements (else the rule says nothing);
2.  the assumptions imply what the right side's primitives require;
3.  sizes agree at every depth;
4.  elements agree at every index, and folds by the rule's proof method.

The assumptions are what the left side's primitives require, `where`, and the ranges of the size
variables: a metavariable size is at least 0 unless it is declared otherwise. So an array may be
empty; a law that needs an element says so in `where`.

If an obligation cannot be shown, both sides are evaluated at many sizes. A difference refutes the
rule; without one the verdict is `Unknown`, which counts as not proved. A rule whose obligations are
all shown is also tried with numbers: a counterexample is a fault of the prover, an `InternalError`.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from liftpy.ir.constraint import AtMost
from liftpy.ir.denote import denote
from liftpy.ir.nat import NatLike, Var, var
from liftpy.ir.types import same_shape
from liftpy.ir.walk import substitute_sizes
from liftpy.rewrite.proof_cache import admit
from liftpy.rewrite.rule import Proof as Method
from liftpy.rewrite.rule import Rule
from liftpy.semantics.agree import Induction, Proof, lockstep
from liftpy.semantics.exact import show_exact
from liftpy.semantics.induction import blocks, chunks, exchange, folded
from liftpy.semantics.integral import show_integral
from liftpy.semantics.polynomial import show_polynomial
from liftpy.semantics.real import show_real
from liftpy.semantics.refute import (
    ELEMENTS_AGREE,
    REQUIRES,
    SIZES,
    hypotheses,
    lengths,
    only_atom,
    permutes,
    possible,
    refutation,
    requirements,
    sides,
    tried,
)
from liftpy.semantics.reordering import carried, idle, permuted, sequel
from liftpy.semantics.rescaling import online, rescaled
from liftpy.semantics.smt import STEPS, ask
from liftpy.semantics.verdict import Open, Proved, Refuted, Unknown, Vacuous, Verdict

METHODS: dict[Method, Induction] = {
    "pointwise": lockstep,
    "lockstep": lockstep,
    "definition": lockstep,
    "blocks": folded(blocks),
    "nested": folded(blocks),
    "chunks": folded(chunks),
    "exchange": folded(exchange),
    "permuted": folded(permuted),
    "idle": folded(idle),
    "carried": folded(carried),
    "sequel": folded(sequel),
    "online": folded(online),
    "rescaled": folded(rescaled),
}

ASSUMED = "what is assumed can hold for more than 8 elements"


def prove(rule: Rule, steps: int = STEPS) -> Verdict:
    """Whether a rule holds at all sizes; a proved rule may be applied from then on.

    `steps` limits each solver in each query.
    """
    try:
        return attempt(rule, steps)
    except Open as left:
        found = refutation(rule, left.sizes)
        return found if found is not None else Unknown(left.obligation, left.reason)


def attempt(rule: Rule, steps: int = STEPS) -> Verdict:
    """`prove`, but raises `Open` for an obligation that cannot be shown, and tries no sizes."""
    general, rule = rule, with_ranges(rule)
    proof = Proof(rule.assuming, METHODS.get(rule.proof), steps)
    proof.hypotheses = [proof.terms.assume(c) for c in hypotheses(rule)]
    vacuous = emptiness(rule, proof)
    if vacuous is not None:
        return vacuous
    show(rule, proof)
    admit(tried(general))
    return Proved(tuple(proof.shown))


def with_ranges(rule: Rule) -> Rule:
    """The rule with the lower bounds that it assumes written into the ranges of its sizes.

    Naturals are then normalized with the knowledge that a size is at least 1: `(k*m) // m` is `k`.
    """
    least: dict[str, NatLike] = {}
    for condition in hypotheses(rule):
        low, size = condition.left.constant, only_atom(condition.right)
        if isinstance(condition, AtMost) and low is not None and isinstance(size, Var):
            known = max(low, size.low) if size.low is not None else low
            least[size.name] = var(size.name, known, size.high)
    if not least:
        return rule
    left, right = (substitute_sizes(side, least) for side in sides(rule))
    where = tuple(c.substitute(least) for c in rule.where)
    return replace(rule, left=left, right=right, where=where)


def emptiness(rule: Rule, proof: Proof) -> Vacuous | Unknown | None:
    """A verdict if the assumptions hold for no array of more than 8 elements or z3 gives up."""
    long = [proof.terms.nat(length) > 8 for length in lengths(rule)]
    proof.preferred = [z3.Or(long)] if long else []
    if permutes(rule) and possible(rule):  # the solver does not find permutations
        proof.shown.append(ASSUMED)
        return None
    held = [*proof.terms.facts, *proof.hypotheses, *proof.preferred]
    answer = ask(held, proof.steps)
    if answer.status == "unsat":
        conditions = ", ".join(map(str, hypotheses(rule)))
        return Vacuous(f"no array of more than 8 elements satisfies {conditions}")
    if answer.status == "unknown":
        return Unknown(ASSUMED, f"z3 gave up: {answer.reason}")
    proof.shown.append(ASSUMED)
    return None


def show(rule: Rule, proof: Proof) -> None:
    """Show the obligations of a rule; raises `Open`."""
    for _, condition in requirements(rule.right):
        for goal in proof.terms.claims(condition):
            proof.show(REQUIRES, goal)
    pairs = same_shape(rule.left.type, rule.right.type)
    if pairs is None:
        raise Open(SIZES, f"the left side is {rule.left.type}, the right side {rule.right.type}")
    for one, two in pairs:
        proof.same_length(one, two, ())
    if rule.proof == "real":
        show_real(rule, proof)
        return
    if rule.proof == "exact":
        show_exact(rule, proof)
        return
    if rule.proof == "integral":
        proof.shown.extend(show_integral(rule))
        return
    if rule.proof == "polynomial":
        proof.shown.append(show_polynomial(rule))
        return
    env = {p: proof.reader.leaf(p.name, p.type) for p in rule.left.free | rule.right.free}
    left = denote(rule.left, env, proof.reader)
    right = denote(rule.right, env, proof.reader)
    proof.agree(left, right, (), ELEMENTS_AGREE)


__all__ = ["METHODS", "Proved", "Refuted", "Unknown", "Vacuous", "Verdict", "attempt", "prove"]

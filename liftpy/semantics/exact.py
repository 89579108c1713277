"""Sums of integers in f32: no step is rounded, so the sum is that of the integers.

Numbers of i32 and f32 are read as integers, without wrapping around and without rounding. A sum in
f32 whose exact value is an integer of at most 2^24 is not rounded: that integer is an f32 number,
and IEEE 754 defines the sum of two numbers as the f32 number that is nearest to their exact sum.
This is shown of every sum, by an induction over the steps: after k of them, the accumulator is at
most `k * bound`. What i32 computes wraps around, which keeps sums modulo 2^32, so sides that are
the same integer are the same i32.
"""

from __future__ import annotations

from typing import Any

import z3

from liftpy.ir.denote import denote
from liftpy.ir.nat import var
from liftpy.ir.pull import Value
from liftpy.ir.types import F32, I32, Type
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import BOUND, Assumption, Rule
from liftpy.semantics.agree import Proof
from liftpy.semantics.dependence import named_in, replaced
from liftpy.semantics.induction import SHAPE, complete_fold, fresh
from liftpy.semantics.refute import MOST, sizes_in
from liftpy.semantics.smt import Terms
from liftpy.semantics.symbolic import FoldComponent, SymbolicReader
from liftpy.semantics.verdict import Open

UNROUNDED = "no sum in f32 is rounded"
GROWS = "a step adds at most the bound"
STEPS = "a step keeps the sums equal"


class IntegerReader(SymbolicReader):
    """Reads i32 and f32 as integers; `unrounded` are the results that f32 has to hold."""

    def __init__(self, terms: Terms, assuming: tuple[Assumption, ...]) -> None:
        super().__init__(terms)
        self.unrounded: list[Any] = []
        self.adding = {a.function for a in assuming if a.law == "adds"}
        self.exact = {a.function: str(a.value) for a in assuming if a.law == "exact"}

    def sort(self, t: Type) -> Any:
        return z3.IntSort(self.terms.context) if t in {I32, F32} else super().sort(t)

    def literal(self, value: float, t: Type) -> Value:
        if t not in {I32, F32}:
            return super().literal(value, t)
        if value != int(value) or (t == F32 and abs(value) > LARGEST_EXACT):
            raise Open(UNROUNDED, f"{value} is no integer of at most {LARGEST_EXACT}")
        return z3.IntVal(int(value), self.terms.context)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        terms = [self.scalar(a) for a in args]
        if op not in {"+", "i32"}:
            raise Open(UNROUNDED, f"`{op}` is not read as an operation on integers")
        result = terms[0] + terms[1] if op == "+" else terms[0]
        self.unrounded.append(result)
        return result

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        if function.name in self.adding:
            one, two = (self.scalar(a) for a in args)
            if function.type == F32:
                self.unrounded.append(one + two)
            return one + two
        called: str = function.name
        name = self.exact.get(called, called)
        flat = [self.flat(a, t) for a, t in zip(args, function.params, strict=True)]
        result = self.leaf(name, function.type, *(term for part in flat for term in part))
        if name in self.exact.values():
            self.terms.facts += within(result, self.terms.nat(var(BOUND)))
        return result


def within(term: Any, limit: Any) -> list[Any]:
    """The formulas that the magnitude of an integer is at most a limit."""
    return [-limit <= term, term <= limit]


def show_exact(rule: Rule, proof: Proof) -> None:
    """Show that a sum in i32 is a function of one in f32, which is never rounded; or raise `Open`.

    The function is applied to the accumulators before and after each step, as in `carried`.
    """
    sides = rule.left, rule.right
    if sum(a.law == "exact" for a in rule.assuming) > 1:
        raise Open(SHAPE, f"several functions are exact, and `{BOUND}` bounds one of them")
    if any(BOUND in length.names() for length in sizes_in(sides)) or BOUND in rule.tunes:
        raise Open(SHAPE, f"`{BOUND}` bounds numbers and cannot be a length")
    proof.reader = reader = IntegerReader(proof.terms, rule.assuming)
    env = {p: reader.leaf(p.name, p.type) for p in rule.left.free | rule.right.free}
    left, right = denote(rule.left, env, reader), denote(rule.right, env, reader)
    if not isinstance(left, FoldComponent) or isinstance(right, FoldComponent):
        raise Open(SHAPE, "the sides are no sum and a function of a sum")
    names = named_in(reader, right)
    if len(names) != 1:
        raise Open(SHAPE, f"a side reads {len(names)} folds, not one")
    one, two = complete_fold(left), complete_fold(names[0].value)
    terms, bound = proof.terms, proof.terms.nat(var(BOUND))
    length = terms.nat(two.length)
    # A product of unknowns may take z3 too many steps: one element first.
    proof.preferred = [length == 1, length <= MOST]
    proof.same_length(one.length, two.length, ())

    def carry(accumulator: Any) -> Any:
        return replaced(reader, right, names[0].constant, accumulator)

    k, in_range = proof.index(two.length)
    steps, b = terms.nat(k), fresh(proof, two)
    proof.agree(one.init, carry(reader.scalar(two.init)), (), "the sums start alike")
    finished = within(names[0].constant, length * bound)
    for result in reader.unrounded:
        proof.show(UNROUNDED, z3.And(within(result, LARGEST_EXACT)), finished)
    reader.unrounded.clear()
    nothing = within(reader.scalar(two.init), 0)
    proof.show("the sum in f32 starts with 0", z3.And(nothing))
    before = (in_range, *within(b, steps * bound))
    after = reader.scalar(two.step(k, b))
    proof.show(GROWS, z3.And(within(after, (steps + 1) * bound)), before)
    for result in reader.unrounded:
        proof.show(UNROUNDED, z3.And(within(result, LARGEST_EXACT)), before)
    proof.agree(reader.scalar(one.step(k, carry(b))), carry(after), before, STEPS)

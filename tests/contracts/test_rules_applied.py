"""R4: each rule, applied to a concrete program, leaves its value as it was.

Sizes satisfy the rule's conditions, elements are distinct whole numbers, functions do not commute
unless the rule assumes it; numpy computes in float64, so that before and after are the same to the
last bit.
"""

import numpy as np
import pytest

from liftpy.ir.expr import FunCall, FunVar, Lambda, Literal, Param
from liftpy.ir.nat import nat
from liftpy.ir.types import F32, ArrayType, Type
from liftpy.ir.walk import top_down
from liftpy.primitives.lang import add, eta, map, reduce
from liftpy.rewrite.match import Bindings, instantiate, match
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules import RULES
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.free import assignments
from liftpy.semantics.refute import count, hold, hypotheses, lengths, requirements, variables

PRIMES = {2, 3, 5, 7, 11, 13}


def concrete(t: Type, at) -> Type:
    """A rule's type with numbers for sizes and `f32` for what is unknown."""
    if isinstance(t, ArrayType):
        return ArrayType(concrete(t.element, at), nat(t.length.value(at)))
    return F32


def body_of(f: FunVar, number: int, at):
    """A function that tells its arguments, and itself from others, apart."""
    params = tuple(Param(f"p{k}", concrete(t, at)) for k, t in enumerate(f.params))
    total = Literal(float(number), F32)
    for k, p in enumerate(params):
        value = p >> reduce(lambda a, x: a * 3 - x, 1.0) if isinstance(p.type, ArrayType) else p
        total = total + value * (2.0 + k + number)
    if isinstance(f.type, ArrayType):
        surroundings = Param(f"from_{f.name}", concrete(f.type, at))
        return Lambda(params, surroundings >> map(lambda y: y * 3 + total))
    return Lambda(params, total)


def bindings(rule, at):
    """Concrete expressions and functions for a rule's metavariables."""
    found = Bindings(sizes={name: nat(value) for name, value in at.items()})
    lawful = {a.function for a in rule.assuming}
    for side in (rule.left, rule.right):
        for _, part in top_down(side):
            if isinstance(part, Literal) and isinstance(part.value, ValueVar):
                found.values[part.value.name] = 0.0
                found.types[str(part.type)] = F32
            if isinstance(part, FunCall):
                value = getattr(part.fun, "value", None)
                if isinstance(value, ValueVar):
                    found.values[value.name] = 9.0
            if isinstance(part, FunCall) and isinstance(part.fun, FunVar):
                f = part.fun
                known = eta(add, (F32, F32)) if f.name in lawful else None
                made = known or body_of(f, len(found.functions) + 1, at)
                found.functions.setdefault(f.name, made)
        for p in side.free:
            found.exprs[p.name] = Param(p.name, concrete(p.type, at))
    return found


def chosen_sizes(rule):
    """Three sizes that satisfy the rule's conditions, large and prime ones first."""
    needed = [*hypotheses(rule), *(c for _, c in requirements(rule.right))]
    allowed = [
        at
        for at in assignments(variables(rule))
        if hold(needed, at)
        and 0 < count(rule.left.type, at) <= 3000
        and all(0 < count(p.type, at) <= 1500 for p in rule.left.free)
    ]

    def rank(at):
        long = any(length.value(at) > 8 for length in lengths(rule))
        proper = sum(value > 1 for value in at.values())
        return -proper, not long, -sum(value in PRIMES for value in at.values())

    return sorted(allowed, key=rank)[:3]


def values(params):
    """Distinct whole numbers for each parameter."""
    start, made = 1, []
    for p in params:
        shape = tuple(shape_of(p.type))
        size = int(np.prod(shape))
        numbers = np.random.default_rng(size).permutation(size) + start
        made.append(numbers.reshape(shape).astype(np.float32))
        start += size
    return made


def shape_of(t):
    return [int(n) for n in t.shape] if isinstance(t, ArrayType) else []


@pytest.mark.parametrize("name", RULES)
def test_applied_rule_keeps_the_value(name):
    rule = RULES[name]
    sizes = chosen_sizes(rule)
    assert sizes
    for at in sizes:
        found = bindings(rule, at)
        before, after = instantiate(rule.left, found), instantiate(rule.right, found)
        params = tuple(sorted(before.free, key=lambda p: p.name))
        assert after.free <= before.free
        arrays = values(params)
        one = np.array(evaluate(Lambda(params, before), *arrays, dtype=np.float64))
        two = np.array(evaluate(Lambda(params, after), *arrays, dtype=np.float64))
        assert one.shape == two.shape, at
        assert one.size == 1 or np.unique(one).size > 2, "values that can lose"
        np.testing.assert_array_equal(one, two, err_msg=str(at))


@pytest.mark.parametrize("name", RULES)
def test_matcher_finds_what_the_rule_was_made_of(name):
    rule = RULES[name]
    at = chosen_sizes(rule)[0]
    made = bindings(rule, at)
    before = instantiate(rule.left, made)
    tunes = {name: made.sizes[name] for name in rule.tunes}
    found = match(rule, before, tunes, {})
    if isinstance(found, str):
        assert "hint" in found, found
        return
    params = tuple(sorted(before.free, key=lambda p: p.name))
    arrays = values(params)
    one = evaluate(Lambda(params, before), *arrays, dtype=np.float64)
    two = evaluate(Lambda(params, instantiate(rule.right, found)), *arrays, dtype=np.float64)
    np.testing.assert_array_equal(one, two)

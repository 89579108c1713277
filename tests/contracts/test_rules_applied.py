"""R4: each rule, applied to random concrete programs, leaves their value as it was.

Sizes satisfy the rule's conditions, primes first; elements are distinct whole numbers; a type
variable is a scalar, a pair or an array; functions do not commute unless the rule assumes it. numpy
computes in float64, so that before and after are the same to the last bit.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liftpy.constraints.system import Source
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda
from liftpy.ir.nat import nat, var
from liftpy.ir.primitive import Primitive, ScalarOp
from liftpy.ir.types import F32, F64, I8, I32, ArrayType, TupleType, Type, TypeVar, VectorType
from liftpy.ir.walk import constant_fields, top_down
from liftpy.language.embedded.functions import function
from liftpy.language.embedded.lang import add, exp, map, maximum, reduce, sin
from liftpy.language.embedded.operations import operate
from liftpy.rewrite.instantiate import instantiate
from liftpy.rewrite.match import Bindings, match
from liftpy.rewrite.reals import rescaling, scaling
from liftpy.rewrite.rule import INDEX, ValueVar
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.correlation import NAMES as CORRELATIONS
from liftpy.rewrite.rules.integral import NAMES as INTEGRAL
from liftpy.rewrite.skeleton import Parameter
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.free import assignments
from liftpy.semantics.refute import (
    hypotheses,
    lengths,
    permutes,
    requirements,
    variables,
    with_permutations,
)
from tests.rewrite.test_rules_fire import flat, values_of

PRIMES = {2, 3, 5, 7, 11, 13}
PAIR = TupleType((F32, F32))
ELEMENTS = (F32, PAIR, ArrayType(F32, nat(2)))
EXAMPLES = 6  # random instances of each rule

#: Rules for which programs are drawn. Those of correlations are long, and need a function that
#: adds products: tests/compile/test_correlations.py, test_integral.py and tests/fuzz apply them.
DRAWN = [name for name in RULES if name not in {*CORRELATIONS, *INTEGRAL}]


class Instance:
    """A rule with numbers for sizes, types for type variables, and functions."""

    def __init__(self, rule, at, types, turn) -> None:
        self.rule, self.at, self.types = rule, at, types
        self.found = Bindings(sizes={name: nat(value) for name, value in at.items()})
        i = var(INDEX)
        for number, (forth, back, length) in enumerate(permutes(rule)):
            n, by = length.value(at), turn + number
            self.found.indices[forth] = (i + by) % n if number % 2 == 0 else n - 1 - i
            self.found.indices[back] = (i + (n - by % n)) % n if number % 2 == 0 else n - 1 - i
        self.lawful: dict[str, Lambda] = {}
        self.products: set[str] = set()
        for law in rule.assuming:
            if law.law == "rescales":
                self.lawful[law.value] = accumulated = self.accumulated()
                self.lawful[law.function] = rescaling(accumulated)
            elif law.law == "scales":
                x = Param("x", F32)
                self.lawful[law.value] = scaled = Lambda((x,), x / 3 - 2)
                self.lawful[law.function] = scaling(scaled)
            elif law.law == "accumulates":
                a, p = Param("a", F32), Param("p", PAIR)
                self.lawful[law.function] = Lambda((a, p), a + p[0] * p[1])
            elif law.law == "adds":
                scalar = I32 if exact(rule) else F32
                self.lawful[law.function] = function(add, (scalar, scalar))
            elif law.law == "exact":
                x = Param("x", I8)
                self.lawful[law.function] = Lambda((x,), FunCall(ScalarOp("f32"), (x,)))
                self.lawful[law.value] = Lambda((x,), FunCall(ScalarOp("i32"), (x,)))
            elif law.law == "finite":
                self.lawful[law.function] = function(maximum, (F32, F32))
            elif law.law == "annihilates":
                self.products.add(law.function)
            else:
                self.lawful.setdefault(law.function, function(add, (F32, F32)))
        for side in (rule.left, rule.right):
            self.collect(side)
        self.left, self.right = (instantiate(s, self.found) for s in (rule.left, rule.right))

    def collect(self, side: Expr) -> None:
        """Give each metavariable of a side something to stand for."""
        for name, t in self.types.items():
            self.found.types[name] = t
        for name in type_variables(self.rule, scalar=True):
            self.found.types[name] = F32
        for p in side.free:
            self.found.exprs[p.name] = Param(p.name, self.concrete(p.type))
        for _, part in top_down(side):
            if isinstance(part, Literal) and isinstance(part.value, ValueVar):
                self.give(part.value)
            if isinstance(part, FunCall) and isinstance(part.fun, Primitive):
                for value in constant_fields(part.fun):
                    if isinstance(value, ValueVar):
                        self.give(value)
            if isinstance(part, FunCall) and isinstance(part.fun, FunVar):
                f = part.fun
                made = self.lawful.get(f.name) or self.function(f, len(self.found.functions) + 1)
                self.found.functions.setdefault(f.name, made)

    def give(self, value: ValueVar) -> None:
        """A constant: one that keeps what is assumed of it."""
        laws = {a.law: a.value for a in self.rule.assuming}
        kept = {a.value: 0.0 for a in self.rule.assuming}
        if "finite" in laws:
            kept = {laws["neutral"]: -math.inf, laws["finite"]: -3.4028235e38}
        self.found.values[value.name] = kept.get(value.name, 9.0)

    def accumulated(self) -> Lambda:
        """What is accumulated for m, and can be rescaled: `s + x * exp(sin(x) - sin(m))`."""
        m, s, x = (Param(name, F32) for name in "msx")
        return Lambda((m, s, x), s + x * exp(sin(x) - sin(m)))

    def concrete(self, t: Type) -> Type:
        """A rule's type with everything put in."""
        match t:
            case TypeVar(name, scalar):
                return F32 if scalar else self.types[name]
            case ArrayType(element, length):
                return ArrayType(self.concrete(element), nat(length.value(self.at)))
            case VectorType(element, width):
                return VectorType(self.concrete(element), nat(width.value(self.at)))
            case TupleType(elements):
                return TupleType(tuple(self.concrete(e) for e in elements))
            case _:
                return t

    def function(self, f: FunVar, number: int) -> Lambda:
        """A function that tells its arguments, and itself from others, apart."""
        params = tuple(Param(f"p{k}", self.concrete(t)) for k, t in enumerate(f.params))
        zeroed = f.name in self.products
        total: Expr = Literal(float(number), F32)
        for k, p in enumerate(params[1:] if zeroed else params):
            total = total + summary(p) * (2.0 + k + number)
        if zeroed:
            total = total * linear(params[0])
        return Lambda(params, self.spread(total, self.concrete(f.type), f.name))

    def spread(self, total: Expr, t: Type, name: str) -> Expr:
        """A value of a type, different in all of its parts, that depends on a number.

        The value of a product is 0 if the number is.
        """
        zeroed = name in self.products
        if isinstance(t, TupleType):
            parts = (total * (k + 1.0) + (0 if zeroed else k) for k in range(len(t.elements)))
            return Tuple(tuple(parts))
        if not isinstance(t, ArrayType):
            return operate(str(t), total) if t in {F64, I32} else total

        def element(y: Expr) -> Expr:
            number = summary(y) * 3
            return self.spread(number * total if zeroed else number + total, t.element, name)

        return Param(f"from_{name}", t) >> map(element)


def linear(x: Expr) -> Expr:
    """A number that depends on every scalar of a value and on their order, and is 0 if they are."""
    if isinstance(x.type, ArrayType):
        return x >> reduce(lambda a, y: a * 2.0 - linear(y), 0.0)
    if isinstance(x.type, TupleType):
        total: Expr = linear(x[0])
        for k in range(1, len(x.type.elements)):
            total = total * 2.0 - linear(x[k])
        return total
    return x


def summary(x: Expr) -> Expr:
    """A number that depends on every scalar of a value and on their order; an index, roughly."""
    if x.type == I32:
        return operate("select", x < 1, Literal(1.5, F32), Literal(4.0, F32))
    if x.type == F64:
        return operate("f32", x)
    if isinstance(x.type, ArrayType):
        return x >> reduce(lambda a, y: a * 2.0 - summary(y), 1.0)
    if isinstance(x.type, TupleType):
        total: Expr = Literal(0.5, F32)
        for k in range(len(x.type.elements)):
            total = total * 2.0 - summary(x[k])
        return total
    return x


@cache
def allowed_sizes(name):
    """Sizes that satisfy the rule's conditions, large and prime ones first."""
    rule, _ = with_permutations(RULES[name])
    known = variables(rule)
    holds = condition_of(rule, [v.name for v in known])
    allowed = [at for at in assignments(known, limit=20000) if holds(at)]
    measured, made = lengths(rule), [*itertools.islice(rule.left.type.lengths(), 1)]

    def rank(at):
        long, makes_long = (any(n.value(at) > 8 for n in of) for of in (measured, made))
        proper = sum(value > 1 for value in at.values())
        primes = sum(value in PRIMES for value in at.values())
        return -proper, not long, not (long or makes_long), -primes

    return sorted(allowed, key=rank)[:40]


def condition_of(rule, names):
    """Whether sizes satisfy a rule's conditions and make small arrays, as a compiled function."""
    source = Source(tuple(Parameter(name, 0, 0, "") for name in names))

    def small(t, most):
        elements = " * ".join(["1", *(source.number(length) for length in t.lengths())])
        return f"0 < {elements} <= {most}"

    asked = dict.fromkeys([*hypotheses(rule), *(c for _, c in requirements(rule.right))])
    parts = [small(rule.left.type, 1500), *(small(p.type, 700) for p in rule.left.free)]
    parts += [source.condition(constraint) for constraint in asked]
    keeps = source.function(names, " and ".join(parts))

    def holds(at):
        try:
            return keeps(*(at[name] for name in names))
        except ZeroDivisionError:  # a length that is divided by 0: a condition forbids it
            return False

    return holds


def type_variables(rule, *, scalar=False):
    """The names of the type variables that stand for any type, or of those for scalars."""
    names = set()

    def visit(t):
        match t:
            case TypeVar():
                names.update([t.name] if t.scalar == scalar else [])
            case ArrayType(element, _) | VectorType(element, _):
                visit(element)
            case TupleType(elements):
                for e in elements:
                    visit(e)
            case _:
                pass

    for side in (rule.left, rule.right):
        for _, part in top_down(side):
            visit(part.type)
            if isinstance(part, FunCall) and isinstance(part.fun, FunVar):
                for t in (*part.fun.params, part.fun.type):
                    visit(t)
    return sorted(names)


def exact(rule):
    """Whether a rule is about integers that are exact in floats."""
    return any(law.law == "exact" for law in rule.assuming)


def instance(name, data):
    """A random instance of a rule."""
    rule = RULES[name]
    at = data.draw(st.sampled_from(allowed_sizes(name)))
    elements = [I8] if exact(rule) else ELEMENTS
    types = {t: data.draw(st.sampled_from(elements)) for t in type_variables(rule)}
    return Instance(rule, at, types, data.draw(st.integers(1, 4)))


def value(expr, params):
    """The scalars of an expression's value on distinct whole numbers."""
    arrays = [whole(values_of(p.type, number)) for number, p in enumerate(params)]
    return flat(evaluate(Lambda(params, expr), *arrays, dtype=np.float64))


def whole(array):
    """Distinct whole numbers in the place of distinct eighths, small enough to stay exact."""
    if isinstance(array, tuple):
        return tuple(whole(a) for a in array)
    return array if array.dtype == np.int32 else array * 8


def free_of(*exprs):
    return tuple(sorted(set().union(*(e.free for e in exprs)), key=lambda p: p.name))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_applied_rule_keeps_the_value(name, data):
    made = instance(name, data)
    assert made.right.free <= made.left.free
    params = free_of(made.left)
    one, two = value(made.left, params), value(made.right, params)
    assert one.shape == two.shape, made.at
    if "repeat" not in name:
        assert one.size <= 2 or np.unique(one).size > 1, "values that can lose"
    np.testing.assert_allclose(two, one, rtol=1e-9, err_msg=str(made.at))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_matcher_finds_what_the_rule_was_made_of(name, data):
    made = instance(name, data)
    tunes = {tuned: made.found.sizes[tuned] for tuned in made.rule.tunes}
    found = match(made.rule, made.left, tunes, {})
    if isinstance(found, str):
        assert "hint" in found, found
        return
    after = instantiate(made.rule.right, found)
    params = free_of(made.left)
    np.testing.assert_allclose(value(after, params), value(made.left, params), rtol=1e-9)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DRAWN)
def test_rule_has_instances_of_long_arrays_and_of_prime_sizes(name):
    """The arrays are those of the left side, or its value."""
    sizes = allowed_sizes(name)
    assert sizes
    rule = with_permutations(RULES[name])[0]
    if measured := lengths(rule):
        measured = [*measured, *itertools.islice(rule.left.type.lengths(), 1)]
        assert any(length.value(at) > 8 for at in sizes for length in measured)
        numbers = {abs(value) for at in sizes for value in at.values()}
        odd_parts = {n // (n & -n) for n in numbers if n}  # a vector's width divides its length
        assert odd_parts & PRIMES

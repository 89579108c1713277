"""Laws of real numbers between arrays: both sides as polynomials in what is read.

A scalar is read as a polynomial with rational coefficients. Its variables are elements of arrays,
results of unknown functions, and sums over a length of products of these. A fold over a length that
is a number is unrolled. A fold over any other length must add to its accumulator in each step what
does not depend on the accumulator; it is then a sum, and sums of polynomials are taken apart:
`sum(2*x[i]*y + z[i]) = 2*y*sum(x[i]) + sum(z[i])`. Factors of a sum inside a sum move inwards,
`sum(x[i]*sum(y[i, j])) = sum(sum(x[i]*y[i, j]))`, if it is the only sum among them, and sums inside
sums are brought into the order of their lengths; sums of one length stay as they are, so a law that
exchanges these is not decided. If some steps of a fold read an array and others the constant around
it, there is a sum of each. Equal polynomials are equal for all real data, and at all sizes that are
not numbers. They need not be the same floating-point number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import AtMost, Constraint
from liftpy.ir.denote import denote
from liftpy.ir.function import UserFun
from liftpy.ir.nat import Nat, NatLike, Var, atom, nat
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value, known
from liftpy.ir.types import F32, FLOATS, ArrayType, TupleType, Type, VectorType
from liftpy.ir.walk import top_down
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.semantics.operations import DTYPES
from liftpy.semantics.refute import hypotheses
from liftpy.semantics.symbolic import components
from liftpy.semantics.verdict import Open

AGREE = "elements are the same polynomial"

Variable: TypeAlias = Hashable
Monomial: TypeAlias = "frozenset[tuple[Variable, int]]"
ONE: Monomial = frozenset()


@dataclass(frozen=True, slots=True)
class Named:
    """An element of an array, or a result of an unknown function: its name, and its arguments."""

    name: str
    args: tuple[Hashable, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})" if self.args else self.name


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a product over the values of a counter from 0 to below a length."""

    counter: str
    length: Nat
    product: Monomial

    def __str__(self) -> str:
        return f"sum({self.counter} < {self.length}, {shown(self.product)})"


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Products with their coefficients, none of which is 0."""

    terms: Mapping[Monomial, Fraction]

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @staticmethod
    def of(terms: Mapping[Monomial, Fraction]) -> Polynomial:
        """The polynomial with some terms; those with the coefficient 0 are left out."""
        return Polynomial({product: x for product, x in terms.items() if x})

    @staticmethod
    def constant(value: Fraction | int) -> Polynomial:
        """A number."""
        return Polynomial.of({ONE: Fraction(value)})

    @staticmethod
    def variable(name: Variable) -> Polynomial:
        """A variable."""
        return Polynomial({frozenset({(name, 1)}): Fraction(1)})

    def plus(self, other: Polynomial, factor: int | Fraction = 1) -> Polynomial:
        """`self + factor * other`."""
        total = dict(self.terms)
        for product, x in other.terms.items():
            total[product] = total.get(product, Fraction(0)) + factor * x
        return Polynomial.of(total)

    def times(self, other: Polynomial) -> Polynomial:
        """The product with another polynomial."""
        total: dict[Monomial, Fraction] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                product = multiplied(a, b)
                total[product] = total.get(product, Fraction(0)) + x * y
        return Polynomial.of(total)

    @property
    def number(self) -> Fraction | None:
        """The value of a polynomial without variables; None for any other."""
        return self.terms.get(ONE, Fraction(0)) if self.terms.keys() <= {ONE} else None

    def __str__(self) -> str:
        parts = (f"{x} * {shown(m)}" if m else str(x) for m, x in self.terms.items())
        return " + ".join(sorted(parts)) or "0"


def multiplied(a: Monomial, b: Monomial) -> Monomial:
    """The product of two products of variables."""
    exponents = dict(a)
    for variable, exponent in b:
        exponents[variable] = exponents.get(variable, 0) + exponent
    return frozenset(exponents.items())


def shown(product: Monomial) -> str:
    """A product of variables as text."""
    return " * ".join(sorted(f"{v}^{e}" if e > 1 else str(v) for v, e in product)) or "1"


def is_variable(product: Monomial) -> bool:
    """Whether a product is one variable."""
    return [e for _, e in product] == [1]


def mentions(value: Any, name: str) -> bool:
    """Whether a variable of a polynomial depends on a counter, or is the named variable."""
    match value:
        case Nat():
            return name in value.names()
        case Named(own, args):
            return own == name or any(mentions(a, name) for a in args)
        case Total(_, length, product):
            return name in length.names() or any(mentions(v, name) for v, _ in product)
        case Polynomial(terms):
            return any(mentions(v, name) for product in terms for v, _ in product)
        case tuple():
            return any(mentions(part, name) for part in value)
        case _:
            return False


def height(value: Any) -> int:
    """The number of sums in each other in a variable of a polynomial."""
    match value:
        case Named(_, args):
            return max(map(height, args), default=0)
        case Total(_, _, product):
            return 1 + max((height(v) for v, _ in product), default=0)
        case Polynomial(terms):
            return max((height(v) for product in terms for v, _ in product), default=0)
        case _:
            return 0


def renamed(value: Any, counter: str, new: str) -> Any:
    """A variable of a polynomial with another name for a counter."""
    match value:
        case Nat():
            return value.substitute({counter: atom(Var(new))})
        case Named(name, args):
            return Named(name, tuple(renamed(a, counter, new) for a in args))
        case Total(own, length, product):
            inside = frozenset((renamed(v, counter, new), e) for v, e in product)
            return Total(own, renamed(length, counter, new), inside)
        case Polynomial(terms):
            found: dict[Monomial, Fraction] = {}
            for product, x in terms.items():
                key = frozenset((renamed(v, counter, new), e) for v, e in product)
                found[key] = found.get(key, Fraction(0)) + x
            return Polynomial.of(found)
        case _:
            return value


class Undecided(Open):
    """Whether an index is inside an array depends on the sizes, or on the counter of a fold."""

    def __init__(self, index: Nat, length: Nat) -> None:
        super().__init__(AGREE, f"whether 0 <= {index} < {length} depends on the sizes")
        self.index = index
        self.length = length


KNOWN = ("adds", "accumulates", "scales")
"""The laws of functions that are polynomials."""


class PolynomialReader(ByName):
    """Reads meanings as polynomials; raises `Open` for what is not one."""

    def __init__(self, assuming: tuple[Assumption, ...], given: Sequence[Constraint] = ()) -> None:
        self.laws = {a.function: a.law for a in assuming if a.law in KNOWN}
        self.multiples = {str(a.value): a.function for a in assuming if a.law == "scales"}
        self.naturals = {c.right - c.left for c in given if isinstance(c, AtMost)}
        self.states = 0
        self.lengths: dict[str, Nat] = {}  # of the folds around, by their counters

    def leaf(self, name: str, t: Type, *args: Hashable) -> Value:
        """A metavariable of a type, or the result of an unknown function of `args`."""
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                return Pull(length, lambda i: self.leaf(name, element, *args, nat(i)))
            case TupleType(elements):
                return tuple(self.leaf(f"{name}.{k}", e, *args) for k, e in enumerate(elements))
            case _:
                return Polynomial.variable(Named(name, args))

    def flat(self, value: Value) -> Iterator[Hashable]:
        """An argument of an unknown function, without arrays."""
        match value:
            case tuple() | Parts():
                for part in components(value):
                    yield from self.flat(part)
            case Polynomial(terms) if list(terms.values()) == [1] and is_variable(*terms):
                yield value
            case _:
                reason = "an unknown function of an array, or of what is rounded, is no polynomial"
                raise Open(AGREE, reason)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        name = function.name
        match "scaled" if name in self.multiples else self.laws.get(name), args:
            case "adds", (x, y):
                return x.plus(y)
            case "accumulates", (total, pair):
                x, y = components(pair)
                return total.plus(x.times(y))
            case "scales", (x,):
                return x.times(self.multiple(name))
            case "scaled", (x,):
                constant = Polynomial.variable(Named(f"{name}(0)", ()))
                return constant.plus(x.times(self.multiple(self.multiples[name])))
            case None, _:
                pass
            case _:
                raise Open(AGREE, f"{name} has {len(args)} arguments, which its law does not fit")
        flat = (f for a in args for f in self.flat(a))
        return self.leaf(f"{name}()", function.type, *flat)

    def multiple(self, function: str) -> Polynomial:
        """The number by which a function multiplies its argument."""
        return Polynomial.variable(Named(f"{function}(1)", ()))

    def literal(self, value: float, t: Type) -> Value:
        with np.errstate(over="ignore"):
            has = t in FLOATS and math.isfinite(value) and float(DTYPES[str(t)](value)) == value
        if not has:
            raise Open(AGREE, f"{value} is no real number that {t} has")
        return Polynomial.constant(Fraction(value))

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        match op, args:
            case "+", (x, y):
                return x.plus(y)
            case "-", (x, y):
                return x.plus(y, -1)
            case "neg", (x,):
                return Polynomial.constant(0).plus(x, -1)
            case "*", (x, y):
                return x.times(y)
            case "/", (x, y) if y.number:
                return Polynomial.constant(0).plus(x, 1 / y.number)
            case _:
                raise Open(AGREE, f"`{op}` of {', '.join(map(str, args))} is no polynomial")

    def inside(self, index: Index, length: NatLike) -> Value:
        place, rest = nat(index), nat(length) - nat(index)
        last = self.last(place)
        least, most = place.bounds[0], (nat(length) - last).bounds[0]
        if least is not None and least >= 0 and most is not None and most > 0:
            return True
        above, beyond = last.bounds[1], rest.bounds[1]
        if (above is not None and above < 0) or (beyond is not None and beyond <= 0):
            return False
        raise Undecided(place, nat(length))

    def last(self, index: Nat) -> Nat:
        """An index, with the greatest values of the counters that are added to it.

        >>> reader = PolynomialReader(())
        >>> i, n = atom(Var("i")), atom(Var("n"))
        >>> reader.lengths["i"] = n
        >>> print(reader.last(i + 2))
        n + 1
        """
        for counter, most in self.lengths.items():
            others = index - atom(Var(counter))
            if counter in index.names() and counter not in others.names():
                index = others + most - 1
        return index

    def is_natural(self, size: Nat) -> bool:
        """Whether a size is known not to be negative."""
        least, _ = size.bounds
        return size in self.naturals or (least is not None and least >= 0)

    def cut(self, length: Nat, counter: str, undecided: Undecided) -> Nat | None:
        """The number of steps of a fold after which an index enters an array, or leaves it.

        None if it depends on the counter, or may be outside of the fold.
        """
        enters = atom(Var(counter)) - undecided.index
        for cut in (enters, enters + undecided.length):
            inside = cut not in (nat(0), length) and counter not in cut.names()
            if inside and self.is_natural(cut) and self.is_natural(length - cut):
                return cut
        return None

    def clip(self, index: Index, of: Pull) -> Index:
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        return then if condition else self.literal(otherwise, F32)

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return then if condition else otherwise

    def of_index(self, index: Index, t: Type) -> Value:
        raise Open(AGREE, f"an index as {t} is no polynomial")

    def made(self, fun: Any, values: list[Value], result: Value) -> Value:
        return known(result)

    def bound(self, value: Value, meant: Any, env: Mapping[Any, Value]) -> Value:
        return known(value)

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        number = nat(length).constant
        if number is not None:
            for k in range(number):
                init = step(nat(k), init)
            return init
        if not isinstance(init, Polynomial):
            raise Open(AGREE, f"a fold over {length} elements to an array or a tuple is no sum")
        self.states += 1
        counter, state = f"counter {self.states}#", f"state {self.states}#"
        before = Polynomial.variable(Named(state, ()))
        self.lengths[counter] = nat(length)
        try:
            added = step(atom(Var(counter)), before).plus(before, -1)
        except Undecided as why:
            first = self.cut(nat(length), counter, why)
            if first is None:
                raise
            init = self.fold(first, init, step)
            return self.fold(nat(length) - first, init, lambda i, a: step(first + i, a))
        finally:
            del self.lengths[counter]
        if mentions(added, state):
            raise Open(AGREE, f"a step of a fold over {length} elements does more than add")
        return init.plus(summed(added, counter, nat(length)))


def summed(added: Polynomial, counter: str, length: Nat) -> Polynomial:
    """The sum of a polynomial over a counter; what does not depend on it is taken out.

    The counter gets a name that depends on the sums inside only, so that equal sums are equal.
    """
    variables = {v for product in added.terms for v, _ in product}
    heights = {v: height(v) for v in variables if mentions(v, counter)}
    names = {h: f"k{h + 1}#" for h in {0, *heights.values()}}
    by_name = {(v, h): renamed(v, counter, names[h]) for v in heights for h in names}
    total: dict[Monomial, Fraction] = {}
    for product, x in added.terms.items():
        inside = [(v, e) for v, e in product if v in heights]
        most = max((heights[v] for v, _ in inside), default=0)
        named = within(frozenset((by_name[v, most], e) for v, e in inside))
        sums = frozenset({(ordered(Total(names[most], length, named)), 1)})
        whole = multiplied(product.difference(inside), sums)
        total[whole] = total.get(whole, Fraction(0)) + x
    return Polynomial.of(total)


def within(product: Monomial) -> Monomial:
    """A product with one sum, as a sum of products; any other product as it is."""
    totals = [v for v, e in product if isinstance(v, Total) and e == 1]
    others = frozenset((v, e) for v, e in product if v not in totals)
    if len(totals) != 1 or any(height(v) for v, _ in others):
        return product
    (total,) = totals  # its counter occurs in no other factor: counters are numbered by height
    return frozenset({(replace(total, product=within(multiplied(others, total.product))), 1)})


def ordered(total: Total) -> Total:
    """A sum of sums, in the alphabetical order of their lengths."""
    inner = next((v for v, e in total.product if e == 1), None)
    if not isinstance(inner, Total) or len(total.product) > 1:
        return total
    one, two = total.counter, inner.counter
    if str(total.length) <= str(inner.length) or one in inner.length.names():
        return total
    product = inner.product
    for old, new in ((one, "#"), (two, one), ("#", two)):
        product = frozenset((renamed(v, old, new), e) for v, e in product)
    within = ordered(Total(two, total.length, product))
    return Total(one, inner.length, frozenset({(within, 1)}))


def same(left: Value, right: Value, read: PolynomialReader, path: tuple[Nat, ...] = ()) -> None:
    """Show that two values are the same polynomials; raises `Open`.

    All elements of an array whose length is a number are compared, and an arbitrary one of others.
    """
    match left, right:
        case Pull(), Pull():
            number = nat(left.length).constant
            anywhere = atom(Var(f"i{len(path)}#"))
            for i in [anywhere] if number is None else map(nat, range(number)):
                same(left[i], right[i], read, (*path, i))
        case ((tuple() | Parts()), (tuple() | Parts())):
            for a, b in zip(components(left), components(right), strict=True):
                same(a, b, read, path)
        case _ if left != right:
            place = "".join(f"[{i}]" for i in path)
            terms = left.plus(right, -1).terms
            first = min(str(Polynomial({product: x})) for product, x in terms.items())
            raise Open(AGREE, f"the sides differ at {place or 'the result'}, for one by {first}")
        case _:
            pass


def show_polynomial(rule: Rule) -> str:
    """Show that both sides are the same polynomials; raises `Open`. Returns what was shown.

    Integers are no real numbers: they wrap, and their quotients are rounded.
    """
    for side in (rule.left, rule.right):
        for _, part in top_down(side):
            if isinstance(part, FunCall) and isinstance(part.fun, ScalarOp | UserFun):
                types = (part.type, *(a.type for a in part.args))
                if isinstance(part.fun, UserFun) or not all(t in FLOATS for t in types):
                    raise Open(
                        AGREE, f"{part.fun} of {types[-1]} is not read as one of real numbers"
                    )
    read = PolynomialReader(rule.assuming, hypotheses(rule))
    env = {p: read.leaf(p.name, p.type) for p in rule.left.free | rule.right.free}
    same(denote(rule.left, env, read), denote(rule.right, env, read), read)
    return AGREE

"""Rules: laws between programs, as data.

A rule consists of two expressions with metavariables and the conditions under which they are equal.
The same value is matched, proved by z3 (liftpy/semantics), printed in the documentation, and adds
its conditions to the constraint system. A rule without a proof cannot be applied.

Metavariables: `Param` stands for any expression, `FunVar` for any function, `TypeVar` for any type,
and the sizes in `sizes` for any naturals. `FunVar("f")` applied to bound variables stands for any
expression that mentions those variables and no other bound variable of the rule. This expresses
conditions such as "the operator does not depend on the outer element". `index("phi")` stands for
any index function of `reorder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, Self

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import FunVar
from liftpy.ir.nat import INDEX, ONE, ZERO, Applied, Nat, NatLike, Var, atom, nat, var
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.walk import children, every_part

LawName = Literal[
    "associative",
    "commutative",
    "neutral",
    "finite",
    "annihilates",
    "rescales",
    "keeps",
    "adds",
    "accumulates",
    "scales",
    "exact",
]
Proof = Literal[
    "pointwise",
    "lockstep",
    "definition",
    "blocks",
    "nested",
    "chunks",
    "exchange",
    "permuted",
    "idle",
    "carried",
    "sequel",
    "online",
    "rescaled",
    "real",
    "polynomial",
    "exact",
    "integral",
]


REAL_LAWS: frozenset[Proof] = frozenset({"real", "polynomial"})
"""The methods that prove a law of real numbers."""


EXACT: frozenset[Proof] = frozenset({"exact", "integral"})
"""The methods that prove a law of integers, some of which are computed in f32."""


BOUND = "bound"
"""The size metavariable for the largest magnitude of what a function computes exactly."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A law of the function that metavariable `function` stands for.

    The first three laws are declared of user functions. For `neutral`, `value` names the literal
    metavariable that is bound to the declared element. `finite(d, f)` says that `d` is neutral to
    `f` among finite numbers, as the least finite number is to `maximum`. `annihilates(c, f)` says
    that `c` is 0, and that `f` is 0 if its first argument is, among finite numbers.

    `adds(f)` says that `f` adds its arguments, `accumulates(f)` that it adds the product of a pair
    to its first argument, in the type of that argument. `scales`, `rescales` and `keeps` are laws
    of a function `r` that the left side does not mention. `scales(r, h)` says that `h` adds a
    constant to `r` of its argument, a multiple of it. In the others, `r` turns what `k` accumulated
    from `e` for one parameter into what it accumulates for another. Each of the five is an
    `equation`, decided by the laws of real numbers (rewrite/reals.py), which also find each `r`.

    `exact(h, g)` says that `h` computes in f32 what `g` does in i32, without rounding. Ranges of
    types decide it, and give `h` and the bound of the results (rewrite/exactness.py).
    """

    law: LawName
    function: str
    value: str | None = None

    @property
    def equation(self) -> str:
        """The law as an equation; empty for a law whose name says it."""
        f, value = self.function, self.value
        match self.law:
            case "annihilates":
                return f"{f}({value}, y) = {value} for finite numbers, where {value} is 0"
            case "finite":
                return f"{f}({value}, x) = x = {f}(x, {value}) for finite numbers"
            case "rescales":
                return f"{f}(m, n, {value}(m, s, x)) = {value}(n, {f}(m, n, s), x)"
            case "keeps":
                return f"{f}(m, n, {value}) = {value}"
            case "adds":
                return f"{f}(a, x) = a + x"
            case "scales":
                return f"{value}(a + x * y) = {value}(a) + x * {f}(y)"
            case "exact":
                return f"{f}(x) = f32({value}(x)) exactly, abs({value}(x)) <= {BOUND}"
            case "accumulates":
                return f"{f}(a, p) = a + p.0 * p.1"
            case _:
                return ""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.law}({self.function})"
        if self.law in {"neutral", "finite", "annihilates"}:
            return f"{self.law}({self.value}, {self.function})"
        return f"{self.law}({self.function}, {self.value})"


@dataclass(frozen=True)
class Rule:
    """A law, directed from `left` to `right`.

    where: conditions on the sizes, beyond those that the primitives of `left` already require.
    assuming: laws of user functions.
    tunes: sizes that only the right side mentions; an application makes a fresh parameter for each.
    proof: how semantics/prove.py proves it:
        pointwise   sizes and elements agree at every index
        lockstep    both sides fold in equally many steps, which keep the accumulators equal
        definition  the primitive on the right has the same meaning as that on the left
        blocks      a fold over blocks: induction over and within the blocks, by associativity
        nested      a fold over a join: induction over rows and within a row
        chunks      one side continues, within a chunk, from a fold of the chunks before it
        exchange    two folds exchanged: induction over the rows, by associativity and commutativity
        permuted    the same steps in another order, each once, and any two steps commute
        idle        one side takes more steps; the additional ones change nothing
        sequel      one side continues with a second fold where its first one ended
        carried     one side is a function of the other's fold; each step preserves this
        online      a fold and one that reads its result, as a single fold of both: induction over
                    the steps; what is accumulated for one result is rescaled to the next
        rescaled    lockstep; folds inside a step are those of the other side, rescaled
        real        a law of real numbers between floating-point scalars: it holds up to rounding
        polynomial  a law of real numbers between arrays: each element is the same polynomial in the
                    elements of the arrays and their sums over a length; it holds up to rounding
        exact       a sum of integers in f32 that is never rounded: induction over the steps
        integral    a law of integers between arrays: each element is the same polynomial, and no
                    number in f32 is rounded
    """

    name: str
    family: str
    left: Expr
    right: Expr
    where: tuple[Constraint, ...] = ()
    assuming: tuple[Assumption, ...] = ()
    tunes: tuple[str, ...] = ()
    proof: Proof = "pointwise"
    reassociates: bool = field(init=False)

    def __post_init__(self) -> None:
        laws = {a.law for a in self.assuming}
        exact = {"neutral", "finite", "annihilates"}
        rounds = self.proof in REAL_LAWS or (self.proof not in EXACT and not laws <= exact)
        object.__setattr__(self, "reassociates", rounds)

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        """Of the name alone: rules are looked up often, and a name is rarely used twice."""
        return hash(self.name)


class ValueVar(float):
    """A metavariable for a constant: a float by type, identified by its name."""

    name: str

    def __new__(cls, name: str) -> Self:
        self = super().__new__(cls, "nan")
        self.name = name
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueVar) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


@cache
def hints_of(rule: Rule) -> tuple[str, ...]:
    """The names for which the matcher needs a hint, because it cannot see where a part ends."""
    given = list(_given(rule.left, frozenset()))
    functions = {a.fun.name for a in given if isinstance(a, FunCall) and isinstance(a.fun, FunVar)}
    values = {a.name for a in given if isinstance(a, Param) and a in rule.left.free}
    return tuple(sorted(functions | values))


def _given(expr: Expr, bound: frozenset[Param]) -> Iterator[Expr]:
    """The arguments of unknown functions, except variables bound around them."""
    if isinstance(expr, FunCall):
        if isinstance(expr.fun, FunVar):
            yield from (a for a in expr.args if a not in bound)
        for a in expr.args:
            yield from _given(a, bound)
        if (function := function_of(expr.fun)) is not None:
            yield from _given(function.body, bound | set(function.params))
    else:
        for child in children(expr):
            yield from _given(child, bound)


@cache
def sizes_of(rule: Rule) -> tuple[Var, ...]:
    """The size metavariables of a rule with their ranges, by name."""
    sizes = [size for condition in rule.where for size in (condition.left, condition.right)]
    for side in (rule.left, rule.right):
        for part in every_part(side):
            sizes += part.type.lengths()
            if isinstance(part, FunCall) and isinstance(part.fun, Primitive):
                sizes += part.fun.numbers().values()
    found = {a.name: a for size in sizes for a in size.atoms() if isinstance(a, Var)}
    return tuple(found[name] for name in sorted(found) if name != INDEX)


def index(function: str, argument: NatLike | None = None) -> Nat:
    """The metavariable of an index function applied to an index, by default `i`."""
    return atom(Applied(function, var(INDEX) if argument is None else nat(argument)))


def with_indices(size: Nat, functions: Mapping[str, Nat]) -> Nat:
    """A size or index with terms over `i` substituted for metavariables of index functions."""
    if not any(isinstance(a, Applied) for a in size.atoms()):
        return size
    total = ZERO
    for monomial, coefficient in size.terms.items():
        product = ONE
        for factor, exponent in monomial:
            new = tuple(with_indices(part, functions) for part in factor.parts())
            if isinstance(factor, Applied) and factor.function in functions:
                value = functions[factor.function].substitute({INDEX: new[0]})
            else:
                value = factor.rebuild(new)
            for _ in range(abs(exponent)):
                product = product * value if exponent > 0 else product.exact_div(value)
        total = total + product * coefficient
    return total

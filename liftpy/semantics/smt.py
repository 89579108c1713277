"""z3: naturals and conditions as terms, and the only code that calls the solver.

A floor quotient is a fresh integer `q` with `n = d*q + r` and `0 <= r < d` if `d >= 1`; nothing is
known about it if `d` is not positive. An exact division adds the fact that `r = 0`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import z3

from liftpy.deadline import check, seconds_left
from liftpy.errors import InternalError
from liftpy.ir.constraint import AtMost, Constraint, Divides, Equal, Everywhere, Stays
from liftpy.ir.nat import (
    INDEX,
    ONE,
    Applied,
    Extreme,
    Nat,
    NatLike,
    Quotient,
    Remainder,
    Var,
    atom,
    nat,
)
from liftpy.ir.polynomial import Atom, Monomial
from liftpy.primitives.transpose import Permutes
from liftpy.semantics.digits import never_meet

Bool: TypeAlias = Any  # z3 has no types
Int: TypeAlias = Any

#: The limit of each solver for one query, in z3's own steps, which are the same on every machine;
#: about 2 million take a second. No query of the catalogue's proofs takes a tenth of the limit.
STEPS = 5_000_000
#: The limit where there is a fallback if the solver gives up.
FEWER_STEPS = 1_000_000
#: The limit of each solver in the first round; more steps rarely help.
FIRST_STEPS = 100_000
#: The timeout in seconds of a call without a time limit.
A_MONTH = 30 * 86_400
#: Queries without a solution, by text and steps: a mutant repeats many queries of its rule.
UNSAT: set[tuple[str, int]] = set()
#: The most queries that are kept.
KEPT = 4096


@dataclass(frozen=True, slots=True)
class Answer:
    """The solver's answer: `model` if it found one, `reason` if it gave up."""

    status: Literal["unsat", "sat", "unknown"]
    model: Any = None
    reason: str = ""


def ask(assertions: Iterable[Bool], steps: int = STEPS, *, alone: bool = False) -> Answer:
    """Whether the assertions can hold together, by a fresh solver in a context of its own.

    With `alone`, that is the context of the assertions, which must contain nothing else.

    z3 orders terms by age; with a context of its own, an answer depends neither on the machine nor
    on earlier queries. z3's solver without preprocessing takes a third of the time of the other
    one, and often decides goals with products of unknowns that the other does not; sometimes the
    reverse is true. So both are asked, this one first, and both with few steps first. `steps`
    limits each. If the time limit of a call ends meanwhile, TimeUp is raised. Queries without a
    solution are remembered.
    """
    asked, reason = list(assertions), ""
    query = written(asked), steps
    if query in UNSAT:
        return Answer("unsat")
    home = asked[0].ctx if asked else z3.main_ctx()
    own = home if alone else z3.Context()
    moved = asked if alone else [assertion.translate(own) for assertion in asked]
    for limit in sorted({min(FIRST_STEPS, steps), steps}):
        for make in (z3.SimpleSolver, z3.Solver):
            solver = make(ctx=own)
            solver.set("rlimit", limit)
            solver.set("timeout", math.ceil(1000 * seconds_left(A_MONTH)) + 1)
            solver.add(*moved)
            result = solver.check()
            if result == z3.unsat:
                if len(UNSAT) == KEPT:
                    UNSAT.clear()
                UNSAT.add(query)
                return Answer("unsat")
            if result == z3.sat:
                model = solver.model()
                return Answer("sat", model if alone else model.translate(home))
            check()
            reason = solver.reason_unknown()
    return Answer("unknown", reason=reason)


def written(asked: list[Bool]) -> str:
    """Assertions of one context in SMT-LIB, with the sorts of what they mention."""
    if not asked:
        return ""
    *others, last = (assertion.as_ast() for assertion in asked)
    array = (z3.Ast * len(others))(*others)
    context = asked[0].ctx.ref()
    return z3.Z3_benchmark_to_smtlib_string(context, "", "", "", "", len(others), array, last)


class Terms:
    """Naturals as z3 integers. `facts` are known facts about the terms made so far.

    In a context of its own, the terms do not depend on earlier ones: z3 orders terms by age.
    """

    def __init__(self, context: z3.Context | None = None) -> None:
        self.context = context
        self.facts: list[Bool] = []
        self.atoms: dict[Atom, Int] = {}
        self.quotients: dict[tuple[Nat, Nat], tuple[Int, Int]] = {}
        self.exactly: list[tuple[Nat, Nat]] = []

    def nat(self, value: NatLike) -> Int:
        """A natural as a term."""
        total: Int = z3.IntVal(0, self.context)
        for over, under in nat(value).fractions:
            if under != ONE and len(over.terms) > 1:  # an integer only as a whole
                total = total + self.divide(over, under)[0]
                continue
            for monomial, coefficient in over.exact_div(under).terms.items():
                total = total + coefficient * self.monomial(monomial)
        return z3.simplify(total)

    def monomial(self, monomial: Monomial) -> Int:
        """A product; factors with negative exponents are divided out exactly."""
        over = tuple((a, e) for a, e in monomial if e > 0)
        under = tuple((a, -e) for a, e in monomial if e < 0)
        if under:
            return self.exact(over, under)
        product: Int = z3.IntVal(1, self.context)
        for factor, exponent in over:
            for _ in range(exponent):
                product = product * self.atom(factor)
        return product

    def exact(self, over: Monomial, under: Monomial) -> Int:
        """An exact quotient: the rest of `over` times one that is assumed exact, if one fits."""
        divisor = Nat({under: 1})
        for numerator, denominator in self.exactly:
            if denominator == divisor and len(numerator.terms) == 1:
                ((known, coefficient),) = numerator.terms.items()
                rest = dict(over)
                for factor, exponent in known:
                    rest[factor] = rest.get(factor, 0) - exponent
                if coefficient == 1 and all(e >= 0 for e in rest.values()):
                    left = tuple((a, e) for a, e in rest.items() if e)
                    return self.monomial(left) * self.divide(numerator, denominator)[0]
        return self.divide(Nat({over: 1}), divisor)[0]

    def atom(self, a: Atom) -> Int:
        """A factor as a term."""
        if a not in self.atoms:
            match a:
                case Var(name=name, low=low, high=high):
                    term = z3.Int(name, self.context)
                    if low is not None:
                        self.facts.append(term >= low)
                    if high is not None:
                        self.facts.append(term <= high)
                case Quotient(numerator=numerator, denominator=denominator):
                    term = self.divide(numerator, denominator)[0]
                case Remainder(numerator=numerator, denominator=denominator):
                    term = self.divide(numerator, denominator)[1]
                case Extreme(left=left, right=right, largest=largest):
                    one, two = self.nat(left), self.nat(right)
                    term = z3.If(one >= two if largest else one <= two, one, two)
                case Applied(function=name, argument=argument):
                    whole = z3.IntSort(self.context)
                    term = z3.Function(name, whole, whole)(self.nat(argument))
                case _:
                    raise InternalError(f"no z3 term for {a.key}")
            self.atoms[a] = term
        return self.atoms[a]

    def divide(self, numerator: Nat, denominator: Nat) -> tuple[Int, Int]:
        """Floor quotient and remainder; facts relate them if the denominator is positive."""
        pair = numerator, denominator
        if pair not in self.quotients:
            n, d = self.nat(numerator), self.nat(denominator)
            q, r = z3.FreshInt("q", self.context), z3.FreshInt("r", self.context)
            self.quotients[pair] = q, r
            related = z3.And(n == d * q + r, r >= 0, r < d)
            self.facts.append(z3.Implies(d >= 1, related))
            low = numerator.bounds[0]
            if low is not None and low >= 0:
                self.facts.append(z3.Implies(d >= 1, q >= 0))
        return self.quotients[pair]

    def assume(self, constraint: Constraint) -> Bool:
        """A condition as a formula to assume; called before terms that depend on it are made."""
        if isinstance(constraint, Divides):
            self.exactly.append((constraint.right, constraint.left))
        return self.condition(constraint)

    def condition(self, constraint: Constraint) -> Bool:
        """A condition as a formula."""
        left, right = constraint.left, constraint.right
        match constraint:
            case AtMost():
                return self.nat(left) <= self.nat(right)
            case Equal():
                return self.nat(left) == self.nat(right)
            case Divides():
                q, r = self.divide(right, left)
                d = self.nat(left)
                return z3.And(d >= 1, r == 0, self.nat(right) == d * q)
            case Permutes(inverse=inverse):
                functions = (left, inverse), (inverse, left)
                return z3.And([self.all_undone(f, g, right) for f, g in functions])
            case Stays(count=count):
                return self.all_stay(left, right, count)
            case _:
                raise InternalError(f"no formula for {constraint}")

    def claims(self, constraint: Constraint) -> list[Bool]:
        """A condition as formulas to show one by one; one on all indices gets a new index."""
        if not isinstance(constraint, Everywhere):
            return [self.condition(constraint)]
        i = atom(Var(f"i{len(self.atoms)}#", None))
        if isinstance(constraint, Stays):
            return self.inside(constraint.left, constraint.right, constraint.count, i)
        if not isinstance(constraint, Permutes):
            raise InternalError(f"no formula for {constraint}")
        functions = (constraint.left, constraint.inverse), (constraint.inverse, constraint.left)
        return [goal for f, g in functions for goal in self.undone(f, g, constraint.right, i)]

    def undone(self, function: Nat, inverse: Nat, length: Nat, i: Nat) -> list[Bool]:
        """The formulas that `function(i)` is in range and `inverse` undoes it, for `i` in range."""
        image = function.substitute({"i": i})
        index, result = self.nat(i), self.nat(image)
        back, end = self.nat(inverse.substitute({"i": image})), self.nat(length)
        in_range = z3.And(index >= 0, index < end)
        return [z3.Implies(in_range, goal) for goal in (result >= 0, result < end, back == index)]

    def inside(self, function: Nat, end: Nat, count: Nat, i: Nat) -> list[Bool]:
        """The formulas that `function(i)` is in `0 .. end - 1` if `i` is below `count`."""
        index, image = self.nat(i), self.nat(function.substitute({INDEX: i}))
        in_range = z3.And(index >= 0, index < self.nat(count))
        return [z3.Implies(in_range, goal) for goal in (image >= 0, image < self.nat(end))]

    def all_stay(self, function: Nat, end: Nat, count: Nat) -> Bool:
        """`inside` for all indices; nothing is assumed of a function with a division."""
        if divides_somewhere(function):
            return z3.BoolVal(val=True, ctx=self.context)
        i = atom(Var(f"i{len(self.atoms)}#", None))
        return z3.ForAll([self.nat(i)], z3.And(self.inside(function, end, count, i)))

    def all_undone(self, function: Nat, inverse: Nat, length: Nat) -> Bool:
        """`undone` for all indices; nothing is assumed of functions with a division."""
        if divides_somewhere(function) or divides_somewhere(inverse):
            return z3.BoolVal(val=True, ctx=self.context)
        i = atom(Var(f"i{len(self.atoms)}#", None))
        return z3.ForAll([self.nat(i)], z3.And(self.undone(function, inverse, length, i)))


def divides_somewhere(n: Nat) -> bool:
    """Whether a natural contains a floor division or a remainder."""
    return any(isinstance(a, Quotient | Remainder) for a in n.atoms())


# --- collisions of work-items -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collision:
    """Two work-items of a group that touch one address: the variables of each, and the address."""

    first: dict[str, int]
    second: dict[str, int]
    address: int

    def __str__(self) -> str:
        one, two = (
            ", ".join(f"{n} = {v}" for n, v in sorted(side.items()))
            for side in (self.first, self.second)
        )
        return f"address {self.address} is touched at {one} and at {two}"


@dataclass(frozen=True, slots=True)
class Undecided:
    """The solver gave up: treat it as a collision."""

    reason: str


@dataclass(frozen=True, slots=True)
class Side:
    """The addresses that one access touches: an address over variables, under conditions."""

    address: Nat
    where: tuple[Constraint, ...] = ()

    def variables(self) -> dict[str, Var]:
        """The variables by name, those of the conditions too."""
        sizes = (self.address, *(n for c in self.where for n in (c.left, c.right)))
        return {a.name: a for n in sizes for a in n.atoms() if isinstance(a, Var)}


def find_collision(
    first: Side,
    second: Side,
    local: Mapping[str, int],
    shared: Collection[str] = (),
    later: Collection[str] = (),
) -> Collision | Undecided | None:
    """Two different work-items of a group that may touch one address; None if there are none.

    The variables in `local` are the ids of a work-item within its group, each with its count: the
    two work-items differ in one of them. Those in `shared` (ids of the group, counters of loops
    around both accesses) are the same for both; those in `later` are larger for the second. All
    others are private to each work-item. The answer does not depend on earlier ones, so the same
    kernel yields the same witness. If digits show that there is no collision, no solver is asked.
    """
    conditions = first.where, second.where
    if never_meet(first.address, second.address, local, shared, later, conditions):
        return None
    known = first.variables() | second.variables()
    ids = {name: atom(Var(name, 0, count - 1)) for name, count in local.items()}
    own = {
        name: atom(known[name] if name in shared else Var(f"{name}'", v.low, v.high))
        for name, v in second.variables().items()
    }
    own |= {name: atom(Var(f"{name}'", 0, count - 1)) for name, count in local.items()}
    context = z3.Context()
    terms = Terms(context)
    here, there = terms.nat(first.address), terms.nat(second.address.substitute(own))
    goal = [
        here == there,
        z3.Or([terms.nat(mine) != terms.nat(own[name]) for name, mine in ids.items()]),
        *(terms.condition(c) for c in first.where),
        *(terms.condition(c.substitute(own)) for c in second.where),
        *(
            terms.nat(atom(known[name])) < terms.nat(own[name])
            for name in later
            if name in known and name in own
        ),
    ]
    answer = ask([*terms.facts, *goal], FEWER_STEPS, alone=True)
    if answer.status == "unsat":
        return None
    if answer.status == "unknown":
        return Undecided(answer.reason)

    def read(n: Nat) -> int:
        return answer.model.eval(terms.nat(n), model_completion=True).as_long()

    one = {n: read(atom(known[n])) for n in sorted(first.address.names())}
    two = {n: read(own[n]) for n in sorted(second.address.names())}
    one |= {name: read(mine) for name, mine in ids.items()}
    two |= {name: read(own[name]) for name in ids}
    return Collision(one, two, read(first.address))


# --- points -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Witness:
    """Values of variables at which conditions hold."""

    at: dict[str, int]


def find_point(
    all_of: Collection[Constraint], one_of_each: Collection[Collection[Constraint]] = ()
) -> Witness | Undecided | None:
    """Values of variables, in their ranges, at which conditions hold; None if there are none.

    All conditions of `all_of` hold, and at least one of each collection in `one_of_each`.
    """
    terms = Terms(z3.Context())
    goal = [terms.condition(c) for c in all_of]
    goal += [z3.Or([terms.condition(c) for c in some]) for some in one_of_each]
    answer = ask([*terms.facts, *goal], FEWER_STEPS, alone=True)
    if answer.status == "unsat":
        return None
    if answer.status == "unknown":
        return Undecided(answer.reason)
    every = {n for c in (*all_of, *(c for some in one_of_each for c in some)) for n in c.names()}

    def read(name: str) -> int:
        value = answer.model.eval(z3.Int(name, terms.context), model_completion=True)
        return value.as_long()

    return Witness({name: read(name) for name in sorted(every)})

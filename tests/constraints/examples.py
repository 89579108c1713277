"""Constraint systems that several tests look at."""

import itertools
import random

from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.ir.constraint import at_least, at_most, divides, equal
from liftpy.ir.nat import Quotient, Remainder, nat
from liftpy.rewrite.skeleton import Parameter


def system(parameters, *constraints):
    """A system of parameters given as `name=(low, high)`; `ask k` asks for condition k."""
    named = tuple(Parameter(n, low, high, f"the size {n}") for n, (low, high) in parameters.items())
    clauses = [Clause(c, (f"ask {k}",)) for k, c in enumerate(constraints)]
    return ConstraintSystem(named, tuple(clauses))


def sizes(**ranges):
    """The parameters as naturals with their ranges, in order."""
    return tuple(Parameter(n, low, high, "").nat for n, (low, high) in ranges.items())


def four_stages(rho=32, group=384):
    """The published space of VGG-16 layer 7 in four stages (specs: lift-convolution, section 7)."""
    H, p, C, K, S, M = 112, 1, 128, 3, 1, 128
    n, top = C * K * K, H + 2 * p
    ranges = {
        "theta": (K, 2 * top),
        "rho": (0, rho),
        "sigma": (1, (2 * top) ** 2),
        "omega": (1, n),
        "v": (1, 4),
        "kappa": (1, M),
    }
    theta, rho_, sigma, omega, v, kappa = sizes(**ranges)
    D, ts = top + rho_, theta - K + S
    nW = (theta - K) // S + 1
    conditions = (
        at_most(theta, D),
        divides(ts, D - theta),
        divides(sigma, nW * nW),
        divides(omega, n),
        divides(v, omega),
        divides(v, 4),
        divides(kappa, M),
        at_most(nat(n).exact_div(omega) * (nW * nW).exact_div(sigma), group),
    )
    return system(ranges, *conditions)


def random_system(seed):
    """A small system of two to five parameters: products, divisors, quotients, all comparisons."""
    rng = random.Random(seed)
    ranges = {}
    for name in "abcde"[: rng.randint(2, 5)]:
        low = rng.choice([0, 1, 1, 1, 2])
        ranges[name] = (low, low + rng.randint(1, 7))
    variables = sizes(**ranges)

    def size(depth=2):
        kind = rng.choice(["number", "var", "var", "sum", "product", "over", "exact", "rest"])
        if depth == 0 or kind == "var":
            return rng.choice(variables)
        if kind == "number":
            return nat(rng.randint(1, 24))
        left, right = size(depth - 1), size(depth - 1)
        match kind:
            case "sum":
                return left + rng.choice([1, 1, -1]) * right
            case "product":
                return left * right
            case "over":
                return left // right if right.constant != 0 else left
            case "rest":
                return left % right if right.constant != 0 else left
            case _:
                return left.exact_div(right) if right.constant != 0 else left

    conditions = []
    for _ in range(rng.randint(1, 5)):
        make = rng.choice([divides, divides, at_most, at_least, equal])
        conditions.append(make(size(), size()))
    return system(ranges, *conditions)


def every_point(of):
    """All assignments in the ranges of a system, whether they satisfy it or not."""
    names = [p.name for p in of.parameters]
    for values in itertools.product(*(range(p.low, p.high + 1) for p in of.parameters)):
        yield dict(zip(names, values, strict=True))


def satisfies(found, point):
    """The conditions at a point, by the terms alone: every divisor at least 1, comparisons true."""

    def defined(size):
        for monomial in size.terms:
            under = 1
            for atom, exponent in monomial:
                if isinstance(atom, Quotient | Remainder):
                    if not (defined(atom.numerator) and defined(atom.denominator)):
                        return False
                    if atom.denominator.value(point) < 1:
                        return False
                if exponent < 0:
                    under *= atom.value(point) ** -exponent
            if under < 1:
                return False
        return True

    return all(
        defined(c.constraint.left) and defined(c.constraint.right) and c.constraint.holds(point)
        for c in found.clauses
    )

"""Spaces made by hand: skeletons of one program with ranges for sizes, no conditions."""

import itertools

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.explore.space.member import Member
from liftpy.explore.space.plainest import begun_with, plainest
from liftpy.explore.space.space import Space
from liftpy.ir.constraint import divides
from liftpy.ir.nat import var
from liftpy.language.text.program import parse
from liftpy.rewrite.skeleton import Lowered, Parameter, Skeleton
from liftpy.rewrite.strategy import Derivation
from tests.lowered import lowered

PROGRAM = parse("def twice(x: [12]f32) = x |> map(x => x + x)")
BODY = PROGRAM.body.body
LOWERED = lowered("def twice(x: [12]f32) = x |> mapGlb(0, x => x + x)")
MADE = Lowered(LOWERED, Derivation(BODY, (), BODY))


def skeleton(family, choices=(), **highs):
    parameters = tuple(Parameter(name, 1, high, f"size {name}") for name, high in highs.items())
    return Skeleton(family, tuple(choices), MADE, parameters)


def member(family, choices=(), clauses=(), **highs):
    made = skeleton(family, choices, **highs)
    return Member(made, ConstraintSystem(made.parameters, tuple(clauses)))


def space(*members):
    return Space(PROGRAM, DEFAULT_DEVICE, members)


def divides_twelve(name):
    return Clause(divides(var(name), 12), (f"rule split_join of {name}",))


def small_space():
    """One point, six points with a condition (twice), and a million."""
    return space(
        member("plain"),
        member("direct", [("pad", "fused")], [divides_twelve("kappa")], kappa=100),
        member("direct", [("pad", "copy")], [divides_twelve("kappa")], kappa=100),
        member("staged", [("unroll", "no")], theta=1000, rho=1000),
    )


def places(of, count):
    """The first candidates of a campaign that draws at random with seed 0: the plainest, draws."""
    return [*itertools.islice(begun_with(plainest(of), of.draws(0)), count)]

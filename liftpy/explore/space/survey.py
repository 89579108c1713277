"""Facts about a space: what its conditions imply, their sources, and its size without them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.constraints.audit import Asks, Silent, audit
from liftpy.constraints.solve import Infeasible, Tightened, redundant, tightened
from liftpy.constraints.system import ConstraintSystem
from liftpy.explore.space.member import Member
from liftpy.explore.space.space import Space
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import components
from liftpy.ir.walk import children
from liftpy.rewrite.strategies.families.common import with_epilogues
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.shapes import is_reduce, rank
from liftpy.rewrite.strategy import Failure

STEPS = 2_000_000  # z3's limit for one query about an implied condition or the end of a range


def distinct(space: Space) -> Iterator[tuple[ConstraintSystem, list[Member]]]:
    """The distinct systems, each with its members: several skeletons may share one."""
    found: dict[object, list[Member]] = {}
    for member in space.every:
        system = member.system
        key = (system.parameters, tuple(c.constraint for c in system.clauses))
        found.setdefault(key, []).append(member)
    for members in found.values():
        yield members[0].system, members


def implied(space: Space, steps: int = STEPS) -> dict[str, list[str]]:
    """The skeletons in which a condition follows from others, by the text of the condition.

    z3 proves this; a condition on which it gives up within `steps` is left out.
    """
    found: dict[str, list[str]] = {}
    for system, members in distinct(space):
        answers = redundant(system, steps=steps).items()
        follows = {str(c.constraint) for c, v in answers if isinstance(v, Infeasible)}
        for text in sorted(follows):
            found.setdefault(text, []).extend(m.key for m in members)
    return found


@dataclass(frozen=True)
class Left:
    """What the conditions leave of a size's range: from `low` to `high`, nothing if they are None.

    unknown: the number of skeletons for which z3 gave up; for these it is the declared range.
    """

    low: int | None
    high: int | None
    unknown: int = 0


def uncounted(space: Space, steps: int = STEPS) -> dict[str, Left]:
    """What the conditions leave of each size's range, found by z3 without counting.

    `steps` bounds each query. Without unknowns, some candidate has each end of the range.
    """
    ends: dict[str, list[int]] = {}
    unknown: dict[str, int] = {}
    for system, members in distinct(space):
        for p in system.parameters:
            mine = ends.setdefault(p.name, [])
            verdict = tightened(system, p.name, steps=steps)
            if isinstance(verdict, Tightened):
                mine += [verdict.low, verdict.high]
            elif not isinstance(verdict, Infeasible):
                mine += [p.low, p.high]
                unknown[p.name] = unknown.get(p.name, 0) + len(members)
    return {
        name: Left(min(mine, default=None), max(mine, default=None), unknown.get(name, 0))
        for name, mine in ends.items()
    }


@dataclass(frozen=True)
class Counted:
    """A source of conditions, their number in a space, and, if it is always 0, why (`silent`)."""

    kind: str
    name: str
    conditions: int
    silent: str | None


def asking(space: Space) -> list[Counted]:
    """All sources that could have conditions in a space."""
    clauses = [(clause["text"], clause["asked_by"].split("; ")) for clause in space.constraints]
    found: list[Counted] = []
    for kind, name, word in audit(member.skeleton for member in space.every):
        match word:
            case Silent(because):
                found.append(Counted(kind, name, 0, because))
            case Asks():
                asked = {text for text, askers in clauses if any(map(word.asked, askers))}
                found.append(Counted(kind, name, len(asked), None))
    return found


def loops(program: Program) -> int:
    """The number of loops of a program's deepest nest: maps that make its result, and reductions.

    A reduction over a join has a loop for each joined dimension, as after `nest_reductions`.

    >>> import liftpy as lp
    >>> loops(lp.workload("matmul/64x64x64")), loops(lp.workload("vgg16/7"))
    (3, 6)
    """
    body = with_epilogues(program.body.body)
    nested = nest_reductions()(body)
    inner = body if isinstance(nested, Failure) else nested.expr
    results = components(program.body.body.type)
    return max(rank(part.type) for part in results) + reductions_deep(inner)


def reductions_deep(expr: Expr) -> int:
    """The largest number of reductions of an expression that are nested in each other."""
    return is_reduce(expr) + max(map(reductions_deep, children(expr)), default=0)


def orders_and_layouts(program: Program) -> int:
    """The number of orders of a program's loops, times the number of layouts of its arrays.

    An order is a permutation of the loops of the deepest nest (`loops`), a layout one of the
    dimensions of an array. A convolution has 6! orders of its loops, and 3!, 4! and 3! layouts of
    its image, its kernels and its result.

    >>> import liftpy as lp
    >>> orders_and_layouts(lp.workload("vgg16/7"))
    622080
    """
    arrays = (*(p.type for p in program.params), program.body.body.type)
    return math.factorial(loops(program)) * math.prod(
        math.factorial(rank(c.type)) for t in arrays for c in components(t)
    )


def unpruned(space: Space) -> int:
    """The number of points of a space without its conditions: every size takes its whole range.

    The numbers of the stages of a partition are multiplied. With conditions, there are
    `space.count()` points.
    """

    def points(member: Member) -> int:
        return math.prod(p.high - p.low + 1 for p in member.system.parameters)

    alone = sum(map(points, space.members))
    return alone + sum(math.prod(sum(map(points, g)) for g in p.groups) for p in space.products)

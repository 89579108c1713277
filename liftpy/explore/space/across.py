"""Conditions of the user over sizes of several stages: products in which they hold.

A product with such a condition is split into products without one. For each combination of values
that the sizes of one stage take, there is a product that fixes these values in that stage. Its
other stages satisfy the condition with the values substituted. It is counted and drawn from like
any product. The products are disjoint, and together they contain exactly the candidates that
satisfy the condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias

from liftpy.constraints.user import Wish, asked_too
from liftpy.explore.space.member import Member

MOST = 512
"""The most combinations of one stage's sizes over which a condition is split."""

Group: TypeAlias = tuple[Member, ...]
Groups: TypeAlias = tuple[Group, ...]


def sizes_of(group: Group, names: AbstractSet[str]) -> frozenset[str]:
    """The sizes among `names` that any skeleton of the stage has."""
    return frozenset(name for member in group for name in names & member.system.by_name.keys())


def crosses(wish: Wish, groups: Groups) -> bool:
    """Whether a condition is over sizes of several of these stages, and of no other."""
    names = wish.constraint.names()
    own = [mine for group in groups if (mine := sizes_of(group, names))]
    return len(own) > 1 and frozenset[str]().union(*own) == names


def apart(groups: Groups, wanted: Sequence[Wish]) -> Iterator[Groups]:
    """The stages of each product after the split; all conditions hold in them.

    A condition applies to the candidates that have all its sizes. Raises ConstraintRefused if a
    condition would have to be split over too many combinations.
    """
    if not wanted:
        yield groups
        return
    wish, *others = wanted
    names = wish.constraint.names()
    if not names:  # its remaining sizes cancel out
        if wish.constraint.holds({}):
            yield from apart(groups, others)
        return
    own = {k: mine for k, group in enumerate(groups) if (mine := sizes_of(group, names))}
    if frozenset[str]().union(*own.values()) != names:
        yield from apart(groups, others)
        return
    for k, mine in own.items():
        having = tuple(m for m in groups[k] if mine <= m.system.by_name.keys())
        lacking = tuple(m for m in groups[k] if not mine <= m.system.by_name.keys())
        if lacking:
            yield from apart(with_group(groups, k, lacking), others)
        groups = with_group(groups, k, having)
        if not having:
            return
    if len(own) == 1:
        ((k, _),) = own.items()
        left = (m.restricted(lambda s: asked_too(s, [wish])) for m in groups[k])
        kept = tuple(m for m in left if m.possible)
        if kept:
            yield from apart(with_group(groups, k, kept), others)
        return
    k = min(own, key=lambda k: combinations(groups[k], own[k]))
    if combinations(groups[k], own[k]) > MOST:
        said = " and ".join(sorted(own[k]))
        raise wish.refusal(
            "this condition over several stages cannot be counted",
            f"in every stage these sizes have more than {MOST} combinations of values, as do {said}"
            ": compare one size of each stage, or fix some with --set",
        )
    for sizes in values_of(groups[k], own[k]):
        fixed = tuple(m for member in groups[k] if (m := member.at(sizes)) is not None)
        if fixed:
            inside = replace(wish, constraint=wish.constraint.substitute(sizes))
            yield from apart(with_group(groups, k, fixed), [inside, *others])


def with_group(groups: Groups, place: int, group: Group) -> Groups:
    """The groups, with the one at `place` replaced."""
    return (*groups[:place], group, *groups[place + 1 :])


def values_of(group: Group, names: AbstractSet[str]) -> Iterator[Mapping[str, int]]:
    """The combinations of values that the sizes `names` may have in a stage, each once."""
    order = sorted(names)
    seen = {
        point
        for member in group
        for point in itertools.product(*(member.points.values(name) for name in order))
    }
    for point in sorted(seen):
        yield dict(zip(order, point, strict=True))


def combinations(group: Group, names: AbstractSet[str]) -> int:
    """An upper bound on the number of combinations that `values_of` yields."""
    count = 1
    for name in names:
        count *= len({value for member in group for value in member.points.values(name)})
    return count

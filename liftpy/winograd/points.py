"""Interpolation points: the usual order, and published sets with a small error."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from liftpy.errors import TransformRefused

Points: TypeAlias = tuple[Fraction, ...]


def points(*values: str) -> Points:
    """Points from texts: `points("0", "1/2")`."""
    return tuple(map(Fraction, values))


def pairs(*values: str) -> Points:
    """0, and each value with its negative."""
    return points("0", *(sign + value for value in values for sign in ("", "-")))


STANDARD = pairs("1", "2", "1/2", "4", "1/4", "3", "1/3", "3/2", "2/3", "3/4")
"""The usual order. A triple with n products takes the first n - 1 points."""

INTEGERS = pairs("1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
"""Integers by magnitude: B^T and A^T are integral, but the error grows fastest."""

PUBLISHED: dict[str, tuple[Points, ...]] = {
    "Barabasz and others, 2018": (
        points("0", "-1", "1"),
        points("0", "-1", "1", "1/2"),
        points("0", "-1", "1", "1/2", "-2"),
        points("0", "-1", "1", "1/2", "-2", "-1/2"),
        points("0", "-1", "1", "1/2", "-1/2", "2", "-2"),
        points("0", "-1", "1", "1/2", "-1/2", "2", "-2", "-1/4"),
        points("0", "-1", "1", "1/2", "-1/2", "2", "-2", "-1/4", "4"),
        points("0", "-1", "1", "1/2", "-1/2", "2", "-2", "-1/4", "3/4", "-4/3"),
        points("0", "-1", "1", "1/2", "-1/2", "2", "-2", "-1/4", "4", "3/4", "-4/3"),
    ),
    "Barabasz and others, 2018, for one dimension": (points("0", "-1", "1", "1/2", "-3"),),
    "oneDNN": (pairs("5/8", "3/2"),),
}
"""Sets of points by source; a source has at most one set of each length.

Barabasz, Anderson, Soodhalter and Gregg ("Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks") chose their sets by the measured error of F(m, 3) in two
dimensions, and one of them in one dimension.
"""

ACCURATE: dict[tuple[int, int], Points] = {
    (4, 2): pairs("5/4") + points("5/8"),
    (4, 3): pairs("2", "1/2"),
    (4, 4): points("2", "-2", "1/4", "-1/4", "3/4", "-3/4"),
    (2, 5): pairs("2", "1/2"),
}
"""By m and r, the points of rules that do not compute with the usual order.

`choosing.of_rules` finds them: the set with the smallest bound of the error in two dimensions, if
that is at most half of the bound of the usual order. Only sets that f32 represents exactly count,
and only those whose transforms take at most a quarter more operations.
"""


def standard_points(n: int) -> Points:
    """The first n - 1 points of the usual order. TransformRefused if it has fewer.

    >>> print(*standard_points(6))
    0 1 -1 2 -2
    """
    if n - 1 > len(STANDARD):
        raise TransformRefused(
            f"the usual order of points is refused for {n} products: they need {n - 1} points, "
            f"and it has {len(STANDARD)}. Give the points, or ask for at most "
            f"{len(STANDARD) + 1} products"
        )
    return STANDARD[: n - 1]


def known_points(n: int) -> dict[str, Points]:
    """All known sets of n - 1 points by source, beginning with the usual order.

    >>> [name for name, _ in known_points(6).items()][-1]
    'oneDNN'
    """
    found = {"the usual order": standard_points(n)}
    for source, sets in PUBLISHED.items():
        found.update((source, known) for known in sets if len(known) == n - 1)
    return found

"""Addresses that never meet by their digits: compared with trying all work-items."""

import itertools
from random import Random

import pytest

from liftpy.ir.constraint import Constraint, at_most
from liftpy.ir.nat import Nat, greatest, least, nat, var
from liftpy.semantics.digits import (
    MOST,
    difference,
    never_meet,
    ranges_under,
    without_extremes,
    worths,
)

IDS, SHARED, LATER = ("a", "b"), ("s",), ("t",)
WORTHS = [0, 1, 1, 2, 3, 4, 5, 6, 8, 12, -1, -4]


Numbers = dict[str, int]


Conditions = tuple[Constraint, ...]


def places(address: Nat, highs: Numbers, where: Conditions = ()) -> dict[int, list[Numbers]]:
    """The numbers of the variables by the address that they give, under conditions."""
    found: dict[int, list[Numbers]] = {}
    for at in itertools.product(*(range(high + 1) for high in highs.values())):
        numbers = dict(zip(highs, at, strict=True))
        if all(condition.holds(numbers) for condition in where):
            found.setdefault(address.value(numbers), []).append(numbers)
    return found


def meet(
    first: Nat,
    second: Nat,
    highs: Numbers,
    others: Numbers,
    where: tuple[Conditions, Conditions] = ((), ()),
) -> bool:
    """Whether two work-items that differ in an id touch one address, by trying all of them."""
    here, there = places(first, highs, where[0]), places(second, others, where[1])
    return any(
        any(one[name] != two[name] for name in IDS)
        and all(one[name] == two[name] for name in SHARED)
        and all(one[name] < two[name] for name in LATER)
        for address in here.keys() & there.keys()
        for one, two in itertools.product(here[address], there[address])
    )


def never(first: Nat, second: Nat) -> bool:
    return never_meet(first, second, IDS, SHARED, LATER)


def digits(rng: Random, highs: Numbers) -> list[Nat]:
    """Each variable, or what is left and what comes out where one is divided."""
    found: list[Nat] = []
    for name, high in highs.items():
        n, by = var(name, 0, high), rng.choice([0, 0, 2, 3])
        found += [n] if by == 0 else [n % by, n // by]
    return found


@pytest.mark.parametrize("seed", range(200))
def test_who_never_meets_does_not_meet(seed: int) -> None:
    """Worths, ranges and constants are each address's own, or the same for both."""
    rng = Random(seed)
    highs = {name: rng.randint(1, 3) for name in "abcst"}
    parts = digits(rng, highs)
    worths = [rng.choice(WORTHS) for _ in parts]
    others = [rng.choice(WORTHS) if rng.random() < 0.05 else worth for worth in worths]
    first = sum((w * part for w, part in zip(worths, parts, strict=True)), nat(0))
    second = sum((w * part for w, part in zip(others, parts, strict=True)), nat(rng.randint(0, 6)))
    shorter = {name: rng.randint(0, high) for name, high in highs.items()}
    other = shorter if rng.random() < 0.3 else highs
    second = second.substitute({n: var(n, 0, high) for n, high in other.items()})
    assert not (never(first, second) and meet(first, second, highs, other))


def test_conditions_tell_more_addresses_apart_and_never_too_many() -> None:
    """Guards of single digits, and smaller numbers that these decide, on random addresses."""
    more = 0
    for seed in range(400):
        rng = Random(seed)
        highs = {name: rng.randint(1, 3) for name in "abcst"}
        parts = digits(rng, highs)
        worths = [rng.choice(WORTHS) for _ in parts]
        where: tuple[Conditions, ...] = tuple(
            tuple(at_most(0, rng.choice((1, -1, 2, -2)) * part + rng.randint(-3, 4)) for part in of)
            for of in (rng.sample(parts, 2), rng.sample(parts, 2))
        )
        cut = rng.choice(parts)
        extremes = [least, greatest]
        first, second = (
            sum((w * part for w, part in zip(worths, parts, strict=True)), nat(0))
            + rng.choice((1, 2)) * rng.choice(extremes)(2 * cut + rng.randint(0, 2), nat(3))
            + rng.randint(0, 6)
            for _ in range(2)
        )
        here, there = where
        known = never_meet(first, second, IDS, SHARED, LATER, (here, there))
        assert not (known and meet(first, second, highs, highs, (here, there))), seed
        more += known and not never(first, second)
    assert more > 20


def test_ranges_and_extremes_under_conditions_are_those_of_every_allowed_point() -> None:
    """Digits are in their ranges, differences between their ends, and an address keeps its value.

    Each end of a difference of single digits is reached if some point is allowed.
    """
    decided = tight = 0
    for seed in range(600):
        rng = Random(seed)
        highs = {name: rng.randint(1, 4) for name in "ab"}
        parts = digits(rng, highs)
        where = tuple(
            at_most(0, rng.choice((1, -1, 2, -2, 3, -3)) * rng.choice(parts) + rng.randint(-4, 5))
            for _ in range(rng.randint(0, 3))
        )
        left, right = (
            sum((rng.choice((-3, -1, 0, 1, 2)) * part for part in parts), nat(rng.randint(-3, 3)))
            for _ in range(2)
        )
        extreme = rng.choice((least, greatest))(left, right)
        if rng.random() < 0.3:
            extreme = rng.choice((least, greatest))(extreme, nat(rng.randint(-2, 4)))
        address = rng.choice((1, -2)) * extreme + parts[0] + 1
        ranges = ranges_under(where)
        without = without_extremes(address, ranges)
        low, high = difference(left, right, ranges)
        at = itertools.product(*(range(top + 1) for top in highs.values()))
        numbers = [dict(zip(highs, point, strict=True)) for point in at]
        allowed = [point for point in numbers if all(c.holds(point) for c in where)]
        apart = [left.value(point) - right.value(point) for point in allowed]
        for part in parts:
            (key,) = worths(part) or ("",)
            values = [part.value(point) for point in allowed]
            least_, most = ranges.get(key, (None, None))
            assert least_ is None or all(least_ <= value for value in values), seed
            assert most is None or all(value <= most for value in values), seed
        assert low is None or all(low <= d for d in apart), seed
        assert high is None or all(d <= high for d in apart), seed
        assert all(address.value(p) == without.value(p) for p in allowed), seed
        decided += without != address
        tight += bool(apart) and (low, high) == (min(apart), max(apart))
    assert decided > 50
    assert tight > 200


@pytest.mark.parametrize("seed", range(200))
def test_of_sums_with_equal_worths_all_is_known(seed: int) -> None:
    rng = Random(seed)
    highs = {name: rng.randint(1, 3) for name in "abcst"}
    worths = {name: rng.choice(WORTHS[1:]) for name in highs}
    first = sum((w * var(name, 0, highs[name]) for name, w in worths.items()), nat(0))
    second = first + rng.randint(0, 20)
    assert never(first, second) != meet(first, second, highs, highs)


a, b, c = var("a", 0, 31), var("b", 0, 2), var("c", 0, 3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (a + 96 * b, a + 96 * b + 32),
        (a + 128 * b + 32 * c, a + 128 * b + 32 * c),
        (a % 8 + 8 * b + 24 * (a // 8), a % 8 + 8 * b + 24 * (a // 8)),
    ],
)
def test_blocks_of_unrolled_code_are_seen_apart(first: Nat, second: Nat) -> None:
    assert never(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (a, a),  # who differs in `b` only
        (a % 8 + 8 * b, a % 8 + 8 * b),
        (a * c + 96 * b, a * c + 96 * b),
        (a + 32 * var("b", 0, None), a + 32 * var("b", 0, None)),
        (a + 32 * b, a + 32 * b + 32),
    ],
)
def test_what_is_not_seen_is_left_to_the_solver(first: Nat, second: Nat) -> None:
    assert not never(first, second)


def test_only_so_many_differences_are_tried() -> None:
    many = sum((var(f"v{k}", 0, MOST) for k in range(4)), a + 32 * b)
    assert not never(2 * many, 2 * many + 1)

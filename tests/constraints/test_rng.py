"""Random numbers from a seed: uniform, and the same everywhere.

The numbers below were written down once. They may not change: a campaign is resumed by its seed.
"""

import itertools
from collections import Counter

import pytest

from liftpy.constraints.draw import Space
from liftpy.constraints.rng import Rng, shuffled
from tests.constraints.examples import four_stages


def test_the_numbers_of_a_seed_do_not_change():
    rng = Rng(2024)
    assert [rng.below(10) for _ in range(12)] == [7, 4, 6, 4, 3, 7, 6, 4, 8, 3, 7, 2]
    assert rng.below(10**30) == 269516551384440377064540733829
    assert "".join(rng.choice("lift") for _ in range(8)) == "ilftiili"


def test_the_order_of_a_seed_does_not_change():
    assert list(shuffled(12, 7)) == [5, 3, 1, 11, 6, 0, 10, 7, 9, 8, 4, 2]


def test_the_draws_of_a_seed_do_not_change():
    space = Space(four_stages())
    assert [tuple(p.values()) for p in space.sample(4, 1)] == [
        (4, 6, 1, 144, 2, 2),
        (29, 23, 81, 288, 4, 4),
        (32, 8, 300, 576, 2, 32),
        (119, 5, 4563, 48, 1, 32),
    ]
    assert [tuple(p.values()) for p in space.sample(4, 1, "incremental")] == [
        (61, 6, 59, 1152, 1, 128),
        (9, 0, 49, 8, 2, 128),
        (3, 2, 1, 9, 1, 2),
        (132, 18, 8450, 12, 4, 1),
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 2**32, 2**32 + 1, 10**40])
def test_numbers_stay_below(count):
    rng = Rng(3)
    assert all(0 <= rng.below(count) < count for _ in range(200))


@pytest.mark.parametrize("count", [6, 3 * 2**40])
def test_numbers_are_uniform(count):
    """Chi-square at 1 %, of sixths; the larger count takes more than one number of the source."""
    rng = Rng(11)
    seen = Counter(rng.below(count) * 6 // count for _ in range(6000))
    assert sum((seen[k] - 1000) ** 2 / 1000 for k in range(6)) < 15.09


def test_every_order_of_a_list_is_as_likely():
    seen: Counter[str] = Counter()
    rng = Rng(5)
    for _ in range(2400):
        letters = list("abcd")
        rng.shuffle(letters)
        seen["".join(letters)] += 1
    assert len(seen) == 24
    assert sum((n - 100) ** 2 / 100 for n in seen.values()) < 41.64  # 1 % at 23 degrees


@pytest.mark.parametrize("start", [0, 1, 5, 99, 100, 101])
def test_an_order_is_resumed_at_a_place(start):
    assert list(shuffled(100, 4, start)) == list(shuffled(100, 4))[start:]


@pytest.mark.parametrize("sampler", ["uniform", "incremental"])
def test_draws_are_resumed_at_a_place(sampler):
    space = Space(four_stages())
    whole = list(itertools.islice(space.draws(6, sampler), 40))
    assert list(itertools.islice(space.draws(6, sampler, 25), 15)) == whole[25:]

"""The claims about direct convolution that need no device, on small cases."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import script

claims = script("direct_claims")
LAYERS = [claims.LAYERS[1], claims.LAYERS[9]]  # 256 channels of 13 x 13; 3 of 224 x 224


@pytest.mark.parametrize("section", ["im2col", "scratch"])
def test_the_memory_is_that_of_the_allocator(section):
    rows = [*claims.COMPUTED[section](LAYERS)]
    assert len(rows) >= len(LAYERS)
    assert all(row.holds for row in rows), rows


def test_a_stored_copy_of_the_padded_image_takes_more_than_is_claimed():
    case = LAYERS[0]
    padded = claims.scratch_of(case, "copy")
    assert padded == 4 * 15 * 15 * 256
    assert 100 * padded / claims.im2col_bytes(case) > claims.MOST_SCRATCH


def test_there_are_as_many_layers_as_in_the_table():
    assert len(claims.LAYERS) == 27  # of 28 rows, two are alike
    assert all(case.layer.out == (case.layer.height, case.layer.width) for case in claims.LAYERS)
    assert claims.im2col_bytes(claims.LAYERS[0]) == 6998400


def test_directed_searches_find_better_candidates_in_equally_many_trials():
    rows = [*claims.searches(seeds=4, names=("genetic", "narrowing"))]
    assert [row.name for row in rows] == ["genetic", "narrowing"]
    assert all(row.found < row.claimed for row in rows), rows

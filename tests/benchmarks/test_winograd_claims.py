"""The sections of the claims about Winograd's algorithms, on small cases."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import script

claims = script("winograd_claims")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("section", "sizes"),
    [
        ("errors", [(2, 3), (4, 3), (7, 3), (4, 5)]),
        ("multiplications", [(2, 3), (3, 3), (2, 5)]),
        ("layers", [13, 14]),
        ("memory", [(2, 3), (2, 5)]),
        ("operations", [(2, 3), (2, 5)]),
        ("borders", [(2, 3), (4, 3)]),
        ("partial", [13]),
        ("depthwise", [(2, 3), (4, 5)]),
    ],
)
def test_claims_hold(section, sizes):
    rows = [*claims.SECTIONS[section](sizes)]
    assert rows
    assert all(row.holds for row in rows), rows


def test_multiplications_are_those_of_the_emitted_kernels():
    """With several channels and kernels the ratio is the same, and equal to the closed form."""
    assert claims.reduction("2x2", 3, 6, 3, 2) == claims.by_products(2, 3, 6, 2) == 2.25
    assert claims.reduction("4x4", 3, 6, 3, 2) == pytest.approx(claims.by_products(4, 3, 6, 2))
    assert claims.reduction("1x2", 3, 6, 3, 2) == claims.by_products(2, 3, 6, 1) == 1.5
    (direct, *_) = claims.partitions(claims.convolution(6, 3, 3, 2))
    assert claims.executed(direct.stages[0]) == 6 * 6 * 9 * 3 * 2


def test_a_number_that_is_not_as_claimed_does_not_hold(monkeypatch):
    monkeypatch.setitem(claims.LAYERS, 13, 2.0)
    monkeypatch.setitem(claims.ERRORS, (2, 3), 1e-8)
    assert not next(claims.layers([13])).holds
    assert not next(claims.errors([(2, 3)])).holds


def test_a_wide_window_has_more_classes_of_tiles():
    assert claims.overhangs(24, 2, 3) == {(1, 0), (0, 0), (0, 1)}
    assert claims.overhangs(24, 2, 7) == {(3, 0), (1, 0), (0, 0), (0, 1), (0, 3)}

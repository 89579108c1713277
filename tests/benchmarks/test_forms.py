"""The figures of the benchmark that compares the forms of convolutions."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import script

forms = script("forms")


def test_the_quotient_is_of_the_fastest_along_one_dimension_and_in_two():
    times = {"direct": 1.0, "2x2": 8.0, "4x4": 4.0, "1x2": 9.0, "1x4": 6.0}
    assert forms.quotient(times) == 1.5
    assert forms.quotient({"direct": 1.0, "1x4": 6.0}) is None
    assert forms.quotient({"direct": 1.0, "4x4": 6.0}) is None


def test_ranks_are_correlated():
    assert forms.rank_correlation([1, 5, 30], [0.1, 0.2, 0.7]) == pytest.approx(1)
    assert forms.rank_correlation([1, 5, 30], [0.7, 0.2, 0.1]) == pytest.approx(-1)


def test_one_dimension_wins_if_the_quotient_falls_below_1_where_there_are_most_points():
    def holds(correlation, *quotients):
        pairs = zip((1, 10), quotients, strict=True)
        rows = [{"points for each weight": k, "quotient": q} for k, q in pairs]
        return forms.one_dimension_wins(correlation, rows)

    assert holds(-0.5, 2.0, 0.9)
    assert not holds(-0.5, 0.9, 1.1)
    assert not holds(0.5, 2.0, 0.9)


def test_a_form_restricts_the_space():
    assert forms.restriction("direct") == {"families": ["direct"]}
    assert forms.restriction("1x4") == {"fixed": {"winograd": "1x4"}}

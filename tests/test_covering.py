"""Of a marked test, a part runs in which every value occurs; with `--every-case`, all."""

from itertools import product

import pytest

from tests.covering import OPTION, covering, sampled

pytest_plugins = ["pytester"]

GRID = [*product(range(8), range(11), range(2))]

MARKED = """
    import pytest

    @pytest.mark.{}
    @pytest.mark.parametrize("runtime", ["a", "b"])
    @pytest.mark.parametrize("name", range(4))
    @pytest.mark.parametrize("family", range(5))
    def test_grid(name, family, runtime):
        pass

    def test_plain():
        pass
"""


@pytest.mark.parametrize("part", [1, 2, 3, 10, 1000])
def test_every_value_occurs(part: int) -> None:
    chosen = covering(GRID, part, "seed")
    for position, values in enumerate((range(8), range(11), range(2))):
        assert {case[position] for case in chosen} == {*values}
    assert chosen <= {*GRID}
    assert len(chosen) == max(-(-len(GRID) // part), 11)


@pytest.mark.parametrize("part", [1, 2, 3, 10, 1000])
def test_a_sample_has_one_case_in_n(part: int) -> None:
    chosen = sampled(GRID, part, "seed")
    assert chosen <= {*GRID}
    assert len(chosen) == -(-len(GRID) // part)
    assert chosen == sampled(GRID, part, "seed")


def test_another_test_has_other_cases_and_the_same_one_the_same() -> None:
    assert covering(GRID, 10, "one") == covering(GRID, 10, "one")
    assert covering(GRID, 10, "one") != covering(GRID, 10, "another")


@pytest.mark.parametrize(
    ("marked", "options", "count"),
    [
        ("covering(4)", [], 10 + 1),
        ("covering(4)", [OPTION], 40 + 1),
        ("covering(4, 'name', 'family')", [], 5 * 2 + 1),
        ("covering(4)", ["-k", "2-0-b"], 1),
        ("sampled(20)", [], 2 + 1),
        ("sampled(20)", [OPTION], 40 + 1),
        ("soak", [], 1),
        ("soak", [OPTION], 40 + 1),
    ],
)
def test_a_part_of_a_marked_test_runs(
    pytester: pytest.Pytester, marked: str, options: list[str], count: int
) -> None:
    pytester.makeconftest(
        """
        from tests.conftest import pytest_addoption, pytest_collection_modifyitems
        """
    )
    pytester.makeini("[pytest]\nmarkers =\n    covering\n    sampled\n")
    pytester.makepyfile(MARKED.format(marked))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=count, deselected=41 - count if count < 41 else 0)

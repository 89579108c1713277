"""Random programs with data-dependent indices mean on a device what they mean in NumPy."""

from __future__ import annotations

import pytest

from liftpy.constraints.device import Device
from liftpy.language.text.program import parse, show
from tests.fuzz import data_indices, judge
from tests.plainly import building_plainly

SEEDS = 25


@pytest.mark.parametrize("start", [0, SEEDS])
def test_forms_of_random_programs_are_right(start: int, runtime: Device) -> None:
    with building_plainly():
        tally = judge.judge_here(start, SEEDS, runtime.name, "indices")
    assert not tally.failures, "\n".join(tally.failures)
    assert set(tally.outcomes) == {"right"}
    assert min(tally.primitives[name] for name in ("at", "reduceByIndex")) >= 5


def test_texts_of_random_programs_read_back() -> None:
    for seed in range(200):
        program = data_indices.indexing(seed)
        assert parse(show(program)) == program

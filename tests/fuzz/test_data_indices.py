"""Random programs with data-dependent indices mean on a device what they mean in NumPy."""

from __future__ import annotations

from liftpy.constraints.device import Device
from liftpy.language.text.program import parse, show
from tests.fuzz import data_indices, judge
from tests.subsample import is_first

SEEDS = 20  # on each runtime, others than in the interpreter (test_fuzz.py)
FIRST = 60


def test_forms_of_random_programs_are_right(runtime: Device) -> None:
    first = FIRST if is_first(runtime) else FIRST + SEEDS
    tally = judge.judge_here(first, SEEDS, runtime.name, "indices", briefly=True)
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.outcomes == {"right": SEEDS}
    assert min(tally.primitives[name] for name in ("at", "reduceByIndex")) >= 5


def test_texts_of_random_programs_read_back() -> None:
    for seed in range(60):
        program = data_indices.indexing(seed)
        assert parse(show(program)) == program

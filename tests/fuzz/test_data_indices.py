"""Random programs with data-dependent indices; their forms run in test_fuzz.py."""

from __future__ import annotations

from liftpy.language.text.program import parse, show
from tests.fuzz import data_indices


def test_texts_of_random_programs_read_back() -> None:
    for seed in range(60):
        program = data_indices.indexing(seed)
        assert parse(show(program)) == program

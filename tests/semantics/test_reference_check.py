"""Meaning and reference of whole programs: two ways to say the same, on random programs."""

import numpy as np
from hypothesis import given, settings

from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference
from tests.programs import programs


@settings(max_examples=30)
@given(programs(scalar=True))
def test_meaning_and_reference_of_a_program_agree(p):
    """All in float64; they differ by the rounding of a square root at most."""
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal([int(n) for n in q.type.shape]) for q in p.params]
    with np.errstate(all="ignore"):
        meant = evaluate(p, *arrays, dtype=np.float64)
        referred = np.asarray(reference(p, *arrays), np.float64)
    assert meant.shape == referred.shape
    np.testing.assert_allclose(meant, referred, rtol=1e-9, atol=1e-12)

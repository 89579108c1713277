"""Gradients of random programs are those of differences, in float64 and on a device."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.opencl.session import Session
from tests.fuzz import gradients
from tests.fuzz.judge import words
from tests.plainly import PLAINLY
from tests.subsample import is_first

SEEDS = 12


def test_gradients_of_random_programs_are_right_on_a_device(runtime: Device) -> None:
    """`make soak` tries a thousand."""
    seeds = range(SEEDS if is_first(runtime) else SEEDS // 2)
    with Session(runtime, PLAINLY) as session:
        found = [*gradients.verdicts(seeds, session)]
    counts = Counter(outcome for _, outcome, _ in found)
    assert set(counts) <= gradients.ALLOWED, [why for _, _, why in found if why]
    assert counts["right"] >= len(seeds) / 3
    assert counts["ill-conditioned"] <= len(seeds) / 12


def test_the_programs_have_all_that_is_differentiated() -> None:
    counts = Counter(word for seed in range(100) for word in words(gradients.differentiable(seed)))
    assert {"map", "reduce", "scan", "iterate", "slide", "pad", "padWrap", "gather"} <= set(counts)
    assert {"split", "join", "transpose", "zip", "unzip", "concat", "splitAt"} <= set(counts)


@pytest.mark.parametrize("factor", [0.5, 1.001])
def test_a_gradient_that_is_not_that_of_differences_is_seen(factor: float) -> None:
    made = (gradients.derived(seed) for seed in range(20))
    found = next(d for d in made if isinstance(d, gradients.Derived) and any(map(np.any, d.means)))
    assert not found.disagreement(found.means, gradients.EXACT)
    assert found.disagreement([factor * m for m in found.means], gradients.EXACT)
    assert gradients.differs(tuple(factor * m for m in found.means), found.means)


@pytest.mark.parametrize("seed", [1013, 1318])
def test_a_gradient_that_was_misjudged_or_refused_is_right(seed: int) -> None:
    """The sine of an eighth power, which needs small steps; an integer of a pair with a name."""
    found = gradients.derived(seed)
    assert isinstance(found, gradients.Derived), found
    assert not found.disagreement(found.means, gradients.EXACT)

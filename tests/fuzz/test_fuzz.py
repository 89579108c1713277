"""2,000 random programs mean on a device what they mean in numpy, whatever the strategy.

`python tests/fuzz/judge.py --count 50000 --start 2000` looks further.
"""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.ir.expr import FunCall, Program
from liftpy.ir.walk import top_down
from liftpy.primitives import Reduce, Slide
from liftpy.primitives.text import show
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference
from tests.fuzz import judge
from tests.fuzz.generator import inputs, make

PROGRAMS = 2000
CHUNKS = range(0, PROGRAMS, judge.CHUNK)
REFUSED = 0.01  # after random rules; by the plain strategy alone nothing may be refused


def uses(program: Program, *words: type) -> bool:
    """Whether a program has all these primitives."""
    kinds = {type(e.fun) for _, e in top_down(program.body.body) if isinstance(e, FunCall)}
    return kinds >= set(words)


def test_programs_are_many_and_of_many_kinds() -> None:
    programs = [make(seed) for seed in range(300)]
    assert len({show(p) for p in programs}) > 290
    assert make(7) == make(7)
    assert sum(uses(p, Slide, Reduce) for p in programs) > 20
    assert sum(len(np.unique(evaluate(p, *inputs(p).values()))) > 2 for p in programs) > 100


@pytest.mark.parametrize("seed", range(0, 300, 7))
def test_the_two_meanings_of_a_random_program_agree(seed: int) -> None:
    """Pull arrays and the primitives' references on lists."""
    program = make(seed)
    arrays = inputs(program).values()
    np.testing.assert_array_equal(evaluate(program, *arrays), reference(program, *arrays))


@pytest.mark.slow
@pytest.mark.parametrize("start", CHUNKS)
def test_random_programs_are_right_on_a_device(start: int) -> None:
    """Half of the programs on each runtime. A driver that dies of a program is not liftpy's."""
    device = ("intel", "pocl")[start // judge.CHUNK % 2]
    judge.find_device(device)
    counts, failures = judge.survey(start, judge.CHUNK, device)
    assert counts.total() >= judge.CHUNK
    assert counts["right"] >= (1 - REFUSED) * counts.total(), failures
    assert counts["wrong"] == counts["crashed"] == 0, "\n\n".join(failures)

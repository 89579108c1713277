"""Random programs in the loop IR: right before and after each pass, and proved safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.loops.lower import LoopKernel
from liftpy.loops.passes import PASSES
from tests.draws import unproved
from tests.fuzz import judge
from tests.fuzz.generator import inputs
from tests.loops.interpreted import Change, interpreted

EACH = 120  # programs of each kind; judge.py's soak has more


def after(count: int) -> Change:
    """A kernel after so many passes."""

    def change(code: LoopKernel) -> LoopKernel:
        for function in [*PASSES.values()][:count]:
            code = replace(code, block=function(code.block))
        return code

    return change


@pytest.mark.parametrize("kind", ["any", "lets"])
def test_random_programs_are_right_after_each_pass_and_proved_safe(kind: str) -> None:
    for seed in range(EACH):
        for form in judge.forms(seed, DEFAULT_DEVICE, kind):
            assert not unproved(form.made.optimized), (seed, form.how)
            arrays = inputs(form.program)
            results = [
                judge.components(interpreted(form.made, arrays, after(count)))
                for count in range(len(PASSES) + 1)
            ]
            case = judge.Case(seed, form.program, form, arrays)
            assert not judge.difference(case, tuple(results[0])), (seed, form.how)
            for got in results[1:]:
                for one, other in zip(results[0], got, strict=True):
                    np.testing.assert_array_equal(one, other, err_msg=f"{seed} {form.how}")

"""Programs that a test writes in lowered form, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liftpy.constraints.device import Device
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.primitives.dialects import LoweredProgram
from liftpy.semantics.evaluate import evaluate
from tests.candidates import result
from tests.fuzz.generator import inputs


def lowered(text: str) -> LoweredProgram:
    """A program from its text."""
    return LoweredProgram.of(parse(text))


def check_close(
    found: Any, program: Program, arrays: Mapping[str, np.ndarray], of: str = ""
) -> None:
    """Compare a result, or its components, with the meaning of a program on these arrays."""
    right = evaluate(program, *arrays.values())
    pairs = (found, right) if isinstance(right, tuple) else ((found,), (right,))
    for one, other in zip(*pairs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=of)


def check_on(runtime: Device, text: str) -> None:
    """Compare what a lowered program computes on a device with its meaning.

    Every buffer is poisoned, and every allocation has guard zones.
    """
    program = parse(text)
    arrays = inputs(program)
    check_close(result(runtime, compile_program(lowered(text)).module, arrays), program, arrays)

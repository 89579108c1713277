"""What a text says of arrays, by the meaning and by the reference, which have to agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from liftpy.ir.expr import Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, I32, Type, array
from liftpy.language.text.program import parse_expression
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference

SCALARS = {"f": F32, "i": I32}


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Distinct numbers from 1 on."""
    return np.arange(1, 1 + np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def says(text: str, *arrays: np.ndarray) -> Any:
    """What an expression over `xs` and `ys` is."""
    types: list[Type] = [array(SCALARS[a.dtype.kind], *a.shape) for a in arrays]
    params = tuple(Param(n, t) for n, t in zip(["xs", "ys"], types, strict=False))
    program = Program("p", Lambda(params, parse_expression(text, params)))
    meant, referred = evaluate(program, *arrays), reference(program, *arrays)
    pairs = zip(meant, referred, strict=True) if isinstance(meant, tuple) else [(meant, referred)]
    for one, two in pairs:
        np.testing.assert_array_equal(one, np.asarray(two, one.dtype), text)
    return meant

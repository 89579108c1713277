"""The scalar operators on NumPy numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from liftpy.semantics.operations import OPERATIONS, erf

GIVEN = [0.0, -0.0, 1e-300, 0.46875, -0.75, 2.5, -5.9, 40.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("t", [np.float16, np.float32, np.float64])
def test_the_error_function_is_rounded_to_the_type_of_its_operand(t: type[np.floating]) -> None:
    numbers = np.array(GIVEN, t)
    found = erf(numbers)
    assert found.dtype == t
    wanted = [math.erf(float(x)) for x in numbers]
    np.testing.assert_array_equal(found, np.array(wanted).astype(t))
    np.testing.assert_array_equal(np.signbit(found[:2]), [False, True])


def test_the_error_function_of_one_number_and_of_arrays_of_any_rank() -> None:
    assert erf(np.float32(0.5)).dtype == np.float32
    assert erf(np.float32(0.5)) == np.float32(math.erf(0.5))
    grid = np.arange(6, dtype=np.float64).reshape(1, 2, 3) / 3
    assert erf(grid).shape == grid.shape
    assert erf(grid)[0, 1, 2] == math.erf(5 / 3)
    assert erf(grid[:0]).dtype == np.float64


@pytest.mark.parametrize(
    ("op", "inverse"),
    [("sin", "asin"), ("cos", "acos"), ("sinh", "asinh"), ("cosh", "acosh"), ("tanh", "atanh")],
)
def test_an_inverse_gives_the_operand_back(op: str, inverse: str) -> None:
    numbers = np.linspace(0.1, 1.5, 11)
    np.testing.assert_allclose(OPERATIONS[inverse](OPERATIONS[op](numbers)), numbers, rtol=1e-12)

"""The gradient of every built-in program is that of finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from tests.gradient.differences import agrees_with_differences, listed
from tests.workloads.references import CASES, inputs

#: Programs whose result is an integer.
REFUSED = ["kmeans"]

#: Inputs that a program only compares: it is constant in them, but for jumps.
COMPARED = {"stencil/acoustic": {"room"}, "pool/argmaxback": {"places"}}

#: Programs with a component that only compares the input.
MASKS = ["pool/all", "pool/first", "pool/shared"]

#: Programs with options that the references leave out.
WITH_OPTIONS = [
    "convolution/strided:relu",
    "convolution/depthwise:nchw:relu",
    "pool/max:nchw",
    "pool/average:nc1hwc0",
    "pool/inside:nchw",
    "pool/argmax:nc1hwc0",
    "pool/all:nchw",
    "pool/maskback:nchw",
    "pool/argmaxback:nc1hwc0",
]

NAMES = [*(name for name in CASES if name not in REFUSED), *WITH_OPTIONS]


def small(name: str) -> lp.Program:
    """The program of a family with the sizes of its reference."""
    family, colon, options = name.partition(":")
    return lp.workload(f"{family}/{'x'.join(map(str, CASES[family][0]))}{colon}{options}")


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    """In float64; a difference of a sum of thousands is exact to 1e-6, and so is one of `abs`."""
    program = small(name)
    arrays = inputs(name.partition(":")[0], program, ties=False)
    wrt = [n for n in arrays if n not in COMPARED.get(name.partition(":")[0], set())]
    agrees_with_differences(program, [arrays[p.name] for p in program.params], wrt)


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_constant_but_for_jumps_and_has_a_gradient_of_0(name: str) -> None:
    program = small(name)
    arrays = list(inputs(name, program).values())
    _, mask = lp.evaluate(program, *arrays)
    found = lp.evaluate(lp.gradient(program, of=1), *arrays, np.ones_like(mask))
    np.testing.assert_array_equal(found, np.zeros_like(arrays[0]))


@pytest.mark.parametrize("name", ["pool/average", "pool/maskback"])
def test_the_gradient_of_numbers_of_16_bits_is_rounded(name: str) -> None:
    program = lp.gradient(small(f"{name}:f16"))
    same = lp.gradient(small(name))
    wide = inputs(name, same)
    arrays = {n: a.astype(np.float16) for n, a in wide.items()}
    found = lp.evaluate(program, *arrays.values())
    wanted = lp.evaluate(same, *(a.astype(np.float32) for a in arrays.values()))
    for part, of in zip(listed(found), listed(wanted), strict=True):
        np.testing.assert_allclose(part, of, rtol=0, atol=4e-3 * np.abs(of).max())


@pytest.mark.parametrize("name", REFUSED)
def test_an_integer_result_has_no_gradient(name: str) -> None:
    with pytest.raises(TypeRefused, match="contains no floating-point number"):
        lp.gradient(small(name))


def test_an_atom_at_distance_0_adds_nothing() -> None:
    """`md` compares each atom with itself, where what it does not choose is infinite."""
    program = small("md")
    (p,) = inputs("md", program).values()
    found = lp.evaluate(lp.gradient(program), p, np.ones((11, 3), np.float32), dtype=np.float64)
    np.testing.assert_allclose(found, np.zeros((11, 3)), atol=1e-9)  # opposite forces add up to 0

"""A compiled program as a function of arrays."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused, TypeRefused

SHIFT = lp.parse("def shift(xs: [5]f32, by: f32) = xs |> map(x => x - by)")
XS = np.arange(5, dtype=np.float32)


@pytest.mark.parametrize("by", [np.float32(3), np.asarray(3, np.float32)], ids=["scalar", "array"])
def test_a_number_may_be_a_numpy_scalar(runtime, by):
    kernel = lp.compile(SHIFT, device=runtime)
    assert kernel(XS, by).tolist() == [-3, -2, -1, 0, 1]
    kernel.close()


@pytest.mark.parametrize("by", [np.float64(3), 3.0])
def test_a_number_of_another_type_is_refused(runtime, by):
    kernel = lp.compile(SHIFT, device=runtime)
    with pytest.raises(ArgumentRefused, match="parameter 'by' is f32"):
        kernel(XS, by)
    kernel.close()


def test_a_closed_kernel_says_that_it_is(runtime):
    kernel = lp.compile(SHIFT, device=runtime)
    kernel.close()
    kernel.close()
    with pytest.raises(ArgumentRefused, match=r"is closed, .*: compile the program again"):
        kernel(XS, np.float32(1))


@pytest.mark.parametrize(
    "body",
    [
        "xs |> mapLcl(0, x => x + 1)",
        "xs |> split(2) |> mapGlb(0, mapGlb(0, x => x))",
        "xs |> iterateSeq(1001, ys => ys |> mapGlb(0, x => x * x))",
    ],
)
def test_a_program_without_kernels_has_no_space(runtime, body):
    program = lp.parse(f"def f(xs: [6]f32) = {body}")
    with pytest.raises(TypeRefused) as compiled:
        lp.compile(program, device=runtime)
    with pytest.raises(TypeRefused) as spaced:
        lp.space(program, runtime)
    assert str(spaced.value) == str(compiled.value)

"""Oclgrind sees planted faults, and none in a good module."""

import numpy as np
import pytest

from tests.oclgrind import check_all_under_oclgrind, check_under_oclgrind, oclgrind_complaints
from tests.opencl.modules import COPY, EXPECTED, W, X, Y, saxpy, single


@pytest.mark.oclgrind
def test_oclgrind_has_nothing_to_say_of_a_good_module():
    output, complaints = check_under_oclgrind(saxpy(), {"x": X, "y": Y, "w": W})
    np.testing.assert_array_equal(output, EXPECTED)
    assert complaints == []


FAULTS = {
    "out[0] = x[i];": "Write-write data race at global memory",
    "out[i] = x[i]; if (i) out[i] = out[i - 1];": "Read-write data race at global memory",
    "out[i + 1] = x[i];": "Invalid write of size 4 at global memory",
    "out[i] = x[i + 1];": "Invalid read of size 4 at global memory",
    "out[i] += x[i];": "Uninitialized value written to global memory",
    "if (out[i] != 7.0f) out[i] = x[i];": "Controlflow depends on uninitialized value",
}


@pytest.mark.oclgrind
def test_oclgrind_reports_each_planted_fault():
    jobs = [(single(COPY % body, local=(13,), n=13), {"x": X[:13]}) for body in FAULTS]
    checked = check_all_under_oclgrind(jobs)
    for fault, (_, complaints) in zip(FAULTS.values(), checked, strict=True):
        place = f"(k, line 1: {COPY[:9]}"
        assert any(c.startswith(fault) and place in c for c in complaints), (fault, complaints)


def test_questions_of_pyopencl_are_no_complaints():
    text = (
        "\nOclgrind - OpenCL runtime error detected\n\tFunction: {}\n\tError:    CL_INVALID_VALUE\n"
    )
    assert oclgrind_complaints(text.format("clGetDeviceInfo")) == []
    assert oclgrind_complaints(text.format("clSetKernelArg")) == [
        "Oclgrind - OpenCL runtime error detected (clSetKernelArg)"
    ]

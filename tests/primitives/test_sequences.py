"""Scans, iterations and sequential windows: values worked out by hand, algorithmic and lowered."""

import numpy as np
import pytest

from liftpy.language.text.program import parse
from liftpy.semantics.evaluate import evaluate

XS = np.array([5, 2, 7, 3, 11], np.float32)

#: A pipeline on `xs: [5]f32`, and what it gives: neither function commutes.
CASES = {
    "scan((a, x) => a * 2 - x, 1)": [-3, -8, -23, -49, -109],
    "scanSeq((a, x) => a * 2 - x, 1)": [-3, -8, -23, -49, -109],
    "exclusiveScan((a, x) => a * 2 - x, 1)": [1, -3, -8, -23, -49],
    "exclusiveScanSeq((a, x) => a * 2 - x, 1)": [1, -3, -8, -23, -49],
    "iterate(3, map(x => x * 2 - 1))": [33, 9, 49, 17, 81],
    "iterateSeq(3, map(x => x * 2 - 1))": [33, 9, 49, 17, 81],
    "iterate(0, map(x => x * 2 - 1))": [5, 2, 7, 3, 11],
    "mapSeqUnroll(x => x * x)": [25, 4, 49, 9, 121],
    "mapSeqAhead(x => x * x)": [25, 4, 49, 9, 121],
    "mapHost(x => x * x)": [25, 4, 49, 9, 121],
    "slideSeq(3, 2, reduce((a, x) => a * 2 - x, 1))": [-23, -37],
    "slideSeq(2, 1, reduce((a, x) => a - x, 0))": [-7, -9, -10, -14],
}


@pytest.mark.parametrize("stage", CASES)
def test_value(stage):
    got = evaluate(parse(f"def f(xs: [5]f32) = xs |> {stage}"), XS)
    np.testing.assert_array_equal(got, np.array(CASES[stage], np.float32))

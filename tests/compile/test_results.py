"""Results that no map makes: ids run over all of their elements, in every kernel."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.draws import of_family
from tests.loops.interpreted import interpreted

#: Programs over 7 rows of 5 elements, with the work-items that each kernel needs at least.
RESULTS = {
    "computed elements": ("generate(35, i => (xss |> join |> at(34 - i)) * 2)", 35),
    "rows of computed elements": (
        "generate(7, i => generate(5, j => (xss |> join |> at(i + 7 * j)) * 2))", 35),
    "computed elements with a name": (
        "let ys = generate(35, i => (xss |> join |> at(34 - i)) * 2) in ys |> map(y => y + 1)", 35),
    "windows of what is computed": ("xss |> join |> map(x => x * 2) |> slide(3, 1)", 33),
    "a border around what is computed": (
        "xss |> map(xs => xs |> map(x => x * 2)) |> pad(1, 2, 0)", 35),
    "beside what is computed": ("concat(xss |> join |> map(x => x * 2), xss |> join)", 35),
    "a view": ("xss |> transpose", 35),
    "a view of four dimensions": (
        "xss |> split(1) |> map(xs => xs |> map(x => x |> split(1)))", 35),
    "two views": ("(xss |> take(4) |> join, xss |> drop(2) |> transpose)", 20),
    "a view beside a computed array": ("(xss |> transpose, xss |> join |> map(x => x * 2))", 35),
    "the parts of a view": ("xss |> splitAt(3)", 15),
    "the parts of what is computed": ("xss |> map(xs => xs |> map(x => x * 2)) |> splitAt(3)", 15),
    "the parts of folds": ("xss |> transpose |> map(c => c |> reduce(add, 0)) |> splitAt(2)", 2),
    "parts of parts": (
        "let p = (xss |> join |> map(x => x * 3) |> splitAt(9)) in (p.1 |> splitAt(4), p.0)", 4),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_no_work_item_makes_a_result_alone(name: str) -> None:
    text, least = RESULTS[name]
    program = parse(f"def p(xss: [7][5]f32) = {text}")
    xss = np.arange(35, dtype=np.float32).reshape(7, 5) - 9
    widest = 0
    for candidate in of_family("plain", program, DEFAULT_DEVICE, 30):
        made = compile_program(candidate.skeleton.at(candidate.assignment))
        result = interpreted(made, made.optimized, {"xss": xss})
        for found, wanted in zip(leaves(result), leaves(evaluate(program, xss)), strict=True):
            np.testing.assert_array_equal(found, wanted)
        widest = max(widest, min(prod(map(int, kernel.global_size)) for kernel in made.optimized))
    assert widest >= least


def leaves(value: object) -> list[object]:
    """The arrays of a nested tuple."""
    return [a for v in value for a in leaves(v)] if isinstance(value, tuple) else [value]

"""How long the code of a kernel may get: what would be longer is refused before it is made."""

from __future__ import annotations

import re

import pytest

from liftpy.errors import TypeRefused
from liftpy.language.text.program import parse
from liftpy.loops.nest import MOST_STATEMENTS
from liftpy.pipeline import compile_program
from tests.lowered import lowered

MILLION = 10**6
#: Programs that would be unrolled to too many statements, and what the refusal names.
TOO_LONG = {
    "a fold that is to be unrolled": (
        f"xs: [{MILLION}]f32) = xs |> reduceSeqUnroll(add, 0)",
        rf"reduceSeqUnroll.* has {MILLION} steps.* {MOST_STATEMENTS} statements.*reduceSeq,",
    ),
    "a map that is to be unrolled": (
        f"xs: [{MILLION}]f32) = xs |> mapSeqUnroll(x => x + 1)",
        rf"mapSeqUnroll.* has {MILLION} steps.* {MOST_STATEMENTS} statements.* mapSeq,",
    ),
    "a copy in registers": (
        f"xs: [{MILLION}]f32) = xs |> mapSeq(x => x) |> toPrivate |> mapSeq(x => x)",
        f"k0_output is too long: .* {MILLION} steps.* {MOST_STATEMENTS} statements",
    ),
    "a window in registers": (
        f"""xs: [{2 * MILLION}]f32) =
             xs |> slideSeq({MILLION + 1}, 1, w => w |> reduceSeq(add, 0))""",
        f"k0_output is too long: .* {MILLION} steps.* {MOST_STATEMENTS} statements",
    ),
    "accumulators in accumulators": (
        """xss: [300][200]f32) = xss
             |> reduceSeq((a, row) => zip(a, row) |> mapSeq((x, y) => x + y),
                  generate(200, (i: i32) => 0f32))
             |> toPrivate
             |> (s => xss |> mapSeqUnroll(row =>
                  zip(row, s) |> mapSeqUnroll((x, y) => x * y)))""",
        f"k0_output is too long: its loops .* more .* {MOST_STATEMENTS} statements",
    ),
}


@pytest.mark.parametrize("name", list(TOO_LONG))
def test_what_gets_too_long_is_refused(name: str) -> None:
    body, wanted = TOO_LONG[name]
    with pytest.raises(TypeRefused) as refused:
        compile_program(lowered(f"def p({body}"))
    assert re.search(wanted, str(refused.value)), refused.value


def test_a_fold_of_as_many_steps_as_fit_is_unrolled() -> None:
    source = compile_program(
        parse("def p(xs: [500]f32) = xs |> reduceSeqUnroll(add, 0)")
    ).module.source
    assert source.count("acc0 = ") == 501

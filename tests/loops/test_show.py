"""The readable text of the loop IR."""

from __future__ import annotations

from liftpy.ir.types import F32, I32
from liftpy.loops.show import show
from liftpy.loops.values import (
    Name,
    Operate,
)


def test_an_operator_with_a_name_is_written_as_a_function() -> None:
    a, b, m = Name("a", F32), Name("b", F32), Name("m", I32)
    assert show(Operate("*", (Operate("+", (a, b), F32), a), F32)) == "(a + b) * a"
    assert show(Operate("atan2", (a, Operate("-", (b, a), F32)), F32)) == "atan2(a, b - a)"
    assert show(Operate("shiftLeft", (m, m), I32)) == "shiftLeft(m, m)"

"""Replaces divisions by the same number with multiplications by its reciprocal, computed once.

A division takes several times as long as a multiplication, also in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import FLOATS
from liftpy.ir.walk import Path, top_down
from liftpy.primitives import Map
from liftpy.rewrite.strategy import Result, Success, at_path, rule, seq


def reciprocals(expr: Expr) -> Result:
    """Multiply by the reciprocal in a map that divides all elements by the same number.

    A `let` around the map names the reciprocal.
    """
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return Success(expr)
    found = [*quotients(expr)]
    inverted = (at_path(path, rule(f"reciprocal_{divisor.type}")) for path, divisor in found)
    places = {divisor: (*path, 1) for path, divisor in found}
    named = (
        at_path((1,) * depth, rule("let_introduction", {"v": place}))
        for depth, place in enumerate(places.values())
    )
    return seq(*inverted, *named)(expr)


def quotients(call: FunCall) -> Iterator[tuple[Path, Expr]]:
    """The paths of quotients whose divisor is the same for every element, with the divisor."""
    for path, part in top_down(call):
        match part:
            case FunCall(ScalarOp("/"), (dividend, divisor)) if part.type in FLOATS:
                if divisor.free <= call.free and not dividend.free <= call.free:
                    yield path, divisor
            case _:
                pass

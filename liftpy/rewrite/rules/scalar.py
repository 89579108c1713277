"""Laws of scalars: laws of real numbers, which hold for floating-point numbers up to rounding."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import FLOATS, ScalarType
from liftpy.rewrite.rule import Rule


def divided(x: Expr, y: Expr) -> Expr:
    """`x / y`."""
    return FunCall(ScalarOp("/"), (x, y))


def reciprocal(t: ScalarType) -> Rule:
    """A quotient as a product with the divisor's reciprocal, which several quotients can share.

    It does not hold for integers. The reciprocal of a number close to 0 is infinite, even if the
    quotient of two such numbers is not.
    """
    x, y = Param("x", t), Param("y", t)
    product = FunCall(ScalarOp("*"), (x, divided(Literal(1.0, t), y)))
    return Rule(f"reciprocal_{t}", "scalar", divided(x, y), product, proof="real")


RULES = RECIPROCAL_F16, RECIPROCAL_F32, RECIPROCAL_F64 = tuple(map(reciprocal, FLOATS))

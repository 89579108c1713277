"""Sums of integers in f32, which are exact while they are small.

Every integer up to 2^24 is an f32. So up to 514 products of a u8 and an i8, each of at most 255 *
128, can be summed in f32, whose multiply-add some processors compute faster than that of i32. (518
products are exact if no weight is -128.) Longer sums are strips
whose results are added in i32 (`reduce_strip`).
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import at_most
from liftpy.ir.expr import Literal, Param
from liftpy.ir.nat import nats
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import BOUND, Assumption, Rule
from liftpy.rewrite.rules.notation import T, array, fold, n, unknown

(bound,) = nats(BOUND)
xs, z = array("xs", T, n), Param("z", I32)
add, g, h = unknown("f", I32), unknown("g", I32), unknown("h", F32)

SUM_IN_F32 = Rule(
    "sum_in_f32",
    "integers",
    fold(lambda a, x: add(a, g(x)), z, xs),
    add(
        z,
        FunCall(
            ScalarOp("i32"),
            (
                fold(
                    lambda s, x: FunCall(ScalarOp("+"), (s, h(x))),
                    Literal(0.0, F32),
                    xs,
                ),
            ),
        ),
    ),
    where=(at_most(n * bound, LARGEST_EXACT),),
    assuming=(Assumption("adds", "f"), Assumption("exact", "h", "g")),
    proof="exact",
)

RULES = (SUM_IN_F32,)

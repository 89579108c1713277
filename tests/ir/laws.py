"""Laws of division, minima and maxima, each as the normal form has it and as z3 has it."""

import z3

from liftpy.ir.nat import greatest, least, var

X, Y, P, N, M = (z3.Int(name) for name in ("x", "y", "p", "n", "m"))
x, y = var("x", None), var("y", None)
p = var("p", 1)
I4, J12, K = var("i4", 0, 3), var("j12", 0, 11), var("k6", -2, 5)
ZI4, ZJ12, ZK = z3.Int("i4"), z3.Int("j12"), z3.Int("k6")

#: What the normal form makes of a division or a minimum, and the same as z3's own. For a positive
#: divisor z3's `/` rounds down and its `%` is not negative, on negative numbers too.
LAWS = {
    "a minimum that ranges decide": (least(I4, 3), ZI4),
    "a maximum that ranges decide": (greatest(K, -2), ZK),
    "a minimum of terms that share a part": (least(x, x + p), X),
    "a maximum of terms that share a part": (greatest(x - p, x), X),
    "a minimum that stays": (least(x, y), z3.If(X < Y, X, Y)),
    "a maximum that stays": (greatest(y, 2 * x), z3.If(Y > 2 * X, Y, 2 * X)),
    "a mirrored index": (
        least(greatest(x, -1 - x), 5),
        z3.If(X < -6, 5, z3.If(X > 5, 5, z3.If(X < 0, -1 - X, X))),
    ),
    "whole multiples leave the numerator": ((12 * x + y) // 4, (12 * X + Y) / 4),
    "and are no remainder": ((12 * x + y) % 4, (12 * X + Y) % 4),
    "negative multiples too": ((y - 8 * x) // 4, (Y - 8 * X) / 4),
    "a coefficient is cut": ((7 * x + y) // 4, (7 * X + Y) / 4),
    "a negative coefficient is cut": ((y - 7 * x) // 4, (Y - 7 * X) / 4),
    "its remainder": ((y - 7 * x) % 4, (Y - 7 * X) % 4),
    "a constant is cut": ((x - 9) // 4, (X - 9) / 4),
    "its remainder is not negative": ((x - 9) % 4, (X - 9) % 4),
    "a rest in range vanishes": ((4 * x + I4) // 4, (4 * X + ZI4) / 4),
    "a rest in range is the remainder": ((4 * x + I4) % 4, (4 * X + ZI4) % 4),
    "a rest that is too large stays": ((4 * x + J12) // 4, (4 * X + ZJ12) / 4),
    "a rest that may be negative stays": ((4 * x + K) // 4, (4 * X + ZK) / 4),
    "its remainder stays": ((4 * x + K) % 4, (4 * X + ZK) % 4),
    "a common factor is cancelled": ((4 * x + I4) // 12, (4 * X + ZI4) / 12),
    "the remainder keeps the factor": ((4 * x + I4) % 12, (4 * X + ZI4) % 12),
    "a common factor, nested": ((12 * x + 4 * y + I4) // 24, (12 * X + 4 * Y + ZI4) / 24),
    "its remainder, nested": ((12 * x + 4 * y + I4) % 24, (12 * X + 4 * Y + ZI4) % 24),
    "a factor is not cancelled past a large rest": ((4 * x + J12) // 12, (4 * X + ZJ12) / 12),
    "nor past a negative one": ((4 * x + K) // 12, (4 * X + ZK) / 12),
    "a quotient of a quotient": ((x // 3) // 4, (X / 3) / 4),
    "a remainder of a remainder": ((x % 12) % 4, (X % 12) % 4),
    "a remainder below the divisor": ((x % 4) % 12, (X % 4) % 12),
    "a quotient of a remainder": ((x % 4) // 4, (X % 4) / 4),
    "a symbol divides its multiples": ((p * x + y) // p, (P * X + Y) / P),
    "and leaves the rest": ((p * x + y) % p, P * X + Y - P * ((P * X + Y) / P)),
    "a symbol by itself": (p // p, P / P),
    "a sum by itself": ((p + I4) // (p + I4), (P + ZI4) / (P + ZI4)),
    "by one": (x // 1, X / 1),
    "the remainder by one": (x % 1, X % 1),
}


def in_range(term, low, high):
    return [term >= low, term <= high]


GIVEN = [P >= 1, *in_range(ZI4, 0, 3), *in_range(ZJ12, 0, 11), *in_range(ZK, -2, 5)]

"""Python's operators and functions on sizes: open lengths and indices.

A size is made of whole numbers and `+ - * // %`. Its value is not known while a program is defined,
so Python code cannot branch on it or count with it. Such code is refused where it is written,
unless the ranges of the variables decide the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from liftpy.errors import NoSuchAttribute, TypeRefused
from liftpy.ir.provided import TRACE
from liftpy.source.caller import (
    compared_by_user,
    here,
    looked_up_by_user,
    needed_by_user,
    refusal,
)

LARGEST_POWER = 64
#: Attributes of an instance that are missing while it is being copied.
STATE = frozenset({"terms"})

#: The NumPy functions that sizes support, each with the method that computes it.
UFUNCS = {
    "add": "__add__",
    "subtract": "__sub__",
    "multiply": "__mul__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "power": "__pow__",
    "maximum": "larger",
    "minimum": "smaller",
    "absolute": "__abs__",
    "positive": "__pos__",
    "negative": "__neg__",
    "less": "__lt__",
    "less_equal": "__le__",
    "greater": "__gt__",
    "greater_equal": "__ge__",
}


def is_expression(value: object) -> bool:
    """Whether a value is an expression; expressions have a type and make their own refusals."""
    return getattr(value, "type", None) is not None


class Size:
    """The operators of a size other than the arithmetic of whole numbers."""

    constant: Any

    def bounds_of(self, other: Any) -> tuple[int | None, int | None]:
        """The least and the largest value of `self - other`."""
        raise NotImplementedError

    def like(self, value: Any) -> Any:
        """A whole number as a size."""
        raise NotImplementedError

    def larger(self, other: Any) -> Any:
        """The larger of two sizes."""
        raise NotImplementedError

    def smaller(self, other: Any) -> Any:
        """The smaller of two sizes."""
        raise NotImplementedError

    def noun(self) -> str:
        """The name of the size in a message."""
        raise NotImplementedError

    # results that Python needs immediately

    def undecided(self, op: str, other: Any) -> TypeRefused:
        """The refusal of a comparison whose result depends on numbers that are not known yet."""
        own = str(self)
        why = (
            f"`{own} {op} {other}` depends on its value, which Python needs before the program runs"
            if op
            else "Python needs its truth value before the program runs"
        )
        if self.noun().startswith("the index"):
            suggestion = (
                "an index function is made of + - * // %, np.minimum and np.maximum; to choose by "
                "a condition, use lp.generate(n, f) and lp.select"
            )
        else:
            suggestion = (
                "use a number for the length, or a range that decides it: lp.size(name, low, high)"
            )
        return refusal(f"{self.noun()} has no value in Python", why, suggestion)

    def compare(self, op: str, other: Any) -> Any:
        """The result of a comparison; refused if the ranges do not decide it."""
        if is_expression(other) or isinstance(other, str) or other is None:
            return NotImplemented
        if isinstance(other, float) and not other.is_integer():
            raise self.beside(op, other)
        low, high = self.bounds_of(int(other) if isinstance(other, float) else other)
        if op in {"<", ">="} and low is not None and low >= 0:
            return op == ">="
        if op in {"<", ">="} and high is not None and high < 0:
            return op == "<"
        if op in {"<=", ">"} and low is not None and low > 0:
            return op == ">"
        if op in {"<=", ">"} and high is not None and high <= 0:
            return op == "<="
        raise self.undecided(op, other)

    def undecided_extreme(self, name: str) -> TypeRefused:
        """The refusal of an undecided minimum or maximum of sizes outside an index function."""
        what = f"the {name} of {self.noun()} and another size is not decided"
        why = "only index functions have np.minimum and np.maximum; lengths are made of + - * // %"
        return refusal(what, why, "give ranges that decide it: lp.size(name, low, high)")

    def __lt__(self, other: Any) -> Any:
        return self.compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self.compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self.compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self.compare(">=", other)

    def differs(self, other: Any) -> bool:
        """True if it differs from another size, for `==` in a traced function; else refused."""
        low, high = self.bounds_of(other)
        if (low is None or low <= 0) and (high is None or high >= 0):
            raise self.undecided("==", other)
        return True

    def __bool__(self) -> bool:
        if TRACE.get() is None or not compared_by_user():
            return True  # as for any object: liftpy tests whether a size is present
        low, high = self.bounds_of(0)
        if low == high == 0:
            return False
        if (low is None or low <= 0) and (high is None or high >= 0):
            raise self.undecided("", 0)
        return True

    def looked_up(self) -> None:
        """Refuse `n in {1, 2}`, which would be False."""
        if self.constant is None and TRACE.get() is not None and looked_up_by_user():
            raise self.undecided("in", "...")

    def number(self) -> int:
        """The value of a constant size; refused for others."""
        if self.constant is not None:
            return self.constant
        if not needed_by_user():
            message = f"{self} is not a number"
            raise ValueError(message)
        spot = here()
        node = None if spot is None else spot.syntax()
        function = node.func if isinstance(node, ast.Call) else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        why = f"{f'`{name}`' if name else 'this operation'} needs a number before the program runs"
        suggestion = "lp.iota(n) is the array of indices, lp.generate(n, f) the array of f(i)"
        if name != "range":
            suggestion = (
                "write a number, or add a parameter to the program; `n // 2` divides a size"
            )
        raise refusal(f"{self.noun()} is not a Python number", why, suggestion)

    def __int__(self) -> int:
        return self.number()

    def __index__(self) -> int:
        return self.number()

    def __float__(self) -> float:
        return float(self.number())

    # arithmetic that sizes do not support

    def beside(self, op: str, other: Any) -> TypeRefused:
        """The refusal of an operator between a size and something else."""
        given = other if isinstance(other, int | float | str) else type(other).__name__
        what = f"`{op}` cannot be applied to {self.noun()} and {given!s:.60}"
        why = "sizes are whole numbers, with + - * // % between them"
        suggestion = "use whole numbers: n * 3 // 2 for n * 1.5"
        if op == "**":
            suggestion = "the exponent is a whole number that is written: n**2 is n * n"
        if op == "/":
            suggestion = "write n // 2, which rounds down, for n / 2"
        return refusal(what, why, suggestion)

    def divided_by_zero(self, op: str) -> TypeRefused:
        """The refusal of a division by 0."""
        what = f"`{op}` divides {self.noun()} by 0"
        return refusal(what, "a size cannot be divided by 0", "divide by 1 or more")

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        """A whole power, as a product."""
        if modulus is not None or isinstance(exponent, bool) or not isinstance(exponent, int):
            if is_expression(exponent):
                return NotImplemented
            raise self.beside("**", exponent)
        if not 0 <= exponent <= LARGEST_POWER:
            raise self.beside("**", exponent)
        power: Any = 1
        for _ in range(exponent):
            power = power * self
        return power

    def __rpow__(self, other: Any) -> Any:
        raise self.beside("**", other)

    def __truediv__(self, other: Any) -> Any:
        if is_expression(other):
            return NotImplemented
        raise self.beside("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        raise self.beside("/", other)

    def __divmod__(self, other: Any) -> Any:
        own: Any = self
        return own // other, own % other

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        own: Any = self
        return self.larger(-own)

    def __round__(self, digits: int = 0) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__ = __pos__

    def _bits(self, _: Any = 0) -> Any:
        what = f"{self.noun()} has no bits in Python"
        why = "its value is given later; sizes are whole numbers, with + - * // %"
        raise refusal(what, why, "write n % 2 for n & 1, 2 * n for n << 1")

    __and__ = __or__ = __xor__ = __lshift__ = _bits
    __rand__ = __ror__ = __rxor__ = __rlshift__ = _bits

    def __invert__(self) -> Any:
        return self._bits()

    def __rshift__(self, other: Any) -> Any:
        return NotImplemented if callable(other) else self._bits()

    def __iter__(self) -> Iterator[Any]:
        what = f"{self.noun()} cannot be iterated over"
        why = "it is a length or an index, not an array"
        raise refusal(what, why, "lp.iota(n) is the array of indices")

    def __format__(self, spec: str) -> str:
        if spec and self.constant is None:
            what = f"{self.noun()} cannot be formatted as `{spec}`"
            raise refusal(what, "its value is given later", "leave out the format")
        return format(self.constant, spec) if spec else str(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in STATE:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        what = f"a size has no `.{name}`"
        why = "sizes are whole numbers that are given later, with + - * // %"
        raise refusal(what, why, "write arithmetic on the size itself: 2 * n", kind=NoSuchAttribute)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """NumPy's functions: those in `UFUNCS`, and any function if all sizes are constant."""
        if all(x.constant is not None for x in inputs if isinstance(x, Size)):
            numbers = [x.constant if isinstance(x, Size) else x for x in inputs]
            return getattr(ufunc, method)(*numbers, **named)
        name = ufunc.__name__
        if any(is_expression(x) for x in inputs):
            return NotImplemented
        if method == "__call__" and not named and name in UFUNCS:
            if any(getattr(x, "ndim", 0) for x in inputs):
                raise self.beside(name, next(x for x in inputs if getattr(x, "ndim", 0)))
            first, *others = (x if isinstance(x, Size) else self.like(x) for x in inputs)
            return getattr(first, UFUNCS[name])(*others)
        what = f"NumPy's `{name}` cannot be applied to {self.noun()}"
        why = "its value is given later; sizes are whole numbers, with + - * // %"
        suggestion = "write a number, or add a parameter to the program"
        raise refusal(what, why, f"{suggestion}; for sizes there are {', '.join(sorted(UFUNCS))}")

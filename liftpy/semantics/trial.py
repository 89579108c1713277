"""Rules at given sizes: both sides computed with numbers.

Elements are numbers, and functions satisfy the assumed laws and no others: an arbitrary function is
a hash of its arguments; an associative one composes affine maps, which do not commute, or adds if
it is also commutative; a rescaled one has a factor. So a law that needs more than is assumed gives
different numbers. The terms of `free` are readable, but grow with the nesting of steps; numbers do
not grow.
"""

from __future__ import annotations

import math
import zlib
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from liftpy.ir.operators import OPERATORS
from liftpy.ir.pull import Index, Parts, Pull, Value
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    INTEGERS,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    integer_range,
)
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import BOUND
from liftpy.semantics.free import FreeReader
from liftpy.semantics.symbolic import components

#: The numbers are below the square of a prime: pairs of remainders are affine maps.
PRIME = 2**30 - 35
SQUARE = PRIME * PRIME


@lru_cache(maxsize=1024)
def _number(head: str) -> int:
    """A number for a word, the same in every process."""
    return zlib.crc32(head.encode())


class TrialReader(FreeReader):
    """Reads meanings as numbers; `FreeReader` has the sizes, folds and arrays."""

    def hashed(self, head: str, args: tuple[Any, ...], t: Type | None = None) -> Any:
        """The value of an arbitrary function; a truth value if `t` is `bool`."""
        number = hash((_number(head), *args)) % SQUARE  # a hash of numbers: always the same
        return number % 2 == 0 if t == BOOL else number

    def leaf(self, name: str, t: Type, *prefix: Any) -> Value:
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                return Pull(length, lambda i: self.leaf(name, element, *prefix, self.number(i)))
            case TupleType(elements):
                return tuple(self.leaf(f"{name}.{k}", e, *prefix) for k, e in enumerate(elements))
            case _:
                return self.hashed(name, prefix, t)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        match op:
            case "select":
                return args[1] if args[0] else args[2]
            case "and" | "or":
                return all(args) if op == "and" else any(args)
            case "not":
                return not args[0]
            case "!=":
                return not self.operate("==", args)
            case _:
                truth = op in OPERATORS and OPERATORS[op].truth
                return self.hashed(f"operator {op}", args, BOOL if truth else None)

    def literal(self, value: float, t: Type) -> Value:
        return bool(value) if t == BOOL else self.constant(value)

    def constant(self, value: object) -> int:
        """The number of a constant, the same wherever it occurs."""
        return self.hashed(f"constant {self.units.get(str(value), value)}", ())

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        return then if condition else self.constant(otherwise)

    def of_index(self, index: Index, t: Type) -> Value:
        return self.hashed(f"index as {t}", (self.number(index),))

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        plain = tuple(self.plain(a) for a in args)
        if len(plain) == 3:
            return self.rescaling(function, *plain)
        laws = self.laws.get(function.name)
        if laws is not None and "annihilates" in laws:
            zero = self.constant(laws["annihilates"])
            return zero if plain[0] == zero else self.leaf(function.name, function.type, *plain)
        if laws is None or any(t != function.type for t in function.params) or len(plain) != 2:
            return self.leaf(function.name, function.type, *plain)
        if isinstance(function.type, ArrayType | VectorType | TupleType):
            return self.leaf(function.name, function.type, *plain)
        return self.lawful(function.name, laws, *plain)

    def lawful(self, name: str, laws: dict[str, str | None], x: int, y: int) -> int:
        """A function that satisfies laws, and only those that follow from them."""
        unit = self.constant(laws["neutral"]) if "neutral" in laws else 0
        if "associative" in laws and "commutative" in laws:
            return (x + y - unit) % SQUARE
        if "associative" in laws:
            (a, b), (c, d) = (divmod((v - unit + PRIME) % SQUARE, PRIME) for v in (x, y))
            composed = a * c % PRIME * PRIME + (a * d + b) % PRIME
            return (composed + unit - PRIME) % SQUARE
        if "neutral" in laws and unit in (x, y):
            return y if x == unit else x
        return self.hashed(name, tuple(sorted((x, y))) if "commutative" in laws else (x, y))

    def rescaling(self, function: Any, first: Any, second: Any, third: Any) -> Value:
        """A function of three arguments: one that rescales, one that is rescaled, or another.

        `k(m, s, x)` is `a(x) * s + b(x) * c(m)`, and `r(m, n, s)` is `s * c(n) / c(m)`; numbers are
        relative to the one that `r` keeps.
        """
        laws = self.laws.get(function.name, {})
        for r, known in self.laws.items():
            if "rescales" in known and function.name in {r, known["rescales"]}:
                origin = self.constant(known["keeps"]) if "keeps" in known else 0
                if function.name == r:
                    factor = self.factor(second) * pow(self.factor(first), -1, SQUARE)
                    return ((third - origin) * factor + origin) % SQUARE
                a, b = (self.hashed(f"{function.name} {part}", (third,)) for part in "ab")
                return (a * (second - origin) + b * self.factor(first) + origin) % SQUARE
        if "keeps" in laws and third == self.constant(laws["keeps"]):
            return third
        return self.leaf(function.name, function.type, first, second, third)

    def factor(self, parameter: Any) -> int:
        """A number for a parameter that has an inverse."""
        number = self.hashed("factor", (parameter,))
        return number if number % PRIME else 1

    def plain(self, value: Value) -> Any:
        """A value with all its elements, as nested tuples of numbers."""
        match value:
            case Pull():
                return 1, *(self.plain(value[i]) for i in range(self.number(value.length)))
            case Parts() | tuple():
                return 2, *(self.plain(part) for part in components(value))
            case _:
                return value


class FieldReader(TrialReader):
    """Reads meanings as integers modulo a prime, which form a field, as real numbers do."""

    def hashed(self, head: str, args: tuple[Any, ...], t: Type | None = None) -> Any:
        number = super().hashed(head, args, t)
        return number if t == BOOL else number % PRIME

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        match op, args:
            case "+", (x, y):
                return (x + y) % PRIME
            case "-", (x, y):
                return (x - y) % PRIME
            case "*", (x, y):
                return x * y % PRIME
            case "/", (x, y) if y:
                return x * pow(y, -1, PRIME) % PRIME
            case "neg", (x,):
                return -x % PRIME
            case _:
                return super().operate(op, args)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        if "adds" in self.laws.get(function.name, {}):
            return (args[0] + args[1]) % PRIME
        if "accumulates" in self.laws.get(function.name, {}):
            total, (x, y) = args[0], components(args[1])
            return (total + x * y) % PRIME
        for r, known in self.laws.items():
            if function.name in {r, str(known.get("scales"))} and "scales" in known:
                constant = 0 if function.name == r else self.hashed(function.name, ())
                return (constant + args[0] * self.hashed(r, ())) % PRIME
        return super().unknown(function, args)

    def constant(self, value: object) -> int:
        match value:
            case int():
                return value % PRIME
            case float() if math.isfinite(value):
                over, under = value.as_integer_ratio()
                return over * pow(under, -1, PRIME) % PRIME
            case _:
                return super().constant(value)


class WholeReader(TrialReader):
    """Reads i32 as integers that wrap around, and f32 as NumPy's numbers, which are rounded.

    A function that f32 computes exactly is close to the bound of its results, and odd for some
    arguments, so that a sum of too many of them is rounded.
    """

    def hashed(self, head: str, args: tuple[Any, ...], t: Type | None = None) -> Any:
        number = super().hashed(head, args, t)
        return np.float32(number % PRIME) if t == F32 else wrapped(number) if t == I32 else number

    def literal(self, value: float, t: Type) -> Value:
        return np.float32(value) if t == F32 else super().literal(value, t)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        if op == "+":
            total = args[0] + args[1]
            return wrapped(total) if isinstance(total, int) else total
        return wrapped(int(args[0])) if op == "i32" else super().operate(op, args)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        plain = tuple(self.plain(a) for a in args)
        laws = self.laws.get(function.name, {})
        if "adds" in laws:
            if function.type == F32:
                return np.float32(plain[0]) + np.float32(plain[1])
            return wrapped(int(plain[0]) + int(plain[1]))
        if "exact" in laws:
            return np.float32(self.close_to_bound(plain))
        if any(known.get("exact") == function.name for known in self.laws.values()):
            return self.close_to_bound(plain)
        return super().unknown(function, args)

    def close_to_bound(self, args: tuple[Any, ...]) -> int:
        """The bound, or for most arguments the odd number next to it; a rule may not limit it."""
        bound = self.sizes.get(BOUND, LARGEST_EXACT)
        return bound - (bound > 0 and bound % 2 == 0 and self.hashed("odd", args) % 4 > 0)


class MachineReader(WholeReader):
    """Reads narrow integers as numbers of their types, mostly as the ends of the ranges."""

    def hashed(self, head: str, args: tuple[Any, ...], t: Type | None = None) -> Any:
        number = super().hashed(head, args, t)
        if t not in {*INTEGERS} - {I32} or not isinstance(t, ScalarType):
            return number
        low, high = integer_range(t)
        return (low, high, high, low + number % (high - low + 1))[number // 7 % 4]

    def literal(self, value: float, t: Type) -> Value:
        return int(value) if t == I32 else super().literal(value, t)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        if op in {"i32", "f32"}:
            return np.float32(args[0]) if op == "f32" else wrapped(int(args[0]))
        found = exactly(op, args)
        if found is None:
            return super().operate(op, args)
        return wrapped(found) if isinstance(found, int) else found

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        if "accumulates" not in self.laws.get(function.name, {}):
            return super().unknown(function, args)
        x, y = components(args[1])
        return wrapped(args[0] + x * y)


def exactly(op: str, args: tuple[Any, ...]) -> Any:
    """The unwrapped result of an operator on numbers of one type; None for other operators."""
    match op, args:
        case "+", (x, y):
            return x + y
        case "-", (x, y):
            return x - y
        case "*", (x, y):
            return x * y
        case "/", (x, y):
            return math.trunc(Fraction(x, y)) if isinstance(x, int) else x / y
        case "neg", (x,):
            return -x
        case _:
            return None


def wrapped(number: int) -> int:
    """An integer as an i32."""
    return (number + 2**31) % 2**32 - 2**31

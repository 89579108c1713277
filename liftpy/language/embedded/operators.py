"""Python's operators, its built-in functions and NumPy's functions on expressions.

Operations of the language become expressions. All others are refused where they are written, with a
suggestion of what to write instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from liftpy.errors import NoSuchAttribute
from liftpy.ir.expr import Expr
from liftpy.ir.function import UserFun
from liftpy.ir.operators import OPERATORS
from liftpy.ir.types import BOOL, FLOATS, INTEGERS, SCALARS, ArrayType, ScalarType, TupleType
from liftpy.language.embedded.operations import call_of, constant_like, operate
from liftpy.language.embedded.placing import at_place
from liftpy.language.embedded.python_words import (
    MEMBERSHIP,
    OF_SCALARS,
    OVER_ARRAYS,
    PRODUCT,
    SCALAR_WORDS,
    UFUNCS,
    WRITTEN,
)
from liftpy.language.given import is_number, misfit_of, plain, shown, stage_or
from liftpy.source.caller import called_there, here, looked_up_by_user, refusal

LARGEST_POWER = 64  # whole exponents up to this one are expanded into products


def needs_scalar(x: Expr) -> tuple[str, ...]:
    """The advice for a scalar function that is applied to an array."""
    if isinstance(x.type, ArrayType):
        return (f"it is of type {x.type}: `xs >> lp.map(f)` applies a function to each element",)
    return ()


def on_integers(*values: Any) -> bool:
    """Whether operands are integers: expressions, one at least, and plain numbers."""
    return any(isinstance(value, Expr) and value.type in INTEGERS for value in values) and all(
        isinstance(value, Expr) or is_number(value) for value in values
    )


def on_bits_or_truth(symbol: str, bits: str, logical: str, *values: Any) -> str:
    """The operator of `& | ~`: on bits or on truth values; TypeRefused for a float."""
    if on_integers(*values):
        return bits
    for value in values:
        if isinstance(value, Expr) and value.type in FLOATS:
            raise refusal(
                f"`{symbol}` needs truth values or integers, got {value.type}",
                "write a comparison, or lp.convert(x, lp.i32)",
            )
    return logical


def differing(*values: Any) -> str:
    """The operator of `^`; TypeRefused for operands that are neither integers nor truth values."""
    if on_integers(*values):
        return "bitXor"
    for value in values:
        if isinstance(value, bool) or (isinstance(value, Expr) and value.type == BOOL):
            continue
        given = value.type if isinstance(value, Expr) else shown(value)
        why = "`a ^ b` is exclusive or, of truth values or of the bits of integers"
        raise refusal(f"`^` needs truth values or integers, got {given}", why, "a power is x**2")
    return "!="


class Operators(Expr):
    """The methods of expressions beside those that build a call of a scalar operator."""

    def scalar(self, op: str, *args: Any) -> Expr:
        """`operate`; a refusal is placed where the operator is written."""
        return at_place(operate, op, *args)

    # operators of the language

    def __and__(self, other: Any) -> Expr:
        return self.scalar(on_bits_or_truth("&", "bitAnd", "and", self, other), self, other)

    def __rand__(self, other: Any) -> Expr:
        return self.scalar(on_bits_or_truth("&", "bitAnd", "and", other, self), other, self)

    def __or__(self, other: Any) -> Expr:
        return self.scalar(on_bits_or_truth("|", "bitOr", "or", self, other), self, other)

    def __ror__(self, other: Any) -> Expr:
        return self.scalar(on_bits_or_truth("|", "bitOr", "or", other, self), other, self)

    def __xor__(self, other: Any) -> Expr:
        return self.scalar(differing(self, other), self, other)

    def __rxor__(self, other: Any) -> Expr:
        return self.scalar(differing(other, self), other, self)

    def __invert__(self) -> Expr:
        return self.scalar(on_bits_or_truth("~", "bitNot", "not", self), self)

    def __lshift__(self, count: Any) -> Expr:
        if on_integers(self, count):
            return self.scalar("shiftLeft", self, count)
        given = ", ".join(str(x.type) if isinstance(x, Expr) else shown(x) for x in (self, count))
        raise refusal(
            f"`<<` needs integers, got {given}",
            "`a << n` shifts the bits of an integer",
            "write xs >> f to apply a function, or x * 2 for a number",
        )

    def __rlshift__(self, given: Any) -> Expr:
        if on_integers(given, self):
            return self.scalar("shiftLeft", given, self)
        return NotImplemented

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        """A power: a product for whole exponents, the square root for 0.5, else `pow` on floats."""
        if modulus is not None:
            raise refusal(
                "`pow` takes no modulus", "the language has no modular power", "write x**2 % y"
            )
        if isinstance(exponent, Expr) or not is_number(exponent):
            return self.scalar("pow", self, exponent)
        exponent = plain(exponent)
        if exponent == 1 / 2:
            return self.scalar("sqrt", self)
        whole = isinstance(exponent, int) or exponent.is_integer()
        if not whole or abs(exponent) > LARGEST_POWER:
            return self.scalar("pow", self, exponent)
        if exponent == 0:
            return constant_like(1, self)
        if exponent < 0 and self.type not in FLOATS:
            what = f"{self.type} has no negative powers"
            raise refusal(what, "the result is a fraction", "write lp.convert(x, lp.f32) ** -1")
        power = repeated(self, abs(int(exponent)))
        return power if exponent > 0 else 1 / power

    def __rpow__(self, base: Any) -> Expr:
        return self.scalar("pow", base, self)

    def __floordiv__(self, other: Any) -> Expr:
        if self.type not in FLOATS:
            what = f"`//` is not defined for {self.type}"
            why = "Python's `//` rounds down; division of integers here rounds towards zero"
            raise refusal(what, why, "write x / y if no operand is negative")
        return self.scalar("floor", self / other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self.scalar("floor", other / self)

    def __rshift__(self, function: Any) -> Expr:
        """`xs >> f` is `f(xs)`, and `x >> n` shifts the bits of an integer.

        A word without arguments needs no parentheses.
        """
        if on_integers(self, function):
            return self.scalar("shiftRight", self, function)
        if not callable(function) or isinstance(function, Expr):
            shifts = isinstance(self.type, ScalarType) and is_number(function)
            raise refusal(
                f"`>>` needs a function, not {shown(function)}",
                f"xs >> f is f(xs){', and x >> n shifts the bits of an integer' * shifts}",
                meant(function),
            )
        stage = stage_or(function)
        try:
            return stage(self)
        except TypeError as error:
            if (why := misfit_of(stage, 1)) is None:
                raise
            what = f"`>>` needs a function of one argument, not {shown(stage)}"
            raise refusal(what, why, "write xs >> (lambda xs: ...)") from error

    # functions of Python

    def __bool__(self) -> bool:
        spot = here()
        node = None if spot is None else spot.syntax()
        what = "an expression has no truth value in Python"
        why = "its values are known when the program runs, not when it is written"
        match node:
            case ast.Compare(ops=[_, _, *_]):
                suggestion = "write a chain as (a < b) & (b < c)"
            case ast.BoolOp():
                suggestion = "write a & b for `and`, a | b for `or`"
            case ast.UnaryOp(op=ast.Not()):
                suggestion = "write ~a for `not`"
            case ast.Call(func=ast.Name(id="max")):
                suggestion = "write lp.larger(a, b)"
            case ast.Call(func=ast.Name(id="min")):
                suggestion = "write lp.smaller(a, b)"
            case ast.Call(func=ast.Name(id=("any" | "all") as name)):
                suggestion = f"write {OVER_ARRAYS[name]}"
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                suggestion = MEMBERSHIP
            case _:
                suggestion = (
                    "use lp.select(condition, then, otherwise); a & b, a | b and ~a for `and`, "
                    "`or` and `not`; lp.larger and lp.smaller for `max` and `min`"
                )
        raise refusal(what, why, suggestion)

    def number(self) -> Any:
        """Refuse `float(x)` and other conversions to a number: an expression has no value yet."""
        name = called_there()
        known = SCALAR_WORDS.get(name)
        two = name in OPERATORS and OPERATORS[name].arity == 2
        arguments = "y, x" if name == "atan2" else "x, y" if two else "x"
        what = "an expression is not a Python number"
        why = f"{f'`{name}`' if name else 'this operation'} needs a value before the program runs"
        if known is not None:
            raise refusal(what, why, f"write lp.{known}({arguments})", *needs_scalar(self))
        if name == "float":
            raise refusal(what, why, "lp.convert(x, lp.f32) converts")
        if name == "int":
            raise refusal(what, why, "lp.convert(x, lp.i32) converts")
        if name == "range":
            suggestion = "lp.iota(n) is the array of indices, lp.generate(n, f) the array of f(i)"
            raise refusal(what, why, suggestion, "a length is a number or a size: lp.size('n')")
        words = ", ".join(f"lp.{w}" for w in sorted({*SCALAR_WORDS.values()}))
        suggestion = "an index must be a number; to reorder elements, use xs >> lp.gather(n, f)"
        raise refusal(what, why, f"available functions: {words}", suggestion)

    def __float__(self) -> float:
        return self.number()

    def __int__(self) -> int:
        return self.number()

    def __index__(self) -> int:
        return self.number()

    def __complex__(self) -> complex:
        return self.number()

    def __round__(self, digits: Any = None) -> Expr:
        if digits is not None:
            raise refusal(
                f"`round(x, {digits!r})` is not supported on expressions",
                "an expression is rounded to a whole number",
                "write round(x), or lp.round(x * s) / s with a number s such as 100.0",
            )
        return self.scalar("round", self)

    def __trunc__(self) -> Any:
        return self.number()

    def __divmod__(self, other: Any) -> Any:
        raise refusal(
            "`divmod` is not supported on expressions",
            "it returns two values",
            "write x / y and x % y",
        )

    def __matmul__(self, other: Any) -> Any:
        raise refusal(
            "`@` is not supported on expressions",
            "matrix products are written with `map` and `reduce`",
            f"write {PRODUCT}",
        )

    __rmatmul__ = __matmul__

    def __rrshift__(self, other: Any) -> Expr:
        """`3 >> x`; `lp.exp >> xs`, which has its operands in the wrong order, is refused."""
        if on_integers(other, self):
            return self.scalar("shiftRight", other, self)
        name = getattr(other, "__name__", "f")
        own = f"lp.{name}" if getattr(other, "is_word", False) else name
        what = f"`>>` applies the function on its right, got {shown(other)} on its left"
        raise refusal(what, "xs >> f is f(xs)", f"write xs >> {own}")

    def __len__(self) -> int:
        t = self.type
        if isinstance(t, TupleType):
            return len(t.elements)
        length = t.length.constant if isinstance(t, ArrayType) else None
        if length is None:
            what = f"{t} has no length that is a Python number"
            why = ["only arrays and tuples have a length"]
            if isinstance(t, ArrayType):
                use = "use the size given to lp.array: words such as lp.split take it"
                why = ["its length is an open size", use]
            raise refusal(what, *why)
        return length

    def __iter__(self) -> Iterator[Expr]:
        """The components of a tuple, for `x, y = pair`."""
        t = self.type
        if isinstance(t, TupleType):
            return iter([self[k] for k in range(len(t.elements))])
        name = called_there()
        known = OVER_ARRAYS.get(name)
        what = f"only a tuple can be unpacked or iterated over, this is {t}"
        if known is not None:
            why = f"Python's `{name}` needs the elements before the program runs"
            raise refusal(what, why, f"write {known}")
        why = "its elements are known only when the program runs"
        suggestion = (
            "use xs >> lp.map(f), xs >> lp.reduce(f, init), lp.zip(xs, ys), or xs[0] for one"
        )
        raise refusal(what, why, suggestion)

    def looked_up(self) -> None:
        """Refuse `x in {1, 2}`, which would be False."""
        if looked_up_by_user():
            why = "a set or a dictionary needs its value before the program runs"
            raise refusal("`in` is not supported on expressions", why, MEMBERSHIP)

    def __reversed__(self) -> Any:
        why = "an expression is not a Python sequence"
        suggestion = f"write {OVER_ARRAYS['reversed']}"
        raise refusal("`reversed` is not supported on expressions", why, suggestion)

    def __contains__(self, value: Any) -> bool:
        suggestion = (
            "write xs >> lp.map(lambda x: x == value) >> lp.reduce(lambda a, b: a | b, False)"
        )
        raise refusal(
            "`in` is not supported on expressions",
            "Python needs the answer before the program runs",
            suggestion,
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        suggestion = "lp.concat(xs[:k], ys) joins parts"
        raise refusal("an element cannot be assigned", "expressions are immutable", suggestion)

    def __delitem__(self, index: Any) -> None:
        suggestion = "xs[1:] and xs[:-1] leave out an end, lp.concat joins parts"
        raise refusal("an element cannot be deleted", "expressions are immutable", suggestion)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        known = OVER_ARRAYS.get(name)
        why = "operations on expressions are words: xs >> lp.map(f)"
        suggestion = (
            f"write {known}" if known else "dir(lp) lists the words, help(lp.map) explains one"
        )
        what = f"an expression has no `.{name}`"
        raise refusal(what, why, suggestion, kind=NoSuchAttribute)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise refusal(
            "an expression cannot be called",
            f"it is of type {self.type}",
            "write xs[0] for an element, pair[0] for a component, xs >> f to apply a function",
        )

    def __str__(self) -> str:
        return f"<expression of type {self.type}>"

    def __format__(self, spec: str) -> str:
        if spec:
            what = f"an expression cannot be formatted as `{spec}`"
            why = "its value is known only when the program runs"
            raise refusal(what, why, "leave out the format, or evaluate the program")
        return str(self)

    # functions of NumPy

    def __array__(self, *args: Any, **named: Any) -> Any:
        name = called_there()
        suggestion = "make arrays parameters of the program, and pass them: program(array)"
        own = name.replace("float", "f").replace("int", "i")
        if own in SCALARS and own != name:  # np.float32(x)
            suggestion = f"lp.convert(x, lp.{own}) converts"
        why = "its values are known only when the program runs"
        raise refusal("an expression is not a NumPy array", why, suggestion)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce" and name in {"add", "multiply", "maximum", "minimum"}:
            name = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}[name]
            return self.__array_function__(name, (), (), {})
        if any(type(x).__module__ == "numpy" and getattr(x, "ndim", 0) for x in inputs):
            return self.__array__()
        if method == "__call__" and not named and name in UFUNCS:
            return self.scalar(UFUNCS[name], *inputs)
        if method == "__call__" and not named and name in WRITTEN:
            return WRITTEN[name](*(plain(x) for x in inputs))
        if name == "matmul":
            return self @ self
        words = ", ".join(sorted({*UFUNCS, *WRITTEN}))
        what = (
            f"NumPy's `{name}`{'' if method == '__call__' else f'.{method}'} is not in the language"
        )
        why = "it is called with options" if named else f"it is applied to {self.type}"
        raise refusal(what, why, f"supported NumPy functions: {words}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func if isinstance(func, str) else func.__name__
        if name == "where" and len(args) == 3 and not kwargs:
            return self.scalar("select", *args)
        if name == "clip" and len(args) == 3 and not kwargs:
            return self.scalar("min", self.scalar("max", *args[:2]), args[2])
        known = OVER_ARRAYS.get(name, OF_SCALARS.get(name))
        suggestion = (
            f"write {known}" if known else "dir(lp) lists the words, help(lp.map) explains one"
        )
        what = f"NumPy's `{name}` is not supported on expressions"
        raise refusal(what, "an expression is not a NumPy array", suggestion)


def repeated(x: Any, times: int) -> Any:
    """`x` to a whole power, by squaring."""
    if times == 1:
        return x
    half = repeated(x, times // 2)
    return half * half * x if times % 2 else half * half


def meant(given: object) -> str:
    """The suggestion for a value on the right of `>>` that is not a function."""
    if isinstance(given, ScalarType):
        return f"write xs >> lp.map(lambda x: lp.convert(x, lp.{given.name}))"
    if type(given).__name__ == "Reorder":  # of lp.stride
        return "write xs >> lp.reorder(lp.stride(step, length))"
    written = OVER_ARRAYS.get(type(given).__name__)  # an object of Python's own `map` or `filter`
    return f"write {written}" if written else "write xs >> lp.map(f), xs >> lp.join()"


def called(self: UserFun, *args: Expr | float) -> Expr:
    """A call of a user function; numbers take the types of the parameters."""
    return at_place(call_of, self, *args)


for name, method in vars(Operators).items():
    if callable(method):
        setattr(Expr, name, method)
UserFun.__call__ = called

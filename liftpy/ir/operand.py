"""Python's operators, its built-in functions and NumPy's functions on expressions.

Operations of the language become expressions. All others are refused where they are written, with a
suggestion of what to write instead.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sized
from typing import TYPE_CHECKING, Any, cast

from liftpy.errors import NoSuchAttribute, TypeRefused, plural
from liftpy.ir.given import is_number, plain
from liftpy.ir.indexing import part
from liftpy.ir.python_words import (
    MEMBERSHIP,
    OF_SCALARS,
    OVER_ARRAYS,
    PRODUCT,
    SCALAR_WORDS,
    UFUNCS,
    WRITTEN,
)
from liftpy.ir.types import BOOL, FLOATS, SCALARS, ArrayType, TupleType, Type
from liftpy.source.caller import called_there, here, locate, looked_up_by_user, refusal

if TYPE_CHECKING:
    from liftpy.ir.expr import Expr

LONGEST_SHOWN = 60  # characters of a value in a message
LARGEST_POWER = 64  # whole exponents up to this one are expanded into products


def needs_scalar(x: Operand) -> tuple[str, ...]:
    """The advice for a scalar function that is applied to an array."""
    if isinstance(x.type, ArrayType):
        return (f"it is of type {x.type}: `xs >> lp.map(f)` applies a function to each element",)
    return ()


def advised(message: str, args: tuple[Any, ...]) -> str:
    """A refusal of one line, with a suggestion in Python's syntax if there is one."""
    what, _, why = message.partition(": ")
    own = why.startswith("`f32(x)`")  # as the text form writes a conversion
    arrays = [a for a in args if isinstance(a, Operand) and isinstance(a.type, ArrayType)]
    if len(arrays) > 1:
        suggestion = "`lp.zip(xs, ys) >> lp.map(f)` applies a function of scalars to their elements"
    elif arrays:
        suggestion = "`xs >> lp.map(f)` applies a function of scalars to each element"
    elif own or "of the same type" in what or "not a whole" in why:
        suggestion = "lp.convert(x, lp.f32) converts"
    else:
        return message
    return "\n".join([what, *([f"  {why}"] if why and not own else []), f"  {suggestion}"])


def at_place(make: Callable[..., Any], *args: Any) -> Any:
    """The result of `make`; a refusal gets its place in the user's code and a suggestion."""
    try:
        return make(*args)
    except TypeRefused as error:
        if "\n" not in str(error):
            error.args = (advised(str(error), args),)
        locate(error, here())
        raise


def truths(*values: Any) -> tuple[Any, ...]:
    """The operands of `^`, which must be truth values; TypeRefused for numbers."""
    for value in values:
        if isinstance(value, bool) or (isinstance(value, Operand) and value.type == BOOL):
            continue
        given = value.type if isinstance(value, Operand) else shown(value)
        why = "`a ^ b` tests whether two truth values differ"
        raise refusal(f"`^` needs truth values, got {given}", why, "a power is x**2")
    return values


class Operand:
    """The operators of an expression. `operate` makes the call of a scalar operator."""

    type: Type
    #: Makes NumPy defer to the methods of an expression.
    __array_priority__ = 1000

    @staticmethod
    def operate(op: str, *args: Any) -> Expr:
        """A scalar operator applied to expressions and numbers."""
        raise NotImplementedError

    def literal(self, value: float) -> Expr:
        """A number of this expression's type."""
        raise NotImplementedError

    def scalar(self, op: str, *args: Any) -> Any:
        """`operate`; a refusal is placed where the operator is written."""
        return at_place(self.operate, op, *args)

    # operators of the language

    def __add__(self, other: Any) -> Expr:
        return self.scalar("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return self.scalar("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return self.scalar("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return self.scalar("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return self.scalar("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return self.scalar("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return self.scalar("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self.scalar("/", other, self)

    def __mod__(self, other: Any) -> Expr:
        return self.scalar("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return self.scalar("%", other, self)

    def __and__(self, other: Any) -> Expr:
        return self.scalar("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return self.scalar("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return self.scalar("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return self.scalar("or", other, self)

    def __xor__(self, other: Any) -> Expr:
        return self.scalar("!=", *truths(self, other))

    def __rxor__(self, other: Any) -> Expr:
        return self.scalar("!=", *truths(other, self))

    def __invert__(self) -> Expr:
        return self.scalar("not", self)

    def __neg__(self) -> Expr:
        return self.scalar("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Expr:
        return self.scalar("abs", self)

    def __floor__(self) -> Expr:
        return self.scalar("floor", self)

    def __ceil__(self) -> Expr:
        return self.scalar("ceil", self)

    def __lt__(self, other: Any) -> Expr:
        return self.scalar("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return self.scalar("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return self.scalar("<", other, self)

    def __ge__(self, other: Any) -> Expr:
        return self.scalar("<=", other, self)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        """A power: a product for whole exponents, the square root for 0.5, else `pow` on floats."""
        if modulus is not None:
            raise refusal(
                "`pow` takes no modulus", "the language has no modular power", "write x**2 % y"
            )
        if isinstance(exponent, Operand) or not is_number(exponent):
            return self.scalar("pow", self, exponent)
        exponent = plain(exponent)
        if exponent == 1 / 2:
            return self.scalar("sqrt", self)
        whole = isinstance(exponent, int) or exponent.is_integer()
        if not whole or abs(exponent) > LARGEST_POWER:
            return self.scalar("pow", self, exponent)
        if exponent == 0:
            return self.literal(1)
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
        arguments = "x, y" if name == "pow" else "x"
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
        if name == "round":
            raise refusal(what, why, "write lp.floor(x + 0.5)")
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

    def __round__(self, digits: int = 0) -> Any:
        return self.number()

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

    def __lshift__(self, other: Any) -> Any:
        what = "`<<` is not supported on expressions"
        raise refusal(what, "the language has no bit operators", "write xs >> f, or x * 2")

    def __rrshift__(self, other: Any) -> Any:
        """Refuse `lp.exp >> xs`, which has its operands in the wrong order."""
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

    def __getitem__(self, index: Any) -> Expr:
        """A component of a tuple; an element or a part of an array, as in NumPy."""
        return at_place(part, sys.modules["liftpy"], self, index)

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


def shown(value: object) -> str:
    """A Python value as text for a message: short, and the same in every run."""
    if isinstance(value, Operand):
        return f"an expression of type {value.type}"
    if isinstance(value, Type):
        return f"the type {value}"
    if isinstance(value, tuple | list | dict) and any(isinstance(v, Operand | Type) for v in value):
        kind = type(value).__name__
        return f"a {kind} of {plural(len(cast('Sized', value)), 'element')}"
    if callable(value) and hasattr(value, "__name__"):
        kind = "type" if isinstance(value, type) else "function"
        return f"the {kind} {value.__name__}"
    text = repr(value)
    long = len(text) > LONGEST_SHOWN or "\n" in text or " at 0x" in text
    return f"a value of type {type(value).__name__}" if long else text

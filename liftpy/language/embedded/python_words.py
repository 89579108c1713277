"""Names of functions in Python and NumPy, and what the language has for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from liftpy.ir.operators import OPERATORS

#: The functions of floats that are words of the language; `pow` is `x ** y`, or `lp.power`.
OF_FLOATS = {
    name: op for name, op in OPERATORS.items() if op.operands == "floats" and name != "pow"
}
#: NumPy functions that the language has, each with its operator.
UFUNCS: Mapping[str, str] = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "true_divide": "/",
    "fmod": "%",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    **{op.numpy: name for name, op in OF_FLOATS.items() if op.numpy},
    "minimum": "min",
    "maximum": "max",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
}
#: Other NumPy functions on numbers, each with its expansion into Python operators.
WRITTEN: Mapping[str, Callable[..., Any]] = {
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "power": lambda a, b: a**b,
    "float_power": lambda a, b: a**b,
    "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a,
    "floor_divide": lambda a, b: a // b,
    "positive": lambda a: a,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "invert": lambda a: ~a,
    "left_shift": lambda a, b: a << b,
    "right_shift": lambda a, b: a >> b,
}
#: The words for functions of `math` and Python that convert their argument to a number.
SCALAR_WORDS: Mapping[str, str] = {
    "fabs": "absolute",
    "pow": "power",
    **{name: name for name in OF_FLOATS},
}
#: What to pass to a word instead of a function of Python that needs numbers.
OF_NUMBERS: Mapping[str, str] = {
    "max": "lp.maximum",
    "min": "lp.minimum",
    "float": "lambda x: lp.convert(x, lp.f32)",
    "int": "lambda x: lp.convert(x, lp.i32)",
    "bool": "lambda x: x != 0",
}
#: What to write for Python and NumPy functions on whole arrays.
OVER_ARRAYS: Mapping[str, str] = {
    "map": "xs >> lp.map(f)",
    "zip": "lp.zip(xs, ys)",
    "sum": "xs >> lp.reduce(lp.add, 0)",
    "prod": "xs >> lp.reduce(lp.mul, 1)",
    "max": "xs >> lp.reduce(lp.maximum, -float('inf'))",
    "min": "xs >> lp.reduce(lp.minimum, float('inf'))",
    "amax": "xs >> lp.reduce(lp.maximum, -float('inf'))",
    "amin": "xs >> lp.reduce(lp.minimum, float('inf'))",
    "mean": "(xs >> lp.reduce(lp.add, 0)) / n",
    "cumsum": "xs >> lp.scan(lp.add, 0)",
    "dot": "lp.zip(xs, ys) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)",
    "vdot": "lp.zip(xs, ys) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)",
    "inner": "lp.zip(xs, ys) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)",
    "enumerate": "lp.zip(lp.iota(n), xs)",
    "transpose": "xs >> lp.transpose()",
    "T": "xs >> lp.transpose()",
    "concatenate": "lp.concat(xs, ys)",
    "stack": "lp.concat(xs, ys) >> lp.split(n)",
    "pad": "xs >> lp.pad(left, right, value)",
    "reshape": "xs >> lp.split(m) or xs >> lp.join()",
    "ravel": "xs >> lp.join()",
    "flatten": "xs >> lp.join()",
    "reversed": "xs >> lp.gather(n, lambda i: n - 1 - i)",
    "filter": "xs >> lp.map(lambda x: lp.select(condition, x, 0)): lengths are fixed",
    "sorted": "the sort outside of the program, and pass the sorted array",
    "any": "xs >> lp.map(f) >> lp.reduce(lambda a, b: a | b, False)",
    "all": "xs >> lp.map(f) >> lp.reduce(lambda a, b: a & b, True)",
    "argmax": "a fold over lp.zip(lp.iota(n), xs) that keeps the better pair",
    "argmin": "a fold over lp.zip(lp.iota(n), xs) that keeps the better pair",
    "astype": "xs >> lp.map(lambda x: lp.convert(x, lp.f32))",
    "shape": "the lengths given to lp.array",
    "size": "the lengths given to lp.array",
    "dtype": "the type given to lp.array",
    "abs": "xs >> lp.map(lp.absolute)",
    "slice": "xs[1:3], or xs >> lp.slice(start, length)",
}
#: What to write for operators that have no word, by NumPy's names and those of the text form.
OPERATORS_ONLY: Mapping[str, str] = {
    **dict.fromkeys(("bitwise_and", "bit_and", "logical_and"), "x & y"),
    **dict.fromkeys(("bitwise_or", "bit_or", "logical_or"), "x | y"),
    **dict.fromkeys(("bitwise_xor", "bit_xor", "logical_xor", "xor"), "x ^ y"),
    **dict.fromkeys(("bitwise_not", "bit_not", "logical_not", "invert"), "~x"),
    **dict.fromkeys(("left_shift", "shift_left"), "x << n"),
    **dict.fromkeys(("right_shift", "shift_right"), "x >> n"),
}
#: What to write for NumPy functions on numbers that are not ufuncs.
OF_SCALARS: Mapping[str, str] = {
    "round": "np.rint(x)",
    "around": "np.rint(x)",
    "where": "np.where(condition, x, y)",
    "clip": "np.clip(x, low, high)",
}
MEMBERSHIP = "write (x == 1) | (x == 2) for x in {1, 2}"
PRODUCT = (
    "rows >> lp.map(lambda row: columns >> lp.map(lambda column: "
    "lp.zip(row, column) >> lp.map(lp.mul) >> lp.reduce(lp.add, 0)))"
)

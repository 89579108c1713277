"""Which functions are 0 if their first argument is, for finite numbers.

They must be made of operators whose results are finite for finite operands, apart from overflow:
`x / y` is not, since 0 / 0 is NaN, and 0 times infinity is NaN. A value is *zero* if all its
numbers are 0. That of a tuple, or of arrays of tuples, is known for each component.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.operators import OPERATORS
from liftpy.ir.primitive import Get, Layout, ScalarOp
from liftpy.ir.walk import top_down
from liftpy.primitives import Map, Reduce, Unzip, Zip

Zero: TypeAlias = "bool | tuple[Zero, ...]"


def is_zero_of_zero(f: Lambda) -> bool:
    """Whether a function is 0 if its first argument is."""
    return is_finite(f.body) and all_zero(zero(f.body, {f.params[0]: True}))


def is_finite(expr: Expr) -> bool:
    """Whether an expression is finite for finite numbers, apart from overflow."""
    for _, part in top_down(expr):
        match part:
            case FunCall(ScalarOp("/"), (_, divisor)):
                if not isinstance(divisor, Literal) or divisor.value == 0:
                    return False
            case FunCall(ScalarOp(op)) if not OPERATORS[op].finite:
                return False
            case FunCall(UserFun() as f) if not is_finite(f.body):
                return False
            case Literal(value) if not math.isfinite(value):
                return False
            case _:
                pass
    return True


def all_zero(known: Zero) -> bool:
    """Whether all components are zero."""
    return all(map(all_zero, known)) if isinstance(known, tuple) else known


def zero(expr: Expr, env: Mapping[Param, Zero]) -> Zero:
    """Whether an expression is zero, given which variables are; False if it is not known."""
    match expr:
        case Param():
            return env.get(expr, False)
        case Literal(value):
            return value == 0
        case Tuple(elements):
            return tuple(zero(e, env) for e in elements)
        case FunCall(_, args):
            return zero_call(expr, tuple(zero(a, env) for a in args), env)
        case _:
            return False


def zero_call(call: FunCall, args: tuple[Zero, ...], env: Mapping[Param, Zero]) -> Zero:
    """`zero` for a call, given which arguments are."""
    match call.fun:
        case Lambda() | UserFun() as f:
            return zero(f.body, {**env, **dict(zip(f.params, args, strict=True))})
        case ScalarOp(op):
            return zero_operator(op, args)
        case Get(index):
            return args[0][index] if isinstance(args[0], tuple) else args[0]
        case Zip():
            return args
        case Unzip():
            return args[0]
        case Layout() as layout:
            return all(map(all_zero, args)) and not any(layout.constants().values())
        case Map(f=f):
            return zero(f.body, {**env, f.params[0]: args[0]})
        case Reduce(f=f):
            init, xs = args
            step = dict(zip(f.params, (init, xs), strict=True))
            return all_zero(init) and all_zero(zero(f.body, {**env, **step}))
        case _:
            return False


def zero_operator(op: str, args: tuple[Zero, ...]) -> bool:
    """`zero` for a scalar operator."""
    known = tuple(map(all_zero, args))
    match OPERATORS[op].zero:
        case "any":
            return any(known)
        case "all":
            return all(known)
        case "first":
            return known[0]
        case "branches":
            return known[1] and known[2]
        case "":
            return False

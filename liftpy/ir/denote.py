"""The meaning of an expression: each primitive's meaning, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from liftpy.errors import InternalError
from liftpy.ir.expr import Expr, FunCall, FunVar, Lambda, Literal, Param, Primitive, Tuple, UserFun
from liftpy.ir.pull import Reader, Value

Environment = Mapping[Param, Value]


def denote(expr: Expr, env: Environment, read: Reader) -> Value:
    """What an expression means where its free variables mean `env`."""
    match expr:
        case Param():
            return env[expr]
        case Literal(value, t):
            return read.literal(value, t)
        case Tuple(elements):
            return tuple(denote(e, env, read) for e in elements)
        case FunCall(fun, args):
            values = [denote(a, env, read) for a in args]
            match fun:
                case Lambda() | UserFun():
                    body = fun.body
                    return denote(body, {**env, **dict(zip(fun.params, values, strict=True))}, read)
                case Primitive():
                    if fun.function is not None:
                        return fun.meaning(read, closure(fun.function, env, read), *values)
                    return fun.meaning(read, *values)
                case FunVar():
                    return read.unknown(fun, tuple(values))
                case _:
                    message = f"no meaning for a call of {fun}"
                    raise InternalError(message)
        case _:
            message = f"no meaning for {type(expr).__name__}"
            raise InternalError(message)


def closure(function: Lambda, env: Environment, read: Reader) -> Callable[..., Value]:
    """A function of values."""
    return lambda *values: denote(
        function.body, {**env, **dict(zip(function.params, values, strict=True))}, read
    )

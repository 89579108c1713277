"""The meaning of an expression, composed of the meanings of its primitives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, UserFun
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Reader, Value

Environment = Mapping[Param, Value]


def denote(expr: Expr, env: Environment, read: Reader) -> Value:
    """The meaning of an expression whose free variables have the values in `env`."""
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
                    bound = [read.bound(v, a, env) for v, a in zip(values, args, strict=True)]
                    inside = {**env, **dict(zip(fun.params, bound, strict=True))}
                    return denote(fun.body, inside, read)
                case Primitive():
                    run = () if fun.function is None else (Closure(fun.function, env, read),)
                    return read.made(fun, values, fun.meaning(read, *run, *values))
                case FunVar():
                    return read.unknown(fun, tuple(values))
                case _:
                    message = f"no meaning for a call of {fun}"
                    raise InternalError(message)
        case _:
            message = f"no meaning for {type(expr).__name__}"
            raise InternalError(message)


@dataclass(frozen=True, slots=True)
class Closure:
    """The meaning of `function`, whose free variables have the values in `env`."""

    function: Lambda
    env: Environment
    read: Reader

    def __call__(self, *values: Value) -> Value:
        handed = self.read.handed(self.function, values)
        inside = {**self.env, **dict(zip(self.function.params, handed, strict=True))}
        return denote(self.function.body, inside, self.read)

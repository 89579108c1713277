"""The reference evaluator: programs on nested Python lists, by each primitive's `reference`.

It is slow and simple. It shares no index law with the meanings, so that a wrong meaning shows: the
tests compare the two on distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from liftpy.errors import ArgumentRefused, InternalError, plural
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, UserFun
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program

#: The functions that unknown functions stand for, by name.
Functions = Mapping[str, Callable[..., Any]]


def reference(program: Program | Lambda, *arguments: Any) -> Any:
    """The result of a program as nested lists and tuples; arguments may be NumPy arrays."""
    function = program.body if isinstance(program, Program) else program
    if len(function.params) != len(arguments):
        raise ArgumentRefused(
            f"{plural(len(function.params), 'argument')} needed, got {len(arguments)}"
        )
    values = (plain(a) for a in arguments)
    return interpret(function.body, dict(zip(function.params, values, strict=True)), {})


def plain(value: Any) -> Any:
    """A value with its NumPy arrays as nested lists."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def interpret(expr: Expr, env: Mapping[Param, Any], functions: Functions) -> Any:
    """The value of an expression whose free variables have the values in `env`."""
    match expr:
        case Param():
            return env[expr]
        case Literal(value, _):
            return value
        case Tuple(elements):
            return tuple(interpret(e, env, functions) for e in elements)
        case FunCall(fun, args):
            values = [interpret(a, env, functions) for a in args]
            match fun:
                case Lambda() | UserFun():
                    return call_function(fun.params, fun.body, values, env, functions)
                case Primitive() if fun.function is not None:
                    params, body = fun.function.params, fun.function.body
                    return fun.reference(
                        lambda *xs: call_function(params, body, list(xs), env, functions), *values
                    )
                case Primitive():
                    return fun.reference(*values)
                case FunVar(name):
                    return functions[name](*values)
                case _:
                    raise InternalError(f"no reference for a call of {fun}")
        case _:
            raise InternalError(f"no reference for {type(expr).__name__}")


def call_function(
    params: tuple[Param, ...],
    body: Expr,
    values: list[Any],
    env: Mapping[Param, Any],
    functions: Functions,
) -> Any:
    """The value of a function's body for given arguments."""
    return interpret(body, {**env, **dict(zip(params, values, strict=True))}, functions)

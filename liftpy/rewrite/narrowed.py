"""A program with some of its values stored in other types, as the user permits.

This changes the meaning, within a bound for storage types, and is not a rule: a number that is
stored and read again is rounded. The resulting program contains the conversions, so its own meaning
has the rounding, and rules derive everything else from it. Code that moves a stored value keeps the
type of its elements; code that computes with it converts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall, call, fresh
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.formats import Format, Quantised
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Get, Primitive, ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.types import STORAGE, ArrayType, ScalarType, TupleType, Type, scalars
from liftpy.ir.walk import bound_names
from liftpy.primitives import AnyMap, Map
from liftpy.rewrite.quantised import Lets, quantised

Env = Mapping[Param, Expr]


def narrowed(
    program: Program, stored: Mapping[str, Format]
) -> tuple[Program, dict[str, tuple[str, ...]]]:
    """The program that stores values in these formats, and the variables of the arrays it stores.

    A parameter keeps its type: an array with its numbers in the other type, or as integers with
    their scales, is bound by a `let` around the program.
    """
    body = program.body.body
    taken = {p.name for p in program.params} | bound_names(body)
    env: dict[Param, Expr] = {}
    copies: list[tuple[Param, Expr]] = []
    variables: dict[str, tuple[str, ...]] = {name: (name,) for name in stored}

    def unused(name: str) -> str:
        found = fresh(name, taken)
        taken.add(found)
        return found

    for param in program.params:
        if param.name in stored:
            own, env[param] = copied(param, stored[param.name], unused)
            copies += own
            variables[param.name] = tuple(copy.name for copy, _ in own)
    of_params = {p.name for p in program.params}
    named = {n: t for n, t in stored.items() if n not in of_params and isinstance(t, ScalarType)}
    result = as_type(reading(body, env, named), body.type)
    for copy, value in reversed(copies):
        result = call(Lambda((copy,), result), value)
    return replace(program, body=Lambda(program.params, result), storage=()), variables


def copied(param: Param, form: Format, name: Callable[[str], str]) -> tuple[Lets, Expr]:
    """The arrays that store a parameter, and what replaces it; `name` makes an unused name."""
    if isinstance(form, Quantised):
        return quantised(param, form, name)
    value = converted(param, form)
    copy = Param(name(f"{param.name}_{form}"), value.type)
    return [(copy, value)], copy


def reading(expr: Expr, env: Env, named: Mapping[str, ScalarType]) -> Expr:
    """An expression that reads stored values; if it only moves them, its elements are stored ones.

    `env` has the stored variables; `named` has the storage of values that a `let` will name.
    """
    if isinstance(expr, Param):
        return env.get(expr, expr)
    if isinstance(expr, Tuple):
        return Tuple(tuple(reading(e, env, named) for e in expr.elements))
    if not isinstance(expr, FunCall) or (not named and expr.free.isdisjoint(env)):
        return expr
    fun = expr.fun
    args = tuple(reading(a, env, named) for a in expr.args)
    if isinstance(fun, Lambda):
        values = tuple(
            converted(as_type(a, p.type), named[p.name]) if p.name in named else a
            for a, p in zip(args, fun.params, strict=True)
        )
        return call(function(fun, tuple(v.type for v in values), env, named), *values)
    moves = isinstance(fun, AnyMap) or (isinstance(fun, Primitive) and fun.function is None)
    if isinstance(fun, Primitive) and moves and not isinstance(fun, ScalarOp):
        try:
            return through(fun, args, env)
        except TypeRefused:  # it takes no elements of these types: a border of any number, a concat
            pass
    wanted = fun.params if isinstance(fun, UserFun) else expr.args
    plain = tuple(as_type(a, w.type) for a, w in zip(args, wanted, strict=True))
    if isinstance(fun, Primitive):
        return through(fun, plain, env)
    return call(fun, *plain)


def through(fun: Primitive, args: tuple[Expr, ...], env: Env) -> Expr:
    """A call of a primitive on arguments that may be stored; TypeRefused if it accepts none."""
    own = fun.function
    if own is None:
        return call(fun, *args)
    types = fun.parameter_types(*(a.type for a in args))
    made = function(own, types, env, {})
    if not isinstance(fun, AnyMap):
        made = Lambda(made.params, as_type(made.body, own.body.type))
    return call(replace(fun, f=made), *args)


def function(
    f: Lambda, types: tuple[Type, ...], env: Env, named: Mapping[str, ScalarType]
) -> Lambda:
    """A function with parameters of other types, which reads stored values."""
    outer = {p: e for p, e in env.items() if p in f.body.free and p not in f.params}
    read = {name for e in outer.values() for name in (p.name for p in e.free)}
    params = tuple(
        Param(fresh(p.name, read) if p.name in read else p.name, t)
        for p, t in zip(f.params, types, strict=True)
    )
    own = {p: q for p, q in zip(f.params, params, strict=True) if p != q}
    return Lambda(params, reading(f.body, {**outer, **own}, named))


# --- conversions --------------------------------------------------------------------------------


def as_type(expr: Expr, wanted: Type) -> Expr:
    """An expression with its stored numbers converted to the type that they are computed in."""
    t = expr.type
    if t == wanted or not has_stored(t):
        return expr
    if isinstance(t, ArrayType) and isinstance(wanted, ArrayType):
        element = Param("v", t.element)
        return FunCall(Map(Lambda((element,), as_type(element, wanted.element))), (expr,))
    if isinstance(t, TupleType) and isinstance(wanted, TupleType):
        pairs = enumerate(wanted.elements)
        return Tuple(tuple(as_type(FunCall(Get(k), (expr,)), w) for k, w in pairs))
    return FunCall(ScalarOp(str(wanted)), (expr,))


def has_stored(t: Type) -> bool:
    """Whether a type has numbers of a storage type."""
    return not STORAGE.keys().isdisjoint(scalars(t))


def converted(expr: Expr, scalar: ScalarType) -> Expr:
    """An array with its numbers converted to a scalar type, as they are computed by a map."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Map):
        f = expr.fun.f
        return call(Map(Lambda(f.params, converted(f.body, scalar))), *expr.args)
    if isinstance(expr.type, ArrayType):
        element = Param("v", expr.type.element)
        return FunCall(Map(Lambda((element,), converted(element, scalar))), (expr,))
    return FunCall(ScalarOp(str(scalar)), (expr,))

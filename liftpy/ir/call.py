"""Calls of functions, and the substitution of variables in expressions.

A call fits its function to the sizes of the arguments, which substitutes the parameters of the
function; substitution builds calls.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from liftpy.ir.equality import NESTED, compared
from liftpy.ir.expr import Expr, Param, Tuple, union
from liftpy.ir.function import Function, Lambda, check_arguments
from liftpy.ir.interning import keep, known
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.provided import TRACE
from liftpy.ir.types import Type


@compared
@dataclass(frozen=True)
class FunCall(Expr):
    """A function applied to arguments.

    `parts` are the arguments, and the body of the function that runs, if it has one.
    """

    fun: Function
    args: tuple[Expr, ...]
    type: Type = field(init=False, compare=False, repr=False)
    free: frozenset[Param] = field(init=False, compare=False, repr=False)
    parts: tuple[Expr, ...] = field(init=False, compare=False, repr=False)
    hashed: int = field(init=False, compare=False, repr=False)

    @classmethod
    def identity(cls, fun: Function, args: tuple[Expr, ...]) -> Hashable:
        function = function_of(fun)
        own = () if function is None else (id(function.body), *map(id, function.params))
        return cls, fun.__class__, fun, *map(id, args), *own

    def __post_init__(self) -> None:
        self._complete(self.fun.result(*(a.type for a in self.args)))

    def _complete(self, t: Type) -> None:
        """Set the fields that follow from the function and its arguments, and the type `t`."""
        fun, args = self.fun, self.args
        function = function_of(fun)
        free, own = union(args), fun.free
        # A lowered primitive has the fields of the one that it lowers, and should hash differently.
        vars(self).update(
            type=t,
            parts=args if function is None else (*args, function.body),
            free=free | own if own else free,
            hashed=hash((fun.__class__, fun, args)),
        )
        if (trace := TRACE.get()) is not None:
            trace.record(self)

    def with_parts(self, fun: Function, args: tuple[Expr, ...]) -> FunCall:
        """The call with other arguments and another body of its function, which takes their sizes.

        `fun` differs from the function of this call in nothing else. The type is computed again
        only if those of the parts differ.
        """
        kept = self.keeping_type(fun, args)
        return call(fun, *args) if kept is None else kept

    def keeping_type(self, fun: Function, args: tuple[Expr, ...]) -> FunCall | None:
        """As `with_parts`; None if the types of the parts differ."""
        if not (all(map(same_type, args, self.args)) and same_signature(fun, self.fun)):
            return None
        key = FunCall.identity(fun, args)
        if (found := known(key)) is not None:
            return found
        new = object.__new__(FunCall)
        vars(new).update(fun=fun, args=args)
        new._complete(self.type)
        return keep(key, new)

    def __hash__(self) -> int:
        if TRACE.get() is not None:
            self.looked_up()
        return self.hashed


NESTED[FunCall] = ("fun", "args")


def same_type(a: Expr, b: Expr) -> bool:
    """Whether two expressions have the same type."""
    return a is b or a.type == b.type


def same_signature(a: Function, b: Function) -> bool:
    """Whether the bodies of two callees, which may differ in nothing else, have the same types."""
    if a is b:
        return True
    f, g = function_of(a), function_of(b)
    return (
        f is not None
        and g is not None
        and same_type(f.body, g.body)
        and all(map(same_type, f.params, g.params))
    )


def call(fun: Function, *args: Expr) -> FunCall:
    """A call, in which the function's parameters take the sizes of the arguments."""
    if isinstance(fun, Primitive):
        return FunCall(fitted(fun, *(a.type for a in args)), args)
    if isinstance(fun, Lambda) and any(
        p.type != a.type for p, a in zip(fun.params, args, strict=True)
    ):
        check_arguments("let", tuple(p.type for p in fun.params), tuple(a.type for a in args))
        return FunCall(retype(fun, tuple(a.type for a in args)), args)
    return FunCall(fun, args)


def fitted(primitive: Primitive, *args: Type) -> Primitive:
    """The primitive with the parameters of `f` retyped to the types of their arguments."""
    function = primitive.function
    if function is None or primitive.declares_parameters:
        return primitive
    wanted = primitive.parameter_types(*args)
    if all(p.type == t for p, t in zip(function.params, wanted, strict=True)):
        return primitive
    return replace(primitive, f=retype(function, wanted))


def retype(function: Lambda, types: tuple[Type, ...]) -> Lambda:
    """The function with parameters of these types; the body is type-checked again."""
    new = tuple(Param(p.name, t) for p, t in zip(function.params, types, strict=True))
    by: dict[Param, Expr] = {p: q for p, q in zip(function.params, new, strict=True) if p != q}
    return Lambda(new, substitute(function.body, by))


def fresh(name: str, avoid: frozenset[str] | set[str]) -> str:
    """A name like `name` that is not in `avoid`; deterministic."""
    if name not in avoid:
        return name
    stem = name.rstrip("0123456789") or "x"
    number = 1
    while f"{stem}{number}" in avoid:
        number += 1
    return f"{stem}{number}"


def substitute(expr: Expr, by: dict[Param, Expr], done: dict[int, Expr] | None = None) -> Expr:
    """The expression with free variables replaced; bound variables are renamed to avoid capture.

    Shared parts stay shared: `done` has the results for the parts visited so far.
    """
    if done is None:
        by, done = {p: e for p, e in by.items() if e != p}, {}
    if not by or expr.free.isdisjoint(by):
        return expr
    if (known := done.get(id(expr))) is not None:
        return known
    new = expr
    match expr:
        case Param():
            new = by.get(expr, expr)
        case Tuple(elements):
            new = Tuple(tuple(substitute(e, by, done) for e in elements))
        case FunCall(fun, args):
            values = tuple(substitute(a, by, done) for a in args)
            if isinstance(fun, Lambda):
                fun = substitute_lambda(fun, by, done)
            elif (
                isinstance(fun, Primitive)
                and fun.function is not None
                and not fun.free.isdisjoint(by)
            ):
                fun = replace(fun, f=substitute_lambda(fun.function, by, done))
            new = expr.with_parts(fun, values)
        case _:
            pass
    done[id(expr)] = new
    return new


def substitute_lambda(
    function: Lambda, by: dict[Param, Expr], done: dict[int, Expr] | None = None
) -> Lambda:
    """`substitute` under a binder; `done` belongs to the surrounding expression."""
    within = {p: e for p, e in by.items() if p in function.free}
    if not within:
        return function
    entering = union(tuple(within.values()))
    taken = {p.name for p in entering}
    if any(p.name in taken for p in function.params):
        avoid = taken | {p.name for p in function.body.free}
        params: list[Param] = []
        for p in function.params:
            renamed = Param(fresh(p.name, avoid), p.type) if p.name in taken else p
            avoid.add(renamed.name)
            params.append(renamed)
        renaming: dict[Param, Expr] = {
            p: q for p, q in zip(function.params, params, strict=True) if p != q
        }
        return Lambda(tuple(params), substitute(function.body, {**renaming, **within}))
    if done is None or not by.keys().isdisjoint(function.params):
        return Lambda(function.params, substitute(function.body, within))
    return Lambda(function.params, substitute(function.body, by, done))


def apply(function: Lambda, *args: Expr) -> Expr:
    """The body with the parameters replaced by the arguments."""
    return substitute(function.body, dict(zip(function.params, args, strict=True)))

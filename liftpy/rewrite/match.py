"""Matching a rule's left side.

Patterns are higher-order: `f(x)` matches any expression whose only variable bound by the rule is
`x`; `f(get(0, t))` matches any that mentions `t` only as `t.0`. What the matcher cannot infer is
given as *hints*: `map(f . g)` does not determine where `g` ends, so `hints["g"]` is the path of
`g`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeGuard

from liftpy.errors import plural
from liftpy.ir.call import FunCall, apply, fresh
from liftpy.ir.constraint import Constraint, Divides, at_least, at_most
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, UserFun
from liftpy.ir.nat import Applied, Nat, Var, nat, var
from liftpy.ir.polynomial import Atom
from liftpy.ir.primitive import Primitive, function_of, index_fields, nat_fields
from liftpy.ir.scalars import exact
from liftpy.ir.types import BOOL, ArrayType, ScalarType, TupleType, Type, TypeVar, VectorType
from liftpy.ir.walk import (
    Path,
    at,
    bound_names,
    children,
    constant_fields,
    every_part,
    exists,
    lambda_of,
    with_child,
)
from liftpy.rewrite.exactness import exact_in_f32
from liftpy.rewrite.reals import accumulates, adds, finite_neutral, keeps, rescaling, scaling
from liftpy.rewrite.rule import BOUND, INDEX, Assumption, Rule, ValueVar, sizes_of, with_indices
from liftpy.rewrite.zeros import is_zero_of_zero


class MismatchError(Exception):
    """The pattern does not match; internal to this module and never raised by `match`."""


@dataclass
class Bindings:
    """The values of the metavariables of a rule."""

    exprs: dict[str, Expr] = field(default_factory=dict)
    functions: dict[str, Lambda] = field(default_factory=dict)
    sizes: dict[str, Nat] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    hints: dict[str, Path] = field(default_factory=dict)
    indices: dict[str, Nat] = field(default_factory=dict)
    deferred: list[tuple[Nat, Nat]] = field(default_factory=list)
    conditions: list[Constraint] = field(default_factory=list)


Scope = dict[Param, Param]  # variables bound by the rule -> the target's


def match(rule: Rule, expr: Expr, sizes: dict[str, Nat], hints: dict[str, Path]) -> Bindings | str:
    """The bindings that make the rule's left side equal `expr`, or why there are none."""
    found = Bindings(sizes=dict(sizes.items()), hints=hints)
    try:
        match_expr(rule.left, expr, found, {})
        match_deferred(found)
        require(
            not (mentions_index(rule) and any(INDEX in s.names() for s in found.sizes.values())),
            lambda: (
                f"a size of the program is named {INDEX}, like the index of `reorder`: rename it"
            ),
        )
        for assumption in rule.assuming:
            assume(assumption, found)
    except MismatchError as mismatch:
        return str(mismatch)
    return found


def calls(expr: Expr, primitive: Primitive, args: tuple[Expr, ...]) -> TypeGuard[FunCall]:
    """Whether an expression calls this kind of primitive with the same number of arguments."""
    return (
        isinstance(expr, FunCall)
        and type(expr.fun) is type(primitive)
        and len(expr.args) == len(args)
    )


def missing(primitive: Primitive) -> str:
    """The reason for a mismatch with an expression that does not call the primitive."""
    return f"no {primitive.name} here"


@cache
def mentions_index(rule: Rule) -> bool:
    """Whether the right side has index functions, which would capture a size of that name."""
    return any(
        isinstance(part, FunCall)
        and isinstance(part.fun, Primitive)
        and bool(index_fields(type(part.fun)))
        for part in every_part(rule.right)
    )


def require(condition: bool, why: Callable[[], str]) -> None:  # noqa: FBT001  it is a check
    """Raise MismatchError if the condition is false; the reason is built only then."""
    if not condition:
        raise MismatchError(why())


def match_expr(pattern: Expr, expr: Expr, found: Bindings, scope: Scope) -> None:
    """Bind the metavariables of `pattern` so that it equals `expr`."""
    match pattern:
        case Param():
            match_variable(pattern, expr, found, scope)
        case Literal(value, t):
            if not isinstance(expr, Literal):
                raise MismatchError("no literal here")
            match_type(t, expr.type, found)
            number = expr.value
            known = (
                found.values.setdefault(value.name, number)
                if isinstance(value, ValueVar)
                else value
            )
            require(
                exact(known) == exact(number), lambda: f"expected the value {known}, found {number}"
            )
        case Tuple(elements):
            if not isinstance(expr, Tuple) or len(expr.elements) != len(elements):
                raise MismatchError("no tuple here")
            for p, e in zip(elements, expr.elements, strict=True):
                match_expr(p, e, found, scope)
        case FunCall(FunVar() as f, args):
            match_unknown(f, args, expr, found, scope)
        case FunCall(Lambda() as f, args):
            if not isinstance(expr, FunCall) or not isinstance(expr.fun, Lambda):
                raise MismatchError("no let here")
            require(
                len(args) == len(expr.args),
                lambda: f"the let has {plural(len(expr.args), 'variable')}, not {len(args)}",
            )
            for a, e in zip(args, expr.args, strict=True):
                match_expr(a, e, found, scope)
            match_function(f, expr.fun, found, scope)
        case FunCall(Primitive() as p, args):
            if not calls(expr, p, args):
                raise MismatchError(missing(p))
            match_primitive(p, expr.fun, found)
            for a, e in zip(args, expr.args, strict=True):
                match_expr(a, e, found, scope)
            if p.function is not None:
                match_function(p.function, lambda_of(expr.fun), found, scope)
        case _:
            message = f"a rule cannot have {pattern} on its left"
            raise MismatchError(message)


def match_variable(pattern: Param, expr: Expr, found: Bindings, scope: Scope) -> None:
    """Bind an expression metavariable, or compare a variable that the rule binds."""
    if pattern in scope:
        require(expr == scope[pattern], lambda: f"expected {pattern.name} here")
        return
    require(
        expr.free.isdisjoint(scope.values()),
        lambda: f"{pattern.name} must not depend on an element of the map around it",
    )
    known = found.exprs.setdefault(pattern.name, expr)
    require(known == expr, lambda: f"two different expressions for {pattern.name}")
    match_type(pattern.type, expr.type, found)


def match_primitive(pattern: Primitive, primitive: Any, found: Bindings) -> None:
    """Bind the size and constant parameters of a primitive."""
    for name in nat_fields(type(pattern)):
        match_size(getattr(pattern, name), getattr(primitive, name), found)
    for p, value in zip(constant_fields(pattern), constant_fields(primitive), strict=True):
        if isinstance(p, ValueVar):
            if exact(found.values.setdefault(p.name, value)) != exact(value):
                raise MismatchError(f"two different values for {p.name}")
        elif exact(p) != exact(value):
            raise MismatchError(f"expected {pattern.name} with {p}, found {value}")


def match_size(pattern: Nat, size: Nat, found: Bindings) -> None:
    """Bind a size metavariable; a compound size is checked once everything is bound."""
    match metavariable(pattern):
        case Var(name=name):
            known = found.sizes.setdefault(name, size)
        case Applied(function=name, argument=argument) if argument == var(INDEX):
            known = found.indices.setdefault(name, size)
        case _:
            found.deferred.append((pattern, size))
            return
    require(known == size, lambda: f"{pattern} cannot be both {known} and {size}")


def metavariable(pattern: Nat) -> Atom | None:
    """The metavariable that a size consists of; None for a compound size or an index."""
    if len(pattern.terms) != 1:
        return None
    ((monomial, coefficient),) = pattern.terms.items()
    if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
        return None
    return None if pattern == var(INDEX) else monomial[0][0]


def match_deferred(found: Bindings) -> None:
    """Check the compound sizes once everything else is bound.

    If one factor of a product is unbound, it becomes the exact quotient of the size by the others.
    """
    for pattern, size in found.deferred:
        unbound = pattern.names() - set(found.sizes) - {INDEX}
        if len(unbound) == 1 and len(pattern.terms) == 1:
            (name,) = unbound
            rest = size_of(pattern.exact_div(var(name)), found)
            if name not in rest.names():
                found.sizes[name] = size.exact_div(rest)
                found.conditions.append(Divides(rest, size))
                continue
        if missing := unbound - set(found.sizes):
            raise MismatchError(f"nothing determines {min(missing)}")
        if size_of(pattern, found) != size:
            raise MismatchError(f"{pattern} is not {size}")


def size_of(pattern: Nat, found: Bindings) -> Nat:
    """A size of the rule with its bindings substituted."""
    return with_indices(pattern.substitute(found.sizes), found.indices)


def match_type(pattern: Type, t: Type, found: Bindings) -> None:
    """Bind type and size metavariables in a type."""
    match pattern, t:
        case TypeVar(name, scalar), _:
            require(not scalar or is_scalar(t), lambda: f"{t} is not a scalar")
            known = found.types.setdefault(name, t)
            require(known == t, lambda: f"{known} and {t} differ")
        case ArrayType(), ArrayType():
            match_size(pattern.length, t.length, found)
            match_type(pattern.element, t.element, found)
        case VectorType(), VectorType():
            match_size(pattern.width, t.width, found)
            match_type(pattern.element, t.element, found)
        case TupleType(), TupleType() if len(pattern.elements) == len(t.elements):
            for p, e in zip(pattern.elements, t.elements, strict=True):
                match_type(p, e, found)
        case _:
            require(pattern == t, lambda: f"expected {pattern}, found {t}")


def is_scalar(t: Type) -> bool:
    """Whether a type is a scalar other than bool, or a tuple of such scalars."""
    return (isinstance(t, ScalarType) and t != BOOL) or (
        isinstance(t, TupleType) and all(is_scalar(e) for e in t.elements)
    )


def match_function(pattern: Lambda, function: Lambda, found: Bindings, scope: Scope) -> None:
    """Match under a binder; target variables whose names would clash are renamed."""
    taken = {p.name for p in scope.values()}
    params = function.params
    if any(p.name in taken for p in params):
        avoid = taken | {p.name for p in function.body.free}
        renamed: list[Param] = []
        for p in params:
            renamed.append(Param(fresh(p.name, avoid), p.type))
            avoid.add(renamed[-1].name)
        body = apply(function, *renamed)
        params = tuple(renamed)
    else:
        body = function.body
    for p, q in zip(pattern.params, params, strict=True):
        match_type(p.type, q.type, found)
    match_expr(
        pattern.body, body, found, {**scope, **dict(zip(pattern.params, params, strict=True))}
    )


def match_unknown(
    f: FunVar, args: tuple[Expr, ...], expr: Expr, found: Bindings, scope: Scope
) -> None:
    """Bind a function metavariable by abstracting its arguments from `expr`."""
    # Keep a hinted part as it is: if it were rebuilt, its binders might get other names.
    parts = [bind_hinted(a, expr, found, scope) for a in args]
    actual = [
        instantiate_in(a, found, scope) if part is None else part
        for a, part in zip(args, parts, strict=True)
    ]
    if (known := found.functions.get(f.name)) is not None:
        require(apply(known, *actual) == expr, lambda: f"two different functions for {f.name}")
        return
    avoid = {p.name for p in expr.free} | {p.name for a in actual for p in a.free}
    if not all(isinstance(a, Param) for a in actual):
        avoid |= bound_names(expr)  # a new variable goes under these binders
    params: list[Param] = []
    body = expr
    for a in actual:
        name = a.name if isinstance(a, Param) else fresh("x", avoid)
        if any(p.name == name for p in params):
            name = fresh(name, avoid | {p.name for p in params})
        avoid.add(name)
        param = Param(name, a.type)
        params.append(param)
        if a != param:
            body = abstract(body, a, param)
    left = body.free.intersection(scope.values()).difference(params)
    require(
        not left,
        lambda: (
            f"{f.name} can depend only on {', '.join(dict.fromkeys(map(show_argument, args)))}, "
            f"not on {min(p.name for p in left)}"
        ),
    )
    for declared, a in zip(f.params, actual, strict=True):
        match_type(declared, a.type, found)
    match_type(f.type, expr.type, found)
    found.functions[f.name] = Lambda(tuple(params), body)


def show_argument(arg: Expr) -> str:
    """A short name for an argument pattern."""
    return arg.name if isinstance(arg, Param) else "its parts"


def bind_hinted(arg: Expr, target: Expr, found: Bindings, scope: Scope) -> Expr | None:
    """Bind `g` in an argument `g(x)`, or `e`, to the part of `target` at its hint; return it."""
    match arg:
        case FunCall(FunVar(name)) if name not in found.functions:
            pass
        case Param(name) if arg not in scope and name not in found.exprs:
            pass
        case _:
            return None
    if name not in found.hints:
        raise MismatchError(f"the rule needs a hint: which part is {name}?")
    path = found.hints[name]
    if not exists(target, path):
        raise MismatchError(f"there is no part at {path} for {name}")
    part = at(target, path)
    if not part.free <= target.free:
        raise MismatchError(f"the part for {name} depends on a variable bound around it")
    if isinstance(arg, FunCall) and isinstance(arg.fun, FunVar):
        match_unknown(arg.fun, arg.args, part, found, scope)
    else:
        match_expr(arg, part, found, scope)
    return part


def instantiate_in(arg: Expr, found: Bindings, scope: Scope) -> Expr:
    """An argument pattern of an unknown function as an expression of the target."""
    match arg:
        case Param(name) if arg in scope or name in found.exprs:
            return scope[arg] if arg in scope else found.exprs[name]
        case FunCall(FunVar() as g, args):
            return apply(found.functions[g.name], *(instantiate_in(a, found, scope) for a in args))
        case FunCall(fun, args):
            return FunCall(fun, tuple(instantiate_in(a, found, scope) for a in args))
        case _:
            raise MismatchError(
                "an argument of an unknown function must be made of bound variables"
            )


def abstract(expr: Expr, part: Expr, param: Param) -> Expr:
    """`expr` with every occurrence of `part` replaced by `param`."""
    if expr == part:
        return param
    if not part.free <= expr.free:
        return expr
    for position, child in enumerate(children(expr)):
        if isinstance(expr, FunCall) and position == len(expr.args):
            function = function_of(expr.fun)
            if function is not None and not part.free.isdisjoint(function.params):
                continue
        if (new := abstract(child, part, param)) is not child:
            expr = with_child(expr, position, new)
    return expr


def assume(assumption: Assumption, found: Bindings) -> None:
    """Check a law of a bound function; some laws also bind a value or a function."""
    if assumption.law in {"rescales", "keeps"}:
        assume_rescaling(assumption, found)
        return
    if assumption.law == "exact":
        assume_exact(assumption, found)
        return
    if assumption.law == "scales":
        assume_scaling(assumption, found)
        return
    function = found.functions[assumption.function]
    if assumption.law == "accumulates":
        require(
            accumulates(function), lambda: "the function does not add a product to its argument"
        )
        return
    if assumption.law == "adds":
        require(adds(function), lambda: "the function does not add its arguments")
        return
    if assumption.law == "annihilates":
        zero = found.values[str(assumption.value)]
        require(zero == 0, lambda: f"{zero:g} is not 0")
        require(is_zero_of_zero(function), lambda: "the function of 0 need not be 0")
        return
    fun = user_function(function)
    if assumption.law == "finite":
        least = None if fun is None else finite_neutral(fun)
        if least is None:
            raise MismatchError("the function is no maximum or minimum of floating-point numbers")
        found.values[str(assumption.value)] = least
        return
    law = None if fun is None else fun.law(assumption.law)
    if law is None:
        who = fun.name if fun is not None else "the function"
        raise MismatchError(f"{who} is not declared {assumption.law}")
    if assumption.value is not None:
        if law.value is None:
            raise MismatchError(f"the law {law} is declared without a value")
        known = found.values.setdefault(assumption.value, law.value)
        if exact(known) != exact(law.value):
            raise MismatchError(
                f"{known} is not the neutral element of the function, which is {law.value}"
            )


def assume_exact(assumption: Assumption, found: Bindings) -> None:
    """Find the function that computes in f32, and the bound of its results."""
    computed = exact_in_f32(found.functions[str(assumption.value)])
    if computed is None:
        raise MismatchError(f"{assumption.value} is not known to compute small integers")
    found.functions[assumption.function], bound = computed
    require(
        found.sizes.setdefault(BOUND, nat(bound)) == nat(bound),
        lambda: f"{BOUND} is {found.sizes[BOUND]}, and results are up to {bound}",
    )


def assume_scaling(assumption: Assumption, found: Bindings) -> None:
    """Find the part of a function that multiplies its argument by a constant."""
    r = scaling(found.functions[str(assumption.value)])
    if r is None:
        raise MismatchError(f"{assumption.value} is not a multiple of its argument and a constant")
    found.functions[assumption.function] = r


def assume_rescaling(assumption: Assumption, found: Bindings) -> None:
    """Find the function that rescales, or check that it keeps a value, by laws of real numbers."""
    name = assumption.function
    if assumption.law == "rescales":
        k = found.functions[str(assumption.value)]
        r = rescaling(k)
        if r is None:
            raise MismatchError(f"no power of e rescales what {assumption.value} accumulates")
        found.functions[name] = r
        return
    r, number = found.functions[name], found.values[str(assumption.value)]
    starts = [e for e in found.exprs.values() if isinstance(e, Literal)]
    require(
        keeps(r, Literal(number, r.body.type), starts),
        lambda: f"{number:g} is not kept when it is rescaled",
    )


def user_function(function: Lambda) -> UserFun | None:
    """The user function that a lambda eta-reduces to; None if there is none."""
    body = function.body
    if isinstance(body, FunCall) and isinstance(body.fun, UserFun) and body.args == function.params:
        return body.fun
    return None


def conditions(rule: Rule, found: Bindings) -> tuple[Constraint, ...]:
    """The rule's `where` at the bound sizes, and the conditions that matching added.

    A size that the caller chose must be in the range that the proof assumed; lengths always are.
    """
    ranges = [
        limit
        for v in sizes_of(rule)
        if v.name in rule.tunes
        for limit in (
            *([] if v.low is None else [at_least(v.low, found.sizes[v.name])]),
            *([] if v.high is None else [at_most(found.sizes[v.name], v.high)]),
        )
    ]
    return (*ranges, *found.conditions, *(c.substitute(found.sizes) for c in rule.where))

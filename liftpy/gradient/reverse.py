"""Reverse-mode differentiation of expressions.

A cotangent is passed from the result of an expression to its variables. Values that a derivative
needs are the expressions that compute them; the program in which the gradient is built binds those
that are used more than once (`language/embedded/sharing.py`). The function of a map is
differentiated with respect to one variable at a time, in a map over elements and their cotangents,
which computes what it needs of the function's values again. So there is no tape, and each part of a
gradient is an ordinary expression.
"""

from __future__ import annotations

from collections.abc import Sequence

from liftpy.gradient.cotangent import (
    Cotangent,
    Leaf,
    at_leaf,
    components,
    from_leaves,
    leaves,
    other_leaves,
)
from liftpy.gradient.data_index import BY_INDEX
from liftpy.gradient.derivatives import DERIVATIVES, through_operator
from liftpy.gradient.elements import element_map, of_elements
from liftpy.gradient.folds import FOLDS
from liftpy.gradient.layouts import indices, through_layout
from liftpy.gradient.refusal import NoDerivative
from liftpy.gradient.scope import Scope, function_scope
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Get, Layout, Primitive, ScalarOp
from liftpy.ir.types import FLOATS, SCALARS, Type
from liftpy.language.embedded.operations import operate
from liftpy.primitives import Generate, Map
from liftpy.rewrite.strategies.outward import overlap

BY_CASE = {**FOLDS, **BY_INDEX}
"""The functions that pass on the cotangents of folds and of what is read at an index."""


def pull(expr: Expr, ct: Cotangent, scope: Scope) -> None:
    """Pass the cotangent of an expression on to the variables of a scope.

    Raises NoDerivative if a part on the way has none.
    """
    if not any(scope.wants(expr, leaf) for leaf, _ in leaves(ct)):
        return
    match expr:
        case Param():
            wanted = scope.wanted(expr)
            scope.add(expr, from_leaves(expr.type, (at for at in leaves(ct) if at[0] in wanted)))
        case Tuple(elements):
            for element, part in zip(elements, components(ct), strict=True):
                pull(element, part, scope)
        case FunCall(Lambda() | UserFun() as f):
            pull_body(expr, f, ct, scope)
        case FunCall(ScalarOp(op=op)) if isinstance(ct, Expr):
            pull_operator(expr, op, ct, scope)
        case FunCall(Layout() as layout):
            found = through_layout(pull, expr, layout, ct)
            for arg, part in zip(expr.args, found, strict=True):
                pull(arg, part, scope)
        case FunCall(Map(f=f)):
            (xs,) = expr.args
            found = pull_map(f, scope.value(xs), ct, scope, scope.leaves(xs))
            pull(xs, found, scope)
        case FunCall(Generate(length=length, f=f)):
            pull_map(f, indices(length, f.params[0].type), ct, scope, [])
        case FunCall(Primitive() as fun) if type(fun) in BY_CASE:
            BY_CASE[type(fun)](pull, expr, ct, scope)
        case _:
            why = "gradients are made of algorithmic programs, and this is part of a lowered one"
            raise NoDerivative(expr, why, "use map, reduce, scan or iterate")


def pull_body(expr: FunCall, f: Lambda | UserFun, ct: Cotangent, scope: Scope) -> None:
    """Pass on the cotangent of a `let` or of a user function: through its body, then its values."""
    inner = bound_in(expr, f, scope)
    try:
        pull(f.body, ct, inner)
    except NoDerivative as error:
        if isinstance(f, UserFun):  # its body is no part of the program
            raise NoDerivative(expr, f"in {f.name}, {error.why}", error.instead) from None
        raise
    for p, arg in zip(f.params, expr.args, strict=True):
        pull(arg, inner.found.get(p), scope)


def bound_in(expr: FunCall, f: Lambda | UserFun, scope: Scope) -> Scope:
    """The scope of the body of a `let` or of a user function."""
    values = dict(zip(f.params, map(scope.value, expr.args), strict=True))
    active = {p: active_in(a, scope) for p, a in zip(f.params, expr.args, strict=True)}
    return Scope(scope, values, active)


def active_in(expr: Expr, scope: Scope) -> frozenset[Leaf]:
    """The components of a bound value on whose derivative something may depend.

    An integer that changes is one: its conversion to a float is refused.
    """
    steps = (leaf for leaf in other_leaves(expr.type) if changes(expr, scope, leaf))
    return frozenset((*(leaf for leaf, _ in scope.leaves(expr)), *steps))


def pull_operator(expr: FunCall, op: str, ct: Expr, scope: Scope) -> None:
    """Pass on the cotangent of a scalar operator."""
    if op in SCALARS:
        found = (converted_back(expr, ct, scope),)
    elif isinstance(derivative := DERIVATIVES[op], str):
        instead = "take it out of the program, or name parameters with `wrt` that it does not read"
        raise NoDerivative(expr, f"{op} has no useful derivative: {derivative}", instead)
    else:
        args = tuple(map(scope.value, expr.args))
        found = through_operator(derivative, ct, args, scope.value(expr))
    for arg, part in zip(expr.args, found, strict=True):
        pull(arg, part, scope)


def converted_back(expr: FunCall, ct: Expr, scope: Scope) -> Expr | None:
    """The cotangent of a value that is converted to another type; None if it is constant."""
    (arg,) = expr.args
    if arg.type in FLOATS:
        return operate(str(arg.type), ct)
    if not changes(arg, scope):
        return None
    why = f"a value of type {arg.type} changes in steps"
    raise NoDerivative(expr, why, "compute with floating-point numbers throughout")


def changes(expr: Expr, scope: Scope, leaf: Leaf = ()) -> bool:
    """Whether an integer or a truth value depends on a variable whose cotangent is wanted.

    leaf: the position of this component in a tuple, or in the elements of an array of tuples. An
        integer component of an element does not depend on the element's other components.
    """
    match expr:
        case FunCall(ScalarOp(), args):
            return any(changes(a, scope) for a in args)
        case FunCall(Get(index=index), (pair,)):
            return changes(pair, scope, (index, *leaf))
        case Tuple(elements) if leaf:
            return changes(elements[leaf[0]], scope, leaf[1:])
        case FunCall(Lambda() | UserFun() as f):
            return changes(f.body, bound_in(expr, f, scope), leaf)
        case Param() if leaf:
            wanted = scope.wanted(expr)
            return not scope.is_of_function(expr) and any(overlap(at, leaf) for at in wanted)
        case _:
            return scope.depends(expr)


def pull_map(
    f: Lambda, xs: Expr, ct: Cotangent, scope: Scope, wanted: Sequence[tuple[Leaf, Type]]
) -> Cotangent:
    """The wanted components of the cotangent of the array that a map with the function `f` reads.

    The cotangents of the variables that `f` takes from outside are added to the scope: the sums of
    those of all elements.
    """
    given = list(leaves(ct))
    names = [f.params[0].name, *("d" for _ in given)]
    arrays = [xs, *(value for _, value in given)]

    def of(variable: Param, leaf: Leaf) -> Expr | None:
        def body(element: Expr, *cts: Expr) -> Expr | None:
            inner = function_scope(f, (element,), {variable: frozenset((leaf,))}, scope)
            own = from_leaves(f.body.type, zip((leaf for leaf, _ in given), cts, strict=True))
            pull(f.body, own, inner)
            return at_leaf(inner.found.get(variable), leaf)

        return element_map(body, names, arrays)

    return of_elements(f, of, scope, wanted)

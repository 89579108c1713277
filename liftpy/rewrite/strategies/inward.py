"""Moves a map inwards past the layout that it reads, by any law of the catalogue that allows it."""

from __future__ import annotations

from collections.abc import Mapping

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Function, FunVar
from liftpy.primitives import Layout, Map
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import border, cover, pad, parts, rules_of, slide, split_join, transpose
from liftpy.rewrite.strategy import Failure, Result, choose, rule


def past(expr: Expr) -> Result:
    """`map(f)(layout(xs))` as `layout(map(f)(xs))`, with as many maps as each side needs."""
    source = expr.args[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Map) else None
    names = LAWS.get(type(source.fun), ()) if isinstance(source, FunCall) else ()
    return choose(*map(rule, names))(expr) if names else Failure("past", "no law permits it")


def passed(law: Rule) -> type[Layout] | None:
    """The layout past which a law moves a map of any function; None for other laws."""
    left, made = mapped(law.left), law.right
    if left is None or not isinstance(made, FunCall) or len(made.args) != 1:
        return None
    function, source = left
    if not isinstance(source, FunCall) or not isinstance(source.fun, Layout):
        return None
    same = type(source.fun) is type(made.fun) and isinstance(source.args[0], Param)
    return type(source.fun) if same and mapped(made.args[0]) == (function, *source.args) else None


def mapped(expr: Expr) -> tuple[FunVar, Expr] | None:
    """The unknown f and xs of `map(f)(xs)`, `map(x => map(f)(x))(xs)` and so on; else None."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return None
    (param,), body = expr.fun.f.params, expr.fun.f.body
    inner = mapped(body)
    if isinstance(body, FunCall) and isinstance(body.fun, FunVar) and len(body.args) == 1:
        inner = body.fun, body.args[0]
    return None if inner is None or inner[1] != param else (inner[0], expr.args[0])


def laws() -> Mapping[type[Function], tuple[str, ...]]:
    """For each layout past which a map can be moved, the names of the laws that permit it."""
    found: dict[type[Function], tuple[str, ...]] = {}
    for family in LAYOUTS:
        for law in rules_of(family):
            layout = passed(law)
            if layout is not None:
                found[layout] = (*found.get(layout, ()), law.name)
    return found


LAYOUTS = (split_join, slide, pad, border, parts, cover, transpose)
"""The families of laws about layouts."""


LAWS = laws()

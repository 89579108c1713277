"""Variables during the construction of a gradient: their values and their cotangents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from liftpy.errors import InternalError
from liftpy.gradient.cotangent import Cotangent, Leaf, float_leaves, got, plus
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get, Layout, Primitive, function_of
from liftpy.ir.types import Type
from liftpy.language.embedded.functions import bind
from liftpy.primitives import SplitAt, Zip
from liftpy.rewrite.strategies.outward import overlap

Wanted: TypeAlias = "Mapping[Param, frozenset[Leaf]]"
"""The components of variables whose cotangents are wanted."""

NO_LEAVES: frozenset[Leaf] = frozenset()


@dataclass(eq=False)
class Scope:
    """The variables of a function's body, or of a `let`.

    values: the bound variables, each with the expression in the gradient that has its value.
    active: the components of the bound variables whose cotangents are wanted.
    outside: those of variables from outside the function; their cotangents are kept here, as those
        of one call of the function. None for a `let`, which passes them on to its parent.
    """

    parent: Scope | None
    values: Mapping[Param, Expr]
    active: Wanted = field(default_factory=dict[Param, "frozenset[Leaf]"])
    outside: Wanted | None = None
    found: dict[Param, Cotangent] = field(default_factory=dict[Param, Cotangent])
    known: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])
    dependent: dict[int, tuple[Expr, bool]] = field(default_factory=dict[int, "tuple[Expr, bool]"])

    def wanted(self, p: Param) -> frozenset[Leaf]:
        """The components of a variable whose cotangents are wanted."""
        if p in self.values:
            return self.active.get(p, NO_LEAVES)
        if self.outside is not None or self.parent is None:
            return (self.outside or {}).get(p, NO_LEAVES)
        return self.parent.wanted(p)

    def is_of_function(self, p: Param) -> bool:
        """Whether a variable is a parameter of the function of a map or fold."""
        if p in self.values:
            return self.outside is not None
        return self.parent is not None and self.parent.is_of_function(p)

    def depends(self, expr: Expr) -> bool:
        """Whether an expression reads a component of a variable whose cotangent is wanted."""
        known = self.dependent.get(id(expr))
        if known is None:
            known = self.dependent[id(expr)] = expr, self.reads(expr, frozenset())
        return known[1]

    def reads(self, expr: Expr, bound: frozenset[Param]) -> bool:
        """`depends` for a part of an expression, inside functions that bind some variables."""
        if not any(self.wanted(p) for p in expr.free if p not in bound):
            return False
        path: list[int] = []
        whole = expr
        while isinstance(whole, FunCall) and isinstance(whole.fun, Get):
            path.insert(0, whole.fun.index)
            (whole,) = whole.args
        if isinstance(whole, Param):
            own = frozenset[Leaf]() if whole in bound else self.wanted(whole)
            return any(overlap(leaf, tuple(path)) for leaf in own)
        if any(self.reads(arg, bound) for arg in children_of(expr)):
            return True
        f = function_of(expr.fun) if isinstance(expr, FunCall) else None
        return f is not None and self.reads(f.body, bound.union(f.params))

    def wants(self, expr: Expr, leaf: Leaf) -> bool:
        """Whether the cotangent of a component of an expression is needed for one that is wanted.

        May also be true if it is not needed.
        """
        match expr:
            case Param():
                return leaf in self.wanted(expr)
            case Tuple(elements):
                return self.wants(elements[leaf[0]], leaf[1:])
            case FunCall(Get(index=index), (pair,)):
                return self.wants(pair, (index, *leaf))
            case FunCall(Zip(), args):
                return self.wants(args[leaf[0]], leaf[1:])
            case FunCall(SplitAt(), (xs,)):
                return self.wants(xs, leaf[1:])
            case FunCall(Layout(), args):
                return any(self.wants(arg, leaf) for arg in args)
            case _:
                return self.depends(expr)

    def leaves(self, expr: Expr) -> list[tuple[Leaf, Type]]:
        """The components of an expression whose cotangents are needed, with their types."""
        return [(leaf, t) for leaf, t in float_leaves(expr.type) if self.wants(expr, leaf)]

    def add(self, p: Param, ct: Cotangent) -> None:
        """Add to the cotangent of a variable."""
        if p in self.values or self.outside is not None or self.parent is None:
            self.found[p] = plus(self.found.get(p), ct)
        else:
            self.parent.add(p, ct)

    def lookup(self, p: Param) -> Expr:
        """The value of a variable in the gradient."""
        if p in self.values or self.parent is None:
            return self.values[p]
        return self.parent.lookup(p)

    def value(self, expr: Expr) -> Expr:
        """The value of an expression in the gradient; the same object for the same expression."""
        if isinstance(expr, Param):
            return self.lookup(expr)
        if not expr.free or isinstance(expr, Literal):
            return expr
        if self.parent is not None and expr.free.isdisjoint(self.values):
            return self.parent.value(expr)
        known = self.known.get(id(expr))
        if known is None:
            known = self.known[id(expr)] = expr, self.computed(expr)
        return known[1]

    def computed(self, expr: Expr) -> Expr:
        """`value` for an expression that is not known yet."""
        if isinstance(expr, Tuple):
            return Tuple(tuple(map(self.value, expr.elements)))
        if not isinstance(expr, FunCall):
            message = f"{expr} has no value in a gradient"
            raise InternalError(message)
        fun, args = expr.fun, tuple(map(self.value, expr.args))
        if isinstance(fun, Lambda):
            return Scope(self, dict(zip(fun.params, args, strict=True))).value(fun.body)
        if isinstance(fun, Get):
            return got(fun.index, args[0])
        if isinstance(fun, Primitive) and fun.function is not None:
            return call(replace(fun, f=self.function(fun.function)), *args)
        return call(fun, *args)

    def function(self, f: Lambda) -> Lambda:
        """A function of the program as one of the gradient."""
        names, types = [p.name for p in f.params], [p.type for p in f.params]

        def body(*xs: Expr) -> Expr:
            return Scope(self, dict(zip(f.params, xs, strict=True))).value(f.body)

        return bind(names, types, body)


Pull: TypeAlias = Callable[[Expr, Cotangent, Scope], None]
"""Passes the cotangent of an expression on to the variables of a scope."""


def children_of(expr: Expr) -> tuple[Expr, ...]:
    """The arguments of a call, or the components of a tuple."""
    if isinstance(expr, Tuple):
        return expr.elements
    return expr.args if isinstance(expr, FunCall) else ()


def function_scope(f: Lambda, args: tuple[Expr, ...], wanted: Wanted, outer: Scope) -> Scope:
    """The scope of one call of a function, in which some cotangents are wanted."""
    values = dict(zip(f.params, args, strict=True))
    own = {p: leaves for p, leaves in wanted.items() if p in values}
    return Scope(outer, values, own, {p: at for p, at in wanted.items() if p not in own})


def ordered(variables: Iterable[Param]) -> list[Param]:
    """Variables in an order that does not depend on hashes."""
    return sorted(variables, key=lambda p: (p.name, str(p.type)))

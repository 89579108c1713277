"""How often a function uses a variable or its components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get, function_of
from liftpy.ir.walk import children

#: A path of component indices; the empty path is the whole value.
Component: TypeAlias = tuple[int, ...]


def component_of(expr: Expr) -> tuple[Expr, Component]:
    """The expression of which `expr` selects a component, and that component."""
    path: list[int] = []
    while isinstance(expr, FunCall) and isinstance(expr.fun, Get):
        path.append(expr.fun.index)
        (expr,) = expr.args
    return expr, tuple(reversed(path))


def uses(expr: Expr, param: Param) -> Iterator[Component]:
    """The components of `param` that `expr` mentions; twice those in a primitive's function."""
    if param not in expr.free:
        return
    whole, component = component_of(expr)
    if whole == param:
        yield component
        return
    if not isinstance(expr, FunCall):
        for part in children(expr):
            yield from uses(part, param)
        return
    for arg in expr.args:
        yield from uses(arg, param)
    function = function_of(expr.fun)
    if function is not None and param not in function.params:
        inside = tuple(uses(function.body, param))
        yield from inside if isinstance(expr.fun, Lambda) else inside * 2


class Uses:
    """The uses of a variable, by component."""

    def __init__(self, expr: Expr, param: Param) -> None:
        self.counts = Counter(uses(expr, param))
        #: Whether the variable, or a part of it, is used more than once.
        self.any_often = self.counts.total() > 1 and any(map(self.many, self.counts))

    def many(self, component: Component) -> bool:
        """Whether a component is used more than once, by itself or as part of a larger one."""
        within = (component[:k] for k in range(len(component) + 1))
        return sum(self.counts[c] for c in within) > 1


@by_identity(1 << 13)
def used_often(f: Lambda) -> tuple[tuple[Param, Uses], ...]:
    """The parameters of a function of which a part is used more than once, with their uses."""
    every = ((p, Uses(f.body, p)) for p in f.params)
    return tuple((p, used) for p, used in every if used.any_often)

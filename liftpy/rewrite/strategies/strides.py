"""How far apart in memory the elements are that an expression reads, from the meaning of layouts.

The expression is evaluated to places in memory at the middle of all maps around it, where the
elements that padding adds are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import ScalarType
from liftpy.ir.walk import Path, at
from liftpy.primitives import AnyMap
from liftpy.views.access import AccessReader, memory_view, scalars_of
from liftpy.views.terms import Load, Memory, Term


def stride(expr: Expr, path: Path, over: Path) -> int | None:
    """The distance between the scalars that an array reads for successive elements.

    `path` leads to the array in `expr`. `over` is the path of a map around it, whose elements are
    meant, or `path` itself for the array's own elements. None if the distance is not known: they
    are read from no memory or at indices that depend on data, or a size is open.
    """
    if any(n.constant is None for p in expr.free for n in p.type.lengths()):
        return None
    first, second = (places(expr, path, over, step) for step in (0, 1))
    if first is None or second is None or len(first) != len(second):
        return None
    apart = [b.index - a.index for a, b in zip(first, second, strict=True)]
    return apart[0].constant if apart else None


def places(expr: Expr, path: Path, over: Path, step: int) -> list[Load] | None:
    """The loads of an element in the middle of an array, `step` elements further over `over`."""
    read = AccessReader(hold=lambda _: "data")
    env = {p: memory_view(p.name, p.type, memory) for p in expr.free}
    for k, position in enumerate(path):
        part = at(expr, path[:k])
        if not isinstance(part, FunCall) or position < len(part.args):
            continue
        values = [denote(a, env, read) for a in part.args]
        match part.fun:
            case Lambda(params=params):
                env |= dict(zip(params, values, strict=True))
            case AnyMap(f=f):
                env[f.params[0]] = middle(values[0], step if path[:k] == over else 0)
            case _:
                return None
    element = middle(denote(at(expr, path), env, read), step if path == over else 0)
    return [load for scalar in scalars_of(element) for load in loads(scalar)]


def memory(name: str, scalar: ScalarType, length: int) -> Memory:
    """The memory of a variable that the expression reads."""
    return Memory(name, "global", scalar, length, writable=False)


def middle(xs: Pull, step: int) -> Value:
    """The element `step` after the one in the middle."""
    return xs[nat((int(xs.length) - 1) // 2 + step)]


def loads(term: Term) -> Iterator[Load]:
    """The loads of a term."""
    if isinstance(term, Load):
        yield term
    for part in term.parts:
        yield from loads(part)

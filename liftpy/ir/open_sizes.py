"""The sizes of a program that have no number yet, with their ranges."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import INDEX, Nat, Var
from liftpy.ir.primitive import Primitive, index_fields
from liftpy.ir.program import Program


def sizes(expr: Expr) -> Iterator[Var]:
    """Every size variable in the types of bound variables and in primitives."""
    match expr:
        case Tuple(elements):
            for element in elements:
                yield from sizes(element)
        case FunCall(fun, args):
            match fun:
                case Lambda():
                    yield from sizes_of_function(fun)
                case UserFun():
                    yield from sizes_of_function(Lambda(fun.params, fun.body))
                case Primitive():
                    own = index_fields(type(fun))
                    for name, n in fun.numbers().items():
                        yield from (v for v in variables(n) if name not in own or v.name != INDEX)
                    if fun.function is not None:
                        yield from sizes_of_function(fun.function)
                case _:
                    pass
            for arg in args:
                yield from sizes(arg)
        case _:
            return


def sizes_of_function(fun: Lambda) -> Iterator[Var]:
    """`sizes` of a function."""
    for param in fun.params:
        for length in param.type.lengths():
            yield from variables(length)
    yield from sizes(fun.body)


def variables(n: Nat) -> Iterator[Var]:
    """The variables of a natural."""
    return (a for a in n.atoms() if isinstance(a, Var))


def size_ranges(program: Program) -> dict[str, tuple[int | None, int | None]]:
    """The open sizes of a program by name, each with the widest range of its uses."""
    ranges: dict[str, tuple[int | None, int | None]] = {}
    for v in sizes_of_function(program.body):
        low, high = ranges.get(v.name, (v.low, v.high))
        low = None if low is None or v.low is None else min(low, v.low)
        high = None if high is None or v.high is None else max(high, v.high)
        ranges[v.name] = (low, high)
    return dict(sorted(ranges.items()))


def show_range(name: str, low: int | None, high: int | None) -> str:
    """A size with its range, for messages."""
    if low is None or high is None:
        end = "any number" if low is None else f"{low} or more"
        return f"{name}: {end if high is None else f'{high} or less'}"
    return f"{name}: {low}..{high}"

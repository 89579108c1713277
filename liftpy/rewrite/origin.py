"""Finds where in a program's text a step of its derivation applies.

A rule rewrites an expression that earlier rules made, but that still contains parts of the program
as it was written. The step belongs to the innermost call of the text around these parts; if no
part is left, to the calls of the same primitive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.program import Program
from liftpy.ir.walk import Path, at, children, top_down
from liftpy.rewrite.strategy import Derivation, replay
from liftpy.source.spans import Span

#: The calls of a program with their paths.
Written: TypeAlias = dict[FunCall, Path]


def origins(
    program: Program, derivation: Derivation, steps: Collection[int]
) -> dict[int, tuple[Span, ...]]:
    """The places of the given steps, which count from 1; steps without a place are left out."""
    spans = program.spans
    if spans is None or not steps:
        return {}
    written = {
        part: path
        for path, part in top_down(program.body.body)
        if isinstance(part, FunCall) and part.free
    }
    found: dict[int, tuple[Span, ...]] = {}
    before = derivation.start
    for number, (step, after) in enumerate(replay(derivation.start, derivation.steps), 1):
        if number in steps:
            rewritten = at(before, step.path)
            around = surrounding(rewritten, program.body.body, written)
            paths = alike(rewritten, written) if around is None else [around]
            places = dict.fromkeys(filter(None, map(spans.call, paths)))
            if places:
                found[number] = tuple(places)
        if number == max(steps):
            break
        before = after
    return found


def surrounding(rewritten: Expr, body: Expr, written: Written) -> Path | None:
    """The path of the innermost call of the program around its parts left in an expression.

    A function locates a call better than the array it is applied to: a map is placed by the
    variables of its function, or by the parts of the program left in that function.
    """
    if not isinstance(rewritten, FunCall):
        return None
    if rewritten in written:
        return written[rewritten]
    function = function_of(rewritten.fun)
    if function is not None and (here := owner(function, written)) is not None:
        return here
    if function is not None and (inner := common(function.body, written)) is not None:
        return around_function(body, inner)
    for argument in rewritten.args:
        if (inner := common(argument, written)) is not None:
            return inner
    return None


def owner(function: Lambda, written: Written) -> Path | None:
    """The path of the call whose function has these variables; None unless there is exactly one."""
    mine = [
        path
        for part, path in written.items()
        if (known := function_of(part.fun)) is not None and known.params == function.params
    ]
    return mine[0] if len(mine) == 1 else None


def around_function(body: Expr, path: Path) -> Path | None:
    """The path of the innermost call whose function contains the part at a path."""
    for depth in range(len(path) - 1, -1, -1):
        call = at(body, path[:depth])
        if isinstance(call, FunCall) and path[depth] == len(call.args):
            return path[:depth]
    return None


def alike(rewritten: Expr, written: Written) -> list[Path]:
    """The paths of the calls of the same primitive with the same sizes."""
    fun = rewritten.fun if isinstance(rewritten, FunCall) else None
    if not isinstance(fun, Primitive) or fun.function is not None or not fun.numbers():
        return []
    return [path for part, path in written.items() if part.fun == fun]


def common(expr: Expr, written: Written) -> Path | None:
    """The common prefix of the paths of all parts of the program left in an expression."""
    paths = list(left(expr, written))
    if not paths:
        return None
    shortest = min(paths, key=len)
    length = next(
        (k for k in range(len(shortest)) if any(p[k] != shortest[k] for p in paths)), len(shortest)
    )
    return shortest[:length]


def left(expr: Expr, written: Written) -> Iterator[Path]:
    """The paths of the largest parts that are unchanged from the program."""
    if isinstance(expr, Param):
        return
    if isinstance(expr, FunCall) and expr in written:
        yield written[expr]
        return
    for child in children(expr):
        yield from left(child, written)

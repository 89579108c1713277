"""The values of a program that may be stored in global memory: its cuts.

A *cut* is what a `let` names, or a map of folds that another part reads. `all_cut` moves every cut
into a `let` at the beginning of the program, by rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall, fresh, substitute
from liftpy.ir.constraint import at_most
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import ZERO
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, TupleType, size_bytes
from liftpy.ir.walk import Path, at, bound_names, children, top_down
from liftpy.primitives import AnyIterate
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.epilogue import COMPONENTS
from liftpy.rewrite.strategies.families import SETTINGS
from liftpy.rewrite.strategies.lower import layouts_inlined
from liftpy.rewrite.strategies.results import results_exposed
from liftpy.rewrite.strategies.shapes import is_let, lets, parameter
from liftpy.rewrite.strategies.share import has_fold_in, outside_functions, stages
from liftpy.rewrite.strategies.unread import every_unread_dropped
from liftpy.rewrite.strategy import (
    Failure,
    Strategy,
    Success,
    at_path,
    choose,
    normalize,
    rule,
    seq,
)

RESULT = "result"  # the stage that makes the result

APART = choose(rule("let_of_two"), rule("let_of_three"), rule("let_of_four"))
"""Splits the first variable off a `let` of several variables."""

MOST_INLINED = 32
"""The largest scalar, in operators and operands, that its readers compute; larger ones are stored.

Otherwise a chain of scalars, each of which uses the previous one twice, would double at each step.
"""


@dataclass(frozen=True)
class Cut:
    """A value of a program that may be stored: its name, variable and expression.

    An optional cut has one reader, which may compute it (`fused`), or whose kernel may make it a
    block at a time (`held`). Two kinds of values are not optional, because the prepare phase makes
    them: folds of no parameter, which a reader would fold again at each reading, and values that
    take no more memory than the constants of which they are made.
    """

    name: str
    param: Param
    value: Expr
    optional: bool


def unshadowed(expr: Expr, taken: frozenset[str]) -> Expr:
    """Rename the variables of an expression's first lets: all differ, and none is in `taken`."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Lambda) or len(expr.args) != 1:
        return expr
    (param,), body = expr.fun.params, expr.fun.body
    if param.name in taken:
        own = Param(fresh(param.name, taken | bound_names(body)), param.type)
        body, param = substitute(body, {param: own}), own
    body = unshadowed(body, taken | {param.name})
    return FunCall(Lambda((param,), body), expr.args)


def all_cut(form: Success) -> Success:
    """Move every cut of an expression into a `let` at its beginning, in further steps.

    Before that, results are exposed and lets of layouts are inlined, including lets at the
    beginning of a part of the expression.
    """
    form, depth = taken_further(form, (), seq(results_exposed(), layouts_inlined())), 0
    while True:
        here = at(form.expr, (1,) * depth)
        named = is_let(here)
        found = moved_out(here) if named else succeeded(APART, here) or introduced(here, ())
        if found is None:
            if not named:
                return without_unused(without_unread(form, depth))
            depth += 1
            continue
        form = taken_further(form, (1,) * depth, lambda _, found=found: found)


@lru_cache(maxsize=64)
def cut_form(program: Program) -> Success:
    """`all_cut` of a program's body, once for all families of forms."""
    return all_cut(Success(program.body.body))


def taken_further(form: Success, path: Path, strategy: Strategy) -> Success:
    """Apply a strategy, which must succeed, to the part of a form at a path."""
    result = at_path(path, strategy)(form.expr)
    if isinstance(result, Failure):
        raise InternalError(str(result))
    return Success(result.expr, (*form.steps, *result.steps))


def without_unused(form: Success) -> Success:
    """Remove those of a form's first lets whose variable is never read."""
    depth = sum(1 for _ in lets(form.expr))
    for k in reversed(range(depth)):
        let = next(itertools.islice(lets(form.expr), k, None))
        if parameter(let) not in at(let, (1,)).free:
            form = taken_further(form, (1,) * k, rule("let_inline"))
    return form


def without_unread(form: Success, depth: int) -> Success:
    """Drop unread arrays of zips from the values of a form's first `depth` lets and its result."""
    for k in range(depth):
        form = taken_further(form, (*(1,) * k, 0), every_unread_dropped())
    return taken_further(form, (1,) * depth, every_unread_dropped())


def moved_out(let: Expr) -> Success | None:
    """Move a let, a cheap value or a cut out of a let's value, one step; None if it has none."""
    value = at(let, (0,))
    apart = succeeded(choose(rule("let_of_let"), at_path((0,), APART)), let)
    if apart is not None:
        return apart
    if is_cheap(value):
        return succeeded(seq(rule("let_inline"), normalize(COMPONENTS)), let)
    for path in components(value, (0,)):
        return succeeded(rule("let_introduction", {"v": path}), let)
    return introduced(let, (0,))


def is_cheap(value: Expr) -> bool:
    """Whether a value is not worth a kernel: a view, a few scalar operators, a tuple of these.

    A loop over a scalar (`iterate`) is worth one: it is not repeated where its value is read.
    """
    if not computes(value):
        return True
    if isinstance(value, Tuple):
        return all(map(is_cheap, value.elements))
    parts = [part for _, part in itertools.islice(top_down(value), MOST_INLINED + 1)]
    return len(parts) <= MOST_INLINED and not any(map(is_loop, parts))


def is_loop(part: Expr) -> bool:
    """Whether computing a part takes a loop: it is an array or an `iterate`."""
    iterates = isinstance(part, FunCall) and isinstance(part.fun, AnyIterate)
    return iterates or isinstance(part.type, ArrayType)


def components(value: Expr, path: Path) -> Iterator[Path]:
    """The paths of the components of a tuple that compute, so that each is stored separately."""
    for k, part in enumerate(value.elements if isinstance(value, Tuple) else ()):
        if isinstance(part, Tuple):
            yield from components(part, (*path, k))
        elif not is_cheap(part):
            yield (*path, k)


def introduced(expr: Expr, path: Path) -> Success | None:
    """Introduce a `let` for the first cut in the part at a path: a value of a `let`, or a stage."""
    whole = at(expr, path)
    named = (
        (*inner, k)
        for inner, part in outside_functions(whole)
        if isinstance(part, FunCall) and isinstance(part.fun, Lambda)
        for k, value in enumerate(part.args)
        if not is_cheap(value)
    )
    for inner in itertools.chain(named, stages(whole)):
        place = (*path, *inner)
        if at(expr, place).free <= expr.free:
            found = succeeded(rule("let_introduction", {"v": place}), expr)
            # a variable bound around the part may have the same name as a free one
            if found is not None and isinstance(at(found.expr, (1, *place)), Param):
                return found
    return None


def succeeded(strategy: Strategy, expr: Expr) -> Success | None:
    """The result of a strategy; None if it fails."""
    result = strategy(expr)
    return None if isinstance(result, Failure) else result


def after(strategy: Strategy, expr: Expr) -> Expr:
    """An expression after a strategy; the expression itself if that fails."""
    result = strategy(expr)
    return expr if isinstance(result, Failure) else result.expr


def uses(
    expr: Expr, param: Param, path: Path = (), *, repeated: bool = False
) -> Iterator[tuple[Path, bool]]:
    """The paths at which a variable is used, each with whether a map or a fold repeats the use."""
    if param not in expr.free:
        return
    if expr == param:
        yield path, repeated
        return
    parts = children(expr)
    inside = len(expr.args) if isinstance(expr, FunCall) else len(parts)
    again = isinstance(expr, FunCall) and isinstance(expr.fun, Primitive)
    function = function_of(expr.fun) if isinstance(expr, FunCall) else None
    if function is not None and param in function.params:  # another variable of the same name
        parts = parts[:inside]
    for k, part in enumerate(parts):
        yield from uses(part, param, (*path, k), repeated=repeated or (again and k >= inside))


def is_unambiguous(name: str) -> bool:
    """Whether a name can serve for a cut: it means nothing else in keys and settings."""
    return name.isidentifier() and name != RESULT and name not in SETTINGS


def cuts_of(form: Expr, program: Program, own: set[str]) -> list[Cut]:
    """The cuts of a form made by `all_cut`; `own` has the names that the user chose."""
    given = {p.name for p in program.params}
    taken = {*given, *own, RESULT, *(parameter(let).name for let in lets(form))}
    found: list[Cut] = []
    fixed: set[Param] = set()  # the values of no parameter
    constants = {p for p in program.params if p.name in program.constants}
    for let in lets(form):
        param, value = parameter(let), let.args[0]
        if value.free <= fixed:
            fixed.add(param)
        small = bool(value.free) and value.free <= constants and is_no_larger(value)
        if value.free and value.free <= constants | fixed:
            constants.add(param)
        name = param.name
        known = name in own and all(cut.name != name for cut in found)
        if not known or not is_unambiguous(name):
            name = next(n for k in itertools.count(1) if (n := f"stage{k}") not in taken)
            taken.add(name)
        readers = list(uses(at(let, (1,)), param))
        tuples = isinstance(param.type, TupleType)
        again = param in fixed and has_fold_in(value)
        once = len(readers) == 1 and not readers[0][1]
        optional = once and not (tuples or again or small)
        found.append(Cut(name, param, value, optional))
    return found


def is_no_larger(value: Expr) -> bool:
    """Whether a value takes no more memory than the variables of which it is made."""
    read = sum((size_bytes(p.type) for p in value.free), ZERO)
    return at_most(size_bytes(value.type), read).known() is True

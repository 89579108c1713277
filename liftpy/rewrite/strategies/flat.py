"""Turns nested maps over zips of arrays of arrays into one map over a zip of joined arrays.

From lets of `xs`, of `ys` and of `map(t -> map(f)(zip(t.0, t.1)))(zip(xs, ys))` to lets of
`join(xs)`, of `join(ys)` and of `map(f)(zip(xs, ys))`, which is split where it is read. So products
of F(m, r) in groups are one array of products of matrices, like those without groups.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.walk import at, every_part, top_down
from liftpy.primitives import Join
from liftpy.rewrite.strategies.shapes import lets, parameter, renamed
from liftpy.rewrite.strategy import Failure, Result, Strategy, Success, at_path, attempt, rule, seq


def flattened(expr: Expr) -> Result:
    """Flatten each value that pairs of arrays of arrays make, of the lets at the beginning."""
    depths = range(sum(1 for _ in lets(expr)))
    return seq(*(attempt(flattened_at(depth)) for depth in depths))(expr)


def flattened_at(depth: int) -> Strategy:
    """Flatten the value of the let inside `depth` others, and the two values that it reads."""

    def run(expr: Expr) -> Result:
        place = (1,) * depth
        made = at_path(place, seq(at_path((0,), pairs_joined), layout_read))(expr)
        if not isinstance(made, Success):
            return made
        value = at(made.expr, (*place, 0))
        read = {joined_variable(part) for part in every_part(value)} - {None}
        names = [*map(parameter, lets(made.expr))][:depth]
        stored = (at_path((1,) * k, join_stored) for k, p in enumerate(names) if p in read)
        return seq(lambda _: made, *stored)(expr)

    return run


def pairs_joined(expr: Expr) -> Result:
    """Map a function over one zip of joined arrays instead of over pairs of their elements.

    From `map(t -> map(f)(zip(t.0, t.1)))(zip(xs, ys))` to `split(map(f)(zip(join(xs), join(ys))))`.
    """
    apart = rule("map_fission", {"g": (0,)})
    return seq(apart, rule("map_map_join"), at_path((0, 0), rule("join_of_zips")))(expr)


def layout_read(let: Expr) -> Result:
    """`let x = layout(v) in f(x)` as `let x = v in f(layout(x))`."""
    name = parameter(let).name
    inside = seq(rule("let_introduction", {"v": (0, 0)}), at_path((1,), rule("let_inline")))
    return seq(inside, called(name))(let)


def join_stored(let: Expr) -> Result:
    """`let x = v in f(join(x))` as `let x = join(v) in f(x)`."""
    param = parameter(let)
    parts = [*top_down(at(let, (1,)))]
    places = [path for path, part in parts if joined_variable(part) == param]
    if len(places) != sum(part == param for _, part in parts):
        return Failure("flattened", f"{param.name} is also read without the join")
    place = places[0]
    inside = seq(rule("let_inline"), rule("let_introduction", {"v": place}))
    return seq(inside, called(param.name))(let)


def called(name: str) -> Strategy:
    """Rename the variable of a let; no rule is applied."""
    return lambda let: Success(renamed(let, (), name))


def joined_variable(expr: Expr) -> Param | None:
    """The variable that an expression joins."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Join):
        (of,) = expr.args
        return of if isinstance(of, Param) else None
    return None

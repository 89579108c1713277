"""The adjoint of a layout, judged on a general instance with symbolic sizes (C6 of the contract).

A layout reads each element of its result at a place of its argument, or puts a constant there. If
no place is read twice, this is a partial bijection between the places of both, and the adjoint, as
a linear map, is its inverse, with 0 elsewhere: `<L x, y> = <x, L* y>` then has the same products on
both sides. Two facts show that `L*` is that inverse. What `L*` reads of `L x` is the element that
belongs there, and what `L` reads of `L* y` too:

    L*(L x) is x, except where L* puts a constant
    L(L* y) is y, except where L puts a constant

A layout that reads a place several times equals an expression of such layouts and of `repeat`. The
adjoint of `repeat` is a sum, and that of a composition is the composition of the adjoints in
reverse order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import z3

from liftpy.ir.call import FunCall, call
from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat, Var, nat, var
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import TupleType
from liftpy.ir.walk import bottom_up
from liftpy.rewrite.rule import ValueVar
from liftpy.semantics.agree import Proof, started
from liftpy.semantics.obligations import of_call
from liftpy.semantics.symbolic import components
from liftpy.semantics.verdict import Open

BACK = "C6 the adjoint leads every element back to where it was read"
FORTH = "C6 the layout reads every element of its adjoint where it belongs"
ALLOWED = "C6 the adjoint, or the equal expression, satisfies its own conditions"
EQUAL = "C6 the expression of layouts with adjoints is equal"
NONE = "C6 a layout has an adjoint, an equal expression of layouts that have one, or a definition"

#: Stands for the constants that a layout inserts, which are no elements.
NOWHERE = ValueVar("nowhere")


def keep_adjoint(layout: Layout, params: tuple[Param, ...], steps: int) -> tuple[str, ...]:
    """What was shown of the adjoint of a layout; raises `Open`."""
    if layout.adjoint_by_definition:
        return ()
    types = tuple(p.type for p in params)
    if (adjoint := layout.adjoint(*types)) is not None:
        proof = started(params, (*occupied(params), *layout.requires(*types)), steps)
        both_ways(proof, layout, params, adjoint)
        return tuple(proof.shown)
    shown: dict[str, None] = {}
    for special, (param,) in cases(layout, params):
        if (equal := special.equivalent(param)) is not None:
            clauses = (*occupied((param,)), *special.requires(param.type))
            proof = started((param,), clauses, steps)
            same(proof, call(special, param), equal, param)
            shown |= dict.fromkeys(proof.shown)
    if not shown:
        raise Open(NONE, f"{layout.name} has none of these")
    return tuple(shown)


def occupied(params: tuple[Param, ...]) -> Iterator[Constraint]:
    """The condition of every program that no array is empty."""
    for p in params:
        yield from (at_least(1, length) for length in p.type.lengths())


def both_ways(proof: Proof, layout: Layout, params: tuple[Param, ...], adjoint: Primitive) -> None:
    """Show both facts; raises `Open`."""
    env = {p: proof.reader.leaf(p.name, p.type) for p in params}
    others = [c for c in inserted(adjoint).values() if c != 0]
    if others:
        raise Open(BACK, f"{adjoint} inserts {others[0]:g} where nothing was read, instead of 0")
    there = elements_of(call(layout, *params))
    permit(proof, adjoint, there)
    back = denote(call(without_constants(adjoint), *there), env, proof.reader)
    original = as_tuple([env[p] for p in params])
    proof.agree(written(proof, back, original), original, (), BACK)

    results = tuple(Param(f"result {k}", part.type) for k, part in enumerate(there))
    env = {p: proof.reader.leaf(p.name, p.type) for p in results}
    read = elements_of(call(adjoint, *results))
    again = denote(call(without_constants(layout), *read), env, proof.reader)
    original = as_tuple([env[p] for p in results])
    proof.agree(written(proof, again, original), original, (), FORTH)


def same(proof: Proof, call_: Expr, equal: Expr, param: Param) -> None:
    """Show that a layout is equal to an expression, whose conditions hold; raises `Open`."""
    for _, part in bottom_up(equal):
        if isinstance(part, FunCall):
            for condition in of_call(part):
                proof.show(ALLOWED, proof.terms.condition(condition))
    env = {param: proof.reader.leaf(param.name, param.type)}
    left, right = (denote(e, env, proof.reader) for e in (call_, equal))
    proof.agree(left, right, (), EQUAL)


def permit(proof: Proof, primitive: Primitive, args: tuple[Expr, ...]) -> None:
    """Show what a primitive requires of its arguments; raises `Open`."""
    for condition in primitive.conditions(*(a.type for a in args)):
        proof.show(ALLOWED, proof.terms.condition(condition))


def as_tuple(values: Sequence[Value]) -> Value:
    """The value of a tuple with these components, or the only one."""
    first, *rest = values
    return (first, *rest) if rest else first


def elements_of(expr: Expr) -> tuple[Expr, ...]:
    """The components of a tuple, or the expression itself."""
    return tuple(expr) if isinstance(expr.type, TupleType) else (expr,)


def without_constants(layout: Primitive) -> Primitive:
    """A layout with a mark in place of the constants that it inserts."""
    return replace(layout, **dict.fromkeys(inserted(layout), NOWHERE))


def inserted(primitive: Primitive) -> dict[str, float]:
    """The constants that a primitive inserts, by field name."""
    return primitive.constants() if isinstance(primitive, Layout) else {}


def written(proof: Proof, returned: Value, original: Value) -> Value:
    """A result, with the original at positions that hold a mark of `without_constants`."""
    match returned:
        case Pull():
            return Pull(returned.length, lambda i: written(proof, returned[i], original[i]))
        case tuple() | Parts():
            pairs = zip(components(returned), components(original), strict=True)
            return tuple(written(proof, r, o) for r, o in pairs)
        case _:
            value = proof.reader.scalar(returned)
            nowhere = proof.reader.constant(NOWHERE, value.sort())
            return z3.If(value == nowhere, proof.reader.scalar(original), value)


Instance = tuple[Layout, tuple[Param, ...]]


def cases(layout: Layout, params: tuple[Param, ...]) -> Iterator[Instance]:
    """The instance at ranges of sizes for which an equal expression may be known.

    Each number is positive, 0 or negative; the length of the array is 1, at least 2, or more than
    each number.
    """
    numbers = list(layout.numbers())
    (length,) = [n for p in params for n in list(p.type.lengths())[:1]]
    signs: list[Callable[[str], Nat]] = [
        lambda name: var(name, 1, None),
        lambda _: nat(0),
        lambda name: var(name, None, -1),
    ]
    for each in itertools.product(signs, repeat=len(numbers)):
        known = {name: sign(name) for name, sign in zip(numbers, each, strict=True)}
        special = replace(layout, **known)
        positive = [n for n in known.values() if n.bounds[0] == 1]
        longer = [n + var("more", 1, None) for n in (*positive, sum(positive, nat(0)))]
        longer += [k * n for n in positive for k in (1, 2)]
        for size in (nat(1), var("count", 2, None), *longer):
            by = {a.name: size for a in length.atoms() if isinstance(a, Var)}
            given = tuple(Param(p.name, p.type.substitute(by)) for p in params)
            if all(c.known() is not False for c in special.requires(*(p.type for p in given))):
                yield special, given

"""Scalar terms of views: what they depend on, one lane of them, and their conditions as C."""

from __future__ import annotations

from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import ScalarType
from liftpy.opencl.c import C_TYPES, MAX_INT, C, CallC, Text, index_c, magnitude
from liftpy.opencl.scalars import literal_c
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Term,
)


def parts(term: Term) -> tuple[Term, ...]:
    """The terms that a term is computed from."""
    match term:
        case Apply(_, args, _):
            return args
        case Choice(_, then, otherwise):
            return then, otherwise
        case Lanes(init=init, vector=vector):
            return init, vector
        case _:
            return ()


def repeated(term: Term) -> set[Term]:
    """What is computed inside a term and mentioned more than once."""
    seen: set[Term] = set()
    again: set[Term] = set()
    waiting = [term]
    while waiting:
        for part in parts(waiting.pop()):
            if not parts(part):
                continue
            if part in seen:
                again.add(part)
            else:
                seen.add(part)
                waiting.append(part)
    return again


def at_lane(read: AccessReader, term: Term, lane: str, k: int) -> Term:
    """A term at one lane."""
    if lane not in term.names or isinstance(term, Lanes):
        return term
    key = (term, lane, k)
    if key not in read.lanes:
        read.lanes[key] = _at_lane(read, term, lane, k)
    return read.lanes[key]


def _at_lane(read: AccessReader, term: Term, lane: str, k: int) -> Term:
    match term:
        case Load(memory, index, alias):
            return Load(memory, index.substitute({lane: k}), alias)
        case FromIndex(index, t):
            return FromIndex(index.substitute({lane: k}), t)
        case Apply(op, args, _):
            return read.operate(op, tuple(at_lane(read, a, lane, k) for a in args))
        case Choice(condition, then, otherwise):
            inside = read.inside(condition.index.substitute({lane: nat(k)}), condition.length)
            return read.either(
                inside, at_lane(read, then, lane, k), at_lane(read, otherwise, lane, k)
            )
        case _:
            return term


def guards(term: Choice) -> tuple[list[Inside], Term, Term]:
    """A nest of guards with one alternative as a list of conditions."""
    conditions = [term.condition]
    then = term.then
    while isinstance(then, Choice) and then.otherwise == term.otherwise:
        conditions.append(then.condition)
        then = then.then
    return conditions, then, term.otherwise


def condition_c(conditions: list[Inside]) -> C:
    """Range tests, all of which must hold."""
    tests: list[str] = []
    for condition in conditions:
        index = index_c(condition.index, wide=magnitude(condition.index) > MAX_INT)
        if condition.test_low:
            tests.append(f"{index} >= 0")
        if condition.test_high:
            tests.append(f"{index} < {int(condition.length)}")
    return Text(f"({' && '.join(dict.fromkeys(tests))})")


def number_c(index: Nat, t: ScalarType) -> C:
    """An index as a number."""
    if index.constant is not None:
        return literal_c(index.constant, t)
    text = index_c(index, wide=magnitude(index) > MAX_INT)
    return CallC(f"({C_TYPES[t.name]})", (Text(text),))


def lanes_c(vector: Text, start: int, stop: int, width: int) -> C:
    """Some lanes of a vector variable."""
    if stop - start == width:
        return vector
    return Text(f"{vector.text}.s{''.join(f'{k:x}' for k in range(start, stop))}")

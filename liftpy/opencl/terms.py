"""Scalar terms of views: what they depend on, one lane of them, and their parts as C."""

from __future__ import annotations

import math

from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import ScalarType
from liftpy.opencl.c import (
    C_TYPES,
    MAX_INT,
    C,
    CallC,
    Infix,
    Prefix,
    Ternary,
    Text,
    index_c,
    magnitude,
)
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    Constant,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Term,
)

INFIX = {"+", "-", "*", "/", "<", "<=", "=="}
FLOATS = {"f32", "f64"}


def depends(term: Term, lane: str) -> bool:
    """Whether a term differs from lane to lane."""
    match term:
        case Load(_, index, _):
            return lane in index.names()
        case Apply(_, args, _):
            return any(depends(a, lane) for a in args)
        case FromIndex(index, _):
            return lane in index.names()
        case Choice(condition, then, otherwise):
            parts = depends(then, lane) or depends(otherwise, lane)
            return parts or lane in condition.index.names()
        case Lanes(init=init, vector=vector):
            return depends(init, lane) or depends(vector, lane)
        case _:
            return False


def is_stable(term: Term) -> bool:
    """Whether a term reads only what the kernel never writes."""
    match term:
        case Load(memory, _, _):
            return not memory.writable and memory.space == "global"
        case Apply(_, args, _):
            return all(is_stable(a) for a in args)
        case Choice(_, then, otherwise):
            return is_stable(then) and is_stable(otherwise)
        case Constant() | FromIndex():
            return True
        case _:
            return False


def at_lane(term: Term, lane: str, k: int) -> Term:
    """A term at one lane."""
    match term:
        case Load(memory, index, alias):
            return Load(memory, index.substitute({lane: k}), alias)
        case Apply(op, args, t):
            return Apply(op, tuple(at_lane(a, lane, k) for a in args), t)
        case FromIndex(index, t):
            return FromIndex(index.substitute({lane: k}), t)
        case Choice(condition, then, otherwise):
            parts = at_lane(then, lane, k), at_lane(otherwise, lane, k)
            return narrowed(condition, {lane: nat(k)}, *parts)
        case _:
            return term


def narrowed(condition: Inside, by: dict[str, Nat], then: Term, otherwise: Term) -> Term:
    """A guarded term at a smaller range of its index."""
    reader = AccessReader()
    inside = reader.inside(condition.index.substitute(by), condition.length)
    return reader.either(inside, then, otherwise)


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


def literal_c(value: float, t: ScalarType) -> C:
    """A constant."""
    if t.name not in FLOATS:
        return Text(str(int(value)))
    if math.isnan(value):
        return Text("NAN")
    if math.isinf(value):
        return Text("INFINITY" if value > 0 else "(-INFINITY)")
    text = repr(float(value)) + ("f" if t.name == "f32" else "")
    return Text(text if value >= 0 else f"({text})")


def operator_c(op: str, args: list[C], operand: ScalarType) -> C:
    """A scalar operator on scalars or vectors."""
    if op in INFIX:
        return Infix(op, args[0], args[1])
    if op == "neg":
        return Prefix("-", args[0])
    if op == "select":
        return Ternary(args[0], args[1], args[2])
    is_float = operand.name in FLOATS
    if op == "abs" and not is_float:
        return CallC("max", (args[0], Prefix("-", args[0])))  # OpenCL's abs gives an unsigned
    names = {"min": "fmin" if is_float else "min", "max": "fmax" if is_float else "max"}
    names["abs"] = "fabs"
    return CallC(names.get(op, op), tuple(args))


def lanes_c(vector: Text, start: int, stop: int, width: int) -> C:
    """Some lanes of a vector variable."""
    if stop - start == width:
        return vector
    return Text(f"{vector.text}.s{''.join(f'{k:x}' for k in range(start, stop))}")

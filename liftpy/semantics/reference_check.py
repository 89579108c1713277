"""Compare meaning and reference: a primitive is tried at many sizes, on symbolic elements.

All elements are distinct and unknown functions build terms, so that any misplaced element shows. No
array is empty, because an empty list does not show the type of its elements.
"""

from __future__ import annotations

from typing import Any

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint
from liftpy.ir.denote import denote
from liftpy.ir.expr import Param
from liftpy.ir.function import FunVar
from liftpy.ir.nat import Nat, Var
from liftpy.ir.primitive import Primitive, nat_fields
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.walk import substitute_callee, top_down
from liftpy.semantics.free import FreeReader, FreeTerm, Sizes, assignments, number_of
from liftpy.semantics.reference import interpret
from liftpy.semantics.refute import count, grade, hold, spread
from liftpy.semantics.symbolic import components

#: The most elements of an array that is tried.
ELEMENTS = 600


def disagreement(primitive: Primitive, params: tuple[Param, ...]) -> str | None:
    """The first difference between `reference` and the meaning, sizes first; None if none shows."""
    types = [p.type for p in params]
    clauses = list(primitive.requires(*types))
    found = variables(primitive, params, clauses)
    lengths = [next(t.lengths(), None) for t in types]
    allowed = [
        at
        for at in assignments(found)
        if hold(clauses, at) and all(1 <= count(t, at) <= ELEMENTS for t in types)
    ]
    measured = [length for length in lengths if length is not None]
    allowed.sort(key=lambda at: grade(at, measured))
    for at in spread(allowed):
        if (words := disagreement_at(primitive, params, at)) is not None:
            named = ", ".join(f"{name} = {value}" for name, value in sorted(at.items()))
            return f"{named}: {words}"
    return None


def variables(
    primitive: Primitive, params: tuple[Param, ...], clauses: list[Constraint]
) -> list[Var]:
    """The size variables of an instance, sorted by name."""
    sizes: list[tuple[Nat, frozenset[str]]] = [
        (length, length.names()) for p in params for length in p.type.lengths()
    ]
    sizes += [(size, c.names()) for c in clauses for size in (c.left, c.right)]
    fields = [getattr(primitive, name) for name in nat_fields(type(primitive))]
    bound = {name for c in clauses for s in (c.left, c.right) for name in s.names() - c.names()}
    sizes += [(size, size.names() - bound) for size in fields]
    found = {
        a.name: a
        for size, names in sizes
        for a in size.atoms()
        if isinstance(a, Var) and a.name in names
    }
    return [found[name] for name in sorted(found)]


def disagreement_at(primitive: Primitive, params: tuple[Param, ...], at: Sizes) -> str | None:
    """Where `reference` and the meaning differ at given sizes."""
    read = FreeReader(at)
    env = {p: read.leaf(p.name, p.type) for p in params}
    applied = FunCall(primitive, params)
    meant = listed(denote(applied, env, read), read)
    unknown = {
        part.fun.name: caller(read, part.fun)
        for _, part in top_down(applied)
        if isinstance(part, FunCall) and isinstance(part.fun, FunVar)
    }
    numbered = FunCall(substitute_callee(primitive, at), params)
    given = {p: numbered_indices(listed(value, read)) for p, value in env.items()}
    referred = listed(interpret(numbered, given, unknown), read)
    return difference(meant, referred)


def caller(read: FreeReader, function: FunVar) -> Any:
    """An unknown function on terms; a number that the reference passes is an index."""

    def called(*args: Any) -> Any:
        pairs = zip(args, function.params, strict=True)
        terms = (read.of_index(int(a), t) if isinstance(a, int | float) else a for a, t in pairs)
        return read.unknown(function, tuple(terms))

    return called


def listed(value: Value, read: FreeReader) -> Any:
    """A value as nested lists and tuples of terms."""
    match value:
        case Pull():
            return [listed(value[i], read) for i in range(read.number(value.length))]
        case Parts() | tuple():
            return tuple(listed(part, read) for part in components(value))
        case list():
            return [listed(part, read) for part in value]
        case int() | float():
            return FreeTerm(str(value))
        case _:
            return value


def numbered_indices(value: Any) -> Any:
    """Nested lists and tuples of terms, with numbers for those that are i32 values."""
    match value:
        case list():
            return [numbered_indices(part) for part in value]
        case tuple():
            return tuple(map(numbered_indices, value))
        case FreeTerm():
            number = number_of(value)
            return value if number is None or value.args else number
        case _:
            return value


def difference(meant: Any, referred: Any, path: str = "") -> str | None:
    """The first difference between two nested lists, in words."""
    if isinstance(meant, list | tuple) and type(meant) is type(referred):
        if len(meant) != len(referred):
            return (
                f"the meaning has length {len(meant)}{at_path(path)}, the reference {len(referred)}"
            )
        for k, (one, two) in enumerate(zip(meant, referred, strict=True)):
            if (words := difference(one, two, f"{path}[{k}]")) is not None:
                return words
        return None
    same = meant == referred
    return None if same else f"the meaning is {meant}{at_path(path)}, the reference is {referred}"


def at_path(path: str) -> str:
    """A position as text."""
    return f" at {path}" if path else ""

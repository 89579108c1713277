"""What a term depends on, and the replacement of one term by another.

A term may contain constants that stand for values (`SymbolicReader.named`): a fold or an array that
is the argument of an unknown function. The term depends on everything that such a value depends
on, which the term itself does not show. So every proof method uses `dependence`, and substitutes
with `replaced`; both look behind the names.
"""

from __future__ import annotations

from typing import Any

import z3

from liftpy.ir.nat import Var, atom, nat
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.semantics.laws import constants
from liftpy.semantics.symbolic import FoldComponent, Named, SymbolicReader, components
from liftpy.semantics.verdict import Open

SEEN = "what is replaced can be seen in the term"


def named_in(reader: SymbolicReader, term: Any) -> list[Named]:
    """The values that a term mentions directly by a name, without those behind these values."""
    inside = constants(term)
    return [named for named in reader.named if named.constant in inside]


def dependence(reader: SymbolicReader, value: Value) -> set[Any]:
    """Every constant that a value depends on: in it, and behind the names in it."""
    found: set[Any] = set()
    waiting: list[Value] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, z3.ExprRef):
            new = constants(part) - found
            found |= new
            waiting += [n.value for n in reader.named if n.constant in new]
        else:
            waiting += parts(reader, part)
    return found


def parts(reader: SymbolicReader, value: Value) -> list[Value]:
    """The terms and values that a value consists of, at an arbitrary index and state."""
    match value:
        case Pull():
            i = atom(Var(f"d{reader.anywhere()}#"))
            return [reader.terms.nat(value.length), value[i]]
        case tuple() | Parts():
            return list(components(value))
        case FoldComponent(fold=fold, path=path):
            k = atom(Var(f"d{reader.anywhere()}#"))
            at = [reader.terms.nat(nat(index)) for index in path]
            steps = reader.terms.nat(fold.length)
            return [*at, steps, fold.init, fold.step(k, reader.state(fold.init))]
        case _:
            raise Open("every value can be read", f"{type(value).__name__} has unknown parts")


def replaced(reader: SymbolicReader, term: Any, old: Any, new: Any) -> Any:
    """A term with the constant `old` replaced by `new`.

    Raises Open if a name in the term stands for a value that depends on `old`: it would not change.
    """
    for named in named_in(reader, term):
        if not named.constant.eq(old) and old in dependence(reader, named.value):
            raise Open(SEEN, f"{old} stands behind the name of an argument, a fold or an array")
    return z3.substitute(term, (old, new))

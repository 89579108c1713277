"""What a term depends on, and putting one term in the place of another.

A term may hold constants that stand for values (`SymbolicReader.named`): a fold, or an array, that
an unknown function is applied to. What such a value depends on, the term depends on, and that is
not seen in the term itself. Every proof method asks `dependence`, and puts terms into terms by
`replaced`; neither looks at the term alone.
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
    """The values that stand in a term itself by a name; those behind them are not among them."""
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
    """The terms and values that a value is made of, at an index and a state that are any."""
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
    """A term with `new` in the place of the constant `old`.

    Open where a name in the term stands for what depends on `old`: that would stay as it is.
    """
    for named in named_in(reader, term):
        if not named.constant.eq(old) and old in dependence(reader, named.value):
            raise Open(SEEN, f"{old} stands behind the name of an argument, a fold or an array")
    return z3.substitute(term, (old, new))

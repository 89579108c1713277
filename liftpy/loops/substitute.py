"""Substitution in terms: a number for a counter, or a term for a variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from liftpy.ir.nat import Nat, Var, var
from liftpy.views.access import AccessReader
from liftpy.views.terms import (
    Apply,
    Choice,
    FromIndex,
    Lanes,
    Load,
    OfSubgroup,
    OfWorkItem,
    Term,
    Variable,
)

#: The replacement of a name: a number for a counter, a term for a variable.
By: TypeAlias = int | Term


def rebuilt(read: AccessReader, term: Term, change: Callable[[Term], Term]) -> Term:
    """A term with its parts changed."""
    match term:
        case Apply(op, args, _):
            return read.operate(op, tuple(map(change, args)))
        case Choice(condition, then, otherwise):
            return read.either(condition, change(then), change(otherwise))
        case Lanes(init, vector, step=step):
            return replace(term, init=change(init), vector=change(vector), step=change(step))
        case OfSubgroup(op, value):
            return OfSubgroup(op, change(value))
        case OfWorkItem(values, row, item):
            return OfWorkItem(tuple(map(change, values)), row, item)
        case _:
            return term


def renamed(index: Nat, names: Mapping[str, str]) -> Nat:
    """An index with other names for some of its variables, which keep their ranges."""
    found = {a.name: a for a in index.atoms() if isinstance(a, Var) and a.name in names}
    if not found:
        return index
    return index.substitute({name: var(names[name], a.low, a.high) for name, a in found.items()})


@dataclass
class Substitution:
    """Terms with a name replaced. A term may be a part of many: each is made once.

    The replacement of a term in `noted` is noted too.
    """

    read: AccessReader
    noted: set[Term]
    made: dict[tuple[int, str, By], tuple[Term, Term]] = field(default_factory=dict)
    parted: dict[tuple[Nat, str], tuple[Nat, Nat]] = field(default_factory=dict)

    def term(self, term: Term, name: str, by: By) -> Term:
        """A term with a name replaced."""
        if name not in term.names:
            return term
        key = (id(term), name, by)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = term, self._made(term, name, by)
            if term in self.noted:
                self.noted.add(found[1])
        return found[1]

    def _made(self, term: Term, name: str, by: By) -> Term:
        match term:
            case Load():
                return Load(term.memory, self.index(term.index, name, by), term.snapshot)
            case FromIndex(index, t):
                return FromIndex(self.index(index, name, by), t)
            case Choice(condition, then, otherwise):
                index = self.index(condition.index, name, by)
                inside = self.read.inside(index, condition.length)
                return self.read.either(
                    inside, self.term(then, name, by), self.term(otherwise, name, by)
                )
            case OfWorkItem(values, row, item):
                return OfWorkItem(
                    tuple(self.term(value, name, by) for value in values),
                    self.index(row, name, by),
                    self.index(item, name, by),
                )
            case Variable(lane=lane) if not isinstance(by, int):
                if isinstance(by, Variable) and lane is not None:
                    return Variable(by.name, by.type, by.width, lane)
                return by
            case _:
                return rebuilt(self.read, term, lambda part: self.term(part, name, by))

    def index(self, index: Nat, name: str, by: By) -> Nat:
        """An index with a name replaced, in the form that it has when built directly."""
        if name not in index.names():
            return index
        if not isinstance(by, int):
            return renamed(index, {name: by.name}) if isinstance(by, Variable) else index
        number, key = by, (index, name)
        found = self.parted.get(key)
        if found is None:
            still, moving = index.parted(name)
            found = self.parted[key] = still.recombined(), moving
        still, moved = found[0], found[1].substitute({name: number})
        offset = moved.constant  # adding a number keeps `still` recombined
        return (still + moved).recombined() if offset is None else still + offset

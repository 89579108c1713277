"""Rules at given sizes: both sides written out as terms, compared under the declared laws.

Elements are names, except that an i32, which may be an index, is a number that is chosen by its
name and place (`data_index`). Unknown functions build terms, and a term has the normal form of its
laws: a sequence for an associative function, a bag for a commutative one, without neutral elements.
Two terms without such numbers are equal exactly when every function with those laws makes them
equal. A counterexample is therefore readable: sizes, an index, and the two elements there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from liftpy.ir.nat import NatLike, Var, nat
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.types import I32, ArrayType, TupleType, Type, VectorType
from liftpy.rewrite.rule import Assumption
from liftpy.semantics.symbolic import components

Sizes: TypeAlias = Mapping[str, int]


#: The most names and functions in a term that is written out.
LONGEST = 20_000


class TooLongError(Exception):
    """A term is too long to be read; `refute` does without it."""


@dataclass(frozen=True, slots=True)
class FreeTerm:
    """A name, or a function applied to terms; an index is an argument like any other."""

    head: str
    args: tuple[FreeTerm | int, ...] = ()
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        size = 1 + sum(1 if isinstance(a, int) else a.size for a in self.args)
        if size > LONGEST:
            raise TooLongError
        object.__setattr__(self, "size", size)

    def __str__(self) -> str:
        indices = "".join(f"[{a}]" for a in self.args if isinstance(a, int))
        values = ", ".join(str(a) for a in self.args if not isinstance(a, int))
        return f"{self.head}({values}){indices}" if values else self.head + indices


DECIDED = {FreeTerm("True"): True, FreeTerm("False"): False}
"""The results of comparisons of known indices."""


def data_index(name: str, sizes: Sizes, *prefix: FreeTerm | int) -> int:
    """The value of an i32 of a metavariable, which may be an index.

    It differs with the sizes, the name and the place: some are equal, negative, or too large.
    """
    places = sum((3 + k) * i for k, i in enumerate(prefix) if isinstance(i, int))
    return (len(name) + 4 * sum(sizes.values()) + places) % 7 - 1


def is_number_of_index(value: Value) -> bool:
    """Whether a term is an i32 with a known value."""
    return isinstance(value, FreeTerm) and not value.args and number_of(value) is not None


def number_of(term: FreeTerm) -> int | None:
    """The value of an i32; None if it is not known."""
    head, ends, rest = term.head.rpartition(str(I32))
    return int(head) if ends and not rest and head.lstrip("-").isdigit() else None


class FreeReader(ByName):
    """Reads meanings at given sizes as terms; indices may still be naturals over the sizes."""

    def __init__(self, sizes: Sizes, assuming: tuple[Assumption, ...] = ()) -> None:
        self.sizes = sizes
        self.laws: dict[str, dict[str, str | None]] = {}
        for assumption in assuming:
            self.laws.setdefault(assumption.function, {})[assumption.law] = assumption.value
        finite = (known for known in self.laws.values() if "finite" in known)
        # two constants that are neutral to a function are the same
        self.units = {k["finite"]: k.setdefault("neutral", k["finite"]) for k in finite}

    def number(self, value: NatLike) -> int:
        """The value of a natural at the sizes."""
        return value if isinstance(value, int) else nat(value).value(self.sizes)

    def leaf(self, name: str, t: Type, *prefix: FreeTerm | int) -> Value:
        """A metavariable of a type, or an unknown function's result."""
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                return Pull(length, lambda i: self.leaf(name, element, *prefix, self.number(i)))
            case TupleType(elements):
                return tuple(self.leaf(f"{name}.{k}", e, *prefix) for k, e in enumerate(elements))
            case _ if t == I32 and all(isinstance(k, int) for k in prefix):
                return self.of_index(data_index(name, self.sizes, *prefix), t)
            case _:
                return FreeTerm(name, prefix)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        if op == "==" and all(is_number_of_index(a) for a in args):
            return FreeTerm(str(args[0] == args[1]))
        return self.either(*args) if op == "select" else FreeTerm(op, args)

    def literal(self, value: float, t: Type) -> Value:
        return FreeTerm(str(self.units.get(str(value), value)))

    def inside(self, index: Index, length: NatLike) -> Value:
        return 0 <= self.number(index) < self.number(length)

    def clip(self, index: Index, of: Pull) -> Index:
        return min(max(self.number(index), 0), self.number(of.length) - 1)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        return self.either(condition, then, FreeTerm(str(otherwise)))

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        if isinstance(condition, FreeTerm):
            if condition not in DECIDED:
                return FreeTerm("select", (condition, then, otherwise))
            condition = DECIDED[condition]
        return then if condition else otherwise

    def of_index(self, index: Index, t: Type) -> Value:
        return FreeTerm(f"{self.number(index)}{t}")

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        terms = tuple(self.term(a) for a in args)
        zero = self.laws.get(function.name, {}).get("annihilates")
        if zero is not None and terms[0] == FreeTerm(str(zero)):
            return terms[0]
        if zero is None and function.name in self.laws and len(terms) == 2:
            return self.normal(function.name, *terms)
        if function.name in self.laws and len(terms) == 3:
            return self.rescaled(function.name, *terms)
        return self.leaf(function.name, function.type, *terms)

    def normal(self, f: str, left: FreeTerm, right: FreeTerm) -> FreeTerm:
        """The normal form of `f(left, right)` under the laws of `f`."""
        laws = self.laws[f]
        if "neutral" in laws:
            unit = FreeTerm(str(laws["neutral"]))
            if unit in (left, right):
                return right if left == unit else left
        parts: list[Any] = [left, right]
        if "associative" in laws:
            parts = [q for p in parts for q in (p.args if p.head == f else (p,))]
        if "commutative" in laws:
            parts.sort(key=str)
        return FreeTerm(f, tuple(parts))

    def rescaled(self, r: str, m: FreeTerm, n: FreeTerm, s: FreeTerm) -> FreeTerm:
        """The normal form of `r(m, n, s)` under the laws of `r`: moved inside what it rescales."""
        laws = self.laws[r]
        if "keeps" in laws and s == FreeTerm(str(laws["keeps"])):
            return s
        if "rescales" in laws and s.head == laws["rescales"] and s.args[0] == m:
            _, before, x = s.args
            return FreeTerm(s.head, (n, self.rescaled(r, m, n, self.term(before)), x))
        return FreeTerm(r, (m, n, s))

    def term(self, value: Value) -> FreeTerm:
        """A value with all its elements, as a term."""
        match value:
            case Pull():
                elements = (self.term(value[i]) for i in range(self.number(value.length)))
                return FreeTerm("array", tuple(elements))
            case list():
                return FreeTerm("array", tuple(map(self.term, value)))
            case Parts() | tuple():
                return FreeTerm("tuple", tuple(self.term(part) for part in components(value)))
            case _:
                return value

    def bound(self, value: Value, meant: Any, env: Mapping[Any, Value]) -> Value:
        return self.remembered(value)

    def made(self, fun: Any, values: list[Value], result: Value) -> Value:
        """The result; what a function computes for an element is computed once."""
        return result if fun.function is None else self.remembered(result)

    def remembered(self, value: Value) -> Value:
        """A value whose arrays compute each element once, when it is first read."""
        match value:
            case Pull():
                found: dict[int, Value] = {}

                def at(i: Index) -> Value:
                    place = self.number(i)
                    if place not in found:
                        found[place] = self.remembered(value[i])
                    return found[place]

                return Pull(value.length, at)
            case Parts():
                return Parts(self.remembered(value.pairs))
            case tuple():
                return tuple(map(self.remembered, value))
            case _:
                return value

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        for k in range(self.number(length)):
            init = self.kept(step(k, init))
        return init

    def kept(self, value: Value) -> Value:
        """A value with the elements of its arrays computed."""
        if isinstance(value, Pull):
            elements = [self.kept(value[i]) for i in range(self.number(value.length))]
            return Pull(len(elements), lambda i: elements[self.number(i)])
        if isinstance(value, Parts | tuple):
            return tuple(self.kept(part) for part in components(value))
        return value


def differences(
    left: Value, right: Value, read: FreeReader, path: tuple[int, ...] = ()
) -> Iterator[str]:
    """Yield the differences between two values, in words."""
    match left, right:
        case Pull(), Pull():
            one, two = read.number(left.length), read.number(right.length)
            if one != two:
                where = f" at index {shown(path)}" if path else ""
                yield f"the left side has length {one}{where}, the right side {two}"
                return
            for i in range(one):
                yield from differences(left[i], right[i], read, (*path, i))
        case ((Parts() | tuple()), (Parts() | tuple())):
            for a, b in zip(components(left), components(right), strict=True):
                yield from differences(a, b, read, path)
        case _:
            if left != right:
                where = f"element {shown(path)}" if path else "the result"
                yield f"{where} is {left} on the left, {right} on the right"


def shown(path: tuple[int, ...]) -> str:
    """An index as text."""
    return "".join(f"[{i}]" for i in path)


def assignments(variables: list[Var], most: int = 16, limit: int = 4000) -> Iterator[Sizes]:
    """Yield sizes to try, small and larger ones mixed; the same ones on each call."""
    ranges: list[list[int]] = []
    for v in variables:
        low = v.low if v.low is not None else -most // 3
        high = v.high if v.high is not None else most
        ranges.append(list(range(low, high + 1)))
    total = 1
    for r in ranges:
        total *= len(r)
    names = [v.name for v in variables]
    if total <= limit:
        for values in itertools.product(*ranges):
            yield dict(zip(names, values, strict=True))
        return
    step = next(p for p in (7919, 104729, 1299709, 15485863) if total % p)
    position = 1
    for _ in range(limit):
        position = (position + total // 3 + step) % total
        rest, sizes = position, dict[str, int]()
        for name, r in zip(names, ranges, strict=True):
            rest, at = divmod(rest, len(r))
            sizes[name] = r[at]
        yield sizes

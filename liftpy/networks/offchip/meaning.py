"""The nest of a program, read from its meaning at symbolic indices, if it is a sum of products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn

from liftpy.ir.denote import denote
from liftpy.ir.nat import Nat, NatLike, Quotient, Remainder, Var, nat, var
from liftpy.ir.program import Program
from liftpy.ir.pull import ByName, Index, Pull, Value
from liftpy.ir.types import F32, ArrayType, Type
from liftpy.networks.offchip.nest import Array, Nest, NestAxis, NestLoop


class NoNest(Exception):
    """A program is not a sum of products; the message states why."""


@dataclass(frozen=True)
class Read:
    """An element of a parameter, 0 outside the array."""

    array: str
    indices: tuple[Nat, ...]


@dataclass(frozen=True)
class Term:
    """A product of reads, summed over counters; 0 unless each guard's index is inside a length."""

    reads: tuple[Read, ...] = ()
    counters: tuple[str, ...] = ()
    guards: tuple[tuple[Nat, int], ...] = ()
    factor: float = 1


@dataclass(frozen=True)
class Sum:
    """A sum of terms. `running` is the accumulator of a fold that is being read."""

    terms: tuple[Term, ...] = ()
    running: int | None = None


@dataclass
class SumReader(ByName):
    """Evaluates an element of a result to a sum of terms. NoNest for any other expression."""

    extents: dict[str, int] = field(default_factory=dict[str, int])

    def counter(self, kind: str, extent: int) -> Nat:
        """A new counter."""
        name = f"{kind} {len(self.extents)}"
        self.extents[name] = extent
        return var(name, 0, extent - 1)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """Adds sums, or multiplies two terms."""
        if op == "+":
            a, b = args
            running = a.running if a.running is not None else b.running
            return Sum((*a.terms, *b.terms), running)
        if op == "*" and all(len(a.terms) == 1 and a.running is None for a in args):
            a, b = (x.terms[0] for x in args)
            if not (a.counters and b.counters):
                product = Term(
                    (*a.reads, *b.reads),
                    (*a.counters, *b.counters),
                    (*a.guards, *b.guards),
                    a.factor * b.factor,
                )
                return Sum((product,))
        raise NoNest(f"it computes `{op}`")

    def literal(self, value: float, t: Type) -> Value:
        """A constant term; 0 is the empty sum."""
        return Sum((Term(factor=value),)) if value else Sum()

    def inside(self, index: Index, length: NatLike) -> Value:
        """The guard itself; None if it always holds."""
        low, high = nat(index).bounds
        most = nat(length).constant
        if low is not None and high is not None and most is not None and 0 <= low <= high < most:
            return None
        return nat(index), most

    def clip(self, index: Index, of: Pull) -> Index:
        """The index itself: outside the array, the guard makes the term 0."""
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """The guarded terms."""
        if condition is None:
            return then
        if otherwise != 0 or then.running is not None:
            raise NoNest(f"elements outside an array are {otherwise:g}, not 0")
        return Sum(tuple(replace(t, guards=(*t.guards, condition)) for t in then.terms))

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        """The terms of a step, summed over a counter, if the step adds to the accumulator."""
        count = nat(length).constant or 0
        k = self.counter("sum", count)
        name = next(iter(k.names())) if count > 1 else ""
        mark = len(self.extents)
        found = step(k if count > 1 else nat(0), Sum(running=mark))
        if not isinstance(found, Sum) or found.running != mark:
            raise NoNest("a fold does not add to its accumulator")
        counters = (name,) if name else ()
        added = tuple(replace(t, counters=(*t.counters, *counters)) for t in found.terms)
        return Sum((*init.terms, *added), init.running)

    def element_at(self, xs: Pull, index: Value) -> Value:
        """Refuses an index that depends on data."""
        return self.refuse()

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuses all other operations."""
        raise NoNest("it computes something besides sums of products")

    def scan(self, *_: Any, **__: Any) -> Pull:
        """Refuses a scan."""
        return self.refuse()

    either = of_index = unknown = refuse


@dataclass(frozen=True)
class Reading:
    """A program as a nest, with the parameters that are its input and weight, and those it adds.

    `added` are the arrays with the initial values of the sums, such as biases: for each, the
    parameter and its axes. `shape` is that of the program's result, whose elements are in the order
    of the nest's.
    """

    nest: Nest
    data: str
    weight: str
    added: tuple[tuple[str, Array], ...]
    shape: tuple[int, ...]


def nest_of(program: Program) -> Reading:
    """The nest of a program. NoNest, with the reason, if it is no sum of products of two arrays.

    >>> import liftpy as lp
    >>> found = nest_of(lp.workload("matmul/64x48x80"))
    >>> print(found.nest)
    OH=64 OC=80 IC=48: 245760 products
    """
    read = SumReader()
    shapes = {p.name: shape_of(p.type) for p in program.params}
    shape = shape_of(program.type)
    outer = [read.counter("result", n) if n > 1 else nat(0) for n in shape]
    value: Value = denote(
        program.body.body, {p: argument(p.name, p.type) for p in program.params}, read
    )
    for index in outer:
        value = value[index]
    terms = value.terms if isinstance(value, Sum) else ()
    main = [t for t in terms if t.counters]
    rest = [t for t in terms if not t.counters]
    if len(main) != 1 or len(main[0].reads) != 2 or main[0].factor != 1:
        raise NoNest("it is not one sum of products of two arrays")
    if any(len(t.reads) != 1 or t.factor != 1 or t.guards for t in rest):
        raise NoNest("the initial value of the sums is not an element of an array")
    digits = digits_of(main + rest, read.extents)
    one, two = (read_array(r, shapes, digits) for r in main[0].reads)
    names = [r.array for r in main[0].reads]
    if names[0] == names[1]:
        raise NoNest("both factors are elements of one array")
    if any(len(axis.terms) > 1 for axis in two.axes) or (
        names[0] in program.constants and names[1] not in program.constants
    ):
        one, two, names = two, one, names[::-1]
    if any(len(axis.terms) > 1 for axis in two.axes):
        raise NoNest("windows move over both factors")
    check_guards(main[0], shapes)
    result = Array("OUTPUT", tuple(outer_axes(outer, digits)))
    extents = {name: extent for parts in digits.values() for name, extent, _ in parts}
    summed = [name for c in main[0].counters for name, _, _ in digits[c]]
    added = tuple((t.reads[0].array, read_array(t.reads[0], shapes, digits)) for t in rest)
    nest, called = named(one, two, result, extents, summed)
    return Reading(
        nest, names[0], names[1], tuple((n, renamed(a, called)) for n, a in added), shape
    )


def shape_of(t: Type) -> tuple[int, ...]:
    """The lengths of an array of f32. NoNest for other values and open lengths."""
    lengths: list[int] = []
    while isinstance(t, ArrayType):
        length = t.length.constant
        if length is None:
            raise NoNest("its sizes are open")
        lengths.append(length)
        t = t.element
    if t != F32:
        raise NoNest(f"it has arrays of {t}, not of f32")
    return tuple(lengths)


def argument(name: str, t: Type, indices: tuple[Nat, ...] = ()) -> Value:
    """A parameter whose scalars are reads."""
    if isinstance(t, ArrayType):
        return Pull(t.length, lambda i: argument(name, t.element, (*indices, nat(i))))
    return Sum((Term((Read(name, indices),)),))


Digits = Mapping[str, Sequence[tuple[str, int, int]]]
"""For each counter, its digits, the most significant first: name, extent and weight."""


def digits_of(terms: Iterable[Term], extents: Mapping[str, int]) -> Digits:
    """Splits counters whose quotients and remainders are indices, as after `join`, into loops."""
    worths: dict[str, set[int]] = {name: {1} for name in extents}
    for term in terms:
        for index in (*(i for r in term.reads for i in r.indices), *(i for i, _ in term.guards)):
            for atom in index.atoms():
                if isinstance(atom, Quotient | Remainder):
                    divisor = atom.denominator.constant
                    for name in atom.numerator.names():
                        if divisor is None or atom.numerator != var(name, 0, extents[name] - 1):
                            raise NoNest(f"an index is {atom.key}")
                        worths[name].add(divisor)
    found: dict[str, list[tuple[str, int, int]]] = {}
    for name, known in worths.items():
        chain = [*sorted(w for w in known if w < extents[name]), extents[name]]
        if any(b % a for a, b in pairwise(chain)):
            raise NoNest(f"a loop of {extents[name]} is taken apart by {chain[:-1]}")
        parts = [(f"{name}.{w}", up // w, w) for w, up in pairwise(chain)]
        found[name] = [p for p in reversed(parts) if p[1] > 1]
    return found


def axes_of(index: Nat, length: int, digits: Digits) -> list[NestAxis]:
    """An index as axes: one, or one for each digit if the index only joins digits."""
    value = index.substitute(
        {
            name: sum((worth * var(part, 0, extent - 1) for part, extent, worth in parts), nat(0))
            for name, parts in digits.items()
        }
    )
    extents = {part: extent for parts in digits.values() for part, extent, _ in parts}
    start, terms = 0, list[tuple[str, int]]()
    for monomial, factor in value.terms.items():
        match monomial:
            case ():
                start = factor
            case ((Var(name=name), 1),) if factor > 0:
                terms.append((name, factor))
            case _:
                raise NoNest(f"an index is {value}")
    terms.sort(key=lambda term: -term[1])
    joined = [extents[name] for name, _ in terms]
    if (
        start == 0
        and length == math.prod(joined)
        and all(step == math.prod(joined[k + 1 :]) for k, (_, step) in enumerate(terms))
    ):
        return [NestAxis(extents[name], ((name, 1),)) for name, _ in terms] or [NestAxis(1)]
    return [NestAxis(length, tuple(terms), start)]


def outer_axes(outer: Sequence[Nat], digits: Digits) -> list[NestAxis]:
    """The axes of the result."""
    parts = [p for index in outer for name in index.names() for p in digits[name]]
    return [NestAxis(extent, ((part, 1),)) for part, extent, _ in parts] or [NestAxis(1)]


def read_array(read: Read, shapes: Mapping[str, tuple[int, ...]], digits: Digits) -> Array:
    """The array of a read."""
    pairs = zip(read.indices, shapes[read.array], strict=True)
    return Array(read.array, tuple(a for i, n in pairs for a in axes_of(i, n, digits)))


def check_guards(term: Term, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """NoNest unless each guard says that an index of a read is inside its array."""
    known = [(i, n) for r in term.reads for i, n in zip(r.indices, shapes[r.array], strict=True)]
    for index, length in term.guards:
        if not any(n == length and i == index for i, n in known):
            raise NoNest(f"an element is 0 unless {index} is below {length}")


# --- names ----------------------------------------------------------------------------------------


def named(
    data: Array, weight: Array, result: Array, extents: Mapping[str, int], summed: Sequence[str]
) -> tuple[Nest, dict[str, str]]:
    """The nest with the usual names of loops, chosen by the arrays that depend on each; the names.

    Results and weights depend on OC, results and inputs on OH and OW (OW along the input's
    innermost axis) and N, all three on G. IC, KH and KW are summed; KH and KW move a window.
    """
    inner = data.axes[-1]
    windows = {
        name
        for axis in data.axes
        if len(axis.terms) > 1
        for name, _ in axis.terms
        if name in summed
    }
    kinds: dict[str, str] = {}
    along = [name for name in data.loops if name not in weight.loops and name not in summed]
    for name in extents:
        if name not in data.loops and name not in weight.loops:
            raise NoNest("a loop only repeats results")
        if name in windows:
            kinds[name] = "KW" if name in dict(inner.terms) else "KH"
        elif name in summed:
            kinds[name] = "IC"
        elif name in weight.loops:
            kinds[name] = "G" if name in data.loops else "OC"
        else:
            before = [n for n in along if n not in dict(inner.terms)]
            kinds[name] = "OW" if name in dict(inner.terms) else "OH" if name == before[-1] else "N"
    order = sorted(
        extents, key=lambda n: ("G", "N", "OH", "OW", "OC", "IC", "KH", "KW").index(kinds[n])
    )
    called: dict[str, str] = {}
    for name in order:
        kind = kinds[name]
        taken = sum(kinds[n] == kind for n in called)
        called[name] = kind if not taken else f"{kind}{taken + 1}"
    loops = tuple(NestLoop(called[n], extents[n], n in summed) for n in order)
    contiguous = frozenset(
        called[n] for n in along if n in dict(inner.terms) and n in dict(result.axes[-1].terms)
    )
    nest = Nest(
        loops,
        replace(renamed(data, called), name="INPUT"),
        replace(renamed(weight, called), name="WEIGHT"),
        renamed(result, called),
        frozenset(called[n] for n in windows),
        contiguous,
    )
    return nest, called


def renamed(array: Array, called: Mapping[str, str]) -> Array:
    """The array with other names of loops."""
    axes = (
        replace(axis, terms=tuple((called[name], step) for name, step in axis.terms))
        for axis in array.axes
    )
    return replace(array, axes=tuple(axes))

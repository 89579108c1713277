"""The assumed laws of unknown functions, instantiated at the terms of one query.

No axiom is quantified. Each law is stated for the applications in the query, and for those that
these statements introduce, until nothing new appears. This ends, because associativity and
commutativity keep the arguments at the leaves, and rescaling moves inwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import z3

from liftpy.rewrite.rule import Assumption

#: The number of statements at which no more are added.
LIMIT = 4000
#: The laws of a function of three arguments.
RESCALING = frozenset({"rescales", "keeps"})


def subterms(terms: Iterable[Any]) -> Iterator[Any]:
    """Every term inside the terms, each once."""
    seen: set[int] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            waiting += term.children()


def constants(term: Any) -> set[Any]:
    """The constants in a term."""
    return {t for t in subterms([term]) if z3.is_const(t)}


def instances(assuming: tuple[Assumption, ...], terms: Iterable[Any]) -> list[Any]:
    """The laws at the applications in the terms."""
    laws: dict[str, dict[str, str | None]] = {}
    for assumption in assuming:
        laws.setdefault(assumption.function, {})[assumption.law] = assumption.value
    for known in laws.values():
        if "finite" in known:
            known.setdefault("neutral", known["finite"])
    stated = [fact for t in subterms(terms) for fact in equal_units(t, laws)]
    met: set[int] = set()
    waiting = [t for t in subterms(terms) if is_application(t, laws)]
    while waiting and len(stated) < LIMIT:
        term = waiting.pop()
        if term.get_id() in met:
            continue
        met.add(term.get_id())
        known = laws[term.decl().name()]
        if "annihilates" in known:
            stated.append(annihilated(term, known["annihilates"]))
            continue
        for other in rewritten(term, known):
            stated.append(term == other)
            waiting += [t for t in subterms([other]) if is_application(t, laws)]
    return stated


def equal_units(term: Any, laws: dict[str, dict[str, str | None]]) -> Iterator[Any]:
    """Yield that the constants known to be neutral to a function are equal: it has only one."""
    for known in laws.values():
        if "finite" in known and z3.is_const(term):
            sort = term.sort()
            if term.eq(z3.Const(f"{known['finite']}:{sort}", sort)):
                yield term == z3.Const(f"{known['neutral']}:{sort}", sort)


def is_application(term: Any, laws: dict[str, dict[str, str | None]]) -> bool:
    """Whether a term applies a function with laws to values of the types that the laws are for."""
    if not z3.is_app(term) or term.decl().name() not in laws:
        return False
    f = term.decl()
    if "annihilates" in laws[f.name()]:
        return True
    if RESCALING.isdisjoint(laws[f.name()]):
        return f.arity() == 2 and f.domain(0) == f.domain(1) == f.range()
    return f.arity() == 3 and f.domain(0) == f.domain(1) and f.domain(2) == f.range()


def rewritten(term: Any, laws: dict[str, str | None]) -> Iterator[Any]:
    """Yield the terms that equal a term by one use of each law at its root."""
    f = term.decl()
    if f.arity() == 3:
        yield from rescaled(term, laws)
        return
    left, right = term.children()
    if z3.is_app_of(right, z3.Z3_OP_ITE):  # so that the laws apply to each branch
        condition, then, otherwise = right.children()
        yield z3.If(condition, f(left, then), f(left, otherwise))
    if "neutral" in laws:
        unit = z3.Const(f"{laws['neutral']}:{f.range()}", f.range())
        if left.eq(unit):
            yield right
        if right.eq(unit):
            yield left
    if "commutative" in laws:
        yield f(right, left)
    if "associative" in laws:
        if left.decl().eq(f):
            yield f(left.arg(0), f(left.arg(1), right))
        if right.decl().eq(f):
            yield f(f(left, right.arg(0)), right.arg(1))


def annihilated(term: Any, zero: str | None) -> Any:
    """That the function of a term is 0 if its first argument is."""
    f = term.decl()
    nothing, result = (z3.Const(f"{zero}:{sort}", sort) for sort in (f.domain(0), f.range()))
    return f(nothing, *term.children()[1:]) == result


def rescaled(term: Any, laws: dict[str, str | None]) -> Iterator[Any]:
    """Yield the terms that equal `r(m, n, s)` by one use of each law of `r`."""
    r = term.decl()
    m, n, s = term.children()
    if "keeps" in laws:
        kept = z3.Const(f"{laws['keeps']}:{r.range()}", r.range())
        if s.eq(kept):
            yield kept
    if z3.is_app(s) and s.decl().name() == laws.get("rescales") and s.arg(0).eq(m):
        _, before, x = s.children()
        yield s.decl()(n, r(m, n, before), x)

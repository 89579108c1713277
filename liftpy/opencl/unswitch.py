"""Loops whose body tests what the loop does not change are made twice: with tests, and without.

A padded array that is read where it is needed is guarded at every reading, although all readings
of a work-item's block lie inside but for those at the border. Where the guards in a loop do not
depend on its counter, one test in front of it decides for the whole loop (loop unswitching: F. E.
Allen and J. Cocke, A Catalogue of Optimizing Transformations, 1971):

    if (all tests hold) { the loop, nothing guarded } else { the loop as it was }

Both sides compute the same values in the same order. Taken is the outermost loop all of whose tests
are known before it; failing that, an innermost loop with some. A loop with a barrier stays as it
is.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.opencl.c import (
    All,
    Assign,
    Barrier,
    Block,
    C,
    CallC,
    Declare,
    Do,
    For,
    If,
    Infix,
    Prefix,
    Statement,
    Ternary,
    Test,
)


def unswitched(block: Block) -> Block:
    """A block with its guards tested in front of loops where that is possible."""
    return Block([_statement(s) for s in block.statements])


def _statement(s: Statement) -> Statement:
    if not isinstance(s, For):
        return s
    tests = dict.fromkeys(_tests(s.body))
    if not tests or _has_barrier(s.body):
        return s
    counters = {s.var, *_counters(s.body)}
    known = tuple(t for t in tests if counters.isdisjoint(t.index.names()))
    if known and (len(known) == len(tests) or len(counters) == 1):
        free = For(s.var, s.start, s.bound, s.step, _given(s.body, frozenset(known)))
        return If(All(known), Block([free]), Block([s]))
    return For(s.var, s.start, s.bound, s.step, unswitched(s.body))


def _inner(block: Block) -> Iterator[Block]:
    """The blocks directly inside a block."""
    for s in block.statements:
        match s:
            case For(body=body):
                yield body
            case If(_, then, otherwise):
                yield then
                yield otherwise
            case _:
                pass


def _counters(block: Block) -> Iterator[str]:
    yield from (s.var for s in block.statements if isinstance(s, For))
    for inner in _inner(block):
        yield from _counters(inner)


def _has_barrier(block: Block) -> bool:
    here = any(isinstance(s, Barrier) for s in block.statements)
    return here or any(map(_has_barrier, _inner(block)))


def _values(s: Statement) -> tuple[C, ...]:
    """The expressions of a statement, those of inner blocks apart."""
    match s:
        case Declare(value=value) | Do(value):
            return (value,)
        case Assign(target, value):
            return target, value
        case _:
            return ()


def _tests(block: Block) -> Iterator[Test]:
    """The tests of all guarded values."""
    for s in block.statements:
        for value in _values(s):
            yield from _guards(value)
    for inner in _inner(block):
        yield from _tests(inner)


def _guards(c: C) -> Iterator[Test]:
    match c:
        case Ternary(condition, then, otherwise):
            if isinstance(condition, All):
                yield from condition.tests
            yield from _guards(then)
            yield from _guards(otherwise)
        case Infix(_, left, right):
            yield from _guards(left)
            yield from _guards(right)
        case Prefix(_, arg):
            yield from _guards(arg)
        case CallC(_, args):
            for a in args:
                yield from _guards(a)
        case _:
            pass


def _given(block: Block, known: frozenset[Test]) -> Block:
    """A block where some tests hold."""

    def statement(s: Statement) -> Statement:
        match s:
            case Declare(kind, name, value):
                return Declare(kind, name, without(value, known))
            case Assign(target, value):
                return Assign(without(target, known), without(value, known))
            case Do(value):
                return Do(without(value, known))
            case For(var, start, bound, step, body):
                return For(var, start, bound, step, _given(body, known))
            case If(condition, then, otherwise):
                return If(condition, _given(then, known), _given(otherwise, known))
            case Barrier():
                return s

    return Block([statement(s) for s in block.statements])


def without(c: C, known: frozenset[Test]) -> C:
    """An expression where some tests hold."""
    match c:
        case Ternary(condition, then, otherwise):
            then, otherwise = without(then, known), without(otherwise, known)
            if isinstance(condition, All):
                left = tuple(t for t in condition.tests if t not in known)
                return Ternary(All(left), then, otherwise) if left else then
            return Ternary(condition, then, otherwise)
        case Infix(op, left, right):
            return Infix(op, without(left, known), without(right, known))
        case Prefix(op, arg):
            return Prefix(op, without(arg, known))
        case CallC(function, args):
            return CallC(function, tuple(without(a, known) for a in args))
        case _:
            return c

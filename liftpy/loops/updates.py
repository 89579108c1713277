"""`reduceInPlace`: a fold whose accumulator stays in memory with addresses.

A pass stores an element of the accumulator after it has read this element, and reads no other one.
So each element that a pass reads still has the value of the previous pass, in whatever order the
elements are visited and by whichever work-item. All passes distribute the elements over work-items
in the same way (`primitives/in_place.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.loops.nest import Assign, Bind, Loop, Statement
from liftpy.loops.stepping import Stepping, anywhere, memories_of
from liftpy.loops.viewing import Env
from liftpy.primitives import ReduceInPlace
from liftpy.views.terms import Lanes, Load, Memory, Term

NOTHING: tuple[None, frozenset[Memory]] = None, frozenset()


def in_passes(
    emitter: Stepping, fun: ReduceInPlace, init: Expr, xs: Expr, env: Env, dest: Value
) -> None:
    """The passes of a fold over its accumulator in `dest`; the first one does not read it."""
    if not has_addresses(anywhere(dest)):
        raise TypeRefused(
            f"{fun.name} updates its accumulator in global or local memory: "
            "store its result with toGlobal or toLocal, or use reduceSeq for registers"
        )
    own = frozenset(memories_of(dest))
    source = emitter.argument(xs, env)
    length = int(source.length)

    def updated(old: Value, k: Nat | int) -> None:
        emitter.blocks.append([])
        emitter.generate(fun.f.body, {**env, **emitter.computed(fun.f, old, source[k])}, dest)
        made = emitter.blocks.pop()
        check_own(emitter, made, own)
        for statement in every_statement(made):
            before = emitter.checked.get(id(statement), NOTHING)[1]
            emitter.checked[id(statement)] = statement, before | own
        for statement in made:
            emitter.put(statement)

    start = emitter.view(init, env) if emitter.traits_of(init).pure else None
    if length == 0 or start is None:
        emitter.generate(init, env, dest)
        emitter.sequential(length, lambda k: updated(at_once(emitter, dest), k))
        return
    updated(start, 0)
    if length > 1:
        emitter.sequential(length - 1, lambda k: updated(at_once(emitter, dest), k + 1))


def has_addresses(place: Value) -> bool:
    """Whether each scalar of an accumulator has a place in memory that is not private."""
    match place:
        case Parts(pairs):
            return has_addresses(anywhere(pairs))
        case tuple(parts):
            return all(map(has_addresses, parts))
        case _:
            return isinstance(place, Load) and place.memory.space != "private"


def at_once(emitter: Stepping, value: Value) -> Value:
    """An accumulator whose tuples are read whole, before any component is stored."""
    match value:
        case Pull() if isinstance(anywhere(value), Load):
            return value
        case Pull():
            return Pull(value.length, lambda i: at_once(emitter, value[i]))
        case Parts(pairs):
            return Parts(Pull(pairs.length, lambda i: at_once(emitter, pairs[i])))
        case tuple(parts):
            return tuple(
                emitter.variable(part) if isinstance(part, Load) else at_once(emitter, part)
                for part in parts
            )
        case _:
            return value


def check_own(
    emitter: Stepping, statements: Iterable[Statement], memories: frozenset[Memory]
) -> None:
    """Check that a block reads an element of memories only if it stores it, and before it does.

    Statements in the block that belong to a pass of another fold were checked with that pass, which
    may read what an earlier pass has stored.
    """
    found = list(statements)
    stores = [s.target if isinstance(s, Assign) else None for s in found]
    for k, s in enumerate(found):
        if isinstance(s, Loop):
            check_own(emitter, s.body, memories)
        if not isinstance(s, Assign | Bind):
            continue
        checked = emitter.checked.get(id(s), NOTHING)[1]
        for load in loads_of(s.term):
            if load.memory not in memories - checked:
                continue
            if load in stores[:k] or load not in stores[k:]:
                raise TypeRefused(
                    f"{ReduceInPlace.name} cannot update {load.memory.name} in place: a pass reads "
                    f"{load.memory.name}[{load.index}] and stores another element with it\n"
                    "  the other element may already have its new value\n"
                    "  read for each element only the element itself, or use reduceSeq"
                )


def every_statement(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those in loops too."""
    for s in statements:
        yield s
        if isinstance(s, Loop):
            yield from every_statement(s.body)


def loads_of(term: Term) -> Iterator[Load]:
    """The places that a term reads."""
    seen: set[int] = set()
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Load):
            yield part
        waiting += part.parts
        if isinstance(part, Lanes):
            waiting.append(part.step)

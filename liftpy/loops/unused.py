"""Remove variables that nothing reads (dead code elimination).

If a loop is split where the outcome of a guard changes (index set splitting,
`liftpy.loops.unswitch`), each part selects the same one of two values in all its iterations, and no
longer reads the other. Computing a value has no side effects, so a variable that nothing reads can
be removed.
"""

from __future__ import annotations

from liftpy.loops.tree import (
    Block,
    Fetch,
    If,
    Let,
    Simple,
    Statement,
    Store,
    with_blocks,
)


def without_unused(block: Block) -> Block:
    """A block without the variables that no later statement reads."""
    kept, _ = _kept(block)
    return kept


def _kept(block: Block) -> tuple[Block, frozenset[str]]:
    """The statements that are needed, and the variables, counters and ids that they mention."""
    found: list[Statement] = []
    used: set[str] = set()
    for s in reversed(block.statements):
        if isinstance(s, Let) and s.name not in used:
            continue
        found.append(_with_needed(s, used))
    kept = tuple(reversed(found))
    return Block(kept), frozenset(used)


def _with_needed(s: Statement, used: set[str]) -> Statement:
    """A statement with what is needed in its blocks; adds what it mentions to `used`."""

    def inside(block: Block) -> Block:
        kept, mentioned = _kept(block)
        used.update(mentioned)
        return kept

    if isinstance(s, Simple):
        used |= s.names
        if isinstance(s, Store):
            used.update(*(test.index.names() for test in s.silent))
    elif isinstance(s, Fetch):
        used |= s.cell.index.names()
    elif isinstance(s, If):
        used.update(*(test.index.names() for test in s.condition.tests))
    return with_blocks(s, inside)

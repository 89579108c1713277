"""Mutants of the rules: what is proved of them is true at every size that can be written out.

The prover and the writing out share the meanings of primitives, and nothing else.
"""

from dataclasses import replace

import pytest

from liftpy.errors import TypeRefused
from liftpy.ir.expr import FunCall, FunVar, Literal, Primitive, nat_fields
from liftpy.ir.nat import var
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import at, replace_at, top_down
from liftpy.primitives import Reorder, Transpose
from liftpy.rewrite.rules import RULES
from liftpy.semantics.prove import prove
from liftpy.semantics.refute import refutation
from liftpy.semantics.verdict import Proved

pytestmark = pytest.mark.slow

#: One of the many lowerings is enough.
NAMES = [n for n in RULES if not n.startswith(("map_to_", "to_")) or n == "map_to_lcl_1"]


def reordered(part, shift):
    """An array read backwards, or from one element on."""
    i, n = var("i"), part.type.length
    if shift:
        return FunCall(Reorder((i + 1) % n, (i + n - 1) % n), (part,))
    return FunCall(Reorder(n - 1 - i, n - 1 - i), (part,))


def changes(part, rule):
    """What may stand in the place of a part of the right side."""
    if isinstance(part.type, ArrayType):
        yield "reversed", lambda: reordered(part, shift=False)
        yield "rotated", lambda: reordered(part, shift=True)
        if isinstance(part.type.element, ArrayType):
            yield "transposed", lambda: FunCall(Transpose(), (part,))
    if isinstance(part, FunCall) and isinstance(part.fun, FunVar):
        types = part.fun.params
        if len(types) == 2 and types[0] == types[1]:
            yield "swapped", lambda: FunCall(part.fun, part.args[::-1])
    if isinstance(part, FunCall) and isinstance(part.fun, Primitive):
        for name in nat_fields(type(part.fun)):
            bigger = getattr(part.fun, name) + 1
            new = lambda name=name, bigger=bigger: replace(part.fun, **{name: bigger})
            yield f"{name} + 1", lambda new=new: FunCall(new(), part.args)
        if isinstance(part.fun, Transpose):
            yield "not transposed", lambda: part.args[0]
    for param in rule.left.free:
        if param != part and param.type == part.type:
            yield f"{param.name} instead", lambda param=param: param
    if not isinstance(part, Literal):
        literals = [p for _, p in top_down(rule.right) if isinstance(p, Literal)]
        for literal in literals[:1]:
            if literal.type == part.type:
                yield "neutral instead", lambda literal=literal: literal


def mutants(rule):
    """The rule with one part of its right side changed."""
    for path, _ in top_down(rule.right):
        for change, make in changes(at(rule.right, path), rule):
            try:
                right = replace_at(rule.right, path, make())
            except TypeRefused:
                continue
            where = ".".join(map(str, path)) or "all"
            yield f"{change} at {where}", replace(rule, right=right)


@pytest.mark.parametrize("name", NAMES)
def test_proved_mutant_is_true(name):
    """And most mutants are not proved."""
    proved = []
    made = list(mutants(RULES[name]))
    for change, mutant in made:
        if isinstance(prove(mutant, 1000), Proved):
            proved.append(change)
            assert refutation(mutant) is None, change
    assert len(proved) <= len(made) // 2, proved

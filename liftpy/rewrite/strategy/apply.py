"""A rule as a strategy: matched at the root, its conditions decided or left open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from liftpy.errors import RuleRefused, TypeRefused
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint, Divides
from liftpy.ir.expr import Expr
from liftpy.ir.nat import ONE, Nat, NatLike, nat
from liftpy.ir.primitive import Primitive, sizes_agree
from liftpy.ir.walk import Path
from liftpy.rewrite import match as matching
from liftpy.rewrite.instantiate import instantiate
from liftpy.rewrite.proof_cache import is_proved
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategy.result import Failure, Result, Step, Strategy, Success


def rule(law: Rule | str, hints: Mapping[str, Path] | None = None, **sizes: NatLike) -> Strategy:
    """Apply a rule at the root; `sizes` are those that it tunes, `hints` the paths of parts."""
    if isinstance(law, str) and law not in RULES:
        message = f"no rule is named {law}; `liftpy rules` lists them"
        raise RuleRefused(message)
    known = RULES[law] if isinstance(law, str) else law
    if not is_proved(known):
        message = (
            f"rule {known.name} cannot be applied: it has no valid proof; "
            f"run `liftpy prove {known.name}`"
        )
        raise RuleRefused(message)
    if set(sizes) != set(known.tunes):
        message = (
            f"rule {known.name} takes the sizes {', '.join(known.tunes) or 'none'}, "
            f"got {', '.join(sorted(sizes)) or 'none'}"
        )
        raise RuleRefused(message)
    given = {name: nat(size) for name, size in sizes.items()}
    paths = dict(hints or {})
    left = known.left
    word = left.fun if isinstance(left, FunCall) and isinstance(left.fun, Primitive) else None
    arguments = left.args if isinstance(left, FunCall) else ()
    elsewhere = Failure(known.name, "" if word is None else matching.missing(word))
    applied = results_of(known, tuple(sorted(given.items())), tuple(sorted(paths.items())))

    def run(expr: Expr) -> Result:
        # Every rule is tried at every part, and nearly all fail on the outermost primitive.
        if word is not None and not matching.calls(expr, word, arguments):
            return elsewhere
        return applied(expr)

    return run


Hints: TypeAlias = tuple[tuple[str, Path], ...]


@lru_cache(maxsize=1 << 10)
def results_of(known: Rule, tuned: tuple[tuple[str, Nat], ...], hints: Hints) -> Strategy:
    """The results of a rule, kept for expressions that occur again in other derivations."""
    given, paths = dict(tuned), dict(hints)

    @by_identity(1 << 8)
    def run(expr: Expr) -> Result:
        found = matching.match(known, expr, dict(given), paths)
        if isinstance(found, str):
            return Failure(known.name, found)
        open_conditions: list[Constraint] = []
        for condition in (*exactness(given.values()), *matching.conditions(known, found)):
            verdict = condition.known()
            if verdict is False:
                return Failure(known.name, f"it requires that {condition}")
            if verdict is None:
                open_conditions.append(condition)
        new = instantiate(known.right, found)
        check_type(known, expr, new)
        return Success(new, (Step(known.name, (), tuned, hints, tuple(open_conditions)),))

    return run


def exactness(sizes: Iterable[Nat]) -> Iterator[Constraint]:
    """The conditions that each size given as an exact quotient is exact."""
    for size in sizes:
        for over, under in size.fractions:
            if under != ONE:
                yield Divides(under, over)


def check_type(law: Rule, old: Expr, new: Expr) -> None:
    """Raise TypeRefused if a rule changed the type of the expression."""
    for agreement in sizes_agree(new.type, old.type):
        if agreement.known() is False:
            message = f"rule {law.name} changed the type {old.type} to {new.type}: {agreement}"
            raise TypeRefused(message)

"""Strategies: ELEVATE's combinators over rules, with derivations as results.

A strategy is a function from an expression to a `Success`, which holds the new expression and the
steps that led to it, or a `Failure`, which says why. A failure is a value; nothing is caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from liftpy.errors import RuleRefused, TypeRefused
from liftpy.ir.constraint import Constraint, Divides
from liftpy.ir.expr import Expr, sizes_agree
from liftpy.ir.nat import ONE, Nat, NatLike, nat
from liftpy.ir.walk import Path, at, bottom_up, exists, replace_at, top_down
from liftpy.rewrite import match as matching
from liftpy.rewrite.ledger import is_proved
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES

ELSEWHERE = (
    "this is no such part"  # why `where` fails: not worth reporting when other parts are tried
)
FUEL = 2000  # steps after which a strategy is taken to loop; a derivation here has some hundred


@dataclass(frozen=True)
class Step:
    """One rule applied: where, with which sizes and hints, and the conditions it left open."""

    rule: str
    path: Path
    sizes: tuple[tuple[str, Nat], ...] = ()
    hints: tuple[tuple[str, Path], ...] = ()
    conditions: tuple[Constraint, ...] = ()

    def moved(self, prefix: Path) -> Step:
        """The step seen from further out."""
        return Step(self.rule, (*prefix, *self.path), self.sizes, self.hints, self.conditions)


@dataclass(frozen=True)
class Success:
    """A new expression and the steps that led to it."""

    expr: Expr
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Which strategy did not apply, and why."""

    strategy: str
    reason: str

    def __str__(self) -> str:
        return f"{self.strategy}: {self.reason}"


Result: TypeAlias = Success | Failure
Strategy: TypeAlias = Callable[[Expr], Result]
Predicate: TypeAlias = Callable[[Expr], bool]


def rule(law: Rule | str, hints: Mapping[str, Path] | None = None, **sizes: NatLike) -> Strategy:
    """Apply a rule at the root. `sizes` names what it tunes; `hints` says where parts end."""
    known = RULES[law] if isinstance(law, str) else law
    if not is_proved(known):
        message = (
            f"rule {known.name} cannot be applied: it has no proof as it stands; "
            f"run `liftpy prove {known.name}`"
        )
        raise RuleRefused(message)
    if set(sizes) != set(known.tunes):
        message = f"rule {known.name} tunes {list(known.tunes)}, got {sorted(sizes)}"
        raise RuleRefused(message)
    given = {name: nat(size) for name, size in sizes.items()}
    paths = dict(hints or {})

    def run(expr: Expr) -> Result:
        found = matching.match(known, expr, dict(given), paths)
        if isinstance(found, str):
            return Failure(known.name, found)
        open_conditions: list[Constraint] = []
        for condition in (*exactness(given.values()), *matching.conditions(known, found)):
            verdict = condition.known()
            if verdict is False:
                return Failure(known.name, f"it asks that {condition}")
            if verdict is None:
                open_conditions.append(condition)
        new = matching.instantiate(known.right, found)
        check_type(known, expr, new)
        step = Step(
            known.name,
            (),
            tuple(sorted(given.items())),
            tuple(sorted(paths.items())),
            tuple(open_conditions),
        )
        return Success(new, (step,))

    return run


def exactness(sizes: Iterable[Nat]) -> Iterator[Constraint]:
    """A size that is given as an exact quotient asks that the quotient be exact."""
    for size in sizes:
        for over, under in size.fractions:
            if under != ONE:
                yield Divides(under, over)


def check_type(law: Rule, old: Expr, new: Expr) -> None:
    """A rule keeps the type of what it rewrites."""
    for agreement in sizes_agree(new.type, old.type):
        if agreement.known() is False:
            message = f"rule {law.name} changed the type {old.type} to {new.type}: {agreement}"
            raise TypeRefused(message)


# --- combinators ---------------------------------------------------------------------------------


def identity(expr: Expr) -> Result:
    """Change nothing."""
    return Success(expr)


def seq(*strategies: Strategy) -> Strategy:
    """One after another; fails where one fails."""

    def run(expr: Expr) -> Result:
        steps: tuple[Step, ...] = ()
        for strategy in strategies:
            result = strategy(expr)
            if isinstance(result, Failure):
                return result
            expr, steps = result.expr, steps + result.steps
        return Success(expr, steps)

    return run


def choose(*strategies: Strategy) -> Strategy:
    """The first that applies."""

    def run(expr: Expr) -> Result:
        reasons: list[str] = []
        for strategy in strategies:
            result = strategy(expr)
            if isinstance(result, Success):
                return result
            reasons.append(str(result))
        return Failure("choose", "; ".join(reasons))

    return run


def attempt(strategy: Strategy) -> Strategy:
    """The strategy where it applies, else nothing."""
    return choose(strategy, identity)


def repeat(strategy: Strategy) -> Strategy:
    """Again and again until it fails. A strategy that never fails is stopped and named."""

    def run(expr: Expr) -> Result:
        steps: list[Step] = []
        while isinstance(result := strategy(expr), Success):
            expr = result.expr
            steps += result.steps
            if len(steps) > FUEL:
                last = ", ".join(s.rule for s in steps[-10:])
                message = f"a strategy still applies after {FUEL} steps; the last rules were {last}"
                raise RuleRefused(message)
        return Success(expr, tuple(steps))

    return run


def at_path(path: Path, strategy: Strategy) -> Strategy:
    """The strategy on the part at a path."""

    def run(expr: Expr) -> Result:
        if not exists(expr, path):
            return Failure("at_path", f"there is no part at {path}")
        result = strategy(at(expr, path))
        if isinstance(result, Failure):
            return result
        return Success(
            replace_at(expr, path, result.expr), tuple(s.moved(path) for s in result.steps)
        )

    return run


def once(
    strategy: Strategy, parts: Callable[[Expr], Iterable[tuple[Path, Expr]]], name: str
) -> Strategy:
    """The strategy on the first of the parts where it applies."""

    def run(expr: Expr) -> Result:
        reason = ""
        for path, part in parts(expr):
            result = strategy(part)
            if isinstance(result, Success):
                steps = tuple(s.moved(path) for s in result.steps)
                return Success(replace_at(expr, path, result.expr), steps)
            if not reason and result.reason != ELSEWHERE:
                reason = f"; where it came furthest, {result}"
        return Failure(name, f"it applies to no part{reason}")

    return run


def outermost(strategy: Strategy) -> Strategy:
    """ELEVATE's `topDown`: at the first part, outermost first, where it applies."""
    return once(strategy, top_down, "outermost")


def innermost(strategy: Strategy) -> Strategy:
    """ELEVATE's `bottomUp`: at the first part, innermost first, where it applies."""
    return once(strategy, bottom_up, "innermost")


def normalize(strategy: Strategy) -> Strategy:
    """Wherever it applies, until it applies nowhere."""
    return repeat(outermost(strategy))


def where(predicate: Predicate, strategy: Strategy, name: str = "where") -> Strategy:
    """The strategy on expressions that satisfy the predicate."""

    def run(expr: Expr) -> Result:
        return strategy(expr) if predicate(expr) else Failure(name, ELSEWHERE)

    return run


# --- derivations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivation:
    """An expression, the steps, and what they made of it. It replays to the same expression."""

    start: Expr
    steps: tuple[Step, ...]
    result: Expr
    choices: tuple[tuple[str, str], ...] = field(default=())

    @property
    def conditions(self) -> list[tuple[Constraint, Step]]:
        """The conditions that the rules left open, each with the step that asks."""
        return [(c, step) for step in self.steps for c in step.conditions]

    def reassociates(self) -> bool:
        """Whether a step changes the order of float operations."""
        return any(RULES[s.rule].reassociates for s in self.steps if s.rule in RULES)


def derive(start: Expr, strategy: Strategy) -> Derivation:
    """Apply a strategy; RuleRefused with its reason where it fails."""
    result = strategy(start)
    if isinstance(result, Failure):
        message = f"the derivation stopped: {result}"
        raise RuleRefused(message)
    return Derivation(start, result.steps, result.expr)


def replay(start: Expr, steps: Iterable[Step]) -> Iterable[tuple[Step, Expr]]:
    """Each step of a derivation with the expression after it."""
    expr = start
    for step in steps:
        result = at_path(step.path, rule(step.rule, dict(step.hints), **dict(step.sizes)))(expr)
        if isinstance(result, Failure):
            message = f"step {step.rule} at {step.path} does not apply any more: {result}"
            raise RuleRefused(message)
        expr = result.expr
        yield step, expr

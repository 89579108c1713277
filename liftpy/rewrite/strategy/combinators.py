"""Strategies built from strategies that work on the same expression: ELEVATE's combinators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import is_

from liftpy.deadline import check
from liftpy.errors import RuleRefused
from liftpy.ir.expr import Expr
from liftpy.ir.walk import top_down as parts_top_down
from liftpy.rewrite.strategy.result import (
    ELSEWHERE,
    Failure,
    Predicate,
    Result,
    Step,
    Strategy,
    Success,
)

FUEL = 2000  # a strategy with more steps is taken to loop; derivations here have a few hundred
SHOWN = 10  # rules named when a strategy loops


def identity(expr: Expr) -> Result:
    """ELEVATE's `id`: change nothing."""
    return Success(expr)


def fail(reason: str = "it always fails") -> Strategy:
    """Always fail."""
    return lambda _: Failure("fail", reason)


def seq(*strategies: Strategy) -> Strategy:
    """Apply strategies in order; fails if one fails."""

    def run(expr: Expr) -> Result:
        check()
        steps: tuple[Step, ...] = ()
        for strategy in strategies:
            result = strategy(expr)
            if isinstance(result, Failure):
                return result
            expr, steps = result.expr, steps + result.steps
        return Success(expr, steps)

    return run


def choose(*strategies: Strategy) -> Strategy:
    """ELEVATE's left choice: apply the first strategy that succeeds."""
    last: tuple[tuple[Failure, ...], Failure] | None = None

    def run(expr: Expr) -> Result:
        check()
        nonlocal last
        failures: list[Failure] = []
        for strategy in strategies:
            result = strategy(expr)
            if isinstance(result, Success):
                return result
            failures.append(result)
        if last is None or not all(map(is_, failures, last[0])):  # else the failures are the same
            last = tuple(failures), Failure("choose", "; ".join(map(str, failures)))
        return last[1]

    return run


def attempt(strategy: Strategy) -> Strategy:
    """ELEVATE's `try`: apply the strategy if it succeeds, else change nothing."""
    return choose(strategy, identity)


def repeat(strategy: Strategy, fuel: int = FUEL) -> Strategy:
    """Apply the strategy until it fails.

    If it returns to an earlier expression or takes more than `fuel` steps, it never ends:
    RuleRefused names the rules that repeat. This is not a failure, which `attempt` would hide.
    """

    def run(expr: Expr) -> Result:
        check()
        steps: list[Step] = []
        seen = {expr: 0}
        while isinstance(result := strategy(expr), Success):
            expr = result.expr
            steps += result.steps
            if (since := seen.get(expr)) is not None:
                raise RuleRefused(round_trip(steps[since:]))
            seen[expr] = len(steps)
            if len(steps) > fuel or len(seen) > fuel:
                last = ", ".join(s.rule for s in steps[-SHOWN:])
                message = (
                    f"a strategy still applies after {fuel} steps; "
                    f"the last rules were {last}; `repeat_n` limits the number of steps"
                )
                raise RuleRefused(message)
        return Success(expr, tuple(steps))

    return run


def round_trip(cycle: Sequence[Step]) -> str:
    """The message that refuses a strategy which returns to an earlier expression."""
    if not cycle:
        return "a repeated strategy succeeds without a change, as `attempt` does, and never ends"
    names = " > ".join(step.rule for step in cycle[:SHOWN])
    more = f" > ... ({len(cycle)} steps)" if len(cycle) > SHOWN else ""
    return f"a repeated strategy loops: it returns to the same expression by: {names}{more}"


def repeat_n(times: int, strategy: Strategy) -> Strategy:
    """Apply the strategy `times` times; fails if one application fails."""
    return seq(*[strategy] * times)


# --- conditions ----------------------------------------------------------------------------------


def where(predicate: Predicate, strategy: Strategy, name: str = "where") -> Strategy:
    """Apply the strategy to expressions that satisfy the predicate; fails on others."""
    elsewhere = Failure(name, ELSEWHERE)

    def run(expr: Expr) -> Result:
        return strategy(expr) if predicate(expr) else elsewhere

    return run


def satisfies(predicate: Predicate, name: str = "satisfies") -> Strategy:
    """A predicate as a strategy: change nothing if it holds, else fail."""
    return where(predicate, identity, name)


def not_(strategy: Strategy) -> Strategy:
    """Change nothing if the strategy fails; fail if it applies."""

    def run(expr: Expr) -> Result:
        if isinstance(strategy(expr), Failure):
            return Success(expr)
        return Failure("not", "the strategy applies")

    return run


def if_then_else(test: Strategy, then: Strategy, otherwise: Strategy = identity) -> Strategy:
    """`then` if the test applies, else `otherwise`; the result of the test is discarded."""

    def run(expr: Expr) -> Result:
        return (then if isinstance(test(expr), Success) else otherwise)(expr)

    return run


def is_equal_to(other: Expr) -> Strategy:
    """Succeed on exactly this expression, including the names of its variables."""
    return satisfies(lambda expr: expr == other, "is_equal_to")


def contains(predicate: Predicate) -> Strategy:
    """Succeed if some part satisfies the predicate."""

    def run(expr: Expr) -> Result:
        if any(predicate(part) for _, part in parts_top_down(expr)):
            return Success(expr)
        return Failure("contains", "no part satisfies it")

    return run


# --- inspection ----------------------------------------------------------------------------------


def peek(look: Callable[[Expr], object]) -> Strategy:
    """Pass the expression to a function; change nothing."""

    def run(expr: Expr) -> Result:
        look(expr)
        return Success(expr)

    return run


def debug(
    label: str, strategy: Strategy, write: Callable[[str], object] = sys.stderr.write
) -> Strategy:
    """Apply the strategy and write one line on its outcome, by default to stderr."""

    def run(expr: Expr) -> Result:
        result = strategy(expr)
        if isinstance(result, Failure):
            write(f"{label}: failed: {result}\n")
        else:
            rules = ", ".join(step.rule for step in result.steps) or "nothing changed"
            write(f"{label}: {rules}\n")
        return result

    return run

"""Strategies that apply at parts of an expression: ELEVATE's traversals.

If a traversal applies to no part, it reports the reason of the first relevant failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from liftpy.deadline import check
from liftpy.errors import RuleRefused
from liftpy.ir import walk
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.walk import Path, at, children, exists, replace_at, top_down_from, with_child
from liftpy.rewrite.strategy.combinators import FUEL, SHOWN, attempt, choose, repeat, seq, where
from liftpy.rewrite.strategy.result import (
    ELSEWHERE,
    Failure,
    Predicate,
    Result,
    Step,
    Strategy,
    Success,
)

DEEPEST = 200  # an expression with more levels is taken to grow without end

Parts = Iterable[tuple[Path, Expr]]


def at_path(path: Path, strategy: Strategy) -> Strategy:
    """Apply the strategy to the part at a path."""

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


def argument(strategy: Strategy, position: int = 0) -> Strategy:
    """Apply the strategy to an argument of a call."""

    def run(expr: Expr) -> Result:
        if not isinstance(expr, FunCall) or position >= len(expr.args):
            return Failure("argument", f"there is no argument {position}")
        return at_path((position,), strategy)(expr)

    return run


def body(strategy: Strategy) -> Strategy:
    """Apply the strategy to the body of the function that a call runs: a primitive's or a let's."""

    def run(expr: Expr) -> Result:
        if not isinstance(expr, FunCall) or function_of(expr.fun) is None:
            return Failure("body", "this does not call a function with a body")
        return at_path((len(expr.args),), strategy)(expr)

    return run


def function(strategy: Strategy) -> Strategy:
    """Apply the strategy to the body of a primitive's function; fails on a let."""
    return where(
        lambda expr: isinstance(expr, FunCall) and isinstance(expr.fun, Primitive),
        body(strategy),
        "function",
    )


# --- one level -----------------------------------------------------------------------------------


def at_children(
    strategy: Strategy, name: str, *, every: bool = False, most: int | None = None
) -> Strategy:
    """Apply the strategy to the direct parts, left to right: to every one, or where it succeeds."""

    def run(expr: Expr) -> Result:
        check()
        steps: list[Step] = []
        reasons: list[str] = []
        done = 0
        for position, child in enumerate(children(expr)):
            if most is not None and done == most:
                break
            result = strategy(child)
            if isinstance(result, Failure):
                if every:
                    return Failure(name, f"it does not apply to part {position}: {result}")
                reasons.append(str(result))
                continue
            done += 1
            if result.expr is not child:
                expr = with_child(expr, position, result.expr)
            steps += [s.moved((position,)) for s in result.steps]
        if not done and not every:
            return Failure(name, "; ".join(reasons) or "there are no parts")
        return Success(expr, tuple(steps))

    return run


def all_(strategy: Strategy) -> Strategy:
    """ELEVATE's `all`: apply to every direct part; fails if it fails on one."""
    return at_children(strategy, "all", every=True)


def one(strategy: Strategy) -> Strategy:
    """Apply to the first direct part on which it succeeds; fails if there is none."""
    return at_children(strategy, "one", most=1)


def some(strategy: Strategy) -> Strategy:
    """Apply to every direct part on which it succeeds; fails if there is none."""
    return at_children(strategy, "some")


# --- all levels, at one place --------------------------------------------------------------------


def once(strategy: Strategy, parts: Callable[[Expr], Parts], name: str) -> Strategy:
    """Apply the strategy to the first of the parts on which it succeeds."""

    def run(expr: Expr) -> Result:
        check()
        reason = ""
        for path, part in parts(expr):
            result = strategy(part)
            if isinstance(result, Success):
                steps = tuple(s.moved(path) for s in result.steps)
                return Success(replace_at(expr, path, result.expr), steps)
            if not reason and result.reason != ELSEWHERE:
                reason = f"; first failure: {result}"
        return Failure(name, f"it applies to no part{reason}")

    return run


def outermost(strategy: Strategy, such: Predicate | None = None) -> Strategy:
    """Apply to the outermost part on which it succeeds, of those that satisfy `such`."""
    return once(strategy if such is None else where(such, strategy), walk.top_down, "outermost")


def innermost(strategy: Strategy, such: Predicate | None = None) -> Strategy:
    """Apply to the innermost part on which it succeeds, of those that satisfy `such`."""
    return once(strategy if such is None else where(such, strategy), walk.bottom_up, "innermost")


def top_down(strategy: Strategy) -> Strategy:
    """ELEVATE's `topDown`: apply here, else in the first direct part in which it succeeds."""
    return outermost(strategy)


def bottom_up(strategy: Strategy) -> Strategy:
    """ELEVATE's `bottomUp`: apply in the first direct part in which it succeeds, else here."""
    return innermost(strategy)


def position(number: int, strategy: Strategy) -> Strategy:
    """Apply to part `number`, counted from 0, outermost first; fails if it does not succeed."""

    def run(expr: Expr) -> Result:
        for k, (path, _) in enumerate(walk.top_down(expr)):
            if k == number:
                return at_path(path, strategy)(expr)
        return Failure("position", f"there are fewer than {number + 1} parts")

    return run


def skip(number: int, strategy: Strategy) -> Strategy:
    """Skip the first `number` parts on which it succeeds, outermost first; apply to the next."""

    def run(expr: Expr) -> Result:
        left = number

        def later(part: Expr) -> Result:
            nonlocal left
            result = strategy(part)
            if isinstance(result, Success) and left:
                left -= 1
                return Failure("skip", ELSEWHERE)
            return result

        return once(later, walk.top_down, "skip")(expr)

    return run


# --- all levels, at many places ------------------------------------------------------------------


def deep(make: Callable[[Strategy], Strategy]) -> Strategy:
    """A recursive strategy: `deep(lambda again: seq(s, all_(again)))`."""

    def again(expr: Expr) -> Result:
        return made(expr)

    made = make(again)
    return again


def all_top_down(strategy: Strategy) -> Strategy:
    """Apply to every part, outermost first; fails if it fails on one."""
    return deep(lambda again: seq(strategy, all_(again)))


def all_bottom_up(strategy: Strategy) -> Strategy:
    """Apply to every part, innermost first; fails if it fails on one."""
    return deep(lambda again: seq(all_(again), strategy))


def try_all(strategy: Strategy) -> Strategy:
    """Apply to every part on which it succeeds, innermost first; never fails."""
    return all_bottom_up(attempt(strategy))


def down_up(down: Strategy, up: Strategy | None = None) -> Strategy:
    """Apply `down` to every part on the way in and `up` (default `down`) on the way out.

    Fails if either fails on a part.
    """
    return deep(lambda again: seq(down, all_(again), down if up is None else up))


def all_td(strategy: Strategy) -> Strategy:
    """On every branch, apply to the outermost part on which it succeeds; never fails."""
    return deep(lambda again: choose(strategy, all_(again)))


def some_td(strategy: Strategy) -> Strategy:
    """Apply to the outermost parts on which it succeeds; fails if there is none."""
    return deep(lambda again: choose(strategy, some(again)))


def some_bu(strategy: Strategy) -> Strategy:
    """Apply to the innermost parts on which it succeeds; fails if there is none."""
    return deep(lambda again: choose(some(again), strategy))


def everywhere(strategy: Strategy) -> Strategy:
    """Apply once to every part on which it succeeds, outermost first, then inside the result.

    Fails if it applies to no part. A strategy that keeps applying to its own results is refused,
    as in `repeat`.
    """

    def run(expr: Expr) -> Result:
        check()
        steps: list[Step] = []
        waiting: list[Path] = [()]
        reason, done = "it applies to no part", False
        while waiting:
            path = waiting.pop()
            result = at_path(path, strategy)(expr)
            if isinstance(result, Success):
                expr, done = result.expr, True
                steps += result.steps
            elif reason == "it applies to no part" and result.reason != ELSEWHERE:
                reason = f"{reason}; first failure: {result}"
            waiting += reversed(list(paths_below(expr, path)))
            if len(path) > DEEPEST or len(steps) > FUEL:
                names = " > ".join(dict.fromkeys(s.rule for s in steps[-SHOWN:]))
                message = (
                    f"`everywhere` never ends, as it applies to its own results, by: {names}; "
                    "use `top_down` to apply it once"
                )
                raise RuleRefused(message)
        return Success(expr, tuple(steps)) if done else Failure("everywhere", reason)

    return run


def paths_below(expr: Expr, path: Path) -> Iterator[Path]:
    """The paths of the direct parts of the part at a path."""
    for k in range(len(children(at(expr, path)))):
        yield (*path, k)


def normalize(strategy: Strategy, fuel: int = FUEL) -> Strategy:
    """Apply the strategy to the outermost part on which it succeeds, until it applies to none.

    The search resumes where the last step changed the expression. The strategy failed on all
    earlier parts; of these, only the parts that contain that place have changed, and they are tried
    again. So the strategy must depend on nothing but the part.
    """

    def run(expr: Expr) -> Result:
        changed: Path = ()

        def parts(whole: Expr) -> Parts:
            nonlocal changed
            for path, part in top_down_from(whole, changed):
                changed = path
                yield path, part

        return repeat(once(strategy, parts, "outermost"), fuel)(expr)

    return run

"""Derivations: the steps of a strategy as a value that can be printed, stored and replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from liftpy.errors import RuleRefused
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import Constraint
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, Var, nat
from liftpy.ir.program import Program
from liftpy.language.printing.spelling import show_nat
from liftpy.language.text.program import parse, show, show_expr
from liftpy.primitives import Pad
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategy.apply import rule
from liftpy.rewrite.strategy.result import Failure, Step, Strategy
from liftpy.rewrite.strategy.traversals import at_path


@dataclass(frozen=True)
class Derivation:
    """An expression, the steps, and their result; replaying the steps gives the same result."""

    start: Expr
    steps: tuple[Step, ...]
    result: Expr
    choices: tuple[tuple[str, str], ...] = field(default=())

    @property
    def conditions(self) -> list[tuple[Constraint, Step]]:
        """The conditions that rules left open, each with the step that requires it."""
        return [(c, step) for step in self.steps for c in step.conditions]

    def reassociates(self) -> bool:
        """Whether a step changes the order of floating-point operations."""
        return any(RULES[s.rule].reassociates for s in self.steps if s.rule in RULES)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def derive(start: Expr, strategy: Strategy) -> Derivation:
    """Apply a strategy; RuleRefused with the reason if it fails."""
    result = strategy(start)
    if isinstance(result, Failure):
        message = f"the derivation stopped: {result}"
        raise RuleRefused(message)
    return Derivation(start, result.steps, result.expr)


def replay(start: Expr, steps: Iterable[Step]) -> Iterator[tuple[Step, Expr]]:
    """Each step of a derivation with the expression after it; RuleRefused if one does not apply."""
    expr = start
    for step in steps:
        result = at_path(step.path, rule(step.rule, dict(step.hints), **dict(step.sizes)))(expr)
        if isinstance(result, Failure):
            message = f"step {step.rule} at {step.path} no longer applies: {result}"
            raise RuleRefused(message)
        expr = result.expr
        yield step, expr


# --- printed -------------------------------------------------------------------------------------


def step_text(step: Step) -> str:
    """A step in one line: the rule, its place, its sizes, and the conditions it leaves open."""
    place = ".".join(map(str, step.path)) or "top"
    parts = [f"{step.rule} at {place}"]
    if step.sizes:
        parts.append(f"with {', '.join(f'{name} = {show_nat(s)}' for name, s in step.sizes)}")
    if step.conditions:
        parts.append(f"if {'; '.join(map(str, step.conditions))}")
    return " ".join(parts)


def lines(derivation: Derivation, width: int = 100) -> Iterator[str]:
    """A derivation as text: the expression, then each step and its result."""
    yield f"  {indented(derivation.start, width)}"
    for number, (step, after) in enumerate(replay(derivation.start, derivation.steps), 1):
        yield f"{number}. {step_text(step)}"
        yield f"  {indented(after, width)}"


def indented(expr: Expr, width: int) -> str:
    """An expression printed on indented lines."""
    return show_expr(expr, width).replace("\n", "\n  ")


# --- stored --------------------------------------------------------------------------------------


def to_json(program: Program, derivation: Derivation) -> str:
    """A derivation of a program as JSON text: the program, the steps, the result."""
    sizes = {a.name: a for step in derivation.steps for _, s in step.sizes for a in variables(s)}
    data = {
        "program": show(program),
        "sizes": {name: [v.low, v.high] for name, v in sorted(sizes.items())},
        "steps": [step_json(step) for step in derivation.steps],
        "result": show_expr(derivation.result),
    }
    return json.dumps(data, indent=2) + "\n"


def step_json(step: Step) -> dict[str, Any]:
    """A step as JSON data: the rule, its path, sizes and hints."""
    return {
        "rule": step.rule,
        "path": list(step.path),
        "sizes": {name: show_nat(size) for name, size in step.sizes},
        "hints": {name: list(path) for name, path in step.hints},
    }


def from_json(text: str) -> tuple[Program, Derivation]:
    """A stored program and its derivation, replayed; RuleRefused if the result differs."""
    data = json.loads(text)
    program = parse(data["program"])
    steps = [read_step(step, data["sizes"]) for step in data["steps"]]
    expr, taken = program.body.body, list[Step]()
    for step in steps:
        result = at_path(step.path, rule(step.rule, dict(step.hints), **dict(step.sizes)))(expr)
        if isinstance(result, Failure):
            message = f"step {step.rule} at {step.path} no longer applies: {result}"
            raise RuleRefused(message)
        expr, taken = result.expr, [*taken, *result.steps]
    if show_expr(expr) != data["result"]:
        message = (
            f"replaying the stored derivation of {program.name} gives a different result:\n"
            f"{show_expr(expr)}\nthe stored result is\n{data['result']}"
        )
        raise RuleRefused(message)
    return program, Derivation(program.body.body, tuple(taken), expr)


def read_step(data: dict[str, Any], ranges: dict[str, list[int | None]]) -> Step:
    """A step from JSON data."""
    return Step(
        data["rule"],
        tuple(data["path"]),
        tuple((name, read_size(size, ranges)) for name, size in data["sizes"].items()),
        tuple((name, tuple(path)) for name, path in data["hints"].items()),
    )


def read_size(text: str, ranges: dict[str, list[int | None]]) -> Nat:
    """Parse a size, with the ranges of its variables, as part of a program."""
    if text.removeprefix("-").isdecimal():
        return nat(int(text))
    declared = "".join(
        f"size {name}: {'' if low is None else low}..{'' if high is None else high}\n"
        for name, (low, high) in ranges.items()
    )
    call = parse(f"{declared}def p(xs: [1]f32) = xs |> pad({text}, 0, 0)").body.body
    if not isinstance(call, FunCall) or not isinstance(call.fun, Pad):
        message = f"`{text}` in a stored derivation is not a size such as 4 or 2*m"
        raise RuleRefused(message)
    return call.fun.left


def variables(size: Nat) -> Iterator[Var]:
    """The variables in a size."""
    return (a for a in size.atoms() if isinstance(a, Var))


def derived(program: Program, derivation: Derivation) -> Program:
    """The program whose body is the result of a derivation."""
    return Program(program.name, Lambda(program.params, derivation.result), program.constants)

"""A failing program made small: parts are put in place of wholes as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from liftpy.errors import InternalError, LiftError
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, I32, ScalarType
from liftpy.ir.walk import bound_names, replace_at, top_down
from tests.fuzz.generator import scalar_of


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that fails too and that no single step makes smaller."""
    found = True
    while found:
        found = False
        for smaller in steps(program):
            if fails(smaller):
                program, found = smaller, True
                break
    return program


def steps(program: Program) -> Iterator[Program]:
    """Smaller programs, the smallest first."""
    whole = program.body.body
    parts = list(top_down(whole))
    inputs = frozenset(program.params)
    made: list[Expr] = []
    # a part that needs no bound variable as the whole program
    made += [part for path, part in parts if path and part.free <= inputs]
    for path, part in parts:
        # a part in place of the part of its type that it stands in
        within = [e for p, e in top_down(part) if p and e.type == part.type]
        simple: list[Expr] = [Literal(1, I32)] if part.type == I32 else [Literal(1.0, F32)]
        simple = simple if isinstance(part.type, ScalarType) and part.type in {I32, F32} else []
        if part.free <= inputs and not isinstance(part, Param | Literal):
            names = {p.name for p in inputs} | bound_names(whole)
            simple.append(Param(next(n for n in candidates() if n not in names), part.type))
        for new in (*simple, *within):
            try:
                made.append(replace_at(whole, path, new))
            except (LiftError, InternalError):
                continue
    for body in sorted(made, key=size):
        params = tuple(sorted(body.free, key=lambda p: p.name))
        taken = {p.name for p in params}
        scalars = all(isinstance(scalar_of(p.type), ScalarType) for p in params)
        if size(body) < size(whole) and len(taken) == len(params) and params and scalars:
            yield Program(program.name, Lambda(params, body), program.constants & taken)


def candidates() -> Iterator[str]:
    """Names for new inputs."""
    number = 0
    while True:
        yield f"in{number}"
        number += 1


def size(expr: Expr) -> int:
    """How much there is to read: inputs count less than anything else."""
    return sum(1 if isinstance(part, Param) else 3 for _, part in top_down(expr))

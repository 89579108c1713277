"""Compares gradients of random programs with finite differences, in float64 and on a device.

    make soak
    PYTHONPATH=. python tests/fuzz/gradients.py --count 1000

The programs grow as those of `generator.py`, but of floating-point numbers and with smooth
operators. For random directions x and cotangents y, `<J x, y>` by central differences has to equal
`<x, J^T y>` by the gradient, both by its meaning in float64 and as a device computes it. Each array
that the device computes has to equal the meaning of the gradient. The record is written after each
batch of programs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import liftpy as lp
from liftpy.errors import LiftError, TypeRefused
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import F32, ArrayType, ScalarType, Type
from liftpy.language.embedded.operations import operate
from liftpy.language.text.program import show
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from tests.fuzz.generator import DEPTH, Growth, parameter
from tests.fuzz.judge import BATCH, Case, Form, components, lowered_plainly, results
from tests.fuzz.record import commit, record
from tests.fuzz.shapes import begun
from tests.gradient.differences import drawn, inner, listed, meaning
from tests.plainly import PLAINLY

STEPS = (1e-6, 1e-5, 1e-7, 1e-8, 1e-9, 1e-4)  # a wrong gradient disagrees at each of these steps
EXACT, NEAR = 1e-5, 1e-3  # tolerances in float64 and on a device, relative to the sum of terms
SMOOTH = ("sin", "cos", "tanh", "atan", "asinh", "erf")
SHAPED = 0.3  # the fraction of programs that begin with a shape that a family looks for
LARGEST = 1e6  # limit on the numbers of results and gradients: rounding spoils larger differences
REFUSED = ("contains no floating-point number", " more than once\n  add at most")
ALLOWED = {"right", "refused", "constant", "overflow", "ill-conditioned", "large"}


class Smooth(Growth):
    """Growth by operators that have a derivative with respect to the inputs."""

    def converted(self, expr: Expr) -> Expr:
        """A scalar in another type; a floating-point number gets a smooth operator instead."""
        return operate("sin", expr) if expr.type == F32 else super().converted(expr)

    def sum(self, expr: Expr, t: ScalarType = F32) -> Expr:
        """A number that depends on every scalar of a value; no integer depends on an input."""
        if t != F32 and expr.type == F32:
            return Literal(2, t)
        return super().sum(expr, t)

    def numbers(
        self, expr: Expr, other: Expr, constants: list[Literal], scope: tuple[Expr, ...]
    ) -> list[Expr]:
        """Operators on a number."""
        if expr.type != F32:
            whole = tuple(e for e in scope if e.type != F32)
            return super().numbers(expr, other, constants, whole)
        options = super().numbers(expr, other, constants, scope)
        below = operate("+", operate("*", other, other), 1.0)
        smooth = [
            operate("*", expr, other),
            operate("*", expr, expr),
            operate(self.random.choice(SMOOTH), expr),
            operate("/", expr, below),
            operate("sqrt", below),
        ]
        return [*options, *smooth, *smooth]


def differentiable(seed: int) -> Program:
    """The program of a seed."""
    growth = Smooth(seed)
    some = growth.random
    if some.random() < SHAPED:
        params, begin = begun(some)
        body = growth.grow(begin, tuple(params), some.choice((0, 1, 2)), DEPTH)
    else:
        made = [parameter(some, k) for k in range(some.randint(1, 3))]
        params = [Param(p.name, floats(p.type)) for p in made]
        body = growth.grow(some.choice(params), tuple(params), some.randint(2, 5), DEPTH)
    return Program("main", Lambda(tuple(params), body))


def floats(t: Type) -> Type:
    """The type with f32 in place of its scalars."""
    return ArrayType(floats(t.element), t.length) if isinstance(t, ArrayType) else F32


# --- verdicts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derived:
    """A program, its gradient, arguments of both, and the value of the gradient by its meaning."""

    seed: int
    program: Program
    gradient: Program
    arrays: list[np.ndarray]
    cotangents: list[np.ndarray]
    means: tuple[np.ndarray, ...]

    @property
    def given(self) -> dict[str, np.ndarray]:
        """The arguments of the gradient."""
        values = [*self.arrays, *self.cotangents]
        named = zip(self.gradient.params, values, strict=True)
        return {p.name: v.astype(np.float32) for p, v in named}

    def along(self, direction: Sequence[np.ndarray], by: float) -> tuple[np.ndarray, ...]:
        """The result of the program at the arguments moved `by` along a direction."""
        moved = [a + by * d for a, d in zip(self.arrays, direction, strict=True)]
        return meaning(self.program, moved)

    def disagreement(self, gradients: Sequence[np.ndarray], tolerance: float) -> str:
        """Where the gradient disagrees with differences in two directions; empty if it agrees."""
        seeds = self.cotangents or [np.ones(())]
        for seed in (1, 2):
            direction = drawn([a.shape for a in self.arrays], self.seed + seed)
            exact = inner(gradients, direction)
            scale = sum(float(abs(g * d).sum()) for g, d in zip(gradients, direction, strict=True))
            slopes: list[float] = []
            for step in STEPS:
                ends = [self.along(direction, by) for by in (step, -step)]
                slopes.append((inner(ends[0], seeds) - inner(ends[1], seeds)) / (2 * step))
                if abs(slopes[-1] - exact) <= tolerance * max(scale, abs(exact), NEAR):
                    break
            else:
                return f"{exact} along direction {seed}, the differences are {slopes}"
        return ""


def derived(seed: int) -> Derived | str:
    """The gradient of a seed's program, or why there is none to judge.

    `refused` is a program whose results are all integers, or with a border longer than its array.
    """
    program = differentiable(seed)
    try:
        made = lp.gradient(program)
    except TypeRefused as error:
        return "refused" if any(why in str(error) for why in REFUSED) else str(error)
    arrays = rounded(program.params, seed)
    results = meaning(program, arrays)
    cotangents = rounded(made.params[len(program.params) :], seed + 1)
    means = meaning(made, [*arrays, *cotangents])
    numbers = [*results, *means]
    if not all(np.isfinite(n).all() and abs(n).max() < LARGEST for n in numbers):
        return "overflow"
    return Derived(seed, program, made, arrays, cotangents, means)


def rounded(params: Sequence[Param], seed: int) -> list[np.ndarray]:
    """Random numbers for parameters that f32 represents exactly."""
    shapes = [tuple(int(n) for n in getattr(p.type, "shape", ())) for p in params]
    return [a.astype(np.float32).astype(np.float64) for a in drawn(shapes, seed)]


def verdicts(seeds: Iterable[int], session: Session) -> Iterator[tuple[int, str, str]]:
    """The outcome of each seed and its reason, for the gradient in float64 and on a device.

    `constant` is a program whose gradient is 0, `ill-conditioned` one whose gradient in f32 is also
    wrong as NumPy computes it, and `large` one whose plain kernel has too many statements.
    """
    waiting: list[tuple[Case, Derived]] = []
    for seed in seeds:
        found = derived(seed)
        if isinstance(found, str):
            yield seed, found, ""
        elif why := found.disagreement(found.means, EXACT):
            yield seed, "wrong", f"{why}\n{show(found.program)}"
        elif not any(map(np.any, found.means)):
            yield seed, "constant", ""
        else:
            try:
                made, _ = lowered_plainly(found.gradient)
            except TypeRefused as error:
                yield seed, "large" if "is too long" in str(error) else "wrong", str(error)
                continue
            form = Form("plain", "over ids", found.gradient, made)
            waiting.append((Case(seed, found.gradient, form, found.given), found))
    derivations = {case.seed: found for case, found in waiting}
    for case, got in results(session, [case for case, _ in waiting]) if waiting else ():
        found = derivations[case.seed]
        why = str(got) if isinstance(got, LiftError) else on_device(found, listed(got))
        outcome = "wrong" if why else "right"
        if why and not isinstance(got, LiftError):
            plain = listed(tuple(components(lp.evaluate(found.gradient, *found.given.values()))))
            outcome = "ill-conditioned" if differs(plain, found.means) else "wrong"
        yield case.seed, outcome, f"{why}\n{show(found.program)}" if outcome == "wrong" else ""


def on_device(found: Derived, got: tuple[np.ndarray, ...]) -> str:
    """Where the arrays of a device are not the gradient; empty if they are."""
    return differs(got, found.means) or found.disagreement(got, NEAR)


def differs(got: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...]) -> str:
    """The first array that is not near the wanted one, relative to its largest number."""
    for k, (part, right) in enumerate(zip(got, wanted, strict=True)):
        off = abs(part - right).max()
        if not (part.shape == right.shape and off <= NEAR / 10 * abs(right).max()):
            return f"component {k} is off by {off}"
    return ""


def survey(start: int, count: int, device: str) -> tuple[Counter[str], list[str]]:
    """Outcomes and failures of a range of seeds."""
    counts, failures = Counter[str](), list[str]()
    with Session(find_device(device), PLAINLY) as session:
        for first in range(start, start + count, BATCH):
            some = range(first, min(first + BATCH, start + count))
            for seed, outcome, why in verdicts(some, session):
                counts[outcome] += 1
                if outcome not in ALLOWED:
                    failures.append(f"seed {seed}: {outcome}: {why}")
    return counts, failures


def main() -> int:
    """Judges programs until `--count` gradients are judged; returns 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--devices", nargs="+", default=["intel", "pocl"])
    given = parser.parse_args()
    tried, failed = commit(), False
    outcomes = {device: Counter[str]() for device in given.devices}
    for device, counts in outcomes.items():
        first = given.start
        while counts["right"] + counts["wrong"] < given.count:
            found, failures = survey(first, BATCH, device)
            first += BATCH
            counts.update(found)
            failed |= bool(failures)
            print(device, first, dict(counts), *failures, sep="\n", flush=True)
            record("gradients", tried, {"first seed": given.start, "gradients": outcomes})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""The choice `widen=copy` of families that copy tiles: stored numbers are converted in the copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.rewrite.skeleton import Parameter
from liftpy.rewrite.strategies.conversions import stored_numbers_widened
from liftpy.rewrite.strategies.families.form import Choices, Form
from liftpy.rewrite.strategy import Failure, Strategy, seq

WIDEN, COPY = "widen", "copy"


@dataclass(frozen=True)
class Widening:
    """The forms of a stage: as it is, and with its stored numbers converted first.

    With `widen=copy`, a copy of a tile converts each number once, and the tile takes the memory of
    the converted numbers. Without the choice, it holds them as they are stored, and each use
    converts them. `stored` is None if the family matches only the
    converted stage.
    """

    stored: Form | None
    converted: Form

    def choices(self) -> Iterator[Choices]:
        """The choices of `stored`, then those of `converted` with `widen=copy`."""
        if self.stored is not None:
            yield from self.stored.choices()
        yield from (((WIDEN, COPY), *words) for words in self.converted.choices())

    def inside(self, memory: str) -> Iterator[Choices]:
        """The choices of `stored` inside a block; none without it."""
        if self.stored is not None:
            yield from self.stored.inside(memory)

    def parameters(self, choices: dict[str, str]) -> tuple[Parameter, ...]:
        """Those of the form that the choices select."""
        return self.form(choices).parameters(choices)

    def strategy(self, choices: dict[str, str], sizes: dict[str, Parameter]) -> Strategy:
        """The strategy of the selected form; with `widen=copy`, conversions are moved first."""
        made = self.form(choices).strategy(choices, sizes)
        return seq(stored_numbers_widened, made) if WIDEN in choices else made

    def form(self, choices: dict[str, str]) -> Form:
        """The form that the choices select."""
        return self.converted if WIDEN in choices or self.stored is None else self.stored


def with_widening(match: Callable[[Program], Form | str]) -> Callable[[Program], Form | str]:
    """Extend a family's `match` to the stage with its stored numbers converted."""

    def both(program: Program) -> Form | str:
        found = match(program)
        result = stored_numbers_widened(program.body.body)
        if isinstance(result, Failure):
            return found
        body = Lambda(program.params, result.expr)
        converted = match(replace(program, body=body))
        if isinstance(converted, str):
            return found
        return Widening(None if isinstance(found, str) else found, converted)

    return both

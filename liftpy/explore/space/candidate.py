"""A candidate: one derivation of a program with a number for each of its open sizes."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass

from liftpy.explore.space.settings import Settings
from liftpy.explore.space.version import VERSION
from liftpy.ir.by_identity import by_identity
from liftpy.ir.program import Program
from liftpy.language.text.program import show
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategy import step_json

KEY_DIGITS = 12


@by_identity(256)
def program_text(program: Program) -> str:
    """The text of a program, computed once."""
    return show(program, canonical=True)


@functools.cache
def steps_text(skeleton: Skeleton) -> str:
    """The derivation of a skeleton as JSON text, the same for equal derivations."""
    steps = [step_json(step) for step in skeleton.derivation.steps]
    return json.dumps(steps, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, repr=False)
class Candidate:
    """A skeleton of `program` with a size for each of its parameters.

    `ordinal` is its position in the drawing order of its seed, from 0, or -1 if it was not drawn.
    """

    program: Program
    skeleton: Skeleton
    sizes: tuple[tuple[str, int], ...]
    ordinal: int = -1

    def __repr__(self) -> str:
        return f"<Candidate {self.label}>"

    @property
    def point(self) -> dict[str, int]:
        """The sizes by name: a point of its skeleton."""
        return dict(self.sizes)

    @property
    def assignment(self) -> Settings:
        """Everything that distinguishes this candidate: its structural choices, then its sizes.

        `lp.compile` makes the same candidate from it, and the candidate's row stores it.
        """
        return {**self.skeleton.words, **self.point}

    @functools.cached_property
    def key(self) -> str:
        """Twelve hex digits: a hash of everything that determines the candidate's kernels."""
        identity = [
            program_text(self.program),
            self.skeleton.key,
            steps_text(self.skeleton),
            sorted(self.sizes),
            VERSION,
        ]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:KEY_DIGITS]

    @property
    def label(self) -> str:
        """The skeleton and the sizes in one line: `direct(pad=copy) kappa=32 sigma=14`."""
        return label(self.skeleton.key, self.point)


def label(skeleton: str, sizes: dict[str, int]) -> str:
    """A skeleton and sizes in one line."""
    return " ".join([skeleton, *(f"{name}={value}" for name, value in sizes.items())])

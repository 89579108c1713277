"""Families of built-in programs: a name, sizes, and a function that makes the program."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from liftpy.errors import UnknownName
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import Type
from liftpy.language.embedded.lang import Constant, program

Sizes = tuple[int, ...]


def define(name: str, body: Callable[..., Expr], **params: Type | Constant) -> Program:
    """The program with this name, body and parameters."""
    body.__name__ = name
    body.__annotations__ = dict(params)
    return program(body)


@dataclass(frozen=True, slots=True)
class Workload:
    """A built-in program: its name, what it computes, and the operations of the direct algorithm.

    `form` is the pattern of the names of its family: `matmul/MxNxK`.
    """

    name: str
    summary: str
    flops: int
    form: str


@dataclass(frozen=True, slots=True)
class Family:
    """Programs of any sizes: `matmul/64x48x80`. A name without sizes means the first of `listed`.

    `letters` name the sizes, and `summary` is a format string over them. `make` takes the program's
    name and the sizes, `flops` the sizes. A name may end with options, in any order: one of the
    `layouts` (`:nchw`), which `make` takes as `layout`, one of the `types` (`:f16`) of images in
    memory, which it takes as `stored`, and one of the `epilogues` (`:relu`), which it takes as
    `epilogue`. The default is the first layout, the first type, and no epilogue.
    """

    name: str
    letters: tuple[str, ...]
    listed: tuple[Sizes, ...]
    summary: str
    make: Callable[..., Program]
    flops: Callable[..., int]
    layouts: tuple[str, ...] = ()
    epilogues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """The pattern of its names."""
        options = written(self.layouts[1:], self.epilogues, self.types[1:])
        return f"{self.name}/{'x'.join(self.letters)}{options}"

    def workload(self, sizes: Sizes) -> Workload:
        """The built-in program of these sizes."""
        named: dict[str, Any] = dict(zip(self.letters, sizes, strict=True))
        return Workload(
            f"{self.name}/{'x'.join(map(str, sizes))}",
            self.summary.format(**named),
            self.flops(*sizes),
            self.form,
        )

    def workloads(self) -> tuple[Workload, ...]:
        """The programs of the listed sizes."""
        return tuple(map(self.workload, self.listed))

    def program(self, rest: str) -> Program:
        """The program named by `rest`, the part after the family's name; UnknownName if none."""
        kinds = (self.layouts, self.epilogues, self.types)
        text, layout, epilogue, stored = options_of(rest, *kinds)
        sizes = tuple(map(int, text.split("x"))) if SIZES.fullmatch(text) else ()
        if not text:
            sizes = self.listed[0]
        if len(sizes) != len(self.letters):
            many = "s" if len(self.letters) > 1 else ""
            meaning = self.summary.format(**{letter: letter for letter in self.letters})
            example = self.workload(self.listed[0]).name
            why = refused_option(text, *kinds) or (
                f"takes {len(self.letters)} positive whole number{many}, as in {example}"
            )
            raise UnknownName(
                f"no built-in program '{self.name}/{rest}': {self.form} ({meaning}) {why}"
            )
        chosen = {"layout": layout, "epilogue": epilogue, "stored": stored}
        chosen = {option: word for option, word in chosen.items() if word}
        name = "_".join([self.name, "x".join(map(str, sizes)), *chosen.values()])
        return self.make(name.replace("/", "_"), *sizes, **chosen)


def written(*kinds: tuple[str, ...]) -> str:
    """The pattern of the options at the end of a name, one of each kind."""
    return "".join(f"[:{'|'.join(options)}]" for options in kinds if options)


def options_of(rest: str, *kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The part of `rest` before its options, and the option of each kind, "" if there is none.

    Options may be in any order. Text after a colon that is not an option stays in the first part,
    which then is not a valid size or number.
    """
    chosen = ["" for _ in kinds]
    while True:
        before, colon, word = rest.rpartition(":")
        found = (k for k, options in enumerate(kinds) if word in options and not chosen[k])
        kind = next(found, None)
        if not colon or kind is None:
            return (rest, *chosen)
        rest, chosen[kind] = before, word


def refused_option(text: str, *kinds: tuple[str, ...]) -> str:
    """Why the last option in what `options_of` leaves is none; "" if no text follows a colon."""
    _, colon, word = text.rpartition(":")
    if not colon:
        return ""
    if any(word in options for options in kinds):
        return f"takes one option of each kind, and ':{word}' is a second one"
    return f"has no option ':{word}'{', only those in brackets' if any(kinds) else ''}"


SIZES = re.compile(r"[1-9]\d*(x[1-9]\d*)*", re.ASCII)

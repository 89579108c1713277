"""Reads of stored arrays through images: the choice `images`.

An image is another way to read a buffer: in texels of four scalars, through the caches that a GPU
has for textures. Nothing is copied. The arrays are parameters of a program, and stored copies of
them. It is the last step of a family's strategy: the rule `as_image` is applied where a lowered
program reads such an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.types import ArrayType, Type, components, count
from liftpy.ir.walk import Path, children, every_part
from liftpy.primitives import ToGlobal
from liftpy.primitives.lowered import TEXEL, TEXEL_SCALARS
from liftpy.rewrite.strategy import Result, Strategy, at_path, rule, seq

IMAGES = "images"
"""The choice of the arrays that are read through images; without it, there are none."""

CONSTANTS, INPUTS, ALL = "constants", "inputs", "all"
KINDS = {CONSTANTS: (CONSTANTS,), INPUTS: (INPUTS,), ALL: (CONSTANTS, INPUTS)}
"""The words of the choice, with the kinds of the arrays that are read through images."""


def image_words(program: Program) -> tuple[str, ...]:
    """The words of the choice `images` for a stage: of kinds of arrays that it has."""
    kinds = {kind_of(p, program) for p in program.params if has_texels(p.type)}
    return tuple(word for word, wanted in KINDS.items() if kinds.issuperset(wanted))


def kind_of(param: Param, program: Program) -> str:
    """The kind of a parameter."""
    return CONSTANTS if param.name in program.constants else INPUTS


def has_texels(t: Type) -> bool:
    """Whether arrays of a type may be read through images: their scalars may be whole texels."""
    if not isinstance(t, ArrayType):
        return False
    return all(
        part.scalar in TEXEL_SCALARS and (count(part.type).constant or 0) % TEXEL == 0
        for part in components(t)
    )


def through_images(word: str, program: Program) -> Strategy:
    """Read the arrays of the kinds of a word through images, wherever kernels read them."""
    known = {p: kind_of(p, program) for p in program.params}

    def run(expr: Expr) -> Result:
        found = (path for path, kind in stored_arrays(expr, known) if kind in KINDS[word])
        return seq(*(at_path(path, rule("as_image")) for path in found))(expr)

    return run


def stored_arrays(expr: Expr, known: Mapping[Param, str]) -> Iterator[tuple[Path, str]]:
    """Yield where an expression reads parameters, or stored copies of them, each with its kind.

    `known` has the kinds of the parameters. The kernels that make the copies read the parameters
    themselves, as they are; those that compute do not.
    """
    if isinstance(expr, Param):
        if expr in known and has_texels(expr.type):
            yield (), known[expr]
        return
    if not isinstance(expr, FunCall):
        for position, child in enumerate(children(expr)):
            yield from below(position, stored_arrays(child, known))
        return
    kind = kind_of_copy(expr, known)
    if kind is not None:
        if has_texels(expr.type):
            yield (), kind
        return
    named: dict[Param, str] = {}
    if isinstance(expr.fun, Lambda):
        copies = zip(expr.fun.params, expr.args, strict=True)
        named = {p: kind for p, arg in copies if (kind := kind_of_copy(arg, known))}
    for position, child in enumerate(children(expr)):
        if position >= len(expr.args):
            yield from below(position, stored_arrays(child, {**known, **named}))
        elif not (named and kind_of_copy(child, known)):
            yield from below(position, stored_arrays(child, known))


def kind_of_copy(expr: Expr, known: Mapping[Param, str]) -> str | None:
    """The kind of a stored copy of parameters; None if an expression is none.

    All that is made from constants alone is a constant.
    """
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)):
        return None
    if not expr.free or not expr.free <= known.keys():
        return None
    if all(known[p] == CONSTANTS for p in expr.free):
        return CONSTANTS
    return None if any(map(is_arithmetic, every_part(expr))) else INPUTS


def is_arithmetic(part: Expr) -> bool:
    """Whether a part of an expression computes numbers, and does not only move them."""
    return isinstance(part, FunCall) and isinstance(part.fun, UserFun | ScalarOp)


def below(position: int, found: Iterator[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    """The places in a part of an expression."""
    return (((position, *path), kind) for path, kind in found)

"""C expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.ir.scalar_types import RECORDS

C_TYPES = {name: record.c for name, record in RECORDS.items()}


@dataclass(frozen=True, slots=True)
class Text:
    """An atomic C expression."""

    text: str


@dataclass(frozen=True, slots=True)
class Infix:
    """`left op right`."""

    op: str
    left: C
    right: C


@dataclass(frozen=True, slots=True)
class Prefix:
    """`op arg`, such as `-a`."""

    op: str
    arg: C


@dataclass(frozen=True, slots=True)
class Ternary:
    """`condition ? then : otherwise`."""

    condition: C
    then: C
    otherwise: C


@dataclass(frozen=True, slots=True)
class CallC:
    """`function(args)`; also a vector literal `(float4)(args)`."""

    function: str
    args: tuple[C, ...]


C: TypeAlias = Text | Infix | Prefix | Ternary | CallC


def text_of(c: C, *, inside: bool = False) -> str:
    """An expression as text; `inside` another operator it gets parentheses."""
    match c:
        case Text(text):
            return text
        case CallC(function, args):
            return f"{function}({', '.join(map(text_of, args))})"
        case Infix(op, left, right):
            text = f"{text_of(left, inside=True)} {op} {text_of(right, inside=True)}"
        case Prefix(op, arg):
            text = f"{op}{text_of(arg, inside=True)}"
        case Ternary(condition, then, otherwise):
            parts = (text_of(part, inside=True) for part in (condition, then, otherwise))
            text = "{} ? {} : {}".format(*parts)
    return f"({text})" if inside else text


def vector_type(scalar: str, width: int) -> str:
    """`float`, or `float4`."""
    return C_TYPES[scalar] if width == 1 else f"{C_TYPES[scalar]}{width}"

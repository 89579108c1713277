"""The untyped syntax tree of a text. Every node has its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias, cast

from liftpy.source.spans import Span


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of syntax with its place. Places do not affect equality."""

    place: Span


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A variable; `outer` is the number of inner binders of the name that it skips (`^x`: 1)."""

    name: str
    outer: int = 0
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Number(Node):
    """Digits, or `inf` or `nan`, with the type suffix if there is one."""

    digits: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Typed(Node):
    """`x: type`, which only a parameter can be."""

    item: Syntax
    type: TypeSyntax


@dataclass(frozen=True, slots=True)
class Group(Node):
    """Items in parentheses: one, or several (a tuple, or the parameters of a function)."""

    items: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Formal(Node):
    """A parameter, or a name that `let` binds, with its type if it is written."""

    name: str
    type: TypeSyntax | None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Arrow(Node):
    """`x => body`."""

    params: tuple[Formal, ...]
    body: Syntax


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let x = a, y = b in body`."""

    names: tuple[Formal, ...]
    values: tuple[Syntax, ...]
    body: Syntax


@dataclass(frozen=True, slots=True)
class Pipe(Node):
    """`value |> stage`."""

    value: Syntax
    stage: Syntax


@dataclass(frozen=True, slots=True)
class Infix(Node):
    """`left op right`."""

    op: str
    left: Syntax
    right: Syntax


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """`-value`."""

    value: Syntax


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`not value`."""

    value: Syntax


@dataclass(frozen=True, slots=True)
class Project(Node):
    """`value.index`."""

    value: Syntax
    index: int


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`name(args)`."""

    name: Name
    args: tuple[Syntax, ...]


Syntax: TypeAlias = (
    Name
    | Number
    | Truth
    | Typed
    | Group
    | Arrow
    | Let
    | Pipe
    | Infix
    | Minus
    | Not
    | Project
    | Call
)


@dataclass(frozen=True, slots=True)
class ScalarSyntax(Node):
    """The name of a scalar type."""

    name: str


@dataclass(frozen=True, slots=True)
class ArraySyntax(Node):
    """`[length]element`, or `<length>element` for a vector."""

    length: Syntax
    element: TypeSyntax
    vector: bool


@dataclass(frozen=True, slots=True)
class TupleSyntax(Node):
    """`(a, b)`."""

    elements: tuple[TypeSyntax, ...]


TypeSyntax: TypeAlias = ScalarSyntax | ArraySyntax | TupleSyntax


@dataclass(frozen=True, slots=True)
class SizeSyntax(Node):
    """`size m: low..high`; None is no bound."""

    name: str
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class StorageSyntax(Node):
    """`storage w: bf16, flyte16`."""

    name: str
    types: tuple[ScalarSyntax, ...]


@dataclass(frozen=True, slots=True)
class LawSyntax(Node):
    """`associative`, or `neutral 0`."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class FunSyntax(Node):
    """`fun name(params) = body laws ...`."""

    name: Name
    params: tuple[Formal, ...]
    body: Syntax
    laws: tuple[LawSyntax, ...]


@dataclass(frozen=True, slots=True)
class ProgramSyntax(Node):
    """A whole text."""

    sizes: tuple[SizeSyntax, ...]
    funs: tuple[FunSyntax, ...]
    name: str
    params: tuple[Formal, ...]
    body: Syntax
    storage: tuple[StorageSyntax, ...] = ()


def names_in(node: object) -> Iterator[Name]:
    """Every name of a value or a function in a piece of syntax."""
    match node:
        case Name():
            yield node
        case Node():
            for field in fields(node):
                yield from names_in(getattr(node, field.name))
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from names_in(part)
        case _:
            return


def mentions(node: object, name: str, bound: int = 0) -> Iterator[Name]:
    """The uses of a name that refer past all its binders in a piece of syntax, `bound` so far."""
    match node:
        case Name():
            if node.name == name and node.outer >= bound:
                yield node
        case Arrow():
            inner = any(p.name == name for p in node.params)
            yield from mentions(node.body, name, bound + inner)
        case Let():
            yield from mentions(node.values, name, bound)
            inner = any(p.name == name for p in node.names)
            yield from mentions(node.body, name, bound + inner)
        case Node():
            for field in fields(node):
                yield from mentions(getattr(node, field.name), name, bound)
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from mentions(part, name, bound)
        case _:
            return


def word_of(node: Name | Call) -> str:
    """The name of a pipeline step."""
    return node.name if isinstance(node, Name) else node.name.name


def is_number(node: Syntax) -> bool:
    """Whether syntax is a number, perhaps negative."""
    return isinstance(node.value if isinstance(node, Minus) else node, Number)


def is_suffixed(node: Number | Minus) -> bool:
    """Whether a number has a type suffix."""
    number = node.value if isinstance(node, Minus) else node
    return isinstance(number, Number) and bool(number.suffix)


def binders(node: object) -> set[str]:
    """Every name that is bound in a piece of syntax."""
    if isinstance(node, Formal):
        return {node.name}
    parts: tuple[object, ...] = ()
    if isinstance(node, tuple):
        parts = node
    elif isinstance(node, Node):
        parts = tuple(getattr(node, f.name) for f in fields(node))
    found: set[str] = set()
    return found.union(*(binders(part) for part in parts))

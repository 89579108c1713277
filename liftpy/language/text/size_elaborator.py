"""From the syntax of a text to its types, sizes and the fields of its primitives."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from liftpy.errors import InternalError, LiftError, SyntaxRefused, TypeRefused, UnknownName, a_few
from liftpy.ir.formats import QUANTISED
from liftpy.ir.nat import INDEX, Nat, greatest, least, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import SCALARS, ArrayType, ScalarType, TupleType, Type, VectorType
from liftpy.language.extent import product
from liftpy.language.printing import show as printing
from liftpy.language.text.syntax import (
    ArraySyntax,
    Arrow,
    Call,
    Group,
    Infix,
    Minus,
    Name,
    Node,
    Number,
    ScalarSyntax,
    Syntax,
    TupleSyntax,
    TypeSyntax,
    mentions,
)
from liftpy.source.spans import Source

T = TypeVar("T")

SIZE_ONLY = {"//": "rounding down", "/^": "exactly"}

#: The largest number that a size may be.
MOST = 2**63 - 1

#: The most names in scope that a message lists.
KNOWN = 40


@dataclass(frozen=True)
class SizeElaborator:
    """Builds types and sizes; `sizes` are those that the text may use."""

    source: Source
    sizes: dict[str, Nat] = field(default_factory=dict[str, Nat])

    def refuse(self, kind: type[LiftError], what: str, node: Node, *why: str) -> LiftError:
        """An error with its place."""
        return self.source.refusal(kind, what, node.place, *why)

    def placing(self, node: Node, make: Callable[[], T]) -> T:
        """The result of `make`; its refusal, which has no place yet, gets that of `node`."""
        try:
            return make()
        except TypeRefused as error:
            what, *why = str(error).split("\n  ")
            raise self.refuse(TypeRefused, what, node, *why) from error

    def unknown(
        self, what: str, name: str, node: Node, known: Iterable[str], *why: str
    ) -> LiftError:
        """An error for an unknown name, with known names that are similar."""
        names = sorted(set(known))
        near = difflib.get_close_matches(name, names, n=3)
        if near:
            why = (f"did you mean {' or '.join(f'`{n}`' for n in near)}?", *why)
        elif names:
            why = (f"known here: {a_few(names, KNOWN)}", *why)
        return self.refuse(UnknownName, f"no {what} is named `{name}`", node, *why)

    def type(self, node: TypeSyntax) -> Type:
        """A type."""
        match node:
            case ScalarSyntax():
                return self.scalar(node)
            case TupleSyntax():
                return TupleType(tuple(self.type(e) for e in node.elements))
            case ArraySyntax():
                length = self.nat(node.length)
                if length.constant is not None and length.constant < 1:
                    what = f"{length} is not a length"
                    raise self.refuse(TypeRefused, what, node.length, "a length is at least 1")
                element = self.type(node.element)
                return (VectorType if node.vector else ArrayType)(element, length)

    def scalar(self, node: ScalarSyntax) -> ScalarType:
        """A scalar type."""
        if node.name in QUANTISED:
            what = f"`{node.name}` is not a type but a format in which a parameter may be stored"
            why = f"give it the type f32, and declare `storage NAME: {node.name}` before `def`"
            raise self.refuse(UnknownName, what, node, why)
        if node.name not in SCALARS:
            raise self.unknown("type", node.name, node, SCALARS)
        return SCALARS[node.name]

    def nat(self, node: Syntax, index: Mapping[str, Nat] | None = None) -> Nat:
        """A size, which may mention the variables of `index`."""
        match node:
            case Number() if node.digits.isdigit() and not node.suffix:
                return self.bounded(nat(int(node.digits)), node)
            case Name():
                known = ChainMap(dict(index or {}), self.sizes)
                if node.name not in known or node.outer:
                    hint = f"declare it before `def`: size {node.name}: 1..64"
                    raise self.unknown("size", node.name, node, known, hint)
                return known[node.name]
            case Group(items=(item,)):
                return self.nat(item, index)
            case Minus():
                return -self.nat(node.value, index)
            case Infix():
                return self.bounded(self.arithmetic(node, index), node)
            case Call(name=Name(name=("min" | "max") as word), args=(left, right)) if index:
                choose = least if word == "min" else greatest
                return choose(self.nat(left, index), self.nat(right, index))
            case _:
                what = "this is not a size"
                why = "a size is made of whole numbers, declared sizes and + - * // % /^"
                raise self.refuse(SyntaxRefused, what, node, why)

    def bounded(self, size: Nat, node: Node) -> Nat:
        """`size`; TypeRefused if it is a number outside the range of an index."""
        if size.constant is not None and abs(size.constant) > MOST:
            what = "this size is too large"
            why = f"indices are 64-bit integers: a size is at most {MOST}"
            raise self.refuse(TypeRefused, what, node, why)
        return size

    def arithmetic(self, node: Infix, index: Mapping[str, Nat] | None) -> Nat:
        """An operator between sizes."""
        left, right = self.nat(node.left, index), self.nat(node.right, index)
        divides = node.op in {*SIZE_ONLY, "%"}
        if divides and right.constant is not None and right.constant < 1:
            what = f"a size cannot be divided by {right}"
            raise self.refuse(SyntaxRefused, what, node.right, "divide by 1 or more")
        match node.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return self.placing(node, lambda: product(left, right))
            case "//":
                return left // right
            case "%":
                return left % right
            case "/^":
                return left.exact_div(right)
            case op:
                what = f"`{op}` is not defined for sizes"
                why = "divide sizes by `//` (rounding down) or `/^` (exactly)"
                raise self.refuse(SyntaxRefused, what, node, why)

    def index_function(self, node: Syntax) -> Nat:
        """An index function `i => size`, with any name for the index; may use `min` and `max`."""
        if not isinstance(node, Arrow) or len(node.params) != 1:
            what = "an index function is needed here"
            raise self.refuse(SyntaxRefused, what, node, "write it as `i => 3*i % 7`")
        name = node.params[0].name
        if name != INDEX and INDEX in self.sizes:
            for place in mentions(node.body, INDEX):
                what = f"size `{INDEX}` has the same name as the index here"
                raise self.refuse(SyntaxRefused, what, place, "give the size another name")
        return self.nat(node.body, {name: var(INDEX)})

    def number(self, node: Syntax, *, whole: bool) -> float:
        """A number that is a field of a primitive."""
        negative = isinstance(node, Minus)
        digits = node.value if isinstance(node, Minus) else node
        if not isinstance(digits, Number) or (whole and not digits.digits.isdigit()):
            what = f"a {'whole number' if whole else 'number'} is needed here"
            raise self.refuse(
                SyntaxRefused, what, node, f"write one such as {'0' if whole else '0.0'}"
            )
        value = int(digits.digits) if whole else float(digits.digits)
        return -value if negative else value

    def statics(self, cls: type[Primitive], args: tuple[Syntax, ...]) -> dict[str, Nat | float]:
        """The fields of a primitive, from the arguments that come first."""
        pairs = zip(printing.statics(cls), args, strict=False)
        return {f.name: self.static(cls, f.name, str(f.type), arg) for f, arg in pairs}

    def static(self, cls: type[Primitive], name: str, kind: str, node: Syntax) -> Nat | float:
        """An argument that is a field of a primitive."""
        if kind == "Nat":
            return self.nat(node)
        if kind == "IndexFunction":
            return self.index_function(node)
        if kind in {"int", "float"}:
            return self.number(node, whole=kind == "int")
        message = f"no syntax for the field {name}: {kind} of {cls.name}"
        raise InternalError(message)

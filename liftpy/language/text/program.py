"""The text form: `parse` and its inverse `show`.

    fun square(x: f32) = x * x
    def norms(rows: [8][16]f32) = rows |> map(map(square) |> reduce(add, 0))

`parse.py` produces the syntax, and `elaborator.py` the typed expressions. This module declares
sizes, functions and the program itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from liftpy.errors import InternalError, LiftError, SyntaxRefused
from liftpy.ir.expr import Expr, Param
from liftpy.ir.formats import QUANTISED, Format
from liftpy.ir.function import Lambda, Law, UserFun
from liftpy.ir.interning import apart
from liftpy.ir.nat import var
from liftpy.ir.program import Program
from liftpy.ir.storing import with_storage
from liftpy.ir.types import SCALARS, STORAGE
from liftpy.language.embedded.defining import check_laws
from liftpy.language.embedded.prelude import PRELUDE
from liftpy.language.printing import show as printing
from liftpy.language.printing.show import WIDTH
from liftpy.language.text.call_elaborator import WORDS, no_suggestions
from liftpy.language.text.elaborator import Elaborator, Scope
from liftpy.language.text.parse import parse_expr, parse_program
from liftpy.language.text.syntax import (
    Formal,
    FunSyntax,
    ProgramSyntax,
    ScalarSyntax,
    SizeSyntax,
    StorageSyntax,
)
from liftpy.source.spans import Source

AGAIN = "remove one, or rename it"


def parse(text: str) -> Program:
    """The program that a text defines.

    Raises SyntaxRefused, UnknownName or TypeRefused with the place of the error.
    """
    source = Source(text)
    with apart():
        return ProgramElaborator(source).program(parse_program(source))


def parse_expression(text: str, params: Iterable[Param] = (), sizes: Iterable[str] = ()) -> Expr:
    """The expression that a text denotes, with the free variables `params` and sizes `sizes`."""
    source = Source(text)
    elaborator = Elaborator(source, {name: var(name) for name in sizes})
    with apart():
        body = elaborator.value(parse_expr(source), {p.name: (p,) for p in params})
        return elaborator.closed(body)


def show(program: Program, *, canonical: bool = False, width: int | None = WIDTH) -> str:
    """The text of a program: `parse(show(program)) == program`.

    The `canonical` text of equal programs is equal: it writes a function of a tuple with one
    variable, even if the program was written with `(a, b) => ...`. Lines have at most `width`
    columns where possible; for None the body is one line.
    """
    return printing.show(program, PRELUDE, WORDS, width, canonical=canonical)


def show_expr(expr: Expr, width: int | None = None) -> str:
    """The text of an expression on one line, or in lines of at most `width` where possible."""
    return printing.show_expr(expr, width, WORDS)


@dataclass(frozen=True)
class ProgramElaborator(Elaborator):
    """Builds a program from its declarations."""

    def program(self, node: ProgramSyntax) -> Program:
        """The whole text."""
        for size in node.sizes:
            self.declare(size)
        for fun in node.funs:
            self.define(fun)
        params = tuple(self.param(p) for p in node.params)
        scope: Scope = {p.name: (p,) for p in params}
        body = Lambda(params, self.closed(self.value(node.body, scope)))
        constants = frozenset(p.name for p in node.params if p.constant)
        program = Program(node.name, body, constants, self.spans(node, body.body))
        for declared in node.storage:
            program = self.stored(program, declared)
        return program

    def stored(self, program: Program, node: StorageSyntax) -> Program:
        """The program with one more declaration of storage."""
        if node.name in dict(program.storage):
            what = f"the storage of `{node.name}` is declared twice"
            raise self.refuse(SyntaxRefused, what, node, "write one list of types")
        types = [self.format(s) for s in node.types]
        try:
            return with_storage(program, {node.name: types})
        except LiftError as error:
            what, *why = str(error).split("\n  ")
            raise self.refuse(type(error), what, node, *why) from None

    def format(self, node: ScalarSyntax) -> Format:
        """A format by its name; one that does not fit the value is refused later."""
        if node.name not in QUANTISED and node.name not in SCALARS:
            known = (*map(str, STORAGE), *QUANTISED)
            raise self.unknown("storage format", node.name, node, known)
        return QUANTISED.get(node.name) or self.scalar(node)

    def declare(self, node: SizeSyntax) -> None:
        """Declare a size."""
        if node.name in self.sizes:
            raise self.refuse(SyntaxRefused, f"size `{node.name}` is declared twice", node, AGAIN)
        if node.low is not None and node.high is not None and node.low > node.high:
            why = f"{node.low} is above {node.high}", "write the smaller bound first"
            raise self.refuse(SyntaxRefused, f"the range of `{node.name}` is empty", node, *why)
        self.sizes[node.name] = var(node.name, node.low, node.high)

    def define(self, node: FunSyntax) -> None:
        """Define a user function."""
        name = node.name.name
        if name in WORDS and not node.name.quoted:
            what = f"`{name}` is a word of the language"
            raise self.refuse(SyntaxRefused, what, node.name, "give the function another name")
        if name in self.functions and self.functions[name] is not PRELUDE.get(name):
            raise self.refuse(
                SyntaxRefused, f"function `{name}` is defined twice", node.name, AGAIN
            )
        for p in node.params:
            if p.constant:
                what = f"`{p.name}` cannot be constant"
                raise self.refuse(SyntaxRefused, what, p, "only parameters of `def` can be")
        params = tuple(self.param(p) for p in node.params)
        body = self.closed(self.value(node.body, {p.name: (p,) for p in params}))
        laws: list[Law] = []
        for declared in node.laws:
            if declared.name not in {"associative", "commutative", "neutral"}:
                raise self.unknown(
                    "law", declared.name, declared, ("associative", "commutative", "neutral")
                )
            if (declared.value is None) == (declared.name == "neutral"):
                takes = "needs a" if declared.value is None else "takes no"
                what = f"`{declared.name}` {takes} number"
                why = "write `associative`, `commutative` or `neutral 0`"
                raise self.refuse(SyntaxRefused, what, declared, why)
            laws.append(Law(declared.name, declared.value))
        made = UserFun(name, params, body, tuple(laws))
        self.built(node, lambda: check_laws(made), no_suggestions)
        self.functions[name] = made

    def param(self, node: Formal) -> Param:
        """A parameter with its type."""
        if node.type is None:
            message = f"the grammar let parameter {node.name} pass without a type"
            raise InternalError(message)
        return Param(node.name, self.type(node.type))

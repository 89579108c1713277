"""The parser: text to an untyped syntax tree (`syntax.py`).

The parser does not resolve names: `liftpy.language.text.elaborator` does. The grammar is
`grammar.lark` in this folder. No other module uses lark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternRE, TerminalDef

from liftpy.errors import SyntaxRefused
from liftpy.ir.scalars import as_float
from liftpy.ir.types import FLOATS, STORAGE
from liftpy.ir.walk import DEPTH
from liftpy.language.text.syntax import (
    ArraySyntax,
    Arrow,
    Call,
    Formal,
    FunSyntax,
    Group,
    Infix,
    LawSyntax,
    Let,
    Minus,
    Name,
    Not,
    Number,
    Pipe,
    ProgramSyntax,
    Project,
    ScalarSyntax,
    SizeSyntax,
    StorageSyntax,
    Syntax,
    Truth,
    TupleSyntax,
    Typed,
    TypeSyntax,
)
from liftpy.language.text.text_errors import HABITS, NUMBERS, deep, refuse_long, stray
from liftpy.source.spans import Source, Span

# --- the grammar ----------------------------------------------------------------------------------


#: The names of terminals in messages.
WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "PROJECTION": "a component such as `.0`",
    "$END": "the end of the text",
}
#: The parser's stack holds more symbols than this only if a text is nested deeper than `DEPTH`: the
#: longest beginning of a level, `let x = a, y: type =`, is shorter than ten.
PENDING = 10 * DEPTH
#: Sets of terminals that messages name together, the larger ones first.
KINDS = (
    ({"NAME", "NUMBER", "OPEN", "MINUS", "LET", "NOT", "TRUE", "FALSE"}, "an expression"),
    ({"NAME", "NUMBER", "OPEN", "MINUS", "NOT", "TRUE", "FALSE"}, "an operand"),
    ({"NAME", "NUMBER", "OPEN", "MINUS", "TRUE", "FALSE"}, "an operand"),
    ({"NAME", "OPEN", "BRACKET", "LESS"}, "a type"),
    ({"PLUS", "MINUS", "STAR", "SLASH", "FLOOR", "PERCENT", "EXACT"}, "an operator"),
    ({"LESS", "AT_MOST", "SAME", "OTHER", "MORE", "AT_LEAST"}, "a comparison"),
)


@cache
def grammar(*, dotted: bool = False) -> Lark:
    """The parser, made at its first use; `dotted` for conditions (`parse_condition`)."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    fractions = "|".join(t.name for t in (*FLOATS, *STORAGE))
    return Lark(
        text.replace("FRACTIONS", fractions).replace("SUFFIXES", "|".join(NUMBERS)),
        parser="lalr",
        lexer="basic",
        start=["start", "expression"],
        propagate_positions=True,
        tree_class=Branch,
        maybe_placeholders=True,
        edit_terminals=with_dots if dotted else None,
    )


def with_dots(terminal: TerminalDef) -> None:
    """Allow dots in names."""
    if terminal.name == "NAME":
        terminal.pattern = PatternRE(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@cache
def spelling(terminal: str) -> str:
    """The name of a terminal in a message."""
    if terminal in WORDS:
        return WORDS[terminal]
    return f"`{grammar().get_terminal(terminal).pattern.value}`"


def allowed(terminals: set[str]) -> str:
    """The terminals that are allowed, as text."""
    rest = terminals - {"QUOTED", "CARETS"}
    if "NAME" in rest:
        rest -= {"SIZE", "STORAGE"}  # here these would be names, not declarations
    said: list[str] = []
    for kind, word in KINDS:
        if kind <= rest:
            said.append(word)
            rest -= kind
    said += sorted(spelling(terminal) for terminal in rest)
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


class Branch(Tree[Token]):
    """A node of lark's tree; its constructor refuses a tree that is too high.

    So parsing stops at the place where a text is nested too deeply.
    """

    def __init__(self, data: str, children: list[Any], meta: Any = None) -> None:
        super().__init__(data, children, meta)
        # For a repetition, lark makes a new node for each item and moves the children to it.
        inner = [] if data.startswith("_") else branches(self)
        self.height: int = 1 + max((child.height for child in inner), default=0)
        if self.height > DEPTH:
            raise TooDeep(place(inner[-1]).start)


class TooDeep(Exception):
    """Raised at the offset where a text is nested too deeply."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def tree(source: Source, start: Literal["start", "expression"], *, dotted: bool = False) -> Branch:
    """Lark's tree of a text."""
    refuse_long(source)
    reading = grammar(dotted=dotted).parse_interactive(source.text, start)
    try:
        for token in reading.iter_parse():
            check_pending(len(reading.parser_state.state_stack), token)
        return reading.feed_eof()
    except UnexpectedCharacters as error:
        raise stray(source, error.pos_in_stream) from error
    except UnexpectedToken as error:
        raise unexpected(source, error, reading.accepts()) from error
    except TooDeep as error:
        raise deep(source, error.at) from error


def check_pending(waiting: int, token: Token) -> None:
    """Raises TooDeep if the parser's stack is larger than any allowed text needs."""
    if waiting > PENDING:
        raise TooDeep(token.start_pos or 0)


def unexpected(source: Source, error: UnexpectedToken, accepts: set[str]) -> SyntaxRefused:
    """The refusal of a token that the grammar does not allow at its place."""
    token = error.token
    if token.type == "$END":
        end = len(source.text.rstrip())
        found, place = "the text ends too early", Span(end, end + 1)
    else:
        start = token.start_pos or 0
        found, place = f"`{token}` is not allowed here", Span(start, start + len(token))
        if str(token).isalpha() and token.type != "NAME":
            found = f"`{token}` is a reserved word and is not allowed here"
    at = place.start
    if token.type == "DEF":
        return source.refusal(
            SyntaxRefused,
            "a second `def` is not allowed",
            place,
            "a text defines one program; `fun` defines functions",
        )
    hints = [HABITS.get(source.text[at : at + 2]) or HABITS.get(source.text[at : at + 1], "")]
    if at and not hints[0]:
        before = source.text[:at].rstrip()
        hints = [HABITS.get(source.text[at - 1 : at + 1], "")]
        hints += [HABITS["lambda"]] if before.endswith("lambda") else []
    return source.refusal(SyntaxRefused, found, place, f"allowed: {allowed(accepts)}", *hints)


# --- from lark's tree to ours -------------------------------------------------------------------

INFIX = {
    "less": "<",
    "at_most": "<=",
    "equal": "==",
    "unequal": "!=",
    "both": "and",
    "either": "or",
    "more": ">",
    "at_least": ">=",
    "plus": "+",
    "minus": "-",
    "times": "*",
    "over": "/",
    "quotient": "//",
    "remainder": "%",
    "exact": "/^",
}


def parse_program(source: Source) -> ProgramSyntax:
    """The syntax of a text with declarations and one `def`."""
    return NodeBuilder(source).program(tree(source, "start"))


def parse_expr(source: Source) -> Syntax:
    """The syntax of a text that is one expression."""
    return NodeBuilder(source).expr(branches(tree(source, "expression"))[0])


def parse_condition(source: Source) -> Syntax:
    """The syntax of a condition on sizes, whose names may have dots (`score.kappa <= 8`).

    The sizes of a program's stages have such names. The text of a program puts them in backquotes.
    """
    return NodeBuilder(source).expr(branches(tree(source, "expression", dotted=True))[0])


def branches(node: Branch) -> list[Branch]:
    """The children of a node that has only nodes below it; omitted ones are skipped."""
    return [child for child in node.children if isinstance(child, Branch)]


def tokens(node: Branch) -> list[str]:
    """The tokens that are direct children of a node."""
    return [str(child) for child in node.children if isinstance(child, Token)]


def place(node: Branch) -> Span:
    """The place of a node."""
    return Span(node.meta.start_pos, node.meta.end_pos)


class NodeBuilder:
    """Builds `Node`s from lark's tree, and refuses errors that the grammar does not detect."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def program(self, node: Branch) -> ProgramSyntax:
        """A whole text."""
        *declarations, definition = branches(node)
        sizes: list[SizeSyntax] = []
        funs: list[FunSyntax] = []
        storage: list[StorageSyntax] = []
        for declaration in declarations:
            if declaration.data == "fun":
                funs.append(self.fun(declaration))
            elif declaration.data == "storage":
                storage.append(self.storage(declaration))
            else:
                sizes += self.sizes(declaration)
        name, *params, body = branches(definition)
        return ProgramSyntax(
            place(node),
            tuple(sizes),
            tuple(funs),
            self.name(name).name,
            self.formals(params),
            self.expr(body),
            tuple(storage),
        )

    def storage(self, node: Branch) -> StorageSyntax:
        """`storage w: bf16, flyte16`."""
        value, *types = (self.name(child) for child in branches(node))
        return StorageSyntax(
            place(node), value.name, tuple(ScalarSyntax(t.place, t.name) for t in types)
        )

    def sizes(self, node: Branch) -> list[SizeSyntax]:
        """`size m, n: low..high`; without a range, any size from 0."""
        bounds = [child for child in branches(node) if child.data == "range"]
        low, high = self.range(bounds[0]) if bounds else (0, None)
        names = [self.name(child) for child in branches(node) if child.data == "name"]
        return [SizeSyntax(name.place, name.name, low, high) for name in names]

    def range(self, node: Branch) -> tuple[int | None, int | None]:
        """`low..high`; either bound may be omitted."""
        ends = (child if isinstance(child, Branch) else None for child in node.children)
        low, high = (self.bound(end) for end in ends)
        return low, high

    def bound(self, node: Branch | None) -> int | None:
        """An integer with its sign; None if it is omitted."""
        if node is None:
            return None
        value = self.signed(node)
        if not float(value).is_integer():
            raise self.source.refusal(
                SyntaxRefused,
                "a bound of a size must be a whole number",
                place(node),
                "write a range such as `1..64`, `1..` or `..64`",
            )
        return int(value)

    def signed(self, node: Branch) -> float:
        """A number with its sign."""
        *sign, number = tokens(node)
        digits = self.number(number, place(node)).digits
        value = as_float(int(digits) if digits.isdigit() else float(digits))
        return -value if sign else value

    def fun(self, node: Branch) -> FunSyntax:
        """A user function."""
        name, *rest = branches(node)
        laws = [child for child in rest if child.data == "laws"]
        *params, body = [child for child in rest if child.data != "laws"]
        return FunSyntax(
            place(node),
            self.name(name),
            self.formals(params),
            self.expr(body),
            tuple(self.law(law) for law in branches(laws[0])) if laws else (),
        )

    def law(self, node: Branch) -> LawSyntax:
        """A declared law."""
        name, *value = branches(node)
        return LawSyntax(
            place(node), self.name(name).name, self.signed(value[0]) if value else None
        )

    def formals(self, nodes: list[Branch]) -> tuple[Formal, ...]:
        """The parameters of a program or a user function; names must differ."""
        formals = [
            Formal(place(node), self.name(name).name, self.type(t), node.data == "constant")
            for params in nodes
            for node in branches(params)
            for name, t in (branches(node),)
        ]
        self.distinct(formals)
        return tuple(formals)

    def distinct(self, formals: Sequence[Formal]) -> None:
        """Refuse a name that one binder binds twice."""
        bound: set[str] = set()
        for formal in formals:
            if formal.name in bound:
                raise self.source.refusal(
                    SyntaxRefused,
                    f"`{formal.name}` is bound twice",
                    formal.place,
                    "give each parameter a different name",
                )
            bound.add(formal.name)

    def name(self, node: Branch) -> Name:
        """A name, plain or in backquotes."""
        (text,) = tokens(node)
        return Name(place(node), text.strip("`"), quoted=text.startswith("`"))

    def number(self, text: str, where: Span) -> Number:
        """A number with its type suffix."""
        for suffix in sorted(NUMBERS, key=len, reverse=True):  # `bf16` before `f16`
            if text.endswith(suffix):
                return Number(where, text.removesuffix(suffix), suffix)
        return Number(where, text, "")

    def type(self, node: Branch) -> TypeSyntax:
        """A type."""
        where, children = place(node), branches(node)
        match node.data:
            case "scalar":
                return ScalarSyntax(where, self.name(children[0]).name)
            case "tuple_of":
                return TupleSyntax(where, tuple(self.type(child) for child in children))
            case kind:
                length, element = children
                return ArraySyntax(
                    where, self.expr(length), self.type(element), kind == "vector_of"
                )

    def expr(self, node: Branch) -> Syntax:
        """An expression, a function, or a size; only the context determines which."""
        where, children = place(node), branches(node)
        match node.data:
            case "variable":
                name = self.name(children[0])
                return Name(where, name.name, len("".join(tokens(node))), name.quoted)
            case "number":
                return self.number(tokens(node)[0], where)
            case "true" | "false":
                return Truth(where, node.data == "true")
            case "typed":
                return Typed(where, self.expr(children[0]), self.type(children[1]))
            case "group":
                return Group(where, tuple(self.expr(child) for child in children))
            case "arrow":
                return Arrow(where, self.head(children[0]), self.expr(children[1]))
            case "let":
                return self.let(where, children)
            case "into":
                return Pipe(where, *(self.expr(child) for child in children))
            case "negative":
                return Minus(where, self.expr(children[0]))
            case "denial":
                return Not(where, self.expr(children[0]))
            case "project":
                return Project(where, self.expr(children[0]), int(tokens(node)[0][1:]))
            case "call":
                name, *args = children
                return Call(where, self.name(name), tuple(self.expr(arg) for arg in args))
            case op:
                return Infix(where, INFIX[op], *(self.expr(child) for child in children))

    def let(self, where: Span, children: list[Branch]) -> Let:
        """`let`."""
        *bindings, body = children
        names: list[Formal] = []
        values: list[Syntax] = []
        for binding in bindings:
            name, *t, value = branches(binding)
            formal = Formal(place(name), self.name(name).name, self.type(t[0]) if t else None)
            names.append(formal)
            values.append(self.expr(value))
        self.distinct(names)
        return Let(where, tuple(names), tuple(values), self.expr(body))

    def head(self, node: Branch) -> tuple[Formal, ...]:
        """The syntax before `=>`, as parameters."""
        if node.data == "name":
            name = self.name(node)
            return (Formal(name.place, name.name, None),)
        formals: list[Formal] = []
        for child in branches(node):
            t = None
            item = self.expr(child)
            if isinstance(item, Typed):
                item, t = item.item, item.type
            if not isinstance(item, Name) or item.outer:
                raise self.source.refusal(
                    SyntaxRefused,
                    "only names are allowed before `=>`",
                    item.place,
                    "write `x => body`, `(x, y) => body` or `(x: [4]f32) => body`",
                )
            formals.append(Formal(item.place, item.name, t))
        self.distinct(formals)
        return tuple(formals)

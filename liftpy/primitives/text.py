"""The text form: `parse` and its inverse `show`.

    fun square(x: f32) = x * x
    def norms(rows: [8][16]f32) = rows |> map(map(square) |> reduce(add, 0))

`liftpy.ir.parse` produces the syntax. This module resolves names and infers the types of
expressions, from arguments to functions, as in the embedded form. Every word of the registry is a
stage of a pipeline: `xs |> word(sizes, function, other operands)`. Words that take any number of
arrays are called: `zip(xs, ys)`.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TypeAlias, TypeVar

from liftpy.errors import (
    InternalError,
    LiftError,
    SyntaxRefused,
    TypeRefused,
    UnknownName,
    a_few,
    plural,
)
from liftpy.ir import show as printing
from liftpy.ir.expr import (
    Expr,
    FunCall,
    Function,
    Get,
    Lambda,
    Law,
    Literal,
    Param,
    Primitive,
    Program,
    ScalarOp,
    Tuple,
    UserFun,
    call,
    cast_literal,
    check_divisor,
    fresh,
    note_guess,
    settle,
)
from liftpy.ir.holes import Holes
from liftpy.ir.nat import INDEX, Nat, greatest, least, nat, var
from liftpy.ir.open_sizes import show_range
from liftpy.ir.parse import parse_expr, parse_program
from liftpy.ir.scalars import FLOAT_OPERATORS, OPERATORS, bounds, misfit
from liftpy.ir.source import Source, Span, Spans
from liftpy.ir.spelling import show_type
from liftpy.ir.syntax import (
    ArraySyntax,
    Arrow,
    Call,
    Formal,
    FunSyntax,
    Group,
    Infix,
    Let,
    Minus,
    Name,
    Node,
    Not,
    Number,
    Pipe,
    ProgramSyntax,
    Project,
    ScalarSyntax,
    SizeSyntax,
    Syntax,
    Truth,
    TupleSyntax,
    Typed,
    TypeSyntax,
    mentions,
    names_in,
)
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    INTEGERS,
    SCALARS,
    ArrayType,
    OpenType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
)
from liftpy.ir.walk import top_down
from liftpy.primitives import PRIMITIVES, Iterate
from liftpy.primitives.compositions import ABBREVIATIONS, COMPOSITIONS, permuted
from liftpy.primitives.folds import accumulators, component_types, first_that_fits
from liftpy.primitives.functions import eta
from liftpy.primitives.prelude import OPERATIONS, PRELUDE
from liftpy.primitives.stages import WRITTEN_OUT, fixed_times, keeps_type
from liftpy.primitives.suggestions import broken_condition, sizes_that_work, values_that_work
from liftpy.primitives.usage import arguments, law, usage

#: The meanings of the names in scope, the innermost binder last.
Scope: TypeAlias = Mapping[str, tuple[Expr, ...]]
T = TypeVar("T")

#: The names that have a meaning wherever a function is expected.
WORDS = frozenset({*PRIMITIVES, *ABBREVIATIONS, *OPERATORS})
SIZE_ONLY = {"//": "rounding down", "/^": "exactly"}


def parse(text: str) -> Program:
    """The program that a text defines.

    Raises SyntaxRefused, UnknownName or TypeRefused with the place of the error.
    """
    source = Source(text)
    return Elaborator(source).program(parse_program(source))


def parse_expression(text: str, params: Iterable[Param] = (), sizes: Iterable[str] = ()) -> Expr:
    """The expression that a text denotes, with the free variables `params` and sizes `sizes`."""
    source = Source(text)
    elaborator = Elaborator(source, {name: var(name) for name in sizes})
    body = elaborator.value(parse_expr(source), {p.name: (p,) for p in params})
    return elaborator.closed(body)


def show(program: Program, *, canonical: bool = False) -> str:
    """The text of a program: `parse(show(program)) == program`.

    The `canonical` text of equal programs is equal: it writes a function of a tuple with one
    variable, even if the program was written with `(a, b) => ...`.
    """
    return printing.show(program, PRELUDE, WORDS, canonical=canonical)


def show_expr(expr: Expr, width: int | None = None) -> str:
    """The text of an expression on one line, or in lines of at most `width` where possible."""
    return printing.show_expr(expr, width, WORDS)


@cache
def composition(text: str) -> Syntax:
    """The syntax of the expansion of an abbreviation."""
    return parse_expr(Source(text))


def expand(node: T, by: Mapping[str, Syntax], place: Span) -> T:
    """The syntax of an abbreviation with its parameters replaced, all placed at `place`."""
    if isinstance(node, Name) and node.name in by:
        return by[node.name]  # pyright: ignore[reportReturnType]
    if isinstance(node, tuple):
        return tuple(expand(part, by, place) for part in node)  # pyright: ignore[reportReturnType]
    if isinstance(node, Node):
        parts = {f.name: expand(getattr(node, f.name), by, place) for f in fields(node)}
        return replace(node, **{**parts, "place": place})
    return node


#: The largest number that a size may be.
MOST = 2**63 - 1

#: The most names in scope that a message lists.
KNOWN = 40

AGAIN = "remove one, or rename it"

#: A stand-in for the function of a primitive whose parameter types are not known yet.
NO_FUNCTION = Lambda((), Literal(0, I32))


@dataclass(frozen=True)
class Elaborator:
    """Builds the typed program from the syntax of one text."""

    source: Source
    sizes: dict[str, Nat] = field(default_factory=dict[str, Nat])
    functions: dict[str, UserFun] = field(default_factory=lambda: dict(PRELUDE))
    #: The calls made so far, with their places, by id; a kept call keeps its id unique.
    placed: dict[int, tuple[Expr, Span]] = field(default_factory=dict[int, tuple[Expr, Span]])
    #: The stages whose functions have been unrolled, once for each repetition.
    written: list[Node] = field(default_factory=list[Node])
    #: Numbers whose types are inferred from their uses.
    holes: Holes[Number | Minus] = field(default_factory=Holes["Number | Minus"])

    # refusals

    def refuse(self, kind: type[LiftError], what: str, node: Node, *why: str) -> LiftError:
        """An error with its place."""
        return self.source.refusal(kind, what, node.place, *why)

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

    def built(
        self, node: Node, make: Callable[[], T], suggestions: Callable[[], tuple[str, ...]]
    ) -> T:
        """The result of `make`; a refusal gets the place of `node` and the suggestions."""
        try:
            made = make()
        except TypeRefused as refusal:
            what, _, why = str(refusal).partition(": ")
            if isinstance(node, Name | Call) and word_of(node) not in what:
                what, why = f"`{word_of(node)}` cannot be applied", str(refusal)
            raise self.refuse(TypeRefused, what, node, why, *suggestions()) from refusal
        if isinstance(made, Expr):
            self.placed[id(made)] = made, node.place
        return made

    def spans(self, node: ProgramSyntax, body: Expr) -> Spans:
        """The places of the calls in a program's body, and of its parameters."""
        calls = {
            path: self.placed[id(part)][1]
            for path, part in top_down(body)
            if id(part) in self.placed
        }
        return Spans(self.source, calls, {p.name: p.place for p in node.params})

    # numbers whose type is open

    def agree(self, values: Iterable[Expr], types: Iterable[Type]) -> tuple[Expr, ...]:
        """Values unified with these types, which decides open types in both."""
        given = tuple(values)
        if not self.holes.places:
            return given
        for value, t in zip(given, types, strict=False):
            self.holes.unify(value.type, t)
        return tuple(map(self.typed, given))

    def typed(self, expr: Expr) -> Expr:
        """The expression, with decided types filled in if its own type is decided."""
        return expr if self.holes.resolve(expr.type) is expr.type else self.settled(expr)

    def settled(self, expr: Expr) -> Expr:
        """The expression with all decided types filled in; its parts keep their places.

        TypeRefused if a number does not fit its type.
        """
        if not self.holes.places:
            return expr
        try:
            return settle(expr, self.holes)
        except TypeRefused:
            for number, node in enumerate(self.holes.places):
                t = self.holes.resolve(OpenType("number", number))
                if not isinstance(t, OpenType):
                    self.literal(node, t)
            raise

    def closed(self, expr: Expr) -> Expr:
        """A whole body: types that remain open become f32; TypeRefused if that would be a guess."""
        if (guess := self.holes.close(F32)) is not None:
            other, node = self.holes.guesses[guess], self.holes.places[guess]
            digits = self.source.text[node.place.start : node.place.end]
            why = (
                f"the condition compares {other}, and nothing determines the result's type",
                f"write `{digits}{other}` or `{digits}f32`",
            )
            what = f"the type of `{digits}` is ambiguous: {other} or f32"
            raise self.refuse(TypeRefused, what, node, *why)
        made = self.settled(expr)
        for old, became, _ in list(self.holes.settled.values()):
            if id(old) in self.placed:
                self.placed[id(became)] = became, self.placed[id(old)][1]
        return made

    # declarations

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
        return Program(node.name, body, constants, self.spans(node, body.body))

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
        self.functions[name] = UserFun(name, params, body, tuple(laws))

    def param(self, node: Formal) -> Param:
        """A parameter with its type."""
        if node.type is None:
            message = f"the grammar let parameter {node.name} pass without a type"
            raise InternalError(message)
        return Param(node.name, self.type(node.type))

    def type(self, node: TypeSyntax) -> Type:
        """A type."""
        match node:
            case ScalarSyntax():
                if node.name not in SCALARS:
                    raise self.unknown("type", node.name, node, SCALARS)
                return SCALARS[node.name]
            case TupleSyntax():
                return TupleType(tuple(self.type(e) for e in node.elements))
            case ArraySyntax():
                length = self.nat(node.length)
                if length.constant is not None and length.constant < 1:
                    what = f"{length} is not a length"
                    raise self.refuse(TypeRefused, what, node.length, "a length is at least 1")
                element = self.type(node.element)
                return (VectorType if node.vector else ArrayType)(element, length)

    # sizes

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
                return left * right
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

    # values

    def value(self, node: Syntax, scope: Scope) -> Expr:
        """An expression."""
        match node:
            case Name():
                return self.variable(node, scope)
            case Number():
                return self.literal(node, None)
            case Truth():
                return Literal(node.value, BOOL)
            case Group(items=(item,)):
                return self.value(item, scope)
            case Group():
                return Tuple(tuple(self.value(item, scope) for item in node.items))
            case Let():
                return self.let(node, scope)
            case Pipe():
                return self.stage(node.stage, self.value(node.value, scope), scope)
            case Minus() if isinstance(node.value, Number):
                return self.literal(node, None)
            case Minus():
                return self.operator("neg", (node.value,), node, scope)
            case Not():
                return self.operator("not", (node.value,), node, scope)
            case Infix():
                return self.infix(node, scope)
            case Project():
                pair = self.value(node.value, scope)
                return self.apply(Get(node.index), (pair,), node)
            case Call():
                return self.call(node, scope)
            case Arrow():
                what = "a value is needed here, not a function"
                why = "use it as an argument, `map(x => x + 1)`, or as a stage, `e |> (x => x)`"
                raise self.refuse(SyntaxRefused, what, node, why)
            case Typed():
                what = "a value is needed here, not a type"
                why = "a type is written after a parameter: `(x: [4]f32) => body`"
                raise self.refuse(SyntaxRefused, what, node, why)

    def variable(self, node: Name, scope: Scope) -> Expr:
        """A variable; each `^` before its name skips one binder of that name."""
        binders = scope.get(node.name, ())
        if node.outer >= len(binders):
            if node.outer and binders:
                what = f"`{'^' * node.outer}{node.name}` is not bound"
                why = (
                    f"{'^' * node.outer} skips {plural(node.outer, 'binding')} of `{node.name}`, "
                    f"and there {'is' if len(binders) == 1 else 'are'} {len(binders)} here"
                )
                raise self.refuse(UnknownName, what, node, why)
            hints = self.as_function(node.name)
            raise self.unknown("variable", node.name, node, scope, *hints)
        found = binders[-1 - node.outer]
        if found in binders[len(binders) - node.outer :]:
            what = (
                f"`{'^' * node.outer}{node.name}` and the nearer `{node.name}` have the same type"
            )
            why = "they cannot be distinguished", "rename one of them"
            raise self.refuse(SyntaxRefused, what, node, *why)
        return found

    def as_function(self, name: str) -> tuple[str, ...]:
        """A hint for a name that is the name of a function."""
        if name in PRIMITIVES:
            return (f"`{name}` is a word of the language: write `{usage(PRIMITIVES[name])}`",)
        if name in self.functions or name in WORDS:
            return (
                f"`{name}` is a function: write `{name}(...)`, or pass it to `map` or `reduce`",
            )
        return ()

    def literal(self, node: Number | Minus, t: Type | None) -> Literal:
        """A number; without a suffix it has type `t`, or f32 if `t` is not a type of numbers."""
        number = node.value if isinstance(node, Minus) else node
        if not isinstance(number, Number):
            message = f"a literal of {type(number).__name__}"
            raise InternalError(message)
        wanted = t if isinstance(t, ScalarType) and t != BOOL else F32
        kind = SCALARS[number.suffix] if number.suffix else wanted
        if not number.suffix and (t is None or isinstance(t, OpenType)):
            kind = self.holes.open(node)
            self.holes.unify(kind, t or kind)
        sign = -1 if isinstance(node, Minus) else 1
        if isinstance(kind, OpenType):
            digits = number.digits
            return Literal(sign * (int(digits) if digits.isdigit() else float(digits)), kind)
        if kind in INTEGERS:
            if not number.digits.isdigit():
                what = f"`{number.digits}` is not an {kind}"
                raise self.refuse(TypeRefused, what, node, "write a whole number")
            value = sign * int(number.digits)
        else:
            value = sign * float(number.digits)
        lost = math.isinf(value) and number.digits != "inf"
        if (why := "it is infinite" if lost else misfit(value, kind)) is not None:
            what = f"`{'-' * (sign < 0)}{number.digits}` is not an {kind}"
            raise self.refuse(TypeRefused, what, node, why, bounds(kind))
        return Literal(cast_literal(value, kind), kind)

    def beside(self, nodes: tuple[Syntax, ...], scope: Scope) -> tuple[Expr, ...]:
        """Values of one type: plain numbers take the type of the first value that is not one."""
        known = [None if is_number(n) else self.value(n, scope) for n in nodes]
        t = next((e.type for e in known if e is not None), None)
        values: list[Expr] = []
        for n, e in zip(nodes, known, strict=True):
            values.append(self.numeric(n, t, scope) if e is None else e)
            t = values[0].type if t is None else t
        return self.agree(values, [t or F32] * len(values))

    def numeric(self, node: Syntax, t: Type | None, scope: Scope) -> Expr:
        """A value; a plain number takes type `t`."""
        if isinstance(node, Number | Minus) and is_number(node):
            return self.literal(node, t)
        return self.value(node, scope)

    def infix(self, node: Infix, scope: Scope) -> Expr:
        """An operator between two values."""
        if node.op in SIZE_ONLY:
            what = f"`{node.op}` is defined only for sizes"
            why = f"it divides whole numbers ({SIZE_ONLY[node.op]}); divide values by `/`"
            raise self.refuse(SyntaxRefused, what, node, why)
        left, right = node.left, node.right
        if node.op in {">", ">="}:
            op = node.op.replace(">", "<")
            return self.operator(op, (right, left), node, scope)
        return self.operator(node.op, (left, right), node, scope)

    def operator(self, op: str, nodes: tuple[Syntax, ...], node: Node, scope: Scope) -> Expr:
        """A scalar operator."""
        arity, _ = OPERATORS[op]
        if len(nodes) != arity:
            what = f"`{op}` takes {plural(arity, 'argument')}, not {len(nodes)}"
            raise self.refuse(SyntaxRefused, what, node, f"write {op}({', '.join('abc'[:arity])})")
        if op == "select":
            args = (self.value(nodes[0], scope), *self.beside(nodes[1:], scope))
            note_guess(self.holes, args)
        elif op in SCALARS:
            args = (self.numeric(nodes[0], SCALARS[op], scope),)
        else:
            args = self.beside(nodes, scope)
            if op in FLOAT_OPERATORS and isinstance(args[0].type, OpenType):
                args = self.agree(args, [F32] * len(args))
        hint = "`f32(x)` converts; a number may end with its type: `2i32`, `1.5f64`"
        types = {a.type for a in args[1:]} if op == "select" else {a.type for a in args}
        scalars = all(isinstance(t, ScalarType) for t in types)
        suggestion = hint if scalars and len(types) > 1 else f"`map` applies `{op}` to each element"

        def make() -> Expr:
            check_divisor(op, args)
            return FunCall(ScalarOp(op), args)

        return self.built(node, make, lambda: () if scalars and len(types) == 1 else (suggestion,))

    def let(self, node: Let, scope: Scope) -> Expr:
        """`let`: values may use the names before them; independent ones share a binder."""
        groups: list[tuple[list[Formal], list[Param], list[Expr]]] = [([], [], [])]
        inner, together = dict(scope), set[Param]()
        for formal, syntax in zip(node.names, node.values, strict=True):
            value = self.value(syntax, inner)
            if not self.variables(together).isdisjoint(self.variables(value.free)):
                groups.append(([], [], []))
                together.clear()
            (param,) = self.bound((formal,), (value.type,))
            (value,) = self.agree((value,), (param.type,))
            for part, new in zip(groups[-1], (formal, param, value), strict=True):
                part.append(new)  # pyright: ignore[reportArgumentType]
            together.add(param)
            inner[param.name] = (*inner.get(param.name, ()), param)
        body = self.value(node.body, inner)
        for formals, params, values in reversed(groups):
            values = [self.typed(value) for value in values]  # noqa: PLW2901
            function = self.resolved(Lambda(tuple(params), body))
            exact = any(formal.type is not None for formal in formals)
            make = functools.partial(applied, function, tuple(values), exact=exact)
            body = self.built(node, make, no_suggestions)
        return body

    def variables(self, params: AbstractSet[Param]) -> AbstractSet[Param]:
        """Variables with decided types filled in."""
        if not self.holes.decided:
            return params
        return {Param(p.name, self.holes.resolve(p.type)) for p in params}

    def resolved(self, function: Lambda) -> Lambda:
        """A function with decided types filled in."""
        if not self.holes.places:
            return function
        params = tuple(Param(p.name, self.holes.resolve(p.type)) for p in function.params)
        if params == function.params:
            return function
        return Lambda(params, self.settled(function.body))

    def bound(self, formals: tuple[Formal, ...], types: tuple[Type, ...]) -> tuple[Param, ...]:
        """Parameters with their written types, or else with the types of their arguments."""
        params: list[Param] = []
        for formal, t in zip(formals, types, strict=True):
            written = t if formal.type is None else self.type(formal.type)
            self.holes.unify(written, t)
            params.append(Param(formal.name, self.holes.resolve(written)))
        return tuple(params)

    def call(self, node: Call, scope: Scope) -> Expr:
        """`name(args)` as a value."""
        name = node.name.name
        if name in OPERATORS and not node.name.quoted:
            return self.operator(name, node.args, node, scope)
        if name in PRIMITIVES and not node.name.quoted:
            return self.called(PRIMITIVES[name], node, scope)
        if name in ABBREVIATIONS and not node.name.quoted:
            return self.value(self.expanded(name, node.args, node, value=True), scope)
        fun = self.user_function(node.name)
        if len(fun.params) != len(node.args):
            what = f"`{name}` takes {plural(len(fun.params), 'argument')}, not {len(node.args)}"
            raise self.refuse(TypeRefused, what, node, signature(fun))
        if self.is_operation(node.name):
            values = self.beside(node.args, scope)
            fun = OPERATIONS[name].fitting([v.type for v in values])
        else:
            values = tuple(
                self.numeric(arg, p.type, scope)
                for arg, p in zip(node.args, fun.params, strict=True)
            )
        args = self.agree(values, [p.type for p in fun.params])
        return self.built(node, lambda: FunCall(fun, args), lambda: (signature(fun),))

    def called(self, cls: type[Primitive], node: Call, scope: Scope) -> Expr:
        """A primitive that is written with all its arguments in parentheses."""
        expected, taken = arguments(cls), printing.operands(cls)
        if not printing.is_called(cls):
            what = f"`{cls.name}` is a stage, not a value"
            raise self.refuse(SyntaxRefused, what, node, f"write `{usage(cls)}`")
        if taken is not None and len(node.args) != len(expected):
            what = f"`{cls.name}` takes {plural(len(expected), 'argument')}, not {len(node.args)}"
            raise self.refuse(SyntaxRefused, what, node, f"write `{usage(cls)}`")
        static = self.statics(cls, node.args)
        rest = node.args[len(static) :]
        if taken != 0:
            return self.apply(cls(**static), tuple(self.value(a, scope) for a in rest), node)
        bare = cls(f=NO_FUNCTION, **static)  # pyright: ignore[reportCallIssue]
        function, exact = self.function(rest[0], bare.parameter_types(), scope)
        return self.apply(replace(bare, f=function), (), node, exact=exact)

    def is_operation(self, node: Name) -> bool:
        """Whether a name is a predefined function with a variant for each type, such as `add`."""
        name = node.name
        return name in OPERATIONS and self.functions.get(name) is PRELUDE[name]

    def user_function(self, node: Name) -> UserFun:
        """A user function by name."""
        if node.name not in self.functions:
            known = set(self.functions) if node.quoted else {*self.functions, *WORDS}
            hint = "a function is defined before `def`: fun f(x: f32) = x"
            raise self.unknown(
                "function", node.name, node, {n for n in known if n.isidentifier()}, hint
            )
        return self.functions[node.name]

    # stages and functions

    def stage(self, node: Syntax, operand: Expr, scope: Scope) -> Expr:
        """A stage applied to `operand`."""
        match node:
            case Name(outer=0):
                return self.word(node, (), operand, node, scope)
            case Call():
                return self.word(node.name, node.args, operand, node, scope)
            case Pipe():
                return self.stage(node.stage, self.stage(node.value, operand, scope), scope)
            case Group(items=(Arrow() as arrow,)):
                function, exact = self.function(arrow, (operand.type,), scope)
                (value,) = self.agree((operand,), (function.params[0].type,))
                return self.built(
                    node, lambda: applied(function, (value,), exact=exact), no_suggestions
                )
            case Group(items=(item,)):
                return self.stage(item, operand, scope)
            case _:
                what = "this is not a function"
                why = "a stage is a word such as `split(4)`, a function's name, or `(x => e)`"
                raise self.refuse(SyntaxRefused, what, node, why)

    def word(
        self, name: Name, args: tuple[Syntax, ...], operand: Expr, node: Syntax, scope: Scope
    ) -> Expr:
        """A named stage: a primitive, an abbreviation, an operator or a user function."""
        word = name.name
        if name.quoted or word not in WORDS:
            fun = self.user_function(name)
            if args or len(fun.params) != 1:
                given = plural(len(args) + 1, "argument")
                what = f"as a stage, `{word}` gets {given}, but takes {len(fun.params)}"
                why = signature(fun), f"call it: {word}({', '.join(p.name for p in fun.params)})"
                raise self.refuse(TypeRefused, what, node, *why)
            (value,) = self.agree((operand,), [p.type for p in fun.params])
            return self.built(node, lambda: FunCall(fun, (value,)), lambda: (signature(fun),))
        if word in PRIMITIVES:
            return self.primitive(PRIMITIVES[word], args, operand, node, scope)
        if word in ABBREVIATIONS:
            return self.stage(self.expanded(word, args, node, value=False), operand, scope)
        arity, _ = OPERATORS[word]
        if args or arity != 1:
            given = plural(len(args) + 1, "argument")
            what = f"as a stage, `{word}` gets {given}, but takes {arity}"
            names = ", ".join("abc"[:arity])
            raise self.refuse(SyntaxRefused, what, node, f"write ({names}) => {word}({names})")
        return self.built(node, lambda: FunCall(ScalarOp(word), (operand,)), no_suggestions)

    def expanded(self, word: str, args: tuple[Syntax, ...], node: Node, *, value: bool) -> Syntax:
        """The expansion of an abbreviation with arguments: a stage, or a `value`."""
        known = COMPOSITIONS.get(word)
        head = "" if known is not None and known.value else "xs |> "
        params = ("2", "0", "1") if known is None else known.params
        why = f"write `{head}{word}({', '.join(params)})`"
        if value == bool(head):
            what = f"`{word}` is a {'stage, not a value' if head else 'value, not a stage'}"
            raise self.refuse(SyntaxRefused, what, node, why)
        if known is None:
            axes = tuple(int(self.number(arg, whole=True)) for arg in args)
            text = self.built(node, lambda: permuted(axes), lambda: (why,))
            return expand(composition(text), {}, node.place)
        if len(args) != len(params):
            what = f"`{word}` takes {plural(len(params), 'argument')}, not {len(args)}"
            raise self.refuse(SyntaxRefused, what, node, why)
        return expand(composition(known.text), dict(zip(params, args, strict=True)), node.place)

    def primitive(
        self,
        cls: type[Primitive],
        args: tuple[Syntax, ...],
        operand: Expr,
        node: Node,
        scope: Scope,
    ) -> Expr:
        """A primitive applied to the arguments in its parentheses and to `operand`."""
        expected = arguments(cls)
        if printing.is_called(cls) or len(args) != len(expected):
            what = f"`{cls.name}` takes {plural(len(expected), 'argument')} here, not {len(args)}"
            if printing.is_called(cls):
                what = f"`{cls.name}` is not a stage"
            raise self.refuse(SyntaxRefused, what, node, f"write `{usage(cls)}`")
        static = self.statics(cls, args)
        rest = args[len(static) :]
        has_function = len(rest) == (printing.operands(cls) or 0)
        if not has_function:
            inner = tuple(self.value(a, scope) for a in rest)
            return self.apply(cls(**static), (*inner, operand), node)
        bare = cls(f=NO_FUNCTION, **static)  # pyright: ignore[reportCallIssue]

        def attempt(starts: tuple[Callable[[], Expr], ...]) -> Expr:
            operands = (*(start() for start in starts), operand)
            types = tuple(o.type for o in operands)
            wanted = self.built(node, lambda: bare.parameter_types(*types), lambda: law(cls))
            function, exact = self.function(rest[0], wanted, scope)
            if self.holes.places:
                if len(operands) > 1 or cls is Iterate:
                    self.holes.unify(function.body.type, operands[0].type)
                function = self.resolved(Lambda(function.params, self.typed(function.body)))
                operands = tuple(map(self.typed, operands))
            if cls is Iterate and not keeps_type(function):
                return self.iterated(rest[0], self.nat(args[0]), operand, node, scope)
            return self.apply(replace(bare, f=function), operands, node, exact=exact)

        possible = itertools.product(*(self.starts(a, operand.type, scope) for a in rest[1:]))
        return first_that_fits(
            (functools.partial(attempt, starts) for starts in possible), self.holes
        )

    def iterated(self, f: Syntax, times: Nat, x: Expr, node: Node, scope: Scope) -> Expr:
        """The unrolled calls of a function that changes the type."""
        function, _ = self.function(f, (x.type,), scope)
        count = self.built(
            node, lambda: fixed_times(times, x.type, function.body.type), no_suggestions
        )
        for _ in range(count):
            self.written.append(node)
            if len(self.written) > WRITTEN_OUT:
                what = f"functions that change the type are unrolled more than {WRITTEN_OUT} times"
                why = "each `iterate` repeats those inside it"
                raise self.refuse(TypeRefused, what, node, why, "iterate fewer times")
            function, exact = self.function(f, (x.type,), scope)
            make = functools.partial(applied, function, (x,), exact=exact)
            x = self.built(node, make, no_suggestions)
        return x

    def starts(self, node: Syntax, source: Type, scope: Scope) -> Iterator[Callable[[], Expr]]:
        """Attempts to build the initial value of a fold over `source`: see `folds.accumulators`."""
        if isinstance(node, Number | Minus) and is_number(node):
            for t in (F32,) if is_suffixed(node) else accumulators(source):
                yield functools.partial(self.spread, node, t)
        elif isinstance(node, Group) and len(node.items) > 1:
            types = component_types(source, len(node.items))
            yield lambda: Tuple(
                tuple(
                    self.spread(item, t)
                    if isinstance(item, Number | Minus)
                    and is_number(item)
                    and not is_suffixed(item)
                    else self.value(item, scope)
                    for item, t in zip(node.items, types, strict=True)
                )
            )
        else:
            yield lambda: self.value(node, scope)

    def spread(self, node: Number | Minus, t: Type) -> Expr:
        """A number as a literal of a type; for a tuple type, a tuple of literals."""
        if isinstance(t, TupleType):
            return Tuple(tuple(self.spread(node, e) for e in t.elements))
        return self.literal(node, t)

    def apply(
        self,
        primitive: Primitive,
        operands: tuple[Expr, ...],
        node: Node,
        *,
        exact: bool = False,
    ) -> Expr:
        """A call of a primitive; `exact` keeps the written parameter types."""
        if self.holes.places:
            if primitive.called and primitive.name == "concat":
                self.agree(operands, [o.type for o in operands[:1]] * len(operands))
            operands = tuple(map(self.typed, operands))

        def suggestions() -> tuple[str, ...]:
            return (
                *self.ranges(primitive, operands),
                *sizes_that_work(primitive, operands),
                *values_that_work(primitive, operands),
                *law(type(primitive)),
            )

        return self.built(node, lambda: applied(primitive, operands, exact=exact), suggestions)

    def ranges(self, primitive: Primitive, operands: tuple[Expr, ...]) -> tuple[str, ...]:
        """The ranges of the sizes in a condition that never holds."""
        broken = broken_condition(primitive, operands)
        names = sorted(broken.names() & self.sizes.keys()) if broken is not None else ()
        return tuple(show_range(n, *self.sizes[n].bounds) for n in names)

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

    def function(self, node: Syntax, types: tuple[Type, ...], scope: Scope) -> tuple[Lambda, bool]:
        """A function of values of these types, and whether its parameter types are written."""
        match node:
            case Group(items=(item,)):
                return self.function(item, types, scope)
            case Arrow():
                return self.arrow(node, types, scope)
            case Name() | Call() | Pipe():
                name = node.name if isinstance(node, Name) else None
                user = isinstance(node, Name) and (node.quoted or name not in WORDS)
                if isinstance(node, Name) and user:
                    fun = self.user_function(node)
                    if self.is_operation(node):
                        fun = OPERATIONS[node.name].fitting(types)
                    given = self.given(types, tuple(p.type for p in fun.params))
                    return self.built(
                        node, lambda: eta(fun, given), lambda: (signature(fun),)
                    ), False
                return self.section(node, types, scope), False
            case _:
                what = "a function is needed here"
                why = (
                    "write `x => body`, a section such as `split(4) |> join`, or a function's name"
                )
                raise self.refuse(SyntaxRefused, what, node, why)

    def given(self, types: tuple[Type, ...], wanted: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of a user function's arguments; its own types decide open ones."""
        one = types[0] if len(types) == 1 else None
        whole = isinstance(one, TupleType) and len(wanted) > 1
        self.holes.unify(TupleType(types), TupleType((TupleType(wanted),) if whole else wanted))
        return tuple(map(self.holes.resolve, types))

    def section(self, node: Syntax, types: tuple[Type, ...], scope: Scope) -> Lambda:
        """A pipeline without a head, as a function of `_`."""
        if len(types) != 1:
            what = (
                f"a function of {len(types)} arguments is needed here, a section takes one argument"
            )
            names = ", ".join("abc"[: len(types)])
            raise self.refuse(TypeRefused, what, node, f"write ({names}) => ...")
        for name in mentions(node, "_"):
            what = "`_` cannot be used in a section"
            why = (
                "it is the value the section is applied to: write x => ..., and rename an outer `_`"
            )
            raise self.refuse(SyntaxRefused, what, name, why)
        param = Param("_", types[0])
        return Lambda((param,), self.stage(node, param, entered(scope, (param,))))

    def arrow(self, node: Arrow, types: tuple[Type, ...], scope: Scope) -> tuple[Lambda, bool]:
        """`x => body`; several names may unpack one tuple."""
        if len(node.params) == len(types):
            params = self.bound(node.params, types)
            body = self.value(node.body, entered(scope, params))
            function = self.resolved(Lambda(params, body))
            return function, any(p.type is not None for p in node.params)
        one = types[0] if len(types) == 1 else None
        if isinstance(one, TupleType) and len(one.elements) == len(node.params):
            names = [p.name for p in node.params]
            taken = {*scope, *names, *(n.name for n in names_in(node.body)), *binders(node.body)}
            pair = Param(fresh("".join(names), taken), one, tuple(names))
            parts = dict(zip(names, pair, strict=True))
            inner = {**scope, **{n: (*scope.get(n, ()), part) for n, part in parts.items()}}
            return Lambda((pair,), self.value(node.body, inner)), False
        given = ", ".join(map(show_type, types))
        own = plural(len(node.params), "argument")
        what = f"a function of {own} is applied to {len(types)}: {given}"
        wanted = plural(len(types), "argument")
        raise self.refuse(TypeRefused, what, node, f"write a function of {wanted}")


def applied(function: Function, args: tuple[Expr, ...], *, exact: bool) -> Expr:
    """A call; unless `exact`, the function's parameters take the sizes of the arguments."""
    return FunCall(function, args) if exact else call(function, *args)


def no_suggestions() -> tuple[str, ...]:
    """For refusals that already contain a suggestion."""
    return ()


def word_of(node: Name | Call) -> str:
    """The name of a stage."""
    return node.name if isinstance(node, Name) else node.name.name


def is_number(node: Syntax) -> bool:
    """Whether syntax is a number, perhaps negative."""
    return isinstance(node.value if isinstance(node, Minus) else node, Number)


def is_suffixed(node: Number | Minus) -> bool:
    """Whether a number has a type suffix."""
    number = node.value if isinstance(node, Minus) else node
    return isinstance(number, Number) and bool(number.suffix)


def entered(scope: Scope, params: tuple[Param, ...]) -> Scope:
    """A scope inside binders."""
    return {**scope, **{p.name: (*scope.get(p.name, ()), p) for p in params}}


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


def signature(fun: UserFun) -> str:
    """A user function's parameters, for messages."""
    params = ", ".join(f"{p.name}: {show_type(p.type)}" for p in fun.params)
    return f"it is defined as {fun.name}({params})"

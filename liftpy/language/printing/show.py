"""The printer: programs as text, broken into lines if they are long.

Parsing the text gives the same program, including the names of bound variables:
`parse(show(p)) == p`. The text states what the parser could not infer: the type of a parameter
whose sizes are spelled differently from its argument's, the suffix of a literal that is not an f32,
a caret for a variable that an inner one of the same name shadows (`^x`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, fields
from functools import cache
from typing import Any, cast

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, UserFun
from liftpy.ir.nat import INDEX, Nat
from liftpy.ir.open_sizes import size_ranges
from liftpy.ir.primitive import Get, Primitive, ScalarOp, function_of, index_fields
from liftpy.ir.program import Program
from liftpy.ir.types import BOOL, F32, ArrayType, TupleType, Type, VectorType, scalars
from liftpy.ir.walk import top_down
from liftpy.language.inference import integers_in, is_whole
from liftpy.language.printing.lines import LINE, SOFT, Break, Doc, Fit, Indented, listed, render
from liftpy.language.printing.spelling import (
    RESERVED,
    show_float,
    show_name,
    show_nat,
    show_number,
    show_type,
)

#: Precedence levels.
ANY, PIPE, OR, AND, NOT, COMPARISON, SUM, TERM, UNARY, POSTFIX = range(10)
#: Infix operators: their precedence, and that of their operands.
INFIX: Mapping[str, tuple[int, int, int]] = {
    "or": (OR, OR, AND),
    "and": (AND, AND, NOT),
    "<": (COMPARISON, SUM, SUM),
    "<=": (COMPARISON, SUM, SUM),
    "==": (COMPARISON, SUM, SUM),
    "!=": (COMPARISON, SUM, SUM),
    "+": (SUM, SUM, TERM),
    "-": (SUM, SUM, TERM),
    "*": (TERM, TERM, UNARY),
    "/": (TERM, TERM, UNARY),
    "%": (TERM, TERM, UNARY),
}
WIDTH = 88


# --- primitives ---------------------------------------------------------------------------------


@cache
def operands(cls: type[Primitive]) -> int | None:
    """The number of expressions that a primitive takes; None means any number."""
    parameters = list(inspect.signature(cls.type_of).parameters.values())[1:]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    return len(parameters)


@cache
def is_called(cls: type[Primitive]) -> bool:
    """Whether a primitive is written with all arguments in parentheses, not in a pipeline."""
    return cls.called or not operands(cls)


@cache
def statics(cls: type[Primitive]) -> tuple[Field[Any], ...]:
    """The fields of a primitive that are written before its function."""
    return tuple(f for f in fields(cls) if f.init and f.name != "f")


def show_static(primitive: Primitive, name: str) -> str:
    """A field of a primitive, as an argument."""
    match getattr(primitive, name):
        case Nat() as size if name in index_fields(type(primitive)):
            return f"{INDEX} => {show_nat(size)}"
        case Nat() as size:
            return show_nat(size)
        case bool() as truth:
            return "true" if truth else "false"
        case int() | float() as number:
            return show_float(number)
        case other:
            message = f"no text for the field {name} of {primitive.name}: {other!r}"
            raise InternalError(message)


# --- expressions --------------------------------------------------------------------------------


def is_stage(expr: Expr) -> bool:
    """Whether an expression is written as a step of a pipeline: `xs |> step`."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Primitive)
        and not isinstance(expr.fun, ScalarOp)
        and not is_called(type(expr.fun))
    )


def is_component(expr: Expr) -> bool:
    """Whether an expression is written `pair.0` rather than `pair |> get(0)`."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Get):
        return False
    (pair,) = expr.args
    return not is_stage(pair) or is_component(pair)


class Printer:
    """Makes layouts of expressions; user functions whose names are in `words` are quoted.

    Unless `canonical`, a tuple that was written unpacked is printed unpacked. `apart` has the
    unpacked tuples in scope, with the names of their components.
    """

    def __init__(self, words: Collection[str], *, canonical: bool = False) -> None:
        self.words = RESERVED.union(words)
        self.canonical = canonical
        self.apart: dict[Param, tuple[str, ...]] = {}

    def expr(self, expr: Expr, scope: tuple[Param, ...], level: int = ANY) -> Doc:
        """An expression inside the binders `scope`, in parentheses if `level` requires them."""
        own, doc = self.open(expr, scope)
        return doc if own >= level else Fit(("(", Indented((SOFT, doc)), SOFT, ")"))

    def open(self, expr: Expr, scope: tuple[Param, ...]) -> tuple[int, Doc]:
        """The precedence of an expression, and its layout without outer parentheses."""
        match expr:
            case Param():
                return POSTFIX, self.variable(expr, scope)
            case Literal(value, t):
                text = show_number(value, t)
                return UNARY if text.startswith("-") else POSTFIX, text
            case Tuple(elements):
                return POSTFIX, listed([self.expr(e, scope) for e in elements])
            case FunCall():
                return self.call(expr, scope)
            case _:
                message = f"no text for {type(expr).__name__}"
                raise InternalError(message)

    def variable(self, param: Param, scope: tuple[Param, ...]) -> str:
        """A variable, with a caret for each inner binder of its name."""
        outer = 0
        for other in reversed(scope):
            if other == param:
                return "^" * outer + show_name(param.name)
            outer += other.name == param.name
        return show_name(param.name)

    def call(self, expr: FunCall, scope: tuple[Param, ...]) -> tuple[int, Doc]:
        """A call."""
        match expr.fun:
            case Lambda(params):
                return ANY, self.let(expr.fun, expr.args, params, scope)
            case ScalarOp(op):
                return self.operator(op, expr.args, scope)
            case UserFun(name) | FunVar(name):
                args = [self.expr(a, scope) for a in expr.args]
                return POSTFIX, (show_name(name, self.words), listed(args))
            case Get(index) if (names := self.apart.get(cast("Param", expr.args[0]))) is not None:
                return POSTFIX, show_name(names[index])
            case Get(index) if is_component(expr):
                return POSTFIX, (self.expr(expr.args[0], scope, POSTFIX), f".{index}")
            case Primitive() if is_stage(expr):
                return PIPE, self.pipeline(expr, scope)
            case Primitive() as primitive:
                args = [*self.arguments(primitive, expr.args, scope)]
                args += [self.expr(a, scope) for a in expr.args]
                return POSTFIX, (primitive.name, listed(args))
            case other:
                message = f"no text for a call of {other}"
                raise InternalError(message)

    def let(
        self,
        fun: Lambda,
        args: tuple[Expr, ...],
        params: tuple[Param, ...],
        scope: tuple[Param, ...],
    ) -> Doc:
        """`let x = a in body`."""
        bindings: list[Doc] = []
        around = scope
        for k, (param, arg) in enumerate(zip(params, args, strict=True)):
            if taken := [p.name for p in params[:k] if p in arg.free]:
                message = (
                    f"`{param.name}` is bound together with `{taken[0]}`, but its value uses an "
                    f"outer `{taken[0]}`: a text binds one after the other; rename the inner one"
                )
                raise TypeRefused(message)
            t = "" if param.type == arg.type else f": {show_type(param.type)}"
            bindings += [
                "," if bindings else "let",
                " ",
                Fit(
                    (show_name(param.name), t, " =", Indented((LINE, self.expr(arg, around, PIPE))))
                ),
            ]
            around = (*around, param)
        body = self.expr(fun.body, (*scope, *params))
        return Fit((*bindings, " in", LINE, body))

    def operator(
        self, op: str, args: tuple[Expr, ...], scope: tuple[Param, ...]
    ) -> tuple[int, Doc]:
        """A scalar operator."""
        if op == "neg":
            (arg,) = args
            level = ANY if isinstance(arg, Literal) else UNARY
            doc = self.expr(arg, scope, level)
            return UNARY, ("-(", doc, ")") if isinstance(arg, Literal) else ("-", doc)
        if op == "not":
            return NOT, ("not ", self.expr(args[0], scope, NOT))
        if op not in INFIX:
            docs = [self.expr(a, scope) for a in args]
            if op == "select" and isinstance(args[1], Literal) and all(map(is_whole, args[1:])):
                docs[1] = self.literal(args[1], suffixed=integers_in(args[0]) is not None)
            return POSTFIX, (op, listed(docs))
        own, left, right = INFIX[op]
        first, second = args
        doc = (self.expr(first, scope, left), LINE, f"{op} ", self.expr(second, scope, right))
        return own, Fit(doc)

    def pipeline(self, expr: Expr, scope: tuple[Param, ...]) -> Doc:
        """`head |> stage |> ...`."""
        stages: list[Doc] = []
        while isinstance(expr, FunCall) and is_stage(expr) and not is_component(expr):
            stages.append(self.stage(expr, scope))
            expr = expr.args[-1]
        parts = [(LINE, "|> ", stage) for stage in reversed(stages)]
        return Fit((self.expr(expr, scope, OR), Indented(tuple(parts))))

    def stage(self, expr: FunCall, scope: tuple[Param, ...]) -> Doc:
        """A primitive applied to all but its last argument."""
        primitive = expr.fun
        if not isinstance(primitive, Primitive):
            message = f"no text for a pipeline step {primitive}"
            raise InternalError(message)
        args = self.arguments(primitive, expr.args, scope)
        expected = expr.args[-1].type
        args += [self.inner(arg, expected, scope) for arg in expr.args[:-1]]
        if not args:
            return primitive.name
        if len(args) == 1 and primitive.function is not None:
            section = isinstance(args[0], Fit) and is_section(primitive.function)
            inner = Indented((SOFT, args[0])) if section else args[0]
            return (primitive.name, "(", Fit((inner, SOFT)), ")")
        return (primitive.name, listed(args))

    def inner(self, arg: Expr, expected: Type, scope: tuple[Param, ...]) -> Doc:
        """An argument before the last; a plain number takes its type from the last argument."""
        if isinstance(arg, Tuple):
            one = expected
            while isinstance(one, ArrayType | VectorType):
                one = one.element
            theirs = set(one.elements) if isinstance(one, TupleType) else {one} - {BOOL}
            others = bool(theirs - {F32})
            return listed(
                [
                    self.literal(e, suffixed=others)
                    if isinstance(e, Literal)
                    else self.expr(e, scope)
                    for e in arg.elements
                ]
            )
        suffixed = any(s not in {F32, BOOL} for s in scalars(expected))
        if isinstance(arg, Literal):
            return self.literal(arg, suffixed=suffixed)
        return self.expr(arg, scope)

    def literal(self, number: Literal, *, suffixed: bool) -> Doc:
        """A number, `suffixed` if it would otherwise get another type."""
        text = show_number(number.value, number.type)
        return f"{text}f32" if suffixed and number.type == F32 else text

    def arguments(
        self, primitive: Primitive, args: tuple[Expr, ...], scope: tuple[Param, ...]
    ) -> list[Doc]:
        """The fields of a primitive, with its function last."""
        docs: list[Doc] = [show_static(primitive, f.name) for f in statics(type(primitive))]
        if primitive.function is not None:
            wanted = primitive.parameter_types(*(a.type for a in args))
            docs.append(self.function(primitive.function, wanted, scope))
        return docs

    def function(self, fun: Lambda, wanted: tuple[Type, ...], scope: tuple[Param, ...]) -> Doc:
        """A function: a user function's name, a section, or `x => body`."""
        inferred = all(p.type == t for p, t in zip(fun.params, wanted, strict=True))
        if inferred and (name := self.user_function(fun)) is not None:
            return name
        if inferred and is_section(fun):
            return self.section(fun, scope)
        if inferred and (doc := self.taken_apart(fun, scope)) is not None:
            return doc
        body = Indented((LINE, self.expr(fun.body, (*scope, *fun.params))))
        params = [
            show_name(p.name) + ("" if p.type == t else f": {show_type(p.type)}")
            for p, t in zip(fun.params, wanted, strict=True)
        ]
        head = params[0] if len(params) == 1 and inferred else f"({', '.join(params)})"
        return (head, " =>", body)

    def taken_apart(self, fun: Lambda, scope: tuple[Param, ...]) -> Doc | None:
        """`(a, b) => body`, for a function of a tuple that was written unpacked.

        None if the text would parse to another function: if the tuple is used as a whole, or one of
        the names has another meaning around or inside the function.
        """
        pair = fun.params[0]
        if self.canonical or not pair.parts or len(fun.params) != 1:
            return None
        names = {*pair.parts, pair.name}
        nodes = [node for _, node in top_down(fun.body)]
        inner = [function_of(n.fun) for n in nodes if isinstance(n, FunCall)]
        binders = [f.params for f in inner if f is not None and self.user_function(f) is None]
        others = {p.name for params in (fun.free, *binders) for p in params}
        others |= {p.name for p in scope if p.name == pair.name}
        whole = sum(node == pair for node in nodes)
        parts = [n for n in nodes if isinstance(n, FunCall) and isinstance(n.fun, Get)]
        if (
            pair.name != "".join(pair.parts)
            or names & others
            or whole != sum(part.args[0] == pair for part in parts)
        ):
            return None
        self.apart[pair] = pair.parts
        body = self.expr(fun.body, (*scope, pair))
        del self.apart[pair]
        if pair.name in re.findall(r"\w+", render(body, None)):
            return None
        return (f"({', '.join(map(show_name, pair.parts))}) =>", Indented((LINE, body)))

    def user_function(self, fun: Lambda) -> str | None:
        """The name of the user function that a function only calls; None if it is not one."""
        body = fun.body
        if not isinstance(body, FunCall) or not isinstance(body.fun, UserFun):
            return None
        own = body.fun.params
        several = body.args == fun.params and all(
            p.name == q.name for p, q in zip(fun.params, own, strict=True)
        )
        pair = fun.params[0] if len(fun.params) == 1 else None
        one = (
            pair is not None
            and pair.name == "_"
            and isinstance(pair.type, TupleType)
            and len(pair.type.elements) == len(own)
            and len(own) > 1
            and body.args == tuple(pair)
        )
        return show_name(body.fun.name, self.words) if several or one else None

    def section(self, fun: Lambda, scope: tuple[Param, ...]) -> Doc:
        """`stage |> stage` as a function."""
        stages: list[Doc] = []
        body = fun.body
        while isinstance(body, FunCall):
            stages.append(self.stage(body, (*scope, *fun.params)))
            body = body.args[-1]
        first, *rest = reversed(stages)
        return Fit((first, Indented(tuple((LINE, "|> ", stage) for stage in rest))))


def is_section(fun: Lambda) -> bool:
    """Whether a function is a pipeline on its one parameter `_`, which occurs nowhere else."""
    if len(fun.params) != 1 or fun.params[0].name != "_" or fun.body == fun.params[0]:
        return False
    body = fun.body
    while isinstance(body, FunCall) and is_stage(body):
        beside = [*body.fun.free, *(p for a in body.args[:-1] for p in a.free)]
        if any(p.name == "_" for p in beside):
            return False
        body = body.args[-1]
    return body == fun.params[0]


# --- programs -----------------------------------------------------------------------------------


def functions(expr: Expr) -> Iterator[UserFun]:
    """Every user function that is called, after the functions that it calls itself."""
    match expr:
        case Tuple(elements):
            for element in elements:
                yield from functions(element)
        case FunCall(fun, args):
            match fun:
                case UserFun(body=body):
                    yield from functions(body)
                    yield fun
                case Lambda(body=body):
                    yield from functions(body)
                case Primitive() if fun.function is not None:
                    yield from functions(fun.function.body)
                case _:
                    pass
            for arg in args:
                yield from functions(arg)
        case _:
            return


def show_sizes(program: Program) -> list[str]:
    """The declarations of the sizes."""
    groups: dict[str, list[str]] = {}
    for name, (low, high) in size_ranges(program).items():
        bounds = f"{'' if low is None else low}..{'' if high is None else high}"
        groups.setdefault("" if bounds == "0.." else f": {bounds}", []).append(show_name(name))
    return [f"size {', '.join(names)}{bounds}" for bounds, names in groups.items()]


def show_user_function(fun: UserFun, printer: Printer) -> str:
    """`fun name(params) = body laws ...`."""
    params = ", ".join(f"{show_name(p.name)}: {show_type(p.type)}" for p in fun.params)
    laws = [
        show_name(law.name) + ("" if law.value is None else f" {show_float(law.value)}")
        for law in fun.laws
    ]
    head = f"fun {show_name(fun.name, printer.words)}({params}) ="
    tail: Doc = (LINE, "laws ", ", ".join(laws)) if laws else ""
    body = printer.expr(fun.body, fun.params)
    return render(Fit((head, Indented((LINE, body, tail)))), WIDTH)


def show(
    program: Program,
    known: Mapping[str, UserFun] | None = None,
    words: Collection[str] = (),
    width: int | None = WIDTH,
    *,
    canonical: bool = False,
) -> str:
    """A program as text; `known` functions are not defined in it, and `words` name primitives."""
    printer = Printer(words, canonical=canonical)
    lines = show_sizes(program)
    lines += [
        f"storage {show_name(name)}: {', '.join(map(str, types))}"
        for name, types in program.storage
    ]
    defined: dict[str, UserFun] = {}
    for fun in functions(program.body.body):
        if defined.setdefault(fun.name, fun) != fun:
            message = (
                f"{program.name} calls two different user functions named {fun.name}: "
                "a text can define only one; rename the other"
            )
            raise TypeRefused(message)
    lines += [
        show_user_function(fun, printer)
        for fun in defined.values()
        if (known or {}).get(fun.name) != fun
    ]
    params: list[Doc] = [
        ("const " if p.name in program.constants else "")
        + f"{show_name(p.name)}: {show_type(p.type)}"
        for p in program.params
    ]
    body = printer.expr(program.body.body, program.params)
    head: Doc = ("def ", show_name(program.name), listed(params), " =")
    lines.append(render((head, Indented((Break(), body))), width))
    return "\n".join(lines) + "\n"


def show_expr(expr: Expr, width: int | None = None, words: Collection[str] = ()) -> str:
    """An expression as text, in lines of at most `width` where possible; on one line for None."""
    return render(Printer(words).expr(expr, ()), width)

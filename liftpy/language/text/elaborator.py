"""From the syntax of expressions, pipelines and functions to typed expressions.

Names are resolved, and the types of expressions inferred, from arguments to functions, as in the
embedded form. Every word of the registry is a step of a pipeline: `xs |> word(sizes, function,
other operands)`. Words that take any number of arrays are called: `zip(xs, ys)`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from liftpy.errors import SyntaxRefused, TypeRefused, UnknownName, plural
from liftpy.ir.call import FunCall, fresh
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.operators import OPERATORS
from liftpy.ir.primitive import Get, Primitive, ScalarOp
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    SCALARS,
    STORAGE,
    OpenType,
    ScalarType,
    TupleType,
    Type,
)
from liftpy.language.embedded.folds import accumulators, component_types, first_that_fits
from liftpy.language.embedded.functions import eta
from liftpy.language.embedded.operations import USUAL_TYPES, check_constant, user_call
from liftpy.language.embedded.prelude import OPERATIONS
from liftpy.language.embedded.stages import WRITTEN_OUT, fixed_times, keeps_type
from liftpy.language.extent import limited
from liftpy.language.inference import note_guess
from liftpy.language.printing import show as printing
from liftpy.language.printing.spelling import show_type
from liftpy.language.printing.usage import arguments, law, usage
from liftpy.language.text.call_elaborator import (
    WORDS,
    CallElaborator,
    applied,
    no_suggestions,
    signature,
)
from liftpy.language.text.compositions import ABBREVIATIONS
from liftpy.language.text.size_elaborator import SIZE_ONLY
from liftpy.language.text.syntax import (
    Arrow,
    Call,
    Formal,
    Group,
    Infix,
    Let,
    Minus,
    Name,
    Node,
    Not,
    Number,
    Pipe,
    Project,
    Syntax,
    Truth,
    Typed,
    binders,
    is_number,
    is_suffixed,
    mentions,
    names_in,
)
from liftpy.primitives import PRIMITIVES, AnyReduceByIndex, Iterate
from liftpy.primitives.data_index import indexed

#: The meanings of the names in scope, the innermost binder last.
Scope: TypeAlias = Mapping[str, tuple[Expr, ...]]

#: A stand-in for the function of a primitive whose parameter types are not known yet.
NO_FUNCTION = Lambda((), Literal(0, I32))


@dataclass(frozen=True)
class Elaborator(CallElaborator):
    """Builds typed expressions."""

    #: The pipeline steps whose functions have been unrolled, once for each repetition.
    written: list[Node] = field(default_factory=list[Node])

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
                items = tuple(self.value(item, scope) for item in node.items)
                return self.placing(node, lambda: limited(Tuple(items)))
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
                why = "use it as an argument, `map(x => x + 1)`, or as a step, `e |> (x => x)`"
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
        arity = OPERATORS[op].arity
        if len(nodes) != arity:
            what = f"`{op}` takes {plural(arity, 'argument')}, not {len(nodes)}"
            raise self.refuse(SyntaxRefused, what, node, f"write {op}({', '.join('abc'[:arity])})")
        if op == "select":
            args = (self.value(nodes[0], scope), *self.beside(nodes[1:], scope))
            note_guess(self.holes, args)
        elif op in SCALARS:
            wanted = SCALARS[op]
            args = (self.numeric(nodes[0], STORAGE.get(wanted, wanted), scope),)
        else:
            args = self.beside(nodes, scope)
            usual = USUAL_TYPES.get(OPERATORS[op].operands)
            if usual is not None and isinstance(args[0].type, OpenType):
                args = self.agree(args, [usual] * len(args))
        hint = "`f32(x)` converts; a number may end with its type: `2i32`, `1.5f64`"
        types = {a.type for a in args[1:]} if op == "select" else {a.type for a in args}
        scalars = all(isinstance(t, ScalarType) for t in types)
        suggestion = hint if scalars and len(types) > 1 else f"`map` applies `{op}` to each element"

        def make() -> Expr:
            check_constant(op, args)
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
        return self.built(node, lambda: user_call(fun, args), lambda: (signature(fun),))

    def called(self, cls: type[Primitive], node: Call, scope: Scope) -> Expr:
        """A primitive that is written with all its arguments in parentheses."""
        expected, taken = arguments(cls), printing.operands(cls)
        if not printing.is_called(cls):
            what = f"`{cls.name}` is a pipeline step, not a value"
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

    def stage(self, node: Syntax, operand: Expr, scope: Scope) -> Expr:
        """A pipeline step applied to `operand`."""
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
                why = (
                    "a pipeline step is a word such as `split(4)`, a function's name, or `(x => e)`"
                )
                raise self.refuse(SyntaxRefused, what, node, why)

    def word(
        self, name: Name, args: tuple[Syntax, ...], operand: Expr, node: Syntax, scope: Scope
    ) -> Expr:
        """A named pipeline step: a primitive, an abbreviation, an operator or a user function."""
        word = name.name
        if name.quoted or word not in WORDS:
            fun = self.user_function(name)
            if args or len(fun.params) != 1:
                given = plural(len(args) + 1, "argument")
                what = f"as a pipeline step, `{word}` gets {given}, but takes {len(fun.params)}"
                why = signature(fun), f"call it: {word}({', '.join(p.name for p in fun.params)})"
                raise self.refuse(TypeRefused, what, node, *why)
            (value,) = self.agree((operand,), [p.type for p in fun.params])
            return self.built(node, lambda: user_call(fun, (value,)), lambda: (signature(fun),))
        if word in PRIMITIVES:
            return self.primitive(PRIMITIVES[word], args, operand, node, scope)
        if word in ABBREVIATIONS:
            return self.stage(self.expanded(word, args, node, value=False), operand, scope)
        arity = OPERATORS[word].arity
        if args or arity != 1:
            given = plural(len(args) + 1, "argument")
            what = f"as a pipeline step, `{word}` gets {given}, but takes {arity}"
            names = ", ".join("abc"[:arity])
            raise self.refuse(SyntaxRefused, what, node, f"write ({names}) => {word}({names})")
        return self.built(node, lambda: FunCall(ScalarOp(word), (operand,)), no_suggestions)

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
        operand = self.indexed(cls, operand)
        if printing.is_called(cls) or len(args) != len(expected):
            what = f"`{cls.name}` takes {plural(len(expected), 'argument')} here, not {len(args)}"
            if printing.is_called(cls):
                what = f"`{cls.name}` is not a pipeline step"
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
            if len(wanted) > 1 and all(isinstance(t, OpenType) for t in wanted):
                self.holes.unify(*wanted)  # what accumulates numbers without a type has theirs
                wanted = tuple(map(self.holes.resolve, wanted))
            function, exact = self.function(rest[0], wanted, scope)
            if self.holes.places:
                if len(operands) > 1 or cls is Iterate:
                    self.holes.unify(function.body.type, next(iter(wanted)))
                function = self.resolved(Lambda(function.params, self.typed(function.body)))
                operands = tuple(map(self.typed, operands))
            if cls is Iterate and not keeps_type(function):
                return self.iterated(rest[0], self.nat(args[0]), operand, node, scope)
            return self.apply(replace(bare, f=function), operands, node, exact=exact)

        possible = itertools.product(*(self.starts(a, operand.type, scope) for a in rest[1:]))
        return first_that_fits(
            (functools.partial(attempt, starts) for starts in possible), self.holes
        )

    def indexed(self, cls: type[Primitive], operand: Expr) -> Expr:
        """The operand of a primitive, with i32 for what it takes as indices."""
        pairs = issubclass(cls, AnyReduceByIndex)
        return self.agree((operand,), [indexed(operand.type)])[0] if pairs else operand

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


def entered(scope: Scope, params: tuple[Param, ...]) -> Scope:
    """A scope inside binders."""
    return {**scope, **{p.name: (*scope.get(p.name, ()), p) for p in params}}

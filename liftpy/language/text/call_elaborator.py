"""From the names of functions in a text to calls: primitives, user functions, abbreviations.

An abbreviation is replaced by the syntax of its expansion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TypeVar

from liftpy.errors import SyntaxRefused, plural
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr
from liftpy.ir.function import Function, UserFun
from liftpy.ir.open_sizes import show_range
from liftpy.ir.operators import OPERATORS
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import I32, TupleType, Type
from liftpy.language.embedded.prelude import OPERATIONS, PRELUDE
from liftpy.language.printing.spelling import show_type
from liftpy.language.printing.usage import law, usage
from liftpy.language.suggestions import broken_condition, sizes_that_work, values_that_work
from liftpy.language.text.compositions import ABBREVIATIONS, COMPOSITIONS, permuted
from liftpy.language.text.parse import parse_expr
from liftpy.language.text.syntax import Name, Node, Syntax
from liftpy.language.text.type_elaborator import TypeElaborator
from liftpy.primitives import PRIMITIVES, At
from liftpy.source.spans import Source, Span

T = TypeVar("T")

#: The names that have a meaning wherever a function is expected.
WORDS = frozenset({*PRIMITIVES, *ABBREVIATIONS, *OPERATORS})


@dataclass(frozen=True)
class CallElaborator(TypeElaborator):
    """Resolves names of functions and builds calls; the text may call `functions`."""

    functions: dict[str, UserFun] = field(default_factory=lambda: dict(PRELUDE))

    def as_function(self, name: str) -> tuple[str, ...]:
        """A hint for a name that is the name of a function."""
        if name in PRIMITIVES:
            return (f"`{name}` is a word of the language: write `{usage(PRIMITIVES[name])}`",)
        if name in self.functions or name in WORDS:
            return (
                f"`{name}` is a function: write `{name}(...)`, or pass it to `map` or `reduce`",
            )
        return ()

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

    def given(self, types: tuple[Type, ...], wanted: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of a user function's arguments; its own types decide open ones."""
        one = types[0] if len(types) == 1 else None
        whole = isinstance(one, TupleType) and len(wanted) > 1
        self.holes.unify(TupleType(types), TupleType((TupleType(wanted),) if whole else wanted))
        return tuple(map(self.holes.resolve, types))

    def expanded(self, word: str, args: tuple[Syntax, ...], node: Node, *, value: bool) -> Syntax:
        """The expansion of an abbreviation with arguments: a pipeline step, or a `value`."""
        known = COMPOSITIONS.get(word)
        head = "" if known is not None and known.value else "xs |> "
        params = ("2", "0", "1") if known is None else known.params
        why = f"write `{head}{word}({', '.join(params)})`"
        if value == bool(head):
            kind = "pipeline step, not a value" if head else "value, not a pipeline step"
            raise self.refuse(SyntaxRefused, f"`{word}` is a {kind}", node, why)
        if known is None:
            axes = tuple(int(self.number(arg, whole=True)) for arg in args)
            text = self.built(node, lambda: permuted(axes), lambda: (why,))
            return expand(composition(text), {}, node.place)
        if len(args) != len(params):
            what = f"`{word}` takes {plural(len(params), 'argument')}, not {len(args)}"
            raise self.refuse(SyntaxRefused, what, node, why)
        return expand(composition(known.text), dict(zip(params, args, strict=True)), node.place)

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
            if isinstance(primitive, At):
                self.agree(operands[:1], [I32])
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


def applied(function: Function, args: tuple[Expr, ...], *, exact: bool) -> Expr:
    """A call; unless `exact`, the function's parameters take the sizes of the arguments."""
    return FunCall(function, args) if exact else call(function, *args)


def no_suggestions() -> tuple[str, ...]:
    """For refusals that already contain a suggestion."""
    return ()


def signature(fun: UserFun) -> str:
    """A user function's parameters, for messages."""
    params = ", ".join(f"{p.name}: {show_type(p.type)}" for p in fun.params)
    return f"it is defined as {fun.name}({params})"

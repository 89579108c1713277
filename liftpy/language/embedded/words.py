"""The embedded words of layouts, made from their classes: the arguments are fields, then arrays.

    take(3)           a section that builds `Take(nat(3))`
    concat(xs, ys)    a call: no array is the main one, so all are arguments

Words with further conveniences are functions of `liftpy.language.embedded.stages`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.call import call
from liftpy.ir.expr import Expr
from liftpy.ir.function import Function, UserFun
from liftpy.ir.nat import INDEX, Nat, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.language.embedded import documented
from liftpy.language.embedded.no_operand import NoOperand, no_operator
from liftpy.language.embedded.operations import agreeing
from liftpy.language.embedded.trace import current, traced
from liftpy.language.given import is_stage, misfit_of, shown, stage_or
from liftpy.language.inference import typed
from liftpy.language.printing.show import is_called, statics
from liftpy.language.printing.usage import law
from liftpy.language.suggestions import sizes_that_work, values_that_work
from liftpy.primitives import LAYOUTS
from liftpy.source.caller import beginning, here, locate, raised_at, refusal

INDEX_FUNCTIONS = "write a function such as lambda i: 2 * i + 1"


class Section(NoOperand):
    """A function from an expression to an expression: a primitive without its array.

    Its refusals are placed where it was written. `title` is its text, if it is made of other words.
    """

    def __init__(self, build: Callable[[Expr], Expr], title: str = "") -> None:
        self.build = build
        self.title = title
        self.spot = here()

    def __call__(self, *given: Any, **named: Any) -> Expr:
        if len(given) != 1 or named or not isinstance(given[0], Expr):
            applied_to = "several values" if len(given) != 1 or named else shown(given[0])
            message = (
                f"a pipeline step cannot be applied to {applied_to}: "
                "it needs an expression, as in xs >> lp.join()"
            )
            raise TypeRefused(message)
        (xs,) = given
        try:
            return self.build(xs)
        except TypeRefused as error:
            if raised_at(error.__traceback__) is None:
                locate(error, self.spot)
                self.entitle(error, xs)
            raise

    def entitle(self, error: TypeRefused, xs: Expr) -> None:
        """Name the word that the user wrote in the refusal of a word that defines it."""
        if not self.title:
            return
        what, *rest = str(error).split("\n")
        place = len(self.spot.shown()) if error.located and self.spot is not None else 0
        title = f"{self.title} cannot be applied to {xs.type}"
        made_of = "  it is made of other words: "
        if len(rest) > place and rest[place].startswith(made_of):  # keep only the innermost word
            what = rest.pop(place).removeprefix(made_of)
        why = [f"{made_of}{what}"] if what != title else []
        error.args = ("\n".join([title, *rest[:place], *why, *rest[place:]]),)

    def noun(self) -> str:
        return "a pipeline step"

    def __repr__(self) -> str:
        return self.noun()

    def __rshift__(self, after: Any) -> Section:
        then: Callable[[Expr], Expr] = stage_or(after)
        if not callable(then) or isinstance(then, Expr):
            what = f"`>>` needs a function, not {shown(after)}"
            raise refusal(what, "f >> g is first f, then g", "write xs >> f, with the array first")
        return Section(lambda xs: then(self(xs)))

    def __rrshift__(self, before: Any) -> Section:
        """`lp.join >> lp.map(f)`: a word without arguments needs no parentheses."""
        if is_stage(before):
            return before() >> self
        what = f"a pipeline step cannot be applied to {shown(before)}"
        why = "it needs an expression"
        raise refusal(what, why, "make arrays parameters of the program: program(array)")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """NumPy passes an array to `>>` as a whole instead of element by element."""
        if ufunc.__name__ == "right_shift":
            return self.__rrshift__(inputs[0])
        raise no_operator(self, f"NumPy's `{ufunc.__name__}`")


def expression_of(value: Any) -> Expr:
    """`value` as an operand; TypeRefused if it is not an expression."""
    if isinstance(value, Expr):
        return value
    message = (
        f"{shown(value)} is not an array of the program\n  words are applied to expressions\n"
        "  write lp.full(n, value) for a constant array; make other arrays parameters"
    )
    raise TypeRefused(message)


def applied(primitive: Function, *given: Any) -> Expr:
    """A call of a primitive; a refusal lists sizes and values that work, and the law."""
    operands = tuple(expression_of(o) for o in given)
    trace = current()
    if trace is not None and trace.holes.places:
        operands = tuple(typed(o, trace.holes) for o in operands)
    try:
        return call(primitive, *operands)
    except TypeRefused as error:
        if error.located or "\n" in str(error) or not isinstance(primitive, Primitive):
            raise
        what, _, why = str(error).partition(": ")
        if what.startswith(primitive.name):
            what = snake(primitive.name) + what.removeprefix(primitive.name)
        works = (*sizes_that_work(primitive, operands), *values_that_work(primitive, operands))
        lines = [what, *(f"  {line}" for line in (why, *works, *law(type(primitive))) if line)]
        error.args = ("\n".join(lines),)
        raise


def snake(name: str) -> str:
    """The Python name of a word of the text form: `pad_clamp` for `padClamp`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def index_function(f: Any) -> Nat:
    """An index function as a term over `var("i")`, from such a term or a Python function."""
    if isinstance(f, Nat) or not callable(f):
        return nat(f)
    if isinstance(f, Section | UserFun) or getattr(f, "is_word", False):
        what = f"{shown(f)} cannot be an index function"
        raise refusal(what, "it computes with values, not with indices", INDEX_FUNCTIONS)
    if (why := misfit_of(f, 1)) is not None:
        what = f"an index function takes one argument, the index; {shown(f)} does not"
        raise refusal(what, why, INDEX_FUNCTIONS)
    with traced():
        found: Any = f(var(INDEX))
        if isinstance(found, Nat) or (
            hasattr(found, "__index__") and not isinstance(found, bool | Expr)
        ):
            return nat(found)
        raise no_index(f, found)


def no_index(f: Callable[..., Any], found: object) -> TypeRefused:
    """The refusal of an index function that does not return an index."""
    given = "nothing" if found is None else shown(found)
    what = f"an index function returns an index, this one returns {given}"
    why = "an index is a whole number, made of the argument with + - * // %"
    error = TypeRefused(f"{what}\n  {why}\n  {INDEX_FUNCTIONS}")
    locate(error, beginning(f))
    return error


#: The conversion of an argument to a field of a primitive, by the type of the field.
CASTS: Mapping[str, Callable[[Any], Any]] = {
    "Nat": nat,
    "IndexFunction": index_function,
    "float": float,
    "int": int,
}


#: The annotation of a parameter, by the type of its field.
ANNOTATIONS: Mapping[str, str] = {
    "Nat": "NatLike",
    "IndexFunction": "Index",
    "float": "float",
    "int": "int",
}
#: An example for each word that is made from its class.
EXAMPLES: Mapping[str, str] = {
    word: "\n".join(f">>> {code}\n{said}" for code, said in lines)
    for word, lines in {
        "slide_strict": [
            ("lp.evaluate(lp.iota(5) >> lp.slide_strict(3, 2)).tolist()", "[[0, 1, 2], [2, 3, 4]]")
        ],
        "unslide": [
            (
                "lp.evaluate(lp.iota(5) >> lp.slide(3, 2) >> lp.unslide(3, 2)).tolist()",
                "[0, 1, 2, 3, 4]",
            )
        ],
        "slide_copies": [
            ("copies = lp.iota(4) >> lp.map(lp.repeat(2))", ""),
            ("lp.evaluate(copies >> lp.slide_copies(2, 1)).tolist()", "[[0, 1], [1, 2], [2, 3]]"),
        ],
        "overlaps": [
            (
                "lp.evaluate(lp.iota(4) >> lp.slide(2, 1) >> lp.overlaps(4, 1, 9)).tolist()",
                "[[0, 9], [1, 1], [2, 2], [9, 3]]",
            )
        ],
        "cover": [("lp.evaluate(lp.iota(5) >> lp.cover(3)).tolist()", "[[0, 1, 2], [2, 3, 4]]")],
        "cover_once": [
            ("lp.evaluate(lp.iota(5) >> lp.cover_once(3, 9)).tolist()", "[[0, 1, 2], [9, 3, 4]]")
        ],
        "uncover": [
            ("lp.evaluate(lp.iota(5) >> lp.cover(3) >> lp.uncover(5)).tolist()", "[0, 1, 2, 3, 4]")
        ],
        "pad_clamp": [
            ("lp.evaluate(lp.iota(3) >> lp.pad_clamp(1, 2)).tolist()", "[0, 0, 1, 2, 2, 2]")
        ],
        "pad_mirror": [
            ("lp.evaluate(lp.iota(3) >> lp.pad_mirror(1, 2)).tolist()", "[0, 0, 1, 2, 2, 1]")
        ],
        "pad_wrap": [
            ("lp.evaluate(lp.iota(3) >> lp.pad_wrap(1, 2)).tolist()", "[2, 0, 1, 2, 0, 1]")
        ],
        "by_classes": [("lp.evaluate(lp.iota(3) >> lp.by_classes()).tolist()", "[0, 1, 2]")],
        "as_image": [("lp.evaluate(lp.iota(4) >> lp.as_image()).tolist()", "[0, 1, 2, 3]")],
        "concat": [("lp.evaluate(lp.concat(lp.iota(2), lp.iota(3))).tolist()", "[0, 1, 0, 1, 2]")],
        "split_at": [
            (
                "[part.tolist() for part in lp.evaluate(lp.iota(5) >> lp.split_at(2))]",
                "[[0, 1], [2, 3, 4]]",
            )
        ],
        "take": [("lp.evaluate(lp.iota(5) >> lp.take(2)).tolist()", "[0, 1]")],
        "drop": [("lp.evaluate(lp.iota(5) >> lp.drop(2)).tolist()", "[2, 3, 4]")],
        "gather": [
            (
                "lp.evaluate(lp.iota(5) >> lp.gather(5, lambda i: 4 - i)).tolist()",
                "[4, 3, 2, 1, 0]",
            )
        ],
        "repeat": [("lp.evaluate(lp.iota(2) >> lp.repeat(2)).tolist()", "[[0, 1], [0, 1]]")],
    }.items()
}


def word(cls: type[Primitive]) -> Callable[..., Any]:
    """The embedded word of a layout, made from its class."""
    own = statics(cls)
    parameters = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=ANNOTATIONS[str(f.type)],
        )
        for f in own
    ]
    if is_called(cls):
        arrays = list(inspect.signature(cls.type_of).parameters.values())[1:]
        parameters += [inspect.Parameter(p.name, p.kind) for p in arrays]
    gives = "Expr" if is_called(cls) else "Section"
    signature = inspect.Signature(parameters, return_annotation=gives)
    name = snake(cls.name)

    def build(*args: Any, **named: Any) -> Any:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        values = {f.name: CASTS[str(f.type)](bound.arguments[f.name]) for f in own}
        primitive = cls(**values)
        if is_called(cls):
            arrays = bound.args[len(own) :]
            return applied(primitive, *agreeing(arrays, [a.type for a in arrays[:1]] * len(arrays)))
        return Section(lambda xs: applied(primitive, xs))

    build.__name__ = build.__qualname__ = name
    example = EXAMPLES.get(name, "")
    summary = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    build.__doc__ = f"{summary}\n\n{example}".rstrip()
    build.__signature__ = signature
    return documented.word(cls)(build)


#: The words of layouts that are made from their classes.
WORDS: Mapping[str, Callable[..., Any]] = {snake(p.name): word(p) for p in LAYOUTS}

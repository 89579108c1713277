"""The embedded form: programs as Python functions.

    @program
    def dot(xs: array(f32, 1000), ys: array(f32, 1000)):
        return zip(xs, ys) >> map(lambda x, y: x * y) >> reduce(add, 0)

Every word here builds the primitive of its name. A word applied to parameters gives a `Section`, a
function from expressions to expressions; `xs >> f` applies it, `f >> g` composes two.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from liftpy.errors import InternalError, TypeRefused
from liftpy.ir.constraint import Equal
from liftpy.ir.expr import (
    Expr,
    FunCall,
    Function,
    Lambda,
    Law,
    Literal,
    Param,
    Primitive,
    Program,
    Tuple,
    UserFun,
    call,
    cast_literal,
    fresh,
    operate,
    substitute,
)
from liftpy.ir.nat import Nat, NatLike, nat
from liftpy.ir.types import (
    BOOL,
    F32,
    I32,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    base,
    same_shape,
    scalars,
)
from liftpy.primitives.concat import Drop, Take
from liftpy.primitives.generate import Generate, Repeat
from liftpy.primitives.iterate import Iterate
from liftpy.primitives.lowered import (
    IterateSeq,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqUnroll,
    MapVec,
    MapWrg,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToLocal,
    ToPrivate,
    ToStreamed,
)
from liftpy.primitives.map import Map
from liftpy.primitives.pad import Pad
from liftpy.primitives.reduce import Reduce
from liftpy.primitives.scan import Scan
from liftpy.primitives.slide import Slide
from liftpy.primitives.split import Join, Split
from liftpy.primitives.transpose import Reorder, Transpose, swaps
from liftpy.primitives.vector import AsScalar, AsVector
from liftpy.primitives.words import WORDS, Section, index_function
from liftpy.primitives.zip import Unzip, Zip

T = TypeVar("T")

#: A function of an index: a term over `var("i")`, or a Python function.
Index: TypeAlias = Nat | Callable[[Nat], Nat]
#: What may stand where a function is expected.
Callee: TypeAlias = Callable[..., Any] | Section | UserFun | Lambda


def function(f: Callee, types: tuple[Type, ...]) -> Lambda:
    """Python functions, sections and user functions as a `Lambda` on parameters of these types.

    A Python function's parameters keep their names. One parameter of tuple type may be written as
    several, as in `map(lambda x, y: x * y)` over a `zip`. Sections get parameters named `_`.
    """
    if isinstance(f, Lambda):
        return f
    if isinstance(f, Section):
        return section(f, types)
    if isinstance(f, UserFun):
        return eta(f, types)
    names = [p.name for p in inspect.signature(f).parameters.values()]
    if len(names) == len(types):
        return bind(names, types, f)
    if len(types) == 1 and isinstance(types[0], TupleType) and len(types[0].elements) == len(names):
        return bind(["".join(names)], types, lambda pair: f(*pair))
    message = (
        f"a function of {len(types)} value(s) is needed here, "
        f"this one takes {len(names)}: {', '.join(names)}"
    )
    raise TypeRefused(message)


def bind(names: list[str], types: tuple[Type, ...], body: Callable[..., Any]) -> Lambda:
    """A function whose parameters have these names, or others where these mean something outside.

    The body is built with names that no program has: an outer variable in it keeps its own.
    """
    placeholders = tuple(Param(f"?{name}", t) for name, t in zip_(names, types))
    built = expression(body(*placeholders))
    taken = {p.name for p in built.free if p not in placeholders}
    params: list[Param] = []
    for name, t in zip_(names, types):
        params.append(Param(fresh(name, taken), t))
        taken.add(params[-1].name)
    return Lambda(tuple(params), substitute(built, dict(zip_(placeholders, params))))


def zip_(xs: Iterable[Any], ys: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Python's own zip, whose name the language takes here."""
    return ((x, y) for x, y in builtins.zip(xs, ys, strict=True))


def section(f: Callable[[Expr], Expr], types: tuple[Type, ...]) -> Lambda:
    """A section as a function of `_`."""
    if len(types) != 1:
        message = f"a function of {len(types)} values is needed here, a section takes one"
        raise TypeRefused(message)
    return bind(["_"], types, f)


def eta(f: UserFun, types: tuple[Type, ...]) -> Lambda:
    """A user function as a `Lambda`: of its parameters, or of one tuple of them."""
    if len(f.params) == len(types):
        params = tuple(Param(p.name, t) for p, t in zip_(f.params, types))
        return Lambda(params, FunCall(f, params))
    if (
        len(types) == 1
        and isinstance(types[0], TupleType)
        and len(types[0].elements) == len(f.params)
    ):
        pair = Param("_", types[0])
        return Lambda((pair,), FunCall(f, tuple(pair)))
    message = f"a function of {len(types)} value(s) is needed here, {f.name} takes {len(f.params)}"
    raise TypeRefused(message)


def expression(value: Any) -> Expr:
    """What an embedded function returned, as an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, tuple):
        return Tuple(tuple(expression(v) for v in value))
    message = f"an embedded function must return an expression, not {value!r}"
    raise TypeRefused(message)


def element(xs: Expr) -> tuple[Type, ...]:
    """The element type of an array or vector, as the one parameter of a function over it."""
    if isinstance(xs.type, ArrayType | VectorType):
        return (xs.type.element,)
    message = f"an array is needed here, this is {xs.type}"
    raise TypeRefused(message)


def mapping(make: Callable[[Lambda], Primitive], f: Callee) -> Section:
    """The section of a primitive that maps `f`."""
    return Section(lambda xs: call(make(function(f, element(xs))), xs))


#: The initial value of a fold: numbers take the types of what is folded (see `accumulators`).
Start: TypeAlias = "Expr | float | tuple[Start, ...]"


def accumulators(one: Type) -> tuple[Type, ...]:
    """The types that a plain number may have as the initial value of a fold over such elements.

    It is a scalar of theirs; over tuples a scalar of a component's type, or else a tuple, the
    number at each component. The first type that the fold's function gives back is meant.
    """
    inner = base(one)
    if not isinstance(inner, TupleType):
        return (inner if isinstance(inner, ScalarType) and inner != BOOL else F32,)
    numbers = [s for s in scalars(inner) if s != BOOL] or [F32]
    return (*dict.fromkeys(numbers), inner) if scalars(inner) else (F32,)


def component_types(one: Type, count: int) -> tuple[Type, ...]:
    """The types of plain numbers in a tuple of so many, as the initial value of a fold."""
    inner = base(one)
    if isinstance(inner, TupleType) and len(inner.elements) == count:
        return inner.elements
    return (accumulators(one)[0],) * count


def spread(value: float, t: Type) -> Expr:
    """A number as a literal of a type; at every component of a tuple type."""
    if isinstance(t, TupleType):
        return Tuple(tuple(spread(value, e) for e in t.elements))
    if isinstance(t, ArrayType | VectorType):
        message = f"{value} cannot begin a fold to {t}: give an array"
        raise TypeRefused(message)
    return Literal(cast_literal(value, t), t)


def starts(init: Start, one: Type) -> Iterator[Callable[[], Expr]]:
    """What an initial value may be, the likeliest first."""
    if isinstance(init, Expr):
        yield lambda: init
    elif isinstance(init, tuple):
        types = component_types(one, len(init))
        yield lambda: Tuple(
            tuple(
                next(starts(part, t))() if isinstance(part, tuple | Expr) else spread(part, t)
                for part, t in zip_(init, types)
            )
        )
    else:
        for t in accumulators(one):
            yield lambda t=t: spread(init, t)


def first_that_fits(attempts: Iterable[Callable[[], T]]) -> T:
    """The first attempt that is not refused; else the refusal of the first."""
    refusal: TypeRefused | None = None
    for attempt in attempts:
        try:
            return attempt()
        except TypeRefused as error:
            refusal = refusal or error
    message = "no attempt was made"
    raise refusal or InternalError(message)


def reduction(make: Callable[[Lambda], Primitive], f: Callee, init: Start) -> Section:
    """The section of a primitive that folds with `f` from `init`."""

    def build(xs: Expr) -> Expr:
        (one,) = element(xs)

        def attempt(start: Callable[[], Expr]) -> Expr:
            begun = start()
            return call(make(function(f, (begun.type, one))), begun, xs)

        return first_that_fits(functools.partial(attempt, s) for s in starts(init, one))

    return Section(build)


def layout(primitive: Function) -> Section:
    """The section of a primitive without a function."""
    return Section(lambda xs: call(primitive, xs))


# --- the words -----------------------------------------------------------------------------------


def __getattr__(name: str) -> Callable[..., Any]:
    """The word of a layout that wants no sugar, from its class: `take`, `pad_clamp`, ..."""
    if name not in DERIVED:
        message = f"module {__name__} has no attribute {name!r}"
        raise AttributeError(message)
    return DERIVED[name]


def map(f: Callee) -> Section:  # noqa: A001  the language's own word
    """`f` on every element."""
    return mapping(Map, f)


def reduce(f: Callee, init: Start) -> Section:
    """A left fold from `init`."""
    return reduction(Reduce, f, init)


def scan(f: Callee, init: Start) -> Section:
    """The values of a left fold from `init` after each element."""
    return reduction(Scan, f, init)


def iterate(times: NatLike, f: Callee) -> Section:
    """`f` applied `times` times; where it changes the type, one call after the other."""

    def build(x: Expr) -> Expr:
        once = function(f, (x.type,))
        if keeps_type(once):
            return call(Iterate(once, nat(times)), x)
        for _ in range(fixed_times(nat(times), x.type, once.body.type)):
            x = call(function(f, (x.type,)), x)
        return x

    return Section(build)


def keeps_type(f: Lambda) -> bool:
    """Whether a function of one value may give what it is given."""
    pairs = same_shape(f.params[0].type, f.body.type)
    return pairs is not None and all(Equal(a, b).known() is not False for a, b in pairs)


def fixed_times(times: Nat, given: Type, result: Type) -> int:
    """How often a function that changes the type is applied; that has to be a number."""
    if times.constant is None:
        message = (
            f"iterate({times}) of a function from {given} to {result}: one that changes the type "
            "is written out, so give a number"
        )
        raise TypeRefused(message)
    return times.constant


def zip(*arrays: Expr) -> Expr:  # noqa: A001  the language's own word
    """Arrays of one length as an array of tuples."""
    return call(Zip(), *arrays)


def unzip() -> Section:
    """An array of tuples as a tuple of arrays."""
    return layout(Unzip())


def get(index: int) -> Section:
    """A component of a tuple."""
    return Section(lambda pair: pair[index])


def split(size: NatLike) -> Section:
    """Chunks of `size` elements."""
    return layout(Split(nat(size)))


def join() -> Section:
    """The two outermost dimensions as one."""
    return layout(Join())


def slide(size: NatLike, step: NatLike = 1) -> Section:
    """Overlapping windows."""
    return layout(Slide(nat(size), nat(step)))


def pad(left: NatLike, right: NatLike, value: float = 0.0) -> Section:
    """Constant elements before and after; negative amounts crop."""
    return layout(Pad(nat(left), nat(right), float(value)))


def transpose() -> Section:
    """The two outermost dimensions exchanged."""
    return layout(Transpose())


def reorder(index: Index | Reorder, inverse: Index | None = None) -> Section:
    """A permutation with its inverse, terms over `var("i")` or functions; or one of `stride`."""
    if isinstance(index, Reorder):
        return layout(index)
    if inverse is None:
        message = "reorder needs the inverse of its index function as well"
        raise TypeRefused(message)
    return layout(Reorder(index_function(index), index_function(inverse)))


def as_vector(width: NatLike) -> Section:
    """An array as vectors of `width` lanes."""
    return layout(AsVector(nat(width)))


def as_scalar() -> Section:
    """An array of vectors as the array of their lanes."""
    return layout(AsScalar())


def generate(length: NatLike, f: Callee, index: ScalarType = I32) -> Expr:
    """An array of `f(i)` for each index, which is a number of type `index`."""
    return call(Generate(nat(length), function(f, (index,))))


def let(f: Callee) -> Section:
    """A value bound once, to be used several times in `f`."""
    return Section(lambda x: call(function(f, (x.type,)), x))


def map_seq(f: Callee) -> Section:
    """`map` as a loop."""
    return mapping(MapSeq, f)


def map_seq_unroll(f: Callee) -> Section:
    """`map` as straight-line code."""
    return mapping(MapSeqUnroll, f)


def map_glb(dim: int, f: Callee) -> Section:
    """`map` over global ids."""
    return mapping(lambda g: MapGlb(g, dim), f)


def map_wrg(dim: int, f: Callee) -> Section:
    """`map` over work-groups."""
    return mapping(lambda g: MapWrg(g, dim), f)


def map_lcl(dim: int, f: Callee) -> Section:
    """`map` over local ids."""
    return mapping(lambda g: MapLcl(g, dim), f)


def map_vec(f: Callee) -> Section:
    """A scalar function on all lanes of a vector."""
    return mapping(MapVec, f)


def reduce_seq(f: Callee, init: Start) -> Section:
    """`reduce` as a loop."""
    return reduction(ReduceSeq, f, init)


def reduce_seq_unroll(f: Callee, init: Start) -> Section:
    """`reduce` as straight-line code."""
    return reduction(ReduceSeqUnroll, f, init)


def scan_seq(f: Callee, init: Start) -> Section:
    """`scan` as a loop."""
    return reduction(ScanSeq, f, init)


def iterate_seq(times: NatLike, f: Callee) -> Section:
    """`iterate` as a loop."""
    return Section(lambda x: call(IterateSeq(function(f, (x.type,)), nat(times)), x))


def slide_seq(size: NatLike, step: NatLike, f: Callee) -> Section:
    """`f` on overlapping windows as a loop, the window in registers."""

    def build(xs: Expr) -> Expr:
        (one,) = element(xs)
        window = ArrayType(one, nat(size))
        return call(SlideSeq(function(f, (window,)), nat(size), nat(step)), xs)

    return Section(build)


def reduce_vec(f: Callee, init: Start) -> Section:
    """A left fold over the lanes of a vector."""
    return reduction(ReduceVec, f, init)


def to_global(x: Expr) -> Expr:
    """The value, stored in global memory."""
    return call(ToGlobal(), x)


def to_streamed(x: Expr) -> Expr:
    """The value, stored in global memory past the caches where the device can."""
    return call(ToStreamed(), x)


def to_local(x: Expr) -> Expr:
    """The value, stored in local memory."""
    return call(ToLocal(), x)


def to_private(x: Expr) -> Expr:
    """The value, stored in registers."""
    return call(ToPrivate(), x)


# --- compositions --------------------------------------------------------------------------------


def under(depth: int, f: Section) -> Section:
    """`f` under `depth` maps."""
    return f if depth == 0 else map(under(depth - 1, f))


def map2d(f: Callee) -> Section:
    """`f` on every element of an array of arrays."""
    return map(map(f))


def map3d(f: Callee) -> Section:
    """`f` on every element of an array of arrays of arrays."""
    return map(map2d(f))


def pad_nd(pad_one: Callable[[NatLike, NatLike], Section], *amounts: NatLike) -> Section:
    """Padding of each dimension, outermost first: two amounts for each, `pad_one` for each."""
    outer = pad_one(amounts[0], amounts[1])
    return outer if len(amounts) == 2 else outer >> map(pad_nd(pad_one, *amounts[2:]))


def pad2d(
    top: NatLike, bottom: NatLike, left: NatLike, right: NatLike, value: float = 0.0
) -> Section:
    """Constant rows above and below, constant columns left and right."""
    return pad_nd(lambda a, b: pad(a, b, value), top, bottom, left, right)


def pad3d(
    front: NatLike,
    back: NatLike,
    top: NatLike,
    bottom: NatLike,
    left: NatLike,
    right: NatLike,
    value: float = 0.0,
) -> Section:
    """Constant elements on all six sides."""
    return pad_nd(lambda a, b: pad(a, b, value), front, back, top, bottom, left, right)


def boundary(one: Callable[..., Section], name: str, rank: int) -> Callable[..., Section]:
    """Padding in several dimensions with elements of the array."""

    def build(*amounts: NatLike) -> Section:
        if len(amounts) != 2 * rank:
            message = f"{name} needs {2 * rank} amounts, two for each dimension: got {len(amounts)}"
            raise TypeRefused(message)
        return pad_nd(one, *amounts)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{one.__name__}` in {rank} dimensions, two amounts for each, outermost first."
    return build


#: The words that their classes say all of, and the boundaries in two and three dimensions.
DERIVED: dict[str, Callable[..., Any]] = dict(WORDS) | {
    f"{name}{rank}d": boundary(WORDS[name], f"{name}{rank}d", rank)
    for name in ("pad_clamp", "pad_mirror", "pad_wrap")
    for rank in (2, 3)
}


def permute(*axes: int) -> Section:
    """Dimensions in another order, as in numpy: dimension k is what `axes[k]` was."""
    steps = [under(depth, transpose()) for depth in swaps(axes)]
    return functools.reduce(lambda done, step: done >> step, steps, Section(lambda xs: xs))


def slice(start: NatLike, length: NatLike) -> Section:  # noqa: A001  the language's own word
    """`length` elements from `start` on."""
    return layout(Drop(nat(start))) >> layout(Take(nat(length)))


def scatter(index: Index, inverse: Index) -> Section:
    """Element i goes to `index(i)`: `reorder` the other way round."""
    return reorder(inverse, index)


def full(length: NatLike, x: Expr | float) -> Expr:
    """One value at every index; a number is an f32."""
    value = x if isinstance(x, Expr) else Literal(cast_literal(x, F32), F32)
    return call(Repeat(nat(length)), value)


def iota(length: NatLike) -> Expr:
    """The indices, as i32."""
    return generate(length, lambda i: i)


def slide2d(size: NatLike, step: NatLike = 1) -> Section:
    """Square windows: `[h][w]a -> [oh][ow][size][size]a`. See `slide2d_rect`."""
    return slide2d_rect((size, size), (step, step))


def slide2d_rect(size: tuple[NatLike, NatLike], step: tuple[NatLike, NatLike]) -> Section:
    """Rectangular windows: rows slide first, then the columns of each group of rows.

    `[h][w]a -> [oh][ow][size_h][size_w]a` (specs: lift-convolution, section 1).
    """
    return slide_nd(size, step)


def slide3d(size: NatLike, step: NatLike = 1) -> Section:
    """Cubic windows: `[d][h][w]a -> [od][oh][ow][size][size][size]a`."""
    return slide_nd((size,) * 3, (step,) * 3)


def slide_nd(sizes: Sequence[NatLike], steps: Sequence[NatLike]) -> Section:
    """Windows in several dimensions, outermost first: all positions, then all insides.

    The outermost dimension slides first; its inside then goes behind the positions of the others.
    """
    outer = slide(sizes[0], steps[0])
    if len(sizes) == 1:
        return outer
    inner = map(slide_nd(sizes[1:], steps[1:]))
    for depth in range(len(sizes) - 1):
        inner = inner >> under(depth, transpose())
    return outer >> map(inner)


# --- scalar functions ---


def select(condition: Expr, then: Expr | float, otherwise: Expr | float) -> Expr:
    """`then` where the condition holds, else `otherwise`."""
    return operate("select", condition, then, otherwise)


def sqrt(x: Expr) -> Expr:
    """The square root of a float."""
    return operate("sqrt", x)


def exp(x: Expr) -> Expr:
    """E to the power of a float."""
    return operate("exp", x)


def log(x: Expr) -> Expr:
    """The natural logarithm of a float."""
    return operate("log", x)


def sin(x: Expr) -> Expr:
    """The sine of a float."""
    return operate("sin", x)


def cos(x: Expr) -> Expr:
    """The cosine of a float."""
    return operate("cos", x)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent of a float."""
    return operate("tanh", x)


def power(x: Expr, y: Expr | float) -> Expr:
    """A float to the power of another."""
    return operate("pow", x, y)


def floor(x: Expr) -> Expr:
    """The largest whole number that is not above a float."""
    return operate("floor", x)


def ceil(x: Expr) -> Expr:
    """The smallest whole number that is not below a float."""
    return operate("ceil", x)


def smaller(x: Expr, y: Expr | float) -> Expr:
    """The smaller of two numbers."""
    return operate("min", x, y)


def larger(x: Expr, y: Expr | float) -> Expr:
    """The larger of two numbers."""
    return operate("max", x, y)


def equal(x: Expr, y: Expr | float) -> Expr:
    """Whether two scalars are the same."""
    return operate("==", x, y)


def unequal(x: Expr, y: Expr | float) -> Expr:
    """Whether two scalars differ."""
    return operate("!=", x, y)


def convert(x: Expr, t: ScalarType) -> Expr:
    """A scalar as one of another type."""
    return operate(t.name, x)


def absolute(x: Expr) -> Expr:
    """The absolute value."""
    return operate("abs", x)


# --- user functions and programs -----------------------------------------------------------------


def fun(
    name: str, params: dict[str, Type], body: Callable[..., Expr], laws: tuple[Law, ...] = ()
) -> UserFun:
    """A user function of named, typed scalars.

    Declared laws (`ASSOCIATIVE`, `COMMUTATIVE`, `neutral(0)`) let rules use them.
    """
    formal = tuple(Param(n, t) for n, t in params.items())
    return UserFun(name, formal, expression(body(*formal)), laws)


ASSOCIATIVE, COMMUTATIVE = Law("associative"), Law("commutative")


def neutral(value: float) -> Law:
    """The law that `f(value, x) = x = f(x, value)`."""
    return Law("neutral", float(value))


def arithmetic(name: str, t: Type, op: str, laws: tuple[Law, ...]) -> UserFun:
    """A binary operator as a user function."""
    return fun(name, {"x": t, "y": t}, lambda x, y: operate(op, x, y), laws)


MONOID = (ASSOCIATIVE, COMMUTATIVE)
add = arithmetic("add", F32, "+", (*MONOID, neutral(0)))
mul = arithmetic("mul", F32, "*", (*MONOID, neutral(1)))
maximum = arithmetic("maximum", F32, "max", MONOID)
minimum = arithmetic("minimum", F32, "min", MONOID)
add_int = arithmetic("addInt", I32, "+", (*MONOID, neutral(0)))

#: User functions that every text may use without defining them.
PRELUDE: dict[str, UserFun] = {f.name: f for f in (add, mul, maximum, minimum, add_int)}


class Constant:
    """Marks a parameter's type as constant: the same from run to run."""

    def __init__(self, type: Type) -> None:  # noqa: A002  the language's own word
        self.type = type


def const(t: Type, *lengths: NatLike) -> Constant:
    """The type of a constant parameter, such as weights."""
    return Constant(array_type(t, *lengths))


def array_type(t: Type, *lengths: NatLike) -> Type:
    """`array_type(f32, 2, 3)` is `[2][3]f32`."""
    result = t
    for length in reversed(lengths):
        result = ArrayType(result, nat(length))
    return result


def program(f: Callable[..., Expr]) -> Program:
    """A Python function with typed parameters as a program."""
    hints = inspect.get_annotations(f, eval_str=True)
    params: list[Param] = []
    constants: set[str] = set()
    for name in inspect.signature(f).parameters:
        hint = hints.get(name)
        if isinstance(hint, Constant):
            constants.add(name)
            hint = hint.type
        if not isinstance(hint, Type):
            message = f"parameter {name} of {f.__name__} needs a type, such as array(f32, 100)"
            raise TypeRefused(message)
        params.append(Param(name, hint))
    return Program(f.__name__, Lambda(tuple(params), expression(f(*params))), frozenset(constants))

"""The words of primitives that take functions or have default arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from liftpy.errors import TypeRefused, plural
from liftpy.ir.call import call
from liftpy.ir.constraint import Equal
from liftpy.ir.expr import Expr
from liftpy.ir.function import Function, Lambda
from liftpy.ir.nat import Nat, NatLike, nat
from liftpy.ir.primitive import Get, Primitive
from liftpy.ir.types import I32, ScalarType, Type, same_shape
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.folds import Start, reduction
from liftpy.language.embedded.functions import Callee, element, expression, function
from liftpy.language.embedded.words import Section, applied, index_function
from liftpy.primitives.generate import Generate
from liftpy.primitives.iterate import Iterate
from liftpy.primitives.map import Map
from liftpy.primitives.pad import Pad
from liftpy.primitives.reduce import Reduce
from liftpy.primitives.scan import ExclusiveScan, Scan
from liftpy.primitives.slide import Slide
from liftpy.primitives.split import Join, Split
from liftpy.primitives.transpose import Reorder, Transpose
from liftpy.primitives.vector import AsScalar, AsVector
from liftpy.primitives.zip import Unzip, Zip

#: An index function: a term over `var("i")`, or a Python function.
Index: TypeAlias = Nat | Callable[[Nat], Nat]


def mapping(make: Callable[[Lambda], Primitive], f: Callee) -> Section:
    """The section of a primitive that maps the function `f`."""
    return Section(lambda xs: applied(make(function(f, element(xs))), xs))


def layout(primitive: Function) -> Section:
    """The section of a primitive without a function."""
    return Section(lambda xs: applied(primitive, xs))


@word(Map)
def map(f: Callee) -> Section:  # noqa: A001  the language's own word
    """Applies `f` to every element.

    `f` is a Python function, a pipeline step such as `lp.transpose()`, or a user function. Over
    an array of tuples, `f` may take the components as separate parameters: `lambda x, y: x * y`.

    >>> lp.evaluate(lp.iota(4) >> lp.map(lambda x: 2 * x + 1)).tolist()
    [1, 3, 5, 7]
    """
    return mapping(Map, f)


@word(Reduce)
def reduce(f: Callee, init: Start) -> Section:
    """Folds an array from the left: `f` takes the accumulator, initially `init`, and an element.

    `init` is an expression, or a plain number, which takes its type from the elements. A reduction
    can be computed in parallel if the laws of `f` are declared (`lp.add`, `lp.fun`).

    >>> lp.evaluate(lp.iota(5) >> lp.reduce(lp.add, 0)).item()
    10
    """
    return reduction(Reduce, f, init)


@word(Scan)
def scan(f: Callee, init: Start) -> Section:
    """Computes the accumulators of a left fold from `init` after each element.

    `f` takes the accumulator and an element; `init` is given as for `lp.reduce`.

    >>> lp.evaluate(lp.iota(5) >> lp.scan(lp.add, 0)).tolist()
    [0, 1, 3, 6, 10]
    """
    return reduction(Scan, f, init)


@word(ExclusiveScan)
def exclusive_scan(f: Callee, init: Start) -> Section:
    """Computes the accumulators of a left fold from `init` before each element: an exclusive scan.

    `f` takes the accumulator and an element; `init` is given as for `lp.reduce`, and is the first
    element of the result. The last element of the array is not used.

    >>> lp.evaluate(lp.iota(5) >> lp.exclusive_scan(lp.add, 0)).tolist()
    [0, 0, 1, 3, 6]
    """
    return reduction(ExclusiveScan, f, init)


@word(Iterate)
def iterate(times: NatLike, f: Callee) -> Section:
    """Applies `f` `times` times.

    If `f` changes the type, the calls are unrolled, and `times` must be a number, at most 100.

    >>> lp.evaluate(lp.iota(3) >> lp.iterate(2, lp.map(lambda x: 2 * x))).tolist()
    [0, 4, 8]
    """

    def build(x: Expr) -> Expr:
        once = function(f, (x.type,))
        if keeps_type(once):
            return applied(Iterate(once, nat(times)), x)
        for _ in range(fixed_times(nat(times), x.type, once.body.type)):
            x = call(function(f, (x.type,)), x)
        return x

    return Section(build)


def keeps_type(f: Lambda) -> bool:
    """Whether a function of one value may return the type that it takes."""
    pairs = same_shape(f.params[0].type, f.body.type)
    return pairs is not None and all(Equal(a, b).known() is not False for a, b in pairs)


WRITTEN_OUT = 100
"""The most times a function that changes the type may be applied; each nests one level deeper."""


def fixed_times(times: Nat, given: Type, result: Type) -> int:
    """The number of times to unroll a function that changes the type; TypeRefused if unknown."""
    if times.constant is None:
        message = (
            f"iterate({times}) cannot repeat a function from {given} to {result}: a function that "
            "changes the type is unrolled, so the count must be a number"
        )
        raise TypeRefused(message)
    if times.constant > WRITTEN_OUT:
        message = (
            f"iterate({times}) cannot repeat a function from {given} to {result}: a function that "
            f"changes the type is unrolled, at most {WRITTEN_OUT} times"
        )
        raise TypeRefused(message)
    return times.constant


@word(Zip)
def zip(*arrays: Expr) -> Expr:  # noqa: A001  the language's own word
    """Combines arrays of equal length into an array of tuples.

    >>> lp.evaluate(lp.zip(lp.iota(3), lp.iota(3)) >> lp.map(lambda i, j: i * j)).tolist()
    [0, 1, 4]
    """
    return applied(Zip(), *arrays)


@word(Unzip)
def unzip() -> Section:
    """Converts an array of tuples to a tuple of arrays.

    >>> firsts, _ = lp.evaluate(lp.zip(lp.iota(3), lp.full(3, 0.5)) >> lp.unzip())
    >>> firsts.tolist()
    [0, 1, 2]
    """
    return layout(Unzip())


@word(Get)
def get(index: int) -> Section:
    """Selects a component of a tuple, as `pair[index]`; `index` counts from 0.

    >>> lp.evaluate(lp.zip(lp.iota(3), lp.full(3, 0.5)) >> lp.unzip() >> lp.get(0)).tolist()
    [0, 1, 2]
    """
    return layout(Get(index))


@word(Split)
def split(size: NatLike) -> Section:
    """Splits an array into chunks of `size` elements.

    >>> lp.evaluate(lp.iota(6) >> lp.split(2)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    return layout(Split(nat(size)))


@word(Join)
def join() -> Section:
    """Joins the two outermost dimensions into one.

    >>> lp.evaluate(lp.iota(6) >> lp.split(2) >> lp.join()).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    return layout(Join())


@word(Slide)
def slide(size: NatLike, step: NatLike = 1) -> Section:
    """Makes overlapping windows of `size` elements that begin `step` elements apart.

    An incomplete last window is dropped; `lp.slide_strict` refuses one.

    >>> lp.evaluate(lp.iota(5) >> lp.slide(3)).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    return layout(Slide(nat(size), nat(step)))


@word(Pad)
def pad(left: NatLike, right: NatLike, value: float = 0.0) -> Section:
    """Adds constant elements before and after an array; negative amounts crop.

    >>> lp.evaluate(lp.iota(3) >> lp.pad(1, 2, 9)).tolist()
    [9, 0, 1, 2, 9, 9]
    """
    return layout(Pad(nat(left), nat(right), float(value)))


@word(Transpose)
def transpose() -> Section:
    """Swaps the two outermost dimensions.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.transpose()).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    return layout(Transpose())


@word(Reorder)
def reorder(index: Index | Reorder, inverse: Index | None = None) -> Section:
    """Permutes the elements: element i of the result is element `index(i)` of the array.

    `inverse` is the inverse function, through which results are written. Both are Python functions
    of an index or terms over `lp.var("i")`. The result of `lp.stride` takes the place of both.

    >>> lp.evaluate(lp.iota(4) >> lp.reorder(lambda i: 3 - i, lambda i: 3 - i)).tolist()
    [3, 2, 1, 0]
    """
    if isinstance(index, Reorder):
        return layout(index)
    if inverse is None:
        message = (
            "reorder also needs the inverse of its index function\n"
            "  results are written through the inverse\n"
            "  write lp.reorder(index, inverse), or xs >> lp.gather(n, index)"
        )
        raise TypeRefused(message)
    return layout(Reorder(index_function(index), index_function(inverse)))


@word(AsVector)
def as_vector(width: NatLike) -> Section:
    """Groups the elements of an array into vectors of `width` lanes.

    >>> lp.evaluate(lp.iota(4) >> lp.as_vector(2)).tolist()
    [[0, 1], [2, 3]]
    """
    return layout(AsVector(nat(width)))


@word(AsScalar)
def as_scalar() -> Section:
    """Converts an array of vectors to the array of their lanes.

    >>> lp.evaluate(lp.iota(4) >> lp.as_vector(2) >> lp.as_scalar()).tolist()
    [0, 1, 2, 3]
    """
    return layout(AsScalar())


@word(Generate)
def generate(length: NatLike, f: Callee, index: ScalarType = I32) -> Expr:
    """Computes an array of `length` elements from its indices: element i is `f(i)`.

    `index` is the type in which `f` takes the index.

    >>> lp.evaluate(lp.generate(4, lambda i: i * i)).tolist()
    [0, 1, 4, 9]
    """
    return applied(Generate(nat(length), function(f, (index,))))


@word()
def let(*given: Any, **keywords: Any) -> Any:
    """Binds values that are used several times: `xs >> lp.let(f)` or `lp.let(xs, f)`.

    The function takes one parameter per value, and is the first or the last argument. A Python
    variable has the same effect: a value that is used more than once is bound once.

    >>> lp.evaluate(lp.let(lp.iota(3), lambda xs: lp.zip(xs, xs) >> lp.map(lp.mul))).tolist()
    [0, 1, 4]
    """
    functions = [f for f in given if not isinstance(f, Expr) and callable(f)]
    values = [x for x in given if isinstance(x, Expr) or not callable(x)]
    if keywords or len(functions) != 1:
        found = (
            f"the keyword {next(iter(keywords))}"
            if keywords
            else plural(len(functions), "function")
        )
        message = (
            f"lp.let takes values and one function, got {found}\n"
            "  the function takes the values and returns the result\n"
            "  write lp.let(value, lambda v: v * v), or value >> lp.let(lambda v: v * v)"
        )
        raise TypeRefused(message)
    if not values:
        return Section(lambda x: bound(functions[0], x))
    return bound(functions[0], *(expression(v) for v in values))


def bound(f: Callee, *values: Expr) -> Expr:
    """The call of `f` on `values`."""
    return call(function(f, tuple(v.type for v in values)), *values)

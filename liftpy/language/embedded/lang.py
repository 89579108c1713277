"""The words of the embedded form, in which programs are Python functions.

    @program
    def dot(xs: array(f32, 1000), ys: array(f32, 1000)):
        return zip(xs, ys) >> map(lambda x, y: x * y) >> reduce(add, 0)

A word builds the primitive of its name. Called with its arguments, a word returns a `Section`, a
function from expressions to expressions. `xs >> f` applies a section, `f >> g` composes two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liftpy.language.embedded.compound import (
    DERIVED,
    full,
    iota,
    map2d,
    map3d,
    pad2d,
    pad3d,
    permute,
    scatter,
    slice,  # noqa: A004
    slide2d,
    slide2d_rect,
    slide3d,
    slide_nd,
)
from liftpy.language.embedded.data_words import (
    at,
    reduce_by_index,
    reduce_by_index_seq,
    reduce_in_place,
)
from liftpy.language.embedded.defining import Constant, array_type, const, fun, program, size
from liftpy.language.embedded.functions import function, section
from liftpy.language.embedded.lowered_stages import (
    exclusive_scan_seq,
    iterate_seq,
    map_glb,
    map_lcl,
    map_seq,
    map_seq_ahead,
    map_seq_unroll,
    map_vec,
    map_wrg,
    reduce_seq,
    reduce_seq_unroll,
    reduce_subgroups,
    reduce_vec,
    scan_seq,
    slide_seq,
    to_global,
    to_local,
    to_local_padded,
    to_private,
    to_streamed,
)
from liftpy.language.embedded.prelude import (
    ASSOCIATIVE,
    COMMUTATIVE,
    PRELUDE,
    add,
    add_int,
    maximum,
    minimum,
    mul,
    neutral,
)
from liftpy.language.embedded.scalar_words import (
    absolute,
    ceil,
    convert,
    cos,
    equal,
    exp,
    floor,
    larger,
    log,
    power,
    round,  # noqa: A004
    select,
    sin,
    smaller,
    sqrt,
    tanh,
    unequal,
)
from liftpy.language.embedded.stages import (
    as_scalar,
    as_vector,
    exclusive_scan,
    generate,
    get,
    iterate,
    join,
    let,
    map,  # noqa: A004
    pad,
    reduce,
    reorder,
    scan,
    slide,
    split,
    transpose,
    unzip,
    zip,  # noqa: A004
)
from liftpy.language.embedded.words import Section


def __getattr__(name: str) -> Callable[..., Any]:
    """The word of a layout, made from its class: `take`, `pad_clamp`, ..."""
    if name not in DERIVED:
        message = f"module {__name__} has no attribute {name!r}"
        raise AttributeError(message)
    return DERIVED[name]


__all__ = [
    "ASSOCIATIVE",
    "COMMUTATIVE",
    "DERIVED",
    "PRELUDE",
    "Constant",
    "Section",
    "absolute",
    "add",
    "add_int",
    "array_type",
    "as_scalar",
    "as_vector",
    "at",
    "ceil",
    "const",
    "convert",
    "cos",
    "equal",
    "exclusive_scan",
    "exclusive_scan_seq",
    "exp",
    "floor",
    "full",
    "fun",
    "function",
    "generate",
    "get",
    "iota",
    "iterate",
    "iterate_seq",
    "join",
    "larger",
    "let",
    "log",
    "map",
    "map2d",
    "map3d",
    "map_glb",
    "map_lcl",
    "map_seq",
    "map_seq_ahead",
    "map_seq_unroll",
    "map_vec",
    "map_wrg",
    "maximum",
    "minimum",
    "mul",
    "neutral",
    "pad",
    "pad2d",
    "pad3d",
    "permute",
    "power",
    "program",
    "reduce",
    "reduce_by_index",
    "reduce_by_index_seq",
    "reduce_in_place",
    "reduce_seq",
    "reduce_seq_unroll",
    "reduce_subgroups",
    "reduce_vec",
    "reorder",
    "round",
    "scan",
    "scan_seq",
    "scatter",
    "section",
    "select",
    "sin",
    "size",
    "slice",
    "slide",
    "slide2d",
    "slide2d_rect",
    "slide3d",
    "slide_nd",
    "slide_seq",
    "smaller",
    "split",
    "sqrt",
    "tanh",
    "to_global",
    "to_local",
    "to_local_padded",
    "to_private",
    "to_streamed",
    "transpose",
    "unequal",
    "unzip",
    "zip",
]

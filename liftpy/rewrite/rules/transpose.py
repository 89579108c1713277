"""Laws of transpose and reorder."""

from __future__ import annotations

from liftpy.ir.constraint import at_least
from liftpy.primitives import stride
from liftpy.rewrite.rule import Rule, index
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    call,
    fmap,
    join,
    k,
    m,
    n,
    permuted,
    reorder,
    split,
    transpose,
    unknown,
    zipped,
)

xs, ys = array("xs", T, n), array("ys", U, n)
xss, xsss = array("xss", T, n, m), array("xsss", T, n, m, k)
f = unknown("f", U)

TRANSPOSE_TWICE = Rule("transpose_twice", "transpose", transpose(transpose(xss)), xss)

TRANSPOSE_INTRODUCTION = Rule(
    "transpose_introduction",
    "transpose",
    xss,
    transpose(transpose(xss)),
    where=(at_least(1, n), at_least(1, m)),
)

TRANSPOSE_OF_MAP_MAP = Rule(
    "transpose_of_map_map",
    "transpose",
    transpose(fmap(lambda row: fmap(f, row), xss, "row")),
    fmap(lambda column: fmap(f, column), transpose(xss), "column"),
)

MAP_MAP_OF_TRANSPOSE = Rule(
    "map_map_of_transpose",
    "transpose",
    fmap(lambda column: fmap(f, column), transpose(xss), "column"),
    transpose(fmap(lambda row: fmap(f, row), xss, "row")),
)

TRANSPOSE_BRAID = Rule(
    "transpose_braid",
    "transpose",
    fmap(transpose, transpose(fmap(transpose, xsss, "rows")), "rows"),
    transpose(fmap(transpose, transpose(xsss), "rows")),
)

TRANSPOSE_BRAID_BACK = Rule(
    "transpose_braid_back",
    "transpose",
    TRANSPOSE_BRAID.right,
    TRANSPOSE_BRAID.left,
)

TRANSPOSE_OF_MAP_JOIN = Rule(
    "transpose_of_map_join",
    "transpose",
    transpose(fmap(join, xsss, "row")),
    join(fmap(transpose, transpose(xsss), "column")),
)

JOIN_OF_MAP_TRANSPOSE = Rule(
    "join_of_map_transpose",
    "transpose",
    join(fmap(transpose, xsss, "row")),
    transpose(fmap(join, transpose(xsss), "column")),
    where=(at_least(1, n),),
)

TRANSPOSE_OF_JOIN = Rule(
    "transpose_of_join",
    "transpose",
    transpose(join(xsss)),
    fmap(join, transpose(fmap(transpose, xsss, "row")), "column"),
)

MAP_JOIN_OF_TRANSPOSE = Rule(
    "map_join_of_transpose",
    "transpose",
    fmap(join, transpose(xsss), "row"),
    transpose(join(fmap(transpose, xsss, "row"))),
    where=(at_least(1, m),),
)

MAP_TRANSPOSE_OF_SPLIT = Rule(
    "map_transpose_of_split",
    "transpose",
    fmap(transpose, split(k, xss), "rows"),
    transpose(fmap(lambda column: split(k, column), transpose(xss), "column")),
    where=(at_least(1, n), at_least(1, m)),
)

TRANSPOSE_OF_MAP_SPLIT = Rule(
    "transpose_of_map_split",
    "transpose",
    transpose(fmap(lambda row: split(k, row), xss, "row")),
    fmap(transpose, split(k, transpose(xss)), "columns"),
)

MAP_SPLIT_OF_TRANSPOSE = Rule(
    "map_split_of_transpose",
    "transpose",
    fmap(lambda column: split(k, column), transpose(xss), "column"),
    transpose(fmap(transpose, split(k, xss), "rows")),
)

SPLIT_OF_TRANSPOSE = Rule(
    "split_of_transpose",
    "transpose",
    split(k, transpose(xss)),
    fmap(transpose, transpose(fmap(lambda row: split(k, row), xss, "row")), "columns"),
)

REORDER_OF_MAP = Rule("reorder_of_map", "transpose", permuted(fmap(f, xs)), fmap(f, permuted(xs)))

MAP_OF_REORDER = Rule("map_of_reorder", "transpose", fmap(f, permuted(xs)), permuted(fmap(f, xs)))

REORDER_OF_ZIP = Rule(
    "reorder_of_zip", "transpose", permuted(zipped(xs, ys)), zipped(permuted(xs), permuted(ys))
)

ZIP_OF_REORDERS = Rule(
    "zip_of_reorders", "transpose", zipped(permuted(xs), permuted(ys)), permuted(zipped(xs, ys))
)

REORDER_OF_REORDER = Rule(
    "reorder_of_reorder",
    "transpose",
    reorder(index("rho"), index("tau"), permuted(xs)),
    reorder(index("phi", index("rho")), index("tau", index("psi")), xs),
)

TRANSPOSE_OF_REORDER = Rule(
    "transpose_of_reorder",
    "transpose",
    transpose(permuted(xss)),
    fmap(permuted, transpose(xss), "column"),
)

JOIN_OF_TRANSPOSED_CHUNKS = Rule(
    "join_of_transposed_chunks",
    "transpose",
    join(transpose(split(m, array("xs", T, k * m)))),
    call(stride(m, k * m), array("xs", T, k * m)),
)

RULES = (
    TRANSPOSE_TWICE,
    TRANSPOSE_INTRODUCTION,
    TRANSPOSE_OF_MAP_MAP,
    MAP_MAP_OF_TRANSPOSE,
    TRANSPOSE_BRAID,
    TRANSPOSE_BRAID_BACK,
    TRANSPOSE_OF_MAP_JOIN,
    JOIN_OF_MAP_TRANSPOSE,
    TRANSPOSE_OF_JOIN,
    MAP_JOIN_OF_TRANSPOSE,
    MAP_TRANSPOSE_OF_SPLIT,
    TRANSPOSE_OF_MAP_SPLIT,
    MAP_SPLIT_OF_TRANSPOSE,
    SPLIT_OF_TRANSPOSE,
    REORDER_OF_MAP,
    MAP_OF_REORDER,
    REORDER_OF_ZIP,
    ZIP_OF_REORDERS,
    REORDER_OF_REORDER,
    TRANSPOSE_OF_REORDER,
    JOIN_OF_TRANSPOSED_CHUNKS,
)

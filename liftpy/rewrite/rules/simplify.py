"""Simplifications: expressions that do nothing are removed."""

from __future__ import annotations

from liftpy.ir.expr import Param
from liftpy.ir.nat import var
from liftpy.ir.types import TupleType
from liftpy.rewrite.rule import INDEX, Rule, index
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    get,
    map_vec,
    n,
    pair,
    permuted,
    reorder,
    unzip,
    zip_parts,
    zipped,
)
from liftpy.rewrite.rules.vector import vector

xs, ys = array("xs", T, n), array("ys", U, n)
x, y = Param("x", T), Param("y", U)
p, pairs = Param("p", TupleType((T, U))), array("pairs", TupleType((T, U)), n)
i = var(INDEX)

MAP_IDENTITY = Rule("map_identity", "simplify", fmap(lambda x: x, xs), xs)

MAP_VEC_IDENTITY = Rule("map_vec_identity", "simplify", map_vec(lambda x: x, vector), vector)

REORDER_IDENTITY = Rule("reorder_identity", "simplify", reorder(i, i, xs), xs)

REORDER_BACK = Rule(
    "reorder_back", "simplify", reorder(index("psi"), index("phi"), permuted(xs)), xs
)

FIRST_OF_PAIR = Rule("first_of_pair", "simplify", get(0, pair(x, y)), x)

SECOND_OF_PAIR = Rule("second_of_pair", "simplify", get(1, pair(x, y)), y)

PAIR_OF_PARTS = Rule("pair_of_parts", "simplify", pair(get(0, p), get(1, p)), p)

UNZIP_OF_ZIP = Rule("unzip_of_zip", "simplify", unzip(zipped(xs, ys)), pair(xs, ys))

ZIP_OF_UNZIP = Rule("zip_of_unzip", "simplify", zip_parts(unzip(pairs)), pairs)

FIRST_OF_UNZIP = Rule(
    "first_of_unzip",
    "simplify",
    get(0, unzip(pairs)),
    fmap(lambda t: get(0, t), pairs, "t"),
)

SECOND_OF_UNZIP = Rule(
    "second_of_unzip",
    "simplify",
    get(1, unzip(pairs)),
    fmap(lambda t: get(1, t), pairs, "t"),
)

RULES = (
    MAP_IDENTITY,
    MAP_VEC_IDENTITY,
    REORDER_IDENTITY,
    REORDER_BACK,
    FIRST_OF_PAIR,
    SECOND_OF_PAIR,
    PAIR_OF_PARTS,
    UNZIP_OF_ZIP,
    ZIP_OF_UNZIP,
    FIRST_OF_UNZIP,
    SECOND_OF_UNZIP,
)

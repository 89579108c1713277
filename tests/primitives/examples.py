"""A call of each primitive, for tests that ask something of all of them.

Fields get a value by their type, and the first arguments that the primitive accepts are taken. Only
a primitive that takes something unusual has an entry of its own.
"""

from __future__ import annotations

import dataclasses

from liftpy.errors import TypeRefused
from liftpy.ir.call import call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import INDEX, nat, var
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import F32, I32, ArrayType, TupleType, VectorType, array
from liftpy.language.embedded.lang import add, reduce
from liftpy.language.embedded.operations import operate
from liftpy.language.printing.show import operands
from liftpy.primitives import Zip

xs, xss, column = (
    Param("xs", array(F32, 12)),
    Param("xss", array(F32, 3, 4)),
    Param("column", array(F32, 12, 1)),
)
pairs = Param("pairs", ArrayType(TupleType((I32, F32)), nat(12)))
vector = Param("v", VectorType(F32, nat(4)))
UNUSUAL = {
    "unzip": (Param("ps", call(Zip(), xs, xs).type),),
    "get": (Param("p", Tuple((xs, xss)).type),),
    "asScalar": (Param("vs", array(VectorType(F32, nat(4)), 3)),),
    "uncover": (Param("chunks", array(F32, 1, 1)),),
    "overlaps": (Param("windows", array(F32, 1, 1)),),
    "mapVec": (vector,),
    "reduce": (Literal(0.5, F32), xs),
    "reduceSeq": (Literal(-0.5, F32), xs),
    "reduceSeqUnroll": (Literal(0.0, F32), xs),
    "reduceInPlace": (Literal(1.5, F32), xs),
    "reduceSubgroups": (Literal(2.5, F32), xs),
    "reduceItems": (Literal(-1.5, F32), xs),
    "scan": (Literal(0.5, F32), xs),
    "scanSeq": (Literal(0.5, F32), xs),
    "exclusiveScan": (Literal(0.5, F32), xs),
    "exclusiveScanSeq": (Literal(0.5, F32), xs),
    "iterate": (Param("x", F32),),
    "iterateSeq": (Param("x", F32),),
    "at": (Literal(2, I32), xs),
    "reduceByIndex": (xs, pairs),
    "reduceByIndexSeq": (xs, pairs),
    "reduceByIndexAtomic": (xs, pairs),
    "reduceVec": (Literal(0.0, F32), vector),
}
#: By how many arguments are taken; any number is None.
USUAL = {0: ((),), 1: ((xs,), (xss,), (column,)), 2: ((xs, xs),), None: ((xs, xs, xs),)}
FIELDS = {"Nat": nat(1), "int": 1, "float": -0.25, "IndexFunction": (5 * var(INDEX)) % 12}


def example(cls: type[Primitive]) -> Expr:
    """A call of a primitive."""
    if cls.name in UNUSUAL:
        return applied(cls, UNUSUAL[cls.name])
    for given in USUAL[operands(cls)]:
        try:
            return applied(cls, given)
        except TypeRefused:
            continue
    raise AssertionError(f"{cls.name} accepts no usual arguments: give it an entry in UNUSUAL")


def applied(cls: type[Primitive], given: tuple[Expr, ...]) -> Expr:
    """A call of a primitive with these arguments."""
    values = {f.name: FIELDS[f.type] for f in dataclasses.fields(cls) if f.name != "f"}
    if any(f.name == "f" for f in dataclasses.fields(cls)):
        values["f"] = Lambda((), Literal(0.0, F32))
        types = cls(**values).parameter_types(*(e.type for e in given))
        params = tuple(Param(n, t) for n, t in zip("uv", types, strict=False))
        whole = not isinstance(types[0], ArrayType)
        first = params[0] if whole else params[0] >> reduce(add, 0)
        last = params[-1] if whole else first
        values["f"] = Lambda(params, operate("*", first, last))
    return call(cls(**values), *given)

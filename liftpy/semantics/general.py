"""One general instance of each primitive, with symbolic sizes, on which its contract is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from liftpy.errors import TypeRefused, UnknownName
from liftpy.ir.expr import Param
from liftpy.ir.nat import INDEX, Applied, atom, var
from liftpy.ir.primitive import Get, Primitive
from liftpy.ir.types import I32, ArrayType, TupleType, VectorType
from liftpy.language.printing.show import operands
from liftpy.primitives import (
    AnyIterate,
    AnyMap,
    AnyReduce,
    AnyReduceByIndex,
    AnyScan,
    AsScalar,
    AsVector,
    At,
    Generate,
    MapVec,
    ReduceVec,
    SlideSeq,
)
from liftpy.primitives.parallel import AnyReduceBySubgroups, MapSubgroup
from liftpy.rewrite.rule import ValueVar
from liftpy.rewrite.rules.notation import S, T, U, array, function, k, m, n, unknown

Instance = tuple[Primitive, tuple[Param, ...]]

width, size = var("v"), var("size")
z, x = Param("z", U), Param("x", T)
xs, ys, zs = array("xs", T, n), array("ys", T, k), array("zs", U, k)
xss = array("xss", T, n, m)
pairs = array("pairs", TupleType((T, U)), n)
start = Param("z", S)
f, op = unknown("f", U), unknown("f", S)

#: The value of a field in the general instance of a primitive, by the field's type and name.
UNKNOWN: dict[str, Callable[[str], Any]] = {
    "Nat": lambda name: var(name, None),
    "IndexFunction": lambda name: atom(Applied(name, var(INDEX))),
    "float": ValueVar,
}

#: General instances that do not follow from the fields; one of a base class serves subclasses.
GENERAL: dict[type[Primitive], Callable[[Any], Instance]] = {
    MapSubgroup: lambda p: (p(function(f, x=T), var("items", None)), (xs,)),
    AnyMap: lambda p: (p(function(f, x=T)), (xs,)),
    AnyReduce: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    AnyReduceBySubgroups: lambda p: (p(function(op, a=S, x=S)), (start, array("xs", S, n))),
    Get: lambda p: (p(1), (Param("pair", TupleType((T, U))),)),
    Generate: lambda p: (p(var("length", None), function(f, i=I32)), ()),
    At: lambda p: (p(), (Param("i", I32), xs)),
    AnyReduceByIndex: lambda p: (
        p(function(f, a=U, x=T)),
        (array("bins", U, m), array("pairs", TupleType((I32, T)), n)),
    ),
    AnyScan: lambda p: (p(function(f, a=U, x=T)), (z, xs)),
    AnyIterate: lambda p: (p(function(unknown("f", T), x=T), var("times", None)), (x,)),
    SlideSeq: lambda p: (p(function(f, w=ArrayType(T, size)), size, var("step")), (xs,)),
    AsVector: lambda p: (p(width), (array("xs", S, n),)),
    AsScalar: lambda p: (p(), (array("xs", VectorType(S, width), n),)),
    MapVec: lambda p: (p(function(f, x=S)), (Param("xs", VectorType(S, width)),)),
    ReduceVec: lambda p: (p(function(f, a=U, x=S)), (z, Param("xs", VectorType(S, width)))),
}


def general(cls: type[Primitive]) -> Instance:
    """One instance of a primitive, as general as its type allows, with symbolic sizes."""
    for base in cls.__mro__:
        if base in GENERAL:
            return GENERAL[base](cls)
    kinds = {f.name: str(f.type) for f in fields(cls) if f.init}
    if kinds.keys() & {"f"} or not all(kind in UNKNOWN for kind in kinds.values()):
        raise UnknownName(f"{cls.name} has fields of its own: add it to GENERAL in {__name__}")
    primitive = cls(**{name: UNKNOWN[kind](name) for name, kind in kinds.items()})
    taken = operands(cls)
    for params in ((x,), (xs,), (xss,), (pairs,), (xs, zs), (xs, ys)):
        if len(params) == (2 if taken is None else taken) and accepts(primitive, params):
            return primitive, params
    raise UnknownName(f"{cls.name} takes no plain array: add it to GENERAL in {__name__}")


def accepts(primitive: Primitive, params: tuple[Param, ...]) -> bool:
    """Whether a primitive accepts parameters of these types, apart from conditions on sizes."""
    types = tuple(p.type for p in params)
    try:
        primitive.type_of(*types)
        list(primitive.requires(*types))
    except TypeRefused:
        return False
    return True

"""What each primitive is: its law, type, conditions, meaning and reference. No z3, no OpenCL."""

from liftpy.ir.expr import Get, Primitive, ScalarOp
from liftpy.primitives.iterate import Iterate
from liftpy.primitives.lowered import (
    IterateSeq,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqUnroll,
    MapVec,
    MapWrg,
    Memory,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceVec,
    ScanSeq,
    SlideSeq,
    ToGlobal,
    ToLocal,
    ToPrivate,
)
from liftpy.primitives.map import Map
from liftpy.primitives.pad import Pad
from liftpy.primitives.reduce import Reduce
from liftpy.primitives.scan import Scan
from liftpy.primitives.slide import Slide
from liftpy.primitives.split import Join, Split
from liftpy.primitives.transpose import Reorder, Transpose, stride
from liftpy.primitives.vector import AsScalar, AsVector
from liftpy.primitives.zip import Unzip, Zip

#: Every primitive by its name in the text form. `get` and scalar operators have their own syntax.
PRIMITIVES: dict[str, type[Primitive]] = {
    p.name: p
    for p in (
        Map,
        Reduce,
        Scan,
        Iterate,
        Zip,
        Unzip,
        Get,
        Split,
        Join,
        Slide,
        Pad,
        Transpose,
        Reorder,
        AsVector,
        AsScalar,
        MapSeq,
        MapSeqUnroll,
        MapGlb,
        MapWrg,
        MapLcl,
        MapVec,
        ReduceSeq,
        ReduceSeqUnroll,
        ReduceVec,
        ScanSeq,
        IterateSeq,
        SlideSeq,
        ToGlobal,
        ToLocal,
        ToPrivate,
    )
}

#: Primitives that move elements and compute nothing: views.
LAYOUTS: tuple[type[Primitive], ...] = (
    Zip,
    Unzip,
    Get,
    Split,
    Join,
    Slide,
    Pad,
    Transpose,
    Reorder,
    AsVector,
    AsScalar,
)

__all__ = [
    "LAYOUTS",
    "PRIMITIVES",
    "AsScalar",
    "AsVector",
    "Get",
    "Iterate",
    "IterateSeq",
    "Join",
    "Map",
    "MapGlb",
    "MapLcl",
    "MapSeq",
    "MapSeqUnroll",
    "MapVec",
    "MapWrg",
    "Memory",
    "Pad",
    "Primitive",
    "Reduce",
    "ReduceSeq",
    "ReduceSeqUnroll",
    "ReduceVec",
    "Reorder",
    "ScalarOp",
    "Scan",
    "ScanSeq",
    "Slide",
    "SlideSeq",
    "Split",
    "ToGlobal",
    "ToLocal",
    "ToPrivate",
    "Transpose",
    "Unzip",
    "Zip",
    "stride",
]

"""The primitives: law, type, conditions, meaning and reference of each. No z3, no OpenCL."""

from liftpy.ir.primitive import Get, Layout, Primitive, ScalarOp
from liftpy.primitives.border import ByClasses, PadClamp, PadMirror, PadWrap
from liftpy.primitives.concat import Concat, Drop, SplitAt, Take
from liftpy.primitives.cover import Cover, CoverOnce, Uncover
from liftpy.primitives.data_index import AnyReduceByIndex, At, ReduceByIndex
from liftpy.primitives.generate import Generate, Repeat
from liftpy.primitives.iterate import AnyIterate, Iterate
from liftpy.primitives.lowered import (
    IterateSeq,
    MapGlb,
    MapLcl,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapVec,
    MapWrg,
    MemoryPrimitive,
    ReduceByIndexSeq,
    ReduceInPlace,
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
from liftpy.primitives.map import AnyMap, Map
from liftpy.primitives.pad import Pad
from liftpy.primitives.reduce import AnyReduce, Reduce
from liftpy.primitives.scan import AnyScan, Scan
from liftpy.primitives.slide import Overlaps, Slide, SlideCopies, SlideStrict, Unslide
from liftpy.primitives.split import Join, Split
from liftpy.primitives.transpose import Gather, Reorder, Transpose, stride
from liftpy.primitives.vector import AsScalar, AsVector
from liftpy.primitives.zip import Unzip, Zip

#: Every primitive by its name in the text form; new primitives are registered here. Scalar
#: operators have their own syntax.
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
        SlideStrict,
        Unslide,
        SlideCopies,
        Overlaps,
        Cover,
        CoverOnce,
        Uncover,
        Pad,
        PadClamp,
        PadMirror,
        PadWrap,
        ByClasses,
        Concat,
        SplitAt,
        Take,
        Drop,
        Transpose,
        Reorder,
        Gather,
        Repeat,
        AsVector,
        AsScalar,
        Generate,
        At,
        ReduceByIndex,
        MapSeq,
        MapSeqUnroll,
        MapSeqAhead,
        MapGlb,
        MapWrg,
        MapLcl,
        MapVec,
        ReduceSeq,
        ReduceSeqUnroll,
        ReduceInPlace,
        ReduceVec,
        ReduceByIndexSeq,
        ScanSeq,
        IterateSeq,
        SlideSeq,
        ToGlobal,
        ToStreamed,
        ToLocal,
        ToPrivate,
    )
}

#: The primitives that are layouts.
LAYOUTS: tuple[type[Layout], ...] = tuple(p for p in PRIMITIVES.values() if issubclass(p, Layout))

__all__ = [
    "LAYOUTS",
    "PRIMITIVES",
    "AnyIterate",
    "AnyMap",
    "AnyReduce",
    "AnyReduceByIndex",
    "AnyScan",
    "AsScalar",
    "AsVector",
    "At",
    "ByClasses",
    "Concat",
    "Cover",
    "CoverOnce",
    "Drop",
    "Gather",
    "Generate",
    "Get",
    "Iterate",
    "IterateSeq",
    "Join",
    "Layout",
    "Map",
    "MapGlb",
    "MapLcl",
    "MapSeq",
    "MapSeqAhead",
    "MapSeqUnroll",
    "MapVec",
    "MapWrg",
    "MemoryPrimitive",
    "Overlaps",
    "Pad",
    "PadClamp",
    "PadMirror",
    "PadWrap",
    "Primitive",
    "Reduce",
    "ReduceByIndex",
    "ReduceByIndexSeq",
    "ReduceInPlace",
    "ReduceSeq",
    "ReduceSeqUnroll",
    "ReduceVec",
    "Reorder",
    "Repeat",
    "ScalarOp",
    "Scan",
    "ScanSeq",
    "Slide",
    "SlideCopies",
    "SlideSeq",
    "SlideStrict",
    "Split",
    "SplitAt",
    "Take",
    "ToGlobal",
    "ToLocal",
    "ToPrivate",
    "ToStreamed",
    "Transpose",
    "Uncover",
    "Unslide",
    "Unzip",
    "Zip",
    "stride",
]

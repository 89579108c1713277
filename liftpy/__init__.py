"""liftpy: a typed data-parallel language, compiled to OpenCL through proved rewrite rules.

import liftpy as lp

program = lp.workload("vgg16/7")
kernel = lp.compile(program)
campaign = lp.explore(program, samples=100, seed=0, db="vgg7.db")
"""

from collections.abc import Callable
from typing import Any

from liftpy.errors import LiftError
from liftpy.explore.campaign import Campaign, explore
from liftpy.explore.campaign import space_of as space
from liftpy.explore.kernel import Kernel
from liftpy.explore.kernel import compile_to_kernel as compile
from liftpy.explore.space import Space
from liftpy.explore.version import VERSION
from liftpy.ir.expr import Expr, Program, UserFun
from liftpy.ir.nat import Nat, var
from liftpy.ir.types import BOOL, F32, F64, I32, Type
from liftpy.opencl.run import devices, find_device
from liftpy.primitives.lang import (
    ASSOCIATIVE,
    COMMUTATIVE,
    DERIVED,
    absolute,
    add,
    as_scalar,
    as_vector,
    const,
    exp,
    full,
    fun,
    generate,
    get,
    iota,
    join,
    let,
    map,
    map2d,
    map3d,
    map_glb,
    map_lcl,
    map_seq,
    map_vec,
    map_wrg,
    maximum,
    minimum,
    mul,
    neutral,
    pad,
    pad2d,
    pad3d,
    permute,
    program,
    reduce,
    reduce_seq,
    reduce_seq_unroll,
    reduce_vec,
    reorder,
    scatter,
    select,
    slice,
    slide,
    slide2d,
    slide2d_rect,
    slide3d,
    split,
    sqrt,
    to_global,
    to_local,
    to_private,
    transpose,
    unzip,
    zip,
)
from liftpy.primitives.lang import array_type as array
from liftpy.primitives.text import parse, show
from liftpy.primitives.transpose import stride
from liftpy.rewrite import strategy
from liftpy.rewrite.rules import RULES as rules  # noqa: N811  a catalogue to users
from liftpy.semantics.evaluate import evaluate, evaluate_at
from liftpy.semantics.ledger import certify as prove
from liftpy.workloads import workload, workloads

f32, f64, i32, boolean = F32, F64, I32, BOOL


def __getattr__(name: str) -> Callable[..., Any]:
    """The words that need no more than their class: `take`, `drop`, `concat`, `pad_clamp`, ..."""
    if name not in DERIVED:
        message = f"module {__name__} has no attribute {name!r}"
        raise AttributeError(message)
    return DERIVED[name]


__version__ = VERSION
__all__ = [
    "ASSOCIATIVE",
    "COMMUTATIVE",
    "Campaign",
    "Expr",
    "Kernel",
    "LiftError",
    "Nat",
    "Program",
    "Space",
    "Type",
    "UserFun",
    "absolute",
    "add",
    "array",
    "as_scalar",
    "as_vector",
    "boolean",
    "compile",
    "const",
    "devices",
    "evaluate",
    "evaluate_at",
    "exp",
    "explore",
    "f32",
    "f64",
    "find_device",
    "full",
    "fun",
    "generate",
    "get",
    "i32",
    "iota",
    "join",
    "let",
    "map",
    "map2d",
    "map3d",
    "map_glb",
    "map_lcl",
    "map_seq",
    "map_vec",
    "map_wrg",
    "maximum",
    "minimum",
    "mul",
    "neutral",
    "pad",
    "pad2d",
    "pad3d",
    "parse",
    "permute",
    "program",
    "prove",
    "reduce",
    "reduce_seq",
    "reduce_seq_unroll",
    "reduce_vec",
    "reorder",
    "rules",
    "scatter",
    "select",
    "show",
    "slice",
    "slide",
    "slide2d",
    "slide2d_rect",
    "slide3d",
    "space",
    "split",
    "sqrt",
    "strategy",
    "stride",
    "to_global",
    "to_local",
    "to_private",
    "transpose",
    "unzip",
    "var",
    "workload",
    "workloads",
    "zip",
]

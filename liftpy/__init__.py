"""liftpy: a typed data-parallel language, compiled to OpenCL through proved rewrite rules.

import liftpy as lp

program = lp.workload("vgg16/7")
kernel = lp.compile(program)
campaign = lp.explore(program, samples=100, seed=0, db="vgg7.db")

Names are imported at first use (PEP 562): a program that only measures can import liftpy without z3
and lark, and a command imports only what it needs.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from liftpy.ir.provided import Evaluation

if TYPE_CHECKING:  # the definitions for type checkers; at run time, _HOMES has them
    from liftpy.boards.network_bundle import export
    from liftpy.compile import Kernel
    from liftpy.compile import compile_to_kernel as compile
    from liftpy.errors import LiftError
    from liftpy.explore.campaign.campaign import Campaign
    from liftpy.explore.campaign.energy import with_energy
    from liftpy.explore.choosing import choose
    from liftpy.explore.exploring import explore
    from liftpy.explore.space.space import Space
    from liftpy.explore.space.version import VERSION as __version__
    from liftpy.explore.spaces import space_of as space
    from liftpy.gradient.program import gradient
    from liftpy.ir.expr import Expr
    from liftpy.ir.function import UserFun
    from liftpy.ir.nat import Nat
    from liftpy.ir.program import Program
    from liftpy.ir.types import BF16 as bf16
    from liftpy.ir.types import BINARY16 as binary16
    from liftpy.ir.types import BOOL as boolean
    from liftpy.ir.types import F16 as f16
    from liftpy.ir.types import F32 as f32
    from liftpy.ir.types import F64 as f64
    from liftpy.ir.types import FLYTE8 as flyte8
    from liftpy.ir.types import FLYTE16 as flyte16
    from liftpy.ir.types import FLYTE16_F64 as flyte16_f64
    from liftpy.ir.types import FLYTE16_F64_NEAREST as flyte16_f64_nearest
    from liftpy.ir.types import FLYTE24 as flyte24
    from liftpy.ir.types import FLYTE24_F64 as flyte24_f64
    from liftpy.ir.types import FLYTE24_F64_NEAREST as flyte24_f64_nearest
    from liftpy.ir.types import FLYTE24_NEAREST as flyte24_nearest
    from liftpy.ir.types import FLYTE32 as flyte32
    from liftpy.ir.types import FLYTE32_NEAREST as flyte32_nearest
    from liftpy.ir.types import FLYTE40 as flyte40
    from liftpy.ir.types import FLYTE40_NEAREST as flyte40_nearest
    from liftpy.ir.types import FLYTE48 as flyte48
    from liftpy.ir.types import FLYTE48_NEAREST as flyte48_nearest
    from liftpy.ir.types import FLYTE56 as flyte56
    from liftpy.ir.types import FLYTE56_NEAREST as flyte56_nearest
    from liftpy.ir.types import I8 as i8
    from liftpy.ir.types import I16 as i16
    from liftpy.ir.types import I32 as i32
    from liftpy.ir.types import I64 as i64
    from liftpy.ir.types import U8 as u8
    from liftpy.ir.types import U16 as u16
    from liftpy.ir.types import U32 as u32
    from liftpy.ir.types import U64 as u64
    from liftpy.ir.types import Type
    from liftpy.language.embedded.compound import stride
    from liftpy.language.embedded.lang import (
        ASSOCIATIVE,
        COMMUTATIVE,
        absolute,
        acos,
        acosh,
        add,
        as_image,
        as_scalar,
        as_vector,
        asin,
        asinh,
        at,
        atan,
        atan2,
        atanh,
        by_classes,
        ceil,
        concat,
        const,
        convert,
        cos,
        cosh,
        cover,
        cover_once,
        drop,
        equal,
        erf,
        exclusive_scan,
        exclusive_scan_seq,
        exp,
        floor,
        full,
        fun,
        gather,
        generate,
        get,
        iota,
        iterate,
        iterate_seq,
        join,
        larger,
        let,
        log,
        map,
        map2d,
        map3d,
        map_glb,
        map_host,
        map_item,
        map_lcl,
        map_seq,
        map_seq_ahead,
        map_seq_unroll,
        map_subgroup,
        map_vec,
        map_wrg,
        maximum,
        minimum,
        mul,
        neutral,
        overlaps,
        pad,
        pad2d,
        pad3d,
        pad_clamp,
        pad_clamp2d,
        pad_clamp3d,
        pad_mirror,
        pad_mirror2d,
        pad_mirror3d,
        pad_wrap,
        pad_wrap2d,
        pad_wrap3d,
        permute,
        power,
        program,
        reduce,
        reduce_by_index,
        reduce_by_index_atomic,
        reduce_by_index_seq,
        reduce_in_place,
        reduce_items,
        reduce_seq,
        reduce_seq_unroll,
        reduce_subgroups,
        reduce_vec,
        reorder,
        repeat,
        round,
        scan,
        scan_seq,
        scatter,
        select,
        sin,
        sinh,
        size,
        slice,
        slide,
        slide2d,
        slide2d_rect,
        slide3d,
        slide_copies,
        slide_seq,
        slide_strict,
        smaller,
        split,
        split_at,
        sqrt,
        take,
        tanh,
        to_global,
        to_local,
        to_local_padded,
        to_private,
        to_streamed,
        to_subgroup,
        transpose,
        uncover,
        unequal,
        unslide,
        unzip,
        zip,
    )
    from liftpy.language.embedded.lang import array_type as array
    from liftpy.language.embedded.lang import size as var
    from liftpy.networks.network import Network, network
    from liftpy.networks.plan import Plan, load
    from liftpy.opencl.devices import devices, find_device
    from liftpy.pytorch.backend import torch_backend
    from liftpy.pytorch.function import torch_function
    from liftpy.pytorch.module import torch_module
    from liftpy.rewrite import strategy
    from liftpy.rewrite.rules import RULES as rules
    from liftpy.semantics.evaluate import evaluate, evaluate_at
    from liftpy.semantics.proof_recording import certify as prove
    from liftpy.semantics.sizes import at_sizes, parse, show
    from liftpy.semantics.storage import from_storage, to_storage, with_storage
    from liftpy.workloads import workload, workloads

__all__ = [
    "ASSOCIATIVE", "COMMUTATIVE", "Campaign", "Expr", "Kernel", "LiftError", "Nat", "Network",
    "Plan", "Program", "Space", "Type", "UserFun", "__version__", "absolute", "acos", "acosh",
    "add", "array", "as_image", "as_scalar", "as_vector", "asin", "asinh", "at", "at_sizes", "atan",
    "atan2", "atanh", "bf16", "binary16", "boolean", "by_classes", "ceil", "choose", "compile",
    "concat", "const", "convert", "cos", "cosh", "cover", "cover_once", "devices", "drop", "equal",
    "erf", "evaluate", "evaluate_at", "exclusive_scan", "exclusive_scan_seq", "exp", "explore",
    "export", "f16", "f32", "f64", "find_device", "floor", "flyte8", "flyte16", "flyte16_f64",
    "flyte16_f64_nearest", "flyte24", "flyte24_f64", "flyte24_f64_nearest", "flyte24_nearest",
    "flyte32", "flyte32_nearest", "flyte40", "flyte40_nearest", "flyte48", "flyte48_nearest",
    "flyte56", "flyte56_nearest", "from_storage", "full", "fun", "gather", "generate", "get",
    "gradient", "i8", "i16", "i32", "i64", "iota", "iterate", "iterate_seq", "join", "larger",
    "let", "load", "log", "map", "map2d", "map3d", "map_glb", "map_host", "map_item", "map_lcl",
    "map_seq", "map_seq_ahead", "map_seq_unroll", "map_subgroup", "map_vec", "map_wrg", "maximum",
    "minimum", "mul", "network", "neutral", "overlaps", "pad", "pad2d", "pad3d", "pad_clamp",
    "pad_clamp2d", "pad_clamp3d", "pad_mirror", "pad_mirror2d", "pad_mirror3d", "pad_wrap",
    "pad_wrap2d", "pad_wrap3d", "parse", "permute", "power", "program", "prove", "reduce",
    "reduce_by_index", "reduce_by_index_atomic", "reduce_by_index_seq", "reduce_in_place",
    "reduce_items", "reduce_seq", "reduce_seq_unroll", "reduce_subgroups",
    "reduce_vec", "reorder", "repeat", "round", "rules", "scan", "scan_seq", "scatter", "select",
    "show", "sin", "sinh", "size", "slice", "slide", "slide2d", "slide2d_rect", "slide3d",
    "slide_copies", "slide_seq", "slide_strict", "smaller", "space", "split", "split_at", "sqrt",
    "strategy", "stride", "take", "tanh", "to_global", "to_local", "to_local_padded", "to_private",
    "to_storage", "to_streamed", "to_subgroup", "torch_backend", "torch_function", "torch_module",
    "transpose", "u8", "u16", "u32", "u64", "uncover", "unequal", "unslide", "unzip", "var",
    "with_energy", "with_storage", "workload", "workloads", "zip",
]  # fmt: skip

_WORDS = "liftpy.language.embedded.lang"

_TYPES = (
    "bf16 binary16 flyte24 flyte24_nearest flyte16 flyte8 flyte56 flyte56_nearest flyte48 "
    "flyte48_nearest flyte40 flyte40_nearest flyte32 flyte32_nearest flyte24_f64 "
    "flyte24_f64_nearest flyte16_f64 flyte16_f64_nearest f16 f32 f64 i8 i16 i32 i64 u8 "
    "u16 u32 u64"
)
"""The types whose names in `liftpy.ir.types` are these in capitals."""

_HOMES = {
    **{name: f"liftpy.ir.types:{name.upper()}" for name in _TYPES.split()},
    "Campaign": "liftpy.explore.campaign.campaign:Campaign",
    "Expr": "liftpy.ir.expr:Expr",
    "Kernel": "liftpy.compile:Kernel",
    "LiftError": "liftpy.errors:LiftError",
    "Nat": "liftpy.ir.nat:Nat",
    "Network": "liftpy.networks.network:Network",
    "Plan": "liftpy.networks.plan:Plan",
    "Program": "liftpy.ir.program:Program",
    "Space": "liftpy.explore.space.space:Space",
    "Type": "liftpy.ir.types:Type",
    "UserFun": "liftpy.ir.function:UserFun",
    "__version__": "liftpy.explore.space.version:VERSION",
    "array": f"{_WORDS}:array_type",
    "at_sizes": "liftpy.semantics.sizes:at_sizes",
    "boolean": "liftpy.ir.types:BOOL",
    "choose": "liftpy.explore.choosing:choose",
    "compile": "liftpy.compile:compile_to_kernel",
    "devices": "liftpy.opencl.devices:devices",
    "evaluate": "liftpy.semantics.evaluate:evaluate",
    "evaluate_at": "liftpy.semantics.evaluate:evaluate_at",
    "export": "liftpy.boards.network_bundle:export",
    "explore": "liftpy.explore.exploring:explore",
    "from_storage": "liftpy.semantics.storage:from_storage",
    "find_device": "liftpy.opencl.devices:find_device",
    "gradient": "liftpy.gradient.program:gradient",
    "load": "liftpy.networks.plan:load",
    "network": "liftpy.networks.network:network",
    "parse": "liftpy.semantics.sizes:parse",
    "prove": "liftpy.semantics.proof_recording:certify",
    "rules": "liftpy.rewrite.rules:RULES",
    "show": "liftpy.semantics.sizes:show",
    "space": "liftpy.explore.spaces:space_of",
    "torch_backend": "liftpy.pytorch.backend:torch_backend",
    "torch_function": "liftpy.pytorch.function:torch_function",
    "torch_module": "liftpy.pytorch.module:torch_module",
    "to_storage": "liftpy.semantics.storage:to_storage",
    "with_energy": "liftpy.explore.campaign.energy:with_energy",
    "with_storage": "liftpy.semantics.storage:with_storage",
    "strategy": "liftpy.rewrite.strategy",
    "stride": "liftpy.language.embedded.compound:stride",
    "var": f"{_WORDS}:size",
    "workload": "liftpy.workloads:workload",
    "workloads": "liftpy.workloads:workloads",
}
"""The definitions of names; every other name is a word of the language, defined in `_WORDS`.

(A test compares this with the imports above.)
"""


def __getattr__(name: str) -> Any:
    """A name of the package, imported at first use, or a word made from its class (`take`)."""
    home = _HOMES.get(name, f"{_WORDS}:{name}")
    module, _, attribute = home.partition(":")
    known = name in _HOMES or name in __all__
    if not known and (name.startswith("_") or name not in _module(_WORDS).DERIVED):
        message = f"module {__name__} has no attribute {name!r}"
        if not name.startswith("_"):
            words = _module("liftpy.language.embedded.python_words")
            written = {
                **words.OVER_ARRAYS,
                **words.OPERATORS_ONLY,
                **_module("liftpy.language.embedded.defining").NAMESAKES,
            }.get(name)
            # `difflib` takes half of the time that this module takes to import
            near = _module("difflib").get_close_matches(name, __dir__(), 1)
            suggestion = f"write {written}" if written else "dir(lp) lists the words"
            suggestion = (
                f"did you mean lp.{near[0]}? {suggestion}" if near and not written else suggestion
            )
            message = f"{message}\n  {suggestion}"
        raise AttributeError(message)
    value = getattr(_module(module), attribute) if attribute else _module(module)
    globals()[name] = value  # so that `__getattr__` is called only once for a name
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_module(_WORDS).DERIVED})


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _evaluate(*args: Any, **named: Any) -> Any:
    return __getattr__("evaluate")(*args, **named)


Evaluation.evaluate = _evaluate


class _Facade(ModuleType):
    """Keeps `lp.explore` and `lp.compile` functions when the modules of that name are imported.

    Importing a submodule binds its name in the package. An ordinary module would have to import
    both functions first, and so nearly all of liftpy: `import liftpy` would take 1.2 s of processor
    time instead of 20 ms.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        room = isinstance(value, ModuleType) and value.__name__ == f"{__name__}.{name}"
        if not (room and name in _HOMES):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade

"""From a lowered program with numbers for its sizes to a module: kernels, buffers, launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Param
from liftpy.ir.operators import OPERATORS
from liftpy.ir.place import asker
from liftpy.ir.types import (
    EXTENSIONS,
    SCALAR_BYTES,
    ArrayType,
    TupleType,
    Type,
    VectorType,
    components,
)
from liftpy.ir.walk import scalars_in, top_down
from liftpy.kernels.chain import Chain, Kernel, Result, launch_order
from liftpy.kernels.cutting import HOST_ID
from liftpy.kernels.launch import LOCAL_ALIGNMENT
from liftpy.loops.lower import LoopKernel
from liftpy.loops.nest import MOST_STATEMENTS
from liftpy.opencl.dots import dot_helpers, sums_of_dots_helpers
from liftpy.opencl.indices import HELPERS
from liftpy.opencl.kernel import Buffer, Launch, Module, Names, flat
from liftpy.opencl.memory import GlobalArray, arrays_of, figures, slots
from liftpy.opencl.printer import Printer, whole_type
from liftpy.opencl.saturation import saturation_helpers
from liftpy.opencl.scalars import division_helpers, fetch_helpers, stream_helpers
from liftpy.opencl.storage import element_c, storage_helpers, units
from liftpy.opencl.subgroups import SUBGROUP_IDS, subgroup_helpers
from liftpy.opencl.texels import image_parameter, texel_helpers
from liftpy.primitives import MapSeqUnroll, ReduceSeqUnroll
from liftpy.primitives.dialects import LoweredProgram
from liftpy.views.access import part_name
from liftpy.views.terms import Memory

WORDS = """
true false asm typeof auto break case char const continue default do double else enum extern float
for goto if int long
register return short signed sizeof static struct switch typedef union unsigned void volatile while
inline restrict bool half kernel global local private constant read_only write_only read_write
image1d_buffer_t image2d_t image3d_t sampler_t event_t size_t ptrdiff_t uchar ushort uint ulong
get_global_id get_local_id get_group_id barrier select fma mad min max abs shuffle2
"""
#: Names that no buffer may have: those that the emitter makes, and families of OpenCL's own.
TAKEN = re.compile(
    r"(v|i|acc|p|l|old|gid|wid|lid|sgid|slid|sgsz|sgct|hid|k)\d+\w*|lanes"
    r"|(u?(char|short|int|long)|float|double|half|bool)\d*|(vload|vstore|convert_|as_|floor_|quotient_|rest_|native_|stream_|fetch_|element_of_|read_image)\w*"
    r"|(read|stored|load|store)_\w+_\d+|(arm_)?dot(_[iu]8_[iu]8)?|dots_[iu]8_[iu]8_\d+|vpdpbusd_\d+|bytes_\d+|sub_?groups?_\w*"
)
#: Other names that no buffer may have: keywords, types and functions of OpenCL C.
RESERVED = frozenset(WORDS.split()) | {o.c for o in OPERATORS.values() if o.c.isidentifier()}
UNROLLED = (MapSeqUnroll, ReduceSeqUnroll)


@dataclass(frozen=True)
class EmittedKernel:
    """The text of a kernel, and what the kernel uses."""

    source: str
    local: int
    private: int
    global_size: tuple[int, int, int]
    local_size: tuple[int, int, int] | None


def buffer_names(cut: Chain) -> dict[str, str]:
    """A C identifier for each buffer of a chain."""
    return c_names([b.param for b in cut.buffers])


def assemble(
    program: LoweredProgram,
    cut: Chain,
    names: dict[str, str],
    loops: tuple[LoopKernel, ...],
) -> tuple[Module, tuple[EmittedKernel, ...]]:
    """The module, and the kernels it is made of; `loops` are these in the loop IR, after passes."""
    emitted = tuple(map(emit_kernel, loops))
    parts = arrays_of(cut.buffers)
    placed = slots(parts, lambda p: part_name(names[p.buffer.param.name], p.component.path))
    launches = tuple(launches_of(cut, loops, names))
    text = "\n".join(e.source for e in emitted)
    scalars = scalars_in(program.body)
    needed = tuple(extension for t, extension in EXTENSIONS.items() if t in scalars)
    header = [f"#pragma OPENCL EXTENSION {extension} : enable" for extension in needed]
    module = Module(
        program.name,
        "\n".join([*header, *helpers_of(text), text]),
        tuple(describe(p, names, slot) for p, slot in placed.items()),
        launches,
        tuple(stored_names(p, names) for p in program.params),
        result_names(cut.result, names),
        figures(cut, placed, max(e.local for e in emitted), max(e.private for e in emitted)),
        needed,
    )
    return module, emitted


def launches_of(
    cut: Chain, loops: tuple[LoopKernel, ...], names: dict[str, str]
) -> Iterator[Launch]:
    """The launches in order."""
    pairs = zip(cut.kernels, loops, strict=True)
    made = [launch_of(kernel, code, names) for kernel, code in pairs]
    for number, iteration in launch_order(cut.kernels):
        takes = HOST_ID in loops[number].ids
        yield replace(made[number], iteration=iteration) if takes else made[number]


def launch_of(kernel: Kernel, code: LoopKernel, names: dict[str, str]) -> Launch:
    """The launch of a kernel; in a loop of the host, without the number of the iteration."""
    return Launch(
        kernel.name,
        tuple(name for p in kernel.buffers for name in flat(stored_names(p, names))),
        code.global_size,
        code.local_size if kernel.demand.groups else None,
        kernel.phase,
        tuple(n for p in kernel.reads if p in kernel.images for n in flat(stored_names(p, names))),
    )


def helpers_of(text: str) -> Iterator[str]:
    """The definitions of liftpy's own functions that kernels call."""
    if "floor_div(" in text or "floor_mod(" in text:
        yield HELPERS
    for helpers in (
        division_helpers,
        saturation_helpers,
        storage_helpers,
        subgroup_helpers,
        dot_helpers,
        sums_of_dots_helpers,
        stream_helpers,
        fetch_helpers,
        texel_helpers,
    ):
        yield from helpers(text)


def check_unrolled(program: LoweredProgram) -> None:
    """Refuse what would be unrolled to more steps than a kernel may have statements."""
    for path, part in top_down(program.body.body):
        if not (isinstance(part, FunCall) and isinstance(part.fun, UNROLLED)):
            continue
        xs = part.args[-1].type
        steps = int(xs.length) if isinstance(xs, ArrayType) else 0
        if steps > MOST_STATEMENTS:
            raise TypeRefused(
                f"{asker(program, path)} cannot be unrolled: it has {steps} steps, and a "
                f"kernel may have {MOST_STATEMENTS} statements. Use "
                f"{part.fun.name.removesuffix('Unroll')}, or split the array into parts of at most "
                f"{MOST_STATEMENTS}"
            )


def c_names(params: list[Param]) -> dict[str, str]:
    """A C identifier for each buffer; the names of its components begin with it."""
    taken: set[str] = set()
    result: dict[str, str] = {}
    for param in params:
        name = param.name
        plain = name.isascii() and name.isidentifier() and name.islower() and name[0] != "_"
        plain = plain and name not in RESERVED
        safe = name if plain and not TAKEN.fullmatch(name) else "b_" + re.sub(r"\W", "_", name)
        safe = safe if safe.isascii() else "b_" + name.encode().hex()
        paths = [component.path for component in components(param.type)]
        while not taken.isdisjoint(part_name(safe, path) for path in paths):
            safe += "_"
        taken.update(part_name(safe, path) for path in paths)
        result[name] = safe
    return result


def stored_names(param: Param, names: dict[str, str]) -> Names:
    """The names of the buffers of a parameter or of a kernel's result."""
    return names_of(names[param.name], param.type)


def names_of(name: str, t: Type) -> Names:
    """The names of the buffers of a value, with tuples as in its type."""
    if isinstance(t, ArrayType | VectorType):
        return names_of(name, t.element)
    if isinstance(t, TupleType):
        return tuple(names_of(part_name(name, (k,)), e) for k, e in enumerate(t.elements))
    return name


def result_names(result: Result, names: dict[str, str]) -> Names:
    """The names of the buffers of a program's result."""
    if isinstance(result, Param):
        return stored_names(result, names)
    return tuple(result_names(part, names) for part in result)


def describe(p: GlobalArray, names: dict[str, str], slot: str) -> Buffer:
    """The description of a buffer for the runtime."""
    name = part_name(names[p.buffer.param.name], p.component.path)
    shape = tuple(map(int, p.component.shape))
    return Buffer(name, p.buffer.role, p.component.scalar.name, shape, p.bytes, slot)


def emit_kernel(code: LoopKernel) -> EmittedKernel:
    """A kernel in the loop IR as OpenCL C."""
    printer = Printer(code.block)
    local = sum(m.length * SCALAR_BYTES[m.scalar.name] for m in code.locals)
    private = sum(
        len(registers) * printer.widths[m] * SCALAR_BYTES[m.scalar.name]
        for m, registers in printer.registers.items()
    )
    return EmittedKernel(
        kernel_text(code, printer),
        local,
        private,
        code.global_size,
        code.local_size if code.kernel.demand.groups else None,
    )


ITERATION = f"const int {HOST_ID}"
"""The last parameter of kernels that depend on the iteration of a loop of the host."""
ID_CALLS = {"gid": "get_global_id", "wid": "get_group_id", "lid": "get_local_id"}


def id_call(name: str) -> str:
    """The call that returns an id."""
    kind, dim = name[:-1], name[-1]
    return f"{SUBGROUP_IDS[kind]}()" if kind in SUBGROUP_IDS else f"{ID_CALLS[kind]}({dim})"


def local_array(memory: Memory) -> str:
    """The declaration of an array in local memory.

    The array is aligned for vectors, and so that a compiler can join loads of adjacent scalars.
    """
    length = units(memory.scalar) * memory.length
    aligned = f"__attribute__((aligned({LOCAL_ALIGNMENT})))"
    return f"__local {element_c(memory.scalar)} {memory.name}[{length}] {aligned}"


def parameter(memory: Memory) -> str:
    """The declaration of a buffer, or of its image, as a parameter of a kernel."""
    if memory.space == "image":
        return image_parameter(memory)
    constant = "" if memory.writable else "const "
    return f"__global {constant}{element_c(memory.scalar)}* restrict {memory.name}"


def kernel_text(code: LoopKernel, printer: Printer) -> str:
    """The text of a kernel: its head, its ids, its local memory and its statements."""
    kernel = code.kernel
    lines = [
        f"  const {whole_type(count - 1)} {name} = {id_call(name)};"
        for name, count in code.ranges.items()
        if name != HOST_ID
    ]
    lines += [f"  {local_array(m)};" for m in code.locals]
    lines += printer.lines()
    numbers = [ITERATION] if HOST_ID in code.ids else []
    parameters = ", ".join([*map(parameter, code.buffers), *numbers])
    attribute = ""
    if kernel.demand.groups:
        sizes = ", ".join(map(str, code.local_size))
        attribute = f"__attribute__((reqd_work_group_size({sizes})))\n"
    head = f"__kernel {attribute}void {kernel.name}({parameters}) {{"
    return "\n".join([head, *lines]) + "\n}\n"

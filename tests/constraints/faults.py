"""What is wrong with a candidate, judged without the constraint system.

By the types of the lowered program at its sizes, by its meaning on whole numbers, and by what was
emitted for it: launches, buffers, and the text of the kernels.
"""

import re

import numpy as np

from liftpy.constraints.collect import UNROLL_LIMIT
from liftpy.errors import DeviceRefused, TypeRefused
from liftpy.ir.types import scalars
from liftpy.opencl.arguments import DTYPES, check_launch, check_memory
from liftpy.opencl.images import check_images
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate

SCALAR = {"char": 1, "bool": 1, "int": 4, "float": 4, "long": 8, "double": 8, "half": 2}
PRIVATE = re.compile(r"^\s*(char|bool|int|float|long|double|half)(\d*) ([\w, ]+);$", re.MULTILINE)
LOCAL = re.compile(
    r"^\s*__local (char|int|float|long|double|half)(\d*) \w+\[(\d+)\] __attribute__.*;$",
    re.MULTILINE,
)

UNBUILDABLE, WRONG, GROUP, AXIS, SHARED = "unbuildable", "wrong", "group", "axis", "shared"
BUFFER, TOTAL, PEAK, REGISTERS, LENGTH = "buffer", "total", "peak", "registers", "length"
IMAGE = "image"


def kernels(source):
    """The texts of the kernels of a module."""
    return source.split("__kernel")[1:]


def registers(kernel):
    """The private variables that a kernel assigns more than once, and their bytes."""
    names, size = [], 0
    for scalar, lanes, declared in PRIVATE.findall(kernel):
        mine = declared.split(", ")
        names += mine
        size += SCALAR[scalar] * int(lanes or 1) * len(mine)
    return names, size


def statements(kernel):
    """How many statements of a kernel assign its private variables."""
    names, _ = registers(kernel)
    return sum(len(re.findall(rf"^\s*{name} = ", kernel, re.MULTILINE)) for name in names)


def shared(kernel):
    """The bytes of local memory that a kernel declares."""
    return sum(SCALAR[s] * int(v or 1) * int(n) for s, v, n in LOCAL.findall(kernel))


def inputs(program):
    """Whole numbers: sums are exact in any order."""
    rng = np.random.default_rng(0)
    return [
        rng.integers(-4, 5, size=tuple(map(int, p.type.shape))).astype(DTYPES[scalar.name])
        for p in program.params
        for scalar in scalars(p.type)
    ]


def fault(source, skeleton, point, device, memory_limit=None):
    """The first fault of a candidate; None for a good one. `source` is what it should mean."""
    try:
        lowered = skeleton.at(point)
    except TypeRefused:
        return UNBUILDABLE
    given = inputs(source)
    wanted, got = evaluate(source, *given), evaluate(lowered, *given)
    if wanted.shape != got.shape or not np.array_equal(wanted, got):
        return WRONG
    try:
        module = compile_program(lowered).module
        check_images(module, device)
    except (DeviceRefused, TypeRefused) as refusal:
        return IMAGE if "asImage" in str(refusal) else UNBUILDABLE
    for launch in module.launches:
        try:
            check_launch(module, launch, device, group=device.max_work_group_size, local=0)
        except DeviceRefused as refusal:
            return AXIS if "in dimension" in str(refusal) else GROUP
    try:
        check_memory(module, device)
    except DeviceRefused as refusal:
        return BUFFER if "in one buffer" in str(refusal) else TOTAL
    texts = kernels(module.source)
    if max(map(shared, texts)) > device.local_memory:
        return SHARED
    if memory_limit is not None and module.memory.peak > memory_limit:
        return PEAK
    if max(registers(t)[1] for t in texts) > device.private_memory:
        return REGISTERS
    return LENGTH if max(map(statements, texts)) > UNROLL_LIMIT else None

"""Lower a kernel of a lowered program to its loop nest, with its memories and ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from liftpy.errors import TypeRefused
from liftpy.ir.nat import Nat, var
from liftpy.ir.pull import Value
from liftpy.ir.types import ScalarType
from liftpy.kernels.chain import Kernel
from liftpy.loops.emit import Emitter, Env
from liftpy.loops.nest import Nest
from liftpy.loops.stepping import memories_of
from liftpy.loops.tree import (
    Block,
)
from liftpy.loops.updates import at_once, check_own
from liftpy.primitives.lowered import TEXEL, AsImage
from liftpy.views.access import Allocate, memory_view
from liftpy.views.terms import Decided, Memory, Space

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class LoopKernel:
    """A kernel in the loop IR: its statements, memories and ids.

    `buffers` are its memories in global memory: those that it reads, some of them as images, the
    one that it writes, and its scratch. `locals` are the memories of a work-group. `ids` are the
    names of the ids that it uses: `gid0` is the global id in dimension 0, `wid0` the id of the
    work-group, `hid0` the iteration of the host's loop, an argument of the kernel, `lid0` the id in
    the work-group, `sgid0` the id of the subgroup in the work-group, `slid0` the id in the
    subgroup, in the order that the device chooses, `sgsz0` the size of the subgroup, and `sgct0`
    the number of subgroups of the group. If the kernel is `rolled`, counters of loops may index
    private memory. `regular` has the counters of the loops over registers that stand for their
    iterations (`loops.regular`). `decided` are the ends of guards that were left out because the
    ranges of counters and ids decide them.
    """

    kernel: Kernel
    buffers: tuple[Memory, ...]
    locals: tuple[Memory, ...]
    ids: tuple[str, ...]
    global_size: Sizes
    local_size: Sizes
    block: Block = field(default_factory=Block)
    rolled: bool = False
    regular: frozenset[str] = frozenset()
    decided: frozenset[Decided] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def ranges(self) -> dict[str, int]:
        """The number of values of each id."""
        groups = tuple(g // s for g, s in zip(self.global_size, self.local_size, strict=True))
        sizes: dict[str, tuple[int, ...]] = {"gid": self.global_size, "wid": groups}
        sizes |= dict.fromkeys(("lid", "sgid", "slid"), self.local_size)  # subgroups of any size
        sizes["sgsz"] = sizes["sgct"] = tuple(size + 1 for size in self.local_size)
        sizes["hid"] = (int(self.kernel.repeats),)
        return {name: sizes[name[:-1]][int(name[-1])] for name in self.ids}

    @property
    def indices(self) -> dict[str, Nat]:
        """The ids as indices, with their ranges."""
        return {name: var(name, 0, count - 1) for name, count in self.ranges.items()}


def lowered(kernel: Kernel, names: dict[str, str]) -> tuple[LoopKernel, Nest]:
    """A kernel without statements, and its nest, from the views of its expression.

    `names` has the names of the buffers.
    """
    demand = kernel.demand
    global_size, local_size = numbers(demand.global_size()), numbers(demand.local_size())
    emitter = Emitter(kernel, global_size, local_size)
    buffers: list[Memory] = []

    def place(*, writable: bool, space: Space = "global") -> Allocate:
        def allocate(name: str, scalar: ScalarType, length: int) -> Memory:
            if space == "image" and length % TEXEL:
                raise TypeRefused(
                    f"{AsImage.name} cannot read {name}, an array of {length} {scalar}: an image "
                    f"has whole texels, so {TEXEL} must divide the number of its scalars. Pad the "
                    f"array, or leave out {AsImage.name}"
                )
            memory = Memory(name, space, scalar, length, writable)
            buffers.append(memory)
            return memory

        return allocate

    reads, texels = place(writable=False), place(writable=False, space="image")
    env: Env = {
        p: memory_view(names[p.name], p.type, texels if p in kernel.images else reads)
        for p in kernel.reads
    }
    if kernel.loop is not None and kernel.loop.element in kernel.body.free:
        array = emitter.view(kernel.loop.array, env)
        env[kernel.loop.element] = array[emitter.iteration(int(kernel.repeats))]
    dest = destination(kernel, names[kernel.writes.name], place(writable=True), emitter)
    if kernel.updates:
        env[kernel.writes] = at_once(emitter, dest)
    for expr, param in kernel.scratch:
        own = memory_view(names[param.name], param.type, place(writable=True))
        emitter.scratch.setdefault(expr, []).append(own)
    emitter.generate(kernel.body, env, dest)
    emitter.views.clear()  # they refer to the emitter, and would keep it alive
    (body,) = emitter.blocks
    if kernel.updates:
        check_own(emitter, body, frozenset(memories_of(dest)))
    code = LoopKernel(
        kernel,
        tuple(buffers),
        tuple(emitter.locals),
        tuple(sorted(emitter.ids)),
        global_size,
        local_size,
    )
    return code, Nest(kernel.name, tuple(body), emitter.read, frozenset(emitter.noted))


def destination(kernel: Kernel, name: str, allocate: Allocate, emitter: Emitter) -> Value:
    """Where a kernel stores its value: its own buffer, or the elements that its view reads."""
    view = kernel.output_view
    if view is None:
        return memory_view(name, kernel.writes.type, allocate)
    (array,) = view.params
    return emitter.view(view.body, {array: memory_view(name, array.type, allocate)})


def numbers(sizes: tuple[Nat, Nat, Nat]) -> Sizes:
    """An NDRange as numbers."""
    x, y, z = sizes
    return int(x), int(y), int(z)

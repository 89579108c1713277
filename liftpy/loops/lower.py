"""From a kernel of a lowered program to the loop IR."""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.errors import TypeRefused
from liftpy.ir.nat import Nat, var
from liftpy.ir.types import ScalarType
from liftpy.kernels.chain import Kernel
from liftpy.loops.barriers import with_needed_barriers
from liftpy.loops.emit import Emitter, Env
from liftpy.loops.reading import UnrollError
from liftpy.loops.scopes import MOST_STATEMENTS, TooLongError
from liftpy.loops.tree import Block
from liftpy.views.access import Allocate, Memory, memory_view

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class LoopKernel:
    """A kernel in the loop IR.

    `buffers` are its memories in global memory, those that it reads before the one that it writes;
    `locals` those of a work-group. `ids` are the names of the ids that it uses: `gid0` is the
    global id in dimension 0, `wid0` the work-group's, `lid0` that in the work-group.
    """

    kernel: Kernel
    buffers: tuple[Memory, ...]
    locals: tuple[Memory, ...]
    ids: tuple[str, ...]
    block: Block
    global_size: Sizes
    local_size: Sizes

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def ranges(self) -> dict[str, int]:
        """How many there are of each id."""
        groups = tuple(g // s for g, s in zip(self.global_size, self.local_size, strict=True))
        sizes = {"gid": self.global_size, "wid": groups, "lid": self.local_size}
        return {name: sizes[name[:-1]][int(name[-1])] for name in self.ids}

    @property
    def indices(self) -> dict[str, Nat]:
        """The ids as indices, with their ranges."""
        return {name: var(name, 0, count - 1) for name, count in self.ranges.items()}


def lowered_to_loops(kernel: Kernel, names: dict[str, str]) -> LoopKernel:
    """A kernel through the views of its expression; `names` has those of the buffers.

    TypeRefused for code that would be too long, and for private memory that work-items would share.
    """
    demand = kernel.demand
    global_size, local_size = numbers(demand.global_size()), numbers(demand.local_size())
    emitter = Emitter(kernel, global_size, local_size)
    buffers: list[Memory] = []

    def place(*, writable: bool) -> Allocate:
        def allocate(name: str, scalar: ScalarType, length: int) -> Memory:
            memory = Memory(name, "global", scalar, length, writable)
            buffers.append(memory)
            return memory

        return allocate

    reads = place(writable=False)
    env: Env = {p: memory_view(names[p.name], p.type, reads) for p in kernel.reads}
    dest = memory_view(names[kernel.writes.name], kernel.writes.type, place(writable=True))
    try:
        emitter.generate(kernel.body, env, dest)
    except UnrollError as error:
        message = (
            f"private memory cannot be indexed by {error}: each work-item has its own; "
            "use toLocal for what work-items share"
        )
        raise TypeRefused(message) from error
    except TooLongError as error:
        message = (
            f"the code of kernel {kernel.name} is too long: {error}; the limit is "
            f"{MOST_STATEMENTS} statements. Choose smaller blocks or tiles, or store with toGlobal "
            "what its loops hold in registers"
        )
        raise TypeRefused(message) from error
    emitter.clear()
    (made,) = emitter.blocks
    return LoopKernel(
        kernel,
        tuple(buffers),
        tuple(emitter.locals),
        tuple(sorted(emitter.ids)),
        with_needed_barriers(made.closed(), local_size),
        global_size,
        local_size,
    )


def numbers(sizes: tuple[Nat, Nat, Nat]) -> Sizes:
    """An NDRange as numbers."""
    x, y, z = sizes
    return int(x), int(y), int(z)

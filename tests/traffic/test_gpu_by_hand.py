"""The order of tiled convolutions that were written by hand and measured on an H100.

A work-group computes a tile of pixels and kernels of the layer vgg16/7, each work-item a block of
it, and a step has some channels of one offset of the window. The kernels differ in these sizes, in
how they copy to local memory, and in how they load from it. Their times, in microseconds, were
measured on an NVIDIA H100 80GB HBM3 with driver 580.159.04.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

import liftpy as lp
from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import F32
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Barrier,
    Block,
    For,
    Let,
    Statement,
    Store,
)
from liftpy.loops.values import (
    Cell,
    Name,
    Operate,
    VectorSlice,
)
from liftpy.opencl.devices import find_device
from liftpy.traffic.gpu import kernel_on_gpu
from liftpy.traffic.machine import hardware_of
from liftpy.views.terms import Memory
from tests.traffic.test_reading import codes_of

CHANNELS, KERNELS, PIXELS = 128, 128, 112 * 112
GAP = 4  # behind each row of local memory
DEVICE = find_device("profile:nvidia-hopper")
HOPPER = hardware_of(DEVICE)
X, W = (Memory(name, "global", F32, PIXELS * CHANNELS, writable=False) for name in "xw")
OUT = Memory("out", "global", F32, PIXELS * KERNELS)


@dataclass(frozen=True)
class Tiled:
    """A kernel: a group's tile, a work-item's block, the channels of a step, and its accesses.

    Adjacent work-items copy adjacent elements if it is `coalesced`. The arrays in local memory are
    `aligned` to vectors. The weights of a channel are adjacent if they are `transposed`.
    """

    pixels: int = 64
    kernels: int = 64
    rows: int = 8
    columns: int = 4
    channels: int = 16
    coalesced: bool = True
    aligned: bool = True
    transposed: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """The work-items of a group: along kernels, along pixels."""
        return self.kernels // self.columns, self.pixels // self.rows

    @property
    def items(self) -> int:
        """The number of work-items of a group."""
        return self.shape[0] * self.shape[1]

    def places(self, many: int, *, transposed: bool = False) -> Iterator[tuple[Nat, Nat]]:
        """Which elements a work-item copies of `many` pixels or kernels: which one, which channel.

        Channels are adjacent in global memory, unless it is `transposed`.
        """
        width, height = self.shape
        item = var("lid1", 0, height - 1) * width + var("lid0", 0, width - 1)
        for k in range(many * self.channels // self.items):
            if transposed or not self.coalesced:
                yield item % many, item // many + k * (self.items // many)
            else:
                yield (
                    item // self.channels + k * (self.items // self.channels),
                    item % self.channels,
                )

    def copies(self, step: Nat, a: Memory, b: Memory) -> Iterator[Statement]:
        """The copies of a step."""
        row, column = (var(f"wid{d}", 0, n - 1) for d, n in ((1, 196), (0, 2)))
        first = step % (CHANNELS // self.channels) * self.channels
        for k, (pixel, channel) in enumerate(self.places(self.pixels)):
            index = (row * self.pixels + pixel) * CHANNELS + first + channel
            yield Let(f"x{k}", Cell(X, index))
            yield Store(Cell(a, channel * (self.pixels + GAP) + pixel), Name(f"x{k}", F32))
        places = self.places(self.kernels, transposed=self.transposed)
        for k, (kernel, channel) in enumerate(places):
            one, summand = column * self.kernels + kernel, step * self.channels + channel
            transposed = self.transposed
            index = summand * KERNELS + one if transposed else one * (9 * CHANNELS) + summand
            yield Let(f"w{k}", Cell(W, index))
            yield Store(Cell(b, channel * (self.kernels + GAP) + kernel), Name(f"w{k}", F32))

    def sums(self, channel: Nat, a: Memory, b: Memory) -> Iterator[Statement]:
        """The loads and the sums of a channel; what is not aligned is one element further."""
        (width, height), shift = self.shape, 0 if self.aligned else 1
        row, column = var("lid1", 0, height - 1), var("lid0", 0, width - 1)
        for k in range(self.rows // 4):
            place = channel * (self.pixels + GAP) + row * self.rows + 4 * k
            yield Let(f"a{k}", Cell(a, place + shift, 4))
        for k in range(self.columns // 4):
            place = channel * (self.kernels + GAP) + column * 4 + k * (4 * width)
            yield Let(f"b{k}", Cell(b, place + shift, 4))
        for i, j in ((i, j) for i in range(self.rows) for j in range(self.columns)):
            factors = (
                VectorSlice(Name(f"{v}{k // 4}", F32, 4), k % 4)
                for v, k in zip("ab", (i, j), strict=True)
            )
            cell = Cell(self.accumulator, nat(i * self.columns + j))
            yield Store(cell, Operate("+", (cell, Operate("*", tuple(factors), F32)), F32))

    @property
    def accumulator(self) -> Memory:
        """The sums of a work-item."""
        return Memory("acc", "private", F32, self.rows * self.columns)

    @property
    def code(self) -> LoopKernel:
        """The kernel in the loop IR."""
        width, height = self.shape
        lengths = (self.channels * (n + GAP) + 1 for n in (self.pixels, self.kernels))
        a, b = (Memory(n, "local", F32, k) for n, k in zip(("l0", "l1"), lengths, strict=True))
        steps = 9 * CHANNELS // self.channels
        step, channel = var("i0", 0, steps - 1), var("i1", 0, self.channels - 1)
        loop = For("i1", 0, self.channels, 1, Block(tuple(self.sums(channel, a, b))))
        body = Block((*self.copies(step, a, b), Barrier(), loop, Barrier()))
        row = var("wid1", 0, PIXELS // self.pixels - 1) * self.pixels
        row += var("lid1", 0, height - 1) * self.rows
        place = row * KERNELS + var("wid0", 0, 1) * self.kernels + var("lid0", 0, width - 1) * 4
        stores = (
            Store(
                Cell(OUT, place + i * KERNELS + j % 4 + j // 4 * (4 * width)),
                Cell(self.accumulator, nat(i * self.columns + j)),
            )
            for i in range(self.rows)
            for j in range(self.columns)
        )
        groups = KERNELS // self.kernels, PIXELS // self.pixels
        return replace(
            some_kernel(),
            buffers=(X, W, OUT),
            locals=(a, b),
            global_size=(groups[0] * width, groups[1] * height, 1),
            local_size=(width, height, 1),
            block=Block((For("i0", 0, steps, 1, body), *stores)),
            regular=frozenset(),
        )

    @property
    def modelled(self) -> float:
        """The modelled microseconds."""
        return kernel_on_gpu(self.code, DEVICE, HOPPER).cycles / HOPPER.clock


@cache
def some_kernel() -> LoopKernel:
    """A kernel with groups, of which those by hand take the limits: 32 sums of each work-item."""
    program = lp.parse(
        "def m(a: [16][6]f32, b: [6][16]f32) = a |> map(r => b |> transpose |> map(s =>"
        " zip(r, s) |> map(mul) |> reduce(add, 0)))"
    )
    sizes = {"tile0": 16, "tile1": 16, "sigma": 8, "kappa": 4, "chunk": 3, "v": 1, "gap": 0}
    (code,) = codes_of(lp.space(program, DEVICE).candidate(dict(sizes, family="cooperative")))
    return code


VERSIONS = [
    (369, Tiled(coalesced=False, aligned=False, transposed=False)),
    (170, Tiled(aligned=False, transposed=False)),
    (130, Tiled(transposed=False)),
    (116, Tiled()),
]


@pytest.mark.parametrize("k", range(2))
def test_what_made_a_kernel_faster_makes_it_faster_in_the_model(k: int) -> None:
    (before, slower), (after, faster) = VERSIONS[k : k + 2]
    ratio = before / after
    assert ratio / 2 < slower.modelled / faster.modelled < ratio * 2


def test_transposed_weights_make_no_difference_in_the_model() -> None:
    """Neither version is bound by its copies; they differ by 12 % on the device."""
    assert VERSIONS[2][1].modelled == pytest.approx(VERSIONS[3][1].modelled, rel=0.01)


def test_tuned_kernels_are_modelled_too_fast() -> None:
    for measured, version in VERSIONS:
        assert measured / 2.1 < version.modelled < measured


TILES = [
    (111.6, Tiled(64, 64, 8, 4, 16)),
    (128.6, Tiled(64, 64, 4, 4, 16)),
    (144.7, Tiled(64, 64, 8, 8, 16)),  # and as fast, within 0.5 %: 128, 64, 8, 8, 16
    (148.3, Tiled(128, 64, 8, 8, 8)),
    (167.6, Tiled(128, 128, 8, 8, 8)),
]


def test_tiles_are_in_the_order_of_their_times() -> None:
    times = [tile.modelled for _, tile in TILES]
    assert times == sorted(times)
    assert len(set(times)) == len(times)

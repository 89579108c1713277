"""A published model of the vector instructions of pooling on a machine with private memories.

This is the analysis by C. S. Rohwedder (dissertation, Unicamp, 2021) of pooling on DaVinci (Ascend
910), for comparison with it; no rule and no strategy of liftpy uses it. A tile is the image of one
block of channels. An instruction computes on all lanes, and the hardware repeats it: each
repetition is an iteration. With a stride above 1, only the channels of a block are adjacent in
memory, so most lanes idle. A rearranged copy of the image (im2col) has, for each kernel position, a
plane of the size of the output, so all lanes work. Load instructions can make this copy (Im2Col),
and the adjoint adds planes into an image (Col2Im), both a fractal of some windows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from liftpy.errors import TypeRefused
from liftpy.workloads.windows import Axis

Variant: TypeAlias = Literal["direct", "im2col", "expansion", "split", "vadd", "col2im"]

FORWARD: tuple[Variant, ...] = ("direct", "im2col", "expansion", "split")
"""Windows in place, copied by loads, copied by vector instructions, and rows before columns."""

MASKED: tuple[Variant, ...] = ("direct", "im2col", "expansion")
"""The forward variants that can also compute a mask of the maxima."""

BACKWARD: tuple[Variant, ...] = ("vadd", "col2im")
"""Gradients added window by window, and plane by plane."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A vector unit: lanes, channels and windows (`rows`) of a fractal, bytes of an element."""

    lanes: int = 128
    channels: int = 16
    rows: int = 16
    element: int = 2


DAVINCI = Machine()


@dataclass(frozen=True, slots=True)
class Costs:
    """The cycles of a fractal and of an instruction, and the bytes that are moved in a cycle.

    An iteration takes one cycle.
    """

    fractal: float = 4
    instruction: float = 4
    bytes_per_cycle: float = 64


@dataclass(frozen=True, slots=True)
class Step:
    """Instructions of one kind, their iterations, and the fractals that they load or add."""

    instructions: int
    iterations: int = 0
    fractals: int = 0

    def cycles(self, costs: Costs) -> float:
        """The cycles of these instructions."""
        issued = self.instructions * costs.instruction + self.fractals * costs.fractal
        return issued + self.iterations


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The instructions and bytes of pooling a tile.

    `steps` are its instructions by what they do: `load`, `copy`, `width`, `reduce`, `mask`,
    `zero`, `multiply`, `merge`. `moved` are the bytes to and from global memory, and `held` those
    in the private memory of the vector unit.
    """

    steps: dict[str, Step]
    moved: int
    held: int

    def cycles(self, costs: Costs) -> float:
        """The modelled cycles: moving data and computing do not overlap."""
        return self.moved / costs.bytes_per_cycle + sum(
            s.cycles(costs) for s in self.steps.values()
        )


@dataclass(frozen=True, slots=True)
class PoolTile:
    """A pooling without padding: height and width of the image, of the window, and of its stride.

    TypeRefused if no window fits the image.
    """

    image: tuple[int, int]
    window: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (2, 2)

    def __post_init__(self) -> None:
        for axis, image, window, stride in zip(
            ("height", "width"), self.image, self.window, self.stride, strict=True
        ):
            if not (0 < window <= image and stride > 0):
                what = f"no window of {axis} {window} with stride {stride} fits an image of {image}"
                why = "the model counts whole windows and has no padding"
                instead = f"give a window from 1 to {max(image, 1)} and a stride from 1"
                raise TypeRefused(f"{what}\n  {why}\n  {instead}")

    @property
    def out(self) -> tuple[int, int]:
        """The numbers of rows and columns of windows."""
        sizes = zip(self.image, self.window, self.stride, strict=True)
        rows, columns = (Axis(image, window, stride).count for image, window, stride in sizes)
        return rows, columns


def pool_counts(
    tile: PoolTile, variant: Variant, machine: Machine = DAVINCI, *, mask: bool = False
) -> PoolCounts:
    """The instructions, fractals and bytes of pooling a tile.

    variant: one of FORWARD for the maximum or the sum of windows, or of BACKWARD for the gradient
        of the maximum from a mask of each window.
    mask: whether the variant also computes, holds and stores the mask that BACKWARD reads. The
        source has no counts for this; here it takes as many instructions as `reduce`, because it
        compares each element that `reduce` reads.

    TypeRefused for an unknown variant, and for a mask with `split` or a gradient.

    >>> from liftpy.traffic.pooling import PoolTile, pool_counts
    >>> tile = PoolTile((71, 71), window=(3, 3), stride=(2, 2))
    >>> pool_counts(tile, "direct").steps["reduce"]
    Step(instructions=3675, iterations=11025, fractals=0)
    >>> pool_counts(tile, "im2col").steps["reduce"]
    Step(instructions=9, iterations=1386, fractals=0)
    """
    if variant not in (*FORWARD, *BACKWARD):
        what = f"there is no variant {variant!r} of pooling"
        raise TypeRefused(f"{what}\n  known are {', '.join((*FORWARD, *BACKWARD))}\n  name one")
    if mask and variant not in MASKED:
        what = f"the variant {variant} has no mask to store"
        why = "a mask is computed from all elements of a window and their maximum"
        raise TypeRefused(
            f"{what}\n  {why}\n  name one of {', '.join(MASKED)}, or leave `mask` out"
        )
    rows, columns = tile.out
    image, windows, places = tile.image[0] * tile.image[1], rows * columns, tile.window[0]
    places *= tile.window[1]
    each = machine.channels * machine.element
    steps = (backward if variant in BACKWARD else forward)(tile, variant, machine)
    masked = places * windows if mask else 0
    if mask:
        steps["mask"] = steps["reduce"]
    if variant in BACKWARD:
        held = (2 * places + 1) * windows + image
        moved = (places + 1) * windows + image
    else:
        held = (
            windows
            + masked
            + {
                "direct": image,
                "im2col": places * windows,
                "expansion": image + places * windows,
                "split": image + tile.image[0] * columns,
            }[variant]
        )
        moved = image + windows + masked
    return PoolCounts(steps, moved * each, held * each)


def forward(tile: PoolTile, variant: Variant, machine: Machine) -> dict[str, Step]:
    """The instructions of a forward variant."""
    rows, columns = tile.out
    windows, (high, wide) = rows * columns, tile.window
    a_row, all_windows = (whole(n * machine.channels, machine.lanes) for n in (columns, windows))
    adjacent = tile.stride[1] == 1  # the lanes of a vector then hold several windows
    places = high * wide
    if variant == "direct":
        if adjacent:
            return {"reduce": Step(rows * places, rows * places * a_row)}
        return {"reduce": Step(windows * high, windows * places)}
    if variant == "split":
        first = tile.image[0]
        if adjacent:
            width = Step(first * wide, first * wide * a_row)
        else:
            width = Step(first * columns, first * columns * wide)
        return {"width": width, "reduce": Step(rows * high, rows * high * a_row)}
    if variant == "im2col":
        made = {"load": Step(places, fractals=places * whole(windows, machine.rows))}
    else:
        copied = places * rows * (a_row if adjacent else columns)
        made = {"copy": Step(places * rows, copied)}
    return {**made, "reduce": Step(places, places * all_windows)}


def backward(tile: PoolTile, variant: Variant, machine: Machine) -> dict[str, Step]:
    """The instructions of a backward variant: the gradient of the image begins with zeros."""
    windows, places = tile.out[0] * tile.out[1], tile.window[0] * tile.window[1]
    image = tile.image[0] * tile.image[1]
    vectors, zeros = (whole(n * machine.channels, machine.lanes) for n in (windows, image))
    if variant == "vadd":
        merge = Step(places * windows, places * windows)
    else:
        merge = Step(places, fractals=places * whole(windows, machine.rows))
    return {"zero": Step(1, zeros), "multiply": Step(places, places * vectors), "merge": merge}


def whole(count: int, each: int) -> int:
    """The number of pieces of size `each` that hold `count` elements."""
    return -(-count // each)

"""Modelled fronts of the VGG-16 layers on a profile: nothing runs.

    python benchmarks/modelled_fronts.py [LAYER ...] [--samples 100] [--device D] [--out DIR]

For each layer, a modelled campaign (`explore --modelled`) with seed 0 and the default search. A row
of the table, in Markdown, says the modelled time of the fastest direct form and of the fastest of
all, each with the share of the device's peak that its multiplications and additions are (those of
the convolution, which Winograd's forms do not all execute), the part of the time that bounds the
fastest, the points of the front as pairs of modelled ms and MiB (each once, although several
candidates may have the same time and peak), and the memory that im2col's matrix would add, as a
multiple of the least peak.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import liftpy as lp
from liftpy.explore.campaign.rows import Row
from liftpy.opencl.devices import find_device
from liftpy.traffic.machine import hardware_of
from liftpy.workloads import VGG16

LAYERS = tuple(VGG16)


def modelled_row(layer: int, samples: int, device: str, out: Path) -> str:
    """A row of the table."""
    shape, name = VGG16[layer], f"vgg16/{layer}"
    target = find_device(device)
    hardware = hardware_of(target)
    path = out / f"vgg16_{layer}.db"
    program = lp.workload(name)
    campaign = lp.explore(program, samples, db=path, device=device, modelled=True)
    flops_per_ns = target.compute_units * hardware.flops_per_cycle * hardware.clock / 1000
    points = {((row.time_ns or 0) / 1e6, (row.peak or 0) / 2**20) for row in campaign.pareto()}
    front = ", ".join(f"{time:.3g} in {peak:.1f}" for time, peak in sorted(points))

    def told(row: Row) -> str:
        time = row.time_ns or 0
        return f"{time / 1e6:.3g} ({shape.flops / time / flops_per_ns:.0%})"

    timed = [row for row in campaign.rows if row.time_ns is not None]
    direct = [row for row in timed if "winograd" not in row.assignment]
    fastest = min(timed, key=lambda row: row.time_ns or 0)
    plain = min(direct, key=lambda row: row.time_ns or 0)
    least = min(row.peak or 0 for row in timed)
    rows, width = shape.out
    columns = 4 * rows * width * shape.channels * shape.kernel[0] * shape.kernel[1]
    bound = fastest.reason.removeprefix("modelled, bound by ")
    return (
        f"| {name} | {told(plain)} | {told(fastest)} | {bound} | "
        f"{len(points)}: {front} | {(least + columns) / least:.2g} |"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", type=int, default=LAYERS)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--device", default="profile:mali-g72")
    parser.add_argument("--out", type=Path, default=None, help="where the campaigns are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        heads = ("layer", "direct, modelled ms", "fastest, modelled ms", "bound by", "ms in MiB")
        print(f"| {' | '.join(heads)} | with im2col |")
        print("| --- | --- | --- | --- | --- | --- |")
        for layer in options.layers:
            print(modelled_row(layer, options.samples, options.device, out), flush=True)


if __name__ == "__main__":
    main()

"""Modelled times beside those of a campaign that was measured on a GPU: nothing runs.

    python benchmarks/modelled_gpu.py CAMPAIGN [--device profile:nvidia-hopper] [--worst 5] [--all]

Each measured candidate of the file is derived again and modelled with the hardware of the profile,
or, without `--device`, with that of the campaign's own device, which need not be attached.
Candidates whose kernels in this version differ from those that were measured are left out. It
prints Spearman's rank correlation of modelled and measured times, how the ratio of measured to
modelled time is distributed, and the candidates with the least and the largest ratios; with
`--all`, every candidate, the fastest first. The last column names the part that bounds the modelled
time.
"""

from __future__ import annotations

import argparse
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from liftpy.constraints.device import Device
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.replay import stored_candidate
from liftpy.explore.measure.modelling import bound
from liftpy.opencl.devices import find_device
from liftpy.pipeline import compile_candidate
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.time import modelled


@dataclass(frozen=True)
class Pair:
    """A candidate with both of its times, in microseconds, and what bounds the modelled one."""

    id: str
    label: str
    measured: float
    modelled: float
    bound: str

    @property
    def ratio(self) -> float:
        """The measured time as a multiple of the modelled one."""
        return self.measured / self.modelled


def pairs(path: Path, device: Device | None) -> Iterator[Pair]:
    """Both times of each measured candidate of a file whose kernels this version makes, too."""
    with CampaignReader.read(path) as store:
        target = store.identity.devices[0] if device is None else device
        hardware = hardware_of(target)
        for row in store.rows():
            if row.time_ns is None:
                continue
            candidate = stored_candidate(store, row)
            module = compile_candidate(candidate.skeleton, candidate.point)
            if module.source != store.kernels(row.id)[0]:
                continue
            found = modelled(candidate.skeleton.at(candidate.point), target, hardware)
            times = row.time_ns / 1e3, found.milliseconds * 1e3
            yield Pair(row.id, candidate.label, *times, bound(found))


def table(rows: Sequence[Pair]) -> Iterator[str]:
    """A table of candidates, in Markdown."""
    yield "| candidate | measured us | modelled us | ratio | bound by |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        times = f"{row.measured:,.0f} | {row.modelled:,.0f} | {row.ratio:.2f}"
        yield f"| {row.id} {row.label} | {times} | {row.bound} |"


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal values share the mean of theirs.

    >>> ranks([30, 10, 20, 10])
    [4.0, 1.5, 3.0, 1.5]
    """
    ordered = sorted(values)
    return [(bisect_left(ordered, v) + bisect_right(ordered, v) + 1) / 2 for v in values]


def summary(found: Sequence[Pair]) -> Iterator[str]:
    """The rank correlation, and the distribution of ratios."""
    measured, times = ([p.measured for p in found], [p.modelled for p in found])
    rank = statistics.correlation(ranks(measured), ranks(times))
    ratios = sorted(p.ratio for p in found)
    middle = statistics.geometric_mean(ratios)
    within = sum(1 / 2 <= ratio <= 2 for ratio in ratios)
    yield f"{len(found)} candidates; rank correlation {rank:.3f}"
    yield (
        f"measured / modelled: least {ratios[0]:.2f}, median {statistics.median(ratios):.2f}, "
        f"geometric mean {middle:.2f}, largest {ratios[-1]:.2f}; {within} within a factor of 2"
    )


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--device", default=None)
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    device = find_device(options.device) if options.device else None
    found = sorted(pairs(options.campaign, device), key=lambda pair: pair.measured)
    if len(found) < 3:
        parser.error(
            f"{options.campaign} has {len(found)} candidates with measured kernels that this "
            "version makes; 3 are needed. Use the version that measured them, or measure again"
        )
    print("\n".join(summary(found)))
    by_ratio = sorted(found, key=lambda pair: pair.ratio)
    worst = [*by_ratio[: options.worst], *by_ratio[-options.worst :]]
    print("\n".join(table(found if options.all else worst)))


if __name__ == "__main__":
    main()

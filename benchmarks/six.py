"""Compares a program of six different operations with these operations alone, in one run.

    python benchmarks/six.py [--samples 40] [--rounds 9] [--skip-search] [--db FOLDER]

Each operation of `programs/six.lift`, a program of its own, has a campaign of `--samples`
candidates; the whole program has one of twice as many. All have the default search and the same
seed. Then the fastest of each campaign, chosen from its two best and checked as in `bench.py`, are
timed alternately. The time of the whole is compared with the sum of the single times. Both are
times of device events: what a launch costs the host is paid by six programs six times. `reached` is
the number of samples after which the whole was within 5 % of the sum of the best times alone, in
the times of the campaigns; for an operation, within 5 % of its own best.
Writes `results/six.json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import ours
from bench import HERE, machine
from cases import PROGRAMS, Case
from turns import timed_alternately, turn

import liftpy as lp
from liftpy.ir.program import Program
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import STORED

WHOLE = "six"
NEAR = 1.05


@dataclass(frozen=True)
class Operation(Case):
    """A program that stands in a text."""

    text: str = ""

    @cached_property
    def program(self) -> Program:
        return lp.parse(self.text)


def operations(text: str) -> list[Operation]:
    """The whole program, and each of its stages where all of them are stored."""
    whole = lp.parse(text)
    apart = next(
        p for p in partitions(whole) if all(word == STORED for word in dict(p.words).values())
    )
    alone = (Operation(f"six/{s.name}", "six", s.name, lp.show(s.program)) for s in apart.stages)
    return [Operation(WHOLE, "six", WHOLE, text), *alone]


def best_after(campaign: lp.Campaign) -> list[float]:
    """The least time after each candidate."""
    times = (row.time_ns for row in campaign.rows)
    return [*itertools.accumulate((t or float("inf") for t in times), min)]


def reached(times: list[float], goal: float) -> int | None:
    """After how many candidates the least time was within 5 % of a goal."""
    return next((k for k, t in enumerate(times, 1) if t <= NEAR * goal), None)


def main() -> int:
    """Explores, measures, writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=40, help="of an operation alone")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--skip-search", action="store_true", help="take what is stored")
    parser.add_argument("--db", type=Path, default=None, help="where the campaigns are kept")
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    cases = operations((PROGRAMS / f"{WHOLE}.lift").read_text(encoding="utf-8"))
    device = find_device(options.device)
    with tempfile.TemporaryDirectory() as folder, Session(device) as session:
        kept = options.db or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        campaigns: dict[str, lp.Campaign] = {}
        for case in cases:
            samples = options.samples * (2 if case.name == WHOLE else 1)
            campaigns[case.name] = (
                ours.stored(case, kept)
                if options.skip_search
                else ours.searched(case, device, kept, samples=samples)
            )
            print(case.name, campaigns[case.name].counts, flush=True)
        best = {case.name: ours.best(case, campaigns[case.name], session) for case in cases}
        print("all are compiled; timing them alternately", flush=True)
        turns = {name: partial(turn, made.run) for name, made in best.items()}
        samples, others = timed_alternately(turns, options.rounds)
        for made in best.values():
            made.loaded.close()
    found = {name: best_after(campaign) for name, campaign in campaigns.items()}
    total = sum(times[-1] for name, times in found.items() if name != WHOLE)
    goals = {name: total if name == WHOLE else times[-1] for name, times in found.items()}
    events = {name: statistics.median(s["events"]) for name, s in samples.items()}
    alone = sum(time for name, time in events.items() if name != WHOLE)
    result: dict[str, Any] = {
        "machine": machine() | {"device": f"{device.platform} {device.driver_version}"},
        "whole / sum": events[WHOLE] / alone,
        "others": others,
        "operations": {
            name: {
                "outcomes": campaign.counts,
                "reached": reached(found[name], goals[name]),
                "best": best[name].to_json(),
                "ns": samples[name],
            }
            for name, campaign in campaigns.items()
        },
    }
    path = HERE / "results" / "six.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, time in events.items():
        operation = result["operations"][name]
        tried = sum(campaigns[name].counts.values())
        print(f"{name}: {time / 1e6:.3f} ms, near after {operation['reached']} of {tried}")
    print(f"alone together {alone / 1e6:.3f} ms, whole / sum {events[WHOLE] / alone:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

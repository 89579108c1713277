"""The fastest candidate of each form of convolutions, timed alternately: direct, and by F(m, r).

    python benchmarks/forms.py [--cases vgg16/2 ...] [--words direct 4x4 1x4 ...] [--samples 40]

For each case and word there is a campaign with the default search over the candidates of that form
(`winograd=4x4`; `direct`: of the family `direct`). Its fastest candidate, chosen as in `bench.py`
and compared with float64, is timed alternately with those of the other forms. Words without a
candidate for a case are left out. Times are medians of device events.

The last column is the time of the fastest form along one dimension (`1x4`) divided by that of the
fastest in two (`4x4`). A form of one dimension stores fewer transformed values, so the quotient is
compared with H W / (C M), points for each weight of a tap: printed is Spearman's rank correlation.
If both are measured for several cases, the script exits with 1 unless this correlation is negative
and one dimension is faster for the case with the most points for each weight. Writes
`results/forms.json`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ours
from bench import HERE, machine
from cases import CASES, Case
from turns import timed_alternately, turn

from liftpy.errors import ConstraintRefused
from liftpy.opencl.devices import find_device
from liftpy.opencl.session import Session

DIRECT = "direct"
LAYERS = ("vgg16/2", "vgg16/7", "vgg16/12", "vgg16/19", "vgg16/24")
WORDS = (DIRECT, "2x2", "4x4", "6x6", "1x2", "1x4", "1x6")
FINALISTS, CHOOSING = 2, 3
"""Of each campaign, how many are timed again to choose one, and for how many rounds."""

Times = dict[str, float]
"""Nanoseconds by word."""


def restriction(word: str) -> dict[str, Any]:
    """What restricts a space to one form."""
    return {"families": [DIRECT]} if word == DIRECT else {"fixed": {"winograd": word}}


def quotient(times: Times) -> float | None:
    """The least time along one dimension, divided by the least in two; None if one is missing."""
    rows = [time for word, time in times.items() if word.startswith("1x")]
    tiles = [time for word, time in times.items() if re.fullmatch(r"[2-9]x[2-9]", word)]
    return min(rows) / min(tiles) if rows and tiles else None


def rank_correlation(xs: list[float], ys: list[float]) -> float:
    """Spearman's coefficient, for distinct values.

    >>> rank_correlation([1, 2, 4], [10, 30, 20])
    0.5
    """
    first, second = (np.argsort(np.argsort(values)) for values in (xs, ys))
    return float(np.corrcoef(first, second)[0, 1])


def points_for_each_weight(case: Case) -> float:
    """H W / (C M) of a convolution."""
    layer = case.layer
    return layer.height * layer.width / (layer.channels * layer.kernels)


def one_dimension_wins(correlation: float, rows: list[dict[str, Any]]) -> bool:
    """Whether the quotient falls as H W / (C M) grows, and is less than 1 for the largest.

    The quotient is the time in one dimension divided by that in two.
    """
    return correlation < 0 and max(rows, key=lambda r: r["points for each weight"])["quotient"] < 1


def measured(
    case: Case, words: list[str], session: Session, folder: Path, samples: int, rounds: int
) -> tuple[dict[str, ours.Ours], Times, float]:
    """The fastest candidate of each form, their times, and others' share of the processors."""
    found: dict[str, ours.Ours] = {}
    for word in words:
        limits = restriction(word)
        kept = folder / word
        kept.mkdir(parents=True, exist_ok=True)
        try:
            campaign = ours.searched(case, session.device, kept, samples=samples, **limits)
        except ConstraintRefused as e:
            print(f"{case.name} {word}: {e}", flush=True)
            continue
        if all(row.time_ns is None for row in campaign.rows):
            print(f"{case.name} {word}: no candidate was measured", flush=True)
            continue
        found[word] = ours.best(case, campaign, session, FINALISTS, CHOOSING)
    turns = {word: partial(turn, made.run) for word, made in found.items()}
    runs, others = timed_alternately(turns, rounds)
    for made in found.values():
        made.loaded.close()
    return found, {w: statistics.median(s["events"]) for w, s in runs.items()}, others


def main() -> int:
    """Explores, measures, prints and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", default=LAYERS)
    parser.add_argument("--words", nargs="*", default=WORDS)
    parser.add_argument("--samples", type=int, default=40, help="of a form of a case")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--db", type=Path, default=None, help="where the campaigns are kept")
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    cases = [CASES[name] for name in options.cases]
    device = find_device(options.device)
    rows: dict[str, Any] = {}
    print("| layer |", " | ".join(options.words), "| 1-D / 2-D |")
    with tempfile.TemporaryDirectory() as folder, Session(device) as session:
        for case in cases:
            found, times, others = measured(
                case,
                options.words,
                session,
                options.db or Path(folder),
                options.samples,
                options.rounds,
            )
            rows[case.name] = {
                "forms": {w: found[w].to_json() | {"ns": t} for w, t in times.items()},
                "points for each weight": points_for_each_weight(case),
                "quotient": quotient(times),
                "others": others,
            }
            cells = (f"{times[w] / 1e6:.2f}" if w in times else "" for w in options.words)
            ratio = quotient(times)
            last = "" if ratio is None else f"{ratio:.2f}"
            print(f"| {case.name} |", " | ".join(cells), f"| {last} |", flush=True)
    both = [r for r in rows.values() if r["quotient"] is not None]
    correlation = None
    if len(both) > 1:
        columns = ([r[key] for r in both] for key in ("points for each weight", "quotient"))
        correlation = rank_correlation(*columns)
        print(f"rank correlation of 1-D / 2-D with H W / (C M): {correlation:.2f}")
    result = {
        "machine": machine() | {"device": f"{device.platform} {device.driver_version}"},
        "rank correlation": correlation,
        "cases": rows,
    }
    path = HERE / "results" / "forms.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(correlation is not None and not one_dimension_wins(correlation, both))


if __name__ == "__main__":
    sys.exit(main())

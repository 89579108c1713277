"""The gallery: campaigns on examples, their fronts, and the page that shows them.

    python benchmarks/gallery.py [NAME ...]    explores the named examples (by default all),
                                               records their fronts, and writes the page
    python benchmarks/gallery.py --page        writes the page from the recorded results

The results of an example are recorded in results/gallery/NAME.json; its picture is
docs/gallery/NAME.svg, and the page is docs/gallery.md. The databases of the campaigns go to
`gallery/`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.rows import Row
from liftpy.explore.report.plot import plot
from liftpy.explore.report.wording import in_bytes, in_time

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "gallery"
MANY = 10  # a candidate with more settings is shown with its main ones only
ROWS = 6  # the page shows at most this many of a front: the fastest ones, and the smallest

HEAD = """# Gallery

Each example was explored with the command below its heading, at the commit and on the device given
below the command; the same command on another device gives another front. The tables show the
[front](glossary.md#front) of time and one memory figure: `peak`, the most global memory that is in
use at one time, or `private`, the bytes of private memory of a work-item (registers, unless they
spill). In the pictures, grey marks are measured candidates, with a shape for each family, and blue
marks are on the front; both axes are logarithmic. The column `95 %` gives the distances of the ends
of the 95 % interval from the median. For a candidate with many settings, the tables show only the
families of its stages and which values are stored, fused or held.

The machine was shared with other work. `disturbed` counts the candidates that were measured while
the machine was slower than usual: their times are upper bounds, and their intervals are wide. The
fronts therefore show the range of a space rather than the speed of liftpy.
[performance.md](performance.md) compares liftpy with other libraries, in alternating runs.

Run the commands in the root of the repository, after `mkdir -p gallery`.
`benchmarks/gallery.py` runs all of them and writes this page. The [tutorial](tutorial.md)
explains one campaign step by step.
"""


@dataclass(frozen=True)
class Example:
    """A program, the options of its campaign, and the memory figure of its front."""

    name: str
    title: str
    said: str
    program: str
    options: tuple[str, ...] = ()
    axis: str = "peak"
    samples: int = 40

    @property
    def command(self) -> list[str]:
        """The arguments of `liftpy`."""
        more = ("--samples", str(self.samples), "--seed", "0", "--db", f"gallery/{self.name}.db")
        return ["explore", self.program, *self.options, *more]


EXAMPLES = (
    Example(
        "convolution",
        "A convolution layer",
        "28x28 points with 32 channels, 32 kernels of 3x3, padded. The fastest candidates read "
        "the padding through a condition instead of storing a padded copy (`pad=fused`), so they "
        "are also those that need the least `peak`. Speed costs registers: a larger block of "
        "results (`kappa` times `sigma`) reads inputs and weights less often.",
        "examples/convolution.py:convolution",
        axis="private",
    ),
    Example(
        "vgg",
        "A layer of VGG-16",
        "Layer 24: 14x14 points with 512 channels, 512 kernels of 3x3.",
        "vgg16/24",
        axis="private",
    ),
    Example(
        "matmul",
        "A matrix product",
        "Two matrices of 512 rows and columns. No family is specific to products: `direct` finds "
        "the same structure as in a convolution, two nested maps around a reduction.",
        "matmul/512x512x512",
        axis="private",
    ),
    Example(
        "separable",
        "A separable filter",
        "A 5x5 window whose weights are a product, applied along the rows and then along the "
        "columns. A choice decides whether the intermediate image is stored, or recomputed where "
        "it is read (`stage1=stored` or `fused`): memory against time.",
        "examples/separable.lift",
        ("--size", "h=512", "--size", "w=512"),
    ),
    Example(
        "jacobi",
        "A stencil",
        "One step of a 5-point Jacobi stencil on 1024x1024 cells.",
        "stencil/jacobi5/1024x1024",
    ),
    Example(
        "softmax",
        "Softmax",
        "The softmax of each of 4096 rows of 1024 numbers. `passes=one` computes the largest "
        "element and the sum in one pass over the row; `arrays` decides where the exponentials "
        "are held.",
        "benchmarks/programs/softmax.lift",
        axis="private",
    ),
    Example(
        "perceptron",
        "A perceptron with two hidden layers",
        "64 inputs of 256 numbers, two hidden layers of 256, 16 outputs. A hidden layer may be "
        "stored, or held: computed and read a block at a time. Each stage has its own family and "
        "sizes.",
        "examples/perceptron.lift",
        tuple(
            part
            for size in ("batch=64", "inputs=256", "hidden=256", "outputs=16")
            for part in ("--size", size)
        ),
    ),
    Example(
        "attention",
        "Attention",
        "Four heads, 256 positions, 64 features. 40 candidates are few for a program of "
        "several stages: they include none of the faster forms in "
        "[performance.md](performance.md).",
        "examples/attention.lift",
        tuple(part for size in ("heads=4", "n=256", "d=64") for part in ("--size", size)),
    ),
)


def explored(example: Example) -> Campaign:
    """Runs or resumes the campaign of an example."""
    database = ROOT / example.command[-1]
    database.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "liftpy", *example.command], cwd=ROOT, check=True)
    return Campaign.read(database)


def recorded(example: Example, campaign: Campaign) -> dict[str, Any]:
    """The results of a campaign that the page shows, as JSON data."""
    call = campaign.calls[-1]
    return {
        "program": campaign.identity.program,
        "device": campaign.device.label,
        "driver": campaign.device.driver_version,
        "processor": call.environment["processor"],
        "commit": call.environment["commit"],
        "date": datetime.fromtimestamp(call.started, UTC).date().isoformat(),
        "outcomes": campaign.counts,
        "disturbed": sum(row.disturbed for row in campaign.rows),
        "first": campaign.rows[0].time_ns,
        "axis": example.axis,
        "front": [row_json(row, example.axis) for row in campaign.pareto(example.axis)],
    }


def row_json(row: Row, axis: str) -> dict[str, Any]:
    """A candidate of a front as JSON data."""
    span, memory = row.span, row.memory
    if span is None or memory is None:
        raise ValueError(f"{row.id} is on a front and was not measured")
    return {
        "id": row.id,
        "time_ns": row.time_ns,
        "interval_ns": [span.low, span.high],
        "peak": memory.peak,
        axis: getattr(memory, axis),
        "assignment": row.assignment,
    }


def page() -> str:
    """The page, made from the recorded results."""
    return "\n".join([HEAD, *("\n".join(section(e)) for e in EXAMPLES if file_of(e).exists())])


def section(example: Example) -> list[str]:
    """The lines of the page for an example."""
    data = json.loads(file_of(example).read_text(encoding="utf-8"))
    said = ", ".join(f"{n} {outcome}" for outcome, n in data["outcomes"].items())
    figures = dict.fromkeys(("peak", data["axis"]))
    rows = data["front"]
    shown = rows if len(rows) <= ROWS else [*rows[: ROWS - 1], rows[-1]]
    left = len(rows) - len(shown)
    best = rows[0]["time_ns"]
    return [
        f"## {example.title}",
        "",
        example.said,
        "",
        "```sh",
        shlex.join(["liftpy", *example.command]),
        shlex.join(["liftpy", "pareto", example.command[-1], "--axis", data["axis"]]),
        "```",
        "",
        f"liftpy at {data['commit'][:7]}, {data['date']}; {data['device']},",
        f"driver {data['driver']}.",
        f"{sum(data['outcomes'].values())} candidates: {said}; {data['disturbed']} disturbed.",
        f"The first one, the simplest, took {in_time(data['first'])}, the fastest {in_time(best)}.",
        "",
        f"![the front of {example.title.lower()}](gallery/{example.name}.svg)",
        "",
        f"| time | 95 % | {' | '.join(figures)} | candidate |",
        f"| ---: | --- | {' | '.join('---:' for _ in figures)} | --- |",
        *(cells(row, list(figures)) for row in shown),
        *(["", f"{left} more of the front are left out."] if left else []),
        "",
    ]


def cells(row: dict[str, Any], figures: list[str]) -> str:
    """The row of a candidate in a table."""
    time = row["time_ns"]
    low, high = (round(100 * (end / time - 1)) for end in row["interval_ns"])
    memory = " | ".join(in_bytes(row[figure]) for figure in figures)
    settings = row["assignment"].items()
    if len(settings) > MANY:
        settings = [(name, value) for name, value in settings if is_main(name, str(value))]
    chosen = " ".join(f"{name}={value}" for name, value in settings)
    return f"| {in_time(time)} | {low:+} {high:+} % | {memory} | `{chosen}` |"


def is_main(name: str, value: str) -> bool:
    """Whether a setting is shown for a candidate with many settings."""
    return name.rpartition(".")[2] in {"family", "form"} or value in {"stored", "fused", "held"}


def file_of(example: Example) -> Path:
    """The file with the recorded results of an example."""
    return RESULTS / f"{example.name}.json"


def main() -> None:
    """Explores the named examples, and writes the page."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    reader.add_argument("names", nargs="*", help=", ".join(e.name for e in EXAMPLES))
    reader.add_argument("--page", action="store_true", help="explore nothing")
    options = reader.parse_args()
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "liftpy"})
    for folder in (RESULTS, PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
    for example in () if options.page else EXAMPLES:
        if not options.names or example.name in options.names:
            campaign = explored(example)
            text = json.dumps(recorded(example, campaign), indent=1, ensure_ascii=False)
            file_of(example).write_text(text + "\n", encoding="utf-8")
            plot(campaign, example.axis, PICTURES / f"{example.name}.svg")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

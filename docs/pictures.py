"""Draws docs/derivation.svg: the derivation of the tutorial's dot product, step by step.

`make docs` writes it. What a step has changed is blue.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import liftpy as lp
from liftpy.language.text.program import show_expr
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategy import replay

PICTURE = Path(__file__).with_name("derivation.svg")

DOT = """
def dot(xs: [1024]f32, ys: [1024]f32) =
  zip(xs, ys) |> map(xy => xy.0 * xy.1) |> reduce(add, 0)
"""
SAID = {
    "reduce_split": "a sum is the sum of the sums of chunks",
    "split_of_map": "what is mapped and then split may be split and then mapped",
    "map_fusion": "two maps in a row are one",
    "reduce_map_fusion": "multiply while summing, without storing the products",
    "map_to_glb_0": "a work-item for each chunk",
    "reduce_to_seq": "the sum of a chunk is a loop",
    "to_global": "the sums of chunks are stored: a kernel ends here",
}
"""What each rule does here, the first time it is applied."""
LAST = "the sum of the stored sums is a loop in a second kernel"

COLUMNS = 84  # characters of a line
LINE, MARGIN, ARROW, WIDTH = 18, 12, 34, 760  # pixels
STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1d2530 }
.new { fill: #0b62c4; font-weight: bold }
.rule { font-weight: bold }
.said { font-family: system-ui, "DejaVu Sans", sans-serif; fill: #5b6673 }
rect { fill: #f4f6f8; stroke: #c9d1d9 }
path { fill: none; stroke: #5b6673 }
"""


def states() -> Iterator[tuple[str, str]]:
    """The rule of each step and the program after it; first the program as written."""
    found = skeletons_of(FAMILIES["partial"], lp.parse(DOT))
    if isinstance(found, str):
        raise TypeError(found)
    derivation = found[0].derivation
    yield "", show_expr(derivation.start, COLUMNS)
    for step, after in replay(derivation.start, derivation.steps):
        yield step.rule, show_expr(after, COLUMNS)


def with_marks(before: str, after: str) -> Iterator[str]:
    """The lines of `after`, with marks around what `before` does not have."""
    old, new = (re.findall(r"\s+|\w+|[^\w\s]+", text) for text in (before, after))
    line = ""
    for kind, _, _, start, end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        for part in re.findall(r"\n|[^\n]+", "".join(new[start:end])):
            if part == "\n":
                yield line
                line = ""
            else:
                text = escape(part, quote=False)
                marked = bool(before) and kind != "equal" and bool(text.strip())
                line += f'<tspan class="new">{text}</tspan>' if marked else text
    yield line


def drawn() -> str:
    """The picture."""
    parts: list[str] = []
    y, before, said = 1, "", dict(SAID)
    for rule, text in states():
        if rule:
            words = said.pop(rule, LAST)
            parts.append(f'<path d="M30 {y}v{ARROW - 3}m-4 -7l4 7l4 -7"/>')
            parts.append(
                f'<text x="46" y="{y + 21}"><tspan class="rule">{rule}</tspan>'
                f'<tspan class="said" dx="12">{words}</tspan></text>'
            )
            y += ARROW
        lines = list(with_marks(before, text))
        height = len(lines) * LINE + MARGIN
        parts.append(f'<rect x="1" y="{y}" width="{WIDTH - 2}" height="{height}" rx="4"/>')
        parts += (
            f'<text x="{MARGIN}" y="{y + 19 + k * LINE}" xml:space="preserve">{line}</text>'
            for k, line in enumerate(lines)
        )
        y, before = y + height, text
    size = f'width="{WIDTH}" height="{y + 1}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 1}" {size}>',
            "<title>A dot product becomes two kernels, in eight steps</title>",
            f"<style>{STYLE}</style>",
            f'<rect {size} style="fill: white; stroke: none"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")

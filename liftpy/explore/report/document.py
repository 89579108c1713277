"""HTML pages from templates, and the labels of their charts; imported only with jinja2, an extra.

A page loads nothing from a network. Its charts are SVG. A short script shows the figures of the
mark under the pointer; without the script, browsers show them as the titles of the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from liftpy.explore.report.labels import Rectangle, beside, leader
from liftpy.files.writing import write_file

HERE = "liftpy.explore.report"
LEFT = 88  # the left edge of charts; the labels of the vertical axis are to the left of it
RIGHT = 700
MARK = 7  # the radius of the mark of a labelled point, with a margin
LETTER, LINE = 14, 22  # the width of bold digits and the height of letters, on a narrow screen


def write(
    path: Path,
    template: str,
    contents: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]],
    package: str = HERE,
) -> None:
    """Writes a page; raises LiftError if the file cannot be written.

    The template is one of `package`, and may extend or import those of this one. Every text is
    escaped.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys([package, HERE])]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known: dict[str, Any] = environment.filters
    known |= filters
    text = environment.get_template(template).render(contents)
    write_file(path, text.encode(errors="replace"))


@dataclass(frozen=True)
class Label:
    """The label of the point (`x`, `y`), at `place`."""

    text: str
    x: float
    y: float
    place: Rectangle

    @property
    def anchor(self) -> str:
        """The end of the text that is nearer to the point."""
        return "start" if self.place.right > self.x else "end"

    @property
    def left(self) -> float:
        """The horizontal position of that end."""
        return self.place.left if self.anchor == "start" else self.place.right

    @property
    def baseline(self) -> float:
        """The vertical position of the text's baseline."""
        return self.place.bottom - LINE / 4

    @property
    def leader(self) -> tuple[float, float] | None:
        """The end of a line from the point to the label, if it is not next to the point."""
        return leader((self.x, self.y), self.place, MARK)


def labelled(
    points: Sequence[tuple[float, float]], texts: Sequence[str], frame: Rectangle
) -> list[Label]:
    """The labels of the points for which there is room."""
    sizes = [(LETTER * len(text), LINE) for text in texts]
    placed = zip(points, texts, beside(points, sizes, frame, MARK), strict=True)
    return [Label(text, *point, place) for point, text, place in placed if place is not None]

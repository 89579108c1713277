"""Three figures in a chart of two: bands of the third, in the page and in the plot."""

import hashlib
import io
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from liftpy.explore.measure.pareto import front, rule
from liftpy.explore.report import tables as report
from liftpy.explore.report.bands import DARK, DASHES, LIGHT, MOST, Bands
from liftpy.explore.report.plot import MARKERS, drawn
from tests.explore.test_page import campaign, row
from tests.pages import Page, check_layout, layouts

ERRORS = (0.0, 1.3e-7, 1.4e-7, 3e-6, 4e-5, 7e-4, 2e-2)


def with_error(ordinal, time_ns, peak, error):
    found = replace(row(ordinal, time_ns, peak), error=error, rms=error / 4)
    return replace(found, id=hashlib.sha256(bytes([ordinal])).hexdigest()[:12])


#: Time is traded for memory; the larger its error, the faster and smaller a candidate is.
ROWS = [
    with_error(k, 997 * (2 + k // 7) * (12 - k % 7), 3001 * (13 - k // 7) * (12 - k % 7), error)
    for k in range(70)
    for error in [ERRORS[k % 7]]
]
THREE = campaign(*ROWS)


@given(
    st.lists(
        st.one_of(st.just(0.0), st.floats(1e-300, 1e12, exclude_min=True)), min_size=1, max_size=30
    )
)
def test_a_value_is_in_the_first_band_that_holds_it(errors):
    rows = [with_error(0, 5, 7, error) for error in errors]
    bands = Bands.of(rows, "error")
    assert len(bands.bounds) <= MOST
    assert list(bands.bounds) == sorted(set(bands.bounds))
    assert {bands.index(r) for r in rows} == set(range(len(bands.bounds))), "none is empty"
    for one in rows:
        error = one.error or 0
        band = bands.index(one)
        assert error <= bands.bounds[band]
        assert band == 0 or error > bands.bounds[band - 1]
        assert bands.bounds[band] == 0 or math.frexp(bands.bounds[band])[0] == 0.5, "a power of 2"


def test_errors_of_five_powers_of_2_have_bands_of_their_own_and_0_has_another():
    rows = [with_error(k, 5, 7, 2.0**-k) for k in range(20, 25)]
    assert Bands.of(rows, "error").bounds == tuple(2.0**-k for k in range(24, 19, -1))
    more = Bands.of([*rows, with_error(1, 5, 7, 0.0)], "error")
    assert more.bounds == (0, 2.0**-24, 2.0**-22, 2.0**-20)
    assert [more.text(k) for k in (0, 1)] == ["0", "up to 6.0e-08"]
    sizes = Bands.of([row(k, 5, 3000 << k) for k in range(2)], "peak")
    assert [sizes.text(k) for k in (0, 1)] == ["up to 4.00 KiB", "up to 8.00 KiB"]


def test_the_line_of_a_band_is_the_front_of_what_is_in_it_or_in_a_lower_one():
    bands = Bands.of(ROWS, "error")
    lines = dict(bands.stairs(THREE.pareto(also="error"), "peak"))
    assert len(lines) > 3
    before = None
    for band, bound in enumerate(bands.bounds):
        within = [(r.time_ns, r.peak) for r in ROWS if (r.error or 0) <= bound]
        wanted = front(set(within), costs=lambda c: c)
        assert lines.get(band, before) == wanted
        assert (band in lines) == (wanted != before)
        before = wanted


def test_the_page_shows_the_third_figure_of_each_candidate(tmp_path):
    report.page(THREE, "peak", tmp_path / "report.html", "error")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    bands = Bands.of(ROWS, "error")
    marks = {a["data-id"]: a for a in page.found["path"] if "data-id" in a}
    assert marks.keys() == {r.id for r in ROWS}
    best = {r.id for r in THREE.pareto(also="error")}
    assert best > {r.id for r in THREE.pareto()}
    shapes = {}
    for one in ROWS:
        kind = "best" if one.id in best else "other"
        band = bands.index(one)
        assert marks[one.id]["class"] == f"mark {kind} band{band}"
        shapes.setdefault(band, set()).add(marks[one.id]["d"])
        assert re.search(rf"{one.id}\n.*, error {re.escape(f'{one.error:.1e}')}\n", page.text), (
            "hover text"
        )
    assert len(set.union(*shapes.values())) == len(bands.bounds), "a shape for each band"
    for k in range(len(bands.bounds)):
        assert f"</svg>{bands.text(k)}</li>" in text
    for said in ("Time, memory and error", rule("peak", also="error"), "rms"):
        assert said in page.text


def test_other_figures_are_axes_too(tmp_path):
    rows = [replace(r, memory=replace(r.memory, local=64 << r.ordinal % 9)) for r in ROWS]
    report.page(campaign(*rows), "error", tmp_path / "report.html", "local")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Time, error and memory" in page.text
    assert "up to 256 B" in page.text
    console = Console(width=100, file=io.StringIO())
    console.print(
        report.front_table(campaign(*rows).pareto("error", also="local"), 100, also="local")
    )
    assert "local" in console.file.getvalue().splitlines()[0]


def test_a_browser_shows_three_figures_at_both_widths(tmp_path):
    report.page(THREE, "peak", tmp_path / "report.html", "error")
    for layout in layouts(tmp_path / "report.html", tmp_path):
        check_layout(layout)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("paper", "colours"), [("#ffffff", LIGHT), ("#0d1117", DARK)])
def test_bands_are_legible_in_both_themes_and_without_colours(paper, colours):
    style = (Path(report.__file__).parent / "templates" / "base.html").read_text(encoding="utf-8")
    assert f"--paper: {paper}".replace("#ffffff", "#fff") in style
    sheet = luminance(paper)
    contrasts = [
        (max(luminance(c), sheet) + 0.05) / (min(luminance(c), sheet) + 0.05) for c in colours
    ]
    assert contrasts[-1] >= 3, "WCAG 2.1, 1.4.11: graphical objects"
    for more, less in itertools.pairwise(contrasts):
        assert more > 1.2 * less
    assert len(set(DASHES)) == len(colours) == MOST


def test_the_plot_has_a_marker_and_a_line_for_each_band():
    bands = Bands.of(ROWS, "error")
    best = THREE.pareto(also="error")
    figure = drawn(THREE, "peak", "error")
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "error"
    assert [t.get_text() for t in legend.get_texts()] == [
        bands.text(k) for k in range(len(bands.bounds))
    ]
    assert len({line.get_marker() for line in legend.get_lines()}) == len(bands.bounds)
    assert len(set(MARKERS)) == len(MARKERS)
    stepped = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert len(stepped) == len(list(bands.stairs(best, "peak")))
    front_marks = [c for c in axes.collections if c.get_zorder() == 3]
    assert sum(len(c.get_offsets()) for c in front_marks) == len(best)
    assert sum(len(c.get_offsets()) for c in axes.collections) == len(ROWS) + len(best)
    assert rule("peak", also="error") in " ".join(figure.get_supxlabel().split())

"""The report: what is in it, and that a browser shows it."""

import csv
import hashlib
import io
import itertools
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.hypervolume import Box, growth
from liftpy.explore.campaign.rows import Call, Identity, Row
from liftpy.explore.measure.outcome import KINDS
from liftpy.explore.measure.pareto import rule
from liftpy.explore.report import tables as report
from liftpy.explore.report import wording
from liftpy.explore.report.labels import Rectangle, beside, short_ids
from liftpy.explore.report.plot import drawn
from liftpy.explore.report.scale import Scale
from liftpy.opencl.kernel import MemoryFigures
from tests.pages import Page, check_layout, layouts

SETTINGS = {"search": "guided", "conditions": ["kappa*sigma <= 64", "pad is copy, fused"]}
STEP = {"rule": "split_join", "path": ["0", "1"], "sizes": {"m": "kappa"}, "hints": {}}


def row(ordinal, time_ns, peak, outcome="measured", reason="right"):
    """A stored candidate: measured, or with the reason why not."""
    memory = None if time_ns is None else MemoryFigures(peak, peak, 0, 64, 16, 0)
    settings = {"family": "direct", "kappa": 1 << ordinal % 3, "sigma": 3}
    times = None if time_ns is None else [[time_ns]]
    return Row(
        id=f"{ordinal:012x}",
        ordinal=ordinal,
        skeleton="direct",
        assignment=settings,
        derivation=[STEP],
        outcome=outcome,
        reason=reason,
        time_ns=time_ns,
        times_ns=times,
        prepare_ns=0,
        memory=memory,
        error=0.0,
        rms=0.0,
        build_seconds=0.1,
    )


CALL = Call(
    "python -m liftpy explore tiny.lift -n 20",
    {"samples": 20, "time_limit": None},
    {"liftpy": "0.1.0", "commit": "29cc4ee+", "python": "3.12.1", "libraries": {"numpy": "2.3.4"}},
    1.7e9,
)


def campaign(*rows):
    identity = Identity(
        "tiny", "def tiny(x: [3]f32) = x\n", DEFAULT_DEVICE.to_json(), "0.1.0", 7, SETTINGS
    )
    return Campaign(Path("tiny.db"), identity, rows, calls=(CALL,))


CAMPAIGNS = {
    "many": campaign(
        *(row(k, 2000 + 977 * (k % 7), 4096 << k % 5) for k in range(20)),
        *(row(k, None, None, "refused", "a work-group of <b>8</b> & more") for k in (20, 21)),
    ),
    "one": campaign(row(0, 1500, 4096)),
    "none": campaign(row(0, None, None, "crashed", "signal 11")),
    "empty": campaign(),
}


@pytest.fixture(params=CAMPAIGNS)
def some(request):
    return CAMPAIGNS[request.param]


def noisy(ordinal, times, peak):
    """A candidate with several samples, and so with an interval."""
    middle = int(statistics.median(times))
    return replace(
        row(ordinal, middle, peak),
        id=hashlib.sha256(bytes([ordinal])).hexdigest()[:12],
        times_ns=[[time] for time in times],
    )


NOISY = campaign(
    noisy(0, range(1000, 1300, 10), 9000),
    noisy(1, range(1010, 1310, 10), 9000),  # slower in the median, not clearly
    noisy(2, range(2000, 2300, 10), 9000),  # clearly slower
    *(noisy(k, range(4000 - 300 * k, 4400 - 300 * k, 10), 1000 * k) for k in range(3, 9)),
)


def written(campaign, folder):
    report.page(campaign, "peak", folder / "report.html")
    return folder / "report.html"


def test_a_page_is_whole_and_says_what_the_campaign_says(some, tmp_path):
    text = written(some, tmp_path).read_text(encoding="utf-8")
    page = Page(text)
    front = some.pareto()
    marks = [a for a in page.found.get("circle", []) if "mark" in (a["class"] or "")]
    assert len(marks) == sum(r.time_ns is not None for r in some.rows)
    assert {a["data-id"] for a in marks if "best" in (a["class"] or "")} == {r.id for r in front}
    assert {r.id for r in front} <= {a.get("id") for a in page.found.get("tr", [])}
    assert page.text.count("split_join at 0.1  m=kappa") == len(front)
    for kind, n in some.counts.items():
        assert kind in page.text, n
    assert "liftpy explore tiny.lift" in page.text
    assert "--where 'kappa*sigma <= 64' --set pad=copy,fused" in page.text
    assert some.device.name in page.text
    for said in (CALL.command, "2023-11-14 22:13:20 UTC", "29cc4ee+", "3.12.1", "2.3.4"):
        assert said in page.text
    assert ("95 %" in page.text) == bool(front)
    assert some.identity.text in page.text
    assert ("Nothing was measured" in page.text) == (not front)


def test_a_page_needs_no_network_and_trusts_no_text(tmp_path):
    text = written(CAMPAIGNS["many"], tmp_path).read_text(encoding="utf-8")
    page = Page(text)
    assert not {"link", "img", "iframe"} & page.found.keys()
    assert all("src" not in a for a in page.found["script"])
    assert "a work-group of <b>8</b> & more" in page.text, "escaped"
    assert "http" not in text


def test_page_and_plot_show_one_front_and_say_its_rule_and_its_names(tmp_path):
    front = NOISY.pareto()
    assert [r.peak for r in front].count(9000) == 2
    page = Page(written(NOISY, tmp_path).read_text(encoding="utf-8"))
    marks = {a["data-id"] for a in page.found["circle"] if "best" in (a["class"] or "")}
    assert marks == {r.id for r in front}
    assert rule("peak") in page.text
    assert f"least peak{wording.in_bytes(3000)}" in re.sub(r"\s*\n\s*", "", page.text)
    figure = drawn(NOISY, "peak")
    (axes,) = figure.axes
    *_, best = axes.collections
    assert len(best.get_offsets()) == len(front)
    assert rule("peak") in " ".join(figure.get_supxlabel().split())
    names = {text.get_text().partition(":")[0]: text for text in axes.texts}
    shown = set(short_ids(NOISY.rows).values())
    for r in front:
        assert any(r.id.startswith(name) for name in names)
    assert names.keys() <= shown
    assert names.keys() <= set(page.text.split()) | {""}
    boxes = [text.get_window_extent() for text in axes.texts]
    for a, b in itertools.combinations(boxes, 2):
        assert not a.overlaps(b)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=12),
    st.floats(1, 30),
    st.floats(1, 10),
)
def test_names_lie_on_nothing(points, width, height):
    frame = Rectangle(-10, -10, 110, 110)
    places = beside(points, [(width, height)] * len(points), frame, radius=2)
    named = [place for place in places if place is not None]
    marks = [Rectangle(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    assert len(points) != 1 or named
    assert all(frame.holds(place) for place in named)
    for place, other in itertools.combinations([*named, *marks], 2):
        assert not place.overlaps(other) or {place, other} <= {*marks}


def test_short_ids_are_as_long_as_they_must_be():
    ids = ["3f2a00000000", "3f2a01000000", "aaaa00000000"]
    rows = [replace(row(k, 1, 1), id=id_) for k, id_ in enumerate(ids)]
    assert [*short_ids(rows).values()] == ["3f2a00", "3f2a01", "aaaa"]
    assert [*short_ids(rows[:1]).values()] == ["3f2a"]


def test_every_mark_is_inside_its_frame(tmp_path):
    page = Page(written(CAMPAIGNS["many"], tmp_path).read_text(encoding="utf-8"))
    frame = next(a for a in page.found["rect"] if a.get("class") == "frame")
    x, y, width, height = (float(frame[n] or 0) for n in ("x", "y", "width", "height"))
    for mark in page.found["circle"]:
        assert x < float(mark["cx"] or 0) < x + width
        assert y < float(mark["cy"] or 0) < y + height


def test_a_browser_shows_it_on_a_wide_screen_and_on_one_of_400_pixels(tmp_path):
    for layout in layouts(written(CAMPAIGNS["many"], tmp_path), tmp_path):
        assert len(layout["labels"]) == 20
        check_layout(layout)


@pytest.mark.parametrize("values", [[1], [0, 0], [999, 1001], [1, 10**12], [4096]])
@pytest.mark.parametrize("kind", ["time", "bytes"])
def test_a_scale_holds_its_values_and_has_ticks(values, kind):
    check_scale(values, kind)


@pytest.mark.parametrize("values", [[0], [0, 0.0], [1e-7, 0], [3e-8, 2e-6], [1e-5, 1.0], [2e-7]])
def test_a_scale_of_errors_holds_its_values_and_has_ticks(values):
    check_scale(values, "error")


def check_scale(values, kind):
    scale = Scale.of(values, 10, 110, kind)
    assert all(10 < scale.at(v) < 110 for v in values)
    assert 2 <= len(scale.ticks) <= 16
    places = [place for place, _ in scale.ticks]
    assert places == sorted(set(places))
    assert len({text for _, text in scale.ticks}) == len(places)


def test_the_hypervolume_of_errors_is_that_of_their_ratios():
    tried = [(8, 8e-9), (2, 16e-9), (16, 2e-9), (2, 2e-9)]
    box = Box.around(tried, "error")
    values = growth(tried, box)
    assert values == sorted(values)
    assert values[-1] == 1.0
    scaled = [(time, error * 4) for time, error in tried]
    assert growth(scaled, Box.around(scaled, "error")) == pytest.approx(values)
    assert 0 < Box.around([(1, 0.0), (2, 0.0)], "error").volume([(2, 0.0)]) < 1


def test_the_hypervolume_grows_to_that_of_the_front():
    tried = [(8, 8), None, (2, 16), (16, 2), (9, 9), (2, 2)]
    measured = [c for c in tried if c is not None]
    box = Box.around(measured)
    values = growth(tried, box)
    assert values == sorted(values)
    assert values[0] == values[1] < values[2] < values[3] == values[4] < values[5] == 1.0
    assert values[3] == pytest.approx(box.volume(measured[:3]))


def test_of_several_devices_each_has_charts_of_its_own(tmp_path):
    fpga = replace(DEFAULT_DEVICE, name="fpga")
    near = [replace(row(k, 2000 + k, 4096 << k), device=DEFAULT_DEVICE.fingerprint) for k in (0, 2)]
    far = [
        replace(row(k, 7_000_000_000 + k, 4096 << k), device=fpga.fingerprint) for k in (1, 3, 4)
    ]
    both = campaign(*sorted([*near, *far], key=lambda r: r.ordinal))
    devices = [DEFAULT_DEVICE.to_json(), fpga.to_json()]
    identity = replace(both.identity, settings=SETTINGS | {"devices": devices})
    text = written(replace(both, identity=identity), tmp_path).read_text(encoding="utf-8")
    page = Page(text)
    assert "best time" in page.text
    for device in (DEFAULT_DEVICE, fpga):
        assert f"Time and memory on {device.label}" in page.text
        assert f"Parameters on {device.label}" in page.text
    assert "--workers tcp://HOST:8786 --expect 2 --mixed" in page.text
    charts = re.findall(r'<section id="front1?">.*?</section>', text, re.DOTALL)
    for chart, mine in zip(charts, (near, far), strict=True):
        assert set(re.findall(r'data-id="(\w+)"', chart)) == {r.id for r in mine}
        scale = Scale.of([r.time_ns or 0 for r in mine], 70, 700, "time")
        shown = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle">([^<]*)</text>', chart)
        assert {text for _, text in scale.ticks} <= {text for _, text in shown}
        assert f"time, {scale.unit}" in chart


def test_every_outcome_is_readable_in_80_columns_and_disturbed_times_are_counted(tmp_path):
    odd = [row(k, None, None, kind, "a reason " * 30) for k, kind in enumerate(KINDS[1:], 1)]
    found = campaign(replace(row(0, 1500, 4096), disturbed=True), *odd)
    console = Console(width=80, file=io.StringIO())
    console.print(report.candidates_table(found))
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    for one in found.rows:
        assert any(line.split()[:2] == [one.id, one.outcome] for line in lines)
    assert wording.outcomes_text(found).endswith("1 defect; 1 of 1 disturbed")
    assert [one["disturbed"] for one in report.candidates_json(found)] == [True] + [False] * len(
        odd
    )
    assert "1 of 1 disturbed" in Page(written(found, tmp_path).read_text(encoding="utf-8")).text
    console.print(report.front_table(found.pareto(), 80))
    assert re.search(r"disturbed.*\n.*\byes\b", console.file.getvalue())
    assert [one["disturbed"] for one in report.front_json(found, found.pareto())["front"]] == [True]
    (line,) = csv.DictReader(report.front_csv(found, found.pareto()).splitlines())
    assert line["disturbed"] == "1"

"""The page of a profile: a row and a mark for each operation, and the roofs of the device."""

import math
import re
from dataclasses import replace

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import LiftError
from liftpy.networks import profile_page
from liftpy.networks.profiling import OperationTime, Peak, Profile
from liftpy.networks.running import Times
from tests.pages import Page, check_layout, layouts

PEAK = Peak(166.0, 20.0, "assumed: usual for <a> processor", "assumed: a guess")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def operation(name, time_ns, flops, size=7000, operator="Conv+Relu"):
    return OperationTime(name, operator, time_ns, 0.0, time_ns + 3, size, flops, 2 * size)


def profile(*rows):
    total = sum(row.time_ns for row in rows)
    rows = tuple(replace(row, share=row.time_ns / max(1, total)) for row in rows)
    return Profile(rows, total, total + 11, total + 3 * len(rows), PEAK, Times({}, 0))


FEW = profile(
    operation("conv1", 900_000, 83_000_000, 4_000_000),
    operation("pool1", 350_000, 500_000, 3_500_000, "MaxPool"),
    operation("join", 70_000, 0, 2_900_000, "Concat"),
    operation("fc", 410_000, 8_000_000, 16_400_000, "Gemm"),
)
MANY = profile(*(operation(f"stage{k}/unit{k}", 1000 * k, 977 * k * k) for k in range(1, 60)))


def written(found, folder, network="small"):
    profile_page.write(found, network, DEFAULT_DEVICE, folder / "profile.html")
    return folder / "profile.html"


def test_each_operation_is_a_row_and_a_named_mark_below_the_roofs(tmp_path):
    text = written(FEW, tmp_path).read_text(encoding="utf-8")
    page = Page(text)
    rows = [a["id"] for a in page.found["tr"] if a.get("id")]
    assert rows == [f"operation{k}" for k in (1, 2, 3, 4)]
    marks = {a["data-id"]: a for a in page.found["circle"]}
    assert marks.keys() == {"operation1", "operation2", "operation4"}
    assert "Without arithmetic, and so not in the chart: join." in page.text
    labels = re.findall(r'<text class="label"[^>]*>([^<]*)</text>', text)
    assert sorted(labels) == ["conv1", "fc", "pool1"]
    first = page.text[page.text.index("operations with kernels") :]
    assert "1.730 ms" in first
    for said in ("900.000 us", "52.0 %", "20.8", "arithmetic", "assumed: a guess", "<a> processor"):
        assert said in page.text, said


def test_marks_and_roofs_are_where_the_figures_say():
    chart = profile_page.roofline(FEW)
    assert chart is not None
    ends = re.fullmatch(r"M([\d.]+),([\d.]+)L([\d.]+),([\d.]+)", chart.memory)
    assert ends is not None
    left, low, ridge, top = map(float, ends.groups())
    assert chart.arithmetic == f"M{ridge},{top}H{chart.x.end}"
    assert ridge == chart.x.at(166 / 20)
    assert top == chart.y.at(166)
    for mark in chart.marks:
        assert chart.x.start < mark.x < chart.x.end
        assert chart.y.end < mark.y < chart.y.start
        # On logarithmic axes, the height of a mark below the roof above it is its part of the peak.
        roof = top if mark.x >= ridge else low + (mark.x - left) / (ridge - left) * (top - low)
        decades = math.log10(chart.y.high / chart.y.low)
        below = 10 ** -((mark.y - roof) / (chart.y.start - chart.y.end) * decades)
        assert below == pytest.approx(mark.row.of_peak(PEAK), rel=1e-3)


def test_the_roof_of_an_operation_is_the_peak_that_takes_longest():
    conv, pool, join, fc = FEW.rows
    assert [row.roof(PEAK) for row in (conv, pool, join, fc)] == ["arithmetic", *["memory"] * 3]
    for row in FEW.rows:
        least = {"memory": row.bytes / PEAK.bytes, "arithmetic": row.flops / PEAK.flops}
        assert row.roof(PEAK) == max(least, key=least.__getitem__)
    assert FEW.of_peak == pytest.approx(sum(r.least_ns(PEAK) for r in FEW.rows) / 1_730_000)


def test_where_names_have_no_room_marks_have_the_numbers_of_rows(tmp_path):
    chart = profile_page.roofline(MANY)
    assert chart is not None
    assert chart.numbered
    assert len(chart.labels) > 40
    assert {label.text for label in chart.labels} <= {str(k) for k in range(1, 60)}
    page = Page(written(MANY, tmp_path).read_text(encoding="utf-8"))
    assert "Marks are labelled with the numbers of their rows" in page.text
    if chart.unlabelled:
        assert f"{chart.unlabelled} of 59 have no room for a label" in page.text


@pytest.mark.parametrize("rows", [(), (operation("join", 0, 0),)])
def test_without_arithmetic_there_is_no_chart(rows, tmp_path):
    page = Page(written(profile(*rows), tmp_path).read_text(encoding="utf-8"))
    assert "No operation has arithmetic." in page.text
    assert "svg" not in page.found


def test_names_of_a_model_are_text_and_the_page_needs_no_network(tmp_path):
    hostile = profile(
        operation(HOSTILE, 100, 900, operator=f"Custom{HOSTILE}"), operation(HOSTILE, 100, 0)
    )
    text = written(hostile, tmp_path, HOSTILE).read_text(encoding="utf-8")
    page = Page(text)
    assert not {"link", "img", "iframe"} & page.found.keys()
    assert page.found["script"] == [{}]
    assert page.text.count(HOSTILE) >= 6
    assert "http" not in text


def test_a_browser_shows_it_on_a_wide_screen_and_on_one_of_400_pixels(tmp_path):
    names = ["/features/features.0/conv/Conv_output", "with <b>marks</b> & more", "c"]
    odd = [operation(n * 3, 10**k, 3 * 10**k, 11**k) for k, n in enumerate(names, 3)]
    found = profile(*FEW.rows, *odd, *MANY.rows)
    for layout in layouts(written(found, tmp_path), tmp_path):
        assert len(layout["labels"]) == 3 + 3 + 59
        check_layout(layout)


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(LiftError, match="cannot be written"):
        written(FEW, tmp_path / "none")

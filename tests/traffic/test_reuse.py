"""Traffic of loop nests: against a simulated cache, and against the formulas of slicing."""

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liftpy.opencl.devices import find_device
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.nest import Access, Axis, Derived, Loop, accesses_in
from liftpy.traffic.reuse import Reuse, Traffic, by_array
from liftpy.traffic.slicing import tiling
from liftpy.traffic.slicing_cost import lines
from liftpy.workloads.networks import square
from tests.traffic.lru import fetched

LINE = 64


def value(digit, at):
    if isinstance(digit, Axis):
        return at.get(digit.name, 0)
    whole = sum(part.stride * value(part, at) for part in digit.parts)
    return {"quotient": whole // digit.divisor, "remainder": whole % digit.divisor}[digit.kind]


def touched(nest, at=()):
    """The lines that a nest touches, in order, each with its array."""
    at = dict(at)
    for part in nest:
        if isinstance(part, Loop):
            for k in range(part.trips):
                yield from touched(part.body, at | {part.axis: k})
            continue
        base = sum(digit.stride * value(digit, at) for digit in part.digits)
        for offset in part.offsets:
            first = base + offset
            for line in range(first // LINE, (first + part.width - 1) // LINE + 1):
                yield part.array, line


def simulated(nest, room):
    """The lines that each array fetches into a cache."""
    return fetched(touched(nest), room, LINE)


def axis(name, trips, stride):
    return Axis(name, trips, stride)


def matmul(rows, columns, depth, order="ijk"):
    """A matrix product of f32, one element at a time."""
    trips = dict(zip("ijk", (rows, columns, depth), strict=True))
    a = Access("a", (axis("i", rows, 4 * depth), axis("k", depth, 4)), 4)
    b = Access("b", (axis("k", depth, 4 * columns), axis("j", columns, 4)), 4)
    c = Access("c", (axis("i", rows, 4 * columns), axis("j", columns, 4)), 4, stores=True)
    body = (a, b, c)
    for name in reversed(order):
        body = (Loop(name, trips[name], body),)
    return body


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ["ijk", "ikj", "jik", "jki", "kij", "kji"])
@pytest.mark.parametrize("room", [256, 3000, 1 << 20])
def test_matrix_products_fetch_what_a_cache_fetches(order, room):
    nest = matmul(16, 32, 32, order)
    assert Reuse(nest, LINE).fetched(room) == simulated(nest, room)


def windows(rows, columns, channels, taps, step=1):
    """A filter over an image: rows, columns, then the elements of a window."""
    pitch = 4 * channels * (step * columns + taps)
    image = Access(
        "image",
        (
            axis("h", rows, step * pitch),
            axis("kh", taps, pitch),
            axis("w", columns, 4 * step * channels),
            axis("kw", taps, 4 * channels),
            axis("c", channels, 4),
        ),
        4,
    )
    weights = Access(
        "weights",
        (
            axis("kh", taps, 4 * taps * channels),
            axis("kw", taps, 4 * channels),
            axis("c", channels, 4),
        ),
        4,
    )
    body = (image, weights)
    for name, trips in (("c", channels), ("kw", taps), ("kh", taps), ("w", columns), ("h", rows)):
        body = (Loop(name, trips, body),)
    return body


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("room", [3 << 10, 16 << 10, 1 << 20])
def test_windows_overlap(room, step):
    nest = windows(12, 12, 16, 3, step)
    known, seen = Reuse(nest, LINE).fetched(room), simulated(nest, room)
    for array, count in seen.items():
        assert known[array] == pytest.approx(count, rel=0.35), (known, seen)


def test_an_index_that_is_divided():
    """Work-items of one dimension that decode rows and columns."""
    decoded = (
        Derived("quotient", (axis("g", 112, 1),), 14, 4096),
        Derived("remainder", (axis("g", 112, 1),), 14, 64),
    )
    nest = (Loop("g", 112, (Access("a", decoded, 64),)),)
    assert Reuse(nest, LINE).fetched(1 << 20) == simulated(nest, 1 << 20) == {"a": 112}
    assert Access("a", decoded, 4).lines({"g"}, LINE) == 112


def decoded(group, units, places, row, pixel, pitch):
    """An access of `pixel` bytes at the row and the column that an id numbers, and its axes."""
    axes = axis("lid", group, 1), axis("unit", units, group), axis("place", places, group * units)
    digits = Derived("quotient", axes, row, pitch), Derived("remainder", axes, row, pixel)
    return Access("a", digits, min(pixel, LINE)), axes


def lines_one_by_one(access, axes, varying):
    varied = (range(a.trips) if a.name in varying else (0,) for a in axes)
    found = set()
    for counters in product(*varied):
        at = dict(zip((a.name for a in axes), counters, strict=True))
        first = sum(digit.stride * value(digit, at) for digit in access.digits)
        found |= set(range(first // LINE, (first + access.width - 1) // LINE + 1))
    return len(found)


def test_a_unit_of_a_gpu_has_every_nth_group():
    """The six groups of a unit compute six tiles of an image: not all that lie between them."""
    tiles, axes = decoded(1, 132, 6, 28, 2048, 229376)
    for varying in ({"place"}, {"unit"}, {"unit", "place"}):
        wanted = lines_one_by_one(tiles, axes, varying)
        assert wanted == math.prod(a.trips for a in axes if a.name in varying)
        assert wanted <= tiles.lines(varying, LINE) <= 1.1 * wanted


@given(
    st.sampled_from([1, 4, 16]),
    st.integers(2, 40),
    st.integers(2, 8),
    st.integers(2, 60),
    st.sampled_from([4, 16, 64, 256]),
    st.sampled_from([0, 48, 16384]),
    st.sampled_from(["place", "lid place", "lid unit", "lid unit place"]),
)
@settings(max_examples=100, deadline=None)
def test_the_lines_of_an_id_that_is_decoded_are_about_those_of_its_values(
    group, units, places, row, pixel, gap, varying
):
    access, axes = decoded(group, units, places, row, pixel, row * pixel + gap)
    wanted = lines_one_by_one(access, axes, set(varying.split()))
    assert wanted / 4 <= access.lines(set(varying.split()), LINE) <= 6 * wanted


def test_an_index_of_which_only_the_axes_are_known_has_a_value_for_each_combination():
    data = Derived("any", (axis("i", 3, 1), axis("j", 4, 1)), stride=4096)
    assert Access("a", (data,), 4).lines({"i", "j"}, LINE) == 12
    assert Access("a", (data,), 4).lines({"j"}, LINE) == 4


def test_offsets_of_unrolled_accesses():
    """An unrolled loop is as many accesses at constant offsets."""
    rolled = Access("a", (axis("k", 8, 4), axis("r", 3, 4096)), 4)
    offsets = tuple(4 * k + 4096 * r for k in range(8) for r in range(3))
    assert rolled.lines({"k", "r"}, LINE) == 3
    assert Access("a", (), 4, offsets).lines(set(), LINE) == 3


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_everything_fits_or_nothing_does(data):
    """A cache with room for all data fetches each line once; one for a line, each iteration's."""
    trips = {name: data.draw(st.integers(1, 5), name) for name in "xyz"}
    arrays = []
    for array in "ab":
        stride = LINE
        digits = []
        for name in data.draw(st.permutations("xyz")):
            if data.draw(st.booleans()):
                digits.append(axis(name, trips[name], stride))
                stride *= trips[name]
        arrays.append(Access(array, tuple(digits), LINE))
    body = tuple(arrays)
    for name in "zyx":
        body = (Loop(name, trips[name], body),)
    for room in (LINE, 1 << 20):
        assert Reuse(body, LINE).fetched(room) == simulated(body, room)


HARDWARE = hardware_of(find_device("profile:power10"))


def sliced(found, order):
    """The loop nest of slicing with one access for each tile, in units of whole groups."""
    outer, inner = found.groups
    tile = {"stationary": found.stationary_bytes, "moving": found.moving_bytes}
    k2, k3 = found.k2, found.k3
    sizes = {"IG": outer, "FG": inner, "i": k3, "f": k2}
    stationary = Access(
        "stationary",
        (axis("IG", outer, k3 * tile["stationary"]), axis("i", k3, tile["stationary"])),
        tile["stationary"],
    )
    moving = Access(
        "moving",
        (axis("FG", inner, k2 * tile["moving"]), axis("f", k2, tile["moving"])),
        tile["moving"],
    )
    out = Access(
        "out",
        tuple(
            axis(name, sizes[name], factor * found.out_bytes)
            for name, factor in (("f", 1), ("FG", k2), ("i", k2 * inner), ("IG", k2 * inner * k3))
        ),
        found.out_bytes,
    )
    body = (stationary, moving, out)
    for name in ("f", "i", "FG", "IG"):
        body = (Loop(name, sizes[name], body),)
    return body


@pytest.mark.parametrize("order", ["IS", "WS"])
@pytest.mark.parametrize(
    "layer",
    [square(256, 56, 256), square(64, 224, 64), square(64, 56, 256, 1), square(512, 28, 512)],
    ids=str,
)
def test_a_nest_has_the_traffic_of_the_exact_formulas(layer, order):
    """Derived from the nest alone, if the caches hold what the analysis says and no more."""
    base = tiling(layer, HARDWARE, order)
    # Whole groups: the analysis rounds the last group up.
    found = replace(
        base, sets=1, stationary=base.k3 * base.groups[0], moving=base.k2 * base.groups[1]
    )
    tight = tightened(found)
    known = by_array(sliced(found, order), tight)
    exact = lines(found, tight.cache_line, "exact")
    both = known["stationary"] + known["moving"]
    assert both.served == (exact.second, exact.third, exact.memory)


def tightened(found):
    """Caches with exactly the room that the conditions on K2 and K3 ask for."""
    out = found.out_bytes
    rooms = (
        found.stationary_bytes + found.moving_bytes + out,
        found.stationary_bytes + found.k2 * (found.moving_bytes + out),
        found.k3 * found.stationary_bytes
        + found.k2 * found.moving_bytes
        + found.k2 * found.k3 * out,
    )
    return replace(HARDWARE, cache_sizes=rooms, headroom=(1, 1, 1))


def test_stores_are_written_back():
    nest = matmul(32, 48, 64)
    known = by_array(nest, HARDWARE)
    fetched = {array: traffic.served for array, traffic in known.items()}
    cold = {"a": 32 * 64 * 4 // 128, "b": 64 * 48 * 4 // 128, "c": 32 * 48 * 4 // 128}
    assert {array: served[-1] for array, served in fetched.items()} == cold
    assert [known[array].stored for array in "abc"] == [0, 0, cold["c"]]
    streamed = Access("c", (axis("i", 9, 128),), 128, stores=True, nontemporal=True)
    past = by_array((Loop("i", 9, (streamed,)),), HARDWARE)["c"]
    assert past == Traffic((0, 0, 0), 9)
    assert [*accesses_in((Loop("i", 9, (streamed,)),))] == [streamed]


def test_only_the_sectors_that_are_touched_are_fetched():
    """Eight rows, 4 KiB apart: a sector of each fits where a line of each takes room."""
    column = Access("a", (axis("i", 8, 4096), axis("k", 4, 4)), 4)
    nest = (Loop("t", 3, (Loop("k", 4, (Loop("i", 8, (column,)),)),)),)
    whole, parts = Reuse(nest, 128), Reuse(nest, 128, sector=32)
    assert (whole.fetched(1024), parts.fetched(1024)) == ({"a": 8}, {"a": 8})
    assert whole.fetched(512) == parts.fetched(512) == {"a": 3 * 4 * 8}  # eight lines do not fit
    wide = (Loop("i", 8, (replace(column, width=64),)),)
    assert Reuse(wide, 128).fetched(1024) == {"a": 8}
    assert Reuse(wide, 128, sector=32).fetched(1024) == {"a": 2 * 8}

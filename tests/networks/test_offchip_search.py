"""e-PlaNNer's formulas, search and policies, against walks, exhaustive searches and its figures."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import liftpy as lp
from liftpy.networks.offchip.hardware import Accelerator, accelerator, fits
from liftpy.networks.offchip.meaning import NoNest, nest_of
from liftpy.networks.offchip.nest import WORD, trips_of
from liftpy.networks.offchip.planning import plan_traffic, published_layers
from liftpy.networks.offchip.policies import planned
from liftpy.networks.offchip.search import BOUNDED, PUBLISHED, Schedule, search
from liftpy.networks.offchip.traffic import (
    exact_traffic,
    performance,
    reloads,
    traffic,
    utilization,
)
from liftpy.workloads.convolution import Convolution, convolution


def layer(*sizes, kernel=3, stride=1, pad=1, **more):
    """The nest of a convolution: channels, height, width, kernels."""
    made = Convolution(
        *sizes, (kernel, kernel), (stride, stride), (pad,) * 4, layout="nchw", **more
    )
    return nest_of(convolution(made, "layer")).nest


ORACLE = layer(128, 56, 56, 256)
"""The layer whose plans the digest of the thesis computed: its arrays have 5.72 MiB."""


def chip(name="setup-a", pe=16):
    return accelerator(name).model_copy(update={"pe_len": [pe, pe]})


class Small(Accelerator):
    """An accelerator whose memories are less than 1 KB."""

    room: tuple[int, int, int]

    @property
    def capacities(self):
        return self.room


def small(*room, pe=(2, 2)):
    sample = accelerator("sample").model_dump() | {"pe_len": list(pe)}
    return Small(**sample, room=tuple(WORD * n for n in room))


def walked(nest, order, trips):
    """How often each array's part changes, counted iteration by iteration."""
    names = [n for n in order if trips[n] > 1]
    counts, last = [0, 0, 0], [None] * 3
    for at in itertools.product(*(range(trips[n]) for n in names)):
        now = dict(zip(names, at, strict=True))
        for k, array in enumerate(nest.arrays):
            part = [now.get(n) for n in sorted(nest.places(array))]
            counts[k] += part != last[k]
            last[k] = part
    return counts


@pytest.mark.parametrize("seed", range(8))
def test_the_formulas_count_what_a_walk_counts(seed):
    rng = random.Random(seed)
    nest = ORACLE if seed % 2 else layer(8, 9, 9, 12, groups=2)
    names = [n for n in nest.extents if n not in nest.windows]
    order = rng.sample(names, len(names))
    trips = dict.fromkeys(nest.extents, 1) | {n: rng.choice((1, 2, 3, 5)) for n in names}
    data, weight, result = reloads(nest, order, trips)
    counted = walked(nest, order, trips)
    once = [int(np.prod([trips[n] for n in nest.places(array)])) for array in nest.arrays]
    assert [data * once[0], weight * once[1]] == counted[:2]
    assert (result + 1) // 2 * once[2] == counted[2]


@pytest.mark.parametrize(
    ("order", "trips", "found"),
    [
        ("OH IC OC", (5, 2, 4), (1, 4, 3)),
        ("OC IC OH", (5, 2, 4), (5, 1, 3)),
        ("OC OH IC", (5, 2, 4), (5, 4, 1)),
        ("OC OH IC", (5, 1, 4), (5, 1, 1)),  # a loop of one trip is no innermost loop
    ],
)
def test_reloads_of_the_three_dataflows(order, trips, found):
    known = dict.fromkeys(ORACLE.extents, 1) | dict(zip(("OC", "IC", "OH"), trips, strict=True))
    assert tuple(map(int, reloads(ORACLE, order.split(), known))) == found


def test_the_parts_of_a_divided_window_repeat_inputs_and_sums():
    trips = dict.fromkeys(ORACLE.extents, 1) | {"OC": 5, "KH": 3, "OH": 4, "IC": 2}
    assert tuple(map(int, reloads(ORACLE, ("OH", "KH", "OC", "IC"), trips))) == (15, 4, 5)
    assert int(reloads(ORACLE, ("OC", "OH", "IC", "KH"), trips)[2]) == 1


@pytest.mark.parametrize(
    ("setup", "bytes_moved", "flow"),
    [("a", 13_926_400, "output"), ("b", 9_535_488, "input"), ("d", 9_207_808, "weight")],
)
def test_the_optimum_of_one_layer(setup, bytes_moved, flow):
    found = search(ORACLE, chip(f"setup-{setup}"), rules=BOUNDED)
    assert found.traffic == bytes_moved
    assert found.schedule.flow(ORACLE) == flow
    assert found.traffic == traffic(ORACLE, found.schedule.order, found.schedule.tiles)


def test_the_tiles_that_the_digest_names_have_its_traffic():
    """With 32 x 32 elements it names 15958016 bytes; tiles of 32, 96, 12 fit and move fewer."""
    whole = dict(ORACLE.extents)
    for tiles, order, moved in (
        ((16, 96, 12), "OH OC IC", 13_926_400),
        ((64, 32, 16), "OH IC OC", 15_958_016),
        ((65, 56, 16), "OH IC OC", 15_958_016),
        ((65, 56, 16), "OC OH IC", 15_958_016),
    ):
        sizes = whole | dict(zip(("IC", "OC", "OH"), tiles, strict=True))
        assert fits(ORACLE, sizes, chip().capacities)
        assert traffic(ORACLE, order.split(), sizes) == moved
    found = search(ORACLE, chip(pe=32), rules=BOUNDED)
    assert found.traffic == 13_926_400
    assert min(found.schedule.tiles[n] for n in ("IC", "OC")) >= 32


def test_the_share_of_elements_at_work():
    sizes = dict(ORACLE.extents) | {"IC": 65, "OC": 56}
    assert utilization(ORACLE, chip(pe=32), sizes) == pytest.approx(65 * 56 / (3 * 2 * 1024))
    assert utilization(ORACLE, chip(pe=32), sizes | {"IC": 64, "OC": 32}) == 1
    found = performance(ORACLE, chip(pe=32), sizes | {"IC": 64, "OC": 32}, ORACLE.bytes)
    assert found.compute == pytest.approx(1.02 * 1024)
    assert found.memory == pytest.approx(60 * ORACLE.products / ORACLE.bytes)
    assert found.rate == found.compute


def test_several_loops_of_one_side_divide_it():
    mapped = chip().model_copy(update={"pe_len": [8, 6], "pe_mapping": [["IC", "KH"], ["OW"]]})
    nest = layer(3, 9, 5, 4)
    assert mapped.parallel(nest) == dict.fromkeys(nest.extents, 1) | {"IC": 3, "KH": 2, "OW": 5}


def every_traffic(nest, machine, whole):
    """The traffic of every tiling that fits, in every order."""
    names = list(nest.extents)
    ranges = ([nest.extents[n]] if n in whole else range(1, nest.extents[n] + 1) for n in names)
    for sizes in itertools.product(*ranges):
        tiles = dict(zip(names, sizes, strict=True))
        if fits(nest, tiles, machine.capacities):
            for order in itertools.permutations(
                n for n, t in trips_of(nest, tiles).items() if t > 1
            ):
                yield int(traffic(nest, order, tiles))


@pytest.mark.parametrize(
    ("nest", "room"),
    [
        (layer(5, 4, 3, 3, kernel=1, pad=0), (20, 6, 9)),
        (layer(3, 5, 2, 5, kernel=1, pad=0, stride=2), (7, 9, 6)),
        (layer(2, 4, 2, 3, kernel=2, pad=0), (10, 9, 5)),
        (layer(2, 3, 2, 3, pad=1), (7, 18, 4)),
        (layer(11, 1, 1, 7, kernel=1, pad=0), (5, 17, 3)),
    ],
)
def test_the_search_keeps_the_optimum_of_all_tilings_and_orders(nest, room):
    """Also of tilings that divide windows; that of tilings which divide rows, if these may be."""
    machine = small(*room)
    found = search(nest, machine, rules=("window", "trips"))
    assert found.traffic == min(every_traffic(nest, machine, ()))
    assert found.traffic > nest.bytes, "everything fits: any search would do"


def test_whole_rows_may_cost_traffic():
    nest, machine = layer(5, 4, 3, 3, kernel=1, pad=0), small(20, 6, 9)
    assert search(nest, machine).traffic == 624
    assert search(nest, machine, rules=("window", "trips")).traffic == 564


@pytest.mark.parametrize("seed", range(6))
def test_no_exact_rule_removes_the_optimum_that_the_others_leave(seed):
    rng = random.Random(seed)
    nest = layer(*(rng.randint(3, 9) for _ in range(4)), kernel=rng.choice((1, 3)))
    machine = small(*(rng.randint(60, 200) for _ in range(3)))
    found = search(nest, machine)
    every = [*every_traffic(nest, machine, nest.windows | nest.contiguous)]
    assert (found and found.traffic) == (min(every) if every else None)


def test_each_rule_counts_what_it_removes():
    nest, machine = layer(5, 7, 3, 4), small(60, 90, 30)
    found = search(nest, machine, rules=BOUNDED)
    removed = {one.rule: one.count for one in found.removed}
    every = 720 * 7 * 3 * 4 * 5 * 3 * 3
    assert found.candidates == every
    assert removed["window"] == every - every // 9
    assert removed["contiguous"] == every // 9 - every // 27
    assert removed["parallel"] == every // 27 - 720 * 7 * 3 * 4
    assert [*removed] == ["window", "contiguous", "parallel", "trips", "memory", "order"]
    assert found.candidates - sum(removed.values()) == found.compared > 0


def test_more_than_99_percent_are_removed_and_the_heuristic_may_lose_the_optimum():
    found, published = (search(ORACLE, chip(), rules=r) for r in (BOUNDED, PUBLISHED))
    assert found.compared / found.candidates < 1e-6
    assert published.compared < found.compared
    assert published.traffic > 1.5 * found.traffic


def test_the_metric_prefers_a_full_array():
    slow = chip(pe=16).model_copy(update={"frequency": 0.01})
    nest = layer(33, 20, 20, 35)
    by_metric, by_traffic = (search(nest, slow, o) for o in ("metric", "traffic"))
    rates = [
        performance(nest, slow, found.schedule.tiles, found.traffic).rate
        for found in (by_metric, by_traffic)
    ]
    assert by_metric.traffic >= by_traffic.traffic
    assert rates[0] / by_metric.traffic >= rates[1] / by_traffic.traffic


@pytest.mark.parametrize(
    ("name", "count", "distinct", "size", "products"),
    [
        ("vgg16", 16, 12, 527.741, 14.408),
        ("resnet50", 50, 21, 86.723, 4.536),
        ("alexnet", 8, 8, 237.914, 1.057),
        ("squeezenet", 26, 18, 4.698, 0.325),
        ("yolov2", 23, 14, 194.328, 13.720),
    ],
)
def test_the_networks_have_the_published_sizes(name, count, distinct, size, products):
    found = published_layers(name)
    nests = [one.nest for one in found.layers]
    assert (len(nests), len(found.distinct)) == (count, distinct)
    assert sum(n.weight.bytes for n in nests) / 2**20 == pytest.approx(size, abs=5e-4)
    assert sum(n.products for n in nests) / 2**30 == pytest.approx(products, abs=5e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "totals"),
    [
        ("alexnet", (243, 243, 245, 366, 242)),
        ("squeezenet", (22, 22, 23, 45, 21)),
        ("yolov2", (330, 339, 1285, 2787, 290)),
    ],
)
def test_policies_move_what_the_reconstruction_of_the_thesis_says(name, totals):
    """In MiB on setup A, as benchmarks/offchip.py prints for all networks and setups."""
    found = published_layers(name)
    plans = [plan_traffic(found, chip(), p) for p in ("best", "zhang", "ma", "smart-shuttle")]
    moved = [plan.traffic for plan in plans]
    assert tuple(round(n / 2**20) for n in (*moved, plans[0].ideal)) == totals
    for nest in found.distinct:
        assert all(plans[0].traffic_of(nest) <= other.traffic_of(nest) for other in plans)


def test_smart_shuttle_keeps_weights_from_the_seventh_layer_of_vgg16_on():
    flows = [
        planned(n, chip(), "smart-shuttle").schedule.stationary
        for n in published_layers("vgg16").distinct
    ]
    assert flows == ["OUTPUT"] * 6 + ["WEIGHT"] * 6


def test_a_policy_may_have_no_plan():
    assert planned(layer(9, 5, 5, 4), small(90, 40, 40), "ma") is None
    assert planned(layer(9, 5, 5, 4), small(90, 40, 40)) is not None


# --- nests of programs ----------------------------------------------------------------------------


def test_a_nest_has_the_usual_names_of_its_loops():
    assert str(layer(6, 9, 11, 8, stride=2, groups=2)) == (
        "G=2 OH=5 OW=6 OC=4 IC=3 KH=3 KW=3: 6480 products"
    )
    assert str(nest_of(lp.workload("matmul/3x5x7")).nest) == "OH=3 OC=7 IC=5: 105 products"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(x: [4]f32) = x |> map(x => max(x, 0))", "it computes `max`"),
        ("def f(x: [4][3]f32) = x |> map(r => r |> reduce(add, 0))", "not one sum of products"),
        (
            "def f(x: [4][3]f32) = x |> map(r => zip(r, r) |> map(mul) |> reduce(add, 0))",
            "both factors are elements of one array",
        ),
        (
            (
                "def f(x: [4][3]f64, y: [3]f64) ="
                " x |> map(r => zip(r, y) |> map(mul) |> reduce(add, 0))"
            ),
            "not of f32",
        ),
        (
            (
                "def f(x: [4][3]f32, y: [3]f32) = "
                "x |> map(r => zip(r, y) |> map(mul) |> reduce((a, b) => max(a, b), 0))"
            ),
            "it computes `max`",
        ),
    ],
)
def test_other_programs_are_no_nests(text, why):
    with pytest.raises(NoNest, match=why):
        nest_of(lp.parse(text))


def test_a_schedule_of_one_tile_moves_each_array_once():
    whole = Schedule(dict(ORACLE.extents), tuple(ORACLE.extents))
    assert exact_traffic(ORACLE, whole.order, whole.tiles) == ORACLE.bytes
    assert whole.flow(ORACLE) == "all"
    assert replace(whole, stationary="OUTPUT").flow(ORACLE) == "output"

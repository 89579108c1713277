"""Convolution slicing: the published examples, its cost in both forms, and a count tile by tile."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from liftpy.opencl.devices import find_device
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.slicing import Bound, bisect, exact, halve, tiling
from liftpy.traffic.slicing_cost import cost, lines, slicing
from liftpy.workloads.convolution import Convolution
from liftpy.workloads.model_zoo import MODEL_ZOO, squeezenet11
from liftpy.workloads.networks import square
from tests.traffic.tiles import served

X86, P10 = (hardware_of(find_device(f"profile:{name}")) for name in ("xeon-silver-4208", "power10"))
LAYERS = [layer for layers in MODEL_ZOO.values() for layer in layers]

# Layer, machine, N_c, tiles of the input, tiles of the filters, order, K2, K3, costs of IS and WS.
EXAMPLES = [
    ((3, 224, 64, 3), X86, 3, 3136, 3, "WS", 196, 3, "22.29e6", "19.42e6"),
    ((3, 224, 64, 3), P10, 3, 3136, 8, "IS", 8, 392, "10.85e6", "12.65e6"),
    ((64, 224, 64, 3), X86, 16, 3136, 3, "WS", 49, 3, "475.5e6", "420.5e6"),
    ((64, 224, 64, 3), P10, 32, 3136, 8, "IS", 8, 98, "231.4e6", "273.0e6"),
    ((256, 56, 256, 3), X86, 16, 196, 11, "WS", 49, 11, "201.7e6", "166.8e6"),
    ((256, 56, 256, 3), P10, 32, 196, 32, "IS", 32, 98, "99.2e6", "149.6e6"),
    ((512, 28, 512, 3), X86, 16, 49, 22, "WS", 49, 22, "177.8e6", "142.0e6"),
    ((512, 14, 512, 3), P10, 32, 13, 64, "IS", 64, 13, "33.1e6", "47.2e6"),
    ((64, 56, 64, 1), X86, 64, 196, 3, "WS", 98, 3, "3.353e6", "2.932e6"),
    ((1024, 14, 256, 1), P10, 256, 13, 32, "IS", 32, 13, "4.346e6", "5.858e6"),
]


def rounded_as(value: Fraction, text: str) -> bool:
    """Whether a number is the one that was printed with these digits."""
    digits, _, exponent = text.partition("e")
    last = Fraction(10) ** (int(exponent) - len(digits.partition(".")[2]))
    return abs(value - Fraction(text)) <= last / 2


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e[0]}-{e[2]}")
def test_the_published_examples(example):
    sizes, machine, channels, windows, filters, order, k2, k3, *costs = example
    found = slicing(square(*sizes), machine)
    assert found is not None
    tiles = found.tiling
    counts = (tiles.stationary, tiles.moving)
    assert (tiles.order, tiles.channels, tiles.k2, tiles.k3) == (order, channels, k2, k3)
    assert (counts if order == "IS" else counts[::-1]) == (windows, filters)
    assert rounded_as(found.costs["IS"], costs[0])
    assert rounded_as(found.costs["WS"], costs[1])


def test_the_sizes_of_the_examples():
    """L1 has room for 29491 bytes; a tile of results takes 1536 and 512."""
    assert X86.room(0) == P10.room(0) == 29491
    outs = [tiling(square(64, 56, 64), machine, "IS").out_bytes for machine in (X86, P10)]
    assert outs == [1536, 512]


def test_channels_by_hand():
    """A channel of a 3x3 layer takes 576 + 864 bytes: 19 channels fit; halving 512 finds 16."""
    for channels, halved in ((512, 16), (192, 12)):
        layer = square(channels, 28, 64)
        found = [tiling(layer, X86, "WS", how).channels for how in ("halve", "bisect", "exact")]
        assert found == [halved, 19, 19]


def test_the_layers_are_those_of_the_paper():
    pointwise = {
        name: sum(layer.kernel == (1, 1) and layer.stride == (1, 1) for layer in layers)
        for name, layers in MODEL_ZOO.items()
    }
    assert {name: (len(MODEL_ZOO[name]), pointwise[name]) for name in MODEL_ZOO} == {
        "googlenet": (57, 37),
        "inceptionv2": (69, 37),
        "resnet18": (20, 0),
        "resnet50": (53, 30),
        "resnet152": (155, 98),
        "squeezenet": (26, 17),
        "vgg16": (13, 0),
    }
    assert (len(LAYERS), sum(pointwise.values())) == (393, 219)
    distinct = [len(set(layers)) for layers in MODEL_ZOO.values()]
    assert distinct == [49, 38, 11, 20, 20, 22, 9]
    assert (len([*squeezenet11()]), len({*squeezenet11()})) == (26, 18)


@cache
def orders(machine, latencies: tuple[int, ...], form: str) -> Counter[str]:
    costly = replace(machine, cache_latencies=latencies)
    found = (slicing(layer, costly, form=form) for layer in LAYERS)
    return Counter("tie" if one.tie else one.tiling.order for one in found)


LATENCIES = [(14, 50, 200), (10, 40, 150), (12, 40, 300), (14, 70, 100), (4, 30, 200)]


@pytest.mark.parametrize("form", ["paper", "exact"])
@pytest.mark.parametrize("latencies", LATENCIES, ids=str)
def test_the_inner_kernel_decides_the_order(latencies, form):
    """All layers have the order that the paper reports, whatever the latencies."""
    assert orders(X86, latencies, form) == {"WS": 393}
    assert orders(P10, latencies, form) == {"IS": 393}


def test_a_square_inner_kernel_decides_nothing():
    both = replace(X86, micro_kernel=(16, 16))
    assert orders(both, (14, 50, 200), "paper") == {"WS": 195, "IS": 197, "tie": 1}


@pytest.mark.parametrize(("machine", "counts"), [(X86, (347, 47, 0)), (P10, (276, 53, 38))])
def test_how_many_layers_are_cut(machine, counts):
    found = [(layer, slicing(layer, machine).tiling) for layer in LAYERS]
    cut = sum(tiles.channels < layer.channels for layer, tiles in found)
    moving = sum(tiles.k2 < tiles.moving for _, tiles in found)
    stationary = sum(tiles.k3 < tiles.stationary for _, tiles in found)
    assert (cut, moving, stationary) == counts


def test_the_forms_differ_where_a_pass_begins_in_memory():
    """The example of 196 input tiles, 32 filter tiles, K2 = 8 and K3 = 49."""
    base = tiling(square(256, 56, 256), P10, "IS")
    found = replace(base, sets=1, stationary=196, moving=32, k2=8, k3=49)
    found = replace(found, stationary_bytes=128, moving_bytes=128)  # a tile is a line
    tiles = {form: lines(found, 128, form) for form in ("paper", "exact")}
    assert (tiles["paper"].second, tiles["exact"].second) == (6240, 6144)
    for form in tiles.values():
        assert (form.third, form.memory) == (588, 228 + 96)


@given(st.data())
def test_the_exact_form_counts_every_load(data):
    counts = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    k3, k2 = (data.draw(st.integers(1, count)) for count in counts)
    base = tiling(square(64, 56, 64), P10, "IS")
    found = replace(base, sets=1, stationary=counts[0], moving=counts[1], k2=k2, k3=k3)
    found = replace(found, stationary_bytes=128, moving_bytes=128)
    loads = served(*counts, k2, k3)
    exactly, printed = (lines(found, 128, form) for form in ("exact", "paper"))
    again = loads["moving", "memory"] - counts[1]
    assert exactly.second == loads["moving", "L2"]
    assert exactly.third == loads["stationary", "L3"]
    assert exactly.memory == loads["stationary", "memory"] + loads["moving", "memory"]
    assert printed.second - exactly.second == again
    assert (printed.third, printed.memory) == (exactly.third, exactly.memory)


@given(st.integers(1, 2000), st.integers(0, 99), st.integers(1, 99), st.integers(0, 9999))
def test_the_heuristics_are_sound(most, fixed, each, room):
    bound = Bound(fixed, each, room)
    found = [search(most, bound) for search in (halve, bisect, exact)]
    assert found[1] == found[2] == max((n for n in range(1, most + 1) if bound.holds(n)), default=0)
    assert found[2] // 2 <= found[0]
    assert found[0] <= found[2]


@pytest.mark.parametrize("machine", [X86, P10], ids=["x86", "p10"])
@pytest.mark.parametrize("order", ["IS", "WS"])
@pytest.mark.parametrize(
    "layer", [square(512, 28, 512), square(64, 224, 64), square(97, 31, 89, 5)]
)
def test_exact_is_what_a_solver_finds(layer, order, machine):
    """N_c, then K2, then K3 as large as possible; what is already fixed is a number."""
    windows, filters = machine.micro_kernel
    taps, out = layer.kernel[0] * layer.kernel[1] * 4, windows * filters * 4
    rows, columns = layer.out
    sides = [(windows, -(-rows * columns // windows)), (filters, -(-layer.kernels // filters))]
    (held, stationary), (moved, moving) = sides if order == "IS" else reversed(sides)

    def largest(most, left, room):
        size, solver = z3.Int("size"), z3.Optimize()
        solver.add(size >= 1, size <= most, left(size) <= room)
        solver.maximize(size)
        assert solver.check() == z3.sat
        return solver.model()[size].as_long()

    n = largest(layer.channels, lambda n: (held + moved) * taps * n + out, machine.room(0))
    a, b = held * taps * n, moved * taps * n
    k2 = largest(moving, lambda k: a + k * (b + out), machine.room(1))
    k3 = largest(stationary, lambda k: k * a + k2 * b + k2 * k * out, machine.room(2))
    found = tiling(layer, machine, order, "exact")
    assert (found.channels, found.k2, found.k3) == (n, k2, k3)


def test_what_fits_nowhere_has_no_tiling():
    small = replace(X86, cache_sizes=(1024, 1 << 20, 4 << 20))
    assert slicing(square(64, 56, 64), small) is None
    assert tiling(Convolution(1, 9, 9, 1, (1, 1)), replace(X86, headroom=(0.1, 0.9, 0.9)), "IS")


def test_costs_are_those_of_the_tilings():
    found = slicing(square(64, 56, 64), X86, "exact", "exact")
    assert (
        found.costs[found.tiling.order]
        == cost(found.tiling, X86, "exact")
        == min(found.costs.values())
    )

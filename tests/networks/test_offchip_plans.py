"""Plans of off-chip traffic: their commands, runs, verification and text."""

import re
from dataclasses import replace

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import StoreRefused
from liftpy.networks.offchip.commands import LoadTile, Multiply, StoreTile, listed
from liftpy.networks.offchip.hardware import accelerator
from liftpy.networks.offchip.machine import verify
from liftpy.networks.offchip.meaning import nest_of
from liftpy.networks.offchip.nest import WORD
from liftpy.networks.offchip.plan_text import Lines, parsed, printed
from liftpy.networks.offchip.planning import (
    layers_of,
    plan_traffic,
    published_layers,
    read_plan,
)
from liftpy.networks.offchip.policies import POLICIES, planned
from liftpy.networks.offchip.running import run_program
from liftpy.networks.offchip.search import Schedule
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads.convolution import Convolution, convolution
from tests.networks.models import model, node, value
from tests.networks.test_offchip_search import small

GEOMETRIES = {
    "two strides and pads": Convolution(7, 9, 11, 5, (3, 5), (2, 1), (1, 1, 2, 2), layout="nchw"),
    "four pads": Convolution(5, 9, 7, 6, (3, 3), (1, 1), (0, 3, 1, 2), layout="nchw"),
    "groups": Convolution(8, 7, 6, 12, (3, 3), groups=4, layout="nchw"),
    "each channel": Convolution(7, 9, 5, 7, (3, 3), (1, 1), (1, 1, 1, 1), groups=7, layout="nchw"),
    "dilation": Convolution(4, 9, 8, 6, (3, 3), dilation=(2, 2), layout="nchw"),
    "rows that nothing reads": Convolution(5, 9, 9, 6, (1, 1), (2, 2), layout="nchw"),
    "channels last": Convolution(7, 6, 5, 6, (3, 3), (1, 1), (1, 1, 1, 1)),
    "one row": Convolution(67, 1, 1, 41, (1, 1), layout="nchw"),
}


def shape(t):
    lengths = []
    while hasattr(t, "length"):
        lengths.append(t.length.constant)
        t = t.element
    return lengths


def whole_numbers(program, seed=3):
    """Arguments whose sums of products are exact in f32."""
    rng = np.random.default_rng(seed)
    return {p.name: rng.integers(-4, 5, shape(p.type)).astype(np.float32) for p in program.params}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_commands_compute_what_the_program_means_and_move_what_they_state(kind, policy):
    program = convolution(GEOMETRIES[kind], "f")
    reading = nest_of(program)
    found = planned(reading.nest, machine := small(300, 130, 120), policy)
    if found is None:
        assert policy == "ma", "the others divide sums"
        return
    listing = listed(reading.nest, found.schedule, machine.capacities)
    arrays = whole_numbers(program)
    run = run_program(reading, listing, arrays)
    np.testing.assert_array_equal(run.result, evaluate(program, *arrays.values()))
    assert run.loaded + run.stored == listing.exact
    assert listing.traffic == found.traffic


@pytest.mark.parametrize("seed", range(5))
def test_any_tiles_in_any_order_are_a_valid_plan(seed):
    """Also those that divide windows and rows, and that leave a last tile of another size."""
    rng = np.random.default_rng(seed)
    program = convolution(GEOMETRIES["two strides and pads"], "f")
    reading = nest_of(program)
    tiles = {n: int(rng.integers(1, e + 1)) for n, e in reading.nest.extents.items()}
    order = tuple(rng.permutation(list(tiles)))
    schedule = Schedule(tiles, order, rng.choice(["", "INPUT", "WEIGHT", "OUTPUT"]))
    listing = listed(reading.nest, schedule, (1 << 12,) * 3)
    arrays = whole_numbers(program)
    run = run_program(reading, listing, arrays)
    np.testing.assert_array_equal(run.result, evaluate(program, *arrays.values()))
    assert run.loaded + run.stored == listing.exact == verify(listing, "it")


def test_the_example_of_the_thesis():
    """Tiles of 65 and 56 channels and 16 rows, of a layer with 128 and 256 channels of 56 x 56."""
    layer = Convolution(128, 56, 56, 256, (3, 3), (1, 1), (1, 1, 1, 1), layout="nchw")
    nest = nest_of(convolution(layer, "f")).nest
    tiles = dict(nest.extents) | {"IC": 65, "OC": 56, "OH": 16}
    listing = listed(nest, Schedule(tiles, ("OW", "KH", "KW", "IC", "OH", "OC")), (1 << 20,) * 3)
    inputs = [t for t in listing.tiles.values() if t.array == "INPUT"][:5]
    assert [t.shape for t in inputs] == [(65, rows, 56) for rows in (17, 18, 18, 9)] + [
        (63, 17, 56)
    ]
    assert [t.offset for t in inputs] == [0, 840, 1736, 2632, 203840]
    weights = {t.offset for t in listing.tiles.values() if t.array == "WEIGHT"}
    assert 585 in weights
    outputs = [t.offset for t in listing.tiles.values() if t.array == "OUTPUT"]
    assert 896 in outputs
    first = next(c for c in listing.commands if isinstance(c, Multiply))
    _, (top, bottom), (left, right) = first.zeros
    assert (left, right, top, bottom) == (1, 1, 1, 0)
    largest = {
        a: max(np.prod(t.shape) for t in listing.tiles.values() if t.array == a)
        for a in ("INPUT", "WEIGHT", "OUTPUT")
    }
    assert largest == {"INPUT": 65520, "WEIGHT": 32760, "OUTPUT": 50176}


# --- verification ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def listing():
    """The commands of a layer with partial sums, several tiles of each array, and padding."""
    program = convolution(GEOMETRIES["four pads"], "f")
    nest = nest_of(program).nest
    tiles = dict(nest.extents) | {"IC": 2, "OC": 4, "OH": 5}
    order = ("OW", "KH", "KW", "IC", "OC", "OH")
    return listed(nest, Schedule(tiles, order), (1000, 1000, 1000))


def changed(listing, kind, change, which=0):
    """The listing with another command in place of one of a kind; None removes it."""
    at = [k for k, c in enumerate(listing.commands) if isinstance(c, kind)][which]
    new = change(listing.commands[at])
    inserted = () if new is None else (new,) if not isinstance(new, tuple) else new
    return replace(
        listing, commands=(*listing.commands[:at], *inserted, *listing.commands[at + 1 :])
    )


FALSE = {
    "INPUT_0 is not in IN": lambda x: changed(x, LoadTile, lambda _: None, 0),
    "OT is no memory for INPUT_0": lambda x: changed(
        x, LoadTile, lambda c: replace(c, memory="OT")
    ),
    "OT has no new sums of OUTPUT_0": lambda x: changed(x, StoreTile, lambda c: (c, c)),
    "OUTPUT_0 is in OT and was not stored": lambda x: changed(x, StoreTile, lambda _: None),
    "0 steps were added to OUTPUT_0 before": lambda x: changed(
        x, Multiply, lambda c: replace(c, adds=True)
    ),
    "1 steps were added to OUTPUT_0 before": lambda x: changed(
        x, Multiply, lambda c: replace(c, adds=False), 4
    ),
    "its products were added before": lambda x: changed(
        x, Multiply, lambda c: (c, replace(c, adds=True))
    ),
    "its ranges are not those of the loops": lambda x: changed(
        x, Multiply, lambda c: replace(c, ranges=c.ranges[1:])
    ),
    "outside the input are": lambda x: changed(
        x, Multiply, lambda c: replace(c, zeros=((0, 0),) * 3)
    ),
    "INPUT_0 must be": lambda x: replace(
        x, tiles={**x.tiles, "INPUT_0": replace(x.tiles["INPUT_0"], offset=1)}
    ),
    "has room for 10": lambda x: replace(x, memories=(1000, 10, 1000)),
    "results are not stored at its end": lambda x: changed(x, StoreTile, lambda _: None, -1),
    "1 of 12 commands with products are missing": lambda x: replace(x, commands=x.commands[:-3]),
    "its commands do not go through IC once": lambda x: replace(x, commands=x.commands[:20]),
    "it moves": lambda x: replace(x, exact=x.exact + WORD),
    "but it states": lambda x: replace(x, traffic=x.traffic + WORD),
}


@pytest.mark.parametrize("why", FALSE)
def test_a_false_plan_is_refused(listing, why):
    verify(listing, "it")
    with pytest.raises(StoreRefused, match=re.escape(why)):
        verify(FALSE[why](listing), "it")


def test_partial_sums_that_are_not_loaded_again_are_refused(listing):
    loads = [c for c in listing.commands if isinstance(c, LoadTile) and c.memory == "OT"]
    assert loads
    without = replace(listing, commands=tuple(c for c in listing.commands if c != loads[0]))
    with pytest.raises(StoreRefused, match="OUTPUT_0 is not in OT"):
        verify(without, "it")


# --- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_a_listing_is_read_as_it_was_written(kind):
    nest = nest_of(convolution(GEOMETRIES[kind], "f")).nest
    tiles = {name: max(1, extent // 2) for name, extent in nest.extents.items()}
    made = listed(nest, Schedule(tiles, tuple(nest.extents), "WEIGHT"), (1 << 14,) * 3)
    lines = Lines("\n".join(printed(made)), "it")
    assert parsed(lines) == made
    assert not lines.more


def test_a_plan_of_a_network_is_read_as_it_was_written(tmp_path):
    plan = plan_traffic(published_layers("squeezenet"), accelerator("setup-a"))
    plan.save(tmp_path / "s.offchip")
    found = read_plan(tmp_path / "s.offchip")
    assert found.text() == plan.text()
    assert (found.traffic, found.exact, found.ideal) == (plan.traffic, plan.exact, plan.ideal)
    assert len(found.layers) == 26
    assert len(found.listings) == 18
    assert plan.verify() == plan.exact


# --- networks -------------------------------------------------------------------------------------


def convolutional(rng):
    """A model with two equal convolutions, one without a nest between them, and a product."""
    nodes = [
        node("Conv", "x w b", "c", "conv1", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r", "relu1"),
        node("Conv", "r w b", "d", "conv2", pads=[1, 1, 1, 1]),
        node("Reshape", "d s", "f", "flat"),
        node("Gemm", "f v", "y", "gemm1", transB=1),
    ]
    return lp.network(
        model(
            nodes,
            [value("x", [1, 6, 7, 5])],
            [value("y", [1, 11])],
            w=rng.standard_normal((6, 6, 3, 3)).astype(np.float32),
            b=rng.standard_normal(6).astype(np.float32),
            v=rng.standard_normal((11, 210)).astype(np.float32),
            s=np.array([1, 210]),
        )
    )


def test_a_network_runs_by_its_plan():
    net = convolutional(np.random.default_rng(5))
    found = layers_of(net.graph)
    assert [layer.name for layer in found.layers] == ["conv1", "conv2", "gemm1"]
    assert len(found.distinct) == 2
    assert found.others["relu1"] == "it computes `max`"
    plan = plan_traffic(found, small(90, 120, 60))
    x = np.random.default_rng(6).standard_normal((1, 6, 7, 5)).astype(np.float32)
    run = plan.check(net.graph, {"x": x})
    np.testing.assert_allclose(run.outputs["y"], net.evaluate({"x": x})["y"], rtol=1e-4, atol=1e-4)
    assert run.loaded + run.stored == plan.exact > plan.ideal

"""One case for each refusal of a plan of off-chip traffic."""

from collections.abc import Callable
from pathlib import Path

import liftpy as lp
from liftpy.cli.traffic_plans import Request, plan_off_chip
from liftpy.networks.offchip.hardware import accelerator
from liftpy.networks.offchip.meaning import nest_of
from liftpy.networks.offchip.planning import Layer, Layers, plan_traffic, read_plan
from tests.networks.models import model, node, value

Case = Callable[[Path], object]

PRODUCT = """
def product(x: [5][4]f32, y: [3][4]f32) =
  x |> map(r => y |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0)))
"""


def layers():
    return Layers("small", (Layer("product", nest_of(lp.parse(PRODUCT))),))


def read(folder, old, new):
    """Reads a plan in which one text replaces another."""
    path = folder / "small.offchip"
    text = plan_traffic(layers(), accelerator("sample")).text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return read_plan(path)


def described(folder):
    path = folder / "chip.json"
    path.write_text('{"bandwidth": 0, "frequency": 1, "mem_size": [1, 1, 1]}')
    return accelerator(path)


def without_products(folder):
    path = folder / "relu.onnx"
    made = model([node("Relu", "x", "y", "relu1")], [value("x", [3])], [value("y", [3])])
    path.write_bytes(made.SerializeToString())
    plan_off_chip(
        Request(
            path,
            None,
            "sample",
            "traffic",
            "best",
            full_array=False,
            check=False,
            output=None,
            json=False,
        )
    )


CASES: dict[str, Case] = {
    "accelerator_without_bandwidth": described,
    "accelerator_that_is_unknown": lambda _: accelerator("nosuch"),
    "traffic_of_a_network_without_products": without_products,
    "traffic_plan_that_fits_in_no_way": lambda _: plan_traffic(
        layers(), accelerator("sample").model_copy(update={"mem_size": [0, 0, 0]})
    ),
    "traffic_plan_of_another_policy": lambda f: read(f, "policy best", "policy worst"),
    "traffic_plan_with_a_loop_of_no_nest": lambda f: read(f, "sums IC", "sums KH"),
    "traffic_plan_without_a_tile_size": lambda f: read(f, "tiles OH=5 ", "tiles "),
    "traffic_plan_with_other_strides": lambda f: read(f, "strides (4, 1)", "strides (5, 1)"),
    "traffic_plan_with_an_axis_of_no_loop": lambda f: read(f, "INPUT(5, 4) OH", "INPUT(5, 4) KH"),
    "traffic_plan_of_no_accelerator": lambda f: read(f, '"frequency":1.2', '"frequency":-1.2'),
    "traffic_plan_with_other_memories": lambda f: read(f, "WT(73728)", "WT(73729)"),
    "traffic_plan_without_a_layer": lambda f: read(f, "layer 1 product\n", ""),
    "traffic_plan_that_states_another_traffic": lambda f: read(f, "exact 188", "exact 187"),
}

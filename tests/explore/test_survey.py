"""What z3 says of a space is what counting it says; the audit knows everybody who asks."""

import pytest

import liftpy as lp
from liftpy.constraints.audit import Asks, audit
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.system import ConstraintSystem
from liftpy.explore.space.survey import (
    Left,
    asking,
    implied,
    loops,
    orders_and_layouts,
    uncounted,
    unpruned,
)
from liftpy.explore.spaces import whole_space
from liftpy.opencl.devices import find_device
from liftpy.rewrite.partition import direct

FAMILIES = {"matmul/6x4x8": ["plain", "direct"], "stencil/three/24": None, "asum/24": None}
PROFILE = "profile:mali-g72"


def test_one_condition_or_family_may_be_a_string():
    """And is not taken for its letters; what is short is shown short."""
    program = lp.workload("matmul/6x4x8")
    space = lp.space(program, PROFILE, where="kappa <= 4", families="direct")
    assert space.asked == ("kappa <= 4",)
    assert space.families == ["direct"]
    assert repr(space) == "<Space of matmul_6x4x8 on Mali-G72: 16 skeletons>"
    assert repr(program) == "<Program matmul_6x4x8(a: [6][4]f32, b: [4][8]f32) -> [6][8]f32>"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAMILIES)
def test_tightened_ranges_are_those_of_the_counted_points(name):
    space = lp.space(lp.workload(name), PROFILE, families=FAMILIES[name])
    found = uncounted(space)
    assert found
    for size, values in space.reached.items():
        assert found[size] == Left(min(values), max(values))


def test_without_steps_the_written_range_stays_and_the_skeletons_are_counted():
    space = lp.space(lp.workload("matmul/6x4x8"), PROFILE, families=["direct"])
    found = uncounted(space, steps=1)
    written = {p["name"]: (p["low"], p["high"]) for p in space.parameters if "low" in p}
    assert {n: (left.low, left.high) for n, left in found.items()} == written
    assert {left.unknown for left in found.values()} == {len(space.members)}


def test_without_what_follows_the_count_is_the_same():
    space = lp.space(lp.workload("convolution/depthwise/5x5x2x3x1"), PROFILE, families=["tiled"])
    found = implied(space)
    assert found
    for member in space.members:
        system = member.system
        follows = {text for text, keys in found.items() if member.skeleton.key in keys}
        kept = tuple(c for c in system.clauses if str(c.constraint) not in follows)
        assert Points(ConstraintSystem(system.parameters, kept)).count() == member.points.count()


@pytest.mark.parametrize(
    "name",
    [
        "matmul/6x4x8",
        pytest.param("convolution/strided/13x13x4x8x3x3", marks=pytest.mark.soak),
    ],
)
def test_everybody_who_asks_is_in_the_audit(name):
    space = lp.space(lp.workload(name), PROFILE)
    words = [word for _, _, word in audit(m.skeleton for m in space.members)]
    for condition in space.constraints:
        for asker in condition["asked_by"].split("; "):
            assert any(isinstance(w, Asks) and w.asked(asker) for w in words), asker
    assert any(one.conditions for one in asking(space))
    assert all(one.conditions == 0 for one in asking(space) if one.silent)


@pytest.mark.parametrize(
    ("name", "loops_", "count"),
    [
        ("vgg16/7", 6, 622_080),  # 6! orders, 3! 4! 3! layouts
        ("vgg16/7:nchw:relu", 6, 622_080),
        ("convolution/strided/13x13x256x384x3x1", 6, 622_080),
        ("matmul/6x4x8", 3, 6 * 2 * 2 * 2),
        ("mobilenet/1", 4, 24 * 6 * 6 * 6),  # depthwise: a kernel has no channels
        ("asum/24", 1, 1),
    ],
)
def test_orders_and_layouts_follow_from_the_program(name, loops_, count):
    program = lp.workload(name)
    assert loops(program) == loops_
    assert orders_and_layouts(program) == count


def test_points_without_conditions_are_the_product_of_all_ranges():
    space = lp.space(lp.workload("matmul/6x4x8"), PROFILE, families=["direct"])
    widths = 16 + 16 + 13 + 13  # without images, with inputs, constants and all through images
    assert unpruned(space) == 2 * 2 * 8 * 6 * widths  # pack, levels, kappa, sigma, v
    assert unpruned(space) > space.count() > 0


def test_the_space_of_a_convolution_has_over_ten_million_points():
    program, device = lp.workload("vgg16/24"), find_device(PROFILE)
    space = whole_space(program, device, families=("direct", "staged"), made=direct)
    assert unpruned(space) > 10**7 > space.of_families(["direct"]).count()

from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.collect import FIXED_UNROLL_LIMIT, UNROLL_LIMIT, collect
from liftpy.constraints.device import DEFAULT_DEVICE, PRIVATE_LIMIT
from liftpy.constraints.draw import Space
from liftpy.constraints.statements import statements
from liftpy.errors import ConstraintRefused, TypeRefused
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    array_type,
    as_scalar,
    as_vector,
    const,
    map_glb,
    map_lcl,
    map_seq,
    map_vec,
    map_wrg,
    program,
    reduce_seq,
    reduce_seq_unroll,
    to_global,
    to_local,
    to_private,
    zip,
)
from liftpy.language.text.program import show
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.skeleton import Parameter
from tests.constraints.examples import every_point
from tests.constraints.skeletons import by_hand, doubling, window_sums


def clauses(skeleton, device=DEFAULT_DEVICE, **limits):
    """The texts of a skeleton's conditions, with who asks."""
    return {str(c.constraint): c.askers for c in collect(skeleton, device, **limits).clauses}


def largest(skeleton, device=DEFAULT_DEVICE):
    """The largest value of the one parameter."""
    (parameter,) = skeleton.parameters
    return max(Space(collect(skeleton, device)).values(parameter.name))


def test_a_condition_that_several_ask_for_stands_once():
    assert clauses(doubling()) == {"chunk divides 96": ("split(chunk)", "rule split_join (step 1)")}


def test_rules_are_asked_by_name_and_step():
    asked = clauses(window_sums())
    assert asked["chunk divides 46"] == ("rule split_join (step 1)",)
    assert asked["tile - 2 divides 48 - tile"] == ("rule slide_tiling (step 2)",)


@pytest.mark.parametrize("length", [12, 13, 96])
def test_points_are_the_assignments_that_fit(length):
    skeleton = doubling(length)
    found = collect(skeleton, DEFAULT_DEVICE)
    for point in every_point(found):
        if found.holds(point):
            skeleton.at(point)
        else:
            with pytest.raises(TypeRefused):
                skeleton.at(point)


def test_the_work_group_fits_the_device():
    small = replace(DEFAULT_DEVICE, max_work_group_size=50, max_work_item_sizes=(40, 30, 20))
    asked = clauses(doubling(), small)
    assert asked["chunk <= 50"] == ("device work-group size of kernel k0_output",)
    assert asked["chunk <= 40"] == ("device work-group size in dimension 0 of kernel k0_output",)
    assert largest(doubling(), small) == 32


def test_the_dimensions_of_a_work_group_multiply():
    @program
    def plane(xs: array_type(F32, 4, 4, ROWS.nat, COLUMNS.nat)):
        inner = map_lcl(1, map_lcl(0, lambda x: x + x))
        return xs >> map_wrg(1, map_wrg(0, inner))

    asked = clauses(by_hand(plane, ROWS, COLUMNS))
    assert asked["columns*rows <= 1024"] == ("device work-group size of kernel k0_output",)


ROWS = Parameter("rows", 1, 64, "rows of a tile")
COLUMNS = Parameter("columns", 1, 64, "columns of a tile")
WIDTH = Parameter("width", 1, 10_000, "elements of a work-item or a work-group")


def test_local_memory_fits_the_device():
    @program
    def staged(xs: array_type(F32, 4, WIDTH.nat)):
        copy = map_lcl(0, lambda x: x + 0)
        return xs >> map_wrg(0, lambda row: to_local(row >> copy) >> map_lcl(0, lambda x: x + x))

    device = replace(DEFAULT_DEVICE, local_memory=1000)
    asked = clauses(by_hand(staged, WIDTH), device)
    assert asked["4*width <= 1000"] == ("device local memory of kernel k0_output",)


def row_sums(fold, width=WIDTH):
    """Rows added up: the accumulator of a work-item has `width` elements."""

    @program
    def sums(zero: array_type(F32, width.nat), xs: array_type(F32, 64, 7, width.nat)):
        step = lambda acc, row: zip(acc, row) >> map_seq(lambda x, y: x + y)
        return xs >> map_glb(0, lambda rows: rows >> fold(step, zero))

    return by_hand(sums, width)


def test_private_memory_is_bounded():
    asked = clauses(row_sums(reduce_seq))
    assert asked[f"4*width <= {PRIVATE_LIMIT}"] == ("private memory of kernel k0_output",)


def test_code_size_is_bounded():
    asked = clauses(row_sums(reduce_seq))
    assert asked[f"2*width <= {UNROLL_LIMIT}"] == ("code size of kernel k0_output",)
    assert largest(row_sums(reduce_seq)) == UNROLL_LIMIT // 2


def test_code_that_no_size_decides_may_be_longer():
    """An iteration inside of a map holds its array in registers: 40 elements, whatever is drawn."""
    rows = lp.parse(
        "def rows(xs: [3][40]i32) = "
        "xs |> map(row => row |> iterate(4, ys => ys |> map(y => y + y)) |> map(y => y + 1i32))"
    )
    asked = [text for skeleton in skeletons(rows, ("plain",)) for text in clauses(skeleton)]
    assert not [text for text in asked if str(UNROLL_LIMIT) in text]
    longer = lp.parse(show(rows).replace("40", "1000"))
    asked = [text for skeleton in skeletons(longer, ("plain",)) for text in clauses(skeleton)]
    assert any(text.endswith(f"<= {FIXED_UNROLL_LIMIT}") for text in asked)


def test_an_unrolled_reduction_repeats_its_step():
    asked = clauses(row_sums(reduce_seq_unroll))
    assert f"8*width <= {UNROLL_LIMIT}" in asked  # the start, and seven rows


def test_a_vector_is_one_statement():
    narrow = Parameter("width", 4, 400, "elements of a work-item")

    @program
    def sums(zero: array_type(F32, narrow.nat), xs: array_type(F32, 64, 7, narrow.nat)):
        def step(acc, row):
            lanes = map_seq(map_vec(lambda p: p[0] + p[1]))
            return zip(acc, row) >> as_vector(4) >> lanes >> as_scalar()

        return xs >> map_glb(0, lambda rows: rows >> reduce_seq(step, zero))

    body = sums.body.body
    assert [int(statements(body).value({"width": w})) for w in (4, 400)] == [2, 200]


def test_a_fold_in_a_fold_updates_one_accumulator():
    @program
    def sums(zero: array_type(F32, WIDTH.nat), xs: array_type(F32, 64, 7, 5, WIDTH.nat)):
        add_row = lambda acc, row: zip(acc, row) >> map_seq(lambda x, y: x + y)
        add_rows = lambda acc, rows: rows >> reduce_seq(add_row, acc)
        return xs >> map_glb(0, lambda block: block >> reduce_seq(add_rows, zero))

    assert str(statements(sums.body.body)) == "2*width"


def test_a_private_copy_is_a_statement_for_each_element():
    @program
    def copied(xs: array_type(F32, 64, WIDTH.nat)):
        copy = lambda row: to_private(row >> map_seq(lambda x: x + 0))
        return xs >> map_glb(0, lambda row: copy(row) >> map_seq(lambda x: x + x))

    assert str(statements(copied.body.body)) == "width"


def two_kernels():
    """A buffer of `width` elements between two kernels, and constant weights."""

    @program
    def twice(xs: array_type(F32, WIDTH.nat), w: const(F32, WIDTH.nat)):
        between = to_global(xs >> map_glb(0, lambda x: x + x))
        return zip(between, w) >> map_glb(0, lambda x, y: x * y)

    return by_hand(twice, WIDTH)


def test_buffers_fit_the_device():
    device = replace(DEFAULT_DEVICE, largest_buffer=900, global_memory=3000)
    asked = clauses(two_kernels(), device)
    assert asked["4*width <= 900"] == (
        "device largest buffer: input xs",
        "device largest buffer: constant w",
        "device largest buffer: temporary t",
        "device largest buffer: output output",
    )
    assert asked["16*width <= 3000"] == ("device global memory: all buffers",)


def test_a_memory_limit_bounds_every_kernel_of_a_run():
    """The result is alive from the kernel that stores it."""
    asked = clauses(two_kernels(), memory_limit=4000)
    assert asked == {
        "12*width <= 4000": ("memory limit while kernel k0_t runs",),
        "16*width <= 4000": ("memory limit while kernel k1_output runs",),
    }


def test_what_holds_anyway_is_left_out_and_what_never_does_stays():
    assert clauses(doubling(), memory_limit=768).keys() == {"chunk divides 96"}
    asked = clauses(doubling(), memory_limit=100)
    assert asked["768 <= 100"] == ("memory limit while kernel k0_output runs",)
    assert Space(collect(doubling(), DEFAULT_DEVICE, memory_limit=100)).count() == 0


def test_a_size_that_is_no_parameter_is_refused():
    skeleton = replace(doubling(), parameters=())
    with pytest.raises(ConstraintRefused, match="uses chunk, which is not a tuning parameter"):
        collect(skeleton, DEFAULT_DEVICE)

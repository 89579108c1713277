"""One case for each refusal that no text alone brings about: from Python, on a device, by command.

A case is a function of an empty folder; what it raises is compared with
`tests/golden/errors/test_refusals/<name>.txt`.
"""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

import liftpy as lp
from liftpy.cli import main
from liftpy.cli.arguments import read_array
from liftpy.cli.boards import fastest_of
from liftpy.cli.plan_runs import write_page
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.explain import explain
from liftpy.constraints.profile import FOLDER
from liftpy.constraints.profile import read as read_profile
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.errors import WorkerRefused
from liftpy.explore.campaign.borrowed import Elsewhere, times_of
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.offline import search_offline
from liftpy.explore.campaign.replay import replay, stored_candidate
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.seals import seal
from liftpy.explore.campaign.store import Store
from liftpy.explore.distributed.sites import connect
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.measurer import Measurer
from liftpy.explore.measure.messages import Setup
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.report.tables import page, plot
from liftpy.explore.search import named
from liftpy.explore.space.given_points import proved
from liftpy.explore.spaces import space_of
from liftpy.files.reading import read_text
from liftpy.ir.call import FunCall
from liftpy.ir.constraint import at_most
from liftpy.ir.expr import Literal, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import var
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.program import Program
from liftpy.opencl.arguments import check_launch, check_memory, check_times
from liftpy.opencl.devices import find_device
from liftpy.opencl.foreign import on_host
from liftpy.opencl.images import check_images
from liftpy.opencl.runtimes import RUSTICL, RUSTICL_DRIVERS, why_empty
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.bank import Bank, asked_points
from liftpy.rewrite.composition import skeletons
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.skeleton import skeleton_of
from liftpy.rewrite.strategy import (
    Step,
    at_path,
    check_type,
    derive,
    everywhere,
    from_json,
    identity,
    repeat,
    rule,
    to_json,
    top_down,
)
from liftpy.rewrite.strategy import replay as replay_steps
from liftpy.semantics.contract import prove_primitive
from liftpy.semantics.proof_recording import entry
from liftpy.semantics.reference import reference
from liftpy.traffic.energy_costs import FOLDER as COSTS
from liftpy.traffic.energy_costs import energy_costs
from liftpy.traffic.pooling import PoolTile, pool_counts
from liftpy.workloads.convolution import Convolution
from tests.cli.said import PROGRAM
from tests.cli.test_cli import FILES
from tests.cli.test_cli import REFUSALS as COMMANDS
from tests.constraints.examples import four_stages
from tests.constraints.skeletons import doubling
from tests.errors import (
    boards,
    embedded,
    gradients,
    live,
    mistakes,
    networks,
    offchip,
    plans,
    pytorch,
    transforms,
)
from tests.explore.clusters import cluster
from tests.explore.spaces import small_space
from tests.explore.test_store import IDENTITY, filled
from tests.fuzz import correlations
from tests.opencl.modules import COPY, SOURCE, W, X, Y, saxpy, single
from tests.refuted.test_false_twins import FALSE

Case = Callable[[Path], object]
CASES: dict[str, Case] = (
    boards.CASES
    | live.CASES
    | embedded.CASES
    | gradients.CASES
    | mistakes.CASES
    | networks.CASES
    | offchip.CASES
    | plans.CASES
    | pytorch.CASES
    | transforms.CASES
)

TWELVE = lp.array(lp.f32, 12)
DOUBLE = lp.parse("def double(xs: [12]f32) = xs |> map(x => x + x)")
DOT = lp.parse(
    "size n: 1..64\n\ndef dot(xs: [n]f32, ys: [n]f32) =\n"
    "  zip(xs, ys) |> split(4) |> map(map((x, y) => x * y) |> reduce(add, 0))\n"
)
SUMS = lp.parse(
    "size m: 1..64\nsize n\n\ndef sums(xs: [m*n]f32) = xs |> split(m) |> map(reduce(add, 0))\n"
)
MATMUL = lp.workload("matmul/4x6x8")
STAGES = lp.parse(
    "def scaled(xs: [6][8]f32, ys: [6]f32) =\n"
    "  let total = xs |> map(reduce(add, 0)) in zip(total, ys) |> map((a, b) => a * b)\n"
)


def case(run: Case) -> Case:
    """Registers a case under its function's name."""
    CASES[run.__name__.strip("_")] = run
    return run


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@case
def text_of_too_many_words(_folder):
    lp.parse("def f(x: [8]f32) = x" + " |> map(x => x)" * 20_000)


# --- files ---------------------------------------------------------------------------------------


@case
def file_that_is_too_large(folder):
    with (folder / "huge.lift").open("wb") as file:
        file.truncate(1 << 40)
    command("show", "huge.lift")


@case
def file_that_cannot_be_read_to_the_end(_folder):
    read_text(Path("/proc/self/mem"), 100)


@case
def file_that_is_longer_than_it_says(_folder):
    read_text(Path("/proc/self/maps"), 100)


@case
def file_that_is_a_pipe(folder):
    os.mkfifo(folder / "pipe.lift")
    command("show", "pipe.lift")


@case
def array_of_objects(folder):
    np.save(folder / "x.npy", np.array([None]), allow_pickle=True)
    read_array("x", folder / "x.npy")


@case
def array_that_is_cut_off(folder):
    np.save(folder / "x.npy", ones(3))
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-1])
    read_array("x", folder / "x.npy")


@case
def profile_of_brackets_in_brackets(_folder):
    read_profile("name = " + "[" * 5000, "board")


@case
def plot_of_an_unknown_format(folder):
    plot(Campaign.read(stored(folder)), "peak", folder / "front.xyz")


# --- the embedded form --------------------------------------------------------------------------


@case
def two_functions_of_one_name(_folder):
    x = {"x": lp.f32}
    once, twice = lp.fun("g", x, lambda x: x), lp.fun("g", x, lambda x: x + x)

    @lp.program
    def both(xs: TWELVE):
        return xs >> lp.map(once) >> lp.map(twice)

    lp.show(both)


@case
def variable_bound_beside_its_use(_folder):
    x, y = Param("x", lp.f32), Param("y", lp.f32)
    both = Lambda((x, y), FunCall(ScalarOp("+"), (x, y)))
    lp.show(Program("p", Lambda((x,), FunCall(both, (Literal(1.0, lp.f32), x)))))


# --- sizes --------------------------------------------------------------------------------------


CASES |= {
    "open_sizes": lambda _: lp.compile(SUMS),
    "size_out_of_range": lambda _: lp.at_sizes(DOT, {"n": 65}),
    "size_that_breaks_a_condition": lambda _: lp.compile(DOT, sizes={"n": 7}),
    "size_that_is_unknown": lambda _: lp.at_sizes(DOT, {"k": 4}),
    "size_of_a_closed_program": lambda _: lp.space(DOUBLE, sizes={"n": 4}),
    "size_that_is_no_number": lambda _: lp.at_sizes(DOT, {"n": 2.5}),
    "sizes_that_arrays_leave_open": lambda _: lp.evaluate(SUMS, ones(8)),
    "shapes_that_contradict": lambda _: lp.evaluate(DOT, ones(8), ones(12)),
    "shape_that_no_size_makes": lambda _: lp.evaluate(SUMS, ones(7), sizes={"m": 3}),
    "shape_that_breaks_a_condition": lambda _: lp.evaluate(DOT, ones(6), ones(6)),
    "open_type_of_a_function": lambda _: lp.evaluate(DOT.body, ones(8), ones(8)),
}


@case
def embedded_size_that_breaks_a_condition(_folder):
    n = lp.size("n", 1, 40)

    @lp.program
    def rows(xs: lp.array(lp.f32, 3, n)):
        return xs >> lp.map(lambda row: row >> lp.split(5))

    lp.compile(rows, sizes={"n": 12})


CASES |= {
    "pooling_counts_of_a_large_window": lambda _: PoolTile((5, 2)),
    "pooling_counts_of_no_variant": lambda _: pool_counts(PoolTile((5, 5)), "gather"),
    "pooling_counts_with_another_mask": lambda _: pool_counts(PoolTile((5, 5)), "vadd", mask=True),
}
CASES |= {
    f"places_that_a_u8_cannot_hold{of}": lambda _, name=name: lp.workload(f"{name}/19x17x1x17x1")
    for of, name in (("", "pool/argmax"), ("_in_a_gradient", "pool/argmaxback"))
}
CASES["convolution_in_groups_of_another_size"] = lambda _: Convolution(3, 8, 8, 4, (3, 3), groups=2)


# --- arrays -------------------------------------------------------------------------------------

PAIRS = lp.parse("def pairs(ps: [4](f32, f32)) = ps |> map((a, b) => a + b)")

CASES |= {
    "too_few_arrays": lambda _: lp.evaluate(DOUBLE),
    "array_for_a_tuple": lambda _: lp.evaluate(PAIRS, ones(4)),
    "array_of_another_shape": lambda _: lp.evaluate(DOUBLE, ones(11)),
    "point_with_too_few_indices": lambda _: lp.evaluate_at(
        lp.parse("def f(xs: [3][4]f32) = xs"), np.array([[1]]), ones(3, 4)
    ),
    "point_outside": lambda _: lp.evaluate_at(DOUBLE, np.array([[12]]), ones(12)),
    "too_few_arrays_of_the_reference": lambda _: reference(DOUBLE),
}


def called(name: str, *arrays: object, program: lp.Program = DOUBLE) -> None:
    """A case of a compiled program that is called."""

    def run(_folder: Path) -> object:
        kernel = lp.compile(program)
        try:
            return kernel(*arrays)
        finally:
            kernel.close()

    CASES[name] = run


ALL = lp.parse("def all(xs: [12]f32) = xs |> reduce(add, 0)")

CASES |= {
    "assignment_of_several_candidates": lambda _: lp.compile(ALL, {"strided": "no"}),
    "assignment_of_no_candidate": lambda _: lp.compile(ALL, {"strided": "no", "chunk": 5}),
    "assignment_of_another_skeleton": lambda _: compile_candidate(
        lp.space(ALL).candidate({"strided": "yes"}).skeleton, {"strided": "no", "chunk": 4}
    ),
}

called("kernel_with_too_many_arrays", ones(12), ones(12))
called("kernel_with_another_shape", ones(3, 4))
called("kernel_with_doubles", np.ones(12))
called("kernel_with_an_array_for_a_tuple", ones(4), program=PAIRS)
called("kernel_with_too_large_a_tuple", (ones(4), ones(4), ones(4)), program=PAIRS)


@case
def kernel_that_is_closed(_folder):
    kernel = lp.compile(DOUBLE)
    kernel.close()
    kernel(ones(12))


# --- what has no kernel -------------------------------------------------------------------------

LOWERED = {
    "mixed_levels": "ys |> split(3) |> mapWrg(0, c => c |> mapGlb(0, x => x)) |> join",
    "level_in_itself": "ys |> split(3) |> mapGlb(0, c => c |> mapGlb(0, x => x)) |> join",
    "group_in_a_work_item": "xss |> mapWrg(0, row => row |> split(2) "
    "|> mapLcl(0, mapWrg(0, x => x)))",
    "work_item_without_a_group": "ys |> mapLcl(0, x => x)",
    "local_memory_of_a_work_item": "xss |> mapWrg(0, row => row |> mapLcl(0, x => "
    "ys |> mapSeq(y => y * x) |> toLocal |> reduceSeq(add, 0)))",
    "private_memory_of_a_group": "ys |> mapGlb(0, x => x) |> toPrivate |> mapSeq(x => x)",
    "not_lowered": "xss |> mapGlb(0, row => row |> map(x => add(x, x)))",
    "read_where_it_is_made": "ys |> mapGlb(0, x => x * 2) |> slide(3, 1) "
    "|> mapGlb(0, w => w |> reduceSeq(add, 0))",
    "fold_over_work_items": "ys |> split(4) |> mapWrg(0, row => row |> split(2) |> "
    "reduceSeq((acc, part) => zip(acc, part) |> mapLcl(0, (x, y) => x + y), ys |> take(2)))",
    "fold_over_all_work_items": "xss |> reduceSeq((acc, row) => zip(acc, row) "
    "|> mapGlb(0, (x, y) => x + y), ys |> take(4))",
    "fold_over_other_work_items": "ys |> split(6) |> mapWrg(0, row => concat("
    "row |> take(2) |> mapLcl(0, x => x), row |> split(3) |> reduceSeq((acc, part) => "
    "zip(acc, part) |> mapLcl(0, (x, y) => x + y), row |> take(3) |> mapLcl(0, x => x)) "
    "|> mapLcl(0, x => x)))",
    "private_memory_by_id": "xss |> mapWrg(0, row => generate(65, i => 1f32) "
    "|> mapSeq(x => x * 2) |> toPrivate |> mapLcl(0, x => x + 1))",
    "global_memory_of_a_group": "xss |> mapWrg(0, row => row |> mapLcl(0, x => x * 2) |> toGlobal "
    "|> slide(2, 1) |> mapLcl(0, w => w |> reduceSeq(add, 0)))",
    "global_memory_of_each_lane": "ys |> asVector(4) |> mapGlb(0, v => v |> reduceVec((a, x) => "
    "ys |> mapSeq(y => y * x) |> toGlobal |> reduceSeq(add, a), 0))",
    "fold_of_lanes_to_a_pair": "ys |> asVector(4) |> mapGlb(0, v => "
    "v |> reduceVec((a, x) => (a.0 + x, a.1 * x), (0.0, 1.0)) |> get(1))",
    "fold_of_pairs_of_lanes": "zip(zs, zs) |> asVector(4) |> mapGlb(0, v => "
    "v |> reduceVec((a, x) => a + x.0 * x.1, 0))",
    "fold_of_lanes_in_lanes": "zs |> asVector(4) |> mapSeq(reduceVec(add, 0)) |> asVector(4) "
    "|> mapGlb(0, v => v |> mapVec(x => x + 1)) |> asScalar",
    "lanes_of_a_stored_value": "ys |> asVector(4) |> mapGlb(0, v => "
    "v |> mapVec(x => x + (ys |> reduceSeq((a, b) => a + b * x, 0)))) |> asScalar",
    "levels_mixed_in_a_row": "xss |> mapWrg(0, row => row |> mapLcl(0, x => x)) "
    "|> mapGlb(0, row => row |> mapSeq(x => x))",
    "parts_stored_over_other_levels": "concat(ys |> mapGlb(0, x => x), zs |> mapSeq(x => x))",
    "scan_that_is_not_stored": "xss |> mapGlb(0, row => row |> scanSeq(add, 0) |> mapSeq(x => x))",
    "lanes_at_an_index_that_is_data": "zs |> asVector(4) "
    "|> mapGlb(0, mapVec(x => ys |> at(i32(x)))) |> asScalar",
    "bins_that_are_not_stored": "zip(generate(12, i => i), ys) "
    "|> reduceByIndexSeq(add, 0 |> repeat(3)) |> mapSeq(x => x)",
    "bins_of_a_work_group": "xss |> mapWrg(0, row => zip(generate(4, i => i), row) "
    "|> reduceByIndexSeq(add, 0 |> repeat(3)) |> toLocal |> mapSeq(x => x))",
    "atomic_bins_of_floats": "zip(generate(12, i => i), ys) |> mapGlb(0, p => p) "
    "|> reduceByIndexAtomic(add, 0 |> repeat(3))",
    "atomic_bins_by_a_difference": "generate(12, i => (i % 3i32, 1i32)) |> mapGlb(0, p => p) "
    "|> reduceByIndexAtomic((a, x) => a - x, 0i32 |> repeat(3))",
    "atomic_bins_of_each_row": "xss |> mapGlb(1, row => generate(4, i => (i, 1i32)) "
    "|> mapGlb(0, p => p) |> reduceByIndexAtomic(addInt, 0i32 |> repeat(3)))",
    "atomic_bins_in_a_loop": "xss |> mapSeq(row => generate(4, i => (i, 1i32)) "
    "|> mapGlb(0, p => p) |> reduceByIndexAtomic(addInt, 0i32 |> repeat(3)))",
    "atomic_bins_of_one_work_item": "generate(12, i => (i % 3i32, 1i32)) "
    "|> reduceByIndexAtomic(addInt, 0i32 |> repeat(3))",
    "computed_register_at_an_index_that_is_data": "xss |> mapGlb(0, row => let s = "
    "row |> scanSeq(add, 0) |> toPrivate in row |> mapSeq(x => s "
    "|> map(y => (y, ys |> at(2i32))) |> at(i32(x)) |> get(0)))",
    "fold_in_place_in_registers": "xss |> transpose |> mapGlb(0, row => row |> split(3) "
    "|> reduceInPlace((a, r) => zip(a, r) |> mapSeq((s, x) => s + x), 0 |> repeat(3)) "
    "|> toPrivate |> mapSeq(x => x))",
    "fold_in_place_that_is_not_stored": "xss |> transpose |> mapGlb(0, row => row |> split(3) "
    "|> reduceInPlace((a, r) => zip(a, r) |> mapSeq((s, x) => s + x), 0 |> repeat(3)) "
    "|> mapSeq(x => x))",
    "fold_in_place_that_reads_a_neighbour": "xss |> reduceInPlace((a, r) => "
    "zip(a |> padWrap(1, -1), r) |> mapSeq((s, x) => s + x), 0 |> repeat(4))",
    "fold_in_place_in_kernels_over_numbers": "ys |> reduceInPlace((a, y) => "
    "a |> mapGlb(0, x => x * y), 1 |> repeat(4))",
    "fold_in_place_of_too_many_kernels": "generate(1001, (i: i32) => i |> repeat(4)) "
    "|> reduceInPlace((a, r) => zip(a, r) |> mapGlb(0, (s, x) => s + x), 0i32 |> repeat(4))",
    "folds_in_place_of_too_many_kernels": "generate(40, (i: i32) => i |> repeat(4) |> repeat(30)) "
    "|> reduceInPlace((b, rs) => rs |> reduceInPlace((a, r) => zip(a, r) "
    "|> mapGlb(0, (s, x) => s + x), b), 0i32 |> repeat(4))",
    "fold_in_place_that_begins_with_a_fold_in_a_group": "xss |> split(1) |> mapWrg(0, rows => rows "
    "|> reduceInPlace((a, r) => zip(a, r) |> mapLcl(0, (s, x) => s + x), "
    "ys |> reduceSeq((s, y) => s + y, 0) |> repeat(4)))",
    "fold_in_place_that_reads_the_outer_one": "xss |> split(1) |> reduceInPlace((b, rows) => rows "
    "|> reduceInPlace((a, r) => zip(a, zip(b, r)) |> mapGlb(0, t => t.0 + t.1.0 * t.1.1), b), "
    "0 |> repeat(4))",
    "fold_in_place_that_stores_in_a_pass": "xss |> reduceInPlace((a, r) => "
    "zip(a |> mapGlb(0, x => x * 2) |> toGlobal, r) |> mapGlb(0, (s, x) => s + x), "
    "0 |> repeat(4))",
    "fold_by_subgroups_of_another_function": "xss |> mapWrg(0, r => r |> mapLcl(0, x => x) "
    "|> reduceSubgroups((a, x) => a * x, 1) |> repeat(4) |> mapLcl(0, x => x))",
    "fold_by_subgroups_of_small_integers": "xss |> mapWrg(0, r => r |> mapLcl(0, x => i16(x)) "
    "|> reduceSubgroups(add, 1i16) |> repeat(4) |> mapLcl(0, x => x))",
    "fold_by_subgroups_of_elements_without_items": "xss |> mapWrg(0, r => r "
    "|> reduceSubgroups(add, 1) |> repeat(4) |> mapLcl(0, x => x))",
    "fold_by_subgroups_in_one_item": "xss |> mapGlb(0, r => r "
    "|> mapLcl(0, x => x) |> reduceSubgroups(add, 1))",
    "fold_by_subgroups_of_a_part_of_a_group": "xss |> mapWrg(0, r => let "
    "l = (ys |> mapLcl(0, x => x) |> toLocal) in r |> mapLcl(0, x => x * 2) "
    "|> reduceSubgroups(add, 1) |> repeat(4) |> mapLcl(0, x => x))",
    "fold_by_subgroups_for_each_item": "xss |> mapWrg(0, r => xss |> transpose |> mapLcl(0, c => "
    "c |> mapLcl(0, x => x) |> reduceSubgroups(add, 1)))",
    "fold_by_subgroups_where_an_item_reads_it": "xss |> mapWrg(0, r => "
    "generate(4, (i: i32) => r |> mapLcl(0, x => x * f32(i)) |> reduceSubgroups(add, 1)) "
    "|> mapLcl(0, x => x))",
    "fold_by_subgroups_of_elements_of_another_type": "xss |> mapWrg(0, r => r "
    "|> mapLcl(0, x => x) |> reduceSubgroups((a, x) => a, 1i32))",
    "fold_by_subgroups_stored_by_all_items": "xss |> mapWrg(0, r => r "
    "|> mapLcl(0, x => x) |> reduceSubgroups(add, 1))",
    "subgroups_outside_of_groups": "xss |> mapSubgroup(8, mapItem(x => x * 2))",
    "subgroups_inside_items": "xss |> split(1) |> mapWrg(0, mapLcl(0, "
    "r => r |> split(2) |> mapSubgroup(8, mapItem(x => x * 2))))",
    "subgroups_inside_subgroups": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, "
    "r => r |> split(2) |> mapSubgroup(8, mapItem(x => x * 2))))",
    "subgroups_of_an_empty_group": "xss |> split(1) |> mapWrg(0, mapSubgroup(0, mapItem(x => x)))",
    "subgroups_of_another_group": "xss |> split(3) |> mapWrg(0, rows => let "
    "l = (rows |> mapSubgroup(8, mapItem(x => x * 2)) |> toLocal) in "
    "l |> mapSubgroup(16, mapItem(x => x + 1)))",
    "subgroups_beside_items_of_another_dimension": "xss |> split(3) |> mapWrg(0, mapWrg(1, r => "
    "let l = (r |> mapLcl(1, x => x * 2) |> toLocal) in "
    "l |> split(4) |> mapSubgroup(8, mapItem(x => x + 1))))",
    "item_outside_of_subgroups": "xss |> mapWrg(0, mapItem(x => x * 2))",
    "item_inside_an_item": "xss |> split(1) |> split(3) |> mapWrg(0, mapSubgroup(8, "
    "mapItem(mapItem(x => x * 2))))",
    "local_ids_inside_a_subgroup": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, "
    "mapLcl(0, x => x * 2)))",
    "global_ids_inside_a_subgroup": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, "
    "mapGlb(0, x => x * 2)))",
    "local_memory_of_a_subgroup": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "let l = (r |> mapItem(x => x * 2) |> toLocal) in l |> mapItem(x => x + 1)))",
    "registers_that_items_divide": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "let l = (r |> mapItem(x => x * 2) |> toPrivate) in l |> mapItem(x => x + 1)))",
    "items_that_another_item_reads": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "r |> mapItem(x => x * 2) |> mapItem(x => x + 1)))",
    "elements_that_all_items_of_a_subgroup_store": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, "
    "mapSeq(x => x * 2)))",
    "accumulator_that_items_divide": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "r |> split(2) |> reduceSeq((a, c) => zip(a, c) |> mapItem((s, x) => s + x), 0 |> repeat(2))"
    " |> mapItem(x => x)))",
    "fold_by_items_of_another_function": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "let s = r |> mapItem(x => x) |> reduceItems((a, x) => a * x, 1) in r |> mapItem(x => x * s)))",
    "fold_by_items_of_elements_without_items": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "let s = r |> reduceItems(add, 1) in r |> mapItem(x => x * s)))",
    "fold_by_items_outside_of_subgroups": "xss |> mapWrg(0, r => "
    "let s = r |> mapItem(x => x) |> reduceItems(add, 1) in r |> mapLcl(0, x => x * s))",
    "fold_by_items_for_each_item": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "r |> mapItem(y => r |> mapItem(x => x * y) |> reduceItems(add, 1))))",
    "fold_by_items_of_elements_of_another_type": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, "
    "r => r |> mapItem(x => x) |> reduceItems((a, x) => a, 1i32)))",
    "subgroup_inside_an_item": "xss |> split(1) |> mapWrg(0, mapSubgroup(8, r => "
    "r |> mapItem(x => let h = (r |> toSubgroup) in h |> reduceSeq(add, x))))",
    "subgroup_read_in_rows_of_items": "xss |> split(3) |> mapWrg(0, rows => let "
    "held = (rows |> toSubgroup) in rows |> split(3) |> mapSubgroup(8, c => "
    "held |> mapItem(row => row |> reduceSeq(add, 0))))",
    "host_loop_inside_another": "xss |> split(1) |> mapHost(mapHost(mapGlb(0, x => x * 2)))",
    "host_loop_in_a_pass": "xss |> reduceInPlace((a, r) => zip(a, r) |> split(2) "
    "|> mapHost(mapGlb(0, (s, x) => s + x)) |> join, 0 |> repeat(4))",
    "host_loop_of_many_iterations": "generate(1001, (i: i32) => i) |> split(1) "
    "|> mapHost(mapGlb(0, x => x * 2i32))",
    "host_loop_read_by_another": "xss |> mapHost(b => b |> mapGlb(0, x => x * x) |> toGlobal "
    "|> mapGlb(0, x => x + 1)) |> split(1) |> mapHost(c => c |> join |> mapGlb(0, x => x * x) "
    "|> toGlobal |> mapGlb(0, x => x + 1))",
    "host_loop_inside_a_map": "xss |> mapGlb(0, r => r |> mapHost(x => x * 2))",
    "subgroup_of_small_integers": "ys |> mapGlb(0, y => i16(y)) |> toGlobal |> split(4) "
    "|> mapWrg(0, r => let s = (r |> toSubgroup) in xss |> mapLcl(0, x => s |> reduceSeq(add, 0)))",
    "subgroup_of_what_a_kernel_computes": "xss |> mapWrg(0, r => let s = "
    "(r |> mapLcl(0, x => x * 2) |> toLocal |> toSubgroup) in ys "
    "|> mapLcl(0, y => y * (s |> at(0))))",
    "subgroup_of_what_a_kernel_stores": "xss |> mapWrg(0, r => let l = "
    "(r |> mapLcl(0, x => x * 2) |> toLocal) in let s = (l |> toSubgroup) in r "
    "|> mapLcl(0, y => s |> reduceSeq(add, y)))",
    "subgroup_where_an_item_reads_it": "xss |> mapWrg(0, r => "
    "generate(4, (i: i32) => r |> toSubgroup |> at(i)) |> mapLcl(0, x => x))",
    "subgroup_of_a_row_longer_than_a_group": "ys |> split(6) |> mapWrg(0, r => let s = "
    "(r |> toSubgroup) in xss |> transpose |> mapLcl(0, x => s |> reduceSeq(add, 0)))",
    "subgroup_of_each_item": "xss |> mapWrg(0, r => ys |> mapLcl(0, y => "
    "let s = (r |> toSubgroup) in s |> reduceSeq((a, x) => a + x * y, 0)))",
    "subgroup_without_groups": "xss |> mapGlb(0, r => r |> toSubgroup |> reduceSeq(add, 0))",
    "subgroup_of_a_group_of_two_dimensions": "xss |> mapWrg(1, q => xss |> mapWrg(0, r => "
    "let s = (r |> toSubgroup) in xss |> mapLcl(1, row => row "
    "|> mapLcl(0, y => s |> reduceSeq((a, x) => a + x * y, 0)))))",
    "subgroup_read_at_ids": "xss |> mapWrg(0, r => let s = (r |> toSubgroup) in "
    "s |> mapLcl(0, x => x))",
    "subgroup_read_at_data": "xss |> mapWrg(0, r => let s = (r |> toSubgroup) in ys "
    "|> mapLcl(0, y => s |> at(i32(y))))",
    "subgroup_read_behind_a_guard": "xss |> mapWrg(0, r => let s = (r |> toSubgroup) in s "
    "|> take(1) |> repeat(12) |> join |> pad(1, 1, 0) |> mapLcl(0, x => x))",
    "fold_that_cannot_be_unrolled": "generate(1000000, (i: i32) => i) "
    "|> reduceSeqUnroll(addInt, 0)",
    "kernel_that_gets_too_long": "generate(1000000, (i: i32) => i) |> mapSeq(i => i * i) "
    "|> toPrivate |> mapSeq(i => i + 1i32)",
    "kernel_whose_loops_get_too_long": "generate(401, (i: i32) => i) |> mapSeqUnroll(i => "
    "generate(100, (j: i32) => j) |> mapSeqUnroll(j => i + j)) |> join",
    "kernel_of_too_many_variables": "generate(6000, (i: i32) => i * 3i32 |> (y => y * y)) "
    "|> mapSeqUnroll(y => y + 1i32)",
    "image_of_a_row": "xss |> mapGlb(0, row => row |> asImage |> mapSeq(x => x + 1))",
    "image_of_whole_numbers": "ys |> mapGlb(0, y => i32(y)) |> toGlobal |> asImage "
    "|> mapGlb(0, k => k + 1)",
    "image_of_a_part_of_a_texel": "ys |> drop(1) |> mapGlb(0, y => y * 2) |> toGlobal |> asImage "
    "|> mapGlb(0, y => y + 1)",
    "iteration_of_too_many_kernels": "ys |> iterateSeq(1001, vs => vs |> mapGlb(0, x => x * x))",
}


def lowered(name: str, body: str) -> None:
    """A case of a program that has no kernel."""
    text = f"def p(xss: [3][4]f32, ys: [12]f32, zs: [48]f32) =\n  {body}"
    CASES[name] = lambda _: compile_program(LoweredProgram.of(lp.parse(text)))


for known, text in LOWERED.items():
    lowered(known, text)
CASES["space_of_what_has_no_kernel"] = lambda _: lp.space(
    lp.parse("def p(xs: [4]f32) = xs |> mapLcl(0, x => x)")
)


@case
def space_of_a_function_without_a_kernel(_folder):
    @lp.program
    def rows(xss: lp.array(lp.f32, 4, 8)):
        return xss >> lp.map_wrg(0, lambda row: row >> lp.map_glb(0, lambda x: x * 2))

    lp.space(rows)


TILES = lp.parse("def p(yss: [4][6]f32) = yss |> map(map(x => x + 1))")
CASES["images_of_a_device_without"] = lambda _: space_of(
    TILES, find_device("profile:nvidia-hopper"), fixed={"images": "inputs"}
)
CASES["condition_that_bounds_nothing"] = lambda _: lp.space(
    lp.workload("stencil/three/100"), where=["tile0 * theta <= 4"]
)
CASES["space_of_no_family"] = lambda _: space_of(TILES, families=[])
CONVOLUTION = lp.parse(correlations.Case((13,), 3, 2, (3,), 0).text("x", "w", "b"))
CASES["space_of_a_form_beyond_the_error"] = lambda _: space_of(
    CONVOLUTION, replace(DEFAULT_DEVICE, type="CPU"), max_error=1e-5, fixed={"winograd": "6"}
)
CASES["space_of_the_only_form_beyond_the_error"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, max_error=1e-7, fixed={"winograd": "2"}
)
CASES["space_of_an_error_below_0"] = lambda _: space_of(CONVOLUTION, DEFAULT_DEVICE, max_error=-1)
CASES["space_with_points_of_no_form"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, winograd_points="0,1,-1,2,-2,1/2,-1/2,4"
)
CASES["space_with_points_of_no_form_of_the_program"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, winograd_points="0,1,1/2", families=["plain"]
)
CASES["space_with_lists_of_as_many_points"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, winograd_points=["0,1,-1", "0,1,2"]
)
CASES["space_with_measured_and_other_points"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, winograd_points=["measured", "0,1,2"]
)
CASES["space_with_points_that_f32_rounds"] = lambda _: space_of(
    CONVOLUTION, DEFAULT_DEVICE, winograd_points="0,1,12347/7919"
)
CASES["candidate_with_points_that_are_none"] = lambda _: candidate_of(
    CONVOLUTION, DEFAULT_DEVICE, {"winograd": "2", "winograd_points": "2.3_0_1"}
)
CASES["explained_out_of_every_range"] = lambda _: lp.space(TILES).explain({"tile0": 9999})


# --- modules and devices ------------------------------------------------------------------------


def loaded(name: str, use: Callable[..., object], make: Callable[[], object] = saxpy) -> None:
    """A case of a module on the first device."""

    def run(_folder: Path) -> object:
        with Session(find_device()) as session, session.load(make()) as module:
            return use(module)

    CASES[name] = run


LOCAL = single(COPY % "", local=(1, 1, 64))
LAUNCH = LOCAL.launches[0]
SIZED = (COPY % "out[i] = x[i];").replace(
    "kernel void", "kernel __attribute__((reqd_work_group_size(7, 1, 1))) void"
)

loaded("constants_that_were_not_set", lambda m: m.run({"x": X, "y": Y}))
loaded("profile_before_a_run", lambda m: (m.set_constants({"w": W}), m.profile(1, 0)))
loaded("array_that_is_missing", lambda m: (m.set_constants({"w": W}), m.run({"x": X})))
loaded("array_for_nothing", lambda m: m.run({"x": X, "y": Y, "z": X}))
loaded("kernel_that_does_not_build", print, lambda: saxpy(SOURCE.replace("t[i] +", "nobody +")))
loaded(
    "launch_that_the_driver_refuses",
    lambda m: m.run({"x": X[:21]}),
    lambda: single(SIZED, local=(3,), n=21),
)
CASES["plan_with_a_launch_that_the_driver_refuses"] = lambda _: plans.launched(
    single(SIZED, local=(3,), n=21)
)
loaded(
    "argument_that_the_driver_refuses",
    lambda m: m.run({"x": X}),
    lambda: single((COPY % "out[i] = x;").replace("global const float* x", "float x")),
)
CASES |= {
    "work_group_too_large": lambda _: check_launch(
        LOCAL, LAUNCH, DEFAULT_DEVICE, group=32, local=0
    ),
    "work_group_too_long": lambda _: check_launch(
        LOCAL,
        LAUNCH,
        replace(DEFAULT_DEVICE, max_work_item_sizes=(64, 64, 63)),
        group=64,
        local=0,
    ),
    "local_memory_too_small": lambda _: check_launch(
        LOCAL, LAUNCH, DEFAULT_DEVICE, group=64, local=32769
    ),
    "buffer_too_large": lambda _: check_memory(
        saxpy(), replace(DEFAULT_DEVICE, largest_buffer=403)
    ),
    "time_of_a_clock_that_goes_back": lambda _: check_times(
        LOCAL, DEFAULT_DEVICE, [LAUNCH], [-40], 1000
    ),
    "time_longer_than_the_host_waited": lambda _: check_times(
        LOCAL, DEFAULT_DEVICE, [LAUNCH], [1_000_000], 1000
    ),
    "time_of_a_clock_that_stands": lambda _: check_times(
        LOCAL, DEFAULT_DEVICE, [LAUNCH], [0], 1000
    ),
    "image_too_large": lambda _: check_images(
        compile_program(
            LoweredProgram.of(
                lp.parse("def p(xs: [40]f32) = xs |> asImage |> mapGlb(0, x => x + 1)")
            )
        ).module,
        replace(DEFAULT_DEVICE, image_texels=9),
    ),
    "memory_too_small": lambda _: check_memory(
        saxpy(), replace(DEFAULT_DEVICE, global_memory=1615)
    ),
}


def with_devices(*known: object, empty: tuple[str, ...] = ()):
    """As if these were the devices of this machine, and this were said of runtimes without any."""
    return mock.patch("liftpy.opencl.devices._found", return_value=(known, (), empty))


@case
def no_device(_folder):
    with with_devices():
        find_device()


@case
def device_that_is_unknown(_folder):
    with with_devices((DEFAULT_DEVICE, None)):
        find_device("abacus")


@case
def device_of_a_runtime_without_a_driver(_folder):
    with (
        mock.patch.dict("os.environ", {RUSTICL_DRIVERS: ""}),
        with_devices((DEFAULT_DEVICE, None), empty=why_empty(RUSTICL)),
    ):
        find_device(RUSTICL)


@case
def device_of_another_machine(_folder):
    with with_devices((DEFAULT_DEVICE, None)):
        Session(replace(DEFAULT_DEVICE, name="other"))


@case
def worker_without_its_device(_folder):
    setup = Setup(lp.show(DOUBLE), DEFAULT_DEVICE, Inputs.of(DOUBLE)[0], ())
    with Measurer(setup, 10.0) as measurer:
        measurer.start()


@case
def worker_that_dies_when_it_starts(_folder):
    setup = Setup(lp.show(DOUBLE), DEFAULT_DEVICE, {}, ())
    dies = [sys.executable, "-c", "raise SystemExit('libOpenCL: out of handles')"]
    with Measurer(setup, 10.0, benching=dies) as measurer:
        measurer.start()


@case
def campaign_without_its_workers(_folder):
    lost = WorkerRefused("the process that measures candidates cannot be started")
    with mock.patch.object(Measurer, "start", side_effect=lost):
        lp.explore(DOUBLE, 1, db="campaign.db")


# --- spaces -------------------------------------------------------------------------------------

CASES |= {
    "parameter_without_a_value": lambda _: compile_candidate(doubling(), {}),
    "parameter_that_no_system_has": lambda _: explain(four_stages(), {"tau": 3}),
    "value_out_of_range": lambda _: explain(four_stages(), {"theta": 2}),
    "point_beyond_the_last": lambda _: Points(collect(doubling(), DEFAULT_DEVICE)).unrank(12),
    "condition_on_an_unknown_size": lambda _: ConstraintSystem(
        (), (Clause(at_most(var("tau"), 4), ("ask",)),)
    ),
    "settings_nobody_knows": lambda _: small_space().candidate({"kapa": 3}),
    "word_nobody_knows": lambda _: small_space().candidate({"family": "fast"}),
    "word_for_a_size": lambda _: small_space().candidate({"kappa": "many"}),
    "settings_of_no_skeleton": lambda _: small_space().candidate({"theta": 3, "pad": "copy"}),
    "settings_that_clash": lambda _: small_space().candidate({"kappa": 5}),
    "doubles_on_a_device_without": lambda _: lp.space(
        lp.parse("def p(xs: [4]f64) = xs |> map(x => x + x)"),
        replace(DEFAULT_DEVICE, extensions=()),
    ),
    "profile_without_its_prefix": lambda _: find_device("mali-g72"),
    "profile_nobody_knows": lambda _: find_device("profile:mali-g27"),
    "profile_that_is_not_there": lambda _: find_device("profile:./none.toml"),
    "profile_that_runs_nothing": lambda _: lp.compile(DOUBLE, device="profile:mali-g72"),
    "condition_that_is_none": lambda _: small_space().asking(["kappa"], {}),
    "condition_on_another_name": lambda _: small_space().asking(["kapa <= 3"], {}),
    "condition_that_never_holds": lambda _: small_space().asking(["kappa*kappa == 2"], {}),
    "listed_values_out_of_range": lambda _: small_space().asking([], {"kappa": [200, 300]}),
    "fixed_to_nothing": lambda _: small_space().asking([], {"kappa": []}),
    "fixed_to_what_no_skeleton_has": lambda _: small_space().asking(
        [], {"kappa": [2, 3], "theta": 5}
    ),
    "memory_limit_too_low": lambda folder: lp.explore(
        DOUBLE, 1, db=folder / "a.db", memory_limit=3
    ),
}


@case
def profile_that_is_no_toml(folder):
    (folder / "board.toml").write_text("name = board\n")
    find_device("profile:./board.toml")


@case
def profile_with_a_key_of_many_parts(folder):
    (folder / "board.toml").write_text("name" + ".a" * 60 + " = 1\n")
    find_device("profile:./board.toml")


@case
def profile_that_is_no_json(folder):
    (folder / "board.json").write_text('{"name": board}')
    find_device("profile:./board.json")


@case
def choice_in_an_empty_space(_folder):
    lp.choose(DOUBLE, "profile:xeon-silver-4208", memory_limit=1)


@case
def profile_without_limits(folder):
    (folder / "board.toml").write_text('name = "board"\nvendor = "me"\ntype = "FPGA"\n')
    find_device("profile:./board.toml")


@case
def space_too_tangled_to_count(_folder):
    with mock.patch("liftpy.constraints.draw.NODE_LIMIT", 50):
        Points(four_stages()).count()


# --- rules --------------------------------------------------------------------------------------

BODY = DOUBLE.body.body
K = lp.var("k")


def grow(expr):
    return replace(identity(expr), steps=(Step("map_fusion", ()),))


CASES |= {
    "rule_nobody_knows": lambda _: rule("map_fussion"),
    "rule_without_a_proof": lambda _: rule(replace(RULES["map_fusion"], name="hearsay")),
    "rule_with_other_sizes": lambda _: rule("split_join", k=3),
    "rule_that_does_not_apply": lambda _: derive(BODY, rule("split_join", m=5)),
    "step_that_does_not_apply": lambda _: list(
        replay_steps(BODY, (Step("split_join", (7,), (("m", 3),)),))
    ),
    "strategy_that_goes_round": lambda _: repeat(at_path((), grow))(BODY),
    "strategy_that_never_ends": lambda _: repeat(top_down(rule("split_join", m=1)), 5)(BODY),
    "strategy_that_makes_its_own_places": lambda _: everywhere(rule("split_join", m=1))(BODY),
    "strategy_with_a_size_of_no_range": lambda _: skeleton_of(DOUBLE, rule("split_join", m=K)),
    "rule_that_changes_the_type": lambda _: check_type(
        RULES["map_fusion"], BODY, lp.parse("def g(xs: [4]f32) = xs").body.body
    ),
    "rule_that_is_false": lambda _: entry(next(iter(FALSE.values()))[0]),
    "primitive_nobody_knows": lambda _: prove_primitive("spilt"),
}


def tampered(**parts: object) -> str:
    """The stored derivation of a split, changed by hand."""
    data = json.loads(to_json(DOUBLE, derive(BODY, rule("split_join", m=4))))
    return json.dumps({**data, **parts})


def split_by(size: str) -> list[dict[str, object]]:
    """The steps of the same, with another size."""
    return [{"rule": "split_join", "path": [], "sizes": {"m": size}, "hints": {}}]


CASES |= {
    "derivation_that_does_not_apply": lambda _: from_json(tampered(steps=split_by("5"))),
    "derivation_of_another_result": lambda _: from_json(tampered(result="xs")),
    "derivation_with_no_size": lambda _: from_json(
        tampered(steps=split_by("1, 0, 0) |> split(2) #"))
    ),
}


# --- stores -------------------------------------------------------------------------------------


def stored(folder: Path) -> Path:
    """A database with one measured candidate, one refused and one under way."""
    filled(folder / "a.db", small_space().sample(4, seed=0))
    return folder / "a.db"


def modelled_campaign(folder: Path) -> Campaign:
    return lp.explore(PROGRAM, 1, db=folder / "a.db", modelled=True, device="profile:mali-g72")


@case
def export_of_the_fastest_of_none(folder):
    with Store.open(folder / "a.db", IDENTITY):
        pass
    fastest_of(folder / "a.db", 2)


def changed(folder: Path, statement: str, *, sealed: bool = True) -> Path:
    """The same, changed behind its back, its checksums too."""
    path = stored(folder)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
        if sealed:
            seal(database)
    database.close()
    return path


@case
def candidate_that_is_another_now(folder):
    path = stored(folder)
    other = small_space().sample(4, seed=1)[0]
    with Store.open(path, IDENTITY) as store:
        store.begin(replace(other, sizes=(("kappa", 99),)))


@case
def campaign_that_runs_already(folder):
    path = stored(folder)
    with Store.open(path, IDENTITY):
        Store.open(path, IDENTITY)


@case
def skeleton_that_is_not_derived(folder):
    path = stored(folder)
    with Store.read(path) as store:
        stored_candidate(store, replace(store.rows()[0], skeleton="woven()"))


@case
def candidate_without_its_sizes(folder):
    path = folder / "b.db"
    lp.explore(MATMUL, 1, db=path, families=["direct"])
    with Store.read(path) as store:
        stored_candidate(store, replace(store.rows()[0], assignment={}))


@case
def condition_across_stages_with_too_many_combinations(_folder):
    two = """def two(xs: [96][96]f32, w: [96][96]f32) =
      let one = xs |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0))) in
      one |> transpose |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"""
    where = "one.kappa * one.sigma * one.v <= result.kappa * result.sigma * result.v"
    space_of(lp.parse(two), DEFAULT_DEVICE, where=[where], families=["direct"]).count()


@case
def candidate_without_kernels(folder):
    path = stored(folder)
    with Store.read(path) as store:
        refused = store.rows()[1]
    replay(path, refused.id)


@case
def best_of_a_tight_limit(folder):
    Campaign.read(stored(folder)).best(memory_limit=39)


@case
def best_of_a_tight_limit_and_error(folder):
    Campaign.read(stored(folder)).best(memory_limit=39, max_error=1e-3)


@case
def best_of_too_small_an_error(folder):
    Campaign.read(stored(folder)).best(max_error=-1)


@case
def best_of_several_devices(folder):
    found = Campaign.read(stored(folder))
    both = [DEFAULT_DEVICE.to_json(), replace(DEFAULT_DEVICE, name="other").to_json()]
    settings = found.identity.settings | {"devices": both}
    replace(found, identity=replace(found.identity, settings=settings)).best()


CASES |= {
    "database_in_no_folder": lambda folder: Store.open(folder / "none" / "a.db", IDENTITY),
    "database_that_is_a_folder": lambda folder: Store.open(folder, IDENTITY),
    "database_of_another_program": lambda folder: Store.read(
        changed(folder, "PRAGMA application_id = 7")
    ),
    "database_of_another_format": lambda folder: Store.read(
        changed(folder, "PRAGMA user_version = 99")
    ),
    "database_of_another_campaign": lambda folder: Store.open(
        stored(folder), replace(IDENTITY, seed=3, settings={"sizes": {"n": 8}})
    ),
    "candidates_of_one_beginning": lambda folder: Store.read(stored(folder)).row(""),
    "memory_figure_nobody_knows": lambda folder: Campaign.read(stored(folder)).pareto("heap"),
    "skeletons_of_open_sizes": lambda _folder: skeletons(
        lp.parse("size n: 1..64\nsize m: 1..\ndef f(xs: [n][m]f32) = xs |> map(reduce(add, 0))")
    ),
    "search_nobody_knows": lambda _folder: named("clever"),
    "search_that_looks_at_no_times": lambda _folder: named("random", lambda _: ()),
    "times_that_are_modelled": lambda folder: Elsewhere.read(
        modelled_campaign(folder).path, DEFAULT_DEVICE
    ),
    "times_for_a_modelled_campaign": lambda folder: lp.explore(
        PROGRAM, 1, db=folder / "b.db", times=[folder / "a.db"], modelled=True
    ),
    "first_outside_of_the_space": lambda folder: lp.explore(
        PROGRAM, 1, db=folder / "b.db", first={"family": "plain", "map": "odd"}
    ),
    "first_with_conditions": lambda folder: lp.explore(
        PROGRAM, 1, db=folder / "b.db", families=["plain"], first={"family": "plain"}
    ),
    "errors_of_a_modelled_campaign": lambda folder: modelled_campaign(folder).pareto("error"),
    "times_of_another_device": lambda folder: Elsewhere.read(
        stored(folder), replace(DEFAULT_DEVICE, driver_version="7")
    ),
    "times_of_the_campaign_itself": lambda folder: times_of(
        [stored(folder)], stored(folder), DEFAULT_DEVICE, 1, begun=True
    ),
    "times_for_several_devices": lambda folder: times_of(
        [stored(folder)], folder / "b.db", DEFAULT_DEVICE, 2, begun=False
    ),
    "best_of_nothing": lambda folder: Campaign.read(
        changed(folder, "UPDATE outcome SET kind = 'refused', time_ns = NULL")
    ).best(),
}


@case
def database_with_a_page_of_garbage(folder):
    path = stored(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:10240] + b"my thesis, page 1 of 128" * 85 + whole[12280:])
    Store.read(path)


@case
def database_that_ends_early(folder):
    path = stored(folder)
    path.write_bytes(path.read_bytes()[:-20000])
    Store.read(path)


@case
def database_without_its_last_bytes(folder):
    path = stored(folder)
    path.write_bytes(path.read_bytes()[:-100])
    Store.read(path)


@case
def database_with_words_of_garbage(folder):
    with Store.read(changed(folder, "UPDATE candidate SET assignment = '{}'")) as store:
        store.rows()


@case
def database_with_a_time_that_was_changed(folder):
    Store.read(changed(folder, "UPDATE run SET ns = ns + 1", sealed=False))


@case
def campaign_whose_text_is_missing(folder):
    Store.read(changed(folder, "DELETE FROM expression"))


@case
def database_with_a_negative_figure(folder):
    with Store.read(changed(folder, "UPDATE outcome SET peak = -1")) as store:
        store.rows()


@case
def kernels_that_were_changed(folder):
    path = changed(folder, "UPDATE build SET source = 'kernel void quick() {}'")
    with Store.read(path) as store:
        store.kernels(store.rows()[0].id)


@case
def database_with_too_long_a_name(folder):
    Store.read(folder / ("a" * 300))


@case
def campaign_of_no_samples(folder):
    lp.explore(MATMUL, 0, db=folder / "a.db")


@case
def campaign_whose_time_is_over(folder):
    lp.explore(DOUBLE, 1, db=folder / "a.db", time_limit=0)


@case
def campaign_larger_than_memory(folder):
    huge = lp.parse("def huge(xs: [1000000000]f32, n: i32) = xs |> reduce(add, 0)")
    with mock.patch("liftpy.explore.measure.inputs.available", return_value=8 << 30):
        lp.explore(huge, 1, db=folder / "a.db")


@case
def lock_that_cannot_be_written(folder):
    path = folder / "a.db"
    (folder / "a.db-lock").mkdir()
    Store.open(path, IDENTITY)


# --- commands -----------------------------------------------------------------------------------


def command(*arguments: object) -> None:
    """Runs a command; raises what made it end."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        if end.__context__ is not None:
            raise end.__context__ from end.__context__.__cause__
        raise


MORE_COMMANDS = {
    "command_export_of_no_candidate": ["export", "other.db", "-o", "b"],
    "command_export_of_an_empty_space": ["export", "tiny.lift", "--memory-limit", "1", "-o", "b"],
    "command_on_a_python_file": ["show", "mine.py"],
    "command_on_an_empty_python_file": ["show", "empty.py"],
    "command_on_a_missing_python_file": ["show", "none.py:tiny"],
    "command_on_another_name": ["show", "mine.py:number"],
    "command_on_no_python": ["show", "mine.txt.py:tiny"],
    "command_on_no_text": ["show", "bytes.lift"],
    "command_on_a_file_of_another_kind": ["show", "flat.npy"],
    "command_on_an_impossible_product": ["show", "matmul/0x1x1"],
    "command_on_open_sizes": ["space", "open.lift"],
    "command_on_a_size_that_cannot_be": ["compile", "open.lift", "--size", "n=7"],
    "command_derive_other": ["derive", "tiny.lift", "--set", "pad=fast"],
    "command_primitives_other": ["primitives", "spilt"],
    "command_prove_other": ["prove", "map_fussion"],
    "command_winograd_of_decimals": ["winograd", "--m", "2", "--points", "0,1,0.5"],
    "command_winograd_above_the_error": ["winograd", "--max-error", "1e-5"],
    "command_compile_into_a_file": ["compile", "tiny.lift", "-o", "tiny.lift"],
    "command_run_into_nothing": ["run", "tiny.lift", "--output", "none/y.npy"],
    "command_run_of_another_campaign": ["run", "sums.lift", "--db", "tiny.db"],
    "command_run_of_a_campaign_with_open_sizes": ["run", "open.lift", "--db", "tiny.db"],
    "command_run_of_no_parameter": ["run", "open.lift", "--input", "zs=flat.npy"],
    "command_plot_into_nothing": ["pareto", "tiny.db", "--plot", "none/front.png"],
    "command_front_within_too_little": ["pareto", "tiny.db", "--memory-limit", "1"],
    "command_replay_of_other_kernels": ["replay", "other.db", "KEY"],
    "command_explore_where_nothing_is": [
        *("explore", "tiny.lift", "--family", "direct"),
        *("--where", "kappa % 2 == 0", "--where", "kappa % 3 == 0"),
    ],
    "command_explore_in_too_little_memory": ["explore", "tiny.lift", "--memory-limit", "100"],
    "command_explore_a_window_too_large": ["explore", "open.lift", "--size", "n=7"],
    "command_derive_for_a_device_without_room": [
        *("derive", "tiny.lift", "--device", "profile:./tight.toml"),
    ],
    "command_explore_nothing": ["explore", "tiny.lift", "-n", "1", "--tolerance", "1e-30"],
    "command_explore_into_a_root": ["explore", "tiny.lift", "--db", "/"],
    **{f"command_{name}".replace(" ", "_"): line for name, line in COMMANDS.items()},
}
made: dict[str, Path] = {}


def databases(folder: Path) -> Path:
    """A campaign of one candidate, that of another version, and one with other kernels."""
    if not made:
        for file in ("tiny.db", "old.db", "other.db"):
            lp.explore(PROGRAM, 1, db=folder / file)
        with closing(sqlite3.connect(folder / "old.db")) as old, old:
            old.execute("UPDATE campaign SET version = '0.0.9'")
            seal(old)
        old.close()
        with closing(sqlite3.connect(folder / "other.db")) as other, other:
            other.create_function("digest", 1, digest)
            other.execute("UPDATE build SET source = source || '// by hand'")
            other.execute("UPDATE build SET source_sha = digest(source)")
            seal(other)
        other.close()
        made["folder"] = folder
    return made["folder"]


def by_command(name: str, line: list[str]) -> None:
    """A case of a command in a folder with files."""

    def run(folder: Path) -> object:
        for file, text in FILES.items():
            (folder / file).write_text(text)
        (folder / "tiny.lift").write_text(lp.show(PROGRAM))
        (folder / "open.lift").write_text(lp.show(DOT))
        (folder / "mine.py").write_text(
            f"import liftpy as lp\ntiny = lp.parse({lp.show(PROGRAM)!r})\nnumber = 3\n"
        )
        (folder / "empty.py").write_text("number = 3\n")
        tight = (FOLDER / "mali-g72.toml").read_text().replace("1073741824", "100")
        (folder / "tight.toml").write_text(tight)
        (folder / "bytes.lift").write_bytes(b"\xff\xfe")
        np.save(folder / "flat.npy", np.zeros(126, np.float32))
        np.save(folder / "doubles.npy", np.zeros((16, 7, 3), np.float64))
        words = line
        if any(word.endswith(".db") for word in line):
            for file in databases(folder).glob("*.db"):
                if file.parent != folder:
                    shutil.copy(file, folder / file.name)
        if "KEY" in line:
            key = Campaign.read(folder / "other.db").rows[0].id
            words = [key if word == "KEY" else word for word in line]
        return command(*words)

    CASES[name] = run


for known, words in MORE_COMMANDS.items():
    by_command(known, words)


# --- a cluster ----------------------------------------------------------------------------------


@case
def scheduler_that_is_not_there(_folder):
    connect(Workers("tcp://127.0.0.1:9", patience=0.2))


@case
def cluster_without_workers(_folder):
    with cluster() as address:
        connect(Workers(address, patience=1))


@case
def workers_without_the_resource(_folder):
    with cluster("one", resource="GPU") as address:
        connect(Workers(address, patience=1))


@case
def workers_with_different_devices(_folder):
    with cluster("one", "two") as address:
        connect(Workers(address, expected=2, patience=60))


@case
def fewer_workers_than_expected(_folder):
    with cluster("one") as address:
        connect(Workers(address, expected=2, patience=3))


@case
def worker_with_another_device_than_the_campaign(_folder):
    other = replace(DEFAULT_DEVICE, name="other")
    with cluster("one") as address:
        connect(Workers(address, patience=1), (other, (other,)))


@case
def inputs_that_another_numpy_makes_otherwise(_folder):
    with mock.patch("numpy.__version__", "2.0.0"):
        replace(Inputs.of(DOUBLE)[0], digest="", numpy="1.26.0").arrays()


@case
def storage_of_a_value_that_is_not_there(_folder):
    lp.with_storage(DOUBLE, {"ys": "bf16"})


@case
def storage_of_a_single_number(_folder):
    lp.with_storage(lp.parse("def f(x: f32, ys: [3]f32) = ys |> map(y => x * y)"), {"x": "bf16"})


@case
def storage_in_a_type_of_f64(_folder):
    lp.with_storage(DOUBLE, {"xs": "flyte48"})


@case
def storage_of_a_result(_folder):
    text = "def p(x: [64]f32) = let y = x |> map(v => v + 1) in y"
    space_of(lp.with_storage(lp.parse(text), {"y": "bf16"}), DEFAULT_DEVICE)


@case
def storage_of_doubles_in_a_quantised_format(_folder):
    lp.with_storage(lp.parse("def f(x: [3]f64) = x |> map(v => v * 2)"), {"x": "q8"})


@case
def storage_of_a_named_value_in_a_quantised_format(_folder):
    text = "def p(x: [64]f32) = let y = x |> map(v => v + 1) in y |> map(v => v * v)"
    lp.with_storage(lp.parse(text), {"y": "q8"})


@case
def storage_in_groups_that_rows_do_not_fill(_folder):
    text = "def f(w: [5][40]f32) = w |> map(row => row |> reduce(add, 0))"
    lp.with_storage(lp.parse(text), {"w": "q8_group"})


@case
def storage_in_groups_of_open_rows(_folder):
    text = "size n\ndef f(w: [5][n]f32) = w |> map(row => row |> reduce(add, 0))"
    lp.with_storage(lp.parse(text), {"w": "q8_group"})


@case
def storage_in_a_format_that_is_not_there(_folder):
    lp.parse("storage w: q9\ndef f(w: [3]f32) = w |> map(v => v * 2)")


@case
def parameter_of_a_quantised_format(_folder):
    lp.parse("def f(w: [3]q8) = w |> map(v => v * 2)")


@case
def array_on_a_device_without_a_queue(_folder):
    on_host("x", SimpleNamespace(base_data=None, queue=None))


@case
def points_given_twice(_folder):
    asked_points(["0,1/2", "2.2_0_1/3"])


@case
def points_of_no_rule(_folder):
    asked_points(["9.9_0_1"])


@case
def points_that_are_no_word(_folder):
    asked_points(["2.3_0_x"])


@case
def points_whose_rule_is_false(_folder):
    proved(next(iter(FALSE.values()))[0])


@case
def points_without_a_prover(_folder):
    given = asked_points(["0,1,-1,1/3,-1/3"])
    Bank(given).law(Bank(given).name("correlation_4_3"))


@case
def cluster_without_its_library(_folder):
    missing = ModuleNotFoundError("no dask", name="distributed")
    with mock.patch("importlib.import_module", side_effect=missing):
        connect(Workers("tcp://board:8786"))


@case
def plot_without_its_library(folder):
    with mock.patch.dict(sys.modules, {"matplotlib": None, "liftpy.explore.report.plot": None}):
        missing = ModuleNotFoundError("no matplotlib", name="matplotlib")
        with mock.patch("importlib.import_module", side_effect=missing):
            from liftpy.explore.report.tables import plot  # noqa: PLC0415

            plot(Campaign.read(stored(folder)), "peak", folder / "front.png")


@case
def offline_search_on_another_program(folder):
    other = Campaign.read(stored(folder))
    search_offline(other, space_of(MATMUL, DEFAULT_DEVICE), "random", 0, 10)


@case
def offline_search_of_several_stages(folder):
    stages = replace(space_of(STAGES, DEFAULT_DEVICE), members=())
    search_offline(Campaign.read(stored(folder)), stages, "random", 0, 10)


@case
def sample_of_a_family_that_has_nothing(_folder):
    space_of(STAGES, DEFAULT_DEVICE).sample(1, family="staged")


@case
def condition_over_stages_of_no_one_partition(_folder):
    space_of(STAGES, DEFAULT_DEVICE, where=["tile0 * result.tile0 <= 4"])


@case
def search_without_its_library(_folder):
    with mock.patch.dict(sys.modules, {"optuna": None}):
        sys.modules.pop("liftpy.explore.search.nsga2", None)
        named("nsga2")


@case
def page_of_a_profile_without_its_library(folder):
    names = ("liftpy.networks.profile_page", "liftpy.explore.report.document", "jinja2")
    with mock.patch.dict(sys.modules):
        for name in names:
            sys.modules.pop(name, None)
        sys.modules["jinja2"] = None
        write_page(None, None, folder / "profile.html")


@case
def report_in_no_folder(folder):
    page(Campaign.read(stored(folder)), "peak", folder / "none" / "report.html")


@case
def energy_costs_that_lack_a_type(folder):
    table = json.loads((COSTS / "45nm.json").read_text())
    del table["multiply"]["f16"]
    (folder / "own.json").write_text(json.dumps(table))
    energy_costs(folder / "own.json")


@case
def energy_costs_without_a_source(folder):
    table = json.loads((COSTS / "45nm.json").read_text())
    table["memory"] = {"value": 7}
    (folder / "own.json").write_text(json.dumps(table))
    energy_costs(folder / "own.json")


@case
def front_of_energy_that_is_not_computed(folder):
    Campaign.read(stored(folder)).pareto("energy")


@case
def energy_costs_in_no_file(folder):
    energy_costs(folder / "none.json")


@case
def result_that_is_wrong(folder):
    (folder / "tiny.lift").write_text(lp.show(PROGRAM))
    with mock.patch("liftpy.cli.running.expected") as meaning:
        from liftpy.explore.measure.meaning import expected  # noqa: PLC0415

        meaning.side_effect = lambda *given: expected(*given, tolerance=1e-30)
        command("run", "tiny.lift")

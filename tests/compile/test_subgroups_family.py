"""The family `subgroups`: folds by a group or by each of its subgroups, of any size."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import cache

import numpy as np
import pyopencl as cl
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import BuildFailed
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.ir.types import EXTENSIONS, SCALARS, SUBGROUPS
from liftpy.language.text.program import parse
from liftpy.loops.tree import (
    Barrier,
    statements_in,
)
from liftpy.opencl.arguments import DTYPES
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import (
    BUILD_OPTIONS,
    NEWER,
    OLDER,
    Session,
    options_of,
    with_standard,
)
from liftpy.opencl.subgroups import HAS_SUBGROUPS
from liftpy.pipeline import Compilation, compile_candidate, compile_program
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategies.families.subgroups import FoldsOfSubgroups
from tests.compile.test_tree_family import CASES
from tests.draws import unproved
from tests.loops.interpreted import interpreted, stages_of
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of
from tests.subsample import subsample

FAMILY = "subgroups"
FOLDS = [
    name
    for name, case in CASES.items()
    if not case.scans and name != "an operator that does not commute"
]
"""The programs of `tree` that subgroups can fold."""
ROWS_OF = [name for name in FOLDS if name not in ("a scalar product", "two results")]
"""Those of which single subgroups can compute rows."""
BY_ROWS = {"family": FAMILY, "level": "subgroup"}


@cache
def space(name: str, device: Device) -> Space:
    """Candidates of a case."""
    return Space.of(CASES[name].program, device, some_of(CASES[name].program, FAMILY, 4))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FOLDS)
def test_every_drawn_candidate_is_right(runtime: Device, name: str) -> None:
    check_some(name, runtime, 3, seed=5)


def check_some(name: str, device: Device, count: int, seed: int, after: str = "") -> None:
    """So many candidates of a case are right, with a text after their sources."""
    case = CASES[name]
    with Session(device) as session:
        for candidate in space(name, device).sample(count, seed):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(replace(module, source=module.source + after)) as loaded:
                loaded.set_constants({})
                case.check(loaded.run(case.arrays, poison=True), candidate.label)


@pytest.mark.parametrize("name", FOLDS)
def test_the_size_of_subgroups_does_not_change_the_result(name: str) -> None:
    """A fold has one barrier, or two if the next fold reads what others have written."""
    case = CASES[name]
    drawn = space(name, DEFAULT_DEVICE).sample(4, seed=2)
    for candidate in [c for c in drawn if ("level", "subgroup") not in c.skeleton.choices][:2]:
        made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
        for size in (1, 3, 8, 16, 256):
            case.check(interpreted(made, made.optimized, case.arrays, size), candidate.label)
        assert not unproved(made.optimized)
        first = next(code for code in made.optimized if code.locals)
        barriers = sum(isinstance(part, Barrier) for part in statements_in(first.block))
        assert case.trees <= barriers <= 2 * case.trees
        assert first.local_size == (candidate.assignment["group"], 1, 1)


def test_each_pass_keeps_the_result() -> None:
    case = CASES["softmax of heads"]
    (candidate,) = space("softmax of heads", DEFAULT_DEVICE).sample(1, seed=4)
    made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
    for name, kernels in stages_of(made):
        case.check(interpreted(made, kernels, case.arrays, 5), name)


@cache
def rows_by_subgroups(name: str, sigma: int, group: int) -> Compilation:
    """A case, with rows by the subgroups of groups of so many work-items and rows."""
    settings = {**BY_ROWS, "sigma": sigma, "group": group}
    found = candidate_of(CASES[name].program, DEFAULT_DEVICE, settings)
    return compile_program(found.skeleton.at(found.point))


def sizes_of_rows(name: str) -> list[tuple[int, int]]:
    """Some rows and work-items of groups."""
    form = FAMILIES[FAMILY].match(CASES[name].program)
    assert isinstance(form, FoldsOfSubgroups)
    most = form.rows
    return [(1, 1), (1, 37), (most, 16), (most, 256)]


@pytest.mark.parametrize("name", ROWS_OF)
def test_subgroups_of_any_size_compute_rows_without_barriers(name: str) -> None:
    case = CASES[name]
    for sigma, group in sizes_of_rows(name):
        made = rows_by_subgroups(name, sigma, group)
        for size in (1, 3, 8, 16, 256):
            got = interpreted(made, made.optimized, case.arrays, size)
            case.check(got, f"{sigma}, {group}, {size}")
        assert not unproved(made.optimized)
        assert {code.local_size for code in made.optimized} == {(group, 1, 1)}
        assert not any(code.locals for code in made.optimized)
        every = (s for code in made.optimized for s in statements_in(code.block))
        assert not any(isinstance(s, Barrier) for s in every)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ROWS_OF)
def test_rows_by_subgroups_are_right(runtime: Device, name: str) -> None:
    case = CASES[name]
    with Session(runtime) as session:
        for sigma, group in sizes_of_rows(name):
            with session.load(rows_by_subgroups(name, sigma, group).module) as loaded:
                loaded.set_constants({})
                case.check(loaded.run(case.arrays, poison=True), f"{sigma}, {group}")


ROWS = """
    fun folded(a: {t}, x: {t}) = {f} laws associative, commutative, neutral {neutral}
    def rows(a: [3][{length}]{t}) = a |> map(row => row |> reduce(folded, {start}))
"""
SUMS = {
    "f32": ("a + x", "0", 3, np.add),
    "f64": ("min(x, a)", "inf", 1e300, np.minimum),
    "i32": ("a + x", "0", 5, np.add),
    "u32": ("max(a, x)", "0", 7, np.maximum),
    "i64": ("x + a", "0", -7, np.add),
    "f16": ("max(x, a)", "-inf", -60000, np.maximum),
    "u64": ("max(x, a)", "0", 2**40, np.maximum),
}
"""An operator for each type that subgroups fold, and what it begins with; sums of integers wrap."""
LENGTHS = (2, 3, 7, 31, 127, 509)


@pytest.mark.parametrize("t", SUMS)
def test_rows_of_prime_lengths_are_folded_by_groups_of_any_size(runtime: Device, t: str) -> None:
    extension = EXTENSIONS.get(SCALARS[t])
    if extension not in (None, *runtime.extensions):
        pytest.skip(f"{runtime.platform} has no {t}")
    f, neutral, start, ufunc = SUMS[t]
    dtype, rng = np.dtype(DTYPES[t]), np.random.default_rng(3)
    most, drawn = (999, np.int64) if t[0] == "f" else (np.iinfo(dtype).max, dtype)
    for length in subsample(LENGTHS, runtime):
        a = rng.integers(1, most, (3, length), drawn).astype(dtype)
        wanted = ufunc.reduce(a, axis=1, dtype=dtype, initial=dtype.type(start))
        program = parse(ROWS.format(length=length, t=t, f=f, neutral=neutral, start=start))
        for group in {min(length, group) for group in (2, length // 2 + 2, 64, 97)}:
            for strided in ("yes", "no"):
                settings = {"family": FAMILY, "strided": strided, "group": group}
                with closing(lp.compile(program, settings, device=runtime)) as kernel:
                    np.testing.assert_array_equal(kernel(a), wanted, f"{length} by {settings}")
        for sigma, group in ((1, 97), (3, 64)):
            settings = {**BY_ROWS, "sigma": sigma, "group": group}
            with closing(lp.compile(program, settings, device=runtime)) as kernel:
                np.testing.assert_array_equal(kernel(a), wanted, f"{length} by {settings}")


def row_sums(device: Device) -> Module:
    """A module of row sums by groups of 53 work-items."""
    program = CASES["rows"].program
    chosen = candidate_of(program, device, {"family": FAMILY, "strided": "yes", "group": 53})
    return compile_program(chosen.skeleton.at(chosen.point)).module


def test_the_code_has_one_barrier_and_a_fold_for_devices_without_subgroups(golden) -> None:
    golden(row_sums(DEFAULT_DEVICE).source, "cl")


REQUIRED = f"#ifndef {HAS_SUBGROUPS}\n#error no subgroups\n#endif\n"


def required(module: Module) -> Module:
    """A module that cannot be built without subgroups."""
    return replace(module, source=module.source + REQUIRED)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FOLDS)
def test_devices_fold_by_their_subgroups(subgroups: Device, name: str) -> None:
    check_some(name, subgroups, 4, seed=6, after=REQUIRED)


def can_choose(device: Device, size: int, group: int) -> None:
    """Skip a test if an attribute cannot choose this size of subgroups for its groups."""
    if SUBGROUPS[1] not in device.extensions:
        pytest.skip(f"{device.platform} has no attribute for the size")
    if "Intel" not in device.platform and group % size:
        pytest.skip(f"with the attribute, {device.platform} does not count a smaller last subgroup")


@pytest.mark.parametrize("level", [{"strided": "yes"}, {"level": "subgroup", "sigma": 1}])
@pytest.mark.parametrize("size", [4, 8, 32, 64])
def test_they_fold_by_subgroups_of_other_sizes(
    subgroups: Device, size: int, level: dict[str, str | int]
) -> None:
    """An attribute chooses the size; generated code leaves it to the driver."""
    can_choose(subgroups, size, 37)
    case = CASES["normalised"]
    settings = {"family": FAMILY, **level, "group": 37}
    chosen = candidate_of(case.program, subgroups, settings)
    module = required(compile_program(chosen.skeleton.at(chosen.point)).module)
    attribute = f"__kernel __attribute__((intel_reqd_sub_group_size({size})))"
    module = replace(module, source=module.source.replace("__kernel", attribute))
    with Session(subgroups) as session:
        program = session.built(module)
        kernel = cl.Kernel(program, module.launches[0].function)
        most = cl.kernel_sub_group_info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE
        assert kernel.get_sub_group_info(session.opened.handle, most, [37, 1, 1]) == size
        loaded = session.load(module)
        loaded.set_constants({})
        case.check(loaded.run(case.arrays), str(size))


@pytest.mark.parametrize("standard", [OLDER, NEWER])
def test_they_are_compiled_as_opencl_c_2_and_3(subgroups: Device, standard: str) -> None:
    """Khronos's extension is used in one of the two, the feature only in OpenCL C 3."""
    if standard == OLDER and not {*SUBGROUPS[:2]} & {*subgroups.extensions}:
        pytest.skip(f"{subgroups.platform} has subgroups in OpenCL C 3 only")
    case = CASES["softmax of heads"]
    settings = {"family": FAMILY, "strided": "no", "arrays": "local", "group": 23}
    chosen = candidate_of(case.program, subgroups, settings)
    module = compile_program(chosen.skeleton.at(chosen.point)).module
    options = (*with_standard(BUILD_OPTIONS, standard), f"-D{HAS_SUBGROUPS}")
    with Session(subgroups, options) as session:
        loaded = session.load(required(module))
        loaded.set_constants({})
        case.check(loaded.run(case.arrays), standard)


def test_a_device_without_subgroups_folds_one_by_one(pocl: Device) -> None:
    if {*SUBGROUPS} & {*pocl.extensions}:
        pytest.skip(f"PoCL {pocl.driver_version} has subgroups")
    module = row_sums(pocl)
    with Session(pocl) as session:
        with pytest.raises(BuildFailed, match="cannot compile") as refused:
            session.load(required(module))
        assert "no subgroups" in refused.value.log
        loaded = session.load(module)
        loaded.set_constants({})
        CASES["rows"].check(loaded.run(CASES["rows"].arrays), "rows")


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint() -> None:
    """Oclgrind has no subgroups: each work-item is one, so each has a result in local memory."""
    jobs, cases = [], []
    for name in FOLDS:
        (candidate,) = space(name, DEFAULT_DEVICE).sample(1, seed=7)
        module = compile_candidate(candidate.skeleton, candidate.assignment)
        jobs.append((module, CASES[name].arrays))
        cases.append((candidate.label, CASES[name]))
    for name in ROWS_OF:
        for sigma, group in sizes_of_rows(name)[1:3]:
            jobs.append((rows_by_subgroups(name, sigma, group).module, CASES[name].arrays))
            cases.append((f"{name}: {sigma}, {group}", CASES[name]))
    for (label, case), (got, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], label
        case.check(got, label)


def test_a_driver_compiles_a_newer_opencl_c_for_subgroups_of_khronos(device: Device) -> None:
    """OpenCL C 2 does not know the option for OpenCL C 3; Intel's functions need neither.

    A device with the feature gets OpenCL C 3, even if its driver reports OpenCL C 1.2.
    """
    module, macro = row_sums(DEFAULT_DEVICE), f"-D{HAS_SUBGROUPS}"
    found = replace(device, extensions=SUBGROUPS[:1])
    for version, standard in (("1.2", NEWER), ("2.0", OLDER), ("2.1", OLDER), ("3.0", NEWER)):
        known = replace(found, opencl_c=f"OpenCL C {version} of a driver")
        assert options_of(module, known, BUILD_OPTIONS) == (standard, *BUILD_OPTIONS[1:], macro)
    for version in ("1.2", "2.0", "3.0"):
        feature = replace(device, extensions=SUBGROUPS[2:], opencl_c=f"OpenCL C {version}")
        assert options_of(module, feature, BUILD_OPTIONS) == (NEWER, *BUILD_OPTIONS[1:], macro)
    for names, defined in (((), ()), (SUBGROUPS[1:2], (macro,))):
        known = replace(device, extensions=names)
        assert options_of(module, known, BUILD_OPTIONS) == (*BUILD_OPTIONS, *defined)


def test_the_family_is_in_the_spaces_of_gpus_with_subgroups() -> None:
    for known in SUBGROUPS:
        gpu = replace(DEFAULT_DEVICE, extensions=(known,))
        assert FAMILY in families_for(gpu)
        assert FAMILY not in families_for(replace(gpu, type="CPU"))
    assert FAMILY not in families_for(DEFAULT_DEVICE)
    assert FAMILY in families_for(DEFAULT_DEVICE, [FAMILY])


NONE = "subgroups cannot compute its folds"
OTHER = "subgroups: they fold by +, max, min of f16, f32, f64, i32, i64, u32, u64"
LAWS = "laws associative, commutative, neutral"
PRODUCT = f"fun product(a: f32, x: f32) = a * x {LAWS} 1\n"
NARROW = f"fun sum(a: i16, x: i16) = a + x {LAWS} 0\n"
REFUSED = {
    CASES["an operator that does not commute"].text: (
        f"{NONE} (reduce_exchange: later is not declared commutative)"
    ),
    f"{PRODUCT}def p(xs: [97]f32) = xs |> reduce(product, 1)": f"{NONE} ({OTHER})",
    f"{NARROW}def p(xs: [97]i16) = xs |> reduce(sum, 0)": f"{NONE} ({OTHER})",
    "def p(xs: [97]f32) = xs |> scan(add, 0)": "a scan makes the result, and subgroups only fold",
    "def p(xs: [1]f32) = xs |> reduce(add, 0)": "a group has at least 2 items for 1 element",
    "def p(xs: [97]f32) = xs |> map(x => x + 1)": "no fold makes the result or a part of each row",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_stages_are_refused_with_the_reason(text: str) -> None:
    assert skeletons_of(FAMILIES[FAMILY], parse(text)) == f"{FAMILY}: {REFUSED[text]}"

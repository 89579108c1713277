"""The family `broadcast`: rows in registers of subgroups of any size, and without subgroups."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pyopencl as cl
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import BuildFailed
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.ir.program import Program
from liftpy.ir.types import SUBGROUPS
from liftpy.language.text.program import parse
from liftpy.loops.together import has_broadcast
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.opencl.subgroups import HAS_SUBGROUPS
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.workloads import Convolution, convolution, workload
from tests.compile.test_cooperative_family import CASES, PRODUCT
from tests.compile.test_subgroups_family import can_choose
from tests.draws import unproved
from tests.loops.interpreted import interpreted, stages_of
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of, words_of

FAMILY = "broadcast"
REQUIRED = f"#ifndef {HAS_SUBGROUPS}\n#error no subgroups\n#endif\n"


@cache
def some_skeletons(program: Program) -> list[Skeleton]:
    """Some of the family's skeletons of a program, for all devices."""
    return some_of(program, FAMILY, 6)


@cache
def space(name: str, device: Device) -> Space:
    """Their candidates of a case."""
    program = CASES[name].program
    return Space.of(program, device, some_skeletons(program))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(CASES))
def test_every_drawn_candidate_is_right(runtime: Device, name: str) -> None:
    check_some(name, runtime, seed=5)


def check_some(name: str, device: Device, seed: int, after: str = "") -> None:
    """Some candidates of a case are right, with a text after their sources."""
    case = CASES[name]
    with Session(device) as session:
        for candidate in space(name, device).sample(4, seed):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(replace(module, source=module.source + after)) as loaded:
                loaded.set_constants({})
                got = loaded.run(case.arrays, poison=True)
            np.testing.assert_array_equal(got, case.expected, err_msg=candidate.label)
            assert module.memory.local == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(CASES))
def test_the_size_of_subgroups_does_not_change_the_result(name: str) -> None:
    case = CASES[name]
    for candidate in space(name, DEFAULT_DEVICE).sample(2, seed=2):
        sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
        made = compile_program(candidate.skeleton.at(sizes))
        assert made.optimized[0].local_size == (sizes["group"], 1, 1)
        block = sizes["sigma"] * sizes["kappa"]
        assert made.module.memory.private == 4 * block
        assert not unproved(made.optimized)
        for size in (1, 2, 3, 8, 64):
            got = interpreted(made, made.optimized, case.arrays, size)
            np.testing.assert_array_equal(got, case.expected, f"{candidate.label} by {size}")


def test_each_pass_keeps_the_result() -> None:
    case = CASES["tiles overlap"]
    (candidate,) = space("tiles overlap", DEFAULT_DEVICE).sample(1, seed=4)
    made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
    for name, kernels in stages_of(made):
        np.testing.assert_array_equal(
            interpreted(made, kernels, case.arrays, 5), case.expected, name
        )


def product_of(device: Device, m: int = 12, k: int = 24, n: int = 96, **sizes: int) -> Module:
    """A module of a product of matrices, by groups of 24 work-items unless `sizes` say another."""
    program = parse(PRODUCT.format(m=m, k=k, n=n))
    given = {"sigma": 3, "kappa": 4, "group": 24, "chunk": 8, "v": 4, **sizes}
    chosen = candidate_of(program, device, {"family": FAMILY, "chunks": "even", **given})
    return compile_candidate(chosen.skeleton, chosen.assignment)


def matrices(m: int = 12, k: int = 24, n: int = 96) -> dict[str, np.ndarray]:
    """Arrays of distinct small integers, so that sums are exact."""
    a = (np.arange(m * k) * 13 % 499 - 249).reshape(m, k).astype(np.float32)
    b = (np.arange(k * n) * 7 % 487 - 243).reshape(k, n).astype(np.float32)
    return {"a": a, "b": b}


def test_the_code_has_no_barrier_and_a_version_for_small_subgroups(golden) -> None:
    golden(product_of(DEFAULT_DEVICE).source, "cl")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(CASES))
def test_devices_broadcast_in_their_subgroups(subgroups: Device, name: str) -> None:
    check_some(name, subgroups, seed=6, after=REQUIRED)


@pytest.mark.parametrize("size", [0, 4, 8, 32, 64])
@pytest.mark.parametrize("group", [1, 4, 8, 24])
def test_they_broadcast_in_subgroups_of_any_size(subgroups: Device, size: int, group: int) -> None:
    """An attribute chooses the size; generated code leaves it to the driver."""
    if size:
        can_choose(subgroups, size, group)
    arrays, chunk = matrices(), min(8, group)
    module = product_of(subgroups, group=group, chunk=chunk)
    source = module.source + REQUIRED
    if size:
        attribute = f"__kernel __attribute__((intel_reqd_sub_group_size({size})))"
        source = source.replace("__kernel", attribute)
    with Session(subgroups) as session:
        loaded = session.load(replace(module, source=source))
        loaded.set_constants({})
        got = loaded.run(arrays, poison=True)
        np.testing.assert_array_equal(got, arrays["a"] @ arrays["b"])
        if size:
            program = session.built(replace(module, source=source))
            kernel = cl.Kernel(program, module.launches[0].function)
            most = cl.kernel_sub_group_info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE
            found = kernel.get_sub_group_info(session.opened.handle, most, [group, 1, 1])
            assert found in {size, group}  # PoCL 6 reports the group's size


def test_a_device_without_subgroups_reads_the_array(pocl: Device) -> None:
    if {*SUBGROUPS} & {*pocl.extensions}:
        pytest.skip(f"PoCL {pocl.driver_version} has subgroups")
    module, arrays = product_of(pocl), matrices()
    with Session(pocl) as session:
        with pytest.raises(BuildFailed) as refused:
            session.load(replace(module, source=module.source + REQUIRED))
        assert "no subgroups" in refused.value.log
        loaded = session.load(module)
        loaded.set_constants({})
        np.testing.assert_array_equal(loaded.run(arrays), arrays["a"] @ arrays["b"])


def test_every_subgroup_holds_rows_of_one_element() -> None:
    """The size of a subgroup is not tested: PoCL 6 compiles such tests in exponential time."""
    module = product_of(DEFAULT_DEVICE, chunk=1, v=1)
    assert "subgroup_broadcast_float(" in module.source
    assert "sgsz0" not in module.source


@pytest.mark.oclgrind
def test_oclgrind_has_no_complaint() -> None:
    """Oclgrind has no subgroups: each work-item is one."""
    jobs, cases = [], []
    for name, case in CASES.items():
        for candidate in space(name, DEFAULT_DEVICE).sample(1, seed=7):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            jobs.append((module, case.arrays))
            cases.append((candidate.label, case))
    for (label, case), (got, complaints) in zip(cases, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], label
        np.testing.assert_array_equal(got, case.expected, err_msg=label)


def test_a_convolution_with_channels_last_is_right(runtime: Device) -> None:
    """A subgroup holds a part of a window; guards of padding are tested when it is loaded."""
    layer = Convolution(16, 5, 7, 12, (3, 3), (1, 1), (1, 1, 1, 1))
    program = convolution(layer, "layer")
    x, w, b = (
        ((np.arange(np.prod(shape)) * 13 % 97) - 48).reshape(shape).astype(np.float32)
        for shape in ((5, 7, 16), (12, 3, 3, 16), (12,))
    )
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    expected = np.einsum("ijchw,khwc->ijk", windows, w.astype(np.float64)) + b
    with Session(runtime) as session:
        for candidate in Space.of(program, runtime, some_skeletons(program)).sample(4, seed=3):
            made = compile_program(candidate.skeleton.at(dict(candidate.sizes)))
            module = made.module
            with session.load(module) as loaded:
                constants = {buffer.name for buffer in module.buffers if buffer.role == "constant"}
                given = {p.name: a for p, a in zip(program.params, (x, w, b), strict=True)}
                loaded.set_constants({n: a for n, a in given.items() if n in constants})
                got = loaded.run(
                    {n: a for n, a in given.items() if n not in constants}, poison=True
                )
            np.testing.assert_array_equal(got, expected, err_msg=candidate.label)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", ["mali-g610", "adreno-740", "intel-xe"])
@pytest.mark.parametrize("program", ["matmul/96x63x80", "vgg16/24:nchw"])
def test_draws_keep_the_limits_of_a_profile(name: str, program: str) -> None:
    """A row is no longer than a group."""
    device = find_device(f"profile:{name}")
    of = workload(program)
    drawn = Space.of(of, device, some_skeletons(of)).sample(60, seed=11)
    assert len({c.label for c in drawn}) > 45
    for candidate in drawn:
        sizes = {k: v for k, v in candidate.assignment.items() if isinstance(v, int)}
        assert sizes["chunk"] <= sizes["group"]
        assert sizes["kappa"] % sizes["v"] == 0
        assert sizes["group"] <= device.max_work_group_size


def test_every_skeleton_broadcasts() -> None:
    program = CASES["tiles overlap"].program
    assert ("chunks", "padded") not in words_of(program, FAMILY)
    assert not any(name in ("buffers", "gap") for name, _ in words_of(program, FAMILY))
    for candidate in space("tiles overlap", DEFAULT_DEVICE).sample(8, seed=1):
        sizes = dict(candidate.sizes)
        made = compile_program(candidate.skeleton.at(sizes))
        if sizes["chunk"] > 1:
            assert has_broadcast(made.optimized[0].block), candidate.label


def test_the_family_is_in_the_spaces_of_gpus_with_subgroups() -> None:
    for known in SUBGROUPS:
        gpu = replace(DEFAULT_DEVICE, extensions=(known,))
        assert FAMILY in families_for(gpu)
        assert FAMILY not in families_for(replace(gpu, type="CPU"))
    assert FAMILY not in families_for(DEFAULT_DEVICE)
    assert FAMILY in families_for(DEFAULT_DEVICE, [FAMILY])


def test_elements_without_a_broadcast_are_refused_with_the_reason() -> None:
    text = """
    def p(a: [6][8]i16, b: [8][8]i16) = a |> map(row => b |> map(column =>
      zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))"""
    answer = skeletons_of(FAMILIES[FAMILY], parse(text))
    assert answer == (
        "broadcast: subgroups hold elements of type f16, f32, f64, i32, i64, u32, u64, and OpenCL "
        "has no broadcast of i16"
    )

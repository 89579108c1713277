"""Kernels as the model reads them: against a cache that is simulated on the loop IR itself."""

from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.space.space import Space
from liftpy.ir.types import size_bytes
from liftpy.loops.tree import (
    For,
    If,
    Let,
    Store,
    accesses_of,
)
from liftpy.opencl.devices import find_device
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import chain_of, loops_of
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.reading import work_of
from liftpy.traffic.reuse import Reuse, Traffic, warm
from liftpy.traffic.time import modelled
from liftpy.workloads.convolution import convolution
from liftpy.workloads.networks import square
from tests.staged import by_definition
from tests.traffic.lru import fetched

LINE = 64
PROCESSOR = replace(DEFAULT_DEVICE, type="CPU", vector_width=8, compute_units=1)


def codes_of(candidate):
    cut = chain_of(candidate.skeleton.at(candidate.point))
    return loops_of(cut.run, buffer_names(cut))


def items(code):
    """The ids of each work-item, dimension 0 fastest, groups one after the other."""
    groups = [g // s for g, s in zip(code.global_size, code.local_size, strict=True)]
    for w2 in range(groups[2]):
        for w1 in range(groups[1]):
            for w0 in range(groups[0]):
                for l2 in range(code.local_size[2]):
                    for l1 in range(code.local_size[1]):
                        for l0 in range(code.local_size[0]):
                            at = {}
                            for d, (w, i) in enumerate(((w0, l0), (w1, l1), (w2, l2))):
                                at[f"wid{d}"], at[f"lid{d}"] = w, i
                                at[f"gid{d}"] = w * code.local_size[d] + i
                            yield at


def touched(block, at):
    for s in block:
        if isinstance(s, For):
            first = s.first if isinstance(s.first, int) else at[s.first]
            for k in range(first, s.bound, s.step):
                yield from touched(s.body, at | {s.counter: k})
        elif isinstance(s, If):
            yield from touched(s.then, at)
            yield from touched(s.otherwise, at)
        elif isinstance(s, Let | Store):
            for cell, _ in accesses_of(s):
                if cell.memory.space != "private":
                    size = size_bytes(cell.type).value({})
                    first = cell.index.evaluate(at) * size
                    last = first + cell.width * size - 1
                    yield from (
                        (cell.memory.name, n) for n in range(first // LINE, last // LINE + 1)
                    )


def in_order(code):
    """The lines that a kernel touches, one work-item after another."""
    return [line for place in items(code) for line in touched(code.block, place)]


PROGRAMS = {
    "matmul": lp.workload("matmul/12x32x16"),
    "convolution": convolution(square(6, 6, 6), "c"),
    "nchw": convolution(replace(square(6, 6, 6), layout="nchw"), "c"),
}


FAMILIES = {
    "matmul": ("plain", "direct"),
    "convolution": ("plain", "direct", "local", "staged"),
    "nchw": ("plain", "direct"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "family"), [(name, family) for name, known in FAMILIES.items() for family in known]
)
def test_kernels_fetch_what_a_cache_fetches(name, family):
    """Each line once if everything fits; if a cache holds little, about as many lines in total.

    An array whose data nearly fits is the difference: a cache keeps a part of it. Guards count as
    true: padding is read, outside of the array.
    """
    space = Space.whole(PROGRAMS[name], PROCESSOR, families=[family], made=by_definition)
    for candidate in space.sample(2, 5):
        check(candidate)


def check(candidate):
    for code in codes_of(candidate):
        work = work_of(code, 1)
        reuse, lines = Reuse(work.nest, LINE), in_order(code)
        known, seen = reuse.fetched(1 << 24), fetched(lines, 1 << 24, LINE)
        for array, count in seen.items():
            assert count / 1.35 <= known[array] <= 1.35 * count, (candidate, array, known, seen)
        some, others = reuse.fetched(2048), fetched(lines, 2048, LINE)
        ratio = sum(some.values()) / sum(others.values())
        assert 1 / 3 <= ratio <= 3, (candidate, some, others)


HARDWARE = hardware_of(find_device("profile:xeon-silver-4208"))


@pytest.mark.parametrize(
    ("units", "held", "served", "stored"),
    [
        (16, 4 << 20, (5, 3, 20), 7),  # fits into no cache
        (16, 3 << 20, (5, 23, 0), 0),  # into L3, which 16 units share
        (16, 1 << 10, (5, 23, 0), 0),  # into L2 too, but two units share each
        (2, 1 << 10, (28, 0, 0), 0),
    ],
)
def test_what_fits_is_there_from_the_run_before(units, held, served, stored):
    assert warm(Traffic((5, 3, 20), 7), held, HARDWARE, units) == Traffic(served, stored)
    past = Traffic((0, 0, 0), 7)
    assert warm(past, held, HARDWARE, units) == past


def time_of(text, assignment, device=PROCESSOR):
    candidate = lp.space(text, device).candidate(assignment)
    lowered = candidate.skeleton.at(candidate.point)
    return modelled(lowered, device, hardware_of(device)).kernels[-1]


MATMUL = lp.workload("matmul/64x64x64")
BLOCK = {"family": "direct", "level": "glb", "pad": "fused"}


def test_wide_vectors_take_fewer_operations():
    wide, narrow = (time_of(MATMUL, {**BLOCK, "kappa": 8, "sigma": 8, "v": v}) for v in (8, 4))
    assert narrow.operations == 2 * wide.operations


def test_few_sums_wait_for_each_other():
    """8 sums fill two pipes of 4 cycles; 2 do not."""
    many, few = (time_of(MATMUL, {**BLOCK, "kappa": 8, "sigma": sigma, "v": 8}) for sigma in (8, 2))
    assert few.operations == 4 * many.operations


def test_sums_beyond_the_registers_are_spilled():
    fitting, spilled = (
        time_of(MATMUL, {**BLOCK, "kappa": kappa, "sigma": 8, "v": 8}) for kappa in (8, 64)
    )
    assert spilled.loads > 1.5 * fitting.loads


def test_two_units_take_half_the_time():
    both = replace(PROCESSOR, compute_units=2)
    choice = {"family": "plain", "map": "glb1.glb0", "pad": "fused"}
    one, two = (time_of(MATMUL, choice, device) for device in (PROCESSOR, both))
    assert (one.units, two.units) == (1, 2)
    assert two.operations == one.operations / 2
    assert two.issued == one.issued

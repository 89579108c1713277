"""Conversions of every value of 8- and 16-bit storage types, at every length up to 67, unaligned.

On Intel's runtime and PoCL, and under Oclgrind, which reports accesses outside of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import SCALARS, STORAGE, ScalarType
from liftpy.language.text.program import parse
from liftpy.opencl.storage import BLOCK, is_split
from liftpy.pipeline import compile_candidate
from liftpy.primitives.vector import MAX_LANES
from tests.oclgrind import check_all_under_oclgrind

NARROW = [t for t in STORAGE if RECORDS[t.name].bits <= 16]
LENGTHS = range(1, 68)
LANES = ({"vector": "no"}, {"vector": "yes", "v": 4, "tile0": 4})
Run = Callable[[Program, Sequence[tuple[Candidate, np.ndarray]]], list[np.ndarray]]


def run_on(
    device: Device, program: Program, jobs: Sequence[tuple[Candidate, np.ndarray]]
) -> list[np.ndarray]:
    """The results of candidates on a device."""
    return [lp.compile(program, c.assignment, device=device)(x) for c, x in jobs]


def run_under_oclgrind(
    program: Program, jobs: Sequence[tuple[Candidate, np.ndarray]]
) -> list[np.ndarray]:
    """The results under Oclgrind, which must report nothing."""
    (param,) = program.params
    modules = [(compile_candidate(c.skeleton, c.point), {param.name: x}) for c, x in jobs]
    checked = check_all_under_oclgrind(modules)
    assert [complaint for _, found in checked for complaint in found] == []
    return [result for result, _ in checked]


def every_bit_pattern(t: ScalarType) -> np.ndarray:
    """Every value of a type of at most 16 bits."""
    return np.arange(1 << RECORDS[t.name].bits).astype(RECORDS[t.name].numpy)


def every_rounding(t: ScalarType) -> np.ndarray:
    """Every value of a type in its base, the middles between neighbours, and what is next to these.

    Subnormal numbers of the base are left out: a device may flush them to 0.
    """
    base = np.dtype(RECORDS[STORAGE[t].name].numpy).type
    read = lp.from_storage(every_bit_pattern(t), t)
    exact = read[np.isfinite(read)]
    with np.errstate(over="ignore"):
        above = np.sort(np.unique(exact)).astype(np.float64)
        middles = ((above[1:] + above[:-1]) / 2).astype(base)
        beside = [np.nextafter(middles, base(s * np.inf)) for s in (-1, 1)]
    found = np.concatenate([read, middles, *beside])
    return found[~((found != 0) & (np.abs(found) < np.finfo(base).tiny))]


def check_every_value(t: ScalarType, run: Run, step: int = 1) -> None:
    """Kernels convert every value in both directions as NumPy does, with one lane and four."""
    base = STORAGE[t]
    for given, verb in ((every_bit_pattern(t), base), (every_rounding(t), t)):
        shift = np.random.default_rng(0).integers(step)
        some = given[shift::step]
        x = some[: len(some) // 4 * 4]
        kind = t if verb == base else base
        program = parse(f"def p(x: [{len(x)}]{kind}) = x |> map(v => {verb}(v))")
        spaces = (space_of(program, DEFAULT_DEVICE, fixed=words) for words in LANES)
        jobs = [(space.candidate({}), x) for space in spaces]
        wanted = lp.from_storage(x, t) if verb == base else lp.to_storage(x, t)
        for found in run(program, jobs):
            if verb == base:
                np.testing.assert_array_equal(found, wanted)
                continue
            number = ~np.isnan(x)
            np.testing.assert_array_equal(found[number], wanted[number])
            one, other = (np.isnan(lp.from_storage(bits, t)[~number]) for bits in (found, wanted))
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_kernels_convert_every_value(runtime: Device, t: ScalarType) -> None:
    check_every_value(t, partial(run_on, runtime))


@pytest.mark.oclgrind
@pytest.mark.sampled(3)
@pytest.mark.parametrize("t", NARROW, ids=str)
def test_oclgrind_converts_every_value(request: pytest.FixtureRequest, t: ScalarType) -> None:
    """All values with --every-case, otherwise one in sixteen."""
    every = request.config.getoption("--every-case")
    check_every_value(t, run_under_oclgrind, 1 if every or RECORDS[t.name].bits <= 8 else 16)


def check_length(t: ScalarType, length: int, run: Run, widest: int = MAX_LANES) -> None:
    """An array that begins at the second element of a buffer and ends before its last one."""
    x = np.arange(1, length + 3).astype(RECORDS[STORAGE[t].name].numpy)
    program = parse(f"""
        def p(x: [{length + 2}]{t}) =
          x |> drop(1) |> take({length}) |> map(v => {t}({STORAGE[t]}(v) * 2))""")
    given = lp.to_storage(x, t)
    wanted = lp.to_storage(2 * lp.from_storage(given, t)[1:-1], t)
    candidates = space_of(program, DEFAULT_DEVICE).sample(3, length)
    jobs = [(c, given) for c in candidates if int(c.assignment.get("v", 1)) <= widest]
    for found in run(program, jobs):
        np.testing.assert_array_equal(found, wanted)


LENGTH_TYPES = [SCALARS[name] for name in ("flyte24", "bf16", "binary16", "flyte8", "flyte56")]


@pytest.mark.slow
@pytest.mark.sampled(60)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("t", LENGTH_TYPES, ids=str)
def test_arrays_of_any_length_and_start(runtime: Device, t: ScalarType, length: int) -> None:
    check_length(t, length, partial(run_on, runtime))


@pytest.mark.oclgrind
@pytest.mark.sampled(60)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("t", LENGTH_TYPES, ids=str)
def test_oclgrind_sees_no_stray_access_at_any_length(t: ScalarType, length: int) -> None:
    """Vectors of which shuffles move more than 16 bytes are left out: they crash Oclgrind 21.10."""
    widest = BLOCK // RECORDS[t.name].bytes if is_split(t) else MAX_LANES
    check_length(t, length, run_under_oclgrind, widest)

"""A kernel is read with its regular loops rolled; the counts are those of its unrolled code."""

from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.space.space import Space
from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32, I32
from liftpy.loops.nest import Assign, Bind, Loop, Nest, Snapshot
from liftpy.loops.regular import regular, without_snapshots
from liftpy.opencl.devices import find_device
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import chain_of, counted_loops_of, loops_of
from liftpy.traffic.gpu import kernel_on_gpu
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.reading import work_of
from liftpy.traffic.time import kernel_of
from liftpy.views.access import AccessReader
from liftpy.views.terms import Apply, Choice, Constant, FromIndex, Inside, Load, Memory
from liftpy.workloads.convolution import convolution
from liftpy.workloads.networks import square
from tests.staged import by_definition

CPU = replace(DEFAULT_DEVICE, type="CPU", vector_width=8, compute_units=3)
GPU = replace(DEFAULT_DEVICE, type="GPU", vector_width=4, compute_units=3)
PROCESSOR = hardware_of(find_device("profile:xeon-silver-4208"))
GRAPHICS = hardware_of(find_device("profile:mali-g72"))

PROGRAMS = {
    "matmul": lp.workload("matmul/12x20x14"),
    "batched": lp.parse(
        "def p(a: [3][6][10]f32, b: [3][14][10]f32) = zip(a, b) |> map(ab =>"
        " ab.0 |> map(r => ab.1 |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0))))"
    ),
    "layer": convolution(square(6, 6, 6), "c"),
    "nchw": convolution(replace(square(6, 6, 6), layout="nchw"), "c"),
    "sums": lp.parse(
        "def p(x: [26][12]f32) = x |> slide(5, 3) |> map(w => w |> map(r =>"
        " r |> map(v => v * v) |> reduce(add, 0)) |> reduce(add, 0))"
    ),
}

FORMS = [
    ("matmul", "direct", CPU),
    ("matmul", "cooperative", GPU),
    ("batched", "direct", CPU),
    ("layer", "direct", CPU),
    ("layer", "local", GPU),
    ("layer", "staged", CPU),
    ("nchw", "direct", CPU),
    ("sums", "plain", CPU),
]


def both(candidate):
    """The run-phase kernels of a candidate: their code, and what is counted."""
    cut = chain_of(candidate.skeleton.at(candidate.point))
    names = buffer_names(cut)
    return zip(loops_of(cut.run, names), counted_loops_of(cut.run, names), strict=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "family", "device"), FORMS)
def test_the_counts_are_those_of_the_unrolled_code(name, family, device):
    space = Space.whole(PROGRAMS[name], device, families=[family], made=by_definition)
    rolled = False
    for candidate in space.sample(3, 11):
        for code, counted in both(candidate):
            check(code, counted, candidate.label)
            rolled = rolled or bool(counted.regular)
    assert rolled == (family not in ("plain", "local"))


def check(code, counted, label):
    assert kernel_of(counted, CPU, PROCESSOR) == kernel_of(code, CPU, PROCESSOR), label
    assert kernel_on_gpu(counted, GPU, GRAPHICS) == kernel_on_gpu(code, GPU, GRAPHICS), label
    rolled, straight = (work_of(one, 3).counts for one in (counted, code))
    assert rolled.operations == straight.operations, label
    assert rolled.loads == straight.loads, label
    assert rolled.executed == straight.executed, label


U, K = var("u", 0, 3), var("k", 0, 8)
ACC = Load(Memory("acc", "private", F32, 4), U)
XS = Memory("xs", "global", F32, 64, writable=False)
OUT = Memory("out", "global", F32, 64)


def is_regular(*body, counter="u"):
    nest = Nest("k", (Loop(counter, 0, 4, 1, body),), AccessReader(), frozenset())
    return counter in regular(nest, frozenset({"u"}))


def test_loops_whose_iterations_differ_in_offsets_are_regular():
    assert is_regular(Assign(ACC, Load(XS, 9 * K + 2 * U)))
    assert is_regular(Assign(ACC, Apply("+", (ACC, Load(XS, K)), F32)))
    assert is_regular(Bind("#0", Load(XS, 5 * U + K)), Assign(Load(OUT, U + 4 * K), ACC))
    assert is_regular(Loop("v", 0, 3, 1, (Assign(ACC, Load(XS, U)),), asked=True))
    assert not is_regular(Assign(Load(OUT, K), Load(XS, K)), counter="i")  # it stays a loop


GUARD = Inside(U + K - 1, nat(9), test_low=True, test_high=True)
APART = Inside(K, nat(7), test_low=False, test_high=True)


@pytest.mark.parametrize(
    "statement",
    [
        Assign(ACC, Choice(GUARD, Load(XS, K), Constant(0.0, F32))),
        Assign(ACC, Load(XS, (3 * U + K) // 2)),
        Assign(ACC, Load(XS, U * K)),
        Assign(ACC, FromIndex(U % 2, I32)),
        Assign(Load(OUT, U % 2), ACC),
        Assign(Choice(APART, Load(OUT, K), Constant(0.0, F32)), ACC),
        Assign(Load(OUT, U + 1), Load(OUT, U)),
        Bind("@0", Load(XS, U)),
        Loop("i", 0, 5, 1, (Assign(ACC, Load(XS, U)),)),
    ],
)
def test_other_loops_are_not_regular(statement):
    assert not is_regular(statement)


def test_snapshots_are_left_out():
    body = (Snapshot(1, (ACC.memory,)), Loop("u", 0, 4, 1, (Snapshot(2, (ACC.memory,)),)))
    (loop,) = without_snapshots(Nest("k", body, AccessReader(), frozenset())).body
    assert loop == Loop("u", 0, 4, 1, ())

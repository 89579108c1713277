"""Local memory: staged tiles are right, and a barrier stands exactly where it is needed."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.errors import TypeRefused
from liftpy.explore.one_candidate import candidate_of
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.workloads import workload
from tests.lowered import lowered

SHARED = """
def shared(xs: [30]f32) =
  xs |> split(10) |> mapWrg(0, tile => tile |> mapLcl(0, x => x) |> toLocal |> slide(3, 1)
     |> mapLcl(0, w => w |> reduceSeq(add, 0))) |> join
"""
OWN = """
fun twice(x: f32) = x + x
def own(xs: [35]f32) =
  xs |> split(7) |> mapWrg(0, tile => tile |> mapLcl(0, x => twice(x)) |> toLocal
     |> mapLcl(0, x => twice(x))) |> join
"""
LOOPED = """
def looped(xss: [3][5][7]f32) =
  xss |> mapWrg(0, rows => rows |> mapSeq(row =>
    row |> mapLcl(0, x => x) |> toLocal |> reorder(i => 6 - i, i => 6 - i) |> mapLcl(0, x => x)))
"""


def run(device: Device, module: Module, x: np.ndarray) -> np.ndarray:
    """The module's result on one input."""
    with Session(device) as session, session.load(module) as loaded:
        loaded.set_constants({})
        return loaded.run({module.parameters[0]: x}, poison=True)


def test_a_shared_tile_waits(runtime: Device) -> None:
    """Neighbours read what others wrote: there is a barrier, and the sums are right."""
    module = compile_program(lowered(SHARED)).module
    assert module.source.count("barrier(CLK_LOCAL_MEM_FENCE)") == 1
    x = np.arange(30, dtype=np.float32) ** 2
    expected = np.concatenate([np.convolve(t, [1, 1, 1], "valid") for t in x.reshape(3, 10)])
    np.testing.assert_array_equal(run(runtime, module, x), expected)
    assert module.memory.local == 40


def test_what_a_work_item_keeps_to_itself_does_not_wait(runtime: Device) -> None:
    """Each work-item reads only what it wrote: z3 shows it, and no barrier is left."""
    module = compile_program(lowered(OWN)).module
    assert "barrier" not in module.source
    x = np.arange(35, dtype=np.float32)
    np.testing.assert_array_equal(run(runtime, module, x), 4 * x)


def test_a_kernel_has_the_same_text_each_time() -> None:
    """The witness that a barrier's comment names does not depend on what was compiled before."""
    device = find_device("profile:desktop-gpu")
    candidate = candidate_of(workload("vgg16/24"), device, {"family": "local", "theta": 4})
    first, *others = (
        compile_candidate(candidate.skeleton, candidate.assignment).source for _ in range(3)
    )
    assert "is touched at" in first
    assert others == [first, first]


def test_a_loop_waits_before_it_fills_the_tile_again(runtime: Device) -> None:
    """Inside a loop there is a second barrier, at its end."""
    module = compile_program(lowered(LOOPED)).module
    assert module.source.count("barrier(CLK_LOCAL_MEM_FENCE)") == 2
    x = np.arange(105, dtype=np.float32).reshape(3, 5, 7)
    np.testing.assert_array_equal(run(runtime, module, x), x[:, :, ::-1])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("xs |> mapLcl(0, x => x)", "outside every mapWrg"),
        (
            "xs |> split(5) |> mapGlb(0, c => c |> mapGlb(0, x => x)) |> join",
            "inside another mapGlb",
        ),
        ("xs |> split(5) |> mapWrg(0, c => c |> mapGlb(0, x => x)) |> join", "cannot be mixed"),
        ("xs |> mapGlb(0, x => x) |> toPrivate |> mapSeq(x => x)", "toPrivate cannot hold"),
        ("xs |> map(x => add(x, x))", "lower it"),
    ],
)
def test_levels_stand_where_they_may(body: str, reason: str) -> None:
    """The legality rules of parallel maps are refusals with a reason."""
    with pytest.raises(TypeRefused, match=reason):
        compile_program(lowered(f"def p(xs: [30]f32) = {body}"))


def test_vectors_of_three_are_adjacent(runtime: Device) -> None:
    """OpenCL's `float3` has the size of a `float4`; three lanes in local memory have no gap."""
    text = """
def turned(xs: [2][4]<3>f32) =
  xs |> mapWrg(0, vs => vs |> mapLcl(0, mapVec(x => x)) |> toLocal |> asScalar |> split(3)
     |> reorder(i => 3 - i, i => 3 - i) |> mapLcl(0, v => v |> mapSeq(x => x)))
"""
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    module = compile_program(lowered(text)).module
    np.testing.assert_array_equal(run(runtime, module, x), x[:, ::-1])

"""Tuples in memory: a buffer for each component, in parameters, results and between kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liftpy.compile import Kernel
from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused
from liftpy.explore.measure.check import Error
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.plainest import plainest
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from tests.batch import results
from tests.draws import of_each_skeleton, tried
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.subsample import first

PROGRAMS = {
    "a result of pairs": """
        def p(xs: [11]f32, ks: [11]i32) = zip(xs, ks) |> map((x, k) => (k - 3, x * 2))""",
    "a parameter of pairs": "def p(ps: [11](f32, i32)) = ps |> map((x, k) => x * f32(k))",
    "a constant of pairs": """
        def p(xs: [11]f32, const ps: [7](f32, f64)) = xs |> map(x =>
          ps |> reduce((s, t) => s + f64(x * t.0) * t.1, 0f64))""",
    "unzipped at the end": """
        def p(xs: [11]f32, ks: [11]i32) =
          zip(xs, ks) |> map((x, k) => (k - 3, x * 2)) |> unzip""",
    "a tuple of maps of different lengths": """
        def p(xs: [11]f32, ks: [7]i32) = (ks |> map(k => k * k), xs |> map(x => x - 1))""",
    "a tuple of maps and a sum": """
        def p(xs: [11]f32, ks: [7]i32) = (xs |> reduce(add, 0), (xs |> map(x => -x), ks))""",
    "rows of pairs": """
        def p(xss: [5][7](i32, i32)) = xss |> map(map((a, b) => (a + b, (f32(a - b), a < b))))""",
    "a pair of rows": """
        def p(xss: [5][7]f32) =
          xss |> map(row => (row |> map(x => x * 3), row |> reduce(add, 0)))""",
    "pairs moved": "def p(ps: [3][5](f32, i64)) = ps |> transpose |> map(map(t => (t.1, t.0)))",
    "a view of pairs": "def p(xs: [7]f32, ks: [7]i32) = zip(xs, ks) |> slide(3, 2)",
    "sums of pairs": """
        def p(ps: [6][5](i32, f64)) = ps |> map(reduce((s, t) => (s.0 + t.0, s.1 * 2 + t.1), 0))""",
}


def right_in_every_family(program: Program, device: Device, kept: Path) -> None:
    """A candidate of each skeleton gives what the program means; the campaign's judge agrees."""
    arrays = inputs(program)
    judge = Judge(program, arrays, expected(program, arrays))
    drawn = tried(of_each_skeleton(program, first(), kept), program, device)
    assert drawn
    meant = evaluate(program, *arrays.values())
    for got in results(device, [d.module for d in drawn], tuple(arrays.values())):
        alike(got, meant)
        error = judge.judge(got)
        assert isinstance(error, Error), error


def plainest_of(program: Program, device: Device) -> Candidate:
    """A candidate that there is for every program."""
    found = plainest(space_of(program, device, families=["plain"]))
    assert found is not None
    return found


def alike(got: Any, wanted: Any) -> None:
    """Tuples part by part, arrays with their types."""
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple)
        assert len(got) == len(wanted)
        for one, two in zip(got, wanted, strict=True):
            alike(one, two)
        return
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_tuples_come_and_go_as_tuples_of_arrays(runtime: Device, name: str, kept: Path) -> None:
    right_in_every_family(parse(PROGRAMS[name]), runtime, kept)


BETWEEN = """
def p(xs: [8]f32, ks: [8]i32) =
  zip(xs, ks) |> mapGlb(0, (x, k) => (k - 3, x * 2)) |> toGlobal |> slide(3, 1)
  |> mapGlb(0, w => w |> reduceSeq((s, t) => (s.0 + t.0, s.1 - t.1), 0)) |> toGlobal
  |> mapGlb(0, t => (t.1, f64(t.0)))
"""
LOCAL = """
def p(ps: [12](i32, f32)) = ps |> split(4) |> mapWrg(0, c =>
  c |> mapLcl(0, (a, b) => (b * 2, a)) |> toLocal |> reorder(i => 3 - i, i => 3 - i)
  |> mapLcl(0, (b, a) => (a, b))) |> join
"""
PRIVATE = """
def p(ps: [3][4](i32, f32)) = ps |> mapGlb(0, c =>
  c |> mapSeq((a, b) => (b * 2, a + 1)) |> toPrivate |> mapSeq((b, a) => (a * 3, b, a)))
"""


@pytest.mark.parametrize("text", [BETWEEN, LOCAL, PRIVATE])
def test_tuples_are_stored_in_every_memory(runtime: Device, text: str) -> None:
    program = lowered(text)
    module = compile_program(program).module
    arrays = tuple(inputs(program).values())
    with Session(runtime) as session, session.load(module) as loaded:
        loaded.set_constants({})
        got = loaded.run(by_buffer(module, arrays), poison=True)
        alike(got, evaluate(program, *arrays))
        assert loaded.allocated_bytes == module.memory.allocated
        assert sum(size for _, size in loaded.memory.created) == module.memory.allocated


def test_memory_figures_count_every_component() -> None:
    """The result takes the place of the first temporaries."""
    memory = compile_program(lowered(BETWEEN)).module.memory
    inputs_and_output = 2 * 8 * 4 + 6 * (4 + 8)
    assert memory.peak == inputs_and_output + 6 * 8
    assert memory.scratch == 6 * 8
    assert memory.private == 8
    assert compile_program(lowered(LOCAL)).module.memory.local == 4 * 8


def test_temporaries_of_tuples_share_by_components() -> None:
    """Four kernels: what the first writes is dead when the third writes."""
    text = "def p(xs: [64]f32) = xs |> mapGlb(0, x => (x, i32(x))) |> toGlobal"
    text += " |> mapGlb(0, (x, k) => (k, x)) |> toGlobal |> mapGlb(0, (k, x) => (x, k)) |> toGlobal"
    module = compile_program(lowered(text + " |> mapGlb(0, (x, k) => x + f32(k))")).module
    slots = [b.slot for b in module.buffers if b.role == "temporary"]
    assert len(slots) == 6
    assert len(set(slots)) == 4


def test_the_manifest_names_every_component() -> None:
    manifest = compile_program(lowered(BETWEEN)).module.manifest()
    assert manifest["result"] == ("output_0", "output_1")
    assert manifest["parameters"] == ("xs", "ks")
    scalars = {b["name"]: b["scalar"] for b in manifest["buffers"]}
    assert (scalars["output_0"], scalars["output_1"]) == ("f32", "f64")


@pytest.mark.parametrize("name", ["a", "a_0", "output"])
def test_names_of_components_are_no_others(runtime: Device, name: str) -> None:
    program = parse(f"""
        def p(a_0: [5]f32, {name.replace("a_0", "b")}: [5](f32, f32), output_1: [5]f32) =
          zip(a_0, {name.replace("a_0", "b")}, output_1) |> map((x, t, y) => (x - t.0, t.1 * y))""")
    candidate = plainest_of(program, runtime)
    arrays = tuple(inputs(program).values())
    kernel = Kernel(candidate, runtime)
    alike(kernel(*arrays), evaluate(program, *arrays))
    kernel.close()


def test_a_wrong_component_is_found_with_its_place() -> None:
    program = parse(PROGRAMS["rows of pairs"])
    arrays = inputs(program)
    sums, (floats, bools) = evaluate(program, *arrays.values())
    floats[2, 3] += 1
    verdict = Judge(program, arrays, expected(program, arrays)).judge((sums, (floats, bools)))
    assert isinstance(verdict, WrongResult)
    assert verdict.reason.startswith("result.1.0[2][3] is ")


def test_an_array_for_a_tuple_is_refused(runtime: Device) -> None:
    candidate = plainest_of(parse(PROGRAMS["a parameter of pairs"]), runtime)
    kernel = Kernel(candidate, runtime)
    with pytest.raises(ArgumentRefused, match="needs a tuple of 2 arrays, one per component, got"):
        kernel(np.zeros(11, np.float32))
    with pytest.raises(ArgumentRefused, match="got a tuple of 1"):
        kernel((np.zeros(11, np.float32),))
    kernel.close()


@pytest.mark.oclgrind
def test_tuples_under_oclgrind() -> None:
    jobs, meant = [], []
    for text in BETWEEN, LOCAL:
        program = lowered(text)
        module = compile_program(program).module
        arrays = tuple(inputs(program).values())
        jobs.append((module, by_buffer(module, arrays)))
        meant.append(evaluate(program, *arrays))
    for (got, complaints), wanted in zip(check_all_under_oclgrind(jobs), meant, strict=True):
        assert complaints == []
        alike(got, wanted)

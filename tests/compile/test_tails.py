"""Blocks that need not divide a length: the last one begins early, and nothing is written twice."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.printing.show import show
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution, matmul, workload
from tests.compile.test_programs import agree, inputs, right, run_lowered
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import some_of, words_of
from tests.subsample import subsample

pytestmark = pytest.mark.usefixtures("derived_once")

FAMILIES = "direct", "tiled"
DRAWS = 3  # of a program; its structural choices take turns

PROGRAMS: dict[str, Program] = {
    "matrix product": matmul(17, 5, 37),
    "whole vectors of columns": matmul(4, 5, 26),
    "convolution": convolution(Convolution(3, 3, 19, 6, (3, 3), (1, 1), (1, 1, 1, 1)), "layer"),
    "stencil": workload("stencil/jacobi5/19x23"),
    "map": parse("def p(xs: [101]f32) = xs |> map(x => x * x + 3 * x)"),
    "rows beside numbers": parse(
        """def p(xs: [19][17]f32, ys: [19]f32) =
             zip(xs, ys) |> map(t => t.0 |> map(x => x * t.1))"""
    ),
}


@cache
def space(name: str) -> Space:
    """Candidates of some skeletons of a program whose last blocks begin early."""
    program = PROGRAMS[name]
    made = (s for family in FAMILIES for s in some_of(program, family, DRAWS, tail="overlap"))
    return Space.of(program, find_device(), made)


def drawn(name: str) -> list[Candidate]:
    """Some candidates."""
    return space(name).sample(DRAWS, seed=5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_prime_length_is_cut_into_blocks_of_any_size(runtime: Device, name: str) -> None:
    candidates = subsample(drawn(name), runtime)
    assert candidates
    right(candidates, runtime)


@pytest.mark.oclgrind
def test_nothing_is_written_twice_or_beyond_the_end() -> None:
    """Two work-items that wrote one place would be a race."""
    jobs, expected = [], []
    for name, program in PROGRAMS.items():
        arrays = inputs(program)
        uneven = [c for c in drawn(name) if "if (" in compiled(c).source]
        assert uneven, name
        given = {p.name: a for p, a in zip(program.params, arrays, strict=True)}
        jobs += [(compiled(c), given) for c in uneven[:1]]
        expected += [evaluate(program, *arrays, dtype=np.float64)] * len(uneven[:1])
    for (got, complaints), right_one in zip(check_all_under_oclgrind(jobs), expected, strict=True):
        assert not complaints, complaints[:3]
        agree(got, np.asarray(right_one), "under Oclgrind")


def compiled(candidate: Candidate) -> Module:
    """The kernels of a candidate."""
    return compile_candidate(candidate.skeleton, candidate.assignment)


LOWERED = {
    "a fold to chunks": """
        def p(xs: [5]f32, init: [3][4]f32) =
          xs |> reduceSeq((a, x) => a |> mapSeq(mapSeq(y => 2 * y + x)), init) |> uncover(10)""",
    "a fold to chunks in registers": """
        def p(xs: [5]f32, init: [3][4]f32) =
          xs |> reduceSeq((a, x) => a |> mapSeq(mapSeq(y => 2 * y + x)), init) |> uncover(10)
            |> toPrivate |> mapSeq(x => x + 1)""",
    "a scan of each chunk": """
        def p(xs: [11]f32) =
          xs |> cover(4) |> mapGlb(0, scanSeq((a, x) => 2 * a + x, 1)) |> uncover(11)""",
    "chunks in local memory": """
        def p(xss: [3][11]f32) =
          xss |> mapWrg(0, row => row |> cover(4) |> mapLcl(0, mapSeq(x => x + 1)) |> uncover(11)
            |> toLocal |> slide(3, 1) |> mapLcl(0, reduceSeq((a, x) => 2 * a + x, 1)))""",
    "vectors across": """
        def p(xss: [11][7]f32) =
          xss |> cover(4) |> mapGlb(0, c => c |> transpose
            |> mapSeq(r => r |> asVector(4) |> mapSeq(mapVec(x => x * 3)) |> asScalar)
            |> transpose) |> uncover(11)""",
    "chunks of chunks": """
        def p(xs: [23]f32) =
          xs |> cover(7) |> mapGlb(0, c => c |> cover(3) |> mapSeq(mapSeq(x => x + 1))
            |> uncover(7)) |> uncover(23)""",
    "what is stored where it is read": """
        def p(xs: [13]f32, ys: [13]f32) =
          zip(xs, ys) |> cover(5) |> mapGlb(0, c => c |> mapSeq(t => (t.1, t.0 * 2)))
            |> uncover(13) |> unzip""",
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", LOWERED)
def test_what_no_place_is_for_is_dropped(runtime: Device, name: str) -> None:
    got, arrays = run_lowered(LOWERED[name], runtime)
    expected = evaluate(parse(LOWERED[name]), *arrays, dtype=np.float64)
    if isinstance(expected, tuple):
        for part, meant in zip(got, expected, strict=True):
            agree(part, np.asarray(meant), name)
    else:
        agree(got, np.asarray(expected), name)


@pytest.mark.parametrize(
    "stage",
    [
        "mapGlb(0, mapSeq(x => x + 1))",
        "mapSeq(c => c |> asVector(4) |> mapSeq(mapVec(x => x + 1)) |> asScalar)",
    ],
)
def test_chunks_that_divide_the_length_cost_nothing(stage: str) -> None:
    even = lowered(f"def p(xs: [20]f32) = xs |> split(4) |> {stage} |> join")
    covered = lowered(f"def p(xs: [20]f32) = xs |> cover(4) |> {stage} |> uncover(20)")
    assert compile_program(covered).module.source == compile_program(even).module.source


def test_lengths_with_good_divisors_have_no_such_choice() -> None:
    """Lengths of 224, 112, 56, 28 and 14, of 64 and more kernels, have blocks that divide them."""
    for name in ("vgg16/0", "vgg16/12", "vgg16/24", "matmul/1024x1024x1024"):
        words = [word for f in (*FAMILIES, "cooperative") for word in words_of(workload(name), f)]
        assert words
        assert not any(choice == "tail" for choice, _ in words)
    of = workload("matmul/1021x1024x1024")
    uneven = [s for word in ("none", "overlap") for s in some_of(of, "direct", 2, tail=word)]
    assert {dict(s.choices)["tail"] for s in uneven} == {"none", "overlap"}
    for s in uneven:
        assert ("cover(sigma)" in show(s.program)) == (("tail", "overlap") in s.choices)


def test_columns_without_a_multiple_of_the_longest_vectors_may_have_blocks_of_them() -> None:
    """1000 kernels, as in the last layer of a network, have vectors of 16, not only of 8."""
    for columns, words in ((1000, {"none", "overlap"}), (1008, set()), (16, set()), (12, set())):
        made = words_of(matmul(4, 5, columns), "direct")
        assert {word for choice, word in made if choice == "tail"} == words, columns

"""Stores past the caches: the same numbers, in whole vectors at multiples of their length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.composition import derived_once, of_family
from liftpy.rewrite.strategies.families import common
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution, matmul, workload
from tests.compile.test_programs import agree, inputs, right, run_lowered
from tests.lowered import lowered
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import as_one_stage, some_of
from tests.subsample import subsample

STREAM = re.compile(r"^ .*\bstream_\w+\(.*$", re.MULTILINE)
STORE = re.compile(r"^ .*\bvstore\d+\(.*\boutput", re.MULTILINE)
DOUBLED = "asVector({v}) |> mapSeq(mapVec(x => x * {k})) |> asScalar"

#: Programs, with how many stores of their texts are streamed, and how many vectors are not.
LOWERED = {
    "a result": (f"xs |> mapGlb(0, r => r |> {DOUBLED.format(v=4, k='2')}) |> toStreamed", 1, 0),
    "of a part": (f"xs |> mapGlb(0, r => r |> {DOUBLED.format(v=4, k='2')} |> toStreamed)", 1, 0),
    "of eight": (f"xs |> mapGlb(0, r => r |> {DOUBLED.format(v=8, k='2')} |> toStreamed)", 1, 0),
    "at an odd place": (
        (
            f"xs |> mapGlb(0, r => concat(r |> take(1) |> mapSeq(x => x * 7),"
            f" r |> {DOUBLED.format(v=4, k='2')})) |> toStreamed"
        ),
        0,
        1,
    ),
    "each time of an iteration": (
        (
            "xs |> iterateSeq(3, ys => ys |> mapGlb(0, r => r |> asVector(4)"
            " |> mapSeq(mapVec(x => x * 2)) |> asScalar) |> toStreamed)"
        ),
        3,
        0,
    ),
    "between kernels": (
        (
            f"xs |> mapGlb(0, r => r |> {DOUBLED.format(v=4, k='2')}) |> toStreamed"
            " |> transpose |> mapGlb(0, mapSeq(x => x + 1))"
        ),
        1,
        0,
    ),
    "scalars": ("xs |> mapGlb(0, mapSeq(x => x * 2)) |> toStreamed", 0, 0),
    "stored twice": (
        f"xs |> mapGlb(0, r => r |> {DOUBLED.format(v=4, k='2')}) |> toStreamed |> toGlobal",
        1,
        0,
    ),
    "each of two": (
        (
            f"(xs |> mapGlb(0, r => r |> {DOUBLED.format(v=4, k='2')}),"
            f" xs |> mapGlb(0, r => r |> {DOUBLED.format(v=8, k='3')})) |> toStreamed"
        ),
        2,
        0,
    ),
    "in registers and in between": (
        (
            "xs |> mapGlb(0, r => r |> mapSeq(x => x + 1) |> toPrivate |> asVector(4)"
            " |> mapSeq(mapVec(x => x * 2)) |> asScalar |> toStreamed)"
        ),
        2,
        0,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOWERED)
def test_whole_vectors_at_multiples_of_their_length_are_streamed(
    runtime: Device, name: str
) -> None:
    expression, streamed, vectors = LOWERED[name]
    text = f"def p(xs: [5][8]f32) = {expression}"
    got, arrays = run_lowered(text, runtime)
    expected = evaluate(parse(text), *arrays, dtype=np.float64)
    parts = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for part, meant in parts:
        agree(part, np.asarray(meant), name)
    source = compile_program(lowered(text)).module.source
    assert len(set(STREAM.findall(source))) == streamed
    assert len(STORE.findall(source)) == vectors


def test_both_runtimes_have_such_stores(runtime: Device) -> None:
    """Else the function that is called would be a plain store, and nothing would be streamed."""
    expression, *_ = LOWERED["a result"]
    module = compile_program(lowered(f"def p(xs: [5][8]f32) = {expression}")).module
    there = module.source.replace("#else", "#else\n#error there is none", 1)
    with Session(runtime) as session, session.load(replace(module, source=there)) as loaded:
        assert loaded.build_seconds > 0


PROGRAMS = {
    "matrix product": matmul(12, 5, 24),
    "convolution": convolution(Convolution(4, 3, 12, 8, (3, 3), (1, 1), (1, 1, 1, 1)), "layer"),
    "stencil": workload("stencil/jacobi5/12x16"),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Results of any size may be streamed."""
    monkeypatch.setattr(common, "STREAMED_BYTES", 1)
    forget()
    yield
    forget()


def forget() -> None:
    """Clear what was derived with another limit."""
    for derived in (derived_once, of_family, as_one_stage):
        derived.cache_clear()


@pytest.mark.covering(2)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", PROGRAMS)
def test_families_with_vectors_stream_what_is_large(runtime: Device, name: str) -> None:
    found = subsample(drawn(name), runtime)
    right(found, runtime)
    assert any(STREAM.search(compiled(c).source) for c in found)


def compiled(candidate: Candidate) -> Module:
    """The kernels of a candidate."""
    return compile_candidate(candidate.skeleton, candidate.assignment)


def drawn(name: str) -> list[Candidate]:
    """Streamed candidates of a program, in vectors of four."""
    program = PROGRAMS[name]
    families = "direct", "tiled"
    made = (s for family in families for s in some_of(program, family, 4, stores="streamed"))
    space = Space.of(program, find_device(), made)
    found = (m.first({"v": 4}, 0) for m in space.members)
    return [Candidate(program, one[0], tuple(one[1].items())) for one in found if one is not None]


def test_a_small_result_has_one_way_of_being_stored() -> None:
    for program in PROGRAMS.values():
        for skeleton in as_one_stage(program, ("direct", "tiled")):
            assert "stores" not in dict(skeleton.choices)


@pytest.mark.oclgrind
@pytest.mark.usefixtures("small")
def test_streamed_stores_stay_in_bounds() -> None:
    candidates = [drawn(name)[0] for name in PROGRAMS]
    jobs = []
    for c in candidates:
        given = zip(c.program.params, inputs(c.program), strict=True)
        jobs.append((compiled(c), {p.name: a for p, a in given}))
    for (got, complaints), c in zip(check_all_under_oclgrind(jobs), candidates, strict=True):
        assert not complaints, complaints[:3]
        expected = evaluate(c.program, *inputs(c.program), dtype=np.float64)
        agree(got, np.asarray(expected), "under Oclgrind")

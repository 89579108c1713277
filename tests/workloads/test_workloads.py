"""The built-in programs: names, sizes, messages, and what they compute on every runtime."""

from __future__ import annotations

from functools import cache
from math import erf
from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.errors import LiftError
from liftpy.explore.one_candidate import candidate_of
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded import lang
from liftpy.language.text.program import parse, show
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.families import FAMILIES as DERIVATIONS
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import (
    ALEXNET,
    FAMILIES,
    INCEPTIONV3,
    MOBILENET,
    RESNET50,
    workload,
    workloads,
)
from liftpy.workloads.family import Family, define
from liftpy.workloads.finance import normal
from liftpy.workloads.networks import Network, inceptionv3
from tests.batch import results
from tests.draws import draws, tried
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import words_of
from tests.subsample import first
from tests.workloads.references import CASES, inputs

SIZED = [name for name, family in FAMILIES.items() if isinstance(family, Family)]
SIZED += [f"{n}:nchw" for n in SIZED if n.startswith("convolution/")]  # pools: test_pooling.py

FAMILIES_OF_DERIVATIONS = tuple(DERIVATIONS)
DRAWS = 1  # of each family; benchmarks/space.py --candidates draws more


def small(name: str) -> str:
    """The family's program of small sizes, in the layout named."""
    family, colon, layout = name.partition(":")
    return f"{family}/{'x'.join(map(str, CASES[name][0]))}{colon}{layout}"


@cache
def case(name: str) -> tuple[Program, dict[str, np.ndarray], tuple[np.ndarray, ...]]:
    """A small program, distinct inputs, and the arrays of the reference's result in float64."""
    program = workload(small(name))
    sizes, reference = CASES[name]
    arrays = inputs(name, program)
    expected = reference(sizes, *(a.astype(np.float64) for a in arrays.values()))
    return program, arrays, parts(expected)


def parts(result: object) -> tuple[np.ndarray, ...]:
    """The arrays of a result."""
    return tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))


def agrees(result: object, expected: tuple[np.ndarray, ...], what: object) -> None:
    """Whole numbers are equal, others near."""
    for got, wanted in zip(parts(result), expected, strict=True):
        assert got.shape == wanted.shape, what
        bound = 0 if got.dtype.kind in "iu" else 2e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(got, wanted, rtol=0, atol=bound, err_msg=str(what))


# --- names ----------------------------------------------------------------------------------------


def test_every_family_has_a_reference() -> None:
    assert list(CASES) == SIZED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [w.name for w in workloads()])
def test_a_listed_name_is_a_program_that_reads_back_from_its_text(name: str) -> None:
    program = workload(name)
    assert parse(show(program)) == program


@pytest.mark.parametrize("name", FAMILIES)
def test_a_name_without_sizes_has_the_first_that_is_listed(name: str) -> None:
    assert workload(name) == workload(FAMILIES[name].workloads()[0].name)


def test_options_are_in_any_order_with_or_without_sizes() -> None:
    sizes = "112x112x64x3x2"
    names = [f"pool/max{end}" for end in (":f16:nchw", ":nchw:f16", f"/{sizes}:f16:nchw")]
    assert {workload(name) for name in names} == {workload(f"pool/max/{sizes}:nchw:f16")}


@pytest.mark.parametrize("name", SIZED)
def test_sizes_in_the_name_are_those_of_the_program(name: str) -> None:
    """The small sizes are all distinct in their places, so none is taken for another."""
    program, arrays, _ = case(name)
    head, colon, layout = name.partition(":")
    family = FAMILIES[head]
    assert isinstance(family, Family)
    assert len(CASES[name][0]) == len(family.letters)
    assert {p.name for p in program.params} == set(arrays)
    assert family.workload(CASES[name][0]).name + colon + layout == small(name)


REFUSED = {
    "an unknown layer": "vgg16/8",
    "no layer number": "resnet50/first",
    "an unknown family": "vgg18/7",
    "an unknown stencil": "stencil/jacobi8/8x8",
    "too few sizes": "matmul/64x48",
    "too many sizes": "dot/64x48",
    "a size of nothing": "matvec/0x4",
    "a size that is no number": "nbody/many",
    "a slash too many": "nbody/11/",
    "groups that do not fit": "convolution/grouped/8x8x6x9x3x4",
    "a window larger than the image": "pool/max/1x1x3x2x1",
    "another form of digits": "dot/٣",
    "an unknown layout": "vgg16/7:chwn",
    "a layout of what has none": "dot/64:nchw",
    "an unknown type": "pool/max/9x9x3x3x2:nchw:f64",
    "two layouts": "pool/max/9x9x3x3x2:nchw:f16:nc1hwc0",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_is_refused_with_what_would_do(name: str, golden) -> None:
    with pytest.raises(LiftError) as refusal:  # noqa: PT011  the message is compared below
        workload(REFUSED[name])
    golden(f"{type(refusal.value).__name__}: {refusal.value}\n")


# --- published tables -----------------------------------------------------------------------------


def test_networks_have_the_published_layers() -> None:
    """Layers and multiplications of networks as published, and shapes that chain."""
    assert [layer.kernel for layer in ALEXNET.values()][:2] == [(11, 11), (5, 5)]
    assert ALEXNET[0].out == (55, 55)
    assert len(RESNET50) == 23
    assert {layer.out for layer in RESNET50.values()} == {(n, n) for n in (112, 56, 28, 14, 7)}
    assert sum(layer.depthwise for layer in MOBILENET.values()) == 9
    first, *_, last = MOBILENET.values()
    assert (first.kernels, last.kernels, last.out) == (32, 1024, (7, 7))
    every = [*inceptionv3()]
    assert len(every) == 94
    assert sum(layer.flops for layer in every) == pytest.approx(2 * 5.7e9, rel=0.01)
    assert {layer.kernel for layer in INCEPTIONV3.values()} == {
        (1, 1), (1, 3), (1, 7), (3, 1), (3, 3), (5, 5), (7, 1)
    }  # fmt: skip


@pytest.mark.parametrize("network", [f for f in FAMILIES.values() if isinstance(f, Network)])
def test_a_layers_program_gives_its_output_size(network: Network) -> None:
    for number, layer in network.layers.items():
        shape = workload(f"{network.name}/{number}").type.shape
        assert tuple(map(int, shape)) == (*layer.out, layer.kernels)
        first = workload(f"{network.name}/{number}:nchw").type.shape
        assert tuple(map(int, first)) == (layer.kernels, *layer.out)


def test_the_normal_distribution_is_as_near_as_published() -> None:
    """To 7.5e-8 (Abramowitz and Stegun, 26.2.17)."""
    program = define("p", lambda xs: xs >> lang.map(normal), xs=lang.array_type(F32, 501))
    x = np.linspace(-6, 6, 501, dtype=np.float32)
    found = evaluate(program, x, dtype=np.float64)
    error = np.abs(found - [(1 + erf(v / 2**0.5)) / 2 for v in x.tolist()]).max()
    assert 1e-9 < error < 7.5e-8


# --- meaning, devices, Oclgrind -------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZED)
def test_the_meaning_is_that_of_numpy(name: str) -> None:
    program, arrays, expected = case(name)
    assert expected[0].size == 1 or np.unique(expected[0]).size > 2
    got = parts(evaluate(program, *arrays.values(), dtype=np.float64))
    for part, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", SIZED)
def test_every_family_that_applies_is_right(runtime: Device, name: str, kept: Path) -> None:
    """What the constraints allow compiles, runs and agrees with numpy."""
    program, arrays, expected = case(name)
    drawn = tried(draws(program, first(), DRAWS, kept), program, runtime)
    assert drawn
    given = [arrays[p.name] for p in program.params]
    modules = [d.module for d in drawn]
    for draw, got in zip(drawn, results(runtime, modules, given), strict=True):
        agrees(got, expected, draw.label)


def test_channels_first_is_stored_in_all_the_ways_of_channels_last(runtime: Device) -> None:
    """An input whose dimensions are moved may be stored padded, in columns, or as windows."""
    name = "convolution/strided:nchw"
    program, arrays, expected = case(name)
    last = workload(small("convolution/strided"))
    each = ({w for n, w in words_of(p, "direct") if n == "pad"} for p in (program, last))
    first_ways, ways = each
    assert first_ways == ways == {"fused", "columns", "copy", "windows"}
    with Session(runtime) as session:
        for way in ways:
            chosen = candidate_of(program, runtime, {"family": "direct", "pad": way})
            module = compile_candidate(chosen.skeleton, chosen.assignment)
            with session.load(module) as loaded:
                loaded.set_constants({n: arrays[n] for n in "wb"})
                agrees(loaded.run({"x": arrays["x"]}, poison=True), expected, way)


@pytest.mark.oclgrind
@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(16))
def test_no_race_and_no_stray_access(device: Device, part: int, kept: Path) -> None:
    """Oclgrind finds nothing in any family of programs; families of derivations take turns.

    tests/compile/test_families.py has every family of derivations.
    """
    made = []
    for turn, name in [*enumerate(SIZED)][part::16]:
        program, arrays, _ = case(name)
        start = turn % len(FAMILIES_OF_DERIVATIONS)
        turns = (*FAMILIES_OF_DERIVATIONS[start:], *FAMILIES_OF_DERIVATIONS)
        drawn = (d for f in turns for d in draws(program, device, 1, kept, (f,)))
        fitting = (d for d in drawn if d.allowed(program, DEFAULT_DEVICE))
        made.append((name, arrays, next(fitting)))
    checked = check_all_under_oclgrind([(draw.module, arrays) for _, arrays, draw in made])
    for (name, _, draw), (got, complaints) in zip(made, checked, strict=True):
        assert not complaints, (draw.label, complaints[:3])
        agrees(got, case(name)[2], draw.label)

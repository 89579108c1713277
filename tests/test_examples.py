"""The examples run, are short, and compute what numpy does; the convolution is very short."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.ir.program import Program
from liftpy.language.text.program import parse, show
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.sizes import at_arrays, at_sizes
from liftpy.workloads import FAMILIES, workload
from liftpy.workloads.family import Family
from tests.batch import results
from tests.draws import draws, tried
from tests.subsample import first
from tests.workloads.references import CASES, inputs

EXAMPLES = Path(__file__).parent.parent / "examples"
LONGEST = 40  # lines
Array = np.ndarray


def windows(x: Array, *size: int) -> Array:
    """All windows over the first dimensions."""
    return np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(len(size))))


def wide(x: Array, rank: int, mode: str = "edge", **more: float) -> Array:
    """The array with one more element at each end of its first dimensions."""
    amounts = [(1, 1)] * rank + [(0, 0)] * (x.ndim - rank)
    return np.pad(x, amounts, mode, **more)  # type: ignore[call-overload]


def complex_dot(xr: Array, xi: Array, yr: Array, yi: Array) -> tuple[Array, Array]:
    product = (xr + 1j * xi) @ (yr + 1j * yi)
    return product.real, product.imag


def convolution(x: Array, w: Array, b: Array) -> Array:
    return np.einsum("ijckl,mklc->ijm", windows(wide(x, 2, "constant"), 3, 3), w) + b


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = np.exp(np.einsum("hid,hjd->hij", q, k) * 0.125)
    return scores / scores.sum(-1, keepdims=True) @ v


def perceptron(x: Array, w: Array, u: Array, last: Array) -> Array:
    return np.maximum(np.maximum(x @ w.T, 0) @ u.T, 0) @ last.T


#: The examples that are built-in programs of these names, written as text.
BUILT_IN: dict[str, str] = {
    "acoustic.lift": "stencil/acoustic/5x7x3",
    "all_pool.lift": "pool/all/5x7x2x3x2",
    "argmax_pool.lift": "pool/argmax/5x7x3x3x2",
    "argmaxback_pool.lift": "pool/argmaxback/5x7x2x3x2",
    "asum.lift": "asum/101",
    "atax.lift": "atax/7x13",
    "average_pool.lift": "pool/average/7x11x3x2x2",
    "batched.lift": "batched/3x5x7x11",
    "blackscholes.lift": "blackscholes/23",
    "ceil_pool.lift": "pool/ceil/8x11x2x4x3",
    "depthwise.lift": "convolution/depthwise/31x37x5x3x1",
    "dilated.lift": "convolution/dilated/11x13x3x5x3x2",
    "dilated_pool.lift": "pool/dilated/7x9x3x2x2x3",
    "dot.lift": "dot/1009",
    "first_pool.lift": "pool/first/5x7x2x3x2",
    "gaussian.lift": "stencil/gaussian5x5/7x11",
    "gemm.lift": "gemm/7x11x5",
    "gemv.lift": "gemv/7x13",
    "gesummv.lift": "gesummv/7x13",
    "global_pool.lift": "pool/global/5x7x3",
    "gradient.lift": "stencil/gradient/7x11",
    "grouped.lift": "convolution/grouped/7x11x6x9x3x3",
    "heat7.lift": "stencil/heat7/5x7x3",
    "hotspot.lift": "stencil/hotspot/61x67",
    "hotspot3d.lift": "stencil/hotspot3d/5x7x3",
    "inside_pool.lift": "pool/inside/5x7x3x3x2",
    "jacobi.lift": "stencil/jacobi5/61x67",
    "jacobi13.lift": "stencil/jacobi13/5x7x3",
    "jacobi7.lift": "stencil/jacobi7/5x7x3",
    "jacobi9.lift": "stencil/jacobi9/7x11",
    "kmeans.lift": "kmeans/211x7x5",
    "l2_pool.lift": "pool/l2/5x7x3x3x2",
    "maskback_pool.lift": "pool/maskback/5x7x2x3x2",
    "matmul.lift": "matmul/64x48x80",
    "matvec.lift": "matvec/61x67",
    "max_pool.lift": "pool/max/31x37x5x3x2",
    "md.lift": "md/11",
    "mriq.lift": "mriq/11x7",
    "nbody.lift": "nbody/101",
    "nearest.lift": "nearest/7x13x3",
    "nn.lift": "nn/23x3",
    "poisson.lift": "stencil/poisson19/5x7x3",
    "scal.lift": "scal/101",
    "separable.lift": "stencil/separable/7x11x5",
    "shared_pool.lift": "pool/shared/5x7x2x3x2",
    "srad.lift": "stencil/srad/7x11",
    "srad2.lift": "stencil/srad2/7x11",
    "srad_step.lift": "stencil/sradstep/7x11",
    "stencil2d.lift": "stencil/stencil2d/7x11",
    "strided.lift": "convolution/strided/11x13x3x5x3x2",
    "three.lift": "stencil/three/23",
    "transpose.lift": "transpose/61x67",
}

#: The references of the others, in float64.
REFERENCES: dict[str, Callable[..., Any]] = {
    "attention.lift": attention,
    "blur.py": lambda x: windows(wide(x, 2, "constant"), 3, 3).mean((2, 3)),
    "box_blur.lift": lambda x: windows(wide(x, 2), 3, 3).mean((3, 4)),
    "complex_dot.lift": complex_dot,
    "convolution.py": convolution,
    "heat.lift": lambda x: windows(wide(x, 3), 3, 3, 3).mean((3, 4, 5)),
    "perceptron.lift": perceptron,
}


#: Numbers for the sizes that these leave open.
SIZES = {
    "attention.lift": {"heads": 3, "n": 7, "d": 5},
    "box_blur.lift": {"h": 19, "w": 23},
    "complex_dot.lift": {"n": 1001},
    "perceptron.lift": {"batch": 7, "inputs": 13, "hidden": 11, "outputs": 3},
}

FILES = sorted((*REFERENCES, *BUILT_IN))


def family_of(name: str) -> tuple[str, tuple[int, ...]]:
    """The family of a built-in program, and its sizes."""
    family, _, sizes = name.rpartition("/")
    return family, tuple(map(int, sizes.split("x")))


@cache
def program(file: str) -> Program:
    """The program that an example defines; its sizes are those of the built-in one."""
    path = EXAMPLES / file
    if path.suffix == ".py":
        (found,) = (v for v in runpy.run_path(str(path)).values() if isinstance(v, Program))
        return found
    text = parse(path.read_text(encoding="utf-8"))
    if file in REFERENCES:
        return at_sizes(text, SIZES.get(file, {}))
    same = workload(BUILT_IN[file])
    return at_arrays(text, list(inputs(family_of(BUILT_IN[file])[0], same).values()))


def case(file: str) -> tuple[Program, dict[str, Array], Any]:
    """An example, arrays for it, and what it gives in float64."""
    example = program(file)
    if file in BUILT_IN:
        family, sizes = family_of(BUILT_IN[file])
        values = inputs(family, workload(BUILT_IN[file])).values()
        arrays = dict(zip((p.name for p in example.params), values, strict=True))
        reference = partial(CASES[family][1], sizes)
    else:
        rng = np.random.default_rng(1)
        arrays = {
            p.name: rng.standard_normal([int(s) for s in p.type.shape]).astype(np.float32)  # type: ignore[attr-defined]
            for p in example.params
        }
        reference = REFERENCES[file]
    return example, arrays, reference(*(a.astype(np.float64) for a in arrays.values()))


def test_every_example_has_a_reference_and_is_short() -> None:
    files = sorted(p for p in EXAMPLES.iterdir() if p.suffix in {".py", ".lift"})
    assert [p.name for p in files] == FILES
    for path in files:
        assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST, path


def test_every_family_of_built_in_programs_has_an_example() -> None:
    """Networks are convolutions, of which `convolution.py` is one."""
    sized = {name for name, family in FAMILIES.items() if isinstance(family, Family)}
    assert {family_of(name)[0] for name in BUILT_IN.values()} == sized


@pytest.mark.parametrize("file", BUILT_IN)
def test_an_example_takes_what_the_built_in_program_takes(file: str) -> None:
    example, same = program(file), workload(BUILT_IN[file])
    assert [p.type for p in example.params] == [p.type for p in same.params]
    assert example.type == same.type


@pytest.mark.parametrize("file", FILES)
def test_the_meaning_of_an_example_is_that_of_numpy(file: str) -> None:
    example, arrays, expected = case(file)
    got = evaluate(example, *arrays.values(), dtype=np.float64)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for part, of in pairs:
        np.testing.assert_allclose(part, of, rtol=1e-9, atol=1e-9)


def test_the_convolution_is_about_fifteen_lines() -> None:
    """Counted without blank lines, decorator included."""
    text = (EXAMPLES / "convolution.py").read_text(encoding="utf-8")
    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    lines = text.splitlines()[function.decorator_list[0].lineno - 1 : function.end_lineno]
    assert len([line for line in lines if line.strip()]) <= 15


@pytest.mark.parametrize("file", FILES)
def test_an_example_reads_back_from_its_text(file: str) -> None:
    """The embedded form and the text form say the same."""
    assert parse(show(program(file))) == program(file)


@pytest.mark.covering(2)
@pytest.mark.parametrize("file", REFERENCES)
def test_an_example_is_right(runtime: Device, file: str, kept: Path) -> None:
    """A drawn candidate of every family that applies."""
    drawn_candidates_are_right(runtime, file, kept)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("file", BUILT_IN)
def test_an_example_of_a_built_in_program_is_right(runtime: Device, file: str, kept: Path) -> None:
    """As tests/workloads tries the same program in the embedded form."""
    drawn_candidates_are_right(runtime, file, kept)


def drawn_candidates_are_right(runtime: Device, file: str, kept: Path) -> None:
    example, arrays, expected = case(file)
    of_first = draws(example, first(), 1, kept)
    drawn = tried(of_first, example, runtime)
    assert drawn
    given = [arrays[p.name] for p in example.params]
    modules = [d.module for d in drawn]
    for draw, got in zip(drawn, results(runtime, modules, given), strict=True):
        agrees(got, expected, draw.label)


def agrees(got: Any, expected: Any, what: object) -> None:
    """Whole numbers are equal, others near."""
    if isinstance(got, tuple):
        for part, of in zip(got, expected, strict=True):
            agrees(part, of, what)
        return
    assert got.shape == expected.shape, what
    bound = 0 if got.dtype.kind in "iu" else 2e-5 * np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=str(what))

"""The examples run, are short, and compute what numpy does; the convolution is very short."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from liftpy.compile import compile_candidate, skeletons
from liftpy.constraints.device import Device
from liftpy.explore.space import Space
from liftpy.ir.expr import Program
from liftpy.opencl.run import Session
from liftpy.primitives.text import parse, show
from liftpy.semantics.sizes import at_sizes

EXAMPLES = Path(__file__).parent.parent / "examples"
LONGEST = 40  # lines
DRAWS = 3  # of each family
Array = np.ndarray


def windows(x: Array, *size: int) -> Array:
    """All windows over the first dimensions."""
    return np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(len(size))))


def wide(x: Array, rank: int, mode: str = "edge", **more: float) -> Array:
    """The array with one more element at each end of its first dimensions."""
    amounts = [(1, 1)] * rank + [(0, 0)] * (x.ndim - rank)
    return np.pad(x, amounts, mode, **more)  # type: ignore[call-overload]


def jacobi(x: Array) -> Array:
    y = wide(x, 2)
    return (y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] + x) / 5


def nbody(p: Array, m: Array) -> Array:
    d = p[None] - p[:, None]
    return np.einsum("ij,ijk->ik", m / ((d**2).sum(2) + 0.01) ** 1.5, d)


def complex_dot(xr: Array, xi: Array, yr: Array, yi: Array) -> tuple[Array, Array]:
    product = (xr + 1j * xi) @ (yr + 1j * yi)
    return product.real, product.imag


def convolution(x: Array, w: Array, b: Array) -> Array:
    return np.einsum("ijckl,mklc->ijm", windows(wide(x, 2, "constant"), 3, 3), w) + b


#: The reference of every example, in float64.
REFERENCES: dict[str, Callable[..., Any]] = {
    "blur.py": lambda x: windows(wide(x, 2, "constant"), 3, 3).mean((2, 3)),
    "box_blur.lift": lambda x: windows(wide(x, 2), 3, 3).mean((3, 4)),
    "complex_dot.lift": complex_dot,
    "convolution.py": convolution,
    "depthwise.lift": lambda x, w: np.einsum(
        "ijckl,klc->ijc", windows(wide(x, 2, "constant"), 3, 3), w
    ),
    "dilated.lift": lambda x, w: w[0] * x[:-4] + w[1] * x[2:-2] + w[2] * x[4:],
    "dot.lift": lambda x, y: x @ y,
    "heat.lift": lambda x: windows(wide(x, 3), 3, 3, 3).mean((3, 4, 5)),
    "jacobi.lift": jacobi,
    "kmeans.lift": lambda p, c: ((p[:, None] - c) ** 2).sum(2).argmin(1),
    "matmul.lift": lambda a, b: a @ b,
    "matvec.lift": lambda a, x: a @ x,
    "max_pool.lift": lambda x: windows(wide(x, 2, "constant", constant_values=-np.inf), 3, 3)[
        ::2, ::2
    ].max((3, 4)),
    "nbody.lift": nbody,
    "transpose.lift": lambda a: a.T,
}


#: Numbers for the sizes that examples leave open.
SIZES = {"box_blur.lift": {"h": 19, "w": 23}, "complex_dot.lift": {"n": 1001}}


def program(file: str) -> Program:
    """The program that an example defines."""
    path = EXAMPLES / file
    if path.suffix == ".lift":
        return at_sizes(parse(path.read_text(encoding="utf-8")), SIZES.get(file, {}))
    found = [v for v in runpy.run_path(str(path)).values() if isinstance(v, Program)]
    assert len(found) == 1
    return found[0]


def test_every_example_has_a_reference_and_is_short() -> None:
    files = sorted(p for p in EXAMPLES.iterdir() if p.suffix in {".py", ".lift"})
    assert [p.name for p in files] == sorted(REFERENCES)
    for path in files:
        assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST, path


def test_the_convolution_is_about_fifteen_lines() -> None:
    """Counted without blank lines, decorator included."""
    text = (EXAMPLES / "convolution.py").read_text(encoding="utf-8")
    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    lines = text.splitlines()[function.decorator_list[0].lineno - 1 : function.end_lineno]
    assert len([line for line in lines if line.strip()]) <= 15


@pytest.mark.parametrize("file", REFERENCES)
def test_an_example_reads_back_from_its_text(file: str) -> None:
    """The embedded form and the text form say the same."""
    assert parse(show(program(file))) == program(file)


@pytest.mark.parametrize("file", REFERENCES)
def test_an_example_is_right(runtime: Device, file: str) -> None:
    """Drawn candidates of every family that applies."""
    example = program(file)
    rng = np.random.default_rng(1)
    arrays = {
        p.name: rng.standard_normal([int(s) for s in p.type.shape]).astype(np.float32)  # type: ignore[attr-defined]
        for p in example.params
    }
    expected = REFERENCES[file](*(a.astype(np.float64) for a in arrays.values()))
    space = Space.of(example, runtime, skeletons(example))
    assert space.families
    with Session(runtime) as session:
        for candidate in (c for f in space.families for c in space.sample(DRAWS, 2, f)):
            module = compile_candidate(candidate.skeleton, candidate.assignment)
            with session.load(module) as loaded:
                loaded.set_constants({n: arrays[n] for n in example.constants})
                inputs = {n: a for n, a in arrays.items() if n not in example.constants}
                agrees(loaded.run(inputs, poison=True), expected, candidate)


def agrees(got: Any, expected: Any, what: object) -> None:
    """Whole numbers are equal, others near."""
    if isinstance(expected, tuple):
        for part, of in zip(got, expected, strict=True):
            agrees(part, of, what)
        return
    assert got.shape == expected.shape, what
    bound = 0 if got.dtype.kind == "i" else 2e-5 * np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=str(what))

"""The examples run, and the convolution in the embedded form is short."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import numpy as np

from liftpy.compile import compile_candidate, skeletons
from liftpy.constraints.device import Device
from liftpy.ir.expr import Program
from liftpy.opencl.run import Session
from liftpy.primitives.text import parse, show
from liftpy.semantics.evaluate import evaluate

EXAMPLES = Path(__file__).parent.parent / "examples"


def program(file: str, name: str) -> Program:
    """The program that an example defines."""
    found = runpy.run_path(str(EXAMPLES / file))[name]
    assert isinstance(found, Program)
    return found


def test_the_convolution_is_about_fifteen_lines() -> None:
    """Counted without blank lines, decorator included."""
    text = (EXAMPLES / "convolution.py").read_text(encoding="utf-8")
    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    lines = text.splitlines()[function.decorator_list[0].lineno - 1 : function.end_lineno]
    assert len([line for line in lines if line.strip()]) <= 15


def test_the_convolution_reads_back_from_its_text() -> None:
    """The embedded form and the text form say the same."""
    conv = program("convolution.py", "convolution")
    assert parse(show(conv)) == conv


def test_a_blur_and_a_matrix_product_run(runtime: Device) -> None:
    """Every family that applies to them gives the meaning, on the device."""
    for example in (
        program("blur.py", "blur"),
        parse((EXAMPLES / "matmul.lift").read_text(encoding="utf-8")),
    ):
        rng = np.random.default_rng(1)
        arrays = {
            p.name: rng.standard_normal([int(s) for s in p.type.shape]).astype(np.float32)  # type: ignore[attr-defined]
            for p in example.params
        }
        expected = evaluate(example, *arrays.values(), dtype=np.float64)
        sizes = {"direct": {"kappa": 16, "sigma": 4, "v": 8}}
        for skeleton in skeletons(example):
            module = compile_candidate(skeleton, sizes.get(skeleton.family, {}))
            with Session(runtime) as session, session.load(module) as loaded:
                loaded.set_constants({n: a for n, a in arrays.items() if n in example.constants})
                got = loaded.run({n: a for n, a in arrays.items() if n not in example.constants})
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

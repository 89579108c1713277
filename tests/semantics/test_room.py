"""An evaluation holds no more memory than was said before."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from liftpy.language.text.program import parse
from liftpy.semantics import numbers
from liftpy.semantics.evaluate import evaluate, evaluate_at
from liftpy.semantics.room import evaluation_bytes

SUM = "reduce((s, x) => s + x, 0)"
PROGRAMS = {
    "a name": "let ys = (xs |> map(x => x * 2)) in zip(ys, ys) |> map((a, b) => a + b)",
    "a large name": f"let t = (xs |> map(x => xs |> map(y => x * y))) in t |> map({SUM})",
    "a large name for each element": f"""xs |> map(x =>
        let t = (xs |> map(y => xs |> map(z => x * y - z))) in t |> map({SUM}) |> {SUM})""",
    "a scan of arrays": f"""xs |> scan((s, x) => s |> map(y => y * x), xs) |> map({SUM})""",
    "a scan from constants for each element": f"""xs |> map(x => xs |> map(y => xs
        |> exclusiveScan((s, z) => (s.1 * x, s.2 * y, s.3 + z * x, s.0 - y), (1, 2, 3, 4))
        |> map(s => s.0 * s.1 - s.2 * s.3) |> {SUM}) |> {SUM})""",
    "a fold of arrays for each element": f"""xs |> map(x =>
        xs |> reduce((s, y) => s |> map(z => z * y - x), xs) |> {SUM})""",
    "a fold that turns": """xs |> reduce((s, x) =>
        s |> reorder(i => 47 - i, i => 47 - i) |> map(z => z * x), xs)""",
    "pairs": f"""let ps = (xs |> map(x => (x, xs |> map(y => x * y)))) in
        ps |> map(p => p.0 * (p.1 |> {SUM}))""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("at_points", [False, True])
def test_an_evaluation_holds_no_more_than_was_said(
    name: str, at_points: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "ROOM", 1 << 18)
    monkeypatch.setattr(numbers, "BLOCK", 1 << 10)
    program = parse(f"def p(xs: [48]f32) = {PROGRAMS[name]}")
    xs = np.linspace(0, 1, 48, dtype=np.float32)
    points = np.arange(0, 48, 2).reshape(-1, 1)
    said = evaluation_bytes(program.body, np.float64, len(points) if at_points else None)
    evaluate(program, xs, dtype=np.float64)  # what is cached is there
    tracemalloc.start()
    try:
        if at_points:
            evaluate_at(program, points, xs, dtype=np.float64)
        else:
            evaluate(program, xs, dtype=np.float64)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < said, f"{most:,} bytes, {said:,} were said"
    assert said < 2 << 20

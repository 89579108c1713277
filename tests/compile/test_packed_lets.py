"""Weights that a `let` reorders are packed as constants are: once, before the runs."""

import numpy as np

import liftpy as lp
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.block import constants_of
from tests.batch import results

LAYER = """
def layer(x: [7][6]f32, const w: [8][6][1]f32, const b: [8]f32) =
  let v = (w |> map(kernel => kernel |> transpose)) in
  x |> map(row => zip(v, b) |> map((kernel, bias) =>
    zip(row, kernel |> join) |> map(mul) |> reduce(add, bias)))"""
SETTINGS = {"family": "direct", "pad": "fused", "level": "glb", "kappa": 4, "sigma": 7, "v": 4}


def test_a_block_reads_vectors_of_packed_weights(runtime):
    space = lp.space(lp.parse(LAYER), runtime, families=["direct"])
    candidate = space.candidate({n: v for n, v in SETTINGS.items() if n != "pad"})
    module = compile_candidate(candidate.skeleton, candidate.point)
    (packed,) = [b for b in module.buffers if b.role == "packed"]
    assert packed.bytes == 8 * 6 * 4
    assert f"vload4(0, &{packed.name}[" in module.source
    rng = np.random.default_rng(4)
    x, w, b = (rng.standard_normal(s, np.float32) for s in ((7, 6), (8, 6, 1), (8,)))
    (found,) = results(runtime, [module], [x, w, b])
    np.testing.assert_allclose(found.reshape(7, 8), x @ w[:, :, 0].T + b, rtol=1e-5, atol=1e-6)


def test_a_name_of_two_variables_of_one_type_is_no_constant():
    text = """
        def f(x: [4][8]f32, const w: [8]f32) =
          let v = (w |> map(a => a * 2)) in x |> map({row} => zip({row}, v) |> map(mul))"""
    apart = lp.parse(text.format(row="row"))
    assert {p.name for p in constants_of(apart.body.body, apart.constants)} == {"w", "v"}
    inner = lp.parse(text.format(row="row").replace("|> map(mul))", "|> map(mul) |> (v => v))"))
    assert {p.name for p in constants_of(inner.body.body, inner.constants)} == {"w"}

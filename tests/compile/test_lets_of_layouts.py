"""A `let` of a layout changes no space; weights that it reorders are packed before the runs."""

import numpy as np

import liftpy as lp
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.forms import partitions
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


CONVOLUTION = """
def layer(x: [2][4][6]f32, const w: [5][2][3][3]f32, const b: [5]f32) = (
  {let}
  x |> transpose |> map(transpose) |> pad(1, 1, 0) |> map(pad(1, 1, 0)) |> slide(3, 1)
    |> map(map(slide(3, 1)) |> transpose)
    |> map(row => row |> map(window => zip({v}, b) |> map((kernel, bias) =>
      zip(window |> join |> join, kernel |> join |> join) |> map(mul) |> reduce(add, bias))))
  ) |> map(row => row |> map(point => point |> map(e => max(e, 0))))"""
ORDER = "w |> map(image => image |> transpose |> map(transpose))"


def test_a_let_of_a_layout_changes_no_space() -> None:
    named = lp.parse(CONVOLUTION.format(let=f"let v = {ORDER} in", v="v"))
    written = lp.parse(CONVOLUTION.format(let="", v=ORDER))
    families = ["direct", "cooperative"]
    one, two = (lp.space(p, "profile:mali-g72", families=families) for p in (named, written))
    assert {m.skeleton.key for m in one.members} == {m.skeleton.key for m in two.members}
    assert [p.key for p in one.products] == [p.key for p in two.products]
    assert one.count() == two.count()
    words = [dict(form.words) for form in partitions(named)]
    assert {form.get("winograd") for form in words} > {None, "2x2", "4x4"}
    assert "cooperative" in {m.family for m in one.members}


def test_a_let_of_two_arrays_is_not_inlined() -> None:
    """A chain of them would double its length at each step."""
    steps = " ".join(f"let y{k + 1} = concat(y{k}, y{k} |> take(1)) in" for k in range(4))
    program = lp.parse(f"def views(y0: [4]f32) = {steps} y4 |> map(e => e + 1)")
    (form,) = partitions(program)
    assert lp.show(form.stages[0].program).count("concat") == 4

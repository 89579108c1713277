"""The three families on small odd layers: every drawn candidate builds, runs and is right."""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from liftpy.constraints.collect import collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate, compile_program
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategy import replay
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads import Convolution, convolution, matmul, workload
from tests.batch import results
from tests.draws import draws, tried
from tests.loops.interpreted import interpreted
from tests.oclgrind import check_all_under_oclgrind
from tests.spaces import as_one_stage, some_of
from tests.subsample import first

LAYERS: dict[str, Convolution] = {
    "prime": Convolution(3, 11, 13, 5, (3, 3), (1, 1), (1, 1, 1, 1)),
    "stride2": Convolution(3, 11, 13, 6, (3, 3), (2, 2), (1, 1, 1, 1)),
    "1x1": Convolution(3, 7, 11, 4, (1, 1)),
    "5x5": Convolution(3, 11, 13, 4, (5, 5), (1, 1), (2, 2, 2, 2)),
    "asymmetric": Convolution(3, 11, 13, 4, (3, 3), (1, 1), (2, 0, 1, 3)),
    "rectangular": Convolution(3, 11, 13, 4, (3, 2), (1, 2), (1, 1, 0, 1)),
    "four channels": Convolution(4, 7, 9, 8, (3, 3), (1, 1), (1, 1, 1, 1)),
}
PROGRAMS = [*LAYERS, "matmul"]
WATCHED = 1  # of these, how many are run under Oclgrind
TILED = {"prime", "stride2", "5x5", "four channels"}  # those that square tiles fit
DRAWS = 2  # per family and runtime; a campaign's worth is drawn in benchmarks/vgg16.py


@cache
def program(name: str) -> Program:
    """The program of a case."""
    return matmul(7, 11, 6) if name == "matmul" else convolution(LAYERS[name], "layer")


@cache
def data(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Distinct inputs and the float64 reference, in numpy alone where the case is a convolution."""
    rng = np.random.default_rng(7)
    shapes = {p.name: [int(s) for s in p.type.shape] for p in program(name).params}
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    if name == "matmul":
        return arrays, arrays["a"].astype(np.float64) @ arrays["b"].astype(np.float64)
    return arrays, direct(LAYERS[name], **{n: a.astype(np.float64) for n, a in arrays.items()})


def direct(layer: Convolution, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A convolution written with slices, independent of liftpy."""
    top, bottom, left, right = layer.padding
    padded = np.pad(x, ((top, bottom), (left, right), (0, 0)))
    out = np.empty((*layer.out, layer.kernels))
    for i, j in np.ndindex(layer.out):
        y, z = i * layer.stride[0], j * layer.stride[1]
        window = padded[y : y + layer.kernel[0], z : z + layer.kernel[1]]
        out[i, j] = np.tensordot(w, window, 3) + b
    return out


@pytest.mark.sampled(16)
@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_drawn_candidate_is_right(
    runtime: Device, name: str, family: str, kept: Path
) -> None:
    """What the constraints allow compiles, runs and agrees with numpy in float64."""
    arrays, expected = data(name)
    of_first = draws(program(name), first(), DRAWS, kept, (family,))
    drawn = tried(of_first, program(name), runtime)
    if family in {"plain", "direct"} or (family == "staged" and name in TILED):
        assert drawn
    modules = [d.module for d in drawn]
    given = [arrays[p.name] for p in program(name).params]
    for draw, got in zip(drawn, results(runtime, modules, given), strict=True):
        error = np.abs(got - expected).max() / np.abs(expected).max()
        assert error <= 1e-5, (draw.label, error)


def example(family: str, name: str = "four channels") -> list[tuple[Skeleton, dict[str, int]]]:
    """One small candidate of each skeleton of a family."""
    sizes = {
        "plain": {},
        "direct": {"kappa": 4, "sigma": 3, "v": 2},
        "local": {"theta": 3},
        "staged": {"theta": 4, "rho": 1, "kappa": 2, "sigma": 2, "omega": 12, "v": 2},
        "cooperative": {"tile0": 9, "tile1": 4, "sigma": 3, "kappa": 2, "chunk": 6, "part": 12},
        "broadcast": {"group": 4, "sigma": 9, "kappa": 2, "chunk": 3, "part": 12, "v": 1},
        "sliced": {"kappa": 4, "sigma": 3, "v": 2, "chunk": 2, "turns": 1},
    }
    if name == "matmul":
        sizes["cooperative"] = {"tile0": 7, "tile1": 6, "sigma": 1, "kappa": 3, "chunk": 11}
        sizes["broadcast"] |= {"group": 3, "sigma": 7, "chunk": 1, "part": 1}
        sizes["direct"] = {"kappa": 6, "sigma": 7, "v": 2}
        sizes["sliced"] = {"kappa": 3, "sigma": 1, "v": 1, "chunk": 11, "turns": 1}
    sizes["cooperative"] |= {"v": 1, "gap": 1}
    return [(s, sizes[family]) for s in as_one_stage(program(name), (family,))]


@pytest.mark.slow
@pytest.mark.oclgrind
@pytest.mark.sampled(12)
@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("names", [PROGRAMS[k::4] for k in range(4)], ids=" ".join)
def test_no_race_and_no_stray_access(family: str, names: list[str], kept: Path) -> None:
    """Oclgrind finds no race, no out-of-bounds access and no uninitialised read in any layer.

    Small ones of those that are drawn, since Oclgrind is slow, and such as a GPU takes.
    """
    jobs, cases = [], []
    for name in names:
        arrays, _ = data(name)
        drawn = draws(program(name), first(), DRAWS, kept, (family,))
        small = sorted(drawn, key=lambda d: work_items(d.module))
        fitting = (d for d in small if d.allowed(program(name), generic()))
        watched = list(islice(fitting, WATCHED))
        assert len(watched) == min(WATCHED, len(drawn)), name
        jobs += [(draw.module, arrays) for draw in watched]
        cases += [(name, draw.label) for draw in watched]
    if family in {"plain", "direct"}:
        assert {name for name, _ in cases} == {*names}
    checked = check_all_under_oclgrind(jobs) if jobs else []
    for (name, key), (got, complaints) in zip(cases, checked, strict=True):
        assert not complaints, (name, key, complaints[:3])
        _, expected = data(name)
        bound = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=f"{name} {key}")


def test_only_sizes_that_a_derivation_uses_are_open() -> None:
    """Else one kernel would be drawn as often as there are numbers for a size that it has not."""
    made = as_one_stage(workload("nn/23x3"), ("tiled",))
    sizes = {dict(s.choices)["vector"]: [p.name for p in s.parameters] for s in made}
    assert sizes == {"no": ["tile0"], "yes": ["tile0", "v"]}
    made = as_one_stage(workload("matvec/23x3"), ("tiled",))
    sizes = {dict(s.choices)["vector"]: [p.name for p in s.parameters] for s in made}
    assert sizes == {"no": ["tile0"], "yes": ["tile0", "v"]}


@pytest.mark.parametrize(
    ("body", "flats"),
    [
        ("xs |> map(map(x => max(x, 0)))", {"yes"}),
        ("zip(xs, ys) |> map((a, b) => zip(a, b) |> map(add))", {"yes"}),
        ("xs |> transpose |> map(map(x => max(x, 0)))", {"no", "yes"}),
        ("xs |> map(slide(3, 1)) |> map(map(reduce(add, 0)))", {"no", "yes"}),
        ("xs |> map(a => zip(a, bias) |> map(add))", {"no", "yes"}),
        ("zip(xs, bias) |> map((a, b) => a |> map(x => x + b))", {"no"}),
    ],
)
def test_elements_that_share_nothing_are_one_row(body: str, flats: set[str]) -> None:
    """Of others, tiles of two maps have neighbours, or what rows share."""
    source = f"def p(xs: [12][12]f32, ys: [12][12]f32, bias: [12]f32) = {body}"
    made = as_one_stage(parse(source), ("tiled",))
    assert {dict(s.choices)["flat"] for s in made} == flats


def work_items(module: Module) -> int:
    """How many work-items all launches have."""
    return sum(int(np.prod(launch.global_size)) for launch in module.launches)


def test_memory_figures() -> None:
    """The direct form needs only what it stores of the input; packed weights replace raw ones."""
    arrays, expected = data("four channels")
    needed = arrays["x"].nbytes + arrays["w"].nbytes + arrays["b"].nbytes + expected.size * 4
    padded = {
        "fused": 0,
        "columns": 7 * 11 * 4 * 4,
        "copy": 9 * 11 * 4 * 4,
        "windows": 7 * 9 * 9 * 4 * 4,
    }
    for skeleton, assignment in example("direct"):
        memory = compile_candidate(skeleton, assignment).memory
        assert memory.scratch == padded[dict(skeleton.choices)["pad"]], skeleton.key
        assert memory.peak == needed + memory.scratch
        assert memory.allocated == memory.peak
        assert memory.private == 3 * 4 * 4


def test_same_seed_same_sources() -> None:
    """Deriving, drawing and compiling again gives the same text, byte for byte."""
    fresh = convolution(LAYERS["prime"], "layer")
    alike = program("prime"), fresh
    both = [*zip(*([s for f in FAMILIES for s in some_of(p, f, 1)] for p in alike), strict=True)]
    assert len({one.family for one, _ in both}) > 3
    assert all(one == other for one, other in both)
    device = generic()
    for one, other in both[::2]:
        for a, b in zip(
            Space(collect(one, device)).sample(3, 5),
            Space(collect(other, device)).sample(3, 5),
            strict=True,
        ):
            assert a == b
            assert compile_candidate(one, a).source == compile_candidate(other, b).source


def generic() -> Device:
    """A device that need not be there."""
    return Device.from_json(
        {
            "name": "generic",
            "vendor": "none",
            "platform": "none",
            "driver_version": "0",
            "opencl_c": "OpenCL C 1.2",
            "type": "GPU",
            "compute_units": 4,
            "max_work_group_size": 256,
            "max_work_item_sizes": [256, 256, 64],
            "local_memory": 32768,
            "largest_buffer": 1 << 28,
            "global_memory": 1 << 30,
            "vector_width": 4,
        }
    )


@pytest.mark.parametrize("family", list(FAMILIES))
def test_derivations_replay(family: str) -> None:
    """The stored steps, applied again one by one, give the same lowered program."""
    for skeleton in some_of(program("prime"), family, 3):
        *_, (_, last) = replay(skeleton.derivation.start, skeleton.derivation.steps)
        assert last == skeleton.program.body.body


@pytest.mark.sampled(8)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_derivation_keeps_the_meaning(family: str, part: int) -> None:
    """The lowered program, sizes filled in, means what the high-level one does."""
    arrays, expected = data("four channels")
    for skeleton, assignment in example(family)[part::4]:
        lowered = skeleton.at(assignment)
        value = evaluate(lowered, *(arrays[p.name] for p in lowered.params), dtype=np.float64)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_direct_matrix_product_is_register_blocked() -> None:
    """Nothing in it is about convolution: a matrix product gets blocks and packed constants."""
    for skeleton, assignment in example("direct", "matmul"):
        compilation = compile_program(skeleton.at(assignment))
        phases = [k.phase for k in compilation.chain.kernels]
        packs = "pack" in dict(skeleton.choices)
        assert phases == ["prepare", *(["run"] if packs else []), "run"]
        assert "vload2" in compilation.module.source
        assert compilation.module.memory.private == 7 * 6 * 4


def test_partial_results_of_an_operator_that_does_not_commute_have_adjacent_elements() -> None:
    program = parse("""fun later(x: i32, y: i32) = select(y == 0, x, y) laws associative, neutral 0
        def p(xs: [12]i32) = xs |> reduce(later, 7)""")
    (skeleton,) = as_one_stage(program, ("partial",))
    assert skeleton.words["strided"] == "no"
    xs = np.array([3, 0, 0, 5, 0, 2, 0, 0, 4, 0, 0, 0], np.int32)
    compilation = compile_program(skeleton.at({"chunk": 3}))
    assert interpreted(compilation, compilation.optimized, {"xs": xs}) == 4


def test_local_needs_a_result_that_its_maps_can_store() -> None:
    """Windows of the result are read: no map over tiles can write to them."""
    folds = "x |> slide(2, 1) |> map(reduce(add, 0))"
    text = f"def p(x: [9]f32) = {folds} |> slide(3, 3) |> map(take(2))"
    found = skeletons_of(FAMILIES["local"], parse(text))
    assert found == "local: no map over windows makes the result in one kernel"

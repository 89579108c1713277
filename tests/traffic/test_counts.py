"""The loads and stores that the model counts, against those that Oclgrind counts.

They are not the same: the model reads the loop IR before the passes on it, and takes three things
to be true (`ASSUMED`). So the loop IR is run. Both steps between it and the counts are exact: after
the passes, as it is, it has Oclgrind's; before them, with what is assumed, it has the model's.
"""

import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.replay import named_candidate
from liftpy.explore.measure.inputs import inputs
from liftpy.loops.values import SUBGROUP_LOCAL_ID
from liftpy.opencl.arguments import by_buffer
from liftpy.pipeline import compile_candidate, run_code
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.traffic.reading import Reader
from liftpy.traffic.subgroups import with_subgroups_of
from liftpy.workloads import Convolution
from liftpy.workloads.convolution import convolution
from liftpy.workloads.networks import square
from tests.oclgrind import executed_under_oclgrind
from tests.staged import by_definition
from tests.staged import candidates as drawn
from tests.traffic.executions import ASSUMED, ONCE, executions
from tests.traffic.test_reading import codes_of
from tests.workloads.test_workloads import SIZED, case, small

GPU = replace(DEFAULT_DEVICE, type="GPU", vector_width=4, compute_units=3)
PRODUCT = lp.workload("matmul/8x12x16")
LAYER = convolution(square(8, 8, 8), "c")
ROWS = "{xs} |> map(row => {ys} |> transpose |> map(column => {sum}))"
SUM = "zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)"
ODD = lp.parse(f"def odd(a: [7][6]f32, b: [6][12]f32) = {ROWS.format(xs='a', ys='b', sum=SUM)}")
HALVES = lp.parse(
    f"def halves(a: [8][6]f16, b: [6][16]f16) = {ROWS.format(xs='a', ys='b', sum=SUM)}"
)
BATCHED = lp.parse(
    "def batched(a: [3][5][6]f32, b: [3][6][10]f32) = zip(a, b) |> map((xs, ys) =>"
    f" {ROWS.format(xs='xs', ys='ys', sum=SUM)})"
)
STORED = lp.with_storage(
    lp.parse(
        f"def stored(a: [6][8]f32, const b: [8][8]f32) = {ROWS.format(xs='a', ys='b', sum=SUM)}"
    ),
    {"b": "binary16"},
)
PASSES = lp.parse(
    "def passes(xss: [3][5]f32) = xss |> map(row => row |> slide(2, 1)"
    " |> map(reduce((a, x) => a * 0.5 - x, 1)))"
)
FOLDED = lp.parse("def folded(xs: [101]f32) = xs |> map(x => x * x) |> reduce(add, 0)")
SCALED = lp.parse(
    "def scaled(xss: [3][23]f32) = xss |> map(row =>"
    " let sum = (row |> reduce(add, 0)) in row |> map(x => x / sum))"
)
DEPTHWISE = lp.workload("convolution/depthwise/5x4x3x3x1")
PADDED = Convolution(3, 5, 4, 10, (3, 3), (1, 1), (1, 1, 1, 1))
LAST, FIRST = (convolution(replace(PADDED, layout=x), "c") for x in ("nhwc", "nchw"))


def tiled(tile0, tile1, sigma, kappa, chunk, v, gap):
    return {
        "tile0": tile0,
        "tile1": tile1,
        "sigma": sigma,
        "kappa": kappa,
        "chunk": chunk,
        "v": v,
        "gap": gap,
    }


ONE, TWO = (f"cooperative(chunks=even, buffers={n})" for n in "12")
BROADCAST = {"sigma": 2, "kappa": 4, "group": 4, "v": 4}
BLOCK = {"sigma": 4, "kappa": 8, "v": 4}
ROW = {"tile0": 12, "tile1": 5, "v": 4}


def winograd(pad):
    """F(2, 3), whose transform of tiles reads padding."""
    small = "small(winograd=2x2, pad={}, map=wrg0.lcl0.seq)"
    return (
        f"inputs={small.format(pad)}; filters={small.format('fused')};"
        " products=direct(winograd=2x2, pad=fused, level=glb);"
        f" result={small.format('fused')}"
    )


PRODUCTS = {"products.kappa": 4, "products.sigma": 2, "products.v": 4}

FORMS = [
    (PRODUCT, "plain(pad=fused, map=glb1.glb0)", {}),
    (PRODUCT, "direct(pad=fused, level=glb)", BLOCK),
    (PRODUCT, ONE, tiled(4, 8, 2, 4, 4, 1, 0)),
    (PRODUCT, ONE, tiled(4, 8, 2, 4, 4, 4, 4)),
    (PRODUCT, TWO, tiled(8, 16, 2, 8, 3, 4, 1)),
    (ODD, TWO, tiled(7, 12, 7, 4, 3, 2, 2)),
    (BATCHED, ONE, tiled(5, 10, 1, 2, 2, 2, 3)),
    (STORED, "cooperative(b=f32, chunks=even, buffers=1)", tiled(3, 8, 3, 4, 4, 2, 1)),
    (LAYER, "direct(pad=copy, level=glb)", BLOCK),
    (LAYER, "direct(pad=fused, level=glb)", BLOCK),
    (LAYER, "plain(pad=fused, map=glb0.glb2.glb1)", {}),
    (DEPTHWISE, "tiled(flat=yes, vector=yes, pad=fused, map=glb1.seq.glb0)", ROW),
    # one block stores cells and loads them again:
    (PASSES, "planes(inside=1, hold=private, items=one, pad=fused, vector=no)", {}),
    (LAST, "cooperative(chunks=padded, buffers=2)", tiled(4, 10, 2, 2, 5, 2, 2)),
    (FIRST, "cooperative(lanes=outer, chunks=padded, buffers=1)", tiled(5, 4, 5, 2, 4, 2, 3)),
    # Oclgrind has no subgroups, so each work-item reads what subgroups would hold:
    (PRODUCT, "broadcast(chunks=even)", {**BROADCAST, "chunk": 4}),
    (LAST, "broadcast(chunks=padded)", {**BROADCAST, "chunk": 5, "group": 5, "kappa": 2, "v": 2}),
    (FOLDED, "tree(steps=4, strided=yes, last=group)", {"group": 11, "chunk": 3}),
    (FOLDED, "tree(steps=4, strided=no, last=item)", {"group": 16, "chunk": 2}),
    (SCALED, "tree(steps=4, strided=yes)", {"group": 13}),
    (SCALED, "subgroups(level=subgroup)", {"sigma": 3, "group": 2}),
    (LAYER, winograd("classes"), PRODUCTS),
    # stores that are guarded:
    (
        lp.workload(small("pool/maskback")),
        "tiled(flat=no, vector=no, pad=fused, map=glb1.glb0.seq.seq.seq)",
        {"tile0": 1, "tile1": 3},
    ),
]


WITHOUT_OCLGRIND = [  # it has no cl_khr_fp16
    (HALVES, TWO, tiled(8, 16, 4, 8, 3, 4, 2)),
    (HALVES, ONE, tiled(8, 16, 4, 8, 3, 8, 1)),
]


def form(program, key, sizes):
    return named_candidate(program, key, sizes, "a form of these tests")


def alone(codes):
    """Kernels on a device without subgroups, such as Oclgrind's: each work-item is one."""
    return [with_subgroups_of(code, 1) for code in codes]


def modelled(candidate):
    """The counts of all work-items of each run-phase kernel."""
    found = []
    for code in alone(codes_of(candidate)):
        reader = Reader("gid0", ids={**code.ranges, SUBGROUP_LOCAL_ID: 1})
        reader.block(code.block, {}, [])
        items = math.prod(code.global_size)
        found.append(Counter({key: n * items for key, n in reader.counts.executed.items()}))
    return found


def before_passes(candidate, assumed=frozenset()):
    """The counts of the loop IR that the model reads, by running it."""
    return [executions(code, assumed) for code in alone(codes_of(candidate))]


def emitted(candidate, assumed=frozenset()):
    """The counts of the loop IR from which C is printed, by running it."""
    low = candidate.skeleton.at(candidate.point)
    return [executions(code, assumed) for code in alone(run_code(low))]


def differing(candidates, arrays):
    """The candidates of which Oclgrind does not execute what the loop IR does, on these arrays."""
    modules = [compile_candidate(c.skeleton, c.point) for c in candidates]
    jobs = [
        (module, by_buffer(module, tuple(given.values())))
        for module, given in zip(modules, arrays, strict=True)
    ]
    for candidate, module, counted in zip(
        candidates, modules, executed_under_oclgrind(jobs), strict=True
    ):
        run = [n for n, x in zip(counted, module.launches, strict=True) if x.phase == "run"]
        if run != [*map(as_oclgrind_counts, emitted(candidate))]:
            yield candidate.label


def as_oclgrind_counts(counts):
    """Counts by width, with aligned vectors in local memory as scalars and their bytes."""
    found = Counter()
    for (space, stores, width), count in counts.items():
        local = space == "local"
        found[space, stores, 1 if local else width] += count
        if local:
            found[space, stores, "bytes"] += 4 * width * count
    return found


@pytest.mark.sampled(12)
@pytest.mark.oclgrind
@pytest.mark.parametrize("part", range(12))
def test_oclgrind_executes_what_the_loop_ir_does(part):
    some = FORMS[part::12]
    candidates = [form(*one) for one in some]
    assert not [*differing(candidates, [inputs(program) for program, *_ in some])]


#: What it loads for an element depends on data; the loop IR counts both branches.
BY_DATA = {"pool/argmaxback"}
#: Oclgrind's compiler keeps guarded loads of rows that only large subgroups would read.
UNREAD = {"convolution/strided:nchw"}


def of_workload(name):
    """A candidate of a workload, by any family that applies."""
    some = Random(f"5 {name}")
    families = some.sample([*FAMILIES], len(FAMILIES))
    program = lp.workload(small(name))
    return next(c for f in families for c in drawn(program, GPU, f, some, by_definition))


@pytest.mark.sampled(16)
@pytest.mark.oclgrind
@pytest.mark.parametrize("part", range(16))
def test_the_counts_of_every_workload_are_those_of_its_loop_ir(part):
    """Where the loop IR is only counted, what is loaded is 0."""
    some = [(name, of_workload(name)) for name in SIZED[part::16]]
    fixed = [(c, case(name)[1]) for name, c in some if name not in BY_DATA | UNREAD]
    assert not [*differing(*zip(*fixed, strict=True))]
    for _, candidate in some:
        assert modelled(candidate) == before_passes(candidate, ASSUMED), candidate.label


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("program", "key", "sizes"), [*FORMS, *WITHOUT_OCLGRIND], ids=str)
def test_the_model_counts_what_the_loop_ir_does_if_three_things_hold(program, key, sizes):
    candidate = form(program, key, sizes)
    assert modelled(candidate) == before_passes(candidate, ASSUMED)
    for before, after in zip(before_passes(candidate), emitted(candidate), strict=True):
        assert after <= before, "passes remove accesses"
    if "cooperative" in key:  # nothing else than equal loads
        once = frozenset({ONCE})
        assert before_passes(candidate, once) == emitted(candidate, once)


def test_a_kernel_with_classes_of_padding_counts_as_one_version_of_its_code():
    """A work-item runs one of the versions, which has fewer guards and loads than the others."""
    classes, fused = (form(LAYER, winograd(pad), PRODUCTS) for pad in ("classes", "fused"))
    assert modelled(classes) == modelled(fused)
    (first, *others), (guarded, *same) = emitted(classes), emitted(fused)
    assert others == same
    assert first == guarded <= modelled(fused)[0]


@pytest.mark.parametrize("v", [1, 4])
@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("sigma", "kappa", "chunk"), [(2, 4, 4), (2, 4, 3), (4, 8, 4), (1, 4, 6)])
def test_each_assumption_adds_or_removes_what_the_documentation_says(sigma, kappa, chunk, v, gap):
    """The formulas of docs/choosing.md, for tiles of 4 x 8 results of a product."""
    rows, common, columns = 8, 12, 16
    tiles = rows // 4 * (columns // 8)
    group = 4 // sigma, 8 // kappa
    items, steps = math.prod(group), common // chunk
    candidate = form(PRODUCT, ONE, tiled(4, 8, sigma, kappa, chunk, v, gap))
    (code,), (model,) = emitted(candidate), modelled(candidate)
    copied = tiles * common * (4 + 8)  # whatever the gap is
    shares = [  # elements of a row of the first array are adjacent, and of a row of the second
        math.ceil(4 / group[0]) * math.ceil(chunk / group[1]),
        math.ceil(chunk / group[0]) * math.ceil(8 / group[1]),
    ]

    assert code["global", False, 1] == copied
    assert code["local", True, 1] == copied
    for key in (("global", False, 1), ("local", True, 1)):
        assert model[key] == tiles * steps * items * sum(shares)
    if all(chunk % n == 0 for n in group):
        assert model["local", True, 1] == copied

    read = tiles * items * common
    repeated = Counter({("local", False, 1): read * sigma * kappa // v})
    repeated["local", False, v] += read * sigma * kappa // v
    once = Counter({("local", False, 1): read * sigma})
    once["local", False, v] += read * kappa // v
    for counted, wanted in ((code, repeated), (model, once)):
        assert {k: n for k, n in counted.items() if k[:2] == ("local", False)} == wanted

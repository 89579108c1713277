"""The energy proxy: what the emitted code executes, what the model moves, and their costs."""

import json
import math
import re
from dataclasses import replace

import pytest

import liftpy as lp
from liftpy.errors import StoreRefused
from liftpy.explore.campaign.replay import named_candidate
from liftpy.explore.measure.inputs import inputs
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import (
    chain_of,
    compile_candidate,
    compile_program,
    counted_loops_of,
    run_code,
)
from liftpy.primitives.counting import operations
from liftpy.primitives.dialects import LoweredProgram
from liftpy.traffic.energy import energy_proxy, executed, proxy_of
from liftpy.traffic.energy_costs import FOLDER, KINDS, energy_costs
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.model import Modelled, ModelledKernel
from liftpy.traffic.reading import work_of
from liftpy.traffic.reuse import Traffic
from liftpy.traffic.time import modelled
from tests.oclgrind import counted_under_oclgrind
from tests.traffic.test_counts import GPU, LAYER, PRODUCT

PROCESSOR = replace(GPU, type="CPU", vector_width=8, compute_units=4)
COSTS = energy_costs()
CHUNKED = {"tile0": 4, "tile1": 8, "sigma": 1, "kappa": 1, "chunk": 4, "v": 1, "gap": 0}
PLAIN = {"family": "plain"}
MULTIPLY, ADD = ("*", "f32"), ("+", "f32")


#: Forms by the keys of their skeletons: the space of a whole layer takes long to derive.
FORMS = [
    (PRODUCT, "plain(pad=fused, map=glb1.glb0)", {}),
    (PRODUCT, "direct(pad=fused, level=glb)", {"sigma": 4, "kappa": 8, "v": 4}),
    (PRODUCT, "cooperative(chunks=even, buffers=1)", CHUNKED),
    (LAYER, "direct(pad=copy, level=glb)", {"sigma": 4, "kappa": 8, "v": 4}),
    (LAYER, "direct(pad=fused, level=glb)", {"sigma": 4, "kappa": 8, "v": 4}),
    (LAYER, "plain(pad=fused, map=glb0.glb2.glb1)", {}),
]


def form(program, key, sizes):
    return named_candidate(program, key, sizes, "a form of these tests")


def lowered(program, key, sizes):
    candidate = form(program, key, sizes)
    return candidate.skeleton.at(candidate.point)


def lowered_small(program, fixed, device=GPU):
    candidate = lp.space(program, device).candidate(fixed)
    return candidate.skeleton.at(candidate.point)


def counted(codes):
    found = {}
    for code in codes:
        for key, count in executed(code).items():
            found[key] = found.get(key, 0) + count
    return found


@pytest.mark.parametrize(("program", "key", "sizes"), FORMS[:3], ids=str)
def test_a_product_executes_its_multiplications_and_additions_in_every_form(program, key, sizes):
    assert counted(run_code(lowered(program, key, sizes))) == {
        MULTIPLY: 8 * 12 * 16,
        ADD: 8 * 12 * 16,
    }
    assert operations(program) == 2 * 8 * 12 * 16


@pytest.mark.parametrize(("program", "key", "sizes"), FORMS, ids=str)
def test_the_loops_that_the_model_reads_have_the_operations_of_the_code(program, key, sizes):
    low = lowered(program, key, sizes)
    cut = chain_of(low)
    assert counted(counted_loops_of(cut.run, buffer_names(cut))) == counted(run_code(low))


@pytest.mark.oclgrind
def test_oclgrind_counts_the_same_multiply_adds():
    candidates = [form(*one) for one in FORMS]
    modules = [compile_candidate(c.skeleton, c.point) for c in candidates]
    jobs = [
        (module, by_buffer(module, tuple(inputs(program).values())))
        for module, (program, *_) in zip(modules, FORMS, strict=True)
    ]
    for candidate, texts in zip(candidates, counted_under_oclgrind(jobs), strict=True):
        lanes = sum(
            int(number) * int(width or 1)
            for text in texts
            for number, width in re.findall(r"(\d+) - call llvm\.fmuladd\.(?:v(\d+))?f32", text)
        )
        here = counted(run_code(candidate.skeleton.at(candidate.point)))
        assert here[MULTIPLY] == here[ADD]
        if "if (" in compile_candidate(candidate.skeleton, candidate.point).source:
            assert lanes <= here[MULTIPLY] <= 2 * lanes, "guards are taken to hold"
        else:
            assert here[MULTIPLY] == lanes, candidate.label


def test_types_comparisons_and_branches_are_counted():
    program = lp.parse("""
        def f(xs: [12]i32, ys: [12]f64) =
          zip(xs, ys) |> map((x, y) => select(y < 0.5, f64(x * x), y / 3.0))""")
    found = counted(run_code(lowered_small(program, PLAIN)))
    assert found == {
        ("*", "i32"): 12,
        ("f64", "f64"): 12,
        ("<", "f64"): 12,
        ("/", "f64"): 12,
        ("select", "f64"): 12,
    }
    spent = {key: 12 * COSTS.operation(*key) for key in found}
    assert spent["*", "i32"] == pytest.approx(12 * 3.1)
    assert spent["/", "f64"] == pytest.approx(12 * 8 * 14.8)
    assert spent["<", "f64"] == pytest.approx(12 * 1.8)


def test_the_proxy_is_bytes_of_each_level_and_operations_times_their_costs():
    hardware = replace(
        hardware_of(PROCESSOR),
        cache_sizes=(8192, 1 << 20),
        cache_units=(1, 4),
        cache_latencies=(14, 200),
        headroom=(0.9, 0.9),
        cache_line=64,
    )
    kernel = ModelledKernel(
        "k", {"a": Traffic((3, 5)), "b": Traffic((7, 11), 13)}, 1, 1700, 1, 1, (0, 0), 1
    )
    proxy = proxy_of(Modelled((kernel, kernel), hardware), {MULTIPLY: 19, ADD: 23.0}, COSTS)
    assert proxy.levels == {
        "L1": pytest.approx(2 * 1700 * 1.25),
        "L2": pytest.approx(2 * (3 + 7) * 64 * 12.5),
        "memory": pytest.approx(2 * (5 + 11 + 13) * 64 * 162.5),
    }
    assert proxy.operations == {MULTIPLY: pytest.approx(19 * 3.7), ADD: pytest.approx(23 * 0.9)}
    assert proxy.total == pytest.approx(
        sum(proxy.to_json()["levels_pj"].values()) + 19 * 3.7 + 23 * 0.9
    )
    assert proxy.to_json()["operations_pj"].keys() == {"* f32", "+ f32"}


@pytest.mark.parametrize("device", [PROCESSOR, GPU], ids=["processor", "GPU"])
@pytest.mark.parametrize("v", [1, 4])
def test_loads_and_stores_move_bytes_through_the_first_cache(device, v):
    """Vectors move as many bytes as numbers."""
    program = lp.parse("def f(xs: [4096]f32) = xs |> map(x => x + 1.0)")
    low = lowered_small(program, PLAIN, device)
    assert modelled(low, device, hardware_of(device)).moved == 2 * 4 * 4096
    low = lowered(PRODUCT, "direct(pad=fused, level=glb)", {"sigma": 4, "kappa": 8, "v": v})
    model = modelled(low, device, hardware_of(device))
    rows, columns = 8 // 4, 16 // 8
    assert model.moved == 4 * 12 * rows * columns * (4 + 8) + 4 * 8 * 16


def test_narrow_weights_have_a_smaller_proxy():
    """Bytes are what the storage of weights changes."""
    program = lp.with_storage(
        lp.parse("""
        def layer(const w: [512][512]f32, x: [512]f32) =
          w |> map(row => zip(row, x) |> map(mul) |> reduce(add, 0))"""),
        {"w": "bf16"},
    )
    hardware = hardware_of(PROCESSOR)
    totals = {}
    for word in ("f32", "bf16"):
        low = lowered_small(program, {"w": word}, PROCESSOR)
        totals[word] = energy_proxy(low, PROCESSOR, hardware, COSTS)
    assert totals["bf16"].total < 0.8 * totals["f32"].total
    assert sum(totals["bf16"].operations.values()) > sum(totals["f32"].operations.values())


def test_every_cost_has_a_source_and_assumed_ones_say_so():
    data = json.loads((FOLDER / "45nm.json").read_text(encoding="utf-8"))
    figures = [*data["add"].values(), *data["multiply"].values(), *data["caches"]]
    for figure in [*figures, data["growth"], data["memory"]]:
        assert figure["source"].startswith(("Horowitz", "assumed: "))
    assert set(data["add"]) == set(data["multiply"]) == set(KINDS)
    assert COSTS.assumed == [
        *(f"{kind} {t}" for kind in ("add", "multiply") for t in ("f64", "i16", "i64")),
        "growth",
    ]


def test_the_cost_of_a_cache_grows_with_its_size():
    sizes = [1 << k for k in range(10, 26)]
    costs = [COSTS.cache(size) for size in sizes]
    assert costs == sorted(costs)
    assert COSTS.cache(4 << 20) == pytest.approx(2 * COSTS.cache(1 << 20)), "a square root"
    middle = math.sqrt(32768 * (1 << 20))
    assert COSTS.cache(int(middle)) == pytest.approx(math.sqrt(2.5 * 12.5), rel=1e-3)


def changed(folder, change):
    data = json.loads((FOLDER / "45nm.json").read_text(encoding="utf-8"))
    change(data)
    (folder / "own.json").write_text(json.dumps(data), encoding="utf-8")
    return folder / "own.json"


def test_costs_of_a_file_are_used(tmp_path):
    path = changed(tmp_path, lambda data: data["memory"].update(value=7.0))
    assert energy_costs(path).memory.value == 7.0
    assert energy_costs(path).add == COSTS.add


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["add"].pop("f16"), "add has no cost for f16"),
        (lambda data: data["memory"].update(value=-1), "memory.value"),
        (lambda data: data["memory"].update(value=math.inf), "memory.value"),
        (lambda data: data["memory"].update(source=""), "memory.source"),
        (lambda data: data["caches"].reverse(), "a cache of 32768 bytes follows"),
        (lambda data: data.update(unit="nJ"), "unit"),
        (lambda data: data.update(more=1), "more"),
        (lambda data: data["add"].update(f8=data["memory"]), "add.f8"),
    ],
)
def test_what_is_no_table_of_costs_is_refused(tmp_path, change, message):
    with pytest.raises(StoreRefused, match="is no table of energy costs") as refusal:
        energy_costs(changed(tmp_path, change))
    assert message in str(refusal.value)
    assert "45nm" in str(refusal.value)


def test_the_layer_has_more_guards_than_operations_of_its_meaning():
    """Guards count as true: padding is computed with."""
    found = counted(run_code(lowered(*FORMS[-1])))
    assert found[MULTIPLY] == operations(LAYER) // 2


def test_an_atomic_update_is_a_load_an_operation_and_a_store():
    text = """def p(is: [11]i32, xs: [11]i32) = zip(is, xs) |> mapGlb(0, p => p)
      |> reduceByIndexAtomic(maximumI32, 0i32 |> repeat(7))"""
    _, code = compile_program(LoweredProgram.of(lp.parse(text))).optimized
    once = 11
    assert executed(code)["max", "i32"] == 2 * once  # one of them clamps the index
    moved = work_of(code, 1).counts.executed
    assert moved["global", False, 1] == 3 * once
    assert moved["global", True, 1] == once

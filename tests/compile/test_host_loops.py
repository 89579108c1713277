"""Loops of the host: kernels that are launched again for each element of an array."""

from __future__ import annotations

import pytest

from liftpy.constraints.device import Device
from liftpy.constraints.length import length
from liftpy.errors import TypeRefused
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module, by_kernel
from liftpy.pipeline import Compilation, compile_program
from tests.draws import unproved
from tests.fuzz.generator import inputs
from tests.loops.interpreted import interpreted, stages_of
from tests.lowered import check_close, check_on, lowered
from tests.oclgrind import check_all_under_oclgrind

SQUARED = "mapGlb(0, mapSeq(x => x * x - 1)) |> toGlobal"
FOLDED = "mapGlb(0, row => row |> reduceSeq((a, x) => a * 0.5 - x, 1))"

PROGRAMS = {
    "a value of each band": f"""
        def p(xs: [12][5]f32) =
          xs |> split(3) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> transpose |> {FOLDED})""",
    "a result under layouts": f"""
        def p(xs: [12][5]f32) =
          xs |> split(4) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> {FOLDED}) |> join |> split(2) |> transpose""",
    "values of values": f"""
        def p(xs: [15][4]f32) =
          xs |> split(5) |> mapHost(band =>
            let s = band |> {SQUARED} in
            let t = s |> transpose |> mapGlb(0, mapSeq(x => x * 2)) |> toGlobal in
            zip(t |> transpose, s) |> mapGlb(0, (a, b) =>
              zip(a, b) |> reduceSeq((c, p) => c - p.0 * p.1, 0)))""",
    "windows that overlap": f"""
        def p(xs: [13][5]f32) =
          xs |> slide(5, 2) |> mapHost(band =>
            let t = band |> {SQUARED} in
            t |> slide(3, 1) |> mapGlb(0, w =>
              w |> join |> reduceSeq((a, x) => a * 0.5 + x, 0)))""",
    "a value that is the same for all bands": f"""
        def p(xs: [6][5]f32, ys: [4][5]f32) =
          xs |> split(2) |> mapHost(band =>
            let y = ys |> {SQUARED} in
            let t = band |> {SQUARED} in
            t |> mapGlb(0, a => y |> mapSeq(b => zip(a, b) |> reduceSeq((c, p) =>
              c - p.0 * p.1, 0))))""",
    "a result that another kernel reads": f"""
        def p(xs: [12][5]f32) =
          let u = xs |> split(3) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> {FOLDED}) |> join |> toGlobal in
          u |> slide(2, 1) |> {FOLDED}""",
    "two loops": f"""
        def p(xs: [12][5]f32) =
          (xs |> split(3) |> mapHost(band => let t = band |> {SQUARED} in t |> {FOLDED}),
           xs |> split(6) |> mapHost(band =>
             let t = band |> {SQUARED} in t |> transpose |> {FOLDED}))""",
    "one loop after the other": f"""
        def p(xs: [12][6]f32) =
          let u = xs |> split(3) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> mapGlb(0, mapSeq(x => 2 - x))) |> join |> toGlobal in
          u |> transpose |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> {FOLDED})""",
    "constants": f"""
        def p(xs: [6][5]f32, const ws: [4][5]f32) =
          let u = ws |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> mapGlb(0, mapSeq(x => 2 - x))) |> join |> toGlobal in
          xs |> mapGlb(0, a => u |> mapSeq(b => zip(a, b) |> reduceSeq((c, p) =>
            c - p.0 * p.1, 0)))""",
    "a band of constants, and a value": f"""
        def p(xs: [5]f32, const ws: [4][5]f32) =
          ws |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in
            t |> mapGlb(0, b => zip(xs, b) |> reduceSeq((c, p) => c - p.0 * p.1, 0)))""",
    "tuples": f"""
        def p(xs: [6][5]f32, ys: [6]i32) =
          zip(xs, ys) |> split(2) |> mapHost(band =>
            let t = band |> map(p => p.0) |> {SQUARED} in
            zip(t, band) |> mapGlb(0, (row, p) =>
              (row |> reduceSeq((a, x) => a * 0.5 - x, 1), p.1 * 2)))""",
    "groups": """
        def p(xs: [12][4]f32) =
          xs |> split(6) |> mapHost(band =>
            let t = band |> split(2) |> mapWrg(0, rows =>
              let l = rows |> mapLcl(0, mapSeq(x => x * x)) |> toLocal in
              l |> transpose |> mapLcl(0, reduceSeq((a, x) => a - x, 1))) |> toGlobal in
            t |> transpose |> mapGlb(0, reduceSeq((a, x) => a * 0.5 - x, 1)))""",
    "scratch of a work-item": f"""
        def p(xs: [6][5]f32) =
          xs |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in
            t |> mapGlb(0, row =>
              let s = row |> mapSeq(x => x + 1) |> toGlobal in
              s |> mapSeq(x => s |> reduceSeq((a, y) => a * 0.5 + y, x))))""",
    "a streamed result": f"""
        def p(xs: [6][4]f32) =
          xs |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> mapGlb(0, mapSeq(x => 2 - x))) |> toStreamed""",
    "a single band": f"""
        def p(xs: [6][5]f32) =
          xs |> split(6) |> mapHost(band => let t = band |> {SQUARED} in t |> {FOLDED})""",
    "a fold in place in each iteration": """
        def p(xs: [4][3][5]f32) =
          xs |> mapHost(x => x |> reduceInPlace((acc, r) =>
            zip(acc, r) |> mapGlb(0, p => p.0 * 0.5 - p.1), 0.0 |> repeat(5)))""",
    "a loop that a let names": f"""
        def p(xs: [6][5]f32) =
          let u = xs |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> mapGlb(0, mapSeq(x => x * 0.25))) in
          u |> toGlobal |> join |> {FOLDED}""",
    "a named result": f"""
        def p(xs: [6][5]f32) =
          let u = xs |> split(2) |> mapHost(band =>
            let t = band |> {SQUARED} in t |> {FOLDED}) in u |> join""",
    "loops that iterate": f"""
        def p(xs: [6][5]f32) =
          xs |> iterateSeq(2, b => b |> split(3) |> mapHost(band =>
            let t = band |> {SQUARED} in
            t |> mapGlb(0, mapSeq(x => x * 0.25))) |> join)""",
    "no value": "def p(xs: [6][5]f32) = xs |> mapHost(mapGlb(0, x => x * 2))",
}

REFUSED = {
    "atomic updates in each iteration": (
        (
            "generate(12, (i: i32) => (i % 3, i)) |> split(4) |> mapHost(b => "
            "b |> mapGlb(0, p => p) |> reduceByIndexAtomic(addInt, 0i32 |> repeat(3)))"
        ),
        "reduceByIndexAtomic must be outside the functions of all maps",
    ),
    "a pass of a fold in place": (
        (
            "xss |> reduceInPlace((acc, x) => zip(acc, x) |> split(2) |> mapHost(c => "
            "let t = c |> mapGlb(0, p => zip(p.0, p.1) |> mapSeq(q => q.0 - q.1)) |> toGlobal in "
            "t |> mapGlb(0, mapSeq(x => x * 2))) |> join, 0.0 |> repeat(5) |> repeat(4))"
        ),
        "a pass of reduceInPlace cannot be a loop of the host",
    ),
    "read by another loop": (
        (
            "xss |> mapHost(b => let t = b |> mapGlb(0, mapSeq(x => x * x)) |> toGlobal in "
            "t |> mapGlb(0, mapSeq(x => x + 1))) |> mapHost(c => let t = c "
            "|> mapGlb(0, mapSeq(x => x * x)) |> toGlobal in t |> mapGlb(0, mapSeq(x => x + 1)))"
        ),
        "store it with toGlobal first",
    ),
    "too many iterations": (
        "generate(1001, (i: i32) => f32(i)) |> split(1) |> mapHost(mapGlb(0, x => x * 2))",
        "mapHost over 1001 elements",
    ),
    "an array in local memory": (
        (
            "xss |> mapSeq(mapSeq(mapSeq(x => x * 2))) |> toLocal |> mapHost(b => "
            "let t = b |> mapGlb(0, mapSeq(x => x * x)) |> toGlobal in "
            "t |> mapGlb(0, mapSeq(x => x)))"
        ),
        "toLocal must be inside a mapWrg",
    ),
    "inside another loop of the host": (
        "xss |> mapHost(mapHost(mapGlb(0, x => x * 2)))",
        "mapHost is inside another mapHost: join the two maps into one, or run the inner one",
    ),
    "inside a parallel map": (
        "xss |> mapGlb(1, mapHost(mapGlb(0, x => x * 2)))",
        "mapHost must be outside all other maps that compute",
    ),
    "inside a loop of a work-item": (
        "xss |> mapSeq(mapHost(mapSeq(x => x * 2)))",
        "mapHost must be outside all other maps that compute",
    ),
    "read by the same kernel": (
        "xss |> mapHost(mapGlb(0, mapSeq(x => x * 2))) |> mapGlb(0, mapSeq(mapSeq(x => x + 1)))",
        "store it with toGlobal first",
    ),
}


def compiled(name: str) -> Compilation:
    """The program of this name."""
    return compile_program(lowered(PROGRAMS[name]))


def launched(module: Module) -> list[tuple[str, int | None]]:
    """The kernels of a run in the order of their launches, without buffers, with iterations."""
    return [
        (x.function.partition("_")[0], x.iteration) for x in module.launches if x.phase == "run"
    ]


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_right(runtime: Device, name: str) -> None:
    check_on(runtime, PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_access_is_proved_inside_and_each_element_has_one_writer(name: str) -> None:
    assert unproved(compiled(name).optimized) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_the_values_of_iterations(name: str) -> None:
    made, program = compiled(name), parse(PROGRAMS[name])
    arrays = inputs(program)
    for after, codes in stages_of(made):
        check_close(interpreted(made, codes, arrays), program, arrays, after)


@pytest.mark.oclgrind
def test_no_launch_has_a_race_or_a_stray_access() -> None:
    jobs = [(compiled(name).module, inputs(parse(text))) for name, text in PROGRAMS.items()]
    assert [complaints for _, complaints in check_all_under_oclgrind(jobs)] == [[]] * len(jobs)


def test_the_kernels_of_a_loop_are_launched_for_one_element_after_the_other() -> None:
    found = launched(compiled("a value of each band").module)
    assert found == [(k, i) for i in range(4) for k in ("k0", "k1")]


def test_what_does_not_depend_on_the_element_is_computed_once() -> None:
    found = launched(compiled("a value that is the same for all bands").module)
    assert found == [("k0", None), *((k, i) for i in range(3) for k in ("k1", "k2"))]


def test_a_loop_over_constants_is_prepared_with_the_values_of_its_bands() -> None:
    module = compiled("constants").module
    prepared = [x.iteration for x in module.launches if x.phase == "prepare"]
    assert prepared == [0, 0, 1, 1]
    assert {b.name: b.role for b in module.buffers}["ws"] == "constant"
    assert launched(module) == [("k2", None)]


def test_bands_of_constants_are_not_prepared_if_the_loop_reads_an_input() -> None:
    """The next band takes the place of a prepared one."""
    module = compiled("a band of constants, and a value").module
    assert [x.phase for x in module.launches] == ["run"] * 4


def test_a_kernel_that_reads_no_element_does_not_have_the_array_as_an_argument() -> None:
    module = compiled("a value of each band").module
    arguments = {x.function: x.arguments for x in module.launches}
    assert arguments == {"k0_t1": ("xs", "t1"), "k1_output": ("t1", "output")}


def test_the_buffers_of_a_band_are_reused_and_live_during_the_whole_loop() -> None:
    made = compiled("values of values")
    shapes = {b.name: b.shape for b in made.module.buffers if b.role == "temporary"}
    assert shapes == {"t1": (5, 4), "t2": (4, 5)}
    assert made.module.memory.scratch == 2 * 5 * 4 * 4
    spans = {b.param.name: b.span for b in made.chain.buffers}
    assert spans == {"xs": (0, 2), "t1": (0, 2), "t2": (0, 2), "output": (0, 2)}


def test_a_buffer_that_an_early_kernel_of_a_loop_reads_is_live_until_its_end() -> None:
    """The next iteration reads it again, after the later kernels."""
    made = compiled("a value that is the same for all bands")
    first, *_ = made.chain.kernels
    assert {b.param: b.span for b in made.chain.buffers}[first.writes] == (0, 2)
    made = compiled("one loop after the other")
    _, stored, *_ = made.chain.kernels
    assert {b.param: b.span for b in made.chain.buffers}[stored.writes] == (0, 3)


def test_a_loop_of_one_iteration_has_no_argument_for_it() -> None:
    module = compiled("a single band").module
    assert launched(module) == [("k0", None), ("k1", None)]
    assert "hid0" not in module.source


def test_a_manifest_has_the_iterations() -> None:
    module = compiled("a value of each band").module
    assert Module.of_manifest(module.source, module.manifest()) == module
    older = compiled("a single band").module.manifest()
    assert all("iteration" not in launch for launch in older["launches"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_length_of_kernels_has_a_bound(name: str) -> None:
    for kernel in compiled(name).chain.kernels:
        assert int(length(kernel)) >= 1


def test_a_kernel_reads_the_array_of_a_loop_through_an_image() -> None:
    text = f"""
        def p(xs: [8][4]f32) =
          xs |> asImage |> split(2) |> mapHost(b =>
            let t = b |> {SQUARED} in zip(t, b) |> mapGlb(0, (x, y) =>
              zip(x, y) |> reduceSeq((a, p) => a - p.0 * p.1, 0)))"""
    module = compile_program(lowered(text)).module
    assert {x.images for x in module.launches} == {("xs",)}


def test_the_time_of_a_kernel_is_that_of_all_its_launches() -> None:
    module = compiled("a value of each band").module
    assert by_kernel(module, range(8)) == {"k0_t1": 12, "k1_output": 16}


@pytest.mark.parametrize("name", REFUSED)
def test_a_misplaced_loop_is_refused(name: str) -> None:
    body, why = REFUSED[name]
    with pytest.raises(TypeRefused) as refused:
        compile_program(lowered(f"def p(xss: [3][4][5]f32) = {body}"))
    assert why in str(refused.value)

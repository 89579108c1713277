"""8-bit convolutions of ResNet-50 and MobileNet: ONNX's QLinearConv, and the same in f32.

    python benchmarks/quantised.py [--layers resnet50/4 'mobilenet/*' ...] [--samples 40]
        [--time-limit 20] [--rounds 9] [--skip-search] [--page docs/performance.md]

By default, the layers are every fourth of the distinct layers of ResNet-50, from the first, and
every third of MobileNet's, from the second (the first is like ResNet's first). Each is a model of
one node `QLinearConv`, with images and results in u8, weights in i8 with a scale for each kernel,
biases in i32, and odd zero points, all random with a seed. Every second scale of a kernel is a
power of two, so that some results lie halfway between two integers. A model of one node `Conv` has
the same numbers in f32, in the same order of axes (channels first). A campaign explores each, with
the default search. The choices and sizes of the fastest candidates of each are tried for the other
too, so that the comparison depends less on which candidates a short campaign meets. The fastest
candidates of both and ONNX Runtime on both models are then timed alternately.

The result of the 8-bit candidate must equal an oracle, whose sums are exact integers, in every
element; otherwise the exit status is 1. How ONNX Runtime's result differs is reported. Ratios to
ONNX Runtime compare host times, `f32 / u8` compares device events; each is a median. `bytes` are
those of the image, the weights and the result; `peak` is the memory of the candidate. The data of
a layer are written to a file in `--out` as soon as it is measured; the tables are made from all
files there.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import ours
from bench import PAGE, machine, pin
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from report import BUSY, between, geomean, table
from turns import Figures, host, timed_alternately, turn

import liftpy as lp
from liftpy.errors import LiftError
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.report.wording import counts_text
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.workloads import MOBILENET, RESNET50, Convolution

Array = NDArray[Any]
Result = dict[str, Any]
Settings = dict[str, str | int]

LAYERS = {
    f"{network}/{number}": layer
    for network, layers in (("resnet50", RESNET50), ("mobilenet", MOBILENET))
    for number, layer in layers.items()
}
DEFAULT = (
    *(f"resnet50/{number}" for number in [*RESNET50][::4]),
    *(f"mobilenet/{number}" for number in [*MOBILENET][1::3]),
)
OUT = Path(__file__).parent / "results" / "quantised"
MARKERS = "<!-- quantised: begin -->", "<!-- quantised: end -->"
GOAL = 0.9
"""The least geometric mean of the speed with 8 bits over that in f32."""

TOLERANCE = 1e-4
"""The largest difference of an f32 result from float64, relative to the largest value."""

U8, F32, ORT_U8, ORT_F32 = "liftpy u8", "liftpy f32", "ONNX Runtime u8", "ONNX Runtime f32"
BUILDING = 4
"""Seconds that the driver's compiler may take for a candidate."""

FINALISTS = 3
"""Candidates of each campaign that are timed again, and whose settings the other type tries."""

CHOOSING = 3
"""Rounds of that choice."""

RESULT = "result."
"""The beginning of the settings of the stage that makes the result, if there are others."""

ONLY_U8 = ("sums", "strip")
"""Settings that a program with sums of f32 does not have."""


# --- a layer and its numbers ----------------------------------------------------------------------


def convolved(layer: Convolution, x: Array, w: Array) -> Array:
    """The sums of a convolution `[C][H][W]` by `[M][C/G][Kh][Kw]`, in the type of the arrays."""
    top, bottom, left, right = layer.padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    (rows, columns), groups = layer.out, layer.groups
    parts = padded.reshape(groups, -1, *padded.shape[1:])
    kernels = w.reshape(groups, -1, *w.shape[1:])
    total = np.zeros((groups, kernels.shape[1], rows * columns), x.dtype)
    for i in range(layer.kernel[0]):
        for j in range(layer.kernel[1]):
            a, b = i * layer.dilation[0], j * layer.dilation[1]
            part = parts[:, :, a :: layer.stride[0], b :: layer.stride[1]][:, :, :rows, :columns]
            total += kernels[:, :, :, i, j] @ part.reshape(groups, part.shape[1], -1)
    return total.reshape(layer.kernels, rows, columns)


@dataclass(frozen=True)
class Quantised:
    """A layer with its random numbers; the quantised ones have the names of QLinearConv."""

    name: str
    layer: Convolution

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """The inputs of QLinearConv in their order; the image is `x`."""
        layer, rng = self.layer, np.random.default_rng(len(self.name) + self.layer.flops)
        shape = layer.kernels, layer.channels // layer.groups, *layer.kernel
        x = rng.integers(0, 256, (1, layer.channels, layer.height, layer.width)).astype(np.uint8)
        w = rng.integers(-128, 128, shape).astype(np.int8)
        zero, above = (2 * rng.integers(0, 128, 2) + 1).astype(np.uint8)
        spread = 74 * 74 * np.sqrt(np.prod(shape[1:]))  # the standard deviation of a sum
        factors = 40 / spread * rng.uniform(0.7, 1.4, layer.kernels)
        factors[::2] = 2.0 ** np.rint(np.log2(factors[::2]))
        return {
            "x": x,
            "x_scale": np.float32(2**-6),
            "x_zero_point": zero,
            "w": w,
            "w_scale": (factors * 2**3).astype(np.float32),
            "w_zero_point": np.zeros(layer.kernels, np.int8),
            "y_scale": np.float32(2**-3),
            "y_zero_point": above,
            "b": rng.integers(-int(spread), int(spread), layer.kernels).astype(np.int32),
        }

    @cached_property
    def sums(self) -> Array:
        """The sums of products of differences with the biases, in int64."""
        n = self.numbers
        x = n["x"][0].astype(np.int64) - int(n["x_zero_point"])
        return convolved(self.layer, x, n["w"].astype(np.int64)) + n["b"][:, None, None]

    @cached_property
    def scaled(self) -> Array:
        """The sums in the scale of the result, in f32: each operation is rounded once."""
        n = self.numbers
        factors = n["x_scale"] * n["w_scale"] / n["y_scale"]
        return self.sums.astype(np.float32) * factors[:, None, None]

    @cached_property
    def ties(self) -> NDArray[np.bool_]:
        """Which elements lie halfway between two integers."""
        return np.abs(self.scaled - np.trunc(self.scaled)) == 0.5

    @cached_property
    def oracle(self) -> NDArray[np.uint8]:
        """The result: rounded to nearest with ties to even, then the zero point is added."""
        whole = np.rint(self.scaled).astype(np.float64) + int(self.numbers["y_zero_point"])
        return np.clip(whole, 0, 255).astype(np.uint8)

    @cached_property
    def floats(self) -> dict[str, Array]:
        """The inputs of Conv: what the quantised numbers stand for, in f32."""
        n = self.numbers
        x = (n["x"].astype(np.float32) - n["x_zero_point"]) * n["x_scale"]
        w = n["w"] * n["w_scale"][:, None, None, None]
        biases = n["b"].astype(np.float32) * n["x_scale"] * n["w_scale"]
        return {"x": x, "w": w, "b": biases}

    @cached_property
    def exact(self) -> Array:
        """The result of Conv, computed in float64."""
        x, w, b = (a.astype(np.float64) for a in self.floats.values())
        return convolved(self.layer, x[0], w) + b[:, None, None]

    def model(self, *, quantised: bool) -> Any:
        """A model of one node; all inputs but the image are constants."""
        operator, given, t = ("Conv", self.floats, TensorProto.FLOAT)
        if quantised:
            operator, given, t = ("QLinearConv", self.numbers, TensorProto.UINT8)
        top, bottom, left, right = self.layer.padding
        node = helper.make_node(
            operator,
            [*given],
            ["y"],
            name="conv",
            strides=self.layer.stride,
            dilations=self.layer.dilation,
            group=self.layer.groups,
            pads=[top, left, bottom, right],
        )
        result = (1, self.layer.kernels, *self.layer.out)
        graph = helper.make_graph(
            [node],
            operator,
            [helper.make_tensor_value_info("x", t, given["x"].shape)],
            [helper.make_tensor_value_info("y", t, result)],
            [numpy_helper.from_array(np.asarray(a), n) for n, a in given.items() if n != "x"],
        )
        opsets = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def differing(self, result: Array) -> float:
        """The number of elements of an 8-bit result that differ from the oracle."""
        return float(np.count_nonzero(result.reshape(self.oracle.shape) != self.oracle))

    def error(self, result: Array) -> float:
        """The largest difference of an f32 result, relative to the largest value."""
        difference = np.abs(result.reshape(self.exact.shape) - self.exact)
        return float(difference.max() / np.abs(self.exact).max())


@dataclass(frozen=True)
class Contestant:
    """The program of an imported model, as `ours.best` takes a case."""

    name: str
    program: lp.Program
    arrays: dict[str, Array]
    error: Callable[[Array], float]


def imported(layer: Quantised, *, quantised: bool) -> Contestant:
    """The operation of a model with its arrays."""
    graph = lp.network(layer.model(quantised=quantised)).graph
    (operation,) = graph.operations
    image = (layer.numbers if quantised else layer.floats)["x"]
    given = [graph.constants.get(name, image) for name in operation.inputs]
    arrays = {p.name: a for p, a in zip(operation.program.params, given, strict=True)}
    error = layer.differing if quantised else layer.error
    return Contestant(
        f"{layer.name}-{'u8' if quantised else 'f32'}", operation.program, arrays, error
    )


def by_onnx_runtime(
    layer: Quantised, threads: int, *, quantised: bool
) -> tuple[Callable[[], Figures], Array]:
    """A turn of ONNX Runtime on a model, and its result; its arrays are bound before."""
    import onnxruntime as ort  # noqa: PLC0415  the other functions do not need it

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = layer.model(quantised=quantised).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    image = (layer.numbers if quantised else layer.floats)["x"]
    empty = np.empty((1, layer.layer.kernels, *layer.layer.out), image.dtype)
    x, y = map(ort.OrtValue.ortvalue_from_numpy, (image, empty))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    run = partial(session.run_with_iobinding, binding)
    run()
    return partial(turn, host(run)), y.numpy().copy()


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finalist:
    """A candidate, built, with the error of its result."""

    settings: Settings
    module: Module
    loaded: Loaded
    error: float

    def run(self) -> Figures:
        """Nanoseconds of a run."""
        return ours.run(self.loaded)

    def to_json(self) -> dict[str, Any]:
        """What a reader has to know to run it again."""
        memory = self.module.memory
        return {"assignment": self.settings, "peak": memory.peak, "error": self.error}


def fastest(campaign: lp.Campaign) -> list[Settings]:
    """The settings of the fastest candidates of a campaign."""
    timed = sorted((r for r in campaign.rows if r.time_ns), key=lambda r: r.time_ns or 0)
    return [dict(row.assignment) for row in timed[:FINALISTS]]


def with_settings_of(own: list[Settings], other: list[Settings]) -> list[Settings]:
    """The settings of one type, then what they become with the result stage of the other type.

    Stages that depend only on weights keep their settings. Of sums, both types are tried.
    """
    found = [*own]
    staged = any(name.startswith(RESULT) for name in own[0])
    rest = {n: v for n, v in own[0].items() if staged and not n.startswith(RESULT)}
    prefix = RESULT if staged else ""
    for settings in other:
        named = {n.removeprefix(RESULT): v for n, v in settings.items()}
        if any(n.startswith(RESULT) for n in settings):
            named = {n.removeprefix(RESULT): v for n, v in settings.items() if n.startswith(RESULT)}
        kept = {n: v for n, v in named.items() if n not in ONLY_U8}
        for sums in ("i32", "f32") if staged and kept["family"] == "direct" else (None,):
            more = {} if sums is None else {"sums": sums}
            found.append(rest | {prefix + n: v for n, v in (kept | more).items()})
    return [one for k, one in enumerate(found) if one not in found[:k]]


def stored_otherwise(settings: Settings) -> Iterator[Settings]:
    """The settings as they are, and with the other values of `stores`.

    This choice exists only for large results, so that one type may have it and the other not.
    """
    yield settings
    prefix = RESULT if any(name.startswith(RESULT) for name in settings) else ""
    without = {n: v for n, v in settings.items() if n != f"{prefix}stores"}
    yield without if without != settings else without | {f"{prefix}stores": "cached"}


def built(case: Contestant, session: Session, settings: Settings) -> Finalist | None:
    """A candidate with its result checked; None if the program has none with these settings."""
    for tried in stored_otherwise(settings):
        try:
            candidate = candidate_of(case.program, session.device, tried)
            module = compile_candidate(candidate.skeleton, candidate.assignment)
        except LiftError:  # the settings of the other type need not fit
            continue
        loaded = session.load(module)
        return Finalist(tried, module, loaded, case.error(run_poisoned(loaded, case.arrays)))
    return None


def chosen(case: Contestant, session: Session, settings: list[Settings]) -> Finalist:
    """The fastest of the candidates with these settings."""
    found = [one for each in settings if (one := built(case, session, each)) is not None]
    turns = {str(k): partial(turn, one.run) for k, one in enumerate(found)}
    samples, _ = timed_alternately(turns, CHOOSING)
    best = found[int(min(samples, key=lambda k: statistics.median(samples[k]["events"])))]
    for other in found:
        if other is not best:
            other.loaded.close()
    return best


def tensors(numbers: dict[str, Array], result: Array) -> int:
    """The bytes of the image, the weights and the result of a layer."""
    return numbers["x"].nbytes + numbers["w"].nbytes + result.size * numbers["x"].itemsize


def searched(case: Contestant, session: Session, options: argparse.Namespace) -> lp.Campaign:
    """The campaign of a program as asked for."""
    if options.skip_search:
        return ours.stored(case, options.out)
    return ours.searched(
        case,
        session.device,
        options.out,
        samples=options.samples,
        time_limit=options.time_limit,
        build_limit=BUILDING,
    )


def measured(layer: Quantised, session: Session, options: argparse.Namespace) -> Result:
    """Everything that is known of a layer after its rounds."""
    cases = {name: imported(layer, quantised=name == U8) for name in (U8, F32)}
    campaigns = {name: searched(case, session, options) for name, case in cases.items()}
    found = {name: fastest(campaign) for name, campaign in campaigns.items()}
    best = {
        name: chosen(cases[name], session, with_settings_of(found[name], found[other]))
        for name, other in ((U8, F32), (F32, U8))
    }
    turns = {name: partial(turn, one.run) for name, one in best.items()}
    turns[ORT_U8], theirs = by_onnx_runtime(layer, options.threads, quantised=True)
    turns[ORT_F32], _ = by_onnx_runtime(layer, options.threads, quantised=False)
    samples, others = timed_alternately(turns, options.rounds)
    for one in best.values():
        one.loaded.close()
    apart = theirs[0].astype(int) - layer.oracle
    counts = Counter(apart[apart != 0].tolist())
    return {
        "layer": layer.name,
        "sizes": str(layer.layer),
        "flops": layer.layer.flops,
        "elements": layer.oracle.size,
        "bytes": {
            U8: tensors(layer.numbers, layer.oracle),
            F32: tensors(layer.floats, layer.oracle),
        },
        "liftpy": {name: one.to_json() for name, one in best.items()},
        "outcomes": {name: dict(campaign.counts) for name, campaign in campaigns.items()},
        "ties": int(layer.ties.sum()),
        "peer": {
            "differences": {str(d): n for d, n in sorted(counts.items())},
            "at ties": int(np.count_nonzero(apart[layer.ties])),
        },
        "others": others,
        "ns": samples,
    }


# --- the table ------------------------------------------------------------------------------------


def median(result: Result, name: str, figure: str = "wall") -> float:
    """The time of a contestant in ns."""
    return statistics.median(result["ns"][name][figure])


def speed(result: Result) -> float:
    """The device's time in f32 over that with 8 bits."""
    return median(result, F32, "events") / median(result, U8, "events")


def against(result: Result) -> float:
    """The time of ONNX Runtime's QLinearConv over liftpy's, on the host."""
    return median(result, ORT_U8) / median(result, U8)


def kib(count: int) -> str:
    """Bytes in KiB."""
    return f"{count / 1024:.0f}"


def differences(result: Result) -> str:
    """How ONNX Runtime's elements differ: each difference with the number of elements."""
    peer = result["peer"]
    if not peer["differences"]:
        return "0"
    found = ", ".join(f"{int(d):+d}: {n}" for d, n in peer["differences"].items())
    return f"{found} ({peer['at ties']} at ties)"


def wrong(result: Result) -> int:
    """The elements of liftpy's 8-bit result that differ from the oracle."""
    return int(result["liftpy"][U8]["error"])


COLUMNS: dict[str, Callable[[Result], str]] = {
    "layer": lambda r: r["layer"],
    "sizes": lambda r: r["sizes"].removeprefix("convolution "),
    **{
        f"{n} (ms)": (lambda r, n=n: f"{median(r, n) / 1e6:.3g}")
        for n in (U8, F32, ORT_U8, ORT_F32)
    },
    "f32 / u8": lambda r: f"{speed(r):.2f}",
    "ONNX Runtime u8 / liftpy u8": lambda r: f"{against(r):.2f}",
    "KiB u8": lambda r: kib(r["bytes"][U8]),
    "KiB f32": lambda r: kib(r["bytes"][F32]),
    "peak u8": lambda r: kib(r["liftpy"][U8]["peak"]),
    "peak f32": lambda r: kib(r["liftpy"][F32]["peak"]),
    "wrong": lambda r: str(wrong(r)),
    "ties": lambda r: str(r["ties"]),
    "ONNX Runtime differs": differences,
}


def order(result: Result) -> tuple[str, int]:
    """ResNet-50 first, then by the number of the layer."""
    network, _, number = result["layer"].partition("/")
    return ("" if network == "resnet50" else network), int(number)


def where(result: Result) -> str:
    """Where and with what a layer was measured."""
    m = result["machine"]
    vectors = f" with {m['vectors']}" if m["vectors"] else ""
    return (
        f"{m['threads']} cores of an {m['cpu']}{vectors}, {m['device']}, ONNX Runtime "
        f"{m['versions']}; at {m['commit']}, {m['date'][:10]}; {m['rounds']} rounds, campaigns of "
        f"{m['samples']} candidates in at most {m['time_limit']:.0f} s"
    )


def text(results: list[Result]) -> str:
    """The table of all measured layers, and the geometric means."""
    if not results:
        return "Nothing is measured yet."
    own = sorted(results, key=order)
    places: dict[str, list[str]] = {}
    for r in own:
        places.setdefault(where(r), []).append(r["layer"])
    parts = ["\n".join(f"- {place}: {', '.join(names)}." for place, names in places.items())]
    parts.append(table([*COLUMNS], [[cell(r) for cell in COLUMNS.values()] for r in own]))
    theirs = geomean(median(r, ORT_F32) / median(r, ORT_U8) for r in own)
    parts.append(
        f"Geometric means over {len(own)} layers: `f32 / u8` {geomean(map(speed, own)):.2f} (the "
        f"goal is {GOAL}), ONNX Runtime's QLinearConv over liftpy's "
        f"{geomean(map(against, own)):.2f}; ONNX Runtime's f32 over its u8 {theirs:.2f}."
    )
    if busy := [r["layer"] for r in own if r["others"] > BUSY]:
        parts.append(f"Other work took more than {BUSY:.0%} of the processors: {', '.join(busy)}.")
    return "\n\n".join(parts)


def selected(patterns: list[str] | None) -> list[str]:
    """The names of layers that patterns fit; ValueError if one fits none."""
    if patterns is None:
        return [*DEFAULT]
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = fnmatch.filter(LAYERS, pattern)
        if not fitting:
            message = f"no layer has a name like {pattern}; there are {', '.join(LAYERS)}"
            raise ValueError(message)
        found |= dict.fromkeys(fitting)
    return [*found]


def main(arguments: list[str] | None = None) -> int:
    """Explores and measures layer by layer, then prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", nargs="*", default=None, help="patterns of names")
    parser.add_argument("--samples", type=int, default=40, help="candidates of a campaign")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds of a campaign")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default=None)
    parser.add_argument("--skip-search", action="store_true", help="take what is stored")
    parser.add_argument("--render-only", action="store_true", help="only make the table")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", type=Path, default=None, help=f"such as {PAGE.name}")
    options = parser.parse_args(arguments)
    try:
        names = selected(options.layers)
    except ValueError as unknown:
        parser.error(str(unknown))
    failed = 0 if options.render_only else measure(names, options)
    results = [json.loads(p.read_text("utf-8")) for p in sorted(options.out.glob("*.json"))]
    shown = text(results)
    print(f"\n{shown}")
    if options.page:
        page = options.page.read_text("utf-8")
        options.page.write_text(between(page, *MARKERS, shown), "utf-8")
    return int(failed > 0 or any(map(wrong, results)))


def measure(names: list[str], options: argparse.Namespace) -> int:
    """Measures layers and writes each when it is measured; returns how many have no times."""
    import onnxruntime  # noqa: PLC0415  its version

    pin(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    device = find_device(options.device)
    place = machine() | {
        "device": f"{device.platform} {device.driver_version}",
        "threads": options.threads,
        "versions": onnxruntime.__version__,
        **{name: getattr(options, name) for name in ("rounds", "samples", "time_limit")},
    }
    failed, start = 0, time.monotonic()
    with Session(device) as session:
        for k, name in enumerate(names, 1):
            layer = Quantised(name, LAYERS[name])
            print(f"{k} of {len(names)}, {time.monotonic() - start:.0f} s: {name}", flush=True)
            try:
                result = measured(layer, session, options) | {"machine": place}
            except (LiftError, ValueError) as why:  # the others are still worth measuring
                print(f"  {name} is left out: {why}", flush=True)
                failed += 1
                continue
            path = options.out / f"{name.replace('/', '_')}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            error = result["liftpy"][F32]["error"]
            if wrong(result) or error > TOLERANCE:
                print(f"  WRONG: {wrong(result)} elements differ, f32 by {error:.1e}", flush=True)
                failed += 1
            for own in (U8, F32):
                words = " ".join(f"{n}={v}" for n, v in result["liftpy"][own]["assignment"].items())
                print(f"  {own}: {words}; {counts_text(result['outcomes'][own])}", flush=True)
            times = ", ".join(f"{n} {median(result, n) / 1e6:.3f} ms" for n in result["ns"])
            told = f"f32 / u8 {speed(result):.2f}, ONNX Runtime differs {differences(result)}"
            print(f"  {times}; {told}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""The bundle of a network: a folder that runs a plan with a C compiler and an OpenCL driver only.

kernels/N.cl       the source of each distinct module, in the order of first use
weights.bin        the constants as they are in the model, one after another
plan.txt           the input of `network`: memory, kernels, places and order
inputs/NAME.bin    random values for each input, in their memory layout
expected/N.bin     elements of each result for these inputs, by the meaning of the network
library.txt        the path of the OpenCL library on the machine that made the bundle
manifest.json      the same for people and programs, with the SHA-256 of every file
*.c *.h Makefile   the program `network`

All numbers are little-endian.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from liftpy.boards.bundle import HOST, check_unused, little, points_of, sha_of
from liftpy.boards.plan import Wanted, range_words, scalar_line, target_lines
from liftpy.explore.measure.check import Expected
from liftpy.files.naming import file_names
from liftpy.files.writing import write_files
from liftpy.language.entry import entry
from liftpy.networks.comparing import tolerance_of
from liftpy.networks.executing import Array, by_meaning, check_programs, execute
from liftpy.networks.graph import Tensor
from liftpy.networks.layout import Layout
from liftpy.networks.plan import Plan, stored
from liftpy.networks.schedule import Allocate, Pack, Release, Schedule, Upload, schedule_of
from liftpy.opencl.images import texel_bytes
from liftpy.opencl.kernel import Launch, Module, Phase
from liftpy.opencl.resident import Place
from liftpy.opencl.runtimes import libraries
from liftpy.opencl.session import BUILD_OPTIONS

FORMAT = "liftpy-network 3"

OWN = Path(__file__).with_name("network_host")
SHARED = ("clock", "device", "image", "judge", "limits", "lines", "opencl", "sha256", "text")
"""The files that `network` shares with the program `board`."""

HOST_OF_NETWORK = sorted(
    [*OWN.glob("*"), *(path for path in HOST if path.stem in SHARED)], key=lambda path: path.name
)
"""The files of the program `network`."""

MOST_POINTS = 1 << 16
"""The most elements of a result that are compared; of a larger result, random ones are."""


@entry("lp.export")
def export(plan: Plan | Path | str, folder: Path | str, *, seed: int = 0) -> Path:
    """Writes a plan as a bundle that runs without Python, into a new folder, which is returned.

    `plan` is a plan or its file; its device need not be there. `seed` is that of the random inputs
    on which the bundle checks itself. The expected results are those of the network's meaning,
    which is computed here in NumPy. LiftError if the folder is not empty or cannot be written,
    StoreRefused if the file is no valid plan, NetworkRefused if a node has no program.

    >>> import liftpy as lp
    >>> lp.export("model.plan", "bundle")  # doctest: +SKIP
    PosixPath('bundle')
    """
    folder = Path(folder)
    check_unused(folder)
    made = plan if isinstance(plan, Plan) else stored(Path(plan))
    write_files(folder, dict(_files(made, seed)))
    return folder


def _files(plan: Plan, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yields the files of a bundle, with the manifest last."""
    sums: dict[str, str] = {}

    def summed(name: str, content: bytes) -> tuple[str, bytes]:
        sums[name] = sha_of(content)
        return name, content

    check_programs(plan.graph, "a bundle runs without ONNX's libraries, and cannot compute these")
    inputs = plan.random_inputs(seed)
    wanted = execute(plan.graph, inputs, by_meaning)
    kernels = _kernels(plan)
    schedule = schedule_of(plan.graph, plan.modules, plan.layout)
    weights = _weights(plan, schedule)
    for source, file in kernels.items():
        yield summed(file, source.encode())
    yield summed("weights.bin", b"".join(map(_bytes, weights.arrays.values())))
    named = _Names.of(plan)
    for name, file in named.inputs.items():
        yield summed(f"inputs/{file}.bin", _bytes(inputs[name]))
    points: dict[str, Wanted] = {}
    for k, (name, array) in enumerate(wanted.items()):
        tensor, file = plan.graph.tensors[name], f"expected/{k}.bin"
        mean = _expected(tensor, array, seed)
        _, content = summed(file, points_of(mean, tensor.shape))
        yield file, content
        points[name] = Wanted(
            tensor.type.name, array.size, len(mean.points), mean.tolerance, file, sums[file]
        )
    text = "".join(
        f"{line}\n" for line in _lines(plan, schedule, kernels, weights, named, points, sums)
    )
    yield summed("plan.txt", text.encode())
    yield summed("library.txt", "".join(f"{line}\n" for line in libraries()).encode())
    for path in HOST_OF_NETWORK:
        yield summed(path.name, path.read_bytes())
    yield "manifest.json", _manifest(plan, named, seed, sums).encode()


def _bytes(array: Array) -> bytes:
    return little(array).tobytes()


def _kernels(plan: Plan) -> dict[str, str]:
    """The file of each distinct source."""
    own = [plan.modules[o.name].source for o in plan.graph.operations if o.name in plan.modules]
    return {source: f"kernels/{k}.cl" for k, source in enumerate(dict.fromkeys(own))}


@dataclass(frozen=True)
class _Weights:
    """The constants of a bundle in the order of the file, and the offset of each."""

    arrays: Mapping[str, Array]
    offsets: Mapping[str, int]


def _weights(plan: Plan, schedule: Schedule) -> _Weights:
    """The constants that are uploaded, and those that are results."""
    graph = plan.graph
    used = [step.tensor for step in schedule.prepare if isinstance(step, Upload)]
    used += [name for name in graph.outputs if graph.tensors[name].value is not None]
    arrays = {name: np.asarray(graph.tensors[name].value) for name in dict.fromkeys(used)}
    ends = np.cumsum([0, *(array.nbytes for array in arrays.values())]).tolist()
    return _Weights(arrays, dict(zip(arrays, ends, strict=False)))


@dataclass(frozen=True)
class _Names:
    """Names of inputs and outputs for files and options, by their names in the model."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> _Names:
        graph = plan.graph
        return cls(
            dict(zip(graph.inputs, file_names(graph.inputs), strict=True)),
            dict(zip(graph.outputs, file_names(graph.outputs), strict=True)),
        )


def _expected(tensor: Tensor, array: Array, seed: int) -> Expected:
    """The values of a result at all indices, or at random ones if there are many."""
    index = np.arange(array.size)
    if array.size > MOST_POINTS:
        index = np.sort(np.random.default_rng(seed).choice(array.size, MOST_POINTS, replace=False))
    points = np.stack(np.unravel_index(index, array.shape), axis=-1) if array.shape else index
    values = array.reshape(-1)[index]
    values = values.astype(np.float64 if values.dtype.kind == "f" else _whole(values))
    return Expected(points, values, tolerance_of(tensor.type, None))


def _whole(values: Array) -> Any:
    return np.uint64 if values.dtype == np.uint64 else np.int64


# --- plan.txt -------------------------------------------------------------------------------------


def _lines(
    plan: Plan,
    schedule: Schedule,
    kernels: Mapping[str, str],
    weights: _Weights,
    named: _Names,
    points: Mapping[str, Wanted],
    sums: Mapping[str, str],
) -> Iterator[str]:
    """The lines of plan.txt (`network_host/network.c` reads them)."""
    graph, layout = plan.graph, plan.layout
    yield FORMAT
    yield f"name {_plain(graph.name)}"
    yield from target_lines(plan.device)
    yield f"options {' '.join(BUILD_OPTIONS)}"
    yield f"arena {layout.bytes} {layout.alignment}"
    yield f"weights weights.bin {sums['weights.bin']}"
    needed = {e for module in plan.modules.values() for e in module.extensions}
    yield from (f"extension {name}" for name in sorted(needed))
    ends = [graph.tensors[name] for name in (*graph.inputs, *graph.outputs)]
    yield from map(scalar_line, sorted({tensor.type.name for tensor in ends}))
    yield from (f"program {file} {sums[file]}" for file in kernels.values())
    sources = _Sources(plan, schedule, weights)
    for name, file in named.inputs.items():
        content = f"inputs/{file}.bin"
        own = sources.of_input(name)
        yield f"input {file} {_array(graph.tensors[name])} {own} {content} {sums[content]}"
    for name, file in named.outputs.items():
        array = _array(graph.tensors[name])
        yield f"output {file} {array} {sources.of_output(name)} {points[name].words}"
    yield from _Steps(layout, list(kernels), weights).lines(schedule)
    yield "end"


def _plain(name: str) -> str:
    """A name on one line; `-` if it would be empty."""
    return " ".join(name.split()) or "-"


def _array(tensor: Tensor) -> str:
    return " ".join(map(str, (tensor.type.name, len(tensor.shape), *tensor.shape)))


@dataclass(frozen=True)
class _Sources:
    """Where the values of inputs are put, and those of results are found."""

    plan: Plan
    schedule: Schedule
    weights: _Weights

    def of_input(self, name: str) -> str:
        place = self.schedule.tensors.get(name)
        return "none" if place is None else f"arena {place.offset}"

    def of_output(self, name: str) -> str:
        if name in self.weights.offsets:
            return f"weights {self.weights.offsets[name]}"
        if name in self.schedule.tensors:
            return f"arena {self.schedule.tensors[name].offset}"
        return f"input {self.plan.graph.inputs.index(name)}"


class _Steps:
    """The lines about memory and launches; allocations have numbers, the arena is the first."""

    def __init__(self, layout: Layout, sources: list[str], weights: _Weights) -> None:
        self._layout = layout
        self._programs = {source: k for k, source in enumerate(sources)}
        self._weights = weights
        self._memories: dict[str, int] = {}

    def lines(self, schedule: Schedule) -> Iterator[str]:
        for step in schedule.prepare:
            match step:
                case Allocate(memory, size):
                    self._memories[memory] = len(self._memories)
                    yield f"allocate {size}"
                case Upload(tensor, place):
                    yield f"upload {self._memories[place.memory]} {self._weights.offsets[tensor]}"
                case Pack(module, places):
                    yield from self._launches("pack", module, "prepare", places)
                case Release(memory):
                    yield f"release {self._memories[memory]}"
        for call in schedule.calls:
            if call.module is not None:
                yield f"operation {_plain(call.operation.name)}"
                yield from self._launches("launch", call.module, "run", call.places)

    def _launches(
        self, word: str, module: Module, phase: Phase, places: Mapping[str, Place]
    ) -> Iterator[str]:
        for launch in module.launches:
            if launch.phase == phase:
                words = self._words(module, launch, places)
                yield f"{word} {self._programs[module.source]} {words}"

    def _words(self, module: Module, launch: Launch, places: Mapping[str, Place]) -> str:
        own = [(places[n], texel_bytes(module, launch, n)) for n in launch.arguments]
        given = [
            n for p, texel in own for n in (self._memories[p.memory], p.offset, p.bytes, texel)
        ]
        return " ".join([range_words(launch), *map(str, given)])


# --- the manifest ---------------------------------------------------------------------------------


def _manifest(plan: Plan, named: _Names, seed: int, sums: Mapping[str, str]) -> str:
    """The manifest: device, figures, inputs and outputs, candidates, the hash of each file."""
    graph, point = plan.graph, plan.point

    def arrays(names: Mapping[str, str]) -> list[dict[str, Any]]:
        tensors = [(graph.tensors[name], file) for name, file in names.items()]
        return [
            {"name": t.name, "called": file, "type": t.type.name, "shape": list(t.shape)}
            for t, file in tensors
        ]

    data = {
        "format": 1,
        "network": graph.name,
        "version": plan.data.version,
        "device": plan.device.to_json(),
        "build_options": list(BUILD_OPTIONS),
        "arena": point.arena,
        "constants": point.constants,
        "time_ns": point.time_ns,
        "seed": seed,
        "inputs": arrays(named.inputs),
        "outputs": arrays(named.outputs),
        "operations": [
            {
                "operation": o.name,
                "skeleton": choice.skeleton,
                "assignment": dict(choice.assignment),
                "time_ns": choice.time_ns,
            }
            for o in graph.operations
            if (choice := plan.choices.get(o.name)) is not None
        ],
        "sha256": dict(sums),
    }
    return json.dumps(data, indent=2, sort_keys=True) + "\n"

"""A bundle: a folder that builds and runs candidates with a C compiler and an OpenCL driver only.

kernels/ID.cl      the source of each candidate's kernels; reference.cl is that of a fixed kernel
inputs/N-NAME.bin  the inputs in their memory layout, little-endian (liftpy.files.naming)
expected/N.bin     points of each component of the result: an index (u64), and the value there (f64,
                   or i64 for integers)
plan.txt           the input of `board` (liftpy/boards/plan.py)
library.txt        the path of the OpenCL library on the machine that made the bundle
manifest.json      the same for people and programs, with the SHA-256 of every file
*.c *.h Makefile   the program `board`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from liftpy.boards.plan import REFERENCE, BundledCandidate, Wanted, plan_text
from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused, LiftError, StoreRefused
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.replay import stored_candidate
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.measure.check import Expected
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.reference import MODULE
from liftpy.explore.space.candidate import Candidate
from liftpy.files.naming import file_names
from liftpy.files.writing import write_files
from liftpy.ir.program import Program
from liftpy.ir.types import STORAGE, components
from liftpy.ir.walk import scalars_in
from liftpy.language.text.program import parse
from liftpy.opencl.runtimes import libraries
from liftpy.opencl.session import BUILD_OPTIONS
from liftpy.pipeline import compile_candidate

HOST = sorted(Path(__file__).with_name("host").glob("*"))
"""The files of the program `board`."""

FORMAT = 1


@dataclass(frozen=True)
class Bundle:
    """Candidates of one program, to be run on another machine.

    `identity` is the campaign that they belong to; they respect the limits of its device.
    """

    identity: Identity
    candidates: tuple[Candidate, ...]

    @property
    def campaign(self) -> dict[str, Any]:
        """The description of the campaign that results must contain to be imported.

        A board compares results with the tolerance alone.
        """
        whole = asdict(self.identity)
        whole["settings"]["check"] = None
        whole["settings"].pop("modelled", None)  # the board measures
        del whole["device"]
        return whole

    @classmethod
    def stored(cls, path: Path, ids: Sequence[str]) -> Bundle:
        """A bundle of stored candidates, by their ids.

        StoreRefused if this version of liftpy generates kernels other than the stored ones.
        """
        with CampaignReader.read(path) as store:
            rows = [store.row(id_) for id_ in dict.fromkeys(ids)]
            candidates = [stored_candidate(store, row) for row in rows]
            for row, candidate in zip(rows, candidates, strict=True):
                source, _ = store.kernels(row.id)
                now = compile_candidate(candidate.skeleton, candidate.point).source
                if candidate.key != row.id or source not in {None, now}:
                    raise StoreRefused(
                        f"candidate {row.id} of {path} has kernels that this liftpy no longer "
                        f"makes: `liftpy replay {path} {row.id}` shows the difference"
                    )
            return cls(store.identity, tuple(dict.fromkeys(candidates)))


def write(bundle: Bundle, folder: Path) -> None:
    """Writes a bundle into a new folder: all of it, or nothing.

    LiftError if the folder is not empty, or cannot be written; ArgumentRefused if the program uses
    a storage type, which the bundle's C program does not support.
    """
    check_types(parse(bundle.identity.text))
    check_unused(folder)
    write_files(folder, {**dict(_files(bundle)), **{p.name: p.read_bytes() for p in HOST}})


def check_unused(folder: Path) -> None:
    """Raises LiftError if a folder for a bundle is not empty."""
    try:
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except (OSError, ValueError) as error:
        raise LiftError(f"{folder} cannot be written: {error}") from error
    if used:
        raise LiftError(
            f"{folder} is not empty and was not changed: it may hold results. Name a new "
            "folder with -o"
        )


def check_types(program: Program) -> None:
    """Raises ArgumentRefused if a program uses a storage type, or candidates may."""
    declared = {t for _, types in program.storage for t in types}
    stored = (scalars_in(program.body) & STORAGE.keys()) | declared
    if stored:
        names = ", ".join(sorted(map(str, stored)))
        raise ArgumentRefused(
            f"{program.name} uses {names}, but bundles do not support storage types or quantised "
            "formats: measure it on an attached device, or export a program without them"
        )


def _files(bundle: Bundle) -> Iterator[tuple[str, bytes]]:
    """Yields the files of a bundle without the program `board`, with the manifest last."""
    program = parse(bundle.identity.text)
    settings = bundle.identity.settings
    device = Device.from_json(bundle.identity.device)
    arrays = inputs(program, settings["input_seed"])
    sums: dict[str, str] = {}

    def summed(name: str, content: bytes) -> tuple[str, bytes]:
        sums[name] = sha_of(content)
        return name, content

    means = expected(program, arrays, points=settings["points"], tolerance=settings["tolerance"])
    data = shared_data(program, arrays, means)
    for name, content in data.files.items():
        yield summed(name, content)
    yield summed(REFERENCE, MODULE.source.encode())
    parts: list[BundledCandidate] = []
    for candidate in bundle.candidates:
        module = compile_candidate(candidate.skeleton, candidate.point)
        file = f"kernels/{candidate.key}.cl"
        yield summed(file, module.source.encode())
        parts.append(BundledCandidate(candidate, module, file, source_sha(module.source)))
    yield summed(
        "plan.txt", plan_text(bundle.campaign, device, data.inputs, data.wanted, parts).encode()
    )
    yield summed("library.txt", "".join(f"{line}\n" for line in libraries()).encode())
    for path in HOST:
        summed(path.name, path.read_bytes())
    yield "manifest.json", _manifest(bundle, parts, sums).encode()


@dataclass(frozen=True)
class SharedData:
    """What all candidates of a program share: the files, and the lines of the plan about them."""

    files: Mapping[str, bytes]
    inputs: tuple[tuple[str, str], ...]
    wanted: tuple[Wanted, ...]


def shared_data(
    program: Program, arrays: Mapping[str, Any], means: Sequence[Expected]
) -> SharedData:
    """The inputs of a program and the expected values of its result, as files of a bundle."""
    files: dict[str, bytes] = {}
    each = list(_arrays(arrays))
    names = file_names(name for name, _ in each)
    for number, (name, (_, array)) in enumerate(zip(names, each, strict=True)):
        files[f"inputs/{number}-{name}.bin"] = little(array).tobytes()
    given = tuple((name, sha_of(content)) for name, content in files.items())
    wanted: list[Wanted] = []
    for part, mean in zip(components(program.type), means, strict=True):
        shape = tuple(map(int, part.shape))
        file, content = f"expected/{len(wanted)}.bin", points_of(mean, shape)
        files[file] = content
        count = len(mean.points)
        total = int(np.prod(shape, dtype=np.int64))
        sha = sha_of(content)
        wanted.append(Wanted(str(part.scalar), total, count, mean.tolerance, file, sha))
    return SharedData(files, given, tuple(wanted))


def sha_of(content: bytes) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _manifest(bundle: Bundle, parts: Sequence[BundledCandidate], sums: Mapping[str, str]) -> str:
    """The manifest: the campaign, the manifest of each candidate, the hash of each file."""
    data = {
        "format": FORMAT,
        "campaign": bundle.campaign,
        "limits_of": bundle.identity.device,
        "build_options": list(BUILD_OPTIONS),
        "candidates": [
            {
                "id": part.candidate.key,
                "assignment": part.candidate.assignment,
                "kernels": part.file,
                "manifest": part.module.manifest(),
            }
            for part in parts
        ],
        "sha256": dict(sums),
    }
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _arrays(values: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields arrays with their names; the components of a tuple separately."""
    for name, value in values.items():
        if isinstance(value, tuple):
            yield from _arrays({f"{name}_{k}": part for k, part in enumerate(value)})
        else:
            yield name, value


def points_of(mean: Expected, shape: tuple[int, ...]) -> bytes:
    """The bytes of a component's points: pairs of an index and a value."""
    index = np.ravel_multi_index(tuple(mean.points.T), shape) if shape else np.zeros(1, np.int64)
    kind = "<f8" if mean.values.dtype.kind == "f" else "<i8"
    table = np.empty(len(mean.points), np.dtype([("index", "<u8"), ("value", kind)]))
    values = mean.values.view(np.int64) if mean.values.dtype == np.uint64 else mean.values
    table["index"], table["value"] = index, values
    return table.tobytes()


def little(array: np.ndarray) -> np.ndarray:
    """The array in little-endian byte order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))

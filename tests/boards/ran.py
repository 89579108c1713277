"""Running a bundle as on a board: no Python takes part."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from liftpy.boards.bundle import Bundle, write
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.workloads import Convolution, convolution

CONVOLUTION = convolution(Convolution(4, 25, 8, 8, (3, 3), (3, 1), (1, 1, 1, 1)), "conv")


def run(
    board: Path, bundle: Path, *options: str, device: str = "portable"
) -> subprocess.CompletedProcess:
    """What the program `board` prints."""
    environment = {n: v for n, v in os.environ.items() if n != "OCL_ICD_VENDORS"}
    command = [str(board), "--bundle", str(bundle), "--device", device, *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def exported(
    program: Program, folder: Path, settings=None, draws: int | None = None, device="pocl"
) -> Bundle:
    """A bundle of a program: one candidate, or the first draws of seed 0."""
    space = space_of(program, device)
    chosen = [space.candidate(settings or {})] if draws is None else space.sample(draws, 0)
    return bundled(space, chosen, folder)


def bundled(space: Space, chosen: Iterable[Candidate], folder: Path) -> Bundle:
    """A bundle of candidates of a space."""
    bundle = Bundle(identity_of(space, 0, search="random"), tuple(chosen))
    write(bundle, folder)
    (folder / "library.txt").unlink()  # the system's loader finds PoCL, and loads nothing else
    return bundle


def altered(bundle: Path, id_: str, old: str, new: str) -> None:
    """Changes the text of a candidate's kernels, and the plan so that `board` takes it."""
    file, plan = bundle / "kernels" / f"{id_}.cl", bundle / "plan.txt"
    before = file.read_text()
    assert old in before
    file.write_text(before.replace(old, new))
    hashes = [hashlib.sha256(t.encode()).hexdigest() for t in (before, file.read_text())]
    plan.write_text(plan.read_text().replace(*hashes))


def with_change(
    sources: Iterable[Path], made: Path, folder: Path, file: str, old: str, new: str
) -> list[Path]:
    """Copies of the sources of a program, with a change to the text of one of them.

    After them comes what was made of the others where the program was built, so that it is newer.
    """
    folder.mkdir()
    copies = [Path(shutil.copy(path, folder)) for path in sources]
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    objects = [path for path in made.glob("*.o") if path.stem != Path(file).stem]
    assert objects
    return sorted(copies) + objects

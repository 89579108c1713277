"""The gain of a structural choice: two candidates that differ only in it are timed alternately.

`stage1`: an epilogue fused into its stage, or in a kernel of its own. `stores`: non-temporal stores
of a result, or cached ones.

    python benchmarks/choices.py stage1|stores [DEVICE] [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from prefetch import events, numbers, over
from turns import timed_alternately

from liftpy.ir.program import Program
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import composed, prefixed, skeletons, stage_skeletons
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import FUSED, STORED
from liftpy.workloads import workload


@dataclass(frozen=True)
class Both:
    """A candidate but for one choice: its other words, of those that its program has, and sizes."""

    program: str
    words: dict[str, str]
    sizes: dict[str, int]

    @property
    def numbers(self) -> str:
        """The sizes as text."""
        return " ".join(f"{n}={v}" for n, v in self.sizes.items())

    def module(self, choice: str, word: str) -> Module:
        """The candidate with a word for the choice that is compared."""
        if word == STORED:
            return self.apart(choice)
        wanted = self.words | {choice: word}
        made = skeletons(workload(self.program), ("direct", "tiled"))
        return compile_candidate(next(s for s in made if has(wanted, dict(s.choices))), self.sizes)

    def apart(self, stage: str) -> Module:
        """The candidate with a stage that is stored, and the first plain form of what reads it."""
        cut = partitions(workload(self.program))
        partition = next(p for p in cut if dict(p.words) == {stage: STORED})
        first, last = partition.stages
        blocked = stage_skeletons(partition, first, ("direct",))
        made = [
            next(s for s in blocked if has(self.words, dict(s.choices))),
            next(stage_skeletons(partition, last, ("plain",))),
        ]
        sizes = {prefixed(stage, name): size for name, size in self.sizes.items()}
        return compile_candidate(composed(partition, made), sizes)


def blocks(program: str, kappa: int, sigma: int, level: str = "glb") -> Both:
    """Register blocks, with padding as it is read."""
    words = {"pad": "fused", "level": level}
    return Both(program, words, {"kappa": kappa, "sigma": sigma, "v": 16})


def tiles(program: str, flat: str, levels: str, *sizes: int) -> Both:
    """Tiles in vectors."""
    words = {"flat": flat, "vector": "yes", "pad": "fused", "map": levels}
    return Both(program, words, dict(zip(("tile0", "tile1", "v"), sizes, strict=True)))


CHOICES: dict[str, tuple[tuple[str, str], tuple[Both, ...]]] = {
    "stage1": (
        (FUSED, STORED),
        (
            blocks("vgg16/7:relu", 32, 14),
            blocks("gemm/1024x1024x1024", 32, 8),
            blocks("gemm/1024x64x1024", 32, 8),
            blocks("gemm/256x256x256", 32, 8),
        ),
    ),
    "stores": (
        ("streamed", "cached"),
        (
            blocks("vgg16/0", 16, 16),
            blocks("vgg16/2", 32, 7, "wrg"),
            blocks("vgg16/2", 32, 14, "wrg"),
            blocks("vgg16/5", 32, 8),
            blocks("vgg16/7", 32, 8),
            blocks("vgg16/12", 32, 8, "wrg"),
            blocks("vgg16/17", 32, 7, "wrg"),
            blocks("vgg16/24", 32, 7, "wrg"),
            blocks("matmul/1024x1024x1024", 32, 8),
            tiles("stencil/jacobi5/4096x4096", "no", "glb0.seq.seq.seq", 256, 1, 16),
            tiles("stencil/jacobi9/4096x4096", "no", "glb0.seq.seq", 64, 4, 16),
            tiles("stencil/jacobi7/256x256x256", "yes", "glb2.glb1.glb0.seq", 256, 4, 16),
        ),
    ),
}
"""Of each choice the two words, the one that is to gain first, and what to compare them on."""


def has(words: dict[str, str], choices: dict[str, str]) -> bool:
    """Whether choices are those of a candidate, as far as its program has them."""
    return all(choices.get(name, word) == word for name, word in words.items())


def compare(choice: str, words: tuple[str, str], both: Both, session: Session, rounds: int) -> None:
    """Print the time of the first word as a ratio to the second's, and the scratch memory."""
    modules: dict[str, Module] = {}
    for word in words:
        modules[word] = both.module(choice, word)
    scratch = [module.memory.scratch for module in modules.values()]
    level = both.words.get("level") or both.words["map"]
    print(f"{both.program:28} {level:18} {both.numbers:28}", end=" ")
    print(f"{turns_of(workload(both.program), modules, session, rounds)}; scratch {scratch}")


def turns_of(program: Program, modules: dict[str, Module], session: Session, rounds: int) -> str:
    """The first module's time as a ratio to the second's, of the least and the median, as text.

    Their results must be equal.
    """
    arrays = numbers(program)
    held: dict[str, Loaded] = {}
    results: list[np.ndarray] = []
    for form, module in modules.items():
        held[form] = session.load(module)
        held[form].set_constants({n: arrays[n] for n in program.constants})
        inputs = {n: a for n, a in arrays.items() if n not in program.constants}
        results.append(held[form].run(inputs))
    mine, wanted = results
    np.testing.assert_array_equal(mine, wanted)
    samples, others = timed_alternately(
        {form: events(loaded) for form, loaded in held.items()}, rounds
    )
    ours, theirs = (samples[form]["events"] for form in modules)
    median = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    for loaded in held.values():
        loaded.close()
    ratios = f"{min(ours) / min(theirs):.3f} {median:.3f}"
    return f"{ratios} {min(ours) / 1e6:.2f} of {min(theirs) / 1e6:.2f} ms; others {others:.0%}"


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in CHOICES:
        sys.exit(f"name a choice: {' or '.join(CHOICES)}")
    chosen = sys.argv[1]
    both_words, cases = CHOICES[chosen]
    over(cases, partial(compare, chosen, both_words), sys.argv[2:])

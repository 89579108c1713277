"""Unrolled loops are read once: the same code comes out as when each step is read by itself."""

import re
from collections.abc import Callable

import pytest

from liftpy.compile import compile_candidate, skeletons
from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.errors import LiftError
from liftpy.ir.nat import Nat
from liftpy.loops.scopes import NotUniformError
from liftpy.loops.storing import Steps, Storing
from liftpy.rewrite.skeleton import Skeleton
from liftpy.workloads import workload
from tests.fuzz.generator import make

INDEX = re.compile(r"\[([^\[\]]+)\]")
#: A range of values for every loop variable and id that stands in an index.
NAMES = {
    f"{stem}{k}": 7 * k + at for at, stem in enumerate(("i", "lid", "gid", "wid")) for k in range(9)
}


def code(skeleton: Skeleton, sizes: dict[str, int]) -> str:
    """The kernels of a candidate, or why there are none; less the solver's choice of witnesses."""
    try:
        return re.sub(" // .*", "", compile_candidate(skeleton, sizes).source)
    except LiftError as refusal:
        return str(refusal)


def with_numbers(text: str) -> str:
    """Code with each index as the number that it is somewhere: it has several forms."""
    helpers = {"floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b}

    def number(index: re.Match[str]) -> str:
        python = re.sub(r"\((?:int|long)\)", "", index[1].replace(" / ", " // "))
        return str(eval(python, {**NAMES, **helpers, "min": min, "max": max}))  # noqa: S307  ours

    return INDEX.sub(number, text)


def compared(skeleton: Skeleton, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many loops were read once in two draws; the code is the same if none is."""
    read: list[Steps] = []
    once = Storing.read_once

    def noted(storing: Storing, length: int, body: Callable[[Nat], None]) -> Steps:
        steps = once(storing, length, body)
        read.append(steps)
        return steps

    def refused(storing: Storing, length: int, body: Callable[[Nat], None]) -> Steps:
        raise NotUniformError("each step by itself")

    for sizes in Space(collect(skeleton, DEFAULT_DEVICE)).sample(2, 0):
        with monkeypatch.context() as patch:
            patch.setattr(Storing, "read_once", noted)
            at_once = code(skeleton, sizes)
            patch.setattr(Storing, "read_once", refused)
            each = code(skeleton, sizes)
        assert each == at_once or with_numbers(each) == with_numbers(at_once), (skeleton.key, sizes)
    return len(read)


@pytest.mark.parametrize("family", ["direct", "staged"])
def test_the_candidates_of_a_convolution(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = skeletons(workload("vgg16/24"), (family,))
    assert sum(compared(skeleton, monkeypatch) for skeleton in found) > 0


def test_the_candidates_of_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [s for seed in range(40) for s in skeletons(make(seed))[:4]]
    assert sum(compared(skeleton, monkeypatch) for skeleton in found) > 0

"""Values stored for one band of the result after the other: loops of the host."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.draw import Space
from liftpy.language.text.program import parse
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.strategies.families import FAMILIES, skeletons_of
from liftpy.rewrite.strategies.families.blocked import MOST_BANDS
from tests.compile.test_blocked import PRODUCT, PROGRAMS, all_right_under_oclgrind
from tests.compile.test_programs import all_right
from tests.draws import draws, tried
from tests.spaces import derived
from tests.subsample import first


def repeated(module: Module) -> int:
    """The number of launches of the kernel that a run launches most often."""
    names = [launch.function for launch in module.launches if launch.phase == "run"]
    return max(map(names.count, names))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_of_bands_are_right(runtime: Device, name: str, kept: Path) -> None:
    program = parse(PROGRAMS[name])
    drawn = draws(program, first(), 2, kept, ("banded",))
    assert drawn
    assert all(repeated(d.module) > 1 for d in drawn)
    named = ((d.label, d.module) for d in tried(drawn, program, runtime))
    all_right(program, named, runtime)


@pytest.mark.slow
@pytest.mark.oclgrind
@pytest.mark.sampled(2)
@pytest.mark.parametrize("half", [0, 1])
def test_kernels_of_bands_have_no_race_and_no_stray_access(half: int) -> None:
    made = []
    for text in [*PROGRAMS.values()][half::2]:
        program = parse(text)
        skeleton = derived(program, ("banded",))[-1]
        point = next(iter(Space(collect(skeleton, DEFAULT_DEVICE)).draws(0)))
        made.append((program, compile_candidate(skeleton, point)))
    all_right_under_oclgrind(made)


@pytest.mark.parametrize("name", ["three products, of constants", "groups"])
def test_the_values_of_a_band_take_the_place_of_those_before(name: str) -> None:
    """The memory of the values is a band's part of it, and that of nothing else changes."""
    program = parse(PROGRAMS[name])
    skeleton = next(s for s in derived(program, ("banded",)) if s.words["pad"] == "fused")
    scratch: dict[int, set[int]] = {}
    for point in islice(Space(collect(skeleton, DEFAULT_DEVICE)).draws(0), 40):
        module = compile_candidate(skeleton, point)
        scratch.setdefault(point["block"], set()).add(module.memory.scratch)
    assert len(scratch) > 1
    (one,) = {n // block for block, found in scratch.items() for n in found}
    assert all(found == {block * one} for block, found in scratch.items())


@pytest.mark.parametrize("length", [8, 60, 1000])
def test_a_result_has_between_2_and_the_most_bands(length: int) -> None:
    one, two = (PRODUCT.format(x, y) for x, y in (("x", "w"), ("one", "u")))
    program = parse(f"""def p(x: [{length}][3]f32, w: [2][3]f32, u: [3][2]f32) =
      let one = ({one}) in {two}""")
    for skeleton in derived(program, ("banded",)):
        for point in islice(Space(collect(skeleton, DEFAULT_DEVICE)).draws(0), 4):
            count = repeated(compile_candidate(skeleton, point))
            assert 2 <= count <= MOST_BANDS
            assert count == length // point["block"]


def test_only_spaces_of_gpus_have_bands_unless_they_are_named() -> None:
    assert FAMILIES["banded"].suits("GPU", ())
    assert not FAMILIES["banded"].suits("CPU", ())
    assert find_device("profile:mali-g72").type == "GPU"


def test_a_program_without_held_values_has_no_bands() -> None:
    program = parse("def p(x: [8][3]f32) = x |> map(reduce(add, 0))")
    assert skeletons_of(FAMILIES["banded"], program) == "banded: no value is held"

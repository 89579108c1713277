"""How the dot products of bytes of x86 processors are found and used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.one_candidate import candidate_of
from liftpy.ir.types import VNNI
from liftpy.language.text.program import parse
from liftpy.opencl import byte_dots
from liftpy.opencl.byte_dots import PLATFORMS, of_processor, way_for
from liftpy.opencl.dots import BYTE_DOTS
from liftpy.opencl.session import BUILD_OPTIONS, options_of
from liftpy.opencl.subgroups import HAS_SUBGROUPS
from liftpy.pipeline import compile_program

PROGRAM = parse("""
    def p(x: [4][8]u8, const w: [16][8]i8) = x |> map(row => w |> map(column =>
      zip(row, column) |> map((a, b) => i32(a) * i32(b)) |> reduce(add, 0)))""")
LANES = {"family": "dots", "level": "glb", "kappa": 16, "sigma": 2, "lanes": "inner", "v": 16}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("processor: 0\nflags\t\t: fpu avx512f avx512_vnni avx2\nflags: avx\n", {VNNI}),
        ("flags\t\t: fpu avx512f avx512vl\n", set()),
        ("CPU implementer: 0x41\nFeatures: fp asimd\n", set()),
    ],
)
def test_the_instructions_of_the_processor_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: set[str]
) -> None:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(byte_dots, "CPUINFO", file)
    assert of_processor.__wrapped__() == set()
    file.write_text(text, encoding="utf-8")
    assert of_processor.__wrapped__() == found


def test_a_driver_that_has_the_instruction_is_told_how_to_call_it(runtime: Device) -> None:
    """Other modules, and devices without the instruction, are built with the usual options."""
    chosen = candidate_of(PROGRAM, runtime, LANES)
    module = compile_program(chosen.skeleton.at(chosen.point)).module
    without = replace(runtime, extensions=())
    assert options_of(module, without, BUILD_OPTIONS) == BUILD_OPTIONS
    if VNNI not in runtime.extensions:
        pytest.skip("this processor has no AVX512-VNNI")
    told = (*BUILD_OPTIONS, f"-D{BYTE_DOTS}={PLATFORMS[runtime.platform]}")
    assert options_of(module, runtime, BUILD_OPTIONS) == told
    subgroups = replace(module, source=f"#if defined({HAS_SUBGROUPS})\n#endif\n{module.source}")
    device = replace(runtime, extensions=(VNNI, "cl_intel_subgroups"))
    assert options_of(subgroups, device, BUILD_OPTIONS) == (
        *BUILD_OPTIONS,
        f"-D{HAS_SUBGROUPS}",
        f"-D{BYTE_DOTS}={PLATFORMS[runtime.platform]}",
    )
    other = replace(module, source="kernel void f() {}")
    assert options_of(other, runtime, BUILD_OPTIONS) == BUILD_OPTIONS


def test_a_way_that_fails_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert way_for(DEFAULT_DEVICE) == 0
    known: Mapping[str, int] = {"a platform that no driver has": 1}
    monkeypatch.setattr(byte_dots, "PLATFORMS", known)
    assert way_for.__wrapped__(replace(DEFAULT_DEVICE, platform=next(iter(known)))) == 0

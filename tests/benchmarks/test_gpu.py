"""The benchmark of GPUs, without one: its tables from made numbers, its run without the peer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.scripts import script

cases = script("cases")
gpu = script("gpu")
report = script("gpu_report")

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"

BLOCKED = {
    "family": "stages",
    "winograd": "4x4",
    "filters.family": "small",
    "result.family": "blocked",
}
COOPERATIVE = {"family": "cooperative", "chunks": "even", "tile0": 56}


def result(number: int, mine: float, direct: float, nchw: float, nhwc: float) -> dict:
    """A layer of 10^9 operations with these microseconds; the fastest candidate uses F(4x4)."""
    times = {gpu.MINE: mine, gpu.DIRECT: direct, "PyTorch NCHW": nchw, "PyTorch NHWC": nhwc}
    return {
        "case": f"vgg16/{number}",
        "flops": 10**9,
        "outcomes": {"measured": 58, "refused": 2},
        "liftpy": {gpu.MINE: {"assignment": BLOCKED, "error": 2e-6}},
        "peers": {
            "PyTorch NCHW": {"layout": "NCHW", "error": 3e-6},
            "PyTorch NHWC": {"layout": "NHWC", "error": 4e-6},
        },
        "ns": {
            name: {"events": [9e9, us * 1e3, us * 1e3], "host": [us * 1e3 + 500] * 3}
            for name, us in times.items()
        },
        "machine": {
            "device": "a GPU",
            "runtime": "an OpenCL",
            "driver": "580",
            "commit": "0123456789",
            "date": "2026-01-01",
            "versions": {"cuDNN": "91000"},
            "rounds": 3,
        },
    }


def other(case: str, kind: dict, **peers: float) -> dict:
    """A case that is no layer: 10^9 operations and 10^8 bytes in 50 microseconds."""
    made = result(7, 50, 50, 1, 1) | {"case": case, "bytes": 10**8}
    made["liftpy"] = {gpu.MINE: {"assignment": kind, "error": 2e-6}}
    made["peers"] = {
        name: {"layout": "", "computes": name != "copy", "error": None if name == "copy" else 3e-6}
        for name in peers
    }
    times = {gpu.MINE: 50.0, **peers}
    made["ns"] = {n: {"events": [us * 1e3], "host": [us * 1e3]} for n, us in times.items()}
    return made


def test_ratios_are_of_the_faster_layout_on_the_device():
    layers = [result(10, 100, 200, 90, 80), result(7, 100, 400, 20, 30)]
    text = report.LAYERS.text(layers)
    (first, second) = (line for line in text.splitlines() if line.startswith("| vgg16"))
    assert first.startswith(
        "| vgg16/7 | 100.0 | 100.5 | 20.0 (NCHW) | 0.20 | 0.05 | 10 | 2.0e-06 | 3.0e-06"
    )
    assert second.startswith("| vgg16/10 | 100.0 | 100.5 | 80.0 (NHWC) | 0.80 | 0.40 | 10 |")
    assert first.endswith("| F(4x4) small, blocked | 58 measured, 2 refused |")
    assert "over 2 of 9 layers: 0.40 (the goal is 0.7); without F(m, r): 0.14." in text
    assert "- a GPU, an OpenCL 580; cuDNN 91000; liftpy at 01234567, 2026-01-01;" in text


def test_without_a_peer_there_is_no_ratio():
    alone = result(7, 100, 400, 20, 30) | {"peers": {}}
    assert "Geometric mean" not in report.LAYERS.text([alone])
    left_out = result(7, 100, 400, 20, 30)
    del left_out["ns"]["PyTorch NCHW"]
    assert "| 30.0 (NHWC) | 0.30 |" in report.LAYERS.text([left_out])
    del left_out["ns"]["PyTorch NHWC"]
    assert "Geometric mean" not in report.LAYERS.text([left_out])
    assert report.LAYERS.text([]) == "Nothing is measured yet."


def test_other_cases_are_compared_with_what_computes_and_with_a_copy():
    found = [
        result(7, 100, 400, 20, 30),
        other("stencil/jacobi5/4096x4096", COOPERATIVE, copy=40),
        other("programs/softmax", COOPERATIVE, PyTorch=75, copy=25),
        other("programs/attention", COOPERATIVE, PyTorch=75),
        other("matmul/4096x4096x4096", COOPERATIVE, PyTorch=60),
    ]
    rows = [x for x in report.OTHERS.text(found).splitlines() if x.startswith("| ")][2:]
    assert [row.partition(" | 2.0e-06")[0] for row in rows] == [
        "| matmul/4096x4096x4096 | 50.0 | 50.0 | 60.0 | 1.20 |  | 2e+03 | 20",
        "| programs/attention | 50.0 | 50.0 | 75.0 | 1.50 |  | 2e+03 | 20",
        "| programs/softmax | 50.0 | 50.0 | 75.0 | 1.50 | 0.50 | 2e+03 | 20",
        "| stencil/jacobi5/4096x4096 | 50.0 | 50.0 |  |  | 0.80 | 2e+03 | 20",
    ]
    assert [row.split(" | ")[9] for row in rows] == ["3.0e-06"] * 3 + [""]
    assert "vgg16/7" not in report.OTHERS.text(found)
    assert "softmax" not in report.LAYERS.text(found)


def test_the_page_has_the_stored_results():
    """`python benchmarks/gpu.py --peer none --layers --page docs/performance.md` writes it."""
    found = [json.loads(p.read_text("utf-8")) for p in gpu.RESULTS.glob("*.json")]
    page = PAGE.read_text("utf-8")
    assert page == report.rendered(page, found)


def test_a_candidate_of_one_stage_has_one_family():
    assert report.family_of(COOPERATIVE) == "cooperative"


def test_layers_and_patterns_select_cases(capsys):
    def names(*given: str) -> list[str]:
        return [case.name for case in gpu.parsed([*given]).selected]

    assert len(names()) == 9
    assert names("--layers") == []
    assert names("--cases") == [*cases.ON_GPUS]
    assert names("--layers", "7", "--cases", "dot/16777216", "vgg16/7", "matmul/4*") == [
        "vgg16/7",
        "dot/16777216",
        "matmul/4096x4096x4096",
    ]
    with pytest.raises(SystemExit):
        gpu.parsed(["--cases", "no/*"])
    assert "no case has a name like no/*; there are matmul/1024" in capsys.readouterr().err


def test_cases_of_gpus_have_programs_and_operations():
    """Those that no other benchmark has are built here, and the sizes of a layer are its name's."""
    for case in cases.ON_GPUS.values():
        assert cases.CASES.get(case.name, case) is case
    new = cases.ON_GPUS.keys() - cases.CASES.keys()
    assert {cases.ON_GPUS[name].flops for name in new} == {
        2 * 4096**3,
        2 * 16 * 512**3,
        112 * 112 * 64 * 4,
    }
    pool = cases.ON_GPUS["pool/max/224x224x64x2x2"]
    assert (pool.pooling.window, pool.pooling.stride) == ((2, 2), (2, 2))
    assert pool.needed == 4 * 64 * (224**2 + 112**2)


def test_nothing_is_searched_where_the_peer_is_missing(pocl, tmp_path, capsys):
    """There is no CUDA, or its GPU is not PoCL's processor."""
    out = tmp_path / "out"
    assert gpu.main(["--device", "pocl", "--out", str(out)]) == 2
    assert "nothing was run: PyTorch" in capsys.readouterr().err
    assert not out.exists()
    assert gpu.main(["--device", "no such device", "--out", str(out)]) == 2


@pytest.mark.slow
def test_a_case_is_searched_timed_and_written_without_the_peer(
    in_one_process, device, tmp_path, capsys, monkeypatch
):
    small = cases.Case("convolution/strided/9x9x4x8x1x1", "claimed layers", "convolution")
    monkeypatch.setitem(gpu.ON_GPUS, small.name, small)
    monkeypatch.setattr(gpu, "CHOOSING", 1)
    page = tmp_path / "page.md"
    markers = [line for section in (gpu.LAYERS, gpu.OTHERS) for line in section.markers]
    page.write_text("\n".join(["before", *markers, "after", ""]), encoding="utf-8")
    given = ["--peer", "none", "--out", str(tmp_path)]
    more = ["--samples", "2", "--rounds", "1", "--cases", small.name, "--page", str(page)]
    assert gpu.main([*given, *more]) == 0
    assert f"{small.name}: 2 measured, best" in capsys.readouterr().out
    (kept,) = (json.loads(p.read_text(encoding="utf-8")) for p in tmp_path.glob("*.json"))
    (events,) = kept["ns"][gpu.MINE]["events"]
    (host,) = kept["ns"][gpu.MINE]["host"]
    assert 0 < events <= host
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert f"| {small.name} | {events / 1e3:.1f} | {host / 1e3:.1f} |" in text
    assert gpu.main([*given, "--skip-search", "--layers", "7"]) == 1
    assert "vgg16/7 is left out: no campaign is stored" in capsys.readouterr().out

"""The benchmark of GPUs, without one: its table from made numbers, and its run without the peer."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.scripts import script

cases = script("cases")
gpu = script("gpu")

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


def test_ratios_are_of_the_faster_layout_on_the_device():
    layers = [result(10, 100, 200, 90, 80), result(7, 100, 400, 20, 30)]
    text = gpu.tables(layers)
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
    assert "Geometric mean" not in gpu.tables([alone])
    assert gpu.tables([]) == "Nothing is measured yet."


def test_a_candidate_of_one_stage_has_one_family():
    assert gpu.family_of(COOPERATIVE) == "cooperative"


def test_nothing_is_searched_where_the_peer_is_missing(pocl, tmp_path, capsys):
    """There is no CUDA, or its GPU is not PoCL's processor."""
    out = tmp_path / "out"
    assert gpu.main(["--device", "pocl", "--out", str(out)]) == 2
    assert "nothing was run: PyTorch" in capsys.readouterr().err
    assert not out.exists()
    assert gpu.main(["--device", "no such device", "--out", str(out)]) == 2


@pytest.mark.slow
def test_a_layer_is_searched_timed_and_written_without_the_peer(
    device, tmp_path, capsys, monkeypatch
):
    """A small layer takes the place of VGG-16's first, which takes longer to derive and to run."""
    small = cases.Case("convolution/strided/9x9x4x8x1x1", "claimed layers", "convolution")
    monkeypatch.setitem(gpu.CASES, "vgg16/0", small)
    monkeypatch.setattr(gpu, "CHOOSING", 1)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{gpu.BEGIN}\nold\n{gpu.END}\nafter\n", encoding="utf-8")
    given = ["--peer", "none", "--out", str(tmp_path)]
    more = ["--samples", "2", "--rounds", "1", "--layers", "0", "--page", str(page)]
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

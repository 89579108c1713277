"""The benchmark of 8-bit layers: its oracle on small layers, its settings, and its table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import liftpy as lp
from liftpy.workloads import Convolution
from tests.benchmarks.scripts import script

layers = script("quantised_layers")
report = script("quantised_report")
quantised = script("quantised")

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
SMALL = {
    "dense": Convolution(5, 9, 7, 6, (3, 2), (1, 1), (2, 0, 1, 1)),
    "strided": Convolution(4, 11, 8, 3, (3, 3), (2, 2), (1, 1, 1, 1)),
    "grouped": Convolution(6, 7, 5, 4, (1, 3), (1, 2), (0, 0, 1, 1), groups=2),
    "depthwise": Convolution(7, 8, 9, 7, (3, 3), (2, 1), (0, 1, 1, 1), groups=7),
}


def by_element(layer, x, w):
    """A convolution, one product after another."""
    top, bottom, left, right = layer.padding
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    total = np.zeros((layer.kernels, *layer.out), x.dtype)
    own, each = layer.channels // layer.groups, layer.kernels // layer.groups
    for m, i, j in np.ndindex(total.shape):
        for c, a, b in np.ndindex(own, *layer.kernel):
            row, column = i * layer.stride[0] + a, j * layer.stride[1] + b
            total[m, i, j] += w[m, c, a, b] * x[m // each * own + c, row, column]
    return total


@pytest.mark.parametrize("name", SMALL)
def test_the_oracle_is_the_definition_and_the_meaning_of_the_imported_model(name):
    one = layers.Quantised(name, SMALL[name])
    n = one.numbers
    assert n["x_zero_point"] % 2 == n["y_zero_point"] % 2 == 1
    sums = by_element(one.layer, n["x"][0].astype(int) - int(n["x_zero_point"]), n["w"].astype(int))
    np.testing.assert_array_equal(one.sums, sums + n["b"][:, None, None])
    case = layers.imported(one, quantised=True)
    found = lp.evaluate(case.program, *case.arrays.values())
    np.testing.assert_array_equal(found[0], one.oracle)
    assert case.error(found) == 0
    assert case.error(found + np.uint8(found == found.max())) > 0
    assert len(np.unique(found)) > 20


@pytest.mark.parametrize("name", SMALL)
def test_the_layer_in_f32_has_the_numbers_that_the_quantised_ones_stand_for(name):
    one = layers.Quantised(name, SMALL[name])
    case = layers.imported(one, quantised=False)
    assert case.error(lp.evaluate(case.program, *case.arrays.values())) < 1e-6
    scale = float(one.numbers["y_scale"])
    np.testing.assert_allclose(one.exact / scale, one.scaled, rtol=1e-4, atol=1e-3)


def test_ties_are_counted():
    one = layers.Quantised("ties", Convolution(3, 30, 30, 4, (1, 1)))
    assert one.ties.any()
    assert not one.ties[1::2].any()  # their scales are no powers of two


def test_six_layers_of_each_network_are_measured_unless_others_are_named():
    names = layers.selected(None)
    assert [sum(n.startswith(net) for n in names) for net in ("resnet50/", "mobilenet/")] == [6, 6]
    assert layers.selected(["mobilenet/1?"]) == [f"mobilenet/{k}" for k in range(10, 19)]
    with pytest.raises(ValueError, match="no layer has a name like vgg16"):
        layers.selected(["vgg16/1"])


def result(name: str, times: tuple[float, float, float, float], **more) -> dict:
    """A layer with these milliseconds: liftpy's u8 and f32, ONNX Runtime's u8 and f32."""
    names = report.U8, report.F32, report.ORT_U8, report.ORT_F32
    both = {"assignment": {}, "peak": 4096, "error": 0.0}
    machine = {"cpu": "a CPU", "vectors": "AVX2", "device": "a device", "commit": "0" * 8}
    machine |= {"date": "2020-01-02T03:04", "versions": "1.2", "threads": 2, "rounds": 9}
    machine |= {"samples": 40, "time_limit": 15}
    return {
        "layer": name,
        "sizes": "convolution 3x5x5 -> 2 kernels 3x3",
        "bytes": {report.U8: 1024, report.F32: 4096},
        "liftpy": {report.U8: both, report.F32: both},
        "ties": 3,
        "peer": {"differences": {}, "at ties": 0},
        "others": 0.01,
        "machine": machine,
        "ns": {
            n: {"wall": [t * 1e6] * 3, "events": [t * 1e6] * 3}
            for n, t in zip(names, times, strict=True)
        },
        **more,
    }


def test_the_table_has_the_ratios_and_how_the_peer_differs():
    differs = {"differences": {"-1": 5, "1": 2}, "at ties": 7}
    made = [
        result("mobilenet/1", (2, 1, 1, 4), peer=differs),
        result("resnet50/12", (1, 8, 3, 3)),
        result("resnet50/4", (1, 2, 2, 1), others=0.5),
    ]
    text = report.text(made)
    rows = [line for line in text.splitlines() if line.startswith(("| resnet", "| mobilenet"))]
    assert [row.split(" | ")[0] for row in rows] == [
        "| resnet50/4",
        "| resnet50/12",
        "| mobilenet/1",
    ]
    assert "-1: 5, +1: 2 (7 at ties)" in rows[-1]
    assert "`f32 / u8` 2.00" in text  # of 2, 8 and 0.5
    assert "QLinearConv over liftpy's 1.44" in text  # of 2, 3 and 0.5
    assert "processors: resnet50/4." in text
    assert report.text([]) == "Nothing is measured yet."


def test_the_page_has_a_place_for_the_table():
    begin, end = report.MARKERS
    assert PAGE.read_text("utf-8").count(begin) == PAGE.read_text("utf-8").count(end) == 1


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_wrong_element_is_a_failure(wrong, tmp_path, capsys):
    made = result("resnet50/4", (1, 2, 2, 1))
    made["liftpy"][report.U8] = {"assignment": {}, "peak": 1, "error": float(wrong)}
    (tmp_path / "resnet50_4.json").write_text(json.dumps(made))
    status = quantised.main(["--render-only", "--out", str(tmp_path)])
    assert status == (wrong > 0)
    assert "f32 / u8" in capsys.readouterr().out

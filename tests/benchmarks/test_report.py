"""The verdicts of the benchmarks: made numbers in, held or not held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.scripts import script

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

report = script("report")
turns = script("turns")

LAYERS = (0, 2, 5, 7, 10, 12, 17, 19, 24)


def result(case: str, group: str, peers: dict[str, float], others: float = 0.0) -> dict:
    """A case in which liftpy took 1 ms and the peers as many ms as said."""
    return {
        "case": case,
        "group": group,
        "flops": 10**6,
        "outcomes": {"measured": 3},
        "best": {"skeleton": "direct", "assignment": {"kappa": 4}, "peak": 10**6, "scratch": 0},
        "peers": {n: {"computes": n != "copy", "layout": ""} for n in peers},
        "others": others,
        "ns": {
            "liftpy": {"wall": [9e6, 1e6, 1e6], "events": [0.9e6] * 3},
            **{n: {"wall": [ms * 1e6] * 3} for n, ms in peers.items()},
        },
        "machine": {
            "cpu": "a processor",
            "cores": 2,
            "threads": 2,
            "device": "a runtime",
            "commit": "abc",
            "date": "2026-01-01T00:00",
            "versions": {"A": "1"},
            "absent": {"B": "not installed"},
            "rounds": 3,
        },
    }


def verdicts(results: list[dict]) -> dict[str, str]:
    return {goal.text: goal.verdict for goal in report.goals(results)}


def vgg(slow: int = -1) -> list[dict]:
    """All layers at a ratio of 1, one of them at a half."""
    return [
        result(f"vgg16/{k}", "vgg16", {"A": 0.5 if k == slow else 1.0, "OpenBLAS": 3, "CLBlast": 9})
        for k in LAYERS
    ]


def test_a_ratio_is_the_fastest_peers_median_over_ours() -> None:
    case = result("dot/8", "dot", {"A": 2.0, "C": 1.5, "copy": 0.1})
    assert report.against_best(case) == pytest.approx(1.5)
    assert report.of(case, "copy") == pytest.approx(0.1)
    assert report.geomean([0.5, 2.0]) == pytest.approx(1)


def test_a_row_names_the_options_that_restricted_its_campaign() -> None:
    case = result("dot/8", "dot", {"A": 2.0})
    assert "| 3 measured |" in report.tables([case], {})
    limited = case | {"restricted": {"families": ["direct", "rows"], "memory_limit": 2_500_000}}
    text = report.tables([limited], {})
    assert "| 3 measured, only direct and rows, peak at most 2.50 MB |" in text


def test_one_slow_layer_breaks_its_own_goal_and_the_mean() -> None:
    whole, slow = verdicts(vgg()), verdicts(vgg(slow=7))
    assert whole["VGG-16 but layer 0: each layer"] == "held"
    assert whole["im2col and OpenBLAS: each layer but 0"] == "held"
    assert whole["CLBlast's convgemm: each layer but 0"] == "not held"
    assert slow["VGG-16 but layer 0: each layer"] == "not held"
    assert slow["VGG-16: geometric mean"] == "not held"
    assert slow["VGG-16 layer 0"] == "held"


def test_one_layer_with_much_scratch_memory_breaks_the_goal_of_memory() -> None:
    goal = "VGG-16: what is given and made, of the peak"
    layers = vgg()
    assert verdicts(layers)[goal] == "held"
    layers[3]["best"]["scratch"] = 30_000
    assert verdicts(layers)[goal] == "not held"


def test_what_is_not_measured_is_neither_held_nor_missed() -> None:
    some = vgg()[:-1]
    assert verdicts(some)["VGG-16: geometric mean"] == "not measured"
    assert verdicts(some)["stencils: each, of a copy's speed"] == "not measured"
    assert all("geometric" not in line for line in report.missed(some))


def test_what_was_timed_beside_other_work_decides_nothing() -> None:
    busy = [r | {"others": 0.5} for r in vgg(slow=7)]
    assert set(verdicts(busy).values()) == {"not measured"}
    assert report.missed(busy) == []


def test_the_page_keeps_what_stands_around_the_tables() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    text = report.rendered(page, [result("dot/8", "dot", {"A": 2.0}, others=0.5)], {})
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| dot/8 (busy) | 0.9 | 1 | 2 | 2.00 |" in text
    assert "B was left out: not installed." in text
    assert report.rendered(text, [], {}).count(report.BEGIN) == 1
    with pytest.raises(ValueError, match="the page has no"):
        report.rendered("no marks", [], {})


def test_what_is_not_measured_is_listed_and_counted() -> None:
    cases = {"dot/8": "dot", "dot/16": "dot", "dot/32": "dot", "alexnet/0": "alexnet"}
    text = report.tables([result("dot/16", "dot", {"A": 2.0})], cases)
    assert "Not measured: 2 of 3 cases (dot/8, 32)." in text
    assert "Not measured: every case of AlexNet (1)." in text
    every = [result(name, group, {"A": 2.0}) for name, group in cases.items()]
    assert "easured: " not in report.tables(every, cases)


def test_the_page_has_the_stored_results_of_all_cases() -> None:
    """`python benchmarks/bench.py --render-only` writes it."""
    found = [json.loads(p.read_text("utf-8")) for p in sorted(RESULTS.glob("*.json"))]
    groups = {name: case.group for name, case in script("cases").CASES.items()}
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert page == report.rendered(page, [r for r in found if "case" in r], groups)


def test_everybody_has_a_turn_in_each_round() -> None:
    """The first round is not counted."""
    taken: list[str] = []

    def contestant(name: str):
        def take():
            taken.append(name)
            return {"wall": float(len(taken))}

        return take

    samples, others = turns.timed_alternately({n: contestant(n) for n in "ab"}, rounds=3)
    assert sorted(taken) == ["a"] * 4 + ["b"] * 4
    assert [len(samples[n]["wall"]) for n in "ab"] == [3, 3]
    assert min(samples["a"]["wall"] + samples["b"]["wall"]) > 2
    assert 0 <= others <= 1


def test_peers_of_the_same_layout_have_a_column_of_their_own() -> None:
    first = result("vgg16/0:nchw", "vgg16:nchw", {"A": 0.5, "B": 2.0})
    first["peers"]["A"]["layout"], first["peers"]["B"]["layout"] = "nhwc", "nchw"
    assert report.against_best(first) == 0.5
    assert report.against_layout(first) == 2.0
    assert "| 0.50 | 2.00 |" in report.group_table([first])
    assert "its layout" not in report.group_table([result("dot/16", "dot", {"A": 1.0})])


def test_the_machine_is_stated_with_its_vectors_if_they_are_known():
    known = result("vgg16/7", "vgg16", {"A": 1})
    known["machine"] |= {"vectors": "AVX2"}
    assert "a processor (AVX2), 2 cores" in report.machine_text([known])
    assert "a processor, 2 cores" in report.machine_text([result("vgg16/7", "vgg16", {"A": 1})])

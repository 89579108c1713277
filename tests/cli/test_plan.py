"""`liftpy plan`, and `liftpy run` of a plan."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import liftpy as lp
from liftpy.networks.plan import Plan
from tests.networks.models import model, node, value
from tests.pages import Page

SHAPE = (5, 7)


@pytest.fixture
def file():
    """A model in the current folder, which is the test's own."""
    nodes = [node("MatMul", "x w", "m", "mul1"), node("Relu", "m", "r", "relu1")]
    nodes.append(node("Add", "r b", "y", "add1"))
    rng = np.random.default_rng(2)
    made = model(
        nodes,
        [value("x", SHAPE)],
        [value(name, (5, 3)) for name in "mry"],  # so that none is joined with another
        w=rng.standard_normal((7, 3)).astype(np.float32),
        b=rng.standard_normal(3).astype(np.float32),
    )
    Path("small.onnx").write_bytes(made.SerializeToString())
    return "small.onnx"


def test_a_plan_has_a_front_offsets_and_candidates(liftpy, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = liftpy("plan", file, "-o", "small.plan")
    assert said.code == 0, said.err
    assert "lower bound" in said.out
    assert "chosen" in said.out
    rows = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert "plain" in rows["mul1"]
    found = liftpy("plan", file, "--json").json
    assert found["chosen"] in found["front"]
    assert found["chosen"]["arena"] == found["chosen"]["lower_bound"]
    assert [o["operation"] for o in found["operations"]] == ["mul1", "relu1", "add1"]
    assert found["chosen"]["time_ns"] == sum(o["time_ns"] for o in found["operations"])
    plan = lp.load("small.plan")
    assert [plan.layout.tensors[n] for n in ("m", "r", "y")] == [
        next(iter(o["offsets"].values())) for o in found["operations"]
    ]


def test_a_limit_that_no_plan_keeps_is_refused(liftpy, file):
    said = liftpy("plan", file, "--memory-limit", "100")
    assert said.code == 1
    assert "no plan of small fits 100 bytes of device memory" in said.err
    assert "the largest sum of live bytes" in said.err


def test_a_campaign_gives_times_and_candidates(liftpy, file):
    pytest.importorskip("ortools")
    done = liftpy("explore", f"{file}:mul1", "--samples", "4", "--db", "mul.db")
    assert done.code == 0, done.err
    found = liftpy("plan", file, "--db", "mul.db", "--json")
    assert found.code == 0, found.err
    campaign = lp.Campaign.read("mul.db")
    chosen = next(o for o in found.json["operations"] if o["operation"] == "mul1")
    assert chosen["time_ns"] in {row.time_ns for row in campaign.rows}
    assert chosen["skeleton"] in {row.skeleton for row in campaign.rows}


def test_a_plan_runs_is_checked_and_profiled(liftpy, file):
    assert liftpy("plan", file, "-o", "small.plan").code == 0
    x = np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)
    np.save("x.npy", x)
    said = liftpy("run", "small.plan", "--input", "x=x.npy", "--output", "y.npz", "--check")
    assert said.code == 0, said.err
    assert "output  y [5, 3], error" in said.out
    wanted = lp.network("small.onnx").evaluate([x])["y"]
    np.testing.assert_allclose(np.load("y.npz")["y"], wanted, rtol=1e-5, atol=1e-6)
    assert liftpy("run", "small.plan", "--output", "all.npz", "--remeasure").code == 0
    assert np.load("all.npz")["y"].shape == (5, 3)
    found = liftpy("run", "small.plan", "--json").json
    assert [o["operation"] for o in found["operations"]] == ["mul1", "relu1", "add1"]
    told = liftpy("run", "small.plan", "--profile", "--trace", "run.json", "--page", "run.html")
    assert "predicted" in told.out
    assert "Gflop/s in f32" in told.out
    assert "run.json, for chrome://tracing" in told.err
    assert "small: run.html" in told.err
    page = Page(Path("run.html").read_text(encoding="utf-8"))
    assert [a["id"] for a in page.found["tr"] if a.get("id")] == [
        "operation1",
        "operation2",
        "operation3",
    ]
    events = json.loads(Path("run.json").read_text())["traceEvents"]
    runs = [e for e in events if e["ph"] == "X" and e["tid"] == 1]
    assert [e["name"] for e in runs] == ["mul1", "relu1", "add1"]
    assert runs[0]["ts"] == 0
    for before, after in itertools.pairwise(runs):
        assert before["ts"] <= after["ts"]
    mul = runs[0]["args"]
    assert mul["flops"] == 2 * 5 * 7 * 3
    assert mul["bytes"] == 4 * (5 * 7 + 7 * 3 + 5 * 3)
    row = found["operations"][0]
    assert (row["flops"], row["bytes"]) == (mul["flops"], mul["bytes"])
    least = max(mul["flops"] / found["peak"]["gflops"], mul["bytes"] / found["peak"]["gbytes"])
    assert row["of_peak"] == pytest.approx(least / max(1, row["time_ns"]))
    counters = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert counters == [o["live_bytes"] for o in found["operations"]]


@pytest.mark.parametrize("option", ["--page", "--trace", "--output"])
def test_a_measurement_is_kept_if_a_file_cannot_be_written(liftpy, file, option):
    assert liftpy("plan", file, "-o", "small.plan").code == 0
    old = Path("small.plan").read_bytes()
    said = liftpy("run", "small.plan", "--remeasure", option, "none/run.npz")
    assert said.code == 1
    assert "none" in said.err
    assert Path("small.plan").read_bytes() != old
    assert lp.load("small.plan").predicted_ns


def test_a_page_without_its_library_is_refused_before_any_run(liftpy, file, monkeypatch):
    assert liftpy("plan", file, "-o", "small.plan").code == 0
    for name in ("liftpy.networks.profile_page", "liftpy.explore.report.document"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr(Plan, "run", None)
    said = liftpy("run", "small.plan", "--page", "run.html")
    assert said.code == 1
    assert "a page needs jinja2" in said.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["run", "small.plan", "--input", "q=x.npy"], "has no input q; it takes: x"),
        (["run", "small.plan", "--input", "x=x.npy"], "x needs float32 numbers of shape"),
        (["run", "none.plan"], "none.plan cannot be read"),
        (["run", "bad.plan"], "bad.plan is not a plan"),
    ],
)
def test_what_cannot_run_is_refused(liftpy, file, given, message):
    assert liftpy("plan", file, "-o", "small.plan").code == 0
    np.save("x.npy", np.zeros(3, np.float32))
    Path("bad.plan").write_bytes(b"LIFT")
    said = liftpy(*given)
    assert said.code == 1
    assert message in said.err


def test_options_of_programs_and_of_plans_are_kept_apart(liftpy):
    said = liftpy("run", "small.plan", "--set", "kappa=3")
    assert said.code == 2
    assert "--set" in said.err
    for option in (["--profile"], ["--trace", "run.json"], ["--page", "run.html"]):
        said = liftpy("run", "matmul/3x5x7", *option)
        assert said.code == 2
        assert "it belongs to a plan" in said.err


def test_a_plan_of_traffic_is_written_verified_and_run(liftpy, file):
    asked = ("plan", file, "--objective", "traffic", "--hardware", "sample")
    said = liftpy(*asked, "--check", "-o", "small.offchip")
    assert said.code == 0, said.err
    assert "mul1" in said.out
    assert "2 operations not planned" in said.err
    found = liftpy(*asked, "--json").json
    assert found["exact"] == found["ideal"] == 4 * (5 * 7 + 7 * 3 + 5 * 3)
    assert f"{4 * (5 * 7 + 7 * 3)} bytes loaded, {4 * 5 * 3} stored" in said.err
    assert liftpy("plan", "small.offchip", "--json").json["exact"] == found["exact"]
    text = Path("small.offchip").read_text(encoding="utf-8")
    Path("small.offchip").write_text(text.replace("exact 284", "exact 283"), encoding="utf-8")
    said = liftpy("plan", "small.offchip")
    assert said.code == 1
    assert "it moves 284 bytes, but states 283" in said.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--objective", "traffic"), "--hardware sample"),
        (("--hardware", "sample"), "--objective"),
        (
            ("--objective", "traffic", "--hardware", "sample", "--memory-limit", "9"),
            "takes no --db",
        ),
        (("--objective", "traffic", "--hardware", "sample", "-o", "a.plan"), "does not end in"),
        (("--objective", "bytes", "--hardware", "sample"), "traffic"),
        (("--objective", "traffic", "--hardware", "sample", "--policy", "mab"), "zhang"),
    ],
)
def test_options_of_plans_of_traffic_go_together(liftpy, file, options, why):
    said = liftpy("plan", file, *options)
    assert said.code == 2
    assert why in said.err


def test_commands_name_the_nodes_that_the_host_computes(liftpy, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    nodes = [node("MatMul", "x w", "m", "mul1"), node("Det", "m", "d", "det1")]
    nodes.append(node("Mul", "m d", "y", "scale1"))
    w = np.random.default_rng(3).standard_normal((7, 5)).astype(np.float32)
    made = model(nodes, [value("x", SHAPE)], [value("y", (5, 5))], w=w)
    Path("small.onnx").write_bytes(made.SerializeToString())
    said = liftpy("plan", "small.onnx", "-o", "small.plan")
    assert said.code == 0, said.err
    assert said.err.count("the host computes 1 node by ONNX Runtime") == 1
    assert "det1 (Det): it has no program" in said.err
    (row,) = [line for line in said.out.splitlines() if line.startswith("det1")]
    assert row.rstrip().endswith("on the host")
    x = np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)
    np.save("x.npy", x)
    said = liftpy(
        "run", "small.plan", "--input", "x=x.npy", "--output", "y.npy", "--check", "--profile"
    )
    assert said.code == 0, said.err
    assert "det1 (host)" in said.out
    np.testing.assert_allclose(np.load("y.npy"), x @ w * np.linalg.det(x @ w), rtol=1e-4)
    rows = liftpy("run", "small.plan", "--json").json["operations"]
    assert {row["operation"]: row["on_host"] for row in rows} == {
        "mul1": False, "det1": True, "scale1": False,
    }  # fmt: skip
    assert liftpy("export", "small.plan", "-o", "bundle").code == 1


def test_one_command_explores_plans_checks_and_runs_a_model(liftpy, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    x = np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)
    np.save("x.npy", x)
    files = ("--input", "x=x.npy", "--output", "y.npz", "--plan", "small.plan", "--db", "found")
    said = liftpy("run", file, "--explore", "2", *files, "--check", "--profile")
    assert said.code == 0, said.err
    assert [*Path("found").glob("*.db")]
    assert "of the predicted" in said.out
    assert "error" in said.out
    rows = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert {"mul1", "relu1", "add1"} <= rows.keys()
    net = lp.network(file)
    np.testing.assert_allclose(np.load("y.npz")["y"], net.evaluate([x])["y"], rtol=1e-5)
    again = liftpy("run", "small.plan", "--json").json
    planned = liftpy("run", file, "--db", "found", "--json").json["plan"]
    timed = again["plan"].pop("time_ns"), planned.pop("time_ns")  # as run, if 2 s did not suffice
    assert all(time > 0 for time in timed)
    assert again["plan"] == planned


def test_a_model_of_which_the_host_computes_all_nodes_has_nothing_to_explore(liftpy):
    made = model([node("Det", "x", "d")], [value("x", (5, 5))], [value("d", ())])
    Path("det.onnx").write_bytes(made.SerializeToString())
    said = liftpy("run", "det.onnx", "--explore", "2", "--db", "found", "--check")
    assert said.code == 0, said.err
    assert "output  d [], error" in said.out


def test_a_model_runs_as_first_candidates_and_says_how_to_find_faster_ones(liftpy, file):
    said = liftpy("run", file)
    assert said.code == 0, said.err
    assert "--explore SECONDS" in said.err
    assert "output  y [5, 3]" in said.out


def test_options_of_models_and_of_programs_are_told_apart(liftpy, file):
    for options in (["--set", "v=4"], ["--remeasure"], ["--max-error", "1"]):
        said = liftpy("run", file, *options)
        assert said.code == 2
        assert "it does not apply to a whole network" in said.err
    said = liftpy("run", "tiny.lift", "--explore", "3")
    assert said.code == 2
    assert "it belongs to a whole network" in said.err
    said = liftpy("run", file, "--input", "q=q.npy")
    assert said.code == 1
    np.save("q.npy", np.zeros(3, np.float32))
    assert "has no input q; it takes: x" in liftpy("run", file, "--input", "q=q.npy").err


def of_strings():
    """A model that compares strings, and adds numbers to the truth values."""
    nodes = [node("Equal", "s t", "e", "same"), node("Cast", "e", "f", "c", to=1)]
    nodes.append(node("Add", "f x", "y", "sum"))
    given = [value(name, [3], TensorProto.STRING) for name in "st"] + [value("x", [3])]
    made = model(nodes, given, [value("y", [3])])
    Path("strings.onnx").write_bytes(made.SerializeToString())


def test_a_model_runs_on_given_strings(liftpy):
    of_strings()
    np.save("s.npy", np.array(["a", "b", "c"]))
    np.save("t.npy", np.array(["a", "x", "c"]))
    np.save("x.npy", np.ones(3, np.float32))
    given = [part for n in "stx" for part in ("--input", f"{n}={n}.npy")]
    said = liftpy("run", "strings.onnx", *given, "--check", "--plan", "s.plan", "--output", "y.npy")
    assert said.code == 0, said.err
    np.testing.assert_array_equal(np.load("y.npy"), [2, 1, 2])
    assert liftpy("run", "s.plan", *given, "--check").code == 0
    assert liftpy("plan", "strings.onnx").code == 0  # without times, as there are no strings


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "needs arrays for s, t"),
        (["--input", "s=n.npy", "--input", "t=n.npy", "--input", "x=n.npy"], "x needs float32"),
        (["--output", "missing/y.npz"], "there is no folder missing"),
        (["--plan", "missing/y.plan"], "there is no folder missing"),
        (["--output", "y.npy"], "y.npy cannot hold 3 outputs"),
    ],
)
def test_a_model_is_not_explored_for_a_run_that_would_be_refused(liftpy, file, options, why):
    of_strings()
    np.save("n.npy", np.zeros(3))
    name = "strings.onnx" if not options or "--input" in options else file
    said = liftpy("run", name, "--explore", "100", "--db", "found", *options)
    assert said.code == 1
    assert why in said.err
    assert not Path("found").exists()


def test_a_model_without_a_program_to_explore_runs(liftpy):
    made = model([node("Det", "x", "y", "det1")], [value("x", [3, 3])], [value("y", [])])
    Path("det.onnx").write_bytes(made.SerializeToString())
    said = liftpy("run", "det.onnx", "--explore", "3", "--db", "found")
    assert said.code == 0, said.err
    assert "planned without campaigns" in said.err
    assert "output  y []" in said.out

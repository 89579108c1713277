"""The command line, in this process; where the environment decides, in one of its own.

Messages that a user reads are golden files: look at them when they change.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liftpy as lp
from liftpy.cli.points import may_be_absent
from liftpy.cli.showing import ShownStage
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.seals import seal
from liftpy.explore.exploring import explore
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.space.candidate import program_text
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.primitives import PRIMITIVES
from liftpy.semantics.evaluate import evaluate
from tests.cli.said import PROGRAM, Said

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "devices",
    "workloads",
    "show",
    "rules",
    "primitives",
    "prove",
    "derive",
    "gradient",
    "network",
    "winograd",
    "space",
    "explain",
    "choose",
    "compile",
    "run",
    "explore",
    "pareto",
    "candidates",
    "report",
    "replay",
]


def in_a_process(*arguments, cwd, **environment):
    """What a command says in a process of its own."""
    return started("-m", "liftpy", *arguments, cwd=cwd, environment=environment)


SEVERAL = """
import contextlib, io, json, sys
from liftpy.cli import main
said = []
for line in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
        except SystemExit as ended:
            said.append((ended.code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(said))
"""


def in_one_process(lines, cwd, **environment):
    """What each of several commands says, which run one after another in a process of their own."""
    whole = started("-c", SEVERAL, json.dumps(lines), cwd=cwd, environment=environment)
    return [Said(*each) for each in whole.json]


def started(*arguments, cwd, environment):
    """What Python says, started with these arguments."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Said(process.returncode, process.stdout, process.stderr)


# --- programs and their stages --------------------------------------------------------------------


def test_help_is_everywhere(liftpy):
    said = liftpy("--help")
    assert said.code == 0
    for command in COMMANDS:
        assert command in said.out
        assert liftpy(command, "--help").code == 0


def test_without_arguments_it_says_what_there_is_and_how_to_start(liftpy):
    said = liftpy()
    assert said.code == 2
    for word in (*COMMANDS, "First steps", "liftpy explore vgg16/7"):
        assert word in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "help_"),
    [
        (["explor"], "No such command 'explor'. Did you mean 'explore', 'export', 'report'?"),
        (["explore"], "Missing argument 'PROGRAM'. A .lift file, file.py:name, or a built-in"),
        (["explain"], "Missing argument 'PROGRAM'. A .lift file, file.py:name, or a built-in"),
        (["pareto"], "Missing argument 'FILE'. A campaign database."),
        (["replay", "a.db"], "Missing argument 'CANDIDATE'. The id of a candidate"),
        (["explore", "tiny.lift", "--sampels", "3"], "--samples"),
    ],
)
def test_a_misspelt_or_incomplete_command_is_told_what_is_meant(liftpy, arguments, help_):
    said = liftpy(*arguments)
    assert said.code == 2
    assert help_ in said.err


def test_a_program_is_a_file_a_name_in_a_file_or_a_workload(liftpy):
    Path("mine.py").write_text(
        "from liftpy.language.text.program import parse\n"
        f"tiny = parse({program_text(PROGRAM)!r})\nnumber = 3\n"
    )
    for name in ("tiny.lift", "mine.py:tiny"):
        said = liftpy("show", name)
        assert said.code == 0
        assert parse(said.out) == PROGRAM
    assert liftpy("show", "vgg16/7").out.startswith("def vgg16_7(")
    said = liftpy("show", "mine.py:number")
    assert said.code == 1
    assert said.err == "error: number in mine.py is of type int; its programs are: tiny\n"


def test_an_error_in_the_users_file_is_the_users(tmp_path):
    (tmp_path / "broken.py").write_text("numbers = [1, 2]\nthird = numbers[2]\n")
    said = in_a_process("show", "broken.py:third", cwd=tmp_path)
    assert said.code == 1
    assert said.err.endswith("error: broken.py raised IndexError: list index out of range\n")
    assert said.err.count("  File ") == 1, "lines of liftpy are not the user's"


@pytest.mark.parametrize("stage", ShownStage)
def test_every_stage_can_be_shown(liftpy, stage):
    choice = ("--set", "family=direct", "--set", "pad=copy", "--set", "kappa=2")
    said = liftpy("show", "tiny.lift", "--stage", stage, *choice)
    assert said.code == 0, said.err
    expected = {
        "source": "slide(3, 1)",
        "types": "pad(1, 1, 0.0) : [18][7][3]f32",
        "lowered": "mapGlb",
        "constraints": "kappa divides 4",
        "memory": "peak",
        "views": "store",
        "loops": "# nest\nkernel k0_",
        "bounds": "no element of a buffer is stored by two work-items",
        "code": "__kernel",
    }
    assert expected[stage] in said.out


def test_workloads_are_listed(liftpy):
    names = [w["name"] for w in liftpy("workloads", "--json").json]
    assert "vgg16/7" in names
    assert "vgg16/7" in liftpy("workloads").out


def test_rules_have_law_conditions_and_verdict(liftpy):
    (rule,) = [r for r in liftpy("rules", "--json").json if r["name"] == "split_join"]
    assert rule.keys() == {"name", "family", "law", "where", "assuming", "verdict", "seconds"}
    assert rule["where"] == ["m divides n"]
    assert "split(m)" in rule["law"]
    assert liftpy("rules", "--family", "fusion").out.count("fusion") > 2


def test_primitives_have_law_conditions_and_words(liftpy):
    said = liftpy("primitives", "take", "padClamp").out
    assert "take(count) : [a]n -> [a]count" in said
    assert "- text: `xs |> padClamp(left, right)`" in said
    assert "- embedded: `xs >> pad_clamp(left, right)`" in said
    assert "- conditions: `1 <= count`; `count <= n`" in said
    listed = liftpy("primitives", "--json").json
    assert {p["name"] for p in listed} == set(PRIMITIVES)
    refused = liftpy("primitives", "tak")
    assert refused.code == 1
    assert "no word is named 'tak'; did you mean take" in refused.err


def test_prove_proves(liftpy):
    said = liftpy("prove", "slide", "map_fusion", "--json")
    assert [(r["name"], r["kind"], r["verdict"]) for r in said.json] == [
        ("slide", "primitive", "Proved"),
        ("map_fusion", "rule", "Proved"),
    ]
    assert liftpy("prove", "map_fussion").err.startswith(
        "error: no rule or primitive is named 'map_fussion'"
    )


def test_a_derivation_is_listed_step_by_step(liftpy):
    choice = ("--strategy", "plain", "--set", "pad=fused", "--set", "map=glb2.glb1.glb0")
    (derivation,) = liftpy("derive", "tiny.lift", *choice, "--steps", "--json").json
    assert derivation["family"] == "plain"
    assert derivation["steps"][0].keys() == {"rule", "path", "sizes", "hints", "after"}
    assert derivation["steps"][-1]["after"] == derivation["result"]
    text = liftpy("derive", "tiny.lift", *choice).out
    assert all(step["rule"] in text for step in derivation["steps"])
    assert "available: family: plain, " in liftpy("derive", "tiny.lift", "--set", "pad=x").err
    assert "\nplain: 53 more, by pad, map (--set pad=...)\n" in liftpy("derive", "tiny.lift").out


# --- spaces ---------------------------------------------------------------------------------------


def test_a_space_has_parameters_constraints_and_a_count(liftpy):
    data = liftpy("space", "tiny.lift", "--json").json
    assert data["count"] == sum(data["skeletons"].values()) > 10
    assert {"family", "pad", "kappa"} <= {p["name"] for p in data["parameters"]}
    assert all(c["asked_by"] for c in data["constraints"])
    plain = ("--set", "family=plain", "--set", "pad=fused", "--set", "map=glb2.glb1.glb0")
    narrowed = liftpy("space", "tiny.lift", *plain, "--json").json
    assert narrowed["count"] == 1
    assert "valid points" in liftpy("space", "tiny.lift").out


def test_a_space_says_what_is_reached_and_how_long_it_took(liftpy):
    data = liftpy("space", "tiny.lift", "--json").json
    assert data["reached"]["kappa"] == [1, 2, 4]
    assert data["seconds"] > 0
    text = liftpy("space", "tiny.lift").out
    assert re.search(r"^kappa +1 \.\. 4: 1, 2, 4\b", text, re.MULTILINE)  # `valid` may be folded
    assert re.search(r"valid points: [\d,]+ \(derived and counted in \d+\.\d\d s\)", text)


def test_a_space_says_which_choices_may_be_absent(liftpy):
    """All candidates of `direct` have a level, and only some read images or packed inputs."""
    space = lp.space(lp.workload("matmul/64x64x64"), "profile:mali-g72")
    absent = may_be_absent(space)
    assert {"images", "pack"} <= absent
    assert absent.isdisjoint({"family", "level", "map", "pad"})
    text = liftpy("space", "matmul/64x64x64", "--device", "profile:mali-g72").out
    assert text.count("(absent)") == len(absent)


def test_a_space_without_a_point_says_why(liftpy):
    said = liftpy("space", "tiny.lift", "--set", "family=direct", "--memory-limit", "1").out
    assert "valid points: 0" in said
    assert "The least possible memory limit is" in said


def test_space_without_a_count_has_the_ranges_that_the_count_has(liftpy):
    narrow = ("space", "tiny.lift", "--set", "family=direct", "--set", "pad=fused")
    counted = liftpy(*narrow, "--json").json
    data = liftpy(*narrow, "--uncounted", "--json").json
    assert data["count"] is None
    for name, values in counted["reached"].items():
        left = data["tightened"][name]
        assert (left["low"], left["high"], left["unknown"]) == (min(values), max(values), 0)
    said = liftpy(*narrow, "--uncounted").out
    assert "valid points: not counted" in said
    assert "1 .. 16: 1 .. 4" in said


def test_a_condition_says_of_how_many_skeletons_it_says_nothing(liftpy):
    for command in ("space", "explain", "compile", "run", "derive"):
        said = liftpy(command, "tiny.lift", "--where", "kappa >= 2")
        assert said.code == 0, said.err
        note = re.search(r"note: 2 <= kappa does not restrict (\d+) of (\d+) skeletons", said.err)
        assert 0 < int(note[1]) < int(note[2])
    blocked = liftpy("run", "tiny.lift", "--set", "family=direct", "--where", "kappa > 2", "--json")
    assert blocked.json["assignment"]["kappa"] == 4
    listed = liftpy("derive", "tiny.lift", "--where", "kappa > 2", "--json").json
    assert {s["family"] for s in listed} >= {"plain", "direct"}


def test_a_stage_that_is_none_is_refused_with_those_there_are(liftpy):
    said = liftpy("show", "tiny.lift", "--stage", "cod")
    assert said.code == 2
    assert "no stage is named 'cod'; did you mean code? Choose one of source, types," in said.err


def test_space_says_who_asks_and_who_does_not(liftpy):
    ask = ("space", "tiny.lift", "--set", "family=direct", "--audit")
    audit = {(c["kind"], c["name"]): c for c in liftpy(*ask, "--json").json["census"]}
    assert audit["primitive", "split"]["conditions"] > 0
    assert "any number of work-items" in audit["lowered form", "mapGlb"]["silent"]
    assert audit["device", "private_memory"]["silent"] is None
    assert "any number of work-items" in " ".join(liftpy(*ask).out.split())


def test_a_space_says_which_conditions_follow_from_others(liftpy):
    narrow = ("space", "tiny.lift", "--set", "family=direct")
    assert "implied" not in liftpy(*narrow, "--json").json
    implied = liftpy(*narrow, "--implied", "--json").json["implied"]
    assert "1 <= 4/^kappa" in implied
    assert "kappa divides 4" not in implied
    assert "follows in" in liftpy(*narrow, "--implied").out


@pytest.mark.parametrize("sampler", ["uniform", "incremental"])
def test_draws_are_those_of_a_campaign_and_go_on_where_they_ended(liftpy, sampler):
    draw = ("space", "tiny.lift", "--seed", 3, "--sampler", sampler, "--json", "--draw")
    whole = liftpy(*draw, 9).json
    assert [d["ordinal"] for d in whole] == list(range(9))
    assert liftpy(*draw, 5, "--start", 4).json == whole[4:]
    drawn = replace(space_of(PROGRAM), sampler=sampler).sample(9, 3)
    assert [c.key for c in drawn] == [d["id"] for d in whole]
    text = liftpy(*draw[:-2], "--draw", 2)
    assert whole[1]["id"] in text.out
    assert "next: --start 2" in text.err


def test_explain_says_where_in_the_text_the_rules_work(liftpy):
    bad = liftpy("explain", "tiny.lift", "--set", "kappa=3", "--set", "family=direct")
    assert bad.out.count("rule split_join (step 8): on `map(kernelbias => ") == 1
    line = int(re.search(r"at line (\d+), column", bad.out)[1])
    assert "map(kernelbias" in Path("tiny.lift").read_text().splitlines()[line - 1]
    built_in = liftpy("explain", "dot/64", "--set", "strided=no", "--set", "chunk=5")
    assert "of its text (`liftpy show`)." in built_in.out


def test_explain_says_valid_or_why_not(liftpy):
    good = liftpy("explain", "tiny.lift", "--set", "kappa=2", "--set", "pad=copy")
    assert good.code == 0
    assert "valid candidates in direct(pad=copy" in good.out
    bad = liftpy("explain", "tiny.lift", "--set", "kappa=3", "--set", "family=direct")
    assert bad.code == 1
    assert "kappa divides 4" in bad.out
    assert "would work" in bad.out


def test_compile_writes_kernels_and_a_manifest(liftpy):
    said = liftpy("compile", "tiny.lift", "--set", "family=plain", "-o", "built")
    assert said.code == 0, said.err
    manifest = json.loads(Path("built/manifest.json").read_text())
    assert manifest["result"] == "output"
    assert "__kernel" in Path("built/kernels.cl").read_text()


# --- refusals: golden messages --------------------------------------------------------------------

FILES = {
    "malformed.lift": "def sums(x: [7][5]f32 =\n  x |> map(reduce(add, 0))\n",
    "misspelt.lift": "def sums(x: [7][5]f32) =\n  x |> map(reduce(add, 0)) |> slid(3, 1)\n",
    "typed.lift": "def sums(x: [7][5]f32) =\n  x |> map(split(2))\n",
    "sums.lift": "def sums(x: [7][5]f32) = x |> map(reduce(add, 0))\n",
}

REFUSALS = {
    "an unknown layer": ["show", "vgg16/8"],
    "an unknown workload": ["show", "vgg18/7"],
    "a missing file": ["show", "none.lift"],
    "a malformed program": ["show", "malformed.lift"],
    "a misspelt program": ["show", "misspelt.lift"],
    "a badly typed program": ["show", "typed.lift"],
    "an unknown parameter": ["run", "tiny.lift", "--set", "kapa=3"],
    "an unknown word": ["show", "tiny.lift", "--stage", "code", "--set", "family=fast"],
    "a wrong shape": ["run", "tiny.lift", "--input", "x=flat.npy"],
    "a wrong type": ["run", "tiny.lift", "--input", "x=doubles.npy"],
    "an unknown input": ["run", "tiny.lift", "--input", "y=flat.npy"],
    "an input that is no array": ["run", "tiny.lift", "--input", "x=tiny.lift"],
    "an input that is missing": ["run", "tiny.lift", "--input", "x=none.npy"],
    "no database": ["pareto", "none.db"],
    "a file that is no database": ["candidates", "tiny.lift"],
    "another programs database": ["explore", "sums.lift", "--db", "tiny.db", "-n", "1"],
    "another versions database": ["explore", "tiny.lift", "--db", "old.db", "-n", "1"],
    "no stored candidate": ["replay", "tiny.db", "ffff"],
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """A campaign of one candidate, and one that another version made."""
    folder = tmp_path_factory.mktemp("databases")
    for file in ("tiny.db", "old.db"):
        explore(PROGRAM, 1, db=folder / file)
    with closing(sqlite3.connect(folder / "old.db")) as old, old:
        old.execute("UPDATE campaign SET version = '0.0.9'")
        seal(old)
    old.close()
    return folder


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_why_and_what_would_do(liftpy, databases, golden, name):
    for file, text in FILES.items():
        Path(file).write_text(text)
    for file in databases.iterdir():
        shutil.copy(file, file.name)
    np.save("flat.npy", np.zeros(126, np.float32))
    np.save("doubles.npy", np.zeros((16, 7, 3), np.float64))
    said = liftpy(*REFUSALS[name])
    assert said.code == 1, said.err
    assert "Traceback" not in said.err
    assert said.out == ""
    golden(said.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "tiny.lift", "--set", "kappa"], "'kappa' is not NAME=VALUE"),
        (["compile", "tiny.lift", "--set", "v=1", "--set", "v=2"], "v is given twice: 1 and 2"),
        (["run", "tiny.lift", "--input", "x"], "'x' is not NAME=FILE.npy"),
        (["show", "tiny.lift", "--stage", "asm"], "no stage is named 'asm'"),
        (["explore", "tiny.lift", "--samples", "0"], "--samples"),
        (["tune", "tiny.lift"], "No such command 'tune'"),
        (["show"], "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(liftpy, arguments, message):
    said = liftpy(*arguments)
    assert said.code == 2
    assert message in said.err


@pytest.mark.parametrize(
    ("arguments", "what", "near", "there"),
    [
        (["show", "tiny.lift", "--stage", "coed"], "stage", "code", "source, types,"),
        (["pareto", "a.db", "--format", "cvs"], "format", "csv", "table, json, csv"),
        (["pareto", "a.db", "--axis", "peek"], "figure", "peak", "peak, allocated,"),
        (["report", "a.db", "--axis", "peek"], "figure", "peak", "peak, allocated,"),
        (["explore", "tiny.lift", "--search", "guide"], "search", "guided", "random, local,"),
        (["explore", "tiny.lift", "--sampler", "uniforme"], "sampler", "uniform", "uniform, incr"),
        (["space", "tiny.lift", "--sampler", "uniforme"], "sampler", "uniform", "uniform, incr"),
        (["explore", "tiny.lift", "--family", "driect"], "family", "direct", "plain, "),
        (["derive", "tiny.lift", "--strategy", "driect"], "family", "direct", "plain, "),
        (["rules", "--family", "fusoin"], "family", "fusion", "fusion, simplify,"),
    ],
)
def test_a_word_that_an_option_does_not_take_is_a_usage_error(liftpy, arguments, what, near, there):
    """Whatever the option: exit code 2, what was refused, what is near, what there is."""
    said = liftpy(*arguments)
    text = " ".join(said.err.split())
    assert said.code == 2
    assert f"Invalid value for '{arguments[-2]}': no {what} is named '{arguments[-1]}'" in text
    assert f"did you mean {near}? Choose one of {there}" in text


def test_a_campaign_without_a_right_candidate_has_an_exit_code_of_its_own(liftpy):
    said = liftpy("explore", "tiny.lift", "-n", "1", "--tolerance", "1e-30")
    assert said.code == 3
    assert said.err.startswith(
        "error: no candidate of tiny was measured; 1 candidate tried:\n  1 x wrong: "
    )


def test_an_impossible_size_is_explained(liftpy):
    said = liftpy("run", "tiny.lift", "--set", "kappa=3", "--set", "family=direct")
    assert said.code == 1
    assert said.err.startswith("error: kappa=3, family=direct: no valid candidate\n")
    assert "kappa divides 4" in said.err


def test_an_impossible_combination_lists_what_there_is(liftpy):
    said = liftpy("compile", "tiny.lift", "--set", "family=plain", "--set", "kappa=2")
    assert said.code == 1
    assert said.err.startswith("error: no skeleton of tiny has family=plain, kappa=2 together;")
    assert "\n  plain: pad, map\n  direct: pad, level, kappa, sigma, v\n" in said.err


def test_without_a_device_the_message_says_how_to_get_one(tmp_path):
    program = "matmul/4x6x8"
    lines = [["devices"], ["run", program], ["explore", program], ["compile", program]]
    *refused, compiled = in_one_process(lines, cwd=tmp_path, OCL_ICD_VENDORS=str(tmp_path))
    for said in refused:
        assert said.code == 1
        assert said.err.startswith("error: no OpenCL device was found.")
        assert "pip install 'liftpy[cpu]'" in said.err
    assert compiled.code == 0
    assert "__kernel" in compiled.out
    assert list(tmp_path.iterdir()) == []


def test_a_defect_is_named_as_one(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import liftpy.cli.showing as language\n"
        "def broken(program):\n    raise KeyError('gid0')\n"
        "language.program_text = broken\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    process = subprocess.run(
        [sys.executable, "-m", "liftpy", "show", "vgg16/7"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 70
    assert "KeyError: 'gid0'" in process.stderr
    assert "this is a defect of liftpy" in process.stderr


# --- campaigns ------------------------------------------------------------------------------------


def test_a_candidate_runs_on_the_users_arrays(liftpy):
    arrays = {name: array[..., ::-1].copy() for name, array in inputs(PROGRAM).items()}
    given = []
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
        given += ["--input", f"{name}={name}.npy"]
    said = liftpy("run", "tiny.lift", *given, "--output", "y.npy", "--json")
    assert said.json["error"] < 1e-6
    np.testing.assert_allclose(np.load("y.npy"), evaluate(PROGRAM, *arrays.values()), rtol=1e-4)


@pytest.mark.parametrize(("value", "why"), [("1e-6", "name one with --db"), ("nan", "nan is not")])
def test_a_largest_error_is_a_number_for_the_choice_in_a_campaign(liftpy, value, why):
    said = liftpy("run", "tiny.lift", "--max-error", value)
    assert said.code == 2
    assert why in said.err


def test_a_campaign_is_explored_read_plotted_and_replayed(liftpy):  # noqa: PLR0915  in order
    command = ["explore", "tiny.lift", "-n", "4", "--family", "plain", "--family", "direct"]
    said = liftpy(*command)
    assert said.code == 0, said.err
    assert "4 of 4 candidates: 4 measured" in said.out
    assert "again: liftpy pareto liftpy.db" in said.out
    assert said.err == "", "no progress bar in a pipe"
    assert liftpy(*command).out == said.out, "nothing is measured anew"

    data = liftpy("pareto", "liftpy.db", "--json").json
    assert data.keys() == {"program", "device", "devices", "front", "rule", "hypervolume"}
    (volume,) = data["hypervolume"].values()
    assert len(volume["after_each"]) == 4
    row = data["front"][0]
    figures = {"peak", "allocated", "scratch", "local", "private", "error", "rms"}
    rest = {"id", "device", "device_name", "time_ns", "interval_ns", "disturbed"}
    rest |= {"assignment", "derivation"}
    assert row.keys() == rest | figures
    assert liftpy("pareto", "liftpy.db", "--format", "json").json == data
    assert row["id"] in liftpy("pareto", "liftpy.db").out
    head, first, *_ = liftpy("pareto", "liftpy.db", "--format", "csv").out.splitlines()
    assert head.startswith(
        "id,device,device_name,time_ns,low_ns,high_ns,peak,allocated,scratch,local,private,"
    )
    low, high = row["interval_ns"]
    assert low <= row["time_ns"] <= high
    times = f"{row['time_ns']},{low},{high}"
    on = f"{row['device']},{row['device_name']}"
    assert first.startswith(f"{row['id']},{on},{times},{row['peak']}")

    by_error = liftpy("pareto", "liftpy.db", "--axis", "error", "--json").json
    assert "no more error" in by_error["rule"]
    least = min(one["error"] for one in by_error["front"])
    within = liftpy("pareto", "liftpy.db", "--max-error", repr(least), "--json").json
    assert {one["error"] for one in within["front"]} == {least}

    listed = liftpy("candidates", "liftpy.db", "--json").json
    assert len(listed) == 4
    assert listed[0].keys() >= {"id", "outcome", "reason", "assignment", "time_ns"}
    assert "4 measured" in liftpy("candidates", "liftpy.db").out

    assert liftpy("replay", "liftpy.db", row["id"], "--json").json["identical"]
    assert "byte for byte" in liftpy("replay", "liftpy.db", row["id"]).out
    best = liftpy("run", "tiny.lift", "--db", "liftpy.db", "--json").json
    assert best["id"] == row["id"]
    least = min(r["peak"] for r in data["front"])
    within = liftpy("run", "tiny.lift", "--db", "liftpy.db", "--memory-limit", least, "--json").json
    assert within["peak"] <= least

    assert liftpy("pareto", "liftpy.db", "--plot", "front.png").code == 0
    assert liftpy("pareto", "liftpy.db", "--axis", "error", "--plot", "error.png").code == 0
    assert liftpy("report", "liftpy.db", "--axis", "error", "-o", "error.html").code == 0
    page = Path("error.html").read_text(encoding="utf-8")
    assert "<h2>Time and error</h2>" in page
    assert 'data-name="rms"' in page
    assert " rms " in liftpy("pareto", "liftpy.db", "--axis", "error").out
    assert " rms " not in liftpy("pareto", "liftpy.db").out
    assert not re.search(r"e-\d+ B", page), "no error is printed in bytes"
    assert Path("front.png").read_bytes().startswith(b"\x89PNG")


def test_a_candidate_that_does_not_replay_is_said(liftpy):
    assert liftpy("explore", "tiny.lift", "-n", "1").code == 0
    with closing(sqlite3.connect("liftpy.db")) as tampered, tampered:
        tampered.create_function("digest", 1, digest)
        tampered.execute("UPDATE build SET source = replace(source, '+', '-')")
        tampered.execute("UPDATE build SET source_sha = digest(source)")
        seal(tampered)
        (key,) = tampered.execute("SELECT key FROM candidate").fetchone()
    tampered.close()
    said = liftpy("replay", "liftpy.db", key)
    assert said.code == 1
    assert "--- stored" in said.out
    assert "gives other kernels than the stored ones" in said.err


def test_the_plot_needs_an_extra_and_says_so(liftpy, monkeypatch):
    assert liftpy("explore", "tiny.lift", "-n", "1").code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "liftpy.explore.report.plot", raising=False)
    for name in [n for n in sys.modules if n.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    said = liftpy("pareto", "liftpy.db", "--plot", "front.png")
    assert said.code == 1
    assert said.err == (
        "error: a plot needs matplotlib, which is not installed: pip install 'liftpy[plot]'\n"
    )


PAIRS = "def pairs(ps: [6](f32, i32)) = ps |> map((x, k) => (k * 2, x - f32(k)))\n"


def test_tuples_go_in_and_come_out_by_component(liftpy):
    Path("pairs.lift").write_text(PAIRS, encoding="utf-8")
    (given,) = inputs(parse(PAIRS), seed=7).values()
    for k, part in enumerate(given):
        np.save(f"in{k}.npy", part)
    chosen = ["--input", "ps.0=in0.npy", "--input", "ps.1=in1.npy", "--output", "out.npy"]
    said = liftpy("run", "pairs.lift", *chosen, "--json")
    assert said.json["shape"] == [[6], [6]]
    for k, part in enumerate(evaluate(parse(PAIRS), given)):
        got = np.load(f"out.{k}.npy")
        assert got.dtype == part.dtype
        np.testing.assert_allclose(got, part, rtol=1e-6)
    manifest = liftpy("compile", "pairs.lift", "--json").json["manifest"]
    assert manifest["parameters"] == [["ps_0", "ps_1"]]
    assert manifest["result"] == ["output_0", "output_1"]


def test_a_component_that_is_not_there_is_refused_with_those_there_are(liftpy):
    Path("pairs.lift").write_text(PAIRS, encoding="utf-8")
    np.save("in.npy", np.zeros(6, np.float32))
    said = liftpy("run", "pairs.lift", "--input", "ps=in.npy")
    assert said.code == 1
    assert "has no parameter 'ps'; it takes: ps.0, ps.1" in said.err


def test_tuples_are_explored(liftpy):
    Path("pairs.lift").write_text(PAIRS, encoding="utf-8")
    said = liftpy("explore", "pairs.lift", "--samples", "1", "--db", "pairs.db", "--json")
    assert said.code == 0, said.err
    (row,) = liftpy("candidates", "pairs.db", "--json").json
    assert row["outcome"] == "measured"

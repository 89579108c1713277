"""Profiles of devices, the user's conditions and memory limits, in the commands that take them."""

from dataclasses import replace
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.constraints.profile import FOLDER, LIMITS, profile, read
from liftpy.constraints.profile_text import reported, text_of
from liftpy.errors import SyntaxRefused
from liftpy.explore.space.candidate import program_text
from tests.cli.said import PROGRAM

DIRECT = ["tiny.lift", "--set", "family=direct"]
CONDITION = ["--where", "kappa*sigma <= 6"]


def sizes(settings):
    return settings["kappa"] * settings["sigma"]


def test_profiles_are_listed_with_the_sources_of_their_limits(liftpy):
    said = liftpy("devices", "--profiles")
    assert said.code == 0
    assert "profile:mali-g72" in said.out
    assert "384 [384, 384, 384]" in said.out
    assert "assumed values of mali-g72: vector_width, extensions" in said.out
    listed = liftpy("devices", "--profiles", "--json").json
    assert [p["profile"] for p in listed] == sorted(p.stem for p in FOLDER.glob("*.toml"))
    assert all(p["sources"].keys() <= p.keys() for p in listed)


@pytest.mark.parametrize(
    "command",
    [
        ["space", *DIRECT, "--json"],
        ["explain", *DIRECT],
        ["compile", *DIRECT],
        ["show", *DIRECT, "--stage", "code"],
        ["show", *DIRECT, "--stage", "constraints"],
        ["derive", *DIRECT],
    ],
)
def test_a_profile_stands_for_a_device(liftpy, command):
    (Path.cwd() / "tight.toml").write_text(
        (FOLDER / "mali-g72.toml").read_text().replace("value = 2560", "value = 8")
    )
    usual = liftpy(*command, "--device", "profile:mali-g72")
    tight = liftpy(*command, "--device", "profile:./tight.toml")
    assert usual.code == tight.code == 0, usual.err + tight.err
    assert (usual.out == tight.out) is (command[0] == "derive")


def test_derive_leaves_out_what_has_no_candidate_on_the_device(liftpy):
    """A tile of 12 floats does not fit into 32 bytes of local memory; two of one do."""
    (Path.cwd() / "small.toml").write_text(
        (FOLDER / "mali-g72.toml").read_text().replace("value = 32768", "value = 32")
    )
    families = {d["family"] for d in liftpy("derive", "tiny.lift", "--json").json}
    on_it = liftpy("derive", "tiny.lift", "--json", "--device", "profile:./small.toml").json
    assert families - {d["family"] for d in on_it} == {"local"}


@pytest.mark.parametrize("command", ["explore", "run"])
def test_nothing_runs_on_a_profile(liftpy, command):
    said = liftpy(command, "tiny.lift", "--device", "profile:adreno-650")
    assert said.code == 1
    assert said.err.startswith("error: nothing can run on profile:adreno-650: ")
    assert not Path("liftpy.db").exists()


def test_a_space_has_the_users_conditions(liftpy):
    whole = liftpy("space", *DIRECT, "--json").json
    space = liftpy("space", *DIRECT, *CONDITION, "--set", "v=2,4", "--json").json
    asked = {c["asked_by"]: c["text"] for c in space["constraints"]}
    assert asked['user --where "kappa*sigma <= 6"'] == "kappa*sigma <= 6"
    assert asked["user --set v=2,4"] == "v is one of 2, 4"
    assert 0 < space["count"] < whole["count"]
    said = liftpy("space", *DIRECT, *CONDITION)
    assert 'user --where "kappa*sigma <= 6"' in said.out


STAGES = """def two(xs: [6][8]f32, ys: [6]f32) =
  let score = xs |> map(reduce(add, 0)) in zip(score, ys) |> map((a, b) => a * b)
"""


def test_the_sizes_of_a_stage_are_named_as_they_are_shown(liftpy):
    Path("two.lift").write_text(STAGES)
    whole = liftpy("space", "two.lift", "--json").json["skeletons"]
    words = ["--where", "score.tile0 <= 2", "--set", "result.family=plain"]
    asked = liftpy("space", "two.lift", *words, "--json").json["skeletons"]
    assert 0 < asked["stages(score=stored)"] < whole["stages(score=stored)"]
    chosen = liftpy("compile", "two.lift", *words, "--set", "score.family=tiled", "--json").json
    assert chosen["assignment"]["score.tile0"] <= 2


def test_a_lowered_program_of_stages_is_read_back(liftpy):
    Path("two.lift").write_text(STAGES)
    words = ["--set", "score=stored", "--set", "score.family=tiled"]
    shown = liftpy("show", "two.lift", "--stage", "lowered", *words).out
    Path("lowered.lift").write_text(shown)  # its first line is a comment
    again = liftpy("show", "lowered.lift").out
    assert shown.partition("\n")[2] == again


def test_families_without_the_sizes_are_not_bound(liftpy):
    counts = liftpy("space", "tiny.lift", "--json").json["skeletons"]
    bound = liftpy("space", "tiny.lift", *CONDITION, "--json").json["skeletons"]
    assert counts.keys() == bound.keys()
    changed = {key.partition("(")[0] for key in counts if counts[key] != bound[key]}
    assert changed == {"direct", "staged"}
    kept = liftpy("space", "tiny.lift", "--set", "kappa=2,4", "--json").json["skeletons"]
    assert {key.partition("(")[0] for key in kept} == {"direct", "staged"}


def test_listed_choices_keep_these_skeletons(liftpy):
    kept = liftpy("space", *DIRECT, "--set", "pad=copy,fused", "--json").json["skeletons"]
    assert {key.partition(",")[0] for key in kept} == {"direct(pad=copy", "direct(pad=fused"}


def test_conditions_hold_for_what_is_compiled(liftpy):
    for words in (CONDITION, ["--where", "kappa*sigma == 28"], ["--set", "sigma=1", *CONDITION]):
        chosen = liftpy("compile", *DIRECT, *words, "--json").json["assignment"]
        limit = sizes(chosen)
        assert limit == 28 if "== 28" in words[-1] else limit <= 6, chosen


def test_a_fixed_value_is_not_blamed_for_conditions_that_exclude_each_other(liftpy):
    words = ["--where", "kappa <= 2", "--where", "kappa >= 3"]
    said = liftpy("explain", "tiny.lift", "--set", "family=direct", "--set", "sigma=1", *words).out
    assert "There is no point for any sigma." in said
    assert "sigma = 1 is refused" not in said


def test_a_memory_limit_is_taken_everywhere(liftpy):
    whole = liftpy("space", *DIRECT, "--json").json["count"]
    assert 0 < liftpy("space", *DIRECT, "--memory-limit", "2900", "--json").json["count"] < whole
    made = liftpy("compile", *DIRECT, "--memory-limit", "2900", "--json").json
    assert made["manifest"]["memory"]["peak"] <= 2900
    said = liftpy("show", *DIRECT, "--stage", "constraints", "--memory-limit", "2900")
    assert "required by memory limit while kernel" in said.out
    said = liftpy("explain", *DIRECT, "--memory-limit", "100")
    assert said.code == 1
    assert "The least possible memory limit is 2464 bytes." in said.out


def test_explain_names_the_users_condition(liftpy, golden):
    said = liftpy("explain", *DIRECT, "--set", "kappa=4", "--set", "pad=copy", *CONDITION)
    assert said.code == 0
    words = ["--set", "kappa=4", "--set", "sigma=7", "--set", "pad=copy"]
    said = liftpy("explain", *DIRECT, *words, *CONDITION)
    assert said.code == 1
    golden(said.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tiny.lift", "--set", "v=1,2"], "v has 2 values; a candidate has one"),
        (["space", "tiny.lift", "--set", "v=1,"], "'v=1,' lists an empty value"),
        (["space", "tiny.lift", "--memory-limit", "0"], "--memory-limit"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(liftpy, arguments, message):
    said = liftpy(*arguments)
    assert said.code == 2
    assert message in said.err


# --- campaigns ------------------------------------------------------------------------------------


def test_a_campaign_remembers_its_conditions(liftpy):
    explore = ["explore", "tiny.lift", "--db", "a.db", "--family", "direct"]
    first = liftpy(*explore, *CONDITION, "--set", "level=wrg", "--samples", "2", "--json")
    assert first.code == 0, first.err
    same = ["--set", "level=wrg", "--where", "kappa * sigma<=6", "--samples", "3"]
    assert liftpy(*explore, *same).code == 0
    rows = liftpy("candidates", "a.db", "--json").json
    assert len(rows) == 3
    assert all(sizes(row["assignment"]) <= 6 for row in rows)
    assert {row["assignment"]["level"] for row in rows} == {"wrg"}
    for other in (["--samples", "3"], ["--where", "kappa*sigma <= 7", "--set", "level=wrg"]):
        said = liftpy(*explore, *other)
        assert said.code == 1
        assert "conditions: it has level is wrg, kappa*sigma <= 6, this has " in said.err
    said = liftpy(*explore, *CONDITION)
    assert said.err.count("this has kappa*sigma <= 6") == 1


SMALL = "size n: 1..64\n\ndef sums(x: [n]f32) =\n  x |> slide(5, 1) |> map(reduce(add, 0))\n"


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("tiny.lift", ["--memory-limit", "100"], "the least possible limit is 2464 bytes"),
        ("sums.lift", ["--size", "n=3"], "n: 5, 6, 7 would work"),
        ("three.lift", [], "size: 1, 2, 3 would work"),
        ("tiny.lift", ["--family", "direct", "--where", "kappa > 2 and kappa != 4"], "kappa"),
    ],
)
def test_an_infeasible_campaign_says_what_would_do_and_exits_with_3(liftpy, name, words, least):
    Path("sums.lift").write_text(SMALL)
    Path("three.lift").write_text(SMALL.partition("\n\n")[2].replace("[n]", "[3]"))
    said = liftpy("explore", name, *words)
    assert said.code == 3, said.err
    assert least in said.err
    assert "Traceback" not in said.err
    assert not Path("liftpy.db").exists()


def test_python_says_the_same():
    with pytest.raises(lp.LiftError, match="the least possible limit is 2464 bytes"):
        lp.explore(PROGRAM, 1, memory_limit=100)
    space = lp.space(PROGRAM, where=["kappa*sigma <= 6"], fixed={"family": "direct", "v": [2, 4]})
    drawn = [c.assignment for c in space.draws(0)]
    assert drawn
    assert len(drawn) == space.count()
    assert all(sizes(c) <= 6 and c["v"] in {2, 4} for c in drawn)
    assert program_text(space.program) == program_text(PROGRAM)


# --- the profile of an attached device ------------------------------------------------------------


def test_the_profile_of_a_device_has_its_limits(liftpy):
    attached = lp.find_device()
    assert liftpy("devices", "--profile-of", attached.name, "-o", "mine.toml").code == 0
    read = profile("./mine.toml")
    unknown = {"platform": "profile", "driver_version": "", "ordinal": 0, "profile": "./mine.toml"}
    assert read.device == replace(attached, **unknown)
    reported = f"reported by the driver {attached.driver_version} on "
    assert {k for k in LIMITS if not read.sources[k].startswith(reported)} == {"private_memory"}
    assert read.assumed == ["private_memory"]
    printed = liftpy("devices", "--profile-of", "0")
    assert printed.out == Path("mine.toml").read_text(encoding="utf-8")
    listed = liftpy("devices", "--profile-of", "0", "--json").json
    assert listed["cache_sizes"] == list(read.figures["cache_sizes"])
    assert listed["sources"] == dict(read.sources)
    assert liftpy("space", *DIRECT, "--device", "profile:./mine.toml").code == 0


def test_the_profile_of_a_profile_is_a_copy(liftpy):
    assert liftpy("devices", "--profile-of", "profile:intel-xe", "-o", "copy.toml").code == 0
    copy, original = profile("./copy.toml"), profile("intel-xe")
    assert copy.device == replace(original.device, profile="./copy.toml")
    assert (copy.figures, copy.sources) == (original.figures, original.sources)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--profile-of", "gtx"], 1, "no device matches 'gtx'"),
        (["--profile-of", "profile:mali-g27"], 1, "did you mean mali-g78"),
        (["--profile-of", "0", "-o", "mine.json"], 2, "name a file that ends with .toml"),
        (["--profile-of", "0", "-o", "none/mine.toml"], 1, "none/mine.toml cannot be written"),
        (["-o", "mine.toml"], 2, "add --profile-of DEVICE"),
    ],
)
def test_a_profile_that_cannot_be_made_is_refused(liftpy, words, code, message):
    said = liftpy("devices", *words)
    assert said.code == code
    assert message in " ".join(said.err.split())
    assert not list(Path.cwd().glob("mine*"))


def test_a_device_without_local_memory_is_no_profile():
    none = replace(lp.find_device("profile:mali-g72"), local_memory=0, profile="")
    with pytest.raises(SyntaxRefused, match="the value of `local_memory` cannot be 0"):
        text_of(reported(none, "2026-01-02", {}, {}))
    odd = replace(none, local_memory=1, name='a "board"\x7f \u2028 \\', driver_version="1\t2")
    assert read(text_of(reported(odd, "2026-01-02", {}, {})), "odd").device.name == odd.name

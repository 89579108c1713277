"""The program `board`: what it refuses, finds wrong, and goes on with after a crash."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from liftpy.boards.bundle import HOST, Bundle, write
from liftpy.boards.importing import import_results
from liftpy.boards.link import RUNNER
from liftpy.boards.results import read_results
from liftpy.boards.schema import DeviceFields, checked, table
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import ResultsRefused
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.measure.samples import REPEATS, SLOW_REPEATS
from liftpy.explore.report.wording import outcomes_text
from liftpy.explore.spaces import space_of
from liftpy.ir.types import INTEGER_DOTS, SUBGROUPS, VNNI
from liftpy.language.text.program import parse
from liftpy.opencl.clock import BY_HOST
from liftpy.opencl.session import BUILD_OPTIONS, NEWER, OLDER, with_standard
from liftpy.opencl.subgroups import HAS_SUBGROUPS
from liftpy.pipeline import compile_candidate
from tests.boards.ran import altered, bundled, exported, run, with_change
from tests.conftest import built


@pytest.fixture(scope="module")
def original(pocl, tmp_path_factory):
    """A bundle of three candidates that build fast."""
    folder = tmp_path_factory.mktemp("three") / "bundle"
    bundle = exported(parse("def thrice(x: [12]f32) = x |> map(x => x * 3)"), folder, draws=3)
    return folder, [candidate.key for candidate in bundle.candidates]


@pytest.fixture
def three(original, tmp_path):
    """A copy of the bundle, and its candidates."""
    folder, ids = original
    return shutil.copytree(folder, tmp_path / "bundle"), ids


def results(printed, tmp_path, **how):
    """What was printed, read back."""
    (tmp_path / "results.csv").write_text(printed.stdout)
    return read_results(tmp_path / "results.csv", **how)


def test_a_wrong_candidate_and_one_that_does_not_build_keep_no_other_from_being_tried(
    board, three, tmp_path
):
    folder, (first, second, third) = three
    altered(folder, first, "3.0f", "3.001f")
    altered(folder, second, "kernel void", "kernel viod")
    found = run(board, folder)
    assert "viod" in found.stderr  # the driver's log
    wrong, unbuilt, right = results(found, tmp_path).rows
    assert (wrong.outcome, unbuilt.outcome, right.outcome) == ("wrong", "build_failed", "measured")
    assert right.candidate == third
    assert "it should be" in wrong.reason
    assert unbuilt.reason.startswith("clBuildProgram returned CL_BUILD_PROGRAM_FAILURE\n")
    with pytest.raises(ResultsRefused, match=r"line 8: the board built kernels with the SHA-256"):
        import_results(tmp_path / "a.db", read_results(tmp_path / "results.csv"))
    assert not (tmp_path / "a.db").exists()


def test_an_element_that_nobody_writes_is_found_and_its_meaning_is_looked_up(
    board, three, tmp_path
):
    """It lies at no point where the expected value is known: these are left out here."""
    folder, (_, plain, _) = three
    plan = (folder / "plan.txt").read_text().split("\n")
    expected = next(k for k, line in enumerate(plan) if line.startswith("expected"))
    launch = plan.index("launch run k0_output 3 12 1 1 0 0 0 x output")
    plan[launch] = "launch run k0_output 3 6 1 1 0 0 0 x output"  # half of the work-items
    points = folder / "expected" / "0.bin"
    points.write_bytes(points.read_bytes()[:16])
    words = plan[expected].split()
    words[3], words[6] = "1", sha(points)
    plan[expected] = " ".join(words)
    (folder / "plan.txt").write_text("\n".join(plan))
    found = results(run(board, folder, "--only", plain), tmp_path)
    assert found.rows[0].outcome == "wrong", found.rows[0].reason
    assert "memory that no work-item wrote" in found.rows[0].reason
    import_results(tmp_path / "a.db", found)
    (row,) = Campaign.read(tmp_path / "a.db").rows
    assert row.outcome == "wrong"
    assert "(an element that no work-item wrote), it should be" in row.reason


def test_a_board_makes_the_images_of_a_candidate(board, pocl, tmp_path):
    folder = tmp_path / "bundle"
    program = parse("""
        def product(a: [6][20]f32, const b: [20][12]f32) = a |> map(row => b |> transpose
          |> map(column => zip(row, column) |> map((x, y) => x * y) |> reduce(add, 0)))
    """)
    settings = {"family": "direct", "level": "glb", "pad": "fused", "images": "all"}
    space = space_of(program, pocl, families=["direct"], settings=settings)
    sizes = {"kappa": 4, "sigma": 2, "v": 4}
    bundled(space, [space.candidate({**settings, **sizes})], folder)
    plan = (folder / "plan.txt").read_text()
    launch = re.findall(r"launch run .*", plan)[-1]
    assert re.search(r" a@16 t\d*@16 output$", launch)
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "measured", row.reason
    (folder / "plan.txt").write_text(plan.replace("a@16", "a@24"))
    assert "texels of '24' bytes" in run(board, folder).stderr


def test_a_board_builds_opencl_c_3_if_its_device_has_the_instructions_of_a_candidate(
    board, pocl, tmp_path
):
    """The plan has the options. PoCL has no such instructions and adds the products one by one."""
    folder = tmp_path / "bundle"
    program = parse("""
        def product(a: [2][8]u8, b: [4][8]i8) = a |> map(x => b |> map(y =>
          zip(x, y) |> map((v, w) => i32(v) * i32(w)) |> reduce(add, 0)))
    """)
    space = space_of(program, pocl, families=["dots"])
    bundled(space, [space.candidate({"level": "glb", "kappa": 4, "sigma": 2, "v": 4})], folder)
    plan = (folder / "plan.txt").read_text()
    newer = " ".join(with_standard(BUILD_OPTIONS, NEWER))
    line = f"\noptional {INTEGER_DOTS[0]} 3 {newer}\n"
    assert line in plan
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "measured", row.reason
    # The first line with an extension that PoCL has, and not more than its version, is used.
    for first, outcome in (("3", "build_failed"), ("4", "measured")):
        two = f"\noptional cl_khr_fp64 {first} -cl-no-such\noptional cl_khr_fp64 3 {newer}\n"
        (folder / "plan.txt").write_text(plan.replace(line, two))
        (row,) = results(run(board, folder), tmp_path).rows
        assert row.outcome == outcome, row.reason


def test_a_board_without_subgroups_folds_one_by_one(board, pocl, tmp_path):
    """The plan has the options for boards with them; those of PoCL define no macro."""
    folder = tmp_path / "bundle"
    program = parse("def sums(a: [3][31]f32) = a |> map(row => row |> reduce(add, 0))")
    space = space_of(program, pocl, families=["subgroups"])
    bundled(space, [space.candidate({"strided": "yes", "group": 13})], folder)
    plan = (folder / "plan.txt").read_text()
    lines = [line for line in plan.splitlines() if line.startswith("optional ")]
    macro = f"-D{HAS_SUBGROUPS}"
    assert [line.split()[1:4] for line in lines] == [
        [SUBGROUPS[0], "3", NEWER],
        [SUBGROUPS[0], "2", OLDER],
        [SUBGROUPS[1], "1", BUILD_OPTIONS[0]],
        [SUBGROUPS[2], "1", NEWER],
    ]
    assert all(line.endswith(f" {macro}") for line in lines)
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "measured", row.reason


def test_a_board_launches_the_kernels_of_a_loop_for_each_iteration(board, pocl, tmp_path):
    """A wrong iteration leaves a band of the result unwritten."""
    folder = tmp_path / "bundle"
    product = "{} |> map(a => {} |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"
    program = parse(f"""def p(x: [12][5]f32, w: [4][5]f32, u: [6][4]f32) =
      let one = ({product.format("x", "w")}) in {product.format("one", "u")}""")
    settings = {"one": "held", "family": "banded"}
    space = space_of(program, pocl, families=["banded"], settings=settings)
    bundled(space, [space.candidate({**settings, "block": 4})], folder)
    plan = (folder / "plan.txt").read_text()
    _, *launches = re.findall(r"launch run (\S+) ", plan)  # the first is the reference kernel
    assert launches == [f"{k}@{i}" for i in range(3) for k in ("k0_t2", "k1_output")]
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "measured", row.reason
    (folder / "plan.txt").write_text(plan.replace("k1_output@1 ", "k1_output@2 "))
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "wrong"
    assert row.reason.startswith("element 24 of component 0 of the result is nan"), row.reason
    for wrong in ("", "-1", "1x", "9999999999"):
        (folder / "plan.txt").write_text(plan.replace("k1_output@1 ", f"k1_output@{wrong} "))
        assert f"'{wrong}' is not a valid iteration" in run(board, folder).stderr


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_result_that_leaves_the_first_one_is_judged_when_it_is_read(board, three, tmp_path):
    """The board does not know which of the two is right: liftpy evaluates the meaning there."""
    folder, (first, second, _) = three
    plan = (folder / "plan.txt").read_text()
    points = folder / "expected" / "0.bin"
    before = sha(points)
    points.write_bytes(points.read_bytes()[:16])
    plan = plan.replace(" 12 12 ", " 12 1 ").replace(before, sha(points))
    (folder / "plan.txt").write_text(plan)
    true = sha(folder / "kernels" / f"{second}.cl")
    altered(folder, second, "3.0f", "3.0f + (get_global_id(0) == 1)")
    found = results(run(board, folder, "--only", first, "--only", second), tmp_path)
    assert [row.outcome for row in found.rows] == ["measured", "measured"]
    assert [name for name, _ in found.rows[1].detail] == ["reference", "suspect"]

    text = (tmp_path / "results.csv").read_text()  # as if these were the kernels that liftpy makes
    told = text.replace(sha(folder / "kernels" / f"{second}.cl"), true)
    (tmp_path / "results.csv").write_text(told)
    import_results(tmp_path / "a.db", read_results(tmp_path / "results.csv"))
    right, wrong = Campaign.read(tmp_path / "a.db").rows
    assert (right.outcome, wrong.outcome) == ("measured", "wrong")
    assert wrong.reason.startswith("result[1] is ")


@pytest.mark.parametrize("file", ["plan.txt", "inputs/0-x.bin", "expected/0.bin"])
def test_a_file_that_did_not_arrive_whole_is_refused(board, three, file):
    folder, _ = three
    path = folder / file
    path.write_bytes(path.read_bytes()[:-7])
    found = run(board, folder)
    assert found.returncode == 1
    assert file.partition("/")[2] in found.stderr
    assert "opy the bundle again" in found.stderr


def test_kernels_that_did_not_arrive_whole_are_refused(board, three):
    folder, (first, *_) = three
    (folder / "kernels" / f"{first}.cl").write_text("")
    found = run(board, folder)
    assert found.returncode == 1
    assert f"{first}.cl is not the exported file: its SHA-256 is e3b0c44298fc" in found.stderr


def test_what_the_device_lacks_is_refused(board, three, tmp_path, pocl):
    """A type of numbers, a work-group, a buffer: with what the campaign can learn from it."""
    folder, _ = three
    most = pocl.max_work_group_size
    plan = (folder / "plan.txt").read_text()
    head, *parts = plan.split("\ncandidate ")
    parts[0] = parts[0].replace("\nslot ", "\nextension cl_khr_none\nslot ", 1)
    parts[1] = re.sub(r"(launch run \S+) .* (x output)", rf"\1 2 {most} 2 {most} 2 \2", parts[1])
    parts[2] = parts[2].replace("slot own_x 48", f"slot own_x {1 << 60}")
    (folder / "plan.txt").write_text("\ncandidate ".join([head, *parts]))
    lacking, group, buffer = results(run(board, folder), tmp_path).rows
    assert {row.outcome for row in (lacking, group, buffer)} == {"refused"}
    assert lacking.reason == "it needs cl_khr_none, which the device lacks"
    assert f"the device runs it with at most {most}" in group.reason
    assert dict(group.detail) == {"kernel": "k0_output", "figure": "group", "number": str(most)}
    assert f"it needs a buffer of {1 << 60} bytes (own_x)" in buffer.reason


def test_half_floats_are_refused_where_there_are_none(board, tmp_path, pocl):
    if "cl_khr_fp16" in pocl.extensions:
        pytest.skip("this PoCL has f16")
    program = parse("def p(x: [12]f16) = x |> map(x => x * 3)")
    exported(program, tmp_path / "bundle", device=DEFAULT_DEVICE)
    (row,) = results(run(board, tmp_path / "bundle"), tmp_path).rows
    assert (row.outcome, row.reason) == ("refused", "it needs cl_khr_fp16, which the device lacks")


def test_what_was_cut_off_anywhere_is_gone_on_with(board, three, tmp_path):
    """The output of a run that died, at each of its lines and within them, then resumed."""
    folder, ids = three
    whole = run(board, folder, "--repeats", "1").stdout
    path = tmp_path / "results.csv"
    begins = [k for k, c in enumerate(whole) if c == "\n" and k > whole.index("\ncandidate,")]
    for cut in [*(k + 1 for k in begins[:-1:3]), *(k + 9 for k in begins[:-1:3])]:
        path.write_text(whole[:cut])
        resumed = run(board, folder, "--repeats", "1", "--resume", str(path))
        assert resumed.returncode == 0, resumed.stderr
        path.write_text(whole[:cut] + resumed.stdout)
        assert [row.candidate for row in read_results(path).rows] == ids
        if not whole[:cut].endswith("\n"):
            assert "\n# torn\n# resumed " in path.read_text()


def test_the_whole_rows_of_what_breaks_off_are_taken_when_asked(board, three, tmp_path):
    folder, (first, *_) = three
    path = tmp_path / "results.csv"
    path.write_text(run(board, folder, "--repeats", "1").stdout[:-99])
    with pytest.raises(ResultsRefused, match=r"line 12: it is cut off after"):
        read_results(path)
    import_results(tmp_path / "a.db", read_results(path, partial=True))
    kept = Campaign.read(tmp_path / "a.db").rows
    assert (len(kept), kept[0].id) == (2, first)


def test_rows_around_which_the_board_was_slower_are_disturbed(board, three, tmp_path):
    """The times of the reference kernel are replaced: a quiet machine has none that differ."""
    folder, ids = three
    printed = run(board, folder, "--repeats", "1")
    path, times = tmp_path / "results.csv", re.compile(r"reference=[1-9]\d*:[1-9]\d*")
    assert len(times.findall(printed.stdout)) == len(ids)
    replaced = iter(("1000:1100", "1100:1000", "1010:1400"))
    path.write_text(times.sub(lambda _: f"reference={next(replaced)}", printed.stdout))
    import_results(tmp_path / "a.db", read_results(path))
    rows = Campaign.read(tmp_path / "a.db").rows
    assert [row.disturbed for row in rows] == [False, False, True]
    for wrong in ("0:7", "7", "7:-7", "7:7:7"):
        path.write_text(times.sub(f"reference={wrong}", printed.stdout))
        with pytest.raises(ResultsRefused, match="the detail of a measured result is not valid"):
            import_results(tmp_path / "b.db", read_results(path))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("clock.c", "between / 2", "between * 1e6", id="standing"),
        pytest.param("loaded.c", "CL_QUEUE_PROFILING_ENABLE", "0", id="missing"),
    ],
)
def test_a_board_without_a_clock_that_advances_is_timed_by_the_host_s(
    board, three, tmp_path, file, old, new
):
    """Each clock of this machine advances: the program is changed so that it finds none."""
    changed = with_change(HOST, board.parent, tmp_path / "source", file, old, new)
    program = built(changed, tmp_path) / "board"
    folder, ids = three
    printed = run(program, folder, "--repeats", "2")
    assert printed.stdout.count(f"2 runs {BY_HOST}") == len(ids)
    found = results(printed, tmp_path)
    assert all(dict(row.detail)["clock"] == "host" for row in found.rows)
    assert all(ns > 100 for row in found.rows for times in row.times_ns for ns in times)
    import_results(tmp_path / "a.db", found)
    campaign = Campaign.read(tmp_path / "a.db")
    assert outcomes_text(campaign).startswith("3 measured; ")  # one may be disturbed
    assert outcomes_text(campaign).endswith(f"; {BY_HOST}")
    (tmp_path / "b.csv").write_text(printed.stdout.replace("clock=host", "clock=moon"))
    with pytest.raises(ResultsRefused, match="no clock is named moon"):
        import_results(tmp_path / "b.db", read_results(tmp_path / "b.csv"))


def test_a_slow_candidate_is_run_twice(board, three, tmp_path):
    """The checked run counts; the fastest candidate so far took 1 ns, so all of these are slow."""
    folder, _ = three
    plan = folder / "plan.txt"
    usual = plan.read_text()

    def runs(*options):
        found = results(run(board, folder, *options), tmp_path)
        return [len(row.times_ns) for row in found.rows]

    assert max(runs()) >= REPEATS  # a busy machine may delay the others
    plan.write_text(re.sub(r"\n(slow .*) 0\n", r"\n\1 1\n", usual))
    assert runs() == [SLOW_REPEATS] * 3
    assert runs("--repeats", "7") == [7] * 3
    plan.write_text(re.sub(r"\nslow .*\n", "\n", usual))
    assert max(runs()) >= REPEATS


def test_a_plan_without_a_reference_kernel_is_run(board, three, tmp_path):
    """Such are the plans of earlier versions."""
    folder, ids = three
    plan = (folder / "plan.txt").read_text()
    start = plan.index("reference ")
    older = plan[:start] + plan[plan.index("\nend\n", start) + 5 :]
    (folder / "plan.txt").write_text(older.replace("liftpy-plan 6", "liftpy-plan 1"))
    (folder / "kernels" / "reference.cl").unlink()
    found = results(run(board, folder, "--repeats", "1"), tmp_path)
    assert [(row.candidate, row.outcome, row.detail) for row in found.rows] == [
        (id_, "measured", ()) for id_ in ids
    ]
    (folder / "plan.txt").write_text(plan.replace("liftpy-plan 6", "liftpy-plan 7"))
    assert "is not a plan of this version of board" in run(board, folder).stderr


def test_a_reference_kernel_that_does_not_build_is_not_used(board, three, tmp_path):
    folder, ids = three
    altered(folder, "reference", "mad(", "mud(")
    printed = run(board, folder, "--repeats", "1")
    assert "the reference kernel cannot be built: clBuildProgram" in printed.stderr
    found = results(printed, tmp_path)
    assert [(row.outcome, row.detail) for row in found.rows] == [("measured", ())] * len(ids)


def test_a_candidate_that_ends_the_program_twice_is_not_tried_again(board, three, tmp_path):
    folder, (first, second, third) = three
    path = tmp_path / "results.csv"
    whole = run(board, folder, "--only", first).stdout.partition("# end")[0]
    path.write_text(f"{whole}# begin {second}\n# resumed\n# begin {second}\n")
    path.write_text(path.read_text() + run(board, folder, "--resume", str(path)).stdout)
    rows = {row.candidate: row for row in read_results(path).rows}
    assert rows[second].outcome == "crashed"
    assert "ended abruptly 2 times" in rows[second].reason
    assert rows[third].outcome == "measured"
    import_results(tmp_path / "a.db", read_results(path))
    assert Campaign.read(tmp_path / "a.db").counts == {"measured": 2, "crashed": 1}


def test_another_bundle_is_not_gone_on_with(board, three, tmp_path):
    folder, (first, *_) = three
    path = tmp_path / "results.csv"
    path.write_text(run(board, folder, "--only", first).stdout.replace("# bundle ", "# bundle 0"))
    found = run(board, folder, "--resume", str(path))
    assert (found.returncode, found.stdout) == (1, "")
    assert "is of another bundle or another device" in found.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--device", "no such"], 1, "no device matches 'no such'"),
        (["--only", "0123"], 1, "the bundle has no candidate 0123"),
        (["--bundle", "nowhere"], 1, "nowhere/plan.txt cannot be read"),
        (["--skip", "x"], 2, "--skip needs a whole number"),
        (["--speed"], 2, "--speed is not an option, or lacks its value"),
    ],
)
def test_a_wrong_command_line_is_said(board, three, options, code, said):
    found = run(board, three[0], *options)
    assert found.returncode == code
    assert said in found.stderr


def test_a_failed_run_makes_no_file_and_one_that_goes_on_appends(board, three, tmp_path):
    folder, ids = three
    csv = tmp_path / "results.csv"
    lost = run(board, folder, "--output", str(csv), device="no such")
    assert (lost.returncode, csv.exists()) == (1, False)
    first = run(board, folder, "--output", str(csv), "--only", ids[0], "--repeats", "1")
    assert (first.returncode, first.stdout) == (0, "")
    # PoCL's limit is a part of the memory that is free now, so it is another the next time.
    before, found = re.subn(r'("global_memory": )\d+', r"\g<1>4096", csv.read_text())
    assert found == 1
    csv.write_text(before)
    then = run(board, folder, "--output", str(csv), "--repeats", "1")
    assert then.returncode == 0, then.stderr
    assert [row.candidate for row in read_results(csv).rows] == ids


def test_the_device_of_the_bundle_is_the_one_that_is_used_or_it_says_so(board, three, pocl):
    folder, _ = three
    command = [str(board), "--bundle", str(folder), "--repeats", "1"]
    plan = folder / "plan.txt"
    text = plan.read_text()
    assert f"\ndevice {pocl.name}\nplatform {pocl.platform}\n" in text
    used = in_a_bare_shell(*command)
    assert f"board: on {pocl.platform}: {pocl.name}, driver" in used.stderr
    assert f'"name": "{pocl.name}"' in used.stdout
    plan.write_text(text.replace(f"\ndevice {pocl.name}\n", "\ndevice Radeon\n"))
    other = in_a_bare_shell(*command)
    assert (other.returncode, other.stdout) == (1, "")
    assert (
        f"the bundle is for {pocl.platform}: Radeon, which this machine lacks. It has:"
        in other.stderr
    )
    assert pocl.name in other.stderr
    assert in_a_bare_shell(*command, "--device", "portable").returncode == 0, "it was asked for"


def test_what_the_machine_lacks_is_said(board, three, tmp_path):
    folder, _ = three
    lacking = run(board, folder, "--library", str(tmp_path / "libNone.so"))
    assert lacking.returncode == 1
    assert "no OpenCL library can be loaded:\n" in lacking.stderr
    assert "libNone.so: cannot open shared object file" in lacking.stderr
    assert "or name the library: ./board --library FILE" in lacking.stderr
    made = in_a_bare_shell("make", "CC=no-such-compiler", cwd=folder)
    assert made.returncode != 0
    assert "there is no C compiler no-such-compiler: install gcc or clang" in made.stderr


def test_a_bundle_runs_on_the_machine_that_made_it(board, device, tmp_path):
    """`make run` alone, on the device that liftpy takes, which a program of C would not find."""
    program = parse("def thrice(x: [12]f32) = x |> map(x => x * 3)")
    space = space_of(program, device)
    bundle = Bundle(identity_of(space, 0, search="random"), (space.candidate({}),))
    folder = tmp_path / "bundle"
    write(bundle, folder)
    for path in board.parent.glob("*"):  # built already
        shutil.copy2(path, folder)
    made = in_a_bare_shell("make", "run", cwd=folder)
    assert made.returncode == 0, made.stderr
    found = read_results(folder / "results.csv")
    assert (found.device.name, found.device.platform) == (device.name, device.platform)
    assert [row.outcome for row in found.rows] == ["measured"]
    import_results(tmp_path / "a.db", found)


def in_a_bare_shell(*command, cwd=None):
    """A command without what liftpy has put into the environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def test_the_machine_and_its_devices_are_described_without_a_bundle(board, tmp_path, pocl):
    """The description has the schema of results, and more extensions than liftpy uses."""
    told = in_a_bare_shell(str(board), "--describe", "--bundle", str(tmp_path))
    assert told.returncode == 0, told.stderr
    version, boot, *described = told.stdout.splitlines()
    assert version == RUNNER
    assert boot == f"# boot {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
    found = [table(line.removeprefix("# device ")) for line in described]
    for each in found:
        checked(DeviceFields, each)
    (mine,) = (d for d in found if d["platform"] == pocl.platform)
    assert mine["name"] == pocl.name
    assert set(pocl.extensions) - {VNNI} < set(mine["extensions"])  # no driver lists that


def test_a_candidate_that_takes_too_long_ends_the_program(board, three, tmp_path):
    folder, (first, second, _) = three
    altered(folder, second, "* 3.0f", "* 3.0f;\n  for (volatile int k = 0; k < 1; k = 0);\n  ")
    found = run(board, folder, "--limit", "2", "--repeats", "1")
    assert found.returncode == 124, found.stderr
    assert found.stdout.endswith(f"# begin {second}\n")
    kept = results(found, tmp_path, partial=True)
    assert [row.candidate for row in kept.rows] == [first]


def test_one_run_at_a_time_holds_a_lock(board, three, tmp_path):
    folder, _ = three
    lock = tmp_path / "lock"
    with lock.open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        command = [str(board), "--bundle", str(folder), "--device", "portable", "--lock", str(lock)]
        pipe = subprocess.PIPE
        waiting = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        said = waiting.stderr.readline() if waiting.stderr is not None else ""
        assert said == f"board: waiting for another run, which holds {lock}\n"
        assert waiting.poll() is None
        fcntl.lockf(held, fcntl.LOCK_UN)
        printed, _ = waiting.communicate(timeout=300)
    assert printed.endswith("# end 3\n")
    refused = run(board, folder, "--lock", str(tmp_path / "none" / "lock"))
    assert refused.returncode == 1
    assert "none/lock cannot be written: No such file" in refused.stderr


def test_an_element_that_no_kernel_writes_shows_in_memory_that_others_used_before(
    board, pocl, tmp_path
):
    """The earlier values equal the right result, so the memory must be poisoned again."""
    folder = tmp_path / "bundle"
    one = "map(w => min(max(w |> reduce(add, 0), 1), 1))"
    program = parse(f"""
        def p(xs: [67]f32) =
          let first = xs |> pad(9, 9, 0) |> slide(5, 1) |> {one} in
          let second = first |> slide(7, 1) |> {one} in
          second |> slide(3, 1) |> {one}""")
    space = space_of(program, pocl, families=["plain"])
    chosen = next(
        candidate
        for candidate in space.sample(60, seed=1)
        if shares_its_result(compile_candidate(candidate.skeleton, candidate.assignment))
    )
    bundled(space, [chosen], folder)
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "measured", row.reason
    altered(folder, chosen.key, "output[", "if (get_global_id(0) != 5) output[")
    (row,) = results(run(board, folder), tmp_path).rows
    assert row.outcome == "wrong", row.reason


def shares_its_result(module):
    """Whether the result is stored in the memory of a value that is no longer needed."""
    slots = [b.slot for b in module.buffers if b.role == "temporary"]
    return module.buffer("output").slot in slots

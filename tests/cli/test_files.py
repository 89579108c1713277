"""Files that a command is given: what is no file, or has a name that leads elsewhere."""

import os
from pathlib import Path

import numpy as np
import pytest

VICTIM = "def f(`../../../victim`: [12]f32, `a b`: [12]f32) = zip(`../../../victim`, `a b`)"
VICTIM += " |> map((x, y) => x * y)\n"


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_bundle_stays_in_its_folder_whatever_the_parameters_are_called(liftpy):
    Path("names.lift").write_text(VICTIM)
    before = everything(Path.cwd().parent)
    said = liftpy("export", "names.lift", "-o", "bundle")
    assert said.code == 0, said.err
    new = set(everything(Path.cwd().parent)) - set(before)
    assert all(f"/{Path.cwd().name}/bundle" in f"/{name}" for name in new), new
    inputs = sorted(path.name for path in Path("bundle/inputs").iterdir())
    assert [name[:8] for name in inputs] == ["0-victim", "1-a_b-" + inputs[1][6:8]]
    plan = Path("bundle/plan.txt").read_text().splitlines()
    assert [line.split()[1] for line in plan if line.startswith("input ")] == [
        f"inputs/{name}" for name in inputs
    ]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    "command",
    [
        ["show", "{}.lift"],
        ["run", "tiny.lift", "--input", "x={}.npy"],
        ["space", "tiny.lift", "--device", "profile:./{}.toml"],
        ["import", "new.db", "{}.csv"],
        ["pareto", "{}.db"],
        ["explore", "tiny.lift", "--db", "{}.db"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_no_file_is_refused_and_not_waited_for(liftpy, kind, command):
    words = [word.format(kind) for word in command]
    path = Path(words[-1].partition("=")[2] or words[-1].removeprefix("profile:"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    said = liftpy(*words)
    assert said.code == 1, said.err
    assert f"a {kind}" in said.err
    assert "Traceback" not in said.err
    assert path.exists()
    assert path.is_fifo() is (kind == "pipe")


NPY = {
    "an archive": lambda path: path.write_bytes(archive()),
    "text": lambda path: path.write_text("1 2 3"),
    "a header without its numbers": lambda path: path.write_bytes(saved(np.ones(3))[:-1]),
    "a header of a huge array": lambda path: path.write_bytes(
        saved(np.ones(3)).replace(b"(3,), }        ", b"(3000000000,), }")
    ),
    "objects": lambda path: np.save(path, np.array([None]), allow_pickle=True),
    "texts": lambda path: np.save(path, np.array(["a"])),
    "more than its header says": lambda path: path.write_bytes(saved(np.ones(3)) + b"0"),
    "a header nested deeply": lambda path: path.write_bytes(
        b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"(" * 8999 + b"\n"
    ),
}


def archive():
    np.savez("saved.npz", a=np.ones(3))
    return Path("saved.npz").read_bytes()


def saved(array):
    np.save("saved.npy", array)
    return Path("saved.npy").read_bytes()


@pytest.mark.parametrize("what", NPY)
def test_a_file_that_holds_no_array_is_refused(liftpy, what):
    NPY[what](Path("x.npy"))
    said = liftpy("run", "tiny.lift", "--input", "x=x.npy")
    assert said.code == 1, said.err
    assert said.err.startswith("error: the array for 'x' (x.npy) cannot be read: ")
    assert "Traceback" not in said.err

"""Campaigns and a network on an emulated aarch64 machine, which is a board with PoCL.

    sudo apt-get install gcc-aarch64-linux-gnu mmdebstrap qemu-user-static binfmt-support
    sudo update-binfmts --enable qemu-aarch64
    sudo PYTHONPATH=. python tests/boards/emulated.py [--samples 12] [--record]

The distribution's packages for aarch64 are extracted into a folder, and QEMU runs their programs. A
cross compiler builds the host programs. Each campaign tries random candidates of one program, all
of which have to be right; the bundle of a network checks its own results. Times are those of an
emulator and say nothing. `--record` writes tests/fuzz/emulated.json.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import liftpy as lp
from liftpy.boards.live import Board
from liftpy.boards.network_bundle import export
from tests.fuzz.record import commit, record
from tests.networks.models import model, node, value

COMPILER = "aarch64-linux-gnu-gcc"
TOOLS = (COMPILER, "mmdebstrap", "qemu-aarch64-static", "unshare", "chroot")
HANDLER = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
PACKAGES = "pocl-opencl-icd,ocl-icd-libopencl1,dash,coreutils,binutils,grep,sed,util-linux"

ENTER = """#!/bin/sh
# Runs the command line $1 in this folder as if it were the root of a machine. Its mounts belong to
# the process: `unshare --mount` runs this.
set -e
root=$(dirname "$(readlink -f "$0")")
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" /bin/sh -c "$1"
"""

BOARD = """copy = ["cp", "-r", "{{from}}", "{root}{{to}}/"]
run = ["unshare", "--mount", "{root}/enter", "{{command}}"]
folder = "/var/tmp/liftpy"
"""

ROWS = """def rows(x: [37][113]f32) =
  x |> map(row => let top = (row |> reduce(maximum, -1e30)) in
    row |> map(v => exp(v - top)) |> reduce(add, 0))"""

PROGRAMS = {
    "matmul": "matmul/17x24x20",
    "convolution": "convolution/strided/11x13x6x8x3x1",
    "pooling": "pool/max/13x11x16x3x2",
    "stencil": "stencil/jacobi5/19x23",
    "rows": ROWS,
}
"""Built-in programs and one of rows, whose families use the local memory of work-groups."""


def missing() -> str:
    """What the machine lacks to emulate another one; empty if it lacks nothing."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found"
    if os.geteuid() != 0:
        return "it takes root to mount and to change the root folder"
    return "" if HANDLER.exists() else "the kernel does not start programs for aarch64 with QEMU"


def machine(root: Path) -> None:
    """Extracts the packages of an aarch64 machine into a folder."""
    release = dict(
        line.rstrip().split("=", 1) for line in Path("/etc/os-release").read_text().splitlines()
    )
    wanted = ["--variant=extract", "--arch=arm64", f"--include={PACKAGES}"]
    subprocess.run(["mmdebstrap", *wanted, release["VERSION_CODENAME"], str(root)], check=True)
    for folder in ("proc", "sys", "dev", "var/tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "enter").write_text(ENTER)
    (root / "enter").chmod(0o755)


def entered(root: Path, command: str) -> str:
    """What a command line prints on the machine, whose environment names no driver of this one."""
    told = ["unshare", "--mount", str(root / "enter"), command]
    own = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    return subprocess.run(told, check=False, stdout=subprocess.PIPE, text=True, env=own).stdout


def network(root: Path) -> str:
    """Runs the bundle of a network on the machine; what it prints ends with `right` if it is."""
    rng = np.random.default_rng(5)
    nodes = [
        node("Conv", "x w", "c", "conv1", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r", "relu1"),
        node("MaxPool", "r", "p", "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p v", "y", "conv2"),
    ]
    made = model(
        nodes,
        [value("x", (1, 3, 14, 10))],
        [value("y", (1, 5, 7, 5))],
        w=rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        v=rng.standard_normal((5, 8, 1, 1)).astype(np.float32),
    )
    bundle = root / "var/tmp/bundle"
    with lp.network(made).channels_last().joined().plan(device="Portable") as plan:
        export(plan, bundle)
    subprocess.run(["make", "-s", "-C", str(bundle), f"CC={COMPILER}", "network"], check=True)
    return entered(root, "cd /var/tmp/bundle && ./network --check --device 0 2>&1 && echo right")


def main() -> int:
    """Prints a line for each program; 1 if a candidate or the network is not right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="writes tests/fuzz/emulated.json")
    given = parser.parse_args()
    if lacking := missing():
        print(f"cannot emulate a machine: {lacking}")
        return 1
    tried = commit()
    with tempfile.TemporaryDirectory() as made:
        folder, root = Path(made), Path(made) / "root"
        machine(root)
        where = entered(root, "uname -sm").strip()
        file = folder / "board.toml"
        file.write_text(BOARD.format(root=root))
        outcomes: dict[str, Counter[str]] = {}
        families: dict[str, list[str]] = {}
        for name, text in PROGRAMS.items():
            program = lp.parse(text) if text.startswith("def") else lp.workload(text)
            campaign = lp.explore(
                program, given.samples, given.seed, db=folder / f"{name}.db", search="random",
                board=Board(f"commands:{file}", compiler=COMPILER),
            )  # fmt: skip
            outcomes[name] = Counter(row.outcome for row in campaign.rows)
            families[name] = sorted({row.skeleton.partition("(")[0] for row in campaign.rows})
            print(f"{name}: {dict(outcomes[name])}, {', '.join(families[name])}", flush=True)
        device = campaign.rows[0].device
        checked = network(root).strip()
        print(f"network: {checked}")
    if given.record:
        found = {"machine emulated": where, "device": device, "outcomes": outcomes}
        record("emulated", tried, {**found, "families": families, "network": checked.splitlines()})
    right = all(set(counts) == {"measured"} for counts in outcomes.values())
    return 0 if right and checked.endswith("right") else 1


if __name__ == "__main__":
    sys.exit(main())

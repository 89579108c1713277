"""The environment of a campaign, recorded for later readers of its results."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.explore.space.version import VERSION

LIBRARIES = ("numpy", "pyopencl", "z3-solver", "intel-opencl-rt")
"""Installed packages that the results of a campaign may depend on."""

GIT_SECONDS = 10


def command_line() -> str:
    """The command that started this process, quoted for a shell."""
    return shlex.join(sys.orig_argv)


def environment(device: Device) -> dict[str, Any]:
    """Versions of liftpy and its dependencies, the system, the processor, the OpenCL runtime."""
    return {
        "liftpy": VERSION,
        "commit": commit(),
        "python": platform.python_version(),
        "libraries": {name: version for name in LIBRARIES if (version := _installed(name))},
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": processor(),
        "runtime": device.platform,
        "driver": device.driver_version,
        "opencl_c": device.opencl_c,
        "device": device.name,
    }


def processor() -> str:
    """The name of the processor, from the operating system."""
    known = Path("/proc/cpuinfo")  # on Linux, `platform` has only the architecture
    if known.is_file():
        for line in known.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of this liftpy, with a `+` if files differ from it; None if it is unknown.

    It comes from the checkout that liftpy runs in, or from the metadata of the installation.
    """
    root = Path(__file__).parents[3]
    if (root / ".git").exists():
        head = _git(root, "rev-parse", "HEAD")
        changed = head and _git(root, "status", "--porcelain", "--untracked-files=no")
        return head and head + ("+" if changed else "")
    try:
        noted = metadata.distribution("liftpy").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    return json.loads(noted or "{}").get("vcs_info", {}).get("commit_id")


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git; None if git is missing or fails."""
    try:
        said = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() if said.returncode == 0 else None


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

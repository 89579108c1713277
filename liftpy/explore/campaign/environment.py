"""What a campaign runs on, for whoever reads its figures later."""

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
    """The command that this process was started with, as a shell would take it."""
    return shlex.join(sys.orig_argv)


def environment(device: Device) -> dict[str, Any]:
    """Versions of liftpy and of what it stands on, the system, the processor, the runtime."""
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
    """The name of the processor, as the system knows it."""
    known = Path("/proc/cpuinfo")  # Linux; `platform` has only the architecture there
    if known.is_file():
        for line in known.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of this liftpy, `+` after it if files were changed since; None if not known.

    From the checkout that it runs in, or from what was noted when it was installed.
    """
    root = Path(__file__).parents[2]
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
    """What git says; None if there is no git, or it refuses the folder."""
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

"""Where the long runs of `make soak` write what came out: JSON files beside this one."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liftpy.explore.campaign.environment import processor

RECORDS = Path(__file__).parent


def cpu_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def commit() -> str:
    """The commit that is tried; `+` where the files differ from it."""
    told = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()


def record(name: str, tried: str, found: Mapping[str, Any]) -> None:
    """Writes `name`.json: what a run at the commit `tried` has found so far."""
    about = {
        "commit": tried,
        "machine": f"{processor()}, {len(os.sched_getaffinity(0))} threads",
        "cpu seconds": round(cpu_seconds()),
    }
    text = json.dumps({**about, **found}, indent=2, sort_keys=True)
    (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")

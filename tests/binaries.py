"""What drivers make of sources, kept for all processes of a run of the tests."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from liftpy.opencl.driver import cl
from liftpy.opencl.kernel import Binary, Module
from liftpy.opencl.session import Session


def building_once(folder: Path, variant: str) -> Callable[[Session, Module], Any]:
    """`Session._build` that has a driver build a source once; a refused one is refused anew.

    `variant` says how a session builds, beyond its own options.
    """
    build = Session._build

    def known(session: Session, module: Module) -> Any:
        parts = (session.device.fingerprint, *session.options, variant, module.source)
        file = folder / hashlib.sha256("\0".join(parts).encode()).hexdigest()
        with suppress(FileNotFoundError):
            program = session._taken(Binary(file.read_bytes(), 0.0, ""))
            if program is not None:
                return program
        program = build(session, module)
        (code,) = program.get_info(cl.program_info.BINARIES)
        handle, draft = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(bytes(code))
        Path(draft).replace(file)  # whole, whoever else looks for it
        return program

    return known

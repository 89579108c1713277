"""Many modules in one build: a driver takes more time for a program than for one more kernel.

Each module keeps its own buffers and launches, and is loaded and checked by itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from liftpy.constraints.device import Device
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session

MOST = 24
"""Modules in one program."""

KERNEL = re.compile(r"\bvoid (k\d+_\w+)\(")


def results(device: Device, modules: Sequence[Module], arrays: Sequence[Any]) -> Iterator[Any]:
    """What each module gives for these arrays, in poisoned buffers.

    Of each the memory figures are what was allocated.
    """
    with OneBuild(device) as session:
        for module in together(modules):
            given = by_buffer(module, tuple(arrays))
            constants = {b.name for b in module.buffers if b.role == "constant"} & given.keys()
            with session.load(module) as loaded:
                loaded.set_constants({n: given[n] for n in constants}, poison=True)
                inputs = {n: a for n, a in given.items() if n not in constants}
                yield loaded.run(inputs, poison=True)
                assert loaded.allocated_bytes == module.memory.allocated, module.name


class OneBuild(Session):
    """A session that builds a source once, however many modules have it."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._programs: dict[str, Any] = {}

    def _build(self, module: Module) -> Any:
        if module.source not in self._programs:
            self._programs[module.source] = super()._build(module)
        return self._programs[module.source]


def together(modules: Sequence[Module]) -> list[Module]:
    """The modules, each with the kernels of several in its source.

    Those are put together that have the same text before their kernels. Each kernel's name begins
    with the place of its module.
    """
    alike: dict[str, list[int]] = {}
    for place, module in enumerate(modules):
        alike.setdefault(_split(module)[0], []).append(place)
    made = list(modules)
    for head, places in alike.items():
        for start in range(0, len(places), MOST):
            some = places[start : start + MOST]
            kernels = (KERNEL.sub(rf"void m{k}_\1(", _split(modules[k])[1]) for k in some)
            source = head + "\n".join(kernels)
            for k in some:
                launches = (replace(x, function=f"m{k}_{x.function}") for x in modules[k].launches)
                made[k] = replace(modules[k], source=source, launches=tuple(launches))
    return made


def _split(module: Module) -> tuple[str, str]:
    """The text before the first kernel, and the rest."""
    start = module.source.index("__kernel")
    return module.source[:start], module.source[start:]

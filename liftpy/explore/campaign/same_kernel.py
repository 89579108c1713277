"""Keys of launches: launches with the same key are the same to a device.

A key is a hash of everything that is launched: the text of the kernel with the functions that it
calls and the pragmas before it, the build options, the NDRange, the sizes of its buffers, and the
device with its driver. It does not depend on names: the name of the kernel is left out, and its
buffers are numbered in the order of their first use. So a stage has the same keys in every program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from liftpy.constraints.device import Device
from liftpy.explore.campaign.schema import digest
from liftpy.opencl.generate import ITERATION
from liftpy.opencl.kernel import Launch, Module
from liftpy.opencl.session import BUILD_OPTIONS, options_of

KERNEL = re.compile(
    r"^__kernel (.*?)\bvoid (\w+)\((.*?)\) \{\n(.*?)^\}\n", re.DOTALL | re.MULTILINE
)
HELPER = re.compile(r"^inline [^\n]*(?:\}\n|\{\n.*?^\}\n)", re.DOTALL | re.MULTILINE)
PRAGMA = re.compile(r"^#pragma [^\n]*\n", re.MULTILINE)
COMMENT = re.compile(r" *//[^\n]*|/\*.*?\*/", re.DOTALL)
NAME = re.compile(r"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True)
class Kernels:
    """The source of a module, its launches, the bytes of its buffers, and its build options.

    `device` is a fingerprint.
    """

    source: str
    launches: tuple[Launch, ...]
    sizes: Mapping[str, int]
    options: str
    device: str

    @classmethod
    def of(cls, module: Module, device: Device) -> Self:
        """The kernels of a module as this version of liftpy builds it."""
        sizes = {buffer.name: buffer.bytes for buffer in module.buffers}
        options = " ".join(options_of(module, device, BUILD_OPTIONS))
        return cls(module.source, module.launches, sizes, options, device.fingerprint)

    @classmethod
    def stored(cls, source: str, manifest: Mapping[str, Any], options: str, device: str) -> Self:
        """The kernels of a stored module."""
        launches = tuple(
            Launch(
                launch["function"],
                tuple(launch["arguments"]),
                tuple(launch["global_size"]),
                None if launch["local_size"] is None else tuple(launch["local_size"]),
                launch["phase"],
                iteration=launch.get("iteration"),
            )
            for launch in manifest["launches"]
        )
        sizes = {buffer["name"]: buffer["bytes"] for buffer in manifest["buffers"]}
        return cls(source, launches, sizes, options, device)

    @cached_property
    def text(self) -> str:
        """The source without comments."""
        return COMMENT.sub("", self.source)

    @cached_property
    def parts(self) -> dict[str, tuple[str, str, str]]:
        """The attributes, the parameters and the body of each kernel."""
        found = KERNEL.findall(self.text)
        return {name: (attributes, given, body) for attributes, name, given, body in found}

    @cached_property
    def header(self) -> str:
        """The text before the first kernel."""
        return self.text.partition("__kernel ")[0]

    def run_keys(self) -> list[str] | None:
        """The key of each run-phase launch; None if the text is not in the form liftpy prints."""
        keys = [self.key(launch) for launch in self.launches if launch.phase == "run"]
        known = [key for key in keys if key is not None]
        return known if len(known) == len(keys) else None

    def key(self, launch: Launch) -> str | None:
        """The key of a launch; None if the text is not in the form that liftpy prints."""
        if launch.function not in self.parts:
            return None
        attributes, given, body = self.parts[launch.function]
        declared = given.split(", ")
        if launch.iteration is not None:
            *declared, number = declared
            if number != ITERATION:
                return None
        if [text.rpartition(" ")[2] for text in declared] != [*launch.arguments]:
            return None
        types = {text.rpartition(" ")[2]: text.rpartition(" ")[0] for text in declared}
        mentioned = [name for name in dict.fromkeys(NAME.findall(body)) if name in types]
        numbers = {name: f"${k}" for k, name in enumerate(mentioned)}  # no other name has a `$`
        buffers = [(types[name], self.sizes[name]) for name in mentioned]
        others = sorted((t, self.sizes[name]) for name, t in types.items() if name not in numbers)
        ranges: Sequence[Any] = (launch.global_size, launch.local_size)
        if launch.iteration is not None:
            ranges = (*ranges, launch.iteration)
        return digest(
            self.device,
            self.options,
            json.dumps([buffers, others, ranges]),
            *self.before(body),
            attributes,
            NAME.sub(lambda found: numbers.get(found[0], found[0]), body),
        )

    def before(self, body: str) -> Iterator[str]:
        """The part of the header that a body depends on: pragmas, and functions that it calls."""
        names = {*NAME.findall(body)}
        called: list[str] = []
        for helper in reversed(HELPER.findall(self.header)):  # each calls only earlier ones
            if helper.partition("(")[0].rpartition(" ")[2] in names:
                names |= {*NAME.findall(helper)}
                called.append(helper)
        if called:  # they may depend on the preprocessor
            called.append(HELPER.sub("", self.header))
        yield from PRAGMA.findall(self.header)
        yield from called

"""A session on a device: it builds modules, and refuses those that the device cannot run.

A `Session` has the device's context and queue; `Session.load` builds a `Module` and returns the
object that runs it (liftpy/opencl/loaded.py).
"""

from __future__ import annotations

import math
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from liftpy.constraints.device import Device, check_attached, check_extensions
from liftpy.errors import BuildFailed, InternalError
from liftpy.ir.types import INTEGER_DOTS, SUBGROUPS, VNNI
from liftpy.opencl.allocations import Allocations, Room
from liftpy.opencl.arguments import check_launch, check_memory, check_module
from liftpy.opencl.byte_dots import way_for
from liftpy.opencl.devices import handle_of
from liftpy.opencl.dots import BYTE_DOTS, DOT_FEATURE
from liftpy.opencl.driver import OpenDevice, cl, reason, refusal
from liftpy.opencl.images import check_images
from liftpy.opencl.kernel import Binary, Launch, Module
from liftpy.opencl.launching import Launcher
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.subgroups import HAS_SUBGROUPS

WARNED = threading.Lock()
"""Held during a build: `warnings.catch_warnings` changes and restores the filters of the whole
process, so only one thread may be in it."""

BUILD_OPTIONS = ("-cl-std=CL1.2", "-cl-mad-enable", "-cl-no-signed-zeros")
"""The build options of a kernel, on every device, unless others are given.

Contraction to fused multiply-adds is allowed and zeros lose their sign; sums are not reassociated,
and NaN and infinity are preserved (so that poison shows). Results of different devices differ by
rounding only.
"""

NEWER, OLDER = "-cl-std=CL3.0", "-cl-std=CL2.0"
"""The options for modules that use an extension of a newer OpenCL C, if the device has it."""


class ExtensionOptions(NamedTuple):
    """Build options for devices with an extension and at least a major version of OpenCL."""

    extension: str
    version: int
    options: tuple[str, ...]


def extension_options(module: Module, options: tuple[str, ...]) -> Iterator[ExtensionOptions]:
    """The build options of a module for devices with extensions; the first that fit are used.

    The source uses subgroups only if `HAS_SUBGROUPS` is defined, because some compilers define the
    macros of extensions that their devices do not have. Khronos's extension needs OpenCL C 2 or 3,
    Intel's works with every version. A device with the feature compiles OpenCL C 3, even if it
    reports an older version of OpenCL C.
    """
    if HAS_SUBGROUPS in module.source:
        khronos, intel, feature = SUBGROUPS
        defined = f"-D{HAS_SUBGROUPS}"
        yield ExtensionOptions(khronos, 3, (*with_standard(options, NEWER), defined))
        yield ExtensionOptions(khronos, 2, (*with_standard(options, OLDER), defined))
        yield ExtensionOptions(intel, 1, (*options, defined))
        yield ExtensionOptions(feature, 1, (*with_standard(options, NEWER), defined))
    if DOT_FEATURE in module.source:
        yield ExtensionOptions(INTEGER_DOTS[0], 3, with_standard(options, NEWER))


def options_of(module: Module, device: Device, options: tuple[str, ...]) -> tuple[str, ...]:
    """The options to build a module with on a device.

    A device of OpenCL 3 may report OpenCL C 1.2, and one of OpenCL 2 reports OpenCL C 2.
    """
    version = 2 if device.opencl_c.startswith("OpenCL C 2.") else 3
    way = way_for(device) if BYTE_DOTS in module.source and VNNI in device.extensions else 0
    fitting = (
        found.options
        for found in extension_options(module, options)
        if found.extension in device.extensions
        and found.version <= version
        and not (way and found.extension in INTEGER_DOTS)
    )
    chosen = next(fitting, options)
    return (*chosen, f"-D{BYTE_DOTS}={way}") if way else chosen


def with_standard(options: tuple[str, ...], standard: str) -> tuple[str, ...]:
    """Build options with another version of OpenCL C."""
    return tuple(standard if o.startswith("-cl-std=") else o for o in options)


class Session:
    """The context and the in-order, profiling queue of one device; use it in a `with`.

    `options` are passed to the driver's compiler with each source.

    Raises DeviceRefused if this machine does not have the device, or its driver gives no context.
    """

    def __init__(self, device: Device, options: tuple[str, ...] = BUILD_OPTIONS) -> None:
        check_attached(device)
        self.device = device
        self.options = options
        self._open = OpenDevice.of(device, handle_of(device))
        self._loaded: weakref.WeakSet[Loaded] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the device memory of everything that was loaded."""
        for loaded in tuple(self._loaded):
            loaded.close()

    def room(self) -> Room | None:
        """Memory for modules that are loaded one after another; None if it gains nothing."""
        return Room(self._open) if self.device.type == "CPU" else None

    def load(
        self, module: Module, *, binary: Binary | None = None, room: Room | None = None
    ) -> Loaded:
        """Build a module, or load its binary.

        No device memory is allocated yet; later it is taken from `room`, if given.

        If the driver rejects a binary, the module is rebuilt, and the log says so. Raises
        BuildFailed if the driver refuses the source, DeviceRefused if the module needs more memory
        or larger work-groups than the device has.
        """
        self._check(module)
        program, seconds, log = self._program(module, binary)
        loaded = self._made(module, program, seconds, log, room)
        self._loaded.add(loaded)
        return loaded

    @property
    def opened(self) -> OpenDevice:
        """The device with its context and queue."""
        return self._open

    def built(self, module: Module) -> Any:
        """The built program of a module. Raises what `load` raises."""
        self._check(module)
        return self._program(module, None)[0]

    def kernels(
        self, module: Module, program: Any, launches: Sequence[Launch]
    ) -> dict[Launch, cl.Kernel]:
        """New kernels of a built program, for launches; refused if the device cannot run one."""
        kernels = {launch: _kernel(program, launch.function) for launch in launches}
        for launch, kernel in kernels.items():
            self._check_launch(module, launch, kernel)
        return kernels

    def binary(self, module: Module) -> Binary:
        """The driver's binary of a module, for another session of the same device to load.

        Raises what `load` raises, except for errors that depend on built kernels.
        """
        self._check(module)
        program, seconds, log = self._program(module, None)
        try:
            (code,) = program.get_info(cl.program_info.BINARIES)
        except cl.Error:  # the driver does not return it: `load` rebuilds, and says so
            code = b""
        return Binary(bytes(code), seconds, log)

    def _check(self, module: Module) -> None:
        """Refuse a module that is known to fail before it is built."""
        check_module(module)
        check_extensions(module.name, module.extensions, self.device)
        check_memory(module, self.device)
        check_images(module, self.device)

    def _program(self, module: Module, binary: Binary | None) -> tuple[Any, float, str]:
        """A module's program, the seconds that the driver took for its source, and the log."""
        note = ""
        if binary is not None:
            program = self._taken(binary)
            if program is not None:
                return program, binary.seconds, binary.log
            note = "rebuilt, as the driver rejected its own earlier binary\n"
        start = time.perf_counter()
        program = self._build(module)
        seconds = time.perf_counter() - start
        log = self._log(program)
        return program, seconds, f"{note}{log}".strip()

    # `cl.Program` would cache binaries on disk, add options from the environment, and leave a file
    # behind for each failure; the class below it, `cl._Program`, does none of that.

    def _taken(self, binary: Binary) -> Any:
        """The program of a binary; None if the driver rejects it."""
        if not binary.code:
            return None
        try:
            program: Any = cl._Program(self._open.context, [self._open.handle], [binary.code])  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
            self._finish(program, self.options)
        except cl.Error:
            return None
        return program

    def _build(self, module: Module) -> Any:
        """The program of a module's source."""
        options = options_of(module, self.device, self.options)
        program: Any = cl._Program(self._open.context, module.source)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        try:
            self._finish(program, options)
        except cl.Error as error:
            source = "\n".join(
                f"{number:4}  {line}" for number, line in enumerate(module.source.split("\n"), 1)
            )
            raise BuildFailed(
                f"The driver of {self.device.name} ({self.device.platform}) cannot compile "
                f"{module.name} with {' '.join(options)}: {reason(error)}.",
                source,
                self._log(program).strip(),
            ) from error
        return program

    def _finish(self, program: Any, options: tuple[str, ...]) -> None:
        """Have the driver build a program; its warnings are in the log."""
        with WARNED, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program.build(" ".join(options).encode(), [self._open.handle])

    def _log(self, program: Any) -> str:
        """The driver's output when it built a program."""
        return str(program.get_build_info(self._open.handle, cl.program_build_info.LOG))

    def _made(
        self, module: Module, program: Any, seconds: float, log: str, room: Room | None = None
    ) -> Loaded:
        """A module with the kernels of a built program; refused if the device cannot run one."""
        kernels = self.kernels(module, program, module.launches)
        memory = Allocations(self._open, module, room)
        launcher = Launcher(self._open, module, kernels, memory)
        return Loaded(self._open, module, memory, launcher, seconds, log)

    def _check_launch(self, module: Module, launch: Launch, kernel: cl.Kernel) -> None:
        """Refuse a launch that the device cannot run, by the driver's figures for the kernel.

        The largest work-group that the driver reports does not count for a kernel that was compiled
        for the launch's own: NVIDIA's driver (580.159) rounds it down to a power of two. If such a
        kernel cannot run, its launch fails.
        """
        with refusal(self.device, f"to describe kernel {launch.function} of {module.name}"):
            info = cl.kernel_work_group_info
            most = kernel.get_work_group_info(info.WORK_GROUP_SIZE, self._open.handle)
            local = kernel.get_work_group_info(info.LOCAL_MEM_SIZE, self._open.handle)
            made_for = kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, self._open.handle)
        if tuple(made_for) == launch.local_size:
            most = max(most, min(math.prod(made_for), self.device.max_work_group_size))
        check_launch(module, launch, self.device, group=most, local=local)


def _kernel(program: Any, function: str) -> cl.Kernel:
    try:
        return cl.Kernel(program, function)
    except cl.Error as error:
        raise InternalError(
            f"a launch names the kernel {function}, which the source does not have: {reason(error)}"
        ) from error

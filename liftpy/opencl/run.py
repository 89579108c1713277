# pyright: reportPossiblyUnboundVariable=false
# (`cl` is bound wherever a device was found.)
"""Devices, builds, launches and timing: the only module that imports pyopencl.

A `Session` is one device's context and queue; `Session.load` builds a `Module`; `Loaded.run`
takes numpy arrays and returns one. Times are those of device events, in nanoseconds.
"""

from __future__ import annotations

import functools
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from liftpy.constraints.device import PROFILE, Device, Kind, check_attached, check_extensions
from liftpy.constraints.profile import profile, profiles
from liftpy.errors import (
    ArgumentRefused,
    BuildFailed,
    DeviceRefused,
    InternalError,
    StrayWrite,
    UnknownName,
)
from liftpy.ir.types import EXTENSIONS
from liftpy.opencl import guards, runtimes
from liftpy.opencl.arguments import (
    DTYPES,
    POISON,
    check_launch,
    check_memory,
    check_module,
    check_times,
    checked,
    overwritten,
    parameters,
    spell,
    touched_buffers,
)
from liftpy.opencl.kernel import Binary, Buffer, Launch, Module, Names, Phase, Role

_REGISTRATION = runtimes.register()  # before the ICD loader is used, see liftpy/opencl/runtimes.py
try:
    import pyopencl as cl
except ImportError as failure:  # no ICD loader, or a broken one: said when a device is asked for
    _no_loader: str | None = f"pyopencl cannot be imported: {failure}."
else:
    _no_loader = None

BUILD_OPTIONS = ("-cl-std=CL1.2", "-cl-mad-enable", "-cl-no-signed-zeros")
"""How every kernel is built, on every device.

Contraction to fused multiply-adds is allowed and zeros lose their sign; sums are not reassociated,
and NaN and infinity stay what they are (so that poison shows). A result differs from another
device's by rounding only.
"""

HOW_TO_GET_A_DEVICE = (
    "Install an OpenCL runtime: `pip install 'liftpy[cpu]'` on x86-64 (no root needed), "
    "Debian's `pocl-opencl-icd` on other processors, or the driver of the GPU's vendor."
)

# A selector that is one of these words means the runtime, not a processor of that make.
_RUNTIMES = {
    "intel": "intel(r) opencl",
    "pocl": "portable computing language",
    "oclgrind": "oclgrind",
}

_REMEDIES = {
    "MEM_OBJECT_ALLOCATION_FAILURE": "Choose a candidate or a problem with smaller buffers.",
    "OUT_OF_HOST_MEMORY": "Choose a candidate or a problem with smaller buffers.",
    "OUT_OF_RESOURCES": "Choose smaller work-groups, less local memory or smaller buffers.",
    "INVALID_WORK_GROUP_SIZE": "Choose a local size that the device allows and that divides the "
    "global size.",
    "INVALID_WORK_ITEM_SIZE": "Choose a local size within the device's limit in each dimension.",
}


# --- devices --------------------------------------------------------------------------------------


def devices() -> tuple[Device, ...]:
    """The OpenCL devices of this machine, in an order that does not change.

    GPUs first, then accelerators, then processors (Intel's runtime before the others), simulators
    (Oclgrind) last. Empty if there is none; `find_device` then says what to install.
    """
    return tuple(device for device, _ in _found()[0])


def device_notes() -> tuple[str, ...]:
    """Sentences about runtimes that are installed and cannot be used."""
    return _found()[1]


def find_device(selector: str | None = None) -> Device:
    """The device that a selector names.

    None is the first device, a number the one with that index in `devices()`, and anything else
    a part of "PLATFORM DEVICE TYPE" in any case: "portable", "nvidia", "cpu". The words "intel",
    "pocl" and "oclgrind" mean these runtimes. "profile:NAME" is a device that is not attached
    (liftpy/constraints/profile.py): nothing runs on it.

    Raises DeviceRefused if there is no device at all, UnknownName if none fits.
    """
    if selector is not None and selector.startswith(PROFILE):
        return profile(selector.removeprefix(PROFILE)).device
    known, notes = devices(), device_notes()
    if not known:
        raise DeviceRefused(" ".join(("there is no OpenCL device.", *notes, HOW_TO_GET_A_DEVICE)))
    if selector is None:
        return known[0]
    fitting = those_named(selector, known)
    if not fitting:
        listing = [f"  {index}  {d.platform}: {d.name}" for index, d in enumerate(known)]
        refused = f"there is no device '{selector}'; name one by its number or a part of its name:"
        word = selector.casefold().strip()
        named = bool(word) and not word.isdecimal()
        found = [f"{PROFILE}{p.name}" for p in profiles() if named and word in p.name]
        hint = [f"or, for its limits alone, {' or '.join(found)}"] if found else []
        raise UnknownName("\n".join((refused, *listing, *hint, *notes)))
    return fitting[0]


def those_named(selector: str, known: Sequence[Device]) -> Sequence[Device]:
    """Of some devices those that a selector names: by their number, or a part of their name."""
    if selector.isdecimal():
        return known[int(selector) : int(selector) + 1]
    return tuple(device for device in known if _fits(device, selector.casefold().strip()))


def _fits(device: Device, word: str) -> bool:
    if word in _RUNTIMES:
        return _RUNTIMES[word] in device.platform.casefold()
    return bool(word) and word in f"{device.platform} {device.name} {device.type}".casefold()


@functools.cache
def _found() -> tuple[tuple[tuple[Device, cl.Device], ...], tuple[str, ...]]:
    """Devices with their handles, in order, and notes on what cannot be used."""
    notes = list(_REGISTRATION.notes)
    if _no_loader is not None:
        return (), (*notes, _no_loader)
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        if error.code != cl.status_code.PLATFORM_NOT_FOUND_KHR:
            notes.append(f"The OpenCL loader failed: {_reason(error)}.")
        return (), tuple(notes)
    handles: list[tuple[Device, cl.Device]] = []
    for platform in platforms:
        try:
            handles += [(_describe(platform, handle), handle) for handle in platform.get_devices()]
        except cl.Error as error:
            notes.append(f"The platform {platform.name.strip()} failed: {_reason(error)}.")
    handles.sort(key=lambda pair: _rank(pair[0]))
    return tuple(_numbered(handles)), tuple(notes)


def _describe(platform: cl.Platform, handle: cl.Device) -> Device:
    sizes = tuple(int(size) for size in handle.max_work_item_sizes[:3])
    return Device(
        name=handle.name.strip(),
        vendor=handle.vendor.strip(),
        platform=platform.name.strip(),
        driver_version=handle.driver_version.strip(),
        opencl_c=handle.opencl_c_version.strip(),
        type=_kind(handle.type),
        compute_units=handle.max_compute_units,
        max_work_group_size=handle.max_work_group_size,
        max_work_item_sizes=(sizes[0], sizes[1], sizes[2]),
        local_memory=handle.local_mem_size,
        largest_buffer=handle.max_mem_alloc_size,
        global_memory=handle.global_mem_size,
        vector_width=handle.native_vector_width_float,  # preferred is 1 where it vectorises itself
        extensions=tuple(e for e in EXTENSIONS.values() if e in handle.extensions.split()),
    )


def _kind(bits: int) -> Kind:
    """The type of a device; a simulator, which claims every type, counts as a processor."""
    if bits & cl.device_type.CPU:
        return "CPU"
    return "GPU" if bits & cl.device_type.GPU else "ACCELERATOR"


def _rank(device: Device) -> tuple[int, bool, str, str, str]:
    """Where a device stands in the order; the loader's own order is that of a directory."""
    kind = {"GPU": 0, "ACCELERATOR": 1, "CPU": 2}[device.type]
    rank = 3 if _fits(device, "oclgrind") else kind
    return rank, not _fits(device, "intel"), device.platform, device.name, device.driver_version


def _numbered(
    handles: Iterable[tuple[Device, cl.Device]],
) -> Iterator[tuple[Device, cl.Device]]:
    """Gives equal devices their ordinals."""
    seen: Counter[str] = Counter()
    for device, handle in handles:
        yield replace(device, ordinal=seen[device.fingerprint]), handle
        seen[device.fingerprint] += 1


def _reason(error: cl.Error) -> str:
    return f"{error.routine} returned {cl.status_code.to_string(error.code)}"


@contextmanager
def _refusal(device: Device, of: str) -> Generator[None]:
    """Turns an OpenCL error into the sentence that the device refused something."""
    try:
        yield
    except cl.Error as error:
        remedy = _REMEDIES.get(cl.status_code.to_string(error.code), "")
        raise DeviceRefused(
            f"{device.name} ({device.platform}) refused {of}: {_reason(error)}. {remedy}".rstrip()
        ) from error


# --- sessions -------------------------------------------------------------------------------------


class Session:
    """The context and the in-order, profiling queue of one device; use it in a `with`.

    Raises DeviceRefused if this machine does not have the device, or its driver gives no context.
    """

    def __init__(self, device: Device) -> None:
        check_attached(device)
        self.device = device
        wanted = (device.fingerprint, device.ordinal)
        handle = next((h for d, h in _found()[0] if (d.fingerprint, d.ordinal) == wanted), None)
        if handle is None:
            here = ", ".join(f"{d.platform}: {d.name}" for d in devices()) or "none"
            raise DeviceRefused(
                f"This machine has no device {device.platform}: {device.name} with driver "
                f"{device.driver_version}; it has: {here}. {HOW_TO_GET_A_DEVICE}"
            )
        self._handle = handle
        with _refusal(device, "a context"):
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(
                self._context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
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
        """Releases the device memory of everything that was loaded."""
        for loaded in tuple(self._loaded):
            loaded.close()

    def room(self) -> Room | None:
        """Memory for modules that are loaded one after another; None where nothing is gained."""
        return Room(self._context, self.device) if self.device.type == "CPU" else None

    def load(
        self, module: Module, *, binary: Binary | None = None, room: Room | None = None
    ) -> Loaded:
        """Builds a module, or takes what was built of it.

        No device memory is taken yet; then it is taken from `room`, if given.

        A binary that the driver does not take is built anew, and the log says so. Raises
        BuildFailed if the driver refuses the source, DeviceRefused if the module asks for more
        memory or larger work-groups than the device has.
        """
        self._check(module)
        program, seconds, log = self._program(module, binary)
        for launch in module.launches:
            self._check_launch(module, launch, _kernel(program, launch.function))
        loaded = self._made(module, program, seconds, log)
        loaded.room = room
        self._loaded.add(loaded)
        return loaded

    def _made(self, module: Module, program: Any, seconds: float, log: str) -> Loaded:
        """A module whose kernels a built program has."""
        kernels = {x: _kernel(program, x.function) for x in module.launches}
        alignment = self._handle.mem_base_addr_align // 8  # OpenCL gives it in bits
        return Loaded(
            self.device, alignment, self._context, self._queue, module, kernels, seconds, log
        )

    def binary(self, module: Module) -> Binary:
        """What the driver makes of a module, for another session of the same device to load.

        Raises what `load` raises, except for what is known of built kernels only.
        """
        self._check(module)
        program, seconds, log = self._program(module, None)
        try:
            (code,) = program.get_info(cl.program_info.BINARIES)
        except cl.Error:  # it keeps it to itself: `load` builds anew, and says so
            code = b""
        return Binary(bytes(code), seconds, log)

    def _check(self, module: Module) -> None:
        """Refuses what can be known to fail before it is built."""
        check_module(module)
        check_extensions(module.name, module.extensions, self.device)
        check_memory(module, self.device)

    def _program(self, module: Module, binary: Binary | None) -> tuple[Any, float, str]:
        """A module's program, the seconds that its source took the driver, and what it wrote."""
        note = ""
        if binary is not None:
            program = self._taken(binary)
            if program is not None:
                return program, binary.seconds, binary.log
            note = "built anew, as the driver did not take what it had built ahead\n"
        start = time.perf_counter()
        program = self._build(module)
        seconds = time.perf_counter() - start
        log = str(program.get_build_info(self._handle, cl.program_build_info.LOG))
        return program, seconds, f"{note}{log}".strip()

    def _taken(self, binary: Binary) -> Any:
        """The program of a binary; None if the driver does not take it."""
        if not binary.code:
            return None
        try:
            program: Any = cl._Program(self._context, [self._handle], [binary.code])  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program.build(" ".join(BUILD_OPTIONS).encode(), [self._handle])
        except cl.Error:
            return None
        return program

    def _build(self, module: Module) -> Any:
        # `cl.Program` would keep binaries in a cache on disk, add options from the environment,
        # and leave a file behind for each failure; the class below it does none of that.
        program: Any = cl._Program(self._context, module.source)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program.build(" ".join(BUILD_OPTIONS).encode(), [self._handle])
        except cl.Error as error:
            log = program.get_build_info(self._handle, cl.program_build_info.LOG)
            source = "\n".join(
                f"{number:4}  {line}" for number, line in enumerate(module.source.split("\n"), 1)
            )
            raise BuildFailed(
                f"The driver of {self.device.name} ({self.device.platform}) does not compile "
                f"{module.name} with {' '.join(BUILD_OPTIONS)}: {_reason(error)}.",
                source,
                str(log).strip(),
            ) from error
        return program

    def _check_launch(self, module: Module, launch: Launch, kernel: cl.Kernel) -> None:
        """Refuses a launch that the device cannot hold, by what the driver says of the kernel."""
        with _refusal(self.device, f"to describe kernel {launch.function} of {module.name}"):
            info = cl.kernel_work_group_info
            most = kernel.get_work_group_info(info.WORK_GROUP_SIZE, self._handle)
            local = kernel.get_work_group_info(info.LOCAL_MEM_SIZE, self._handle)
        check_launch(module, launch, self.device, group=most, local=local)


def _kernel(program: Any, function: str) -> cl.Kernel:
    try:
        return cl.Kernel(program, function)
    except cl.Error as error:
        raise InternalError(
            f"a launch names the kernel {function}, which the source does not have: "
            f"{_reason(error)}"
        ) from error


# --- memory ---------------------------------------------------------------------------------------

PAGE = 4096
"""Buffers in a room begin at multiples of so many bytes, as large ones do that are alone."""

KEPT = 4
"""A room keeps what a module left if that is at most this part of the device's memory."""


class Room:
    """Memory that modules are given one after another: one at a time is in it.

    A processor's memory is the system's, which finds a page for each first touch. That takes longer
    than most kernels work on it. So pages that were touched are kept for the next module, and what
    they hold is unspecified as it always was: checked runs fill it.
    """

    def __init__(self, context: cl.Context, device: Device) -> None:
        self._context = context
        self._largest = device.largest_buffer
        self._most = device.global_memory // KEPT
        self._held: cl.Buffer | None = None

    @property
    def held(self) -> int:
        """Bytes that it has now."""
        return 0 if self._held is None else int(self._held.size)

    def take(self, size: int) -> cl.Buffer | None:
        """So many bytes or more, for the next module; None if the device has no such buffer.

        Nothing is held beside what is given. Who asks for the same again has the same again.
        """
        if self._held is not None and self.held != size and not size < self.held <= self._most:
            self._held.release()
            self._held = None
        if self._held is None and size <= self._largest:
            try:
                self._held = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size)
            except cl.MemoryError:  # its pieces, of which not all live at a time, may fit
                return None
        return self._held


# --- loaded modules -------------------------------------------------------------------------------


class Loaded:
    """A module built for a device, with its device memory. `Session.load` makes it.

    `created` lists every (slot, bytes) that was ever allocated, in order, less the guard zones;
    `prepare_ns` is the device time of the last prepare phase; `build_seconds` is the
    time that the driver took to build the program (a driver may put work off to the first launch),
    and `build_log` what it wrote.

    A run is *checked* with `poison=True` in `set_constants`: everything that it should write is
    filled with NaN before, every allocation has guard zones, and these and the buffers that kernels
    may only read are looked at after every launch (liftpy/opencl/guards.py). `profile` goes over to
    allocations without zones.
    """

    def __init__(
        self,
        device: Device,
        alignment: int,
        context: cl.Context,
        queue: cl.CommandQueue,
        module: Module,
        kernels: Mapping[Launch, cl.Kernel],
        build_seconds: float,
        build_log: str,
    ) -> None:
        self.module = module
        self.build_seconds = build_seconds
        self.build_log = build_log
        self.prepare_ns = 0
        self.created: list[tuple[str, int]] = []
        self._device = device
        self._alignment = alignment
        self._context = context
        self._queue = queue
        self._kernels = kernels
        self._live: dict[str, cl.Buffer] = {}
        self._zones: dict[str, tuple[cl.Buffer, int, int]] = {}  # the whole, where, bytes of a zone
        self._armed: set[Launch] = set()  # whose kernels have their arguments
        self._checking = False
        self._constants: dict[str, np.ndarray] = {}
        self._inputs: dict[str, np.ndarray] | None = None
        self._prepared = False
        self._sizes = module.slots()
        self.room: Room | None = None
        self._ran: tuple[list[int], int] = [], 0
        self._asked = False  # the room, which gives all at once or nothing
        self._given: cl.Buffer | None = None  # by it
        self._used = 0  # bytes of it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the device allocations that live now; after `run`, those that a run needs.

        Guard zones are not the module's and do not count.
        """
        return sum(int(buffer.size) for buffer in self._live.values())

    def set_constants(self, arrays: Mapping[str, np.ndarray], *, poison: bool = False) -> None:
        """Uploads the constants and runs the prepare phase; what no run reads is then released.

        With `poison` this and the runs that follow are checked.
        Raises ArgumentRefused for arrays that do not fit, DeviceRefused if the device fails,
        StrayWrite if a checked kernel wrote where it must not.
        """
        given = checked(self.module, "constant", arrays)
        self.close()
        self._constants = given
        self._checking = poison
        if poison:
            self._poison("prepare", {"packed", "temporary"})
        touched = touched_buffers(self.module, "prepare") | touched_buffers(self.module, "run")
        self._upload({name: array for name, array in given.items() if name in touched})
        self.prepare_ns = sum(self._execute("prepare"))
        kept = {self.module.buffer(name).slot for name in touched_buffers(self.module, "run")}
        for slot in self._live.keys() - kept:
            self._release(slot)
        self._prepared = True

    def run(self, arrays: Mapping[str, np.ndarray], *, poison: bool = False) -> Any:
        """Uploads the inputs, runs the launches of the run phase and returns the result.

        That is an array, or a tuple of them as the program's type has tuples.

        With `poison` the temporaries and the output are filled with NaN (integers with 0x7f
        bytes) before, so that an element nobody writes shows; without it they keep what they had,
        which under Oclgrind is "uninitialised" in the first run.

        Raises ArgumentRefused for arrays that do not fit or constants that were not set,
        DeviceRefused if the device fails, StrayWrite if a checked kernel wrote where it must not.
        """
        given = checked(self.module, "input", arrays)
        self._prepare_once(poison=poison)
        if poison:
            self._poison("run", {"temporary", "output"})
        self._upload(given)
        self._inputs = given
        self._ran = self._execute_timed()
        return self._fetch(self.module.result)

    def _fetch(self, names: Names) -> Any:
        """A result on the host."""
        if not isinstance(names, str):
            return tuple(self._fetch(part) for part in names)
        result = self.module.buffer(names)
        output = np.empty(result.shape, DTYPES[result.scalar])
        with _refusal(self._device, f"to copy {result.name} of {self.module.name} to the host"):
            cl.enqueue_copy(self._queue, output, self._buffer(result))
        return output

    def profile(self, repeats: int, warmup: int) -> list[list[int]]:
        """Device nanoseconds of each run-phase launch: `repeats` rows, one column a launch.

        As `timed`, without the time on the host.
        """
        return [row for row, _ in self.timed(repeats, warmup)]

    def timed(self, repeats: int, warmup: int) -> list[tuple[list[int], int]]:
        """For each of `repeats` runs: device nanoseconds of each launch, and nanoseconds in all.

        The latter are the host's, from before the first launch until the last one is over. Runs on
        the inputs of the last `run`, after `warmup` runs that are not counted. Uploads are
        no part of the times. After a checked run the memory is allocated anew, without zones, and
        prepared again. Raises ArgumentRefused if there was no `run`, ClockRefused for times that
        cannot be.
        """
        if self._inputs is None:
            raise ArgumentRefused(
                f"{self.module.name} cannot be profiled before it has inputs; call run() first."
            )
        if self._checking:
            inputs = self._inputs
            self.set_constants(self._constants)
            self._upload(inputs)
            self._inputs = inputs
        again = {name: self._inputs[name] for name in overwritten(self.module)}
        launches = [launch for launch in self.module.launches if launch.phase == "run"]
        armed = [(self._kernel(x), x.global_size, x.local_size) for x in launches]
        rows: list[tuple[list[int], int]] = []
        for _ in range(warmup + repeats):
            self._upload(again)
            self._queue.finish()
            # After a kernel the caches hold nothing of the host's code, so each line of it here
            # takes microseconds: the clock stands around no more than there has to be.
            with _refusal(self._device, f"a run of {self.module.name}"):
                start = time.perf_counter_ns()
                events = [
                    cl.enqueue_nd_range_kernel(self._queue, kernel, size, group)
                    for kernel, size, group in armed
                ]
                self._queue.finish()
                taken = time.perf_counter_ns() - start
                rows.append(([int(e.profile.end - e.profile.start) for e in events], taken))
            self._check_times(*rows[-1])
        return rows[warmup:]

    @property
    def run_ns(self) -> tuple[int, ...]:
        """Device nanoseconds of each run-phase launch of the last `run`.

        Raises ClockRefused for times that cannot be.
        """
        self._check_times(*self._ran)
        return tuple(self._ran[0])

    def _execute_timed(self) -> tuple[list[int], int]:
        """Runs the run phase; device nanoseconds of each launch, and the host's in all."""
        self._queue.finish()
        start = time.perf_counter_ns()
        row = self._execute("run")
        return row, time.perf_counter_ns() - start

    def _check_times(self, row: list[int], taken: int) -> None:
        launches = [launch for launch in self.module.launches if launch.phase == "run"]
        check_times(self.module, self._device, launches, row, taken)

    def close(self) -> None:
        """Releases the device memory; the constants have to be set again."""
        for slot in tuple(self._live):
            self._release(slot)
        self._asked, self._given, self._used = False, None, 0
        self._inputs = None
        self._prepared = False

    def _release(self, slot: str) -> None:
        self._armed.clear()
        self._live.pop(slot).release()
        whole = self._zones.pop(slot)[0] if slot in self._zones else None
        if whole is not None and whole is not self._given:
            whole.release()

    def _prepare_once(self, *, poison: bool) -> None:
        if self._prepared:
            return
        constants = [b.name for b in parameters(self.module, "constant")]
        if constants:
            raise ArgumentRefused(
                f"{self.module.name} has constants that were not set: {', '.join(constants)}; "
                "call set_constants() before run()."
            )
        self.set_constants({}, poison=poison)

    def _buffer(self, buffer: Buffer) -> cl.Buffer:
        """The device allocation that a buffer lives in, created when first needed.

        The only place where device memory is asked for.
        """
        if buffer.slot not in self._live:
            size = self._sizes[buffer.slot]
            self.created.append((buffer.slot, size))
            with _refusal(self._device, f"{size} bytes for {buffer.name} of {self.module.name}"):
                self._live[buffer.slot] = self._allocate(buffer.slot, size)
        return self._live[buffer.slot]

    def _allocate(self, slot: str, size: int) -> cl.Buffer:
        """Device memory; in a checked run the middle of a larger piece, with zones around it."""
        zone = self._zone(size) if self._checking else 0
        whole, start = self._piece(size + 2 * zone)
        if zone:
            self._zones[slot] = whole, start, zone
            for offset in (start, start + zone + size):
                cl.enqueue_fill_buffer(self._queue, whole, guards.FILL, offset, zone)
        elif whole is not self._given:
            return whole
        return whole.get_sub_region(start + zone, size)

    def _zone(self, size: int) -> int:
        return guards.zone(size, self._device.largest_buffer, self._alignment)

    def _piece(self, size: int) -> tuple[cl.Buffer, int]:
        """A buffer, and from which byte on so many are free in it."""
        if self.room is not None and not self._asked:
            self._asked = True
            whole = sum(self._stride(n + 2 * self._zone(n)) for n in self._sizes.values())
            self._given = self.room.take(whole)
        if self._given is None:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size), 0
        start, self._used = self._used, self._used + self._stride(size)
        return self._given, start

    def _stride(self, size: int) -> int:
        """Bytes from the beginning of a piece to that of the next."""
        unit = max(self._alignment, PAGE)
        return -(-size // unit) * unit

    def _upload(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            with _refusal(self._device, f"to copy {name} of {self.module.name} to the device"):
                cl.enqueue_copy(self._queue, self._buffer(self.module.buffer(name)), array)

    def _look(self, launch: Launch) -> None:
        """Refuses a launch that wrote into a guard zone, or into a buffer that is only read.

        Buffers that share their allocation with others are not looked into: they may be over.
        """
        stray = next(self._strays(launch), None)
        if stray is not None:
            raise StrayWrite(f"{self.module.name}: {stray.sentence}", stray.buffer, stray.first)

    def _strays(self, launch: Launch) -> Iterator[guards.Stray]:
        for slot, (whole, start, zone) in self._zones.items():
            size = self._sizes[slot]
            names = "/".join(b.name for b in self.module.buffers if b.slot == slot)
            for offset in (0, zone + size):
                bytes_there = np.empty(zone, np.uint8)
                cl.enqueue_copy(self._queue, bytes_there, whole, src_offset=start + offset)
                found = guards.changed(guards.FILL, bytes_there)
                if found is not None:
                    first, last = (offset - zone + k for k in found)
                    yield guards.Stray(launch.function, names, first, last, size)
        users = Counter(b.slot for b in self.module.buffers)
        for name in launch.arguments:
            buffer = self.module.buffer(name)
            if buffer.role in {"input", "constant"} and users[buffer.slot] == 1:
                array = (self._constants | (self._inputs or {}))[name]
                there = np.empty(array.nbytes, np.uint8)
                cl.enqueue_copy(self._queue, there, self._buffer(buffer))
                found = guards.changed(np.ascontiguousarray(array).view(np.uint8).ravel(), there)
                if found is not None:
                    yield guards.Stray(launch.function, name, *found, buffer.bytes)

    def _poison(self, phase: Phase, roles: set[Role]) -> None:
        for name in sorted(touched_buffers(self.module, phase)):
            buffer = self.module.buffer(name)
            if buffer.role in roles:
                with _refusal(self._device, f"to poison {name} of {self.module.name}"):
                    cl.enqueue_fill_buffer(
                        self._queue, self._buffer(buffer), POISON[buffer.scalar], 0, buffer.bytes
                    )

    def _execute(self, phase: Phase) -> list[int]:
        """Runs the launches of a phase to the end; nanoseconds of each."""
        launches = [launch for launch in self.module.launches if launch.phase == phase]
        if self._checking:
            return [self._checked_launch(launch) for launch in launches]
        events = [self._launch(launch) for launch in launches]
        return [self._time(x, event) for x, event in zip(launches, events, strict=True)]

    def _checked_launch(self, launch: Launch) -> int:
        """Runs a launch and looks where it wrote; its nanoseconds."""
        taken = self._time(launch, self._launch(launch))
        with _refusal(self._device, f"to copy what {launch.function} wrote to the host"):
            self._look(launch)
        return taken

    def _time(self, launch: Launch, event: cl.Event) -> int:
        """The nanoseconds of a launch, when it is over."""
        with _refusal(self._device, f"{spell(launch)} of {self.module.name}"):
            event.wait()
            return int(event.profile.end - event.profile.start)

    def _kernel(self, launch: Launch) -> cl.Kernel:
        """The kernel of a launch, with its arguments."""
        kernel = self._kernels[launch]
        if launch not in self._armed:
            buffers = [self._buffer(self.module.buffer(name)) for name in launch.arguments]
            with _refusal(self._device, f"the arguments of {spell(launch)} of {self.module.name}"):
                kernel.set_args(*buffers)
            self._armed.add(launch)
        return kernel

    def _launch(self, launch: Launch) -> cl.Event:
        kernel = self._kernel(launch)
        with _refusal(self._device, f"{spell(launch)} of {self.module.name}"):
            return cl.enqueue_nd_range_kernel(
                self._queue, kernel, launch.global_size, launch.local_size
            )

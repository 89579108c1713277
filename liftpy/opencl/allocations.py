"""The device memory of a loaded module: a buffer for each slot, separate or in a room.

In checked runs each buffer lies between guard zones (liftpy/opencl/guards.py). A buffer that
kernels read through an image is separate and has none: PoCL makes no image of a part of a buffer.
The compiler decides which buffers share a slot (liftpy/opencl/memory.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import numpy as np

from liftpy.opencl import guards
from liftpy.opencl.driver import OpenDevice, cl, refusal
from liftpy.opencl.images import imaged
from liftpy.opencl.kernel import WRITTEN, Buffer, Module

PAGE = 4096
"""Buffers in a room begin at multiples of this number of bytes, as large separate ones do."""

KEPT = 4
"""A room keeps the memory of a module if it is at most the device's memory divided by this."""


class Room:
    """Memory that modules use one after another, one at a time.

    A processor's memory is the system's, which finds a page for each first touch. That takes longer
    than most kernels work on it. So touched pages are kept for the next module. Their contents are
    unspecified, as in any allocation; checked runs fill them.
    """

    def __init__(self, on: OpenDevice) -> None:
        self._context = on.context
        self._largest = on.device.largest_buffer
        self._most = on.device.global_memory // KEPT
        self._held: cl.Buffer | None = None

    @property
    def held(self) -> int:
        """The bytes that the room holds now."""
        return 0 if self._held is None else int(self._held.size)

    def take(self, size: int) -> cl.Buffer | None:
        """At least this many bytes for the next module; None if the device has no such buffer.

        Nothing else is held. Repeating a request returns the same memory.
        """
        if self._held is not None and self.held != size and not size < self.held <= self._most:
            self._held.release()
            self._held = None
        if self._held is None and size <= self._largest:
            try:
                self._held = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size)
            except cl.MemoryError:  # its pieces may fit, because not all live at the same time
                return None
        return self._held


class Allocations:
    """The allocations of a module, one per slot, made when first needed; from a room, if given.

    `created` lists every (slot, bytes) that was ever allocated, in order. While `guarded` is set,
    allocations have guard zones, which do not belong to the module and are not counted.
    """

    def __init__(self, on: OpenDevice, module: Module, room: Room | None) -> None:
        self.created: list[tuple[str, int]] = []
        self.guarded = False
        self._device = on.device
        self._context = on.context
        self._queue = on.queue
        self._alignment = on.alignment
        self._module = module
        self._sizes = module.slots()
        self._alone = {buffer.slot for buffer in imaged(module)}  # not part of another buffer
        self._live: dict[str, cl.Buffer] = {}
        self._zones: dict[str, tuple[cl.Buffer, int, int]] = {}  # buffer, start, bytes of a zone
        self._smaller: dict[str, Buffer] = {}  # by slot: the live buffer, if smaller than the slot
        self._room = room
        self._asked = False  # whether the room was asked: it gives everything or nothing
        self._given: cl.Buffer | None = None  # by the room
        self._used = 0  # bytes of what it gave

    @property
    def bytes(self) -> int:
        """Bytes of the live allocations."""
        return sum(int(buffer.size) for buffer in self._live.values())

    def of(self, buffer: Buffer) -> cl.Buffer:
        """The allocation that holds a buffer, created when first needed.

        Device memory is requested only here.
        """
        if buffer.slot not in self._live:
            size = self._sizes[buffer.slot]
            self.created.append((buffer.slot, size))
            with refusal(self._device, f"{size} bytes for {buffer.name} of {self._module.name}"):
                self._live[buffer.slot] = self._allocate(buffer.slot, size)
        return self._live[buffer.slot]

    def passes_on(self, buffer: Buffer) -> bool:
        """Whether a buffer shares its allocation with others, and kernels write all of them."""
        sharing = [b.role in WRITTEN for b in self._module.buffers if b.slot == buffer.slot]
        return len(sharing) > 1 and all(sharing)

    def begin(self, buffer: Buffer) -> None:
        """Begin a buffer's lifetime; the bytes after it in its allocation become a guard zone."""
        there, rest = self.of(buffer), self._rest(buffer)
        self._smaller.pop(buffer.slot, None)
        if self.guarded and rest:
            cl.enqueue_fill_buffer(self._queue, there, guards.FILL, buffer.bytes, rest)
            self._smaller[buffer.slot] = buffer

    def _rest(self, buffer: Buffer) -> int:
        """The bytes that are checked after a buffer that is smaller than its allocation."""
        return min(self._sizes[buffer.slot] - buffer.bytes, guards.ZONE)

    def keep(self, slots: Container[str]) -> None:
        """Release all other allocations."""
        for slot in [slot for slot in self._live if slot not in slots]:
            self._live.pop(slot).release()
            self._smaller.pop(slot, None)
            whole = self._zones.pop(slot)[0] if slot in self._zones else None
            if whole is not None and whole is not self._given:
                whole.release()

    def close(self) -> None:
        """Release everything; memory from a room goes back to it."""
        self.keep(())
        self._asked, self._given, self._used = False, None, 0

    def strays(self, kernel: str) -> Iterator[guards.Stray]:
        """Yield where guard zones have changed; `kernel` is the one that ran last."""
        for buffer in self._smaller.values():
            bytes_there = np.empty(self._rest(buffer), np.uint8)
            cl.enqueue_copy(self._queue, bytes_there, self.of(buffer), src_offset=buffer.bytes)
            found = guards.changed(guards.FILL, bytes_there)
            if found is not None:
                first, last = (buffer.bytes + k for k in found)
                yield guards.Stray(kernel, buffer.name, first, last, buffer.bytes)
        for slot, (whole, start, zone) in self._zones.items():
            size = self._sizes[slot]
            names = "/".join(b.name for b in self._module.buffers if b.slot == slot)
            for offset in (0, zone + size):
                bytes_there = np.empty(zone, np.uint8)
                cl.enqueue_copy(self._queue, bytes_there, whole, src_offset=start + offset)
                found = guards.changed(guards.FILL, bytes_there)
                if found is not None:
                    first, last = (offset - zone + k for k in found)
                    yield guards.Stray(kernel, names, first, last, size)

    def _allocate(self, slot: str, size: int) -> cl.Buffer:
        """Allocate device memory; if guarded, the middle of a larger piece, with zones around."""
        if slot in self._alone:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size)
        zone = self._zone(size) if self.guarded else 0
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
        """A buffer, and the offset from which `size` bytes are free in it."""
        if self._room is not None and not self._asked:
            self._asked = True
            sizes = (size for slot, size in self._sizes.items() if slot not in self._alone)
            whole = sum(self._stride(n + 2 * self._zone(n)) for n in sizes)
            self._given = self._room.take(whole)
        if self._given is None:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size), 0
        start, self._used = self._used, self._used + self._stride(size)
        return self._given, start

    def _stride(self, size: int) -> int:
        """Bytes from the beginning of a piece to the beginning of the next one."""
        unit = max(self._alignment, PAGE)
        return -(-size // unit) * unit

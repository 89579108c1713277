"""The device memory of a loaded module: a buffer for each slot, alone or in a room that is kept.

In checked runs each lies between guard zones (liftpy/opencl/guards.py). Which buffers share a slot,
the compiler has said (liftpy/opencl/memory.py).
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import numpy as np

from liftpy.opencl import guards
from liftpy.opencl.driver import OpenDevice, cl, refusal
from liftpy.opencl.kernel import Buffer, Module

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

    def __init__(self, on: OpenDevice) -> None:
        self._context = on.context
        self._largest = on.device.largest_buffer
        self._most = on.device.global_memory // KEPT
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


class Allocations:
    """The allocations of a module, one a slot, made when first needed; from a room, if given.

    `created` lists every (slot, bytes) that was ever allocated, in order. While `guarded` is set,
    what is allocated has guard zones; these are not the module's, and count nowhere.
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
        self._live: dict[str, cl.Buffer] = {}
        self._zones: dict[str, tuple[cl.Buffer, int, int]] = {}  # the whole, where, bytes of a zone
        self._room = room
        self._asked = False  # the room, which gives all at once or nothing
        self._given: cl.Buffer | None = None  # by it
        self._used = 0  # bytes of it

    @property
    def bytes(self) -> int:
        """Bytes of the allocations that live now."""
        return sum(int(buffer.size) for buffer in self._live.values())

    def of(self, buffer: Buffer) -> cl.Buffer:
        """The allocation that a buffer lives in, created when first needed.

        The only place where device memory is asked for.
        """
        if buffer.slot not in self._live:
            size = self._sizes[buffer.slot]
            self.created.append((buffer.slot, size))
            with refusal(self._device, f"{size} bytes for {buffer.name} of {self._module.name}"):
                self._live[buffer.slot] = self._allocate(buffer.slot, size)
        return self._live[buffer.slot]

    def keep(self, slots: Container[str]) -> None:
        """Releases all others."""
        for slot in [slot for slot in self._live if slot not in slots]:
            self._live.pop(slot).release()
            whole = self._zones.pop(slot)[0] if slot in self._zones else None
            if whole is not None and whole is not self._given:
                whole.release()

    def close(self) -> None:
        """Releases all; what a room gave is the room's again."""
        self.keep(())
        self._asked, self._given, self._used = False, None, 0

    def strays(self, kernel: str) -> Iterator[guards.Stray]:
        """Where guard zones are not as they were; `kernel` is what ran last."""
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
        """Device memory; where it is guarded the middle of a larger piece, with zones around it."""
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
        """A buffer, and from which byte on so many are free in it."""
        if self._room is not None and not self._asked:
            self._asked = True
            whole = sum(self._stride(n + 2 * self._zone(n)) for n in self._sizes.values())
            self._given = self._room.take(whole)
        if self._given is None:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size=size), 0
        start, self._used = self._used, self._used + self._stride(size)
        return self._given, start

    def _stride(self, size: int) -> int:
        """Bytes from the beginning of a piece to that of the next."""
        unit = max(self._alignment, PAGE)
        return -(-size // unit) * unit

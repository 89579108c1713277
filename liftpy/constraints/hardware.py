"""The memory hierarchy and the arithmetic of a device: what models of time need to know of it.

Each figure is an optional key of a profile, beside the limits (`profile.py`), with its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

MEMORY = "memory"
"""The name of the level behind all caches."""


@dataclass(frozen=True)
class Hardware:
    """The caches of a device, the cost of an access to each, and what a compute unit computes.

    `cache_sizes` are the bytes of the caches, the first level first, and `cache_units` how many
    compute units share each. `cache_latencies` are the cycles of an access that each level after
    the first serves, memory last: as many as there are caches. `headroom` is the part of each cache
    that the data of a kernel may fill. A unit waits for `outstanding_misses` cache lines at a time.
    `clock` is in MHz; `flops_per_cycle` are those of one unit, in f32. `micro_kernel` is the number
    of windows and of filters of the BLAS's inner kernel; it concerns `liftpy.traffic.slicing` only.
    A launch takes `launch_ns`.

    The rest concern GPUs only. `subgroup` work-items of a group execute together; a unit holds at
    most `resident_items` work-items of `resident_groups` groups at a time, whose registers take at
    most `register_bytes`, and whose local memory at most `unit_local_memory`; a work-item has at
    most `item_register_bytes` of registers. A unit issues `instructions` of subgroups in a cycle.
    It loads or stores `load_bytes` in a cycle, of at most `line_lookups` cache lines; lines whose
    numbers have the same remainder by `line_lookups` are looked up one after the other. A value of
    local memory or the first cache arrives `load_latency` cycles later. A vector whose address is
    not known to be a multiple of its size is loaded `unaligned_bytes` at a time. A cache fetches
    `sector` bytes of a line at a time; memory transfers `memory_bandwidth` MB/s, in units of 10^6
    bytes.
    """

    cache_sizes: tuple[int, ...]
    cache_units: tuple[int, ...]
    cache_line: int
    cache_latencies: tuple[int, ...]
    headroom: tuple[float, ...]
    outstanding_misses: int
    vector_registers: int
    flops_per_cycle: int
    clock: int
    micro_kernel: tuple[int, int]
    launch_ns: int
    subgroup: int
    resident_items: int
    register_bytes: int
    load_bytes: int
    memory_bandwidth: int
    resident_groups: int
    unit_local_memory: int
    item_register_bytes: int
    instructions: int
    line_lookups: int
    load_latency: int
    unaligned_bytes: int
    sector: int
    sources: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    @classmethod
    def of(cls, values: Mapping[str, Any], sources: Mapping[str, str]) -> Hardware:
        """The hardware with these figures, as a profile has them."""
        made: dict[str, Any] = {
            k: tuple(values[k]) if k in EXAMPLES else values[k] for k in FIGURES
        }
        return cls(**made, sources=sources)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, from the first cache to memory: `L1`, `L2`, `memory`."""
        return (*(f"L{k + 1}" for k in range(len(self.cache_sizes))), MEMORY)

    def room(self, level: int) -> int:
        """The bytes of a cache that data may fill; `level` counts from 0."""
        return int(self.cache_sizes[level] * self.headroom[level])

    @property
    def assumed(self) -> list[str]:
        """The figures that were neither measured nor documented."""
        return [key for key, text in self.sources.items() if text.startswith("assumed")]

    def to_json(self) -> dict[str, Any]:
        """Each figure with its source, as in a profile."""
        values = asdict(self)
        return {key: {"value": values[key], "source": self.sources.get(key, "")} for key in FIGURES}


FIGURES = tuple(f.name for f in fields(Hardware) if f.name != "sources")
"""The keys of a profile that describe hardware."""

OF_GPUS = FIGURES[FIGURES.index("subgroup") :]
"""The figures that only the model of a GPU uses."""

EACH_CACHE = ("cache_sizes", "cache_units", "cache_latencies", "headroom")
"""The figures that have a value for each cache."""

EXAMPLES: dict[str, str] = {
    "cache_sizes": "[32768, 1048576]",
    "cache_units": "[1, 1]",
    "cache_latencies": "[14, 200]",
    "headroom": "[0.9, 0.9]",
    "micro_kernel": "[16, 24]",
}
"""Example values of the figures that are not one number."""

MOST_CACHES = 4


def is_figure(key: str, value: Any) -> bool:
    """Whether a value is valid for a figure."""
    if key not in EXAMPLES:
        return is_count(value)
    if not isinstance(value, list | tuple):
        return False
    many = len(value)
    if key == "micro_kernel":
        return many == 2 and all(map(is_count, value))
    each = is_part if key == "headroom" else is_count
    return 1 <= many <= MOST_CACHES and all(map(each, value))


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 1 to 2^63 - 1; `true` is not one."""
    return type(value) is int and 1 <= value < 2**63


def is_part(value: Any) -> bool:
    """Whether a value is above 0 and at most 1."""
    return type(value) in (int, float) and 0 < value <= 1


def wanted_figure(key: str) -> str:
    """A description of the values of a figure."""
    if key == "headroom":
        return f"1 to {MOST_CACHES} fractions above 0 and up to 1, one for each cache"
    if key == "micro_kernel":
        return "two whole numbers from 1 to 2^63 - 1"
    if key in EACH_CACHE:
        return f"1 to {MOST_CACHES} whole numbers from 1 to 2^63 - 1, one for each cache"
    return "a whole number from 1 to 2^63 - 1"

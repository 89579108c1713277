"""The workers of a dask cluster that a campaign requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

RESOURCE = "DEVICE"
"""The dask resource that a worker with a device offers: `--resources "DEVICE=1"`."""

PATIENCE = 30.0
AHEAD = 3
"""How many candidates per worker a campaign draws before it waits for outcomes."""


@dataclass(frozen=True)
class Workers:
    """The workers at a scheduler's address: `tcp://host:8786`, or `tls://...`.

    `device` is looked up on each worker that was started without a device. `mixed` allows different
    devices. A campaign starts when `expected` workers are connected, and continues as long as one
    is; `patience` is how long it waits for them, in seconds. `note` is called with messages, such
    as those about workers that are refused or lost.
    """

    address: str
    device: str | None = None
    mixed: bool = False
    expected: int = 1
    patience: float = PATIENCE
    note: Callable[[str], None] = lambda _: None

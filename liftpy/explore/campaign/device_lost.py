"""What is said when a campaign's device is gone, or a worker of it cannot be started any more."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from liftpy.errors import WorkerRefused
from liftpy.explore.campaign.store import Store


@contextmanager
def resumable(store: Store) -> Generator[None]:
    """Says what is stored, and how to go on, when no worker can be had."""
    try:
        yield
    except WorkerRefused as refusal:
        n = len(store.done())
        kept = "1 candidate is" if n == 1 else f"{n} candidates are"
        raise WorkerRefused(
            f"the campaign stopped: {refusal}\n{kept} stored in {store.path}; fix this, "
            "and repeat the command to continue"
        ) from refusal

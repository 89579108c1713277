"""The message when a campaign's device is lost, or its worker process cannot be restarted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from liftpy.errors import WorkerRefused
from liftpy.explore.campaign.store import Store


@contextmanager
def resumable(store: Store) -> Generator[None]:
    """Adds to WorkerRefused how much is stored, and how to resume."""
    try:
        yield
    except WorkerRefused as refusal:
        n = len(store.done())
        kept = "1 candidate is" if n == 1 else f"{n} candidates are"
        raise WorkerRefused(
            f"the campaign stopped: {refusal}\n{kept} stored in {store.path}; fix this, "
            "and repeat the command to continue"
        ) from refusal

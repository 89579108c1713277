"""The progress bar of a campaign."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from liftpy.cli.screen import console
from liftpy.explore.campaign import Progress
from liftpy.explore.report import counts_text, in_time

LABEL_WIDTH = 48


class CampaignBar:
    """How far a campaign is, the best so far, how often each outcome came; on a terminal only.

    It is drawn between measurements, never during one: on a processor it would take time from what
    is being timed.
    """

    def __init__(self, name: str, samples: int) -> None:
        screen = console(stderr=True)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            TextColumn("[bold]{task.fields[best]}[/]"),
            TextColumn("[dim]{task.fields[now]}[/]"),
            console=screen,
            auto_refresh=False,
            disable=not screen.is_terminal,
        )
        self._task = self._bar.add_task(name, total=samples, counts="", best="", now="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, now: Progress) -> None:
        """Draws it anew."""
        under_way = now.candidate is not None and now.outcome is None
        label = now.candidate.label[:LABEL_WIDTH] if now.candidate and under_way else ""
        self._bar.update(
            self._task,
            completed=min(now.done, now.samples),
            counts=counts_text(now.counts),
            best=f"best {in_time(now.best_ns)}" if now.best_ns is not None else "",
            now=escape(label),
            refresh=True,
        )

"""The live view of a campaign's progress on a terminal."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from liftpy.cli.pulse import MINUTE, Pulse, clock
from liftpy.cli.pulse import pulse as beating
from liftpy.cli.screen import console
from liftpy.explore.campaign.run import Progress
from liftpy.explore.measure.outcome import TIMED
from liftpy.explore.report.tables import COLOURS
from liftpy.explore.report.wording import in_time, short

BAR = 24  # characters
REASONS = 3  # the number of reasons shown, the most frequent ones


class CampaignView:
    """Shows progress, the best time, the size of the front, and outcomes with reasons.

    In a pipe or with NO_COLOR, it is a line every few seconds (liftpy/cli/pulse.py). On a terminal,
    it is drawn between measurements, never during one: on a CPU, drawing would slow down the timed
    kernels. Before the first measurement it shows the elapsed time and the name of the phase.
    """

    def __init__(
        self, name: str, samples: int, screen: Console | None = None, pulse: Pulse = beating
    ) -> None:
        screen = screen or console(stderr=True)
        self._name = name
        self._samples = samples
        self._shown = screen.is_terminal and not screen.no_color
        self._live = Live(console=screen, auto_refresh=False, transient=False)
        self._tried = 0
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._start = time.monotonic() if pulse.began is None else pulse.began
        self._now = Progress(0, samples, {})
        self._phase = ""
        self._pulse = pulse

    def __enter__(self) -> Self:
        self._pulse.doing = self.line
        if self._shown:
            self._pulse.erase()
            self._pulse.draw = self._tick
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pulse.doing = "ending"
        self._pulse.draw = lambda: None
        self._live.stop()

    def phase(self, doing: str) -> None:
        """Sets the name of the current phase, before or between measurements, and draws it."""
        self._phase = doing
        if self._shown and not self._tried:
            self._tick()

    def _tick(self) -> None:
        """Updates the elapsed time of a phase; does nothing while candidates are measured."""
        if self._phase and self._shown:
            self._live.update(self.drawn(self._now), refresh=True)

    def line(self) -> str:
        """The progress of the campaign, as one line."""
        now = self._now
        doing = self._phase or (now.under_way[0].label if now.under_way else "")
        best = [f"best {in_time(one.best_ns)}" for one in now.standings]
        counts = [f"{count} {kind}" for kind, count in now.counts.items()]
        stands = ", ".join([f"{self._name} {now.done}/{self._samples}", *counts, *best])
        return f"{stands}: {doing}" if doing else stands

    def __call__(self, now: Progress) -> None:
        """Updates the view."""
        self._now = now
        if now.under_way or now.outcome is not None:
            self._phase = ""
        if now.outcome is not None:
            self._tried += 1
            if now.outcome.kind not in TIMED:
                self._reasons[now.outcome.kind, short(now.outcome.reason)] += 1
        if self._shown:
            self._live.update(self.drawn(now), refresh=True)

    def drawn(self, now: Progress) -> RenderableType:
        """The content of the view."""
        seconds = time.monotonic() - self._start
        head = Table.grid(padding=(0, 2))
        head.add_row(
            f"[bold]{escape(self._name)}[/]",
            ProgressBar(total=self._samples, completed=min(now.done, self._samples), width=BAR),
            f"{now.done}/{self._samples}",
            clock(seconds),
            self._pace(now, seconds),
        )
        for one in now.standings:
            on = f" of {escape(one.device.label)}" if len(now.standings) > 1 else ""
            points = f"{one.front} on the front{on}"
            head.add_row("best", f"[bold]{in_time(one.best_ns)}[/]", "", "", points)
        outcomes = Table.grid(padding=(0, 2))
        for kind, count in now.counts.items():
            part = ProgressBar(total=max(1, now.done), completed=count, width=BAR)
            outcomes.add_row(f"[{COLOURS.get(kind, 'dim')}]{kind}[/]", part, str(count))
        why = [
            Text(f"{n} x {kind}: {reason}", style="dim", overflow="ellipsis", no_wrap=True)
            for (kind, reason), n in self._reasons.most_common(REASONS)
        ]
        label = self._phase or (now.under_way[0].label if now.under_way else "")
        return Group(
            head, outcomes, *why, Text(label, style="dim", overflow="ellipsis", no_wrap=True)
        )

    def _pace(self, now: Progress, seconds: float) -> str:
        """The candidates per minute, and the time left at this rate."""
        if not self._tried or seconds <= 0:
            return ""
        rate = self._tried / seconds
        left = max(0, self._samples - now.done) / rate
        return f"{MINUTE * rate:.0f} a minute, {clock(left)} left"

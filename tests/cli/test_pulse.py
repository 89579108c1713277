"""What a long command says: lines in a pipe; on a terminal the phase, from the first second."""

import io
import re
import sys
import time

from liftpy.cli import pulse as module
from liftpy.cli.progress import CampaignView
from liftpy.cli.pulse import Pulse, process_began
from liftpy.explore.campaign.run import Progress
from tests.processes import until


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_has_a_line_every_few_seconds(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(module, "LINES", 0.01)
    beating = Pulse()
    with beating.beating(time.monotonic() - 65):
        until(lambda: "0:01:05 starting\n" in sys.stderr.getvalue())
        beating.doing = lambda: "measuring"
        until(lambda: "measuring\n" in sys.stderr.getvalue())
    lines = sys.stderr.getvalue().splitlines()
    assert all(re.fullmatch(r"liftpy: 0:01:\d\d (starting|measuring)", line) for line in lines)


def test_a_terminal_has_the_phase_at_once_and_nothing_in_the_end(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Pulse().beating(time.monotonic()):
        assert sys.stderr.getvalue() == "\r\x1b[Kliftpy: 0:00:00 starting"
    assert sys.stderr.getvalue().endswith("\r\x1b[K")


def test_a_choice_says_what_it_does(liftpy, monkeypatch):
    monkeypatch.setattr(module, "LINES", 0.001)
    said = liftpy("choose", "tiny.lift", "--device", "profile:xeon-silver-4208")
    assert said.code == 0, said.err
    assert "deriving the program's forms" in said.err
    assert "modelling candidates" in said.err


def test_a_line_has_the_phase_or_what_is_measured():
    view = CampaignView("tiny", 8, pulse=Pulse())
    view.phase("evaluating the program's meaning")
    assert view.line() == "tiny 0/8: evaluating the program's meaning"
    view(Progress(3, 8, {"measured": 2, "wrong": 1}, under_way=()))
    assert view.line() == "tiny 3/8, 2 measured, 1 wrong: evaluating the program's meaning"


def test_a_process_began_before_its_modules():
    assert process_began() < time.monotonic()


def test_the_limit_of_a_command_counts_from_its_beginning(liftpy, monkeypatch):
    """What is loaded first is time of the limit: here it took an hour."""
    monkeypatch.setattr(module.pulse, "began", time.monotonic() - 3600)
    said = liftpy("explore", "tiny.lift", "-n", 2, "--time-limit", 3000)
    assert said.code == 3
    assert "the time limit of 3000 s (--time-limit) ended while deriving" in said.err

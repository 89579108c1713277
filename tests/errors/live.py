"""One case for each refusal of a campaign on a board: an answer of the board, or none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.boards.link import RUNNER, CommandResult, Link, Machine, built_here
from liftpy.boards.live import Board, BoardExecutor, BoardPool, Run, chosen
from liftpy.boards.results import FORMAT, ResultsReader
from liftpy.boards.transports import transport_of
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.distributed.sites import site_of
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.meaning import expected
from liftpy.explore.measure.measurer import Allowance, Limits
from liftpy.explore.measure.messages import Setup
from tests.errors.boards import printed, row

ADDRESS = "ssh:pi@board:2222"
MACHINE = Machine("1", (DEFAULT_DEVICE,))
VERSION = f"{RUNNER}\n# boot 1"


class Answering(Link):
    """A link to a board that gives these answers, one after another; an exception is raised."""

    def __init__(self, *answers: CommandResult | Exception, compiler: str | None = None) -> None:
        super().__init__(transport_of(ADDRESS), compiler)
        self.close()  # it copies nothing, and has no temporary files
        self.answers = list(answers)

    def call(self, command: str, seconds: float = 0) -> CommandResult:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def copy(self, name, files, target) -> None:
        """Copies nothing."""


FINE = CommandResult(0, "", "")


def describing(code: int, output: str, errors: str = "") -> None:
    Answering(FINE, FINE, CommandResult(code, output, errors)).machine()


def installing(asked: str, *more: CommandResult) -> None:
    Answering(FINE, CommandResult(1, "", ""), CommandResult(0, asked, ""), *more).machine()


class Said:
    """Lines of a board."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def line(self, seconds: float) -> str:
        return self.lines.pop(0)

    def said(self) -> str:
        return "board: the device is lost"

    def close(self) -> None:
        """Ends nothing."""


def pool(retries: int = 8) -> BoardPool:
    program = lp.parse("def double(xs: [12]f32) = xs |> map(x => x + x)")
    given, arrays = Inputs.of(program)
    wanted = expected(program, arrays, points=5, tolerance=0.1)
    on = BoardExecutor(Board(ADDRESS, retries=retries), Answering(), MACHINE, 0, DEFAULT_DEVICE, 1)
    text = "def double(xs: [12]f32) = xs |> map(x => x + x)"
    return BoardPool(on, Setup(text, DEFAULT_DEVICE, given, wanted), Limits(60.0), None)


def reading(text: str, times: int, *keys: str) -> None:
    """Reads lines of a board that was sent candidates with these keys."""
    made = pool()
    reader = ResultsReader(Path(ADDRESS), "", partial=True)
    sha = "0" * 64
    made._run = Run(dict.fromkeys(keys), sha, Allowance(60.0), Said(text), reader)
    for _ in range(times):
        made._step(made._run)


def from_file(text: str) -> Callable[[Path], object]:
    def run(folder: Path) -> None:
        (folder / "board.toml").write_text(text)
        transport_of("commands:board.toml")

    return run


def connecting(folder: Path) -> None:
    run = '["sh", "-c", "echo Connection refused >&2; exit 255; {command}"]'
    (folder / "board.toml").write_text(
        f'copy = ["cp", "{{from}}", "{{to}}"]\nrun = {run}\nfolder="a"'
    )
    with Board("commands:board.toml").connect(None, None):
        pass


def building_without_make(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder))
        built_here("cc")


OTHER = replace(DEFAULT_DEVICE, driver_version="9").to_json()
COPY, RUN = 'copy = ["cp", "{from}", "{to}"]\n', 'run = ["sh", "-c", "{command}"]\n'

CASES: dict[str, Callable[[Path], object]] = {
    "board_of_no_address": lambda _: transport_of("ssh:-oProxyCommand=x"),
    "board_file_that_is_no_toml": from_file("copy = "),
    "board_file_with_an_unknown_key": from_file("host = 3"),
    "board_file_without_a_place_for_the_command": from_file(COPY + 'run = ["ssh", "board"]'),
    "board_file_with_a_folder_of_odd_letters": from_file(COPY + RUN + 'folder = "/tmp/$(x)"'),
    "board_file_whose_streams_are_a_number": from_file(COPY + RUN + 'folder = "a"\nstreams = 1'),
    "board_file_that_runs_what_is_not_there": from_file(
        COPY + 'run = ["no-such-program", "{command}"]\nfolder = "a"'
    ),
    "board_whose_command_cannot_be_started": lambda _: replace(
        transport_of(ADDRESS), running=("no-such-program", "{command}")
    ).start("true", None),
    "board_with_a_full_disk": lambda _: Answering(CommandResult(1, "", "dd: no space"))._check_room(
        9, ""
    ),
    "board_without_a_folder": lambda _: Answering(
        CommandResult(1, "", "mkdir: no space")
    ).machine(),
    "board_whose_runner_cannot_be_started": lambda _: describing(126, "", "exec format error"),
    "board_without_a_driver": lambda _: describing(1, "", "board: no OpenCL platform"),
    "board_with_a_runner_of_another_version": lambda _: describing(0, "# liftpy-board 9"),
    "board_without_a_device": lambda _: describing(0, VERSION),
    "board_with_a_device_that_is_not_valid": lambda _: describing(0, f"{VERSION}\n# device {{}}"),
    "board_with_a_compiler_of_odd_letters": lambda _: installing("Linux x\ncompiler a;b"),
    "board_where_the_runner_cannot_be_built": lambda _: installing(
        "Linux x\ncompiler cc", CommandResult(2, "", "cc: no space")
    ),
    "board_without_a_compiler": lambda _: installing("Linux armv0"),
    "board_whose_data_cannot_be_marked": lambda _: Answering(
        CommandResult(1, "", ""), FINE, CommandResult(1, "", "")
    ).send_data("data-1", {}),
    "board_without_make_here": building_without_make,
    "board_whose_compiler_fails": lambda _: built_here("false"),
    "board_that_cannot_be_reached": connecting,
    "board_without_the_device": lambda _: chosen(ADDRESS, MACHINE, "mali", None),
    "board_that_fails_twice": lambda _: fault(pool()),
    "board_that_stays_away": lambda _: pool(0)._lost("Connection refused"),
    "board_with_an_unknown_host_key": lambda _: pool()._lost("Host key verification failed."),
    "board_that_prints_something_else": lambda _: reading("Welcome\n" * 101, 101),
    "board_with_a_row_of_no_candidate": lambda _: reading(printed(row()), 7),
    "board_that_names_no_bundle": lambda _: reading(f"{FORMAT}\n# begin abc", 2, "abc"),
    "board_of_another_device": lambda _: reading(printed(row(), device=OTHER), 4),
    "board_with_a_device_of_python": lambda _: site_of(
        DEFAULT_DEVICE, None, None, 1.0, Board(ADDRESS)
    ),
    "board_of_a_modelled_campaign": lambda _: site_of(
        None, None, None, 1.0, Board(ADDRESS), modelled=True
    ),
}


def fault(made: BoardPool) -> None:
    made._fault("its runner ended early, with code 1", "")
    made._fault("its runner ended early, with code 1", "board: the device is lost")

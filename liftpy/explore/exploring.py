"""A call of `explore`: what determines it, where it measures, and its result, a `Campaign`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from liftpy.constraints.device import Device
from liftpy.constraints.draw import Sampler
from liftpy.deadline import Deadline
from liftpy.errors import (
    ArgumentRefused,
    NothingMeasured,
    TimeUp,
    Unsatisfiable,
)
from liftpy.explore import search as searches
from liftpy.explore.campaign.borrowed import times_of
from liftpy.explore.campaign.campaign import Campaign, nothing_measured
from liftpy.explore.campaign.differences import setting
from liftpy.explore.campaign.environment import command_line, environment
from liftpy.explore.campaign.forms import DERIVING, Forms, Spaces
from liftpy.explore.campaign.identity import BOUND, identity_of
from liftpy.explore.campaign.reading import begun_in
from liftpy.explore.campaign.remeasure import remeasure
from liftpy.explore.campaign.rows import Call, Identity, Row
from liftpy.explore.campaign.run import CampaignRun, Progress
from liftpy.explore.campaign.store import Store
from liftpy.explore.distributed.sites import Remote, site_of
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.measure.check import TOLERANCE, nothing_compared
from liftpy.explore.measure.inputs import Inputs, require_inputs
from liftpy.explore.measure.meaning import POINTS, expected
from liftpy.explore.measure.measurer import Limits
from liftpy.explore.measure.messages import Setup
from liftpy.explore.measure.outcome import Outcome
from liftpy.explore.measure.pool import LocalPool
from liftpy.explore.measure.process import IdleProcesses
from liftpy.explore.one_candidate import candidate_in_space
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.given_points import (
    bank_asked,
    proofs_for,
)
from liftpy.explore.space.plainest import PLAIN, begun_with, each_once, plainest
from liftpy.explore.space.precision import within_error
from liftpy.explore.space.settings import Fixed, Settings
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of, whole_space
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.rewrite.forms import partitions
from liftpy.semantics.sizes import closed
from liftpy.semantics.storage import StorageLike, with_storage

SAMPLES = 100
DATABASE = Path("liftpy.db")
CANDIDATE_LIMIT = 60.0

DIRECT_FIRST = 3
"""How many direct candidates follow the first before forms by other algorithms are lowered."""


@entry("lp.explore")
def explore(  # noqa: PLR0913, PLR0915  one argument per setting, and all steps in order
    program: Program,
    samples: int = SAMPLES,
    seed: int = 0,
    db: Path | str = DATABASE,
    device: Device | str | None = None,
    *,
    families: Sequence[str] | None = None,
    memory_limit: int | None = None,
    max_error: float | None = None,
    winograd_points: str | Sequence[str] = (),
    time_limit: float | None = None,
    candidate_limit: float = CANDIDATE_LIMIT,
    build_limit: float | None = None,
    tolerance: float | None = None,
    search: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    sizes: Mapping[str, int] | None = None,
    where: Sequence[str] = (),
    fixed: Fixed | None = None,
    storage: StorageLike | None = None,
    sampler: Sampler = "uniform",
    again: bool = True,
    workers: Workers | None = None,
    board: Remote | None = None,
    modelled: bool = False,
    times: Sequence[Path | str] = (),
    note: Callable[[str], None] = lambda _: None,
    began: float | None = None,
    phase: Callable[[str], None] = lambda _: None,
    first: Settings | None = None,
    spaces: Spaces | None = None,
    idle: IdleProcesses | None = None,
) -> Campaign:
    """Runs a campaign: compiles, checks and times the first `samples` candidates of a search.

    `search` names one of `liftpy.explore.search`: by default `guided`, or `front` for a modelled
    campaign that was not begun with another one. `seed` determines its draws.

    >>> squares = lp.parse("def squares(xs: [64]f32) = xs |> map(x => x * x)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file, device = f"{folder}/squares.db", "profile:mali-g72"
    ...     campaign = lp.explore(squares, samples=3, db=file, device=device, modelled=True)
    >>> campaign.counts, campaign.best().peak
    ({'modelled': 3}, 512)

    The same call resumes a campaign that ended in any way, with the same candidates as if it had
    not been interrupted. A larger `samples` extends it.

    The plainest candidate is the first (`plainest.py`); those of the search follow. Unless the user
    has conditions, it is measured before the families other than `plain` are derived. A few direct
    candidates of the search are tried before forms with other algorithms are lowered.

    `time_limit` ends this call that many seconds after it began, or after `began`, a time of
    `time.monotonic`; the candidate in progress is tried in the next call. `candidate_limit` is the
    limit of each candidate in seconds, `build_limit` that of the driver's compiler; a candidate
    gets at most half of the remaining time, or 10 s if that is more. `phase` gets phases' names.

    `tolerance` bounds the error of a result, relative to its largest value; by default it is
    `TOLERANCE`, and no error may exceed its a-priori bound either (`measure/bounding.py`). `sizes`
    gives numbers for the program's open sizes; `where`, `fixed`, `max_error` and `storage`
    determine the space, and `winograd_points` are the points of its F(m, r) (as in `space_of`). A
    call with other values of these is another campaign. `sampler` draws candidates uniformly, or,
    for comparison, as published (`incremental`).

    At the end, candidates that may be on the front by noise are measured `again`, within the time
    limit (`remeasure.py`).

    `note` is called with remarks, such as that the reference result is NaN everywhere.

    With `workers`, candidates are measured on a dask cluster (docs/cluster.md), whose workers have
    the devices; `device` is then ignored, and nothing is measured `again`. With `board`, they are
    measured on a machine without Python (docs/boards.md), and `device` is one of its devices;
    results are compared with `tolerance` only, and nothing is measured `again`. If `modelled`,
    nothing runs: times come from a model of `device`, which may be a profile (docs/choosing.md).

    `times` are files of other campaigns on this device: their times of stages that this program
    also contains determine what is tried first (`borrowed.py`).

    `first` are the complete settings of the candidate of the space to measure first, in place of
    the plainest one. It is an argument of a new campaign without conditions; a resumed one has its
    own.

    `spaces` has the spaces that earlier calls of this process derived, and gets that of this call:
    a call that resumes a campaign with the same `spaces` does not derive its space again. `idle`
    holds the worker processes that earlier calls left, and gets those of this call.

    A limit that the driver reports for a built kernel applies to later draws of its skeleton
    (`learned.py`).

    Raises ArgumentRefused for limits under which nothing can be measured, StoreRefused if `db` has
    another campaign or cannot be written, Unsatisfiable if there is no candidate, NothingMeasured
    if none was correct.
    """
    started = time.time()
    _check_limits(samples, time_limit, candidate_limit, build_limit, tolerance, max_error)
    deadline = Deadline.after(time_limit, began, phase)
    if search is not None:
        searches.named(search)  # refuses an unknown name before any work
    bank = bank_asked(winograd_points)
    with ExitStack() as opened:
        phase("looking for devices")
        program = closed(with_storage(program, storage or {}), sizes)
        require_inputs(program)
        begun = begun_in(Path(db))
        if first is not None and (families or where or fixed or max_error is not None):
            raise ArgumentRefused(
                "a campaign with conditions begins with its own first candidate: leave out "
                "`first`, or `families`, `where`, `fixed` and `max_error`"
            )
        search = search or default_search(begun, modelled=modelled)
        if modelled and times:
            raise ArgumentRefused(
                "a modelled campaign cannot begin with measured times: leave out `times` (--times)"
            )
        site = opened.enter_context(
            site_of(device, workers, begun, deadline.left, board, modelled=modelled, idle=idle)
        )
        begins: Settings | str | None = first or PLAIN
        lag, direct_first = site.lag, DIRECT_FIRST
        if begun is not None:
            lag, begins, direct_first = (
                setting(begun, name) for name in ("lag", "first", "direct_first")
            )
        bounded = tolerance is None and (begun is None or setting(begun, "check") == BOUND)
        bounded &= site.bounds
        tolerance = TOLERANCE if tolerance is None else tolerance
        identity = partial(
            identity_of,
            seed=seed,
            search=search,
            memory_limit=memory_limit,
            max_error=max_error,
            bank=bank,
            sizes=sizes,
            tolerance=tolerance,
            bounded=bounded,
            lag=lag,
            first=begins,
            direct_first=direct_first,
            devices=site.devices,
            times=times,
            modelled=modelled,
        )
        others = times_of(times, Path(db), site.limits, len(site.devices), begun=begun is not None)
        candidates = searches.named(search, *([] if others is None else [others]))
        limits = {
            "samples": samples,
            "time_limit": time_limit,
            "candidate_limit": candidate_limit,
            "build_limit": build_limit,
            "workers": None if workers is None else workers.address,
            "board": None if board is None else board.address,
        }
        call = Call(command_line(), limits, environment(site.limits), started)
        named = sorted(begins.items()) if isinstance(begins, dict) else begins
        restricted = repr((named, families, memory_limit, max_error, where, fixed, sampler))
        forms = Forms(
            begins is not None and families is None and not (where or fixed),
            lambda: replace(
                space_of(
                    program,
                    site.limits,
                    families=families,
                    memory_limit=memory_limit,
                    max_error=max_error,
                    winograd_points=bank,
                    where=where,
                    fixed=fixed,
                ),
                sampler=sampler,
            ),
            lambda names, made: replace(
                whole_space(
                    program,
                    site.limits,
                    families=names,
                    memory_limit=memory_limit,
                    max_error=max_error,
                    made=made,
                ),
                sampler=sampler,
            ),
            deadline,
            bank,
            {} if spaces is None else spaces.of((program, site.limits, bank, restricted)),
        )
        nothing = Space(program, site.limits, (), sampler=sampler)
        beginning: Candidate | None = None
        try:
            if isinstance(begins, dict):
                space = nothing
                with deadline.phase(DERIVING):
                    beginning = candidate_in_space(program, site.limits, begins, memory_limit, bank)
                if beginning is None:
                    raise ArgumentRefused(
                        f"the space of {program.name} has no candidate with the settings of "
                        f"`first`: {begins}\n  give the assignment of one of its candidates"
                    )
            else:
                space = forms.beginning
                with deadline.phase(DERIVING):
                    if not space.possible:
                        raise Unsatisfiable(space.why_empty(memory_limit))
        except TimeUp as end:
            if not (families or where or fixed):  # otherwise the identity needs the space
                opened.enter_context(noted(Path(db), identity(nothing), call)).stop(str(end))
            raise NothingMeasured(
                f"no candidate of {program.name} was measured: {end}. Give a longer limit, or none"
            ) from end
        mine = identity(space, families=None if families is None else space.families)
        store = opened.enter_context(noted(Path(db), mine, call))
        exhausted, run = False, CampaignRun(store, space.device, samples, lag, progress, deadline)
        opened.enter_context(store.resumable())
        if others is not None:
            others.store = store
        try:
            with deadline.phase("making the inputs"):
                given, arrays = Inputs.of(program)
            with deadline.phase("evaluating the program's meaning"):
                known = partial(expected, program, arrays, points=POINTS, tolerance=tolerance)
                wanted = known() if site.measures else ()
            with deadline.phase("counting and drawing candidates"):
                for said in nothing_compared(wanted):
                    note(f"note: {said}")
                if begins == PLAIN:
                    beginning = plainest(space)
                given_limit = [] if max_error is None else partitions(program, bank)
                for form in within_error(given_limit, max_error)[1]:
                    note(f"note: {form.why}")
            proofs: dict[str, str] = {}
            if bank.points:
                with deadline.phase(DERIVING):
                    proofs = proofs_for(program, bank)
            setup = Setup(mine.text, space.device, given, wanted, bounded, proofs)
            pool = opened.enter_context(
                site.pool(setup, Limits(candidate_limit, build_limit, deadline), run)
            )

            def search_whole() -> Iterator[Candidate]:
                tried = candidates(forms.whole, seed, run.trials, run.lessons.allows)
                for told in () if others is None else others.said():
                    note(f"note: {told}")
                if sampler == "uniform" and (said := forms.whole.only_one()):
                    note(f"note: {said}")
                yield from tried

            def search_direct() -> Iterator[Candidate]:
                if direct_first and search not in searches.BLIND and forms.direct is not None:
                    tried = candidates(forms.direct, seed, run.trials, run.lessons.allows)
                    yield from itertools.islice(tried, direct_first)

            tried = itertools.chain(search_direct(), search_whole())
            run.follow(begun_with(beginning, each_once(tried)), pool)
            with deadline.phase("counting the candidates"):
                exhausted = sampler == "uniform" and (
                    run.drawn < samples or forms.are_all(len(run.known))
                )
            if again and isinstance(pool, LocalPool):
                known = {trial.candidate.key: trial.candidate for trial in run.trials}
                remeasure(Explored(store), known, pool.again, lambda: not deadline.over)
        except TimeUp as end:
            store.stop(str(end))
        rows, calls = tuple(store.rows()), tuple(store.calls())
        campaign = Campaign(store.path, store.identity, rows, exhausted, calls)
    if not campaign.pareto():
        raise nothing_measured(campaign)
    return campaign


def noted(path: Path, identity: Identity, call: Call) -> Store:
    """The opened file of a campaign, with this call recorded in it."""
    store = Store.open(path, identity)
    store.note(call)
    return store


@dataclass(frozen=True)
class Explored:
    """A campaign whose candidates all have outcomes, for `remeasure`."""

    store: Store

    def front(self) -> list[Row]:
        """The present front."""
        return Campaign(self.store.path, self.store.identity, tuple(self.store.rows())).pareto()

    def sharpen(self, key: str, outcome: Outcome) -> None:
        """Stores the outcome of measuring a candidate again."""
        self.store.sharpen(key, outcome)


def default_search(begun: Identity | None, *, modelled: bool) -> str:
    """The search of a campaign for which none is named; `begun` is the identity in its file."""
    if not modelled:
        return searches.DEFAULT
    return searches.MODELLED if begun is None else str(begun.settings["search"])


def _check_limits(
    samples: int,
    time_limit: float | None,
    candidate_limit: float,
    build_limit: float | None,
    tolerance: float | None,
    max_error: float | None,
) -> None:
    """Refuses limits under which no candidate can be measured."""
    wanted = {
        "samples": (samples, samples >= 1, "a positive whole number"),
        "time_limit": (time_limit, time_limit is None or time_limit >= 0, "0 s or more, or None"),
        "candidate_limit": (candidate_limit, candidate_limit > 0, "more than 0 s"),
        "build_limit": (
            build_limit,
            build_limit is None or build_limit > 0,
            "more than 0 s, or None",
        ),
        "tolerance": (tolerance, tolerance is None or tolerance >= 0, "0 or more, or None"),
        "max_error": (max_error, max_error is None or max_error >= 0, "0 or more, or None"),
    }
    for name, (value, fits, range_) in wanted.items():
        if not fits:
            raise ArgumentRefused(f"a campaign cannot have {name}={value}: give {range_}")

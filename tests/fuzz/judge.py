"""Random programs under random strategies on a device, against their meaning in numpy.

    python tests/fuzz/judge.py --count 20000 --start 0 --device pocl

Many programs are kernels of one OpenCL program, because building takes most of the time.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from liftpy.compile import compile_candidate, compile_program, skeletons
from liftpy.constraints.collect import collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Space
from liftpy.errors import BuildFailed, LiftError
from liftpy.ir.expr import Lambda, Program
from liftpy.ir.walk import top_down
from liftpy.opencl.c import HELPERS
from liftpy.opencl.kernel import Module
from liftpy.opencl.run import Loaded, Session, _kernel, find_device
from liftpy.primitives.text import show
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategies.lower import plain
from liftpy.rewrite.strategy import Failure, at_path, rule
from liftpy.semantics.evaluate import evaluate
from tests.fuzz.generator import inputs, make
from tests.fuzz.shrink import shrink

BATCH = 64  # programs that are built together
LONGEST = 100_000  # characters of code that are given to a driver
CHUNK = 250  # programs that are judged in one process
REWRITTEN = tuple(r.name for r in RULES.values() if r.family not in {"lowering", "memory"})
HELD: list[Loaded] = []  # whose buffers stay to the end
ATTEMPTS = 12  # places at which rules are tried before a program is lowered


@dataclass(frozen=True)
class Verdict:
    """What became of one program, how, and why.

    The outcome is `right`, `refused`, `large`, `wrong` or `crashed`; `survey` adds `killed`.
    """

    seed: int
    how: str
    outcome: str
    why: str
    program: Program


@dataclass
class Case:
    """A program, the form that was lowered, and its module."""

    seed: int
    how: str
    program: Program
    rewritten: Program
    module: Module
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


# --- strategies -----------------------------------------------------------------------------------


def rewritten(program: Program, random: Random) -> tuple[Program, list[str]]:
    """The program after some proved rules at random places, with random sizes."""
    body, applied = program.body.body, []
    for _ in range(ATTEMPTS):
        name = random.choice(REWRITTEN)
        sizes = {tune: random.choice((1, 2, 3, 4)) for tune in RULES[name].tunes}
        paths = [path for path, _ in top_down(body)]
        random.shuffle(paths)
        for path in paths[:20]:
            result = at_path(path, rule(name, **sizes))(body)
            if not isinstance(result, Failure):
                body = result.expr
                applied.append(name)
                break
    return Program(program.name, Lambda(program.params, body), program.constants), applied


def lowered_plainly(program: Program) -> Module:
    """The program by the plain strategy."""
    result = plain()(program.body.body)
    assert not isinstance(result, Failure), f"plain does not apply: {result}"
    return compile_program(
        Program(program.name, Lambda(program.params, result.expr), program.constants)
    ).module


def forms(seed: int, device: Device) -> Iterator[tuple[str, Program, Program, Module]]:
    """A program's forms: plain or after rules, and `direct` where it applies."""
    program, random = make(seed), Random(seed)
    form, how = program, "plain"
    if random.random() < 0.5:
        form, applied = rewritten(program, random)
        how = f"plain after {', '.join(applied) or 'no rule'}"
    yield how, program, form, lowered_plainly(form)
    for skeleton in skeletons(program, ("direct",))[:: random.choice((1, 2))]:
        for assignment in Space(collect(skeleton, device)).sample(1, seed):
            yield (
                f"{skeleton.key} {assignment}",
                program,
                program,
                compile_candidate(skeleton, assignment),
            )


# --- many programs in one build -------------------------------------------------------------------


def merged(cases: Iterable[Case]) -> list[Module]:
    """The cases' modules with one source; a kernel's name begins with its seed and a number."""
    renamed, sources = [], [HELPERS]
    for number, case in enumerate(cases):
        module, prefix = case.module, f"s{case.seed}_{number}_"
        source = module.source.replace(HELPERS, "")
        sources.append(re.sub(r"void (k\d+_\w+)\(", rf"void {prefix}\1(", source))
        launches = tuple(replace(x, function=prefix + x.function) for x in module.launches)
        renamed.append(replace(module, launches=launches))
    return [replace(module, source="\n".join(sources)) for module in renamed]


def results(session: Session, cases: list[Case]) -> Iterator[tuple[Case, np.ndarray | LiftError]]:
    """The result of every case; a build that fails is halved until its culprit stands alone."""
    modules = merged(cases)
    try:
        built = session._build(modules[0])
    except BuildFailed as failure:
        if len(cases) == 1:
            yield cases[0], failure
            return
        half = len(cases) // 2
        yield from results(session, cases[:half])
        yield from results(session, cases[half:])
        return
    for case, module in zip(cases, modules, strict=True):
        kernels = {x.function: _kernel(built, x.function) for x in module.launches}
        loaded = Loaded(
            session.device, session._context, session._queue, module, kernels, build_seconds=0
        )
        given = dict(zip(module.parameters, case.arrays.values(), strict=True))
        constants = {b.name for b in module.buffers if b.role == "constant"}
        uploaded = {n: a for n, a in given.items() if n in constants}
        others = {n: a for n, a in given.items() if n not in constants}
        # Oclgrind sees itself what nobody wrote, but takes a buffer at a freed one's place for it.
        poison = session.device.platform != "Oclgrind"
        try:
            loaded.set_constants(uploaded, poison=poison)
            yield case, loaded.run(others, poison=poison)
        finally:
            if poison:
                loaded.close()
            else:
                HELD.append(loaded)


# --- verdicts -------------------------------------------------------------------------------------


def expected(program: Program, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, bool]:
    """The meaning in float64, and whether f32 gives the same."""
    exact = np.asarray(evaluate(program, *arrays.values(), dtype=np.float64))
    return exact, np.array_equal(exact, evaluate(program, *arrays.values()))


def difference(case: Case, got: np.ndarray) -> str:
    """Where a result is not the meaning; nothing if it is."""
    wanted, exact = expected(case.program, case.arrays)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    near = got == wanted if exact else np.isclose(got, wanted, 1e-4, 1e-4 * np.abs(wanted).max())
    if near.all():
        return ""
    place = tuple(map(int, np.argwhere(~near)[0])) if got.shape else ()
    form, _ = expected(case.rewritten, case.arrays)
    what = "" if np.array_equal(form, wanted) else "; the rewritten program means something else"
    return f"at {list(place)} {got[place]}, not {wanted[place]}{what}"


def judged(seeds: Iterable[int], session: Session) -> Iterator[Verdict]:
    """A verdict for each form of each program."""
    waiting: list[Case] = []
    for seed in seeds:
        try:
            for how, program, form, module in forms(seed, session.device):
                if len(module.source) > LONGEST:
                    why = f"{len(module.source)} characters of code"
                    yield Verdict(seed, how, "large", why, form)
                    continue
                waiting.append(Case(seed, how, program, form, module, inputs(program)))
        except LiftError as refusal:
            yield Verdict(seed, "", "refused", str(refusal), make(seed))
        except Exception as crash:  # noqa: BLE001  any exception is what is looked for
            yield Verdict(seed, "", "crashed", f"{type(crash).__name__}: {crash}", make(seed))
        if len(waiting) >= BATCH:
            yield from verdicts(session, waiting)
            waiting = []
    yield from verdicts(session, waiting)


def verdicts(session: Session, cases: list[Case]) -> Iterator[Verdict]:
    """The verdicts of a batch."""
    if not cases:
        return
    for case, got in results(session, cases):
        why = str(got) if isinstance(got, LiftError) else difference(case, got)
        outcome = "crashed" if isinstance(got, LiftError) else "wrong" if why else "right"
        yield Verdict(case.seed, case.how, outcome, why, case.rewritten)


def plainly(program: Program, session: Session) -> tuple[str, str]:
    """The outcome of a program by the plain strategy alone, and why."""
    try:
        arrays = inputs(program)
        case = Case(0, "plain", program, program, lowered_plainly(program), arrays)
    except LiftError as refusal:
        return "refused", str(refusal)
    except Exception as crash:  # noqa: BLE001  as above
        return "crashed", f"{type(crash).__name__}: {crash}"
    (verdict,) = verdicts(session, [case])
    return verdict.outcome, verdict.why


def smallest(verdict: Verdict, session: Session) -> str:
    """The failing program made small, as text, if the plain strategy alone fails on it too."""
    outcome, why = plainly(verdict.program, session)
    if outcome != verdict.outcome:
        return f"(right by plain alone)\n{show(verdict.program)}"

    def fails(program: Program) -> bool:
        again, reason = plainly(program, session)
        return again == outcome and (outcome == "wrong" or reason[:20] == why[:20])

    return show(shrink(verdict.program, fails))


# --- processes ------------------------------------------------------------------------------------


def survey(start: int, count: int, device: str) -> tuple[Counter[str], list[str]]:
    """Outcomes and failures of a range of seeds, judged in a process that a driver may kill.

    A range whose process dies is halved; a seed that kills it alone is counted as `killed`.
    """
    options = ["--start", str(start), "--count", str(count), "--device", device, "--json"]
    child = subprocess.run(
        [sys.executable, __file__, *options], capture_output=True, text=True, check=False
    )
    if child.returncode == 0:
        said = json.loads(child.stdout.splitlines()[-1])
        return Counter(said["counts"]), said["failures"]
    if child.returncode > 0:
        return Counter(crashed=1), [child.stderr[-3000:]]
    if count == 1:
        return Counter(killed=1), []
    counts, failures = survey(start, count // 2, device)
    more, others = survey(start + count // 2, count - count // 2, device)
    return counts + more, failures + others


def judge_here(start: int, count: int, device: str) -> tuple[Counter[str], list[str]]:
    """As `survey`, in this process. Of each kind of failure two are made small."""
    counts, seen, failures = Counter[str](), Counter[str](), []
    with Session(find_device(device)) as session:
        for verdict in judged(range(start, start + count), session):
            counts[verdict.outcome] += 1
            kind = verdict.outcome + re.sub(r"\d+", "N", verdict.why[:60])
            seen[kind] += verdict.outcome != "right"
            if verdict.outcome != "right" and seen[kind] <= 2:
                what = f"seed {verdict.seed}: {verdict.how}: {verdict.outcome}: {verdict.why[:300]}"
                text = show(verdict.program) if verdict.outcome == "large" else ""
                failures.append(f"{what}\n{text or smallest(verdict, session)}")
    return counts, failures


def main() -> int:
    """Judges as many programs as asked for; 1 if any is not right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--json", action="store_true", help="in this process, for `survey`")
    given = parser.parse_args()
    if given.json:
        counts, failures = judge_here(given.start, given.count, given.device)
        print(json.dumps({"counts": counts, "failures": failures}))
        return 0
    total = Counter[str]()
    for start in range(given.start, given.start + given.count, CHUNK):
        chunk = min(CHUNK, given.start + given.count - start)
        counts, failures = survey(start, chunk, given.device)
        total += counts
        print(f"seeds {start} ... {start + chunk - 1}: {dict(counts)}", *failures, sep="\n")
        sys.stdout.flush()
    print(dict(total))
    return int(total.total() > total["right"] + total["killed"])


if __name__ == "__main__":
    sys.exit(main())

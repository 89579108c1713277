"""Random programs under random strategies on a device, against their meaning in numpy.

    python tests/fuzz/judge.py --count 20000 --start 0 --device pocl

Many programs are kernels of one OpenCL program, because building takes most of the time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any, TypeAlias

import numpy as np

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.constraints.length import length
from liftpy.errors import BuildFailed, KernelRefused, LiftError
from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.program import Program
from liftpy.ir.walk import top_down
from liftpy.kernels.chain import Chain, chain
from liftpy.language.text.program import show
from liftpy.loops.lower import LoopKernel
from liftpy.loops.writers import shared_stores
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.devices import find_device
from liftpy.opencl.generate import helpers_of
from liftpy.opencl.kernel import Module
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import Compilation, compile_program
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.rule import REAL_LAWS
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.correlation import NAMES as CORRELATIONS
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.rewrite.strategies.lower import plain
from liftpy.rewrite.strategy import Failure, at_path, rule
from liftpy.semantics.evaluate import evaluate
from tests.draws import unproved
from tests.fuzz.generator import inputs
from tests.fuzz.kinds import MAKERS, Part
from tests.fuzz.shrink import shrink
from tests.loops.interpreted import interpreted, stages_of, statements
from tests.plainly import PLAINLY, building_plainly
from tests.staged import by_definition, candidates
from tests.subsample import is_first

Partitions: TypeAlias = Callable[[Program], Iterable[Partition]]
"""How a program may be cut into stages."""

BATCH = 64  # programs that are built together
LONGEST = 100_000  # characters of code that are given to a driver
NEAR = 4  # times the statements of a kernel are the most that its bound may be, and
FEW = 32  # more: of a view that reads one place, what would choose others (for a lane) is left out
CHUNK = 250  # programs that are judged in one process
REWRITTEN = tuple(
    n for n in RULES if n in CORRELATIONS or RULES[n].family not in {"lowering", "memory"}
)
HELD: list[Loaded] = []  # whose buffers stay to the end
OTHERS = [name for name in FAMILIES if name != "plain"]
TURN = {
    "staged": 0.2,
    "local": 0.5,
    "partial": 0.5,
    "chunked": 0.5,
    "tree": 0.5,
}  # they seldom apply: tried early
UNSAFE = "unsafe"
OPTIMIZER = "wrong by the driver's optimizer"
OF_ANY = {"large"}  # after random rules: long code
LIMITED = "beyond a limit of the built kernel"  # known only once the driver has built it
RETRIES = 4  # points of a family at which a smaller program may fail too
COUNTS = ("outcomes", "families", "primitives", "reasons")
OTHER = 3  # one in so many programs with one form has it by another family than `plain`
DRAWS = 4  # how often each partition is drawn from: a drawn skeleton may have no point
ATTEMPTS = 12  # places at which rules are tried before a program is lowered


@dataclass(frozen=True)
class Verdict:
    """What became of one program, how, and why.

    The outcome is `right`, `refused`, `large`, `misjudged` (the code is longer than its bound, or
    far less than it), `unsafe` (an access or a writer is not proved, or a pass changes what the
    interpreter of the loop IR gives), `wrong`, `wrong by the driver's optimizer` (right without it)
    or `crashed`; `survey` adds `killed`, and `unmeasured` for a program with names of which
    no candidate that was drawn is right.
    """

    seed: int
    family: str
    how: str
    outcome: str
    why: str
    program: Program
    drawn: bool = False


@dataclass(frozen=True)
class Form:
    """A program after some rules, compiled by a family of derivations; `how` in words.

    `misjudged` says where the bound on its code does not hold or is not near. `rounds` says that it
    was lowered by laws of real numbers, such as F(m, r), which round whole numbers too. `drawn`
    says that it is a candidate of a space.
    """

    family: str
    how: str
    program: Program
    made: Compilation
    misjudged: str = ""
    rounds: bool = False
    drawn: bool = False

    @property
    def module(self) -> Module:
        """Its kernels."""
        return self.made.module


@dataclass
class Case:
    """A program and one of its forms."""

    seed: int
    program: Program
    form: Form
    arrays: dict[str, Any]

    @cached_property
    def wanted(self) -> list[np.ndarray]:
        """What the program means, in float64: the components of its result."""
        return meaning(self.program, self.arrays)

    @cached_property
    def exact(self) -> list[bool]:
        """Of each component, whether f32 gives the same."""
        rounded = components(evaluate(self.program, *self.arrays.values()))
        return list(map(np.array_equal, self.wanted, rounded))


@dataclass
class Tally:
    """What became of many programs: counts by outcome, family and primitive, and failures."""

    outcomes: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    primitives: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.outcomes + other.outcomes,
            self.families + other.families,
            self.primitives + other.primitives,
            self.reasons + other.reasons,
            self.failures + other.failures,
        )


# --- strategies -----------------------------------------------------------------------------------


def rewritten(program: Program, random: Random) -> tuple[Program, list[str]]:
    """The program after some proved rules at random places, with random sizes."""
    body, applied = program.body.body, []
    for _ in range(ATTEMPTS):
        name = random.choice(REWRITTEN)
        sizes = {tune: random.choice((1, 2, 3, 4)) for tune in RULES[name].tunes}
        paths = [path for path, _ in top_down(body)]
        random.shuffle(paths)
        step = rule(name, None, **sizes)
        for path in paths[:20]:
            result = at_path(path, step)(body)
            if not isinstance(result, Failure):
                body = result.expr
                applied.append(name)
                break
    return Program(program.name, Lambda(program.params, body), program.constants), applied


def lowered_plainly(program: Program) -> tuple[Compilation, str]:
    """The program by the plain strategy, and where its code is misjudged."""
    result = plain()(program.body.body)
    assert not isinstance(result, Failure), f"plain does not apply: {result}"
    body = Lambda(program.params, result.expr)
    made = compile_program(LoweredProgram(program.name, body, program.constants))
    return made, misjudged(made.chain, {}, made)


def lowered_by(
    family: str, program: Program, device: Device, random: Random, partitions: Partitions
) -> tuple[str, Compilation, str, bool] | None:
    """The program by a family, a random choice and a random point; None if the family has none.

    Of several stages one at least is made by the family. In words, compiled, where its code is
    misjudged, and whether it `rounds`.
    """
    drawn = (candidates(program, device, family, random, partitions) for _ in range(DRAWS))
    for candidate in itertools.chain.from_iterable(drawn):
        made = compile_program(candidate.skeleton.at(candidate.point))
        wrong = misjudged(chain(candidate.skeleton.program), candidate.point, made)
        steps = candidate.skeleton.derivation.steps
        rounds = any(RULES[step.rule].proof in REAL_LAWS for step in steps)
        return f"{candidate.skeleton.key} {candidate.point}", made, wrong, rounds
    return None


def misjudged(open_sizes: Chain, assignment: Mapping[str, int], made: Compilation) -> str:
    """Where the bound on a kernel's statements does not hold or is not near; nothing if it is."""
    kernels = open_sizes.kernels
    if len(kernels) != len(made.kernels):  # at these sizes some are equal: they are one
        kernels = made.chain.kernels
    for kernel, code in zip(kernels, made.loops, strict=True):
        bound, emitted = int(length(kernel).value(assignment)), statements(code)
        if not emitted <= bound <= NEAR * emitted + FEW:
            return f"{emitted} statements in {kernel.name}, the bound is {bound}"
    return ""


def forms(
    program: Program, seed: int, device: Device, kind: str = "any", *, one: bool = False
) -> Iterator[Form]:
    """Forms of a seed's program: all of its results by `plain`, and by a family that does more.

    Half of them are of the program after random rules; of programs with names all are candidates.
    With `one`, a program has a single form: by a family other than `plain` for one seed in `OTHER`,
    if one applies, and by `plain` otherwise. It does not compute by F(m, r) (tests/staged.py).
    """
    cut = by_definition if one else partitions
    random = Random(seed)
    form, how = program, ""
    if kind == "any" and random.random() < 0.5:
        form, applied = rewritten(program, random)
        how = f" after {', '.join(applied) or 'no rule'}"
    others = others_of(form, device, random, how, cut)
    if one and seed % OTHER == 1 and (found := next(others, None)):
        yield found
        return
    found = None
    if kind != "any" or random.random() < 0.5:
        found = lowered_by("plain", form, device, random, cut)
    way, made, wrong, rounds = found or ("over ids", *lowered_plainly(form), False)
    yield Form("plain", way + how, form, made, wrong, rounds, drawn=found is not None)
    if not one:
        yield from islice(others, 1)


def others_of(
    program: Program, device: Device, random: Random, how: str, partitions: Partitions
) -> Iterator[Form]:
    """A form by each family but `plain` that applies, in random order.

    how: how the program was rewritten, for the label.
    """
    for name in sorted(OTHERS, key=lambda name: random.random() * TURN.get(name, 1.0)):
        found = lowered_by(name, program, device, random, partitions)
        if found is not None:
            way, made, wrong, rounds = found
            yield Form(name, way + how, program, made, wrong, rounds, drawn=True)


# --- many programs in one build -------------------------------------------------------------------


def merged(cases: Iterable[Case]) -> list[Module]:
    """The cases' modules with one source; a kernel's name begins with its seed and a number."""
    renamed, sources = [], list[str]()
    for number, case in enumerate(cases):
        module, prefix = case.form.module, f"s{case.seed}_{number}_"
        kernels = module.source[module.source.index("__kernel") :]
        sources.append(re.sub(r"void (k\d+_\w+)\(", rf"void {prefix}\1(", kernels))
        launches = tuple(replace(x, function=prefix + x.function) for x in module.launches)
        renamed.append(replace(module, launches=launches))
    text = "\n".join(sources)
    whole = "\n".join([*helpers_of(text), text])
    return [replace(module, source=whole) for module in renamed]


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
        try:
            loaded = session._made(module, built, 0.0, "")
        except KernelRefused as refusal:
            yield case, refusal
            continue
        given = by_buffer(module, tuple(case.arrays.values()))
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


def meaning(program: Program, arrays: dict[str, Any]) -> list[np.ndarray]:
    """The components of the meaning, in float64."""
    return components(evaluate(program, *arrays.values(), dtype=np.float64))


def components(value: Any) -> list[np.ndarray]:
    """The arrays of a result that may be a tuple of tuples."""
    if isinstance(value, tuple):
        return [array for part in value for array in components(part)]
    return [np.asarray(value)]


def difference(case: Case, value: Any) -> str:
    """Where a result is not the meaning; nothing if it is."""
    results, wanted = components(value), case.wanted
    for k, (got, right) in enumerate(zip(results, wanted, strict=True)):
        where = f"component {k} " if len(wanted) > 1 else ""
        if got.shape != right.shape:
            return f"{where}shape {got.shape}, not {right.shape}"
        near = got == right
        if not near.all() and (case.form.rounds or not case.exact[k]):
            near = np.isclose(got, right, 1e-4, 1e-4 * np.abs(right).max())
        if not near.all():
            place = tuple(map(int, np.argwhere(~near)[0])) if got.shape else ()
            form = meaning(case.form.program, case.arrays)
            same = all(map(np.array_equal, form, wanted))
            what = "" if same else "; the rewritten program means something else"
            return f"{where}at {list(place)} {got[place]}, not {right[place]}{what}"
    return ""


def judged(
    seeds: Iterable[int],
    device: Device,
    session: Session | None,
    kind: str = "any",
    *,
    one: bool = False,
) -> Iterator[Verdict]:
    """A verdict for each form of each program; without a session, that of the interpreter.

    With `one`, each program has one form, and the interpreter judges it only without a session.
    """
    waiting: list[Case] = []
    interprets = session is None or (not one and is_first(device))
    for seed in seeds:
        program = MAKERS[kind](seed)
        try:
            for form in forms(program, seed, device, kind, one=one):
                if len(form.module.source) > LONGEST:
                    why = f"{len(form.module.source)} characters of code"
                    yield Verdict(seed, form.family, form.how, "large", why, form.program)
                    continue
                case = Case(seed, program, form, inputs(program))
                fault = unsafe(case) if interprets else ""
                for outcome, why in (("misjudged", form.misjudged), (UNSAFE, fault)):
                    if why:
                        yield Verdict(seed, form.family, form.how, outcome, why, form.program)
                if session is not None:
                    waiting.append(case)
                elif not form.misjudged and not fault:
                    yield Verdict(
                        seed, form.family, form.how, "right", "", form.program, form.drawn
                    )
        except LiftError as refusal:
            yield Verdict(seed, "", "", "refused", str(refusal), program)
        except Exception as crash:  # noqa: BLE001  any exception is what is looked for
            why = f"{type(crash).__name__}: {crash}"
            yield Verdict(seed, "", "", "crashed", why, program)
        if session is not None and len(waiting) >= BATCH:
            yield from verdicts(session, waiting)
            waiting = []
    if session is not None:
        yield from verdicts(session, waiting)


def verdicts(session: Session, cases: list[Case]) -> Iterator[Verdict]:
    """The verdicts of a batch."""
    if not cases:
        return
    for case, got in results(session, cases):
        why = str(got) if isinstance(got, LiftError) else difference(case, got)
        outcome = "crashed" if isinstance(got, LiftError) else "wrong" if why else "right"
        if isinstance(got, KernelRefused):
            outcome = LIMITED
        if outcome == "wrong" and is_right_unoptimized(case, session.device) and not unsafe(case):
            outcome = OPTIMIZER  # defined behaviour, as far as memory is concerned
        form = case.form
        yield Verdict(case.seed, form.family, form.how, outcome, why, form.program, form.drawn)


def is_right_unoptimized(case: Case, device: Device) -> bool:
    """Whether a program is right alone, without the driver's optimizer."""
    with Session(device, PLAINLY) as session:
        ((_, got),) = results(session, [case])
        return not isinstance(got, LiftError) and not difference(case, got)


def unsafe(case: Case) -> str:
    """What is not proved of a form's kernels, or is wrong in the interpreter; else nothing.

    The kernels have to give the same values after all passes as before them, bit for bit, and after
    each pass no element of a buffer has two writers. The first pass that changes values is named.
    """
    made, arrays = case.form.made, case.arrays
    if faults := unproved(made.optimized):
        return faults[0]
    (_, first), *stages = stages_of(made)
    before = components(interpreted(made, first, arrays))
    if why := difference(case, tuple(before)):
        return f"after lowering, in the interpreter: {why}"

    def agree(kernels: Sequence[LoopKernel]) -> bool:
        after = components(interpreted(made, kernels, arrays))
        return all(map(np.array_equal, before, after, [True] * len(after)))

    for name, kernels in stages:
        if shared := [str(fault) for code in kernels for fault in shared_stores(code)]:
            return f"after the pass `{name}`: {shared[0]}"
    if [k.block for k in first] == [k.block for k in made.optimized] or agree(made.optimized):
        return ""
    return next(f"the pass `{name}` changes values" for name, code in stages if not agree(code))


def again(
    program: Program, device: Device, session: Session | None, family: str
) -> tuple[str, str]:
    """The first outcome that is not right of a program by a family or by plain, and why.

    Without a session, only what is known without a device.
    """
    try:
        arrays, cases = inputs(program), list[Case]()
        for attempt in range(RETRIES if family else 1):
            found = None
            if family:
                random = Random(attempt)
                found = lowered_by(family, program, device, random, partitions)
            way, made, wrong, rounds = found or ("over ids", *lowered_plainly(program), False)
            if wrong:
                return "misjudged", wrong
            case = Case(attempt, program, Form(family, way, program, made, rounds=rounds), arrays)
            if fault := unsafe(case):
                return UNSAFE, fault
            cases.append(case)
    except LiftError as refusal:
        return "refused", str(refusal)
    except Exception as crash:  # noqa: BLE001  as above
        return "crashed", f"{type(crash).__name__}: {crash}"
    for verdict in verdicts(session, cases) if session else ():
        if verdict.outcome != "right":
            return verdict.outcome, verdict.why
    return "right", ""


def smallest(verdict: Verdict, device: Device, session: Session | None) -> str:
    """The failing program made small, as text, if plain or its family alone fails on it too."""
    if verdict.outcome in {"misjudged", UNSAFE}:
        session = None
    for family in ("", *([verdict.family] if verdict.family else FAMILIES)):
        outcome, why = again(verdict.program, device, session, family)
        if outcome != verdict.outcome:
            continue

        def fails(program: Program, family: str = family, why: str = why) -> bool:
            outcome, reason = again(program, device, session, family)
            return outcome == verdict.outcome and (
                outcome in {"wrong", "misjudged", UNSAFE} or reason[:20] == why[:20]
            )

        return f"by {family or 'plain over ids'}:\n{show(shrink(verdict.program, fails))}"
    return f"(right by itself)\n{show(verdict.program)}"


# --- processes ------------------------------------------------------------------------------------


def survey(
    start: int, count: int, device: str, kind: str = "any", *, briefly: bool = False
) -> Tally:
    """Outcomes and failures of a range of seeds, judged in a process that a driver may kill."""
    return survey_all([Part(kind, start, count)], device, briefly=briefly)


def survey_all(parts: Sequence[Part], device: str, *, briefly: bool = False) -> Tally:
    """Outcomes and failures of several ranges, judged in one process that a driver may kill.

    If the process dies, each half is judged anew; a seed that kills it alone is `killed`. With
    `briefly` each program has one form, which runs on the device only, and most kernels are built
    without the driver's optimizer (tests/plainly.py).
    """
    options = ["--device", device, "--json", *(["--briefly"] if briefly else [])]
    options += ["--parts", *map(str, parts)]
    child = subprocess.run(
        [sys.executable, __file__, *options], capture_output=True, text=True, check=False
    )
    if child.returncode == 0:
        return read(child.stdout)
    if child.returncode > 0:
        return Tally(Counter(crashed=1), failures=[child.stderr[-3000:]])
    if len(parts) == 1:
        if parts[0].count == 1:
            return Tally(Counter(killed=1))
        parts = parts[0].halves
    half = len(parts) // 2
    return survey_all(parts[:half], device, briefly=briefly) + survey_all(
        parts[half:], device, briefly=briefly
    )


def read(text: str) -> Tally:
    """What a process said last."""
    said = json.loads(text.splitlines()[-1])
    counts = {name: Counter[str](said[name]) for name in COUNTS}
    return Tally(**counts, failures=said["failures"])


def judge_all_here(parts: Sequence[Part], device: str, *, briefly: bool = False) -> Tally:
    """As `survey_all`, in this process."""
    total = Tally()
    with building_plainly() if briefly else nullcontext(), Session(find_device(device)) as session:
        for part in parts:
            total += tallied(part.seeds, session.device, session, part.kind, one=briefly)
    return total


def interpret_here(part: Part) -> Tally:
    """As `survey`, in the interpreter of the loop IR; each program has one form."""
    return tallied(part.seeds, DEFAULT_DEVICE, None, part.kind, one=True)


def tallied(
    seeds: Sequence[int], device: Device, session: Session | None, kind: str, *, one: bool
) -> Tally:
    """Outcomes and failures of programs; two of each kind are made small, but none of OF_ANY."""
    tally, measured = Tally(), set[int]()
    for verdict in judged(seeds, device, session, kind, one=one):
        if verdict.drawn and verdict.outcome in {"right", OPTIMIZER}:
            measured.add(verdict.seed)
        tally.outcomes[verdict.outcome] += 1
        tally.families[f"{verdict.family or 'none'} {verdict.outcome}"] += 1
        tally.primitives.update(words(verdict.program))
        if verdict.outcome in {"right", LIMITED}:
            continue
        reason = f"{verdict.outcome}: " + re.sub(r"\d+", "N", verdict.why[:60])
        tally.reasons[reason] += 1
        if tally.reasons[reason] <= 2:
            what = f"seed {verdict.seed}: {verdict.family} {verdict.how}: {verdict.outcome}"
            accepted = kind == "any" and verdict.outcome in OF_ANY
            text = show(verdict.program) if accepted else smallest(verdict, device, session)
            tally.failures.append(f"{what}: {verdict.why[:300]}\n{text}")
    if kind != "any" and (without := sorted(set(seeds) - measured)):
        tally.outcomes["unmeasured"] += len(without)
        tally.failures.append(f"seeds without a measured candidate: {without}")
    return tally


def words(program: Program) -> set[str]:
    """The primitives of a program."""
    parts = (e for _, e in top_down(program.body.body) if isinstance(e, FunCall))
    return {e.fun.name for e in parts if isinstance(e.fun, Primitive)}


def main() -> int:
    """Judges as many programs as asked for; 1 if any is not right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--device", default="intel")
    parser.add_argument(
        "--kind",
        choices=MAKERS,
        default="any",
        help="lets: names in each other; stages: two to five",
    )
    parser.add_argument("--json", action="store_true", help="in this process, for `survey_all`")
    parser.add_argument(
        "--parts", nargs="+", type=Part.of, metavar="KIND:START:COUNT", help="for --json"
    )
    parser.add_argument("--briefly", action="store_true", help="as `make test` judges")
    given = parser.parse_args()
    if given.json:
        parts = given.parts or [Part(given.kind, given.start, given.count)]
        tally = judge_all_here(parts, given.device, briefly=given.briefly)
        print(json.dumps(vars(tally)))
        return 0
    total = Tally()
    for start in range(given.start, given.start + given.count, CHUNK):
        chunk = min(CHUNK, given.start + given.count - start)
        found = survey(start, chunk, given.device, given.kind, briefly=given.briefly)
        total += found
        print(
            f"seeds {start} ... {start + chunk - 1}: {dict(found.outcomes)}",
            *found.failures,
            sep="\n",
        )
        sys.stdout.flush()
    for name in COUNTS:
        print(f"{name}: {dict(sorted(getattr(total, name).items()))}")
    counts = total.outcomes
    return int(counts.total() > counts["right"] + counts["killed"] + counts[LIMITED])


if __name__ == "__main__":
    sys.exit(main())

"""prove: proofs of rules and primitives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from liftpy.cli.options import JsonFlag
from liftpy.cli.screen import note, say, show, show_json
from liftpy.errors import LiftError, UnknownName
from liftpy.primitives import PRIMITIVES
from liftpy.rewrite.rules import RULES
from liftpy.semantics.contract import prove_primitive
from liftpy.semantics.mutants import LAWS, UNDECIDED, mutants_of
from liftpy.semantics.mutants import judge as judge_mutant
from liftpy.semantics.proof_recording import certify
from liftpy.semantics.proof_recording import record as write_proofs
from liftpy.semantics.verdict import Proved, Refuted, Verdict


@dataclass(frozen=True)
class Result:
    """The verdict on a rule or a primitive, and the time that it took."""

    name: str
    kind: str
    verdict: Verdict
    seconds: float


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("prove")(prove_rules)


def prove_rules(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE", help="Rules or primitives; by default all."),
    ] = None,
    *,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Prove the rules without a valid recorded proof, and record the proofs: "
            "recorded rules may be used.",
        ),
    ] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Mutate the rules instead; count the refuted mutants.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Proves rules and the contracts of primitives. Exit code 1 unless every verdict is proved.

    With --record, only the rules without a valid recorded proof are proved; failures are not
    recorded.
    """
    if mutants:
        score_mutants(names, json=json)
        return
    if record and names:
        raise typer.BadParameter(
            "it records the proofs of all rules: name none", param_hint="--record"
        )
    if record:
        done = write_proofs(RULES.values())
        note(
            f"{done.kept} proofs still hold, {len(done.verdicts)} are new; recorded in {done.path}"
        )
        results = [Result(n, "rule", v, done.seconds[n]) for n, v in done.verdicts.items()]
    else:
        results = [judge(name) for name in chosen(names)]
    good = all(isinstance(r.verdict, Proved) for r in results)
    if json:
        show_json(
            [
                {
                    "name": r.name,
                    "kind": r.kind,
                    "verdict": type(r.verdict).__name__,
                    "detail": str(r.verdict),
                    "seconds": round(r.seconds, 3),
                }
                for r in results
            ]
        )
    elif results:
        table = Table(box=None, pad_edge=False)
        for name in ("name", "kind", "seconds", "verdict"):
            table.add_column(name, overflow="fold")
        for r in results:
            colour = "green" if isinstance(r.verdict, Proved) else "red"
            table.add_row(
                r.name,
                r.kind,
                f"{r.seconds:.2f}",
                f"[{colour}]{escape(str(r.verdict))}[/]",
            )
        show(table)
    if not good:
        raise typer.Exit(LiftError.exit_code)


@dataclass
class Score:
    """The verdicts on the mutants of a rule."""

    mutants: int = 0
    refuted: int = 0
    laws: list[str] = field(default_factory=list[str])
    undecided: list[str] = field(default_factory=list[str])


def score_mutants(names: Sequence[str] | None, *, json: bool) -> None:
    """Judges every mutant of rules; exit code 1 if one is neither refuted nor known."""
    rules = [RULES[name] for name in chosen(names) if name in RULES]
    scores: dict[str, Score] = {}
    for rule in rules:
        score = scores[rule.name] = Score()
        for mutant in mutants_of(rule):
            score.mutants += 1
            match judge_mutant(mutant):
                case Refuted():
                    score.refuted += 1
                case Proved():
                    score.laws.append(mutant.name)
                case _:
                    score.undecided.append(mutant.name)
    made = sum(s.mutants for s in scores.values())
    refuted = sum(s.refuted for s in scores.values())
    laws = [name for s in scores.values() for name in s.laws]
    undecided = [name for s in scores.values() for name in s.undecided]
    false = made - len(laws)
    if json:
        show_json(
            {
                "mutants": made,
                "refuted": refuted,
                "laws": {name: LAWS.get(name, "") for name in laws},
                "undecided": {name: UNDECIDED.get(name, "") for name in undecided},
                "score": refuted / false if false else 1.0,
            }
        )
    else:
        table = Table(box=None, pad_edge=False)
        for name in ("rule", "mutants", "refuted", "laws", "undecided"):
            table.add_column(name, justify="left" if name == "rule" else "right")
        for name, s in scores.items():
            counts = s.mutants, s.refuted, len(s.laws), len(s.undecided)
            table.add_row(name, *map(str, counts))
        show(table)
        for title, found, reasons in (("law", laws, LAWS), ("undecided", undecided, UNDECIDED)):
            for name in found:
                say(f"{title}: {name} ({reasons.get(name, 'new')})")
        share = 100 * refuted / false if false else 100.0
        say(f"{refuted} of {false} false mutants refuted, {share:.1f} %; {len(laws)} are laws")
    if not (set(laws) <= set(LAWS) and set(undecided) <= set(UNDECIDED)):
        raise typer.Exit(LiftError.exit_code)


def chosen(names: Sequence[str] | None) -> list[str]:
    """The given names, or all; UnknownName for one that is neither a rule nor a primitive."""
    known = [*PRIMITIVES, *RULES]
    for name in names or ():
        if name not in known:
            raise UnknownName(
                f"no rule or primitive is named '{name}'; `liftpy rules` lists the rules, "
                f"the primitives are: {', '.join(PRIMITIVES)}"
            )
    return list(names or known)


def judge(name: str) -> Result:
    """The verdict on a rule or a primitive."""
    start = time.perf_counter()
    if name in RULES:
        verdict = certify(RULES[name])
        return Result(name, "rule", verdict, time.perf_counter() - start)
    verdict = prove_primitive(name)
    return Result(name, "primitive", verdict, time.perf_counter() - start)

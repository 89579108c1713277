"""ONNX's backend tests: which pass, and why others are declined. Writes docs/networks.md's tables.

    python tests/networks/conformance.py

runs all cases, prints a summary, and writes the names of those that pass to `passing.txt`, which
the test suite then requires to pass.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from onnx import __version__, load
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor
from onnx.numpy_helper import to_array
from onnx.onnx_ml_pb2 import TensorProto

from liftpy.errors import NetworkRefused
from liftpy.networks.backend import LiftpyBackend
from liftpy.networks.operators import REGISTRY

PASSING = Path(__file__).with_name("passing.txt")
PAGE = Path(__file__).parents[2] / "docs" / "networks.md"
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `operator` and `reason` say why it is declined."""

    kind: str
    operator: str = ""
    reason: str = ""


def cases(kind):
    """The cases of a kind; those of nodes are made in memory, with overflows of NumPy's casts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return load_model_tests(kind=kind)


def data(case):
    """The model of a case, and pairs of inputs and expected outputs."""
    if case.model is not None:
        sets = [
            ([*map(_normalize_tensor, i)], [*map(_normalize_tensor, o)]) for i, o in case.data_sets
        ]
        return case.model, sets
    folder = Path(case.model_dir)

    def read(part, what):
        files = sorted(part.glob(f"{what}_*.pb"), key=lambda p: int(p.stem.rpartition("_")[2]))
        return [to_array(TensorProto.FromString(p.read_bytes())) for p in files]

    parts = sorted(folder.glob("test_data_set_*"))
    return load(folder / "model.onnx"), [(read(p, "input"), read(p, "output")) for p in parts]


def outcome(case):
    """Runs a case.

    `folded` are cases of which nothing is left to compute: ONNX's own evaluator would be tested.
    """
    model, sets = data(case)
    try:
        rep = LiftpyBackend.prepare(model)
        for inputs, wanted in sets:
            got = rep.run(inputs)
            Runner.assert_similar_outputs(wanted, got, rtol=case.rtol, atol=case.atol)
            if not len(rep.network):
                return Outcome("folded")
    except NetworkRefused as refused:
        if not refused.unsupported:
            first = str(refused).partition("\n")[0]
            return Outcome(
                "declined", "the whole model", re.sub(r"the model( is|:)", "it is", first)
            )
        first = refused.unsupported[0]
        return Outcome("declined", first.operator, plainly(first.reason))
    except AssertionError:
        return Outcome("differs")
    return Outcome("passed")


def plainly(reason):
    """A reason without the names and numbers of one node."""
    reason = re.sub(r"^the (input|output) `[^`]*`", r"an \1", reason)
    reason = re.sub(r"^`([^`]*)` is `[^`]*`", r"`\1` is", reason)
    reason = re.sub(r"\([\d, ]+\) to \([\d, ]+\)", "others", reason)
    reason = re.sub(
        r"an (in|out)put has the type \w+", "it has a type that the language does not have", reason
    )
    return re.sub(
        r"an (?:in|out)put of shape \[[\d, ]*\] has no elements",
        "it has a tensor without elements",
        reason,
    )


def conformance_table(outcomes):
    """The result of all cases as Markdown."""
    counts = {kind: Counter(o.kind for o in by.values()) for kind, by in outcomes.items()}
    lines = [
        f"With onnx {__version__}:",
        "",
        "| cases | passed | folded | declined | differ |",
        "| --- | --: | --: | --: | --: |",
    ]
    for kind, count in counts.items():
        numbers = (count[k] for k in ("passed", "folded", "declined", "differs"))
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    differ = [name for by in outcomes.values() for name, o in by.items() if o.kind == "differs"]
    lines += ["", f"Those that differ: {', '.join(f'`{n}`' for n in differ) or 'none'}.", ""]
    lines += ["| declined because | cases | operators |", "| --- | --: | --- |"]
    reasons = defaultdict(Counter)
    for by in outcomes.values():
        for found in by.values():
            if found.kind == "declined":
                reasons[found.reason][found.operator] += 1
    for reason, operators in sorted(reasons.items(), key=lambda pair: -pair[1].total()):
        named = ", ".join(f"{name} {count}" for name, count in sorted(operators.items()))
        lines.append(f"| {reason} | {operators.total()} | {named} |")
    return "\n".join(lines)


def operators_table():
    """The operators that have programs as Markdown, with what of them has not."""
    whole = sorted(name for name, entry in REGISTRY.items() if not entry.note)
    partly = sorted((name, entry.note) for name, entry in REGISTRY.items() if entry.note)
    lines = [", ".join(whole) + ".", "", "| in part | what |", "| --- | --- |"]
    return "\n".join(lines + [f"| {name} | {note} |" for name, note in partly])


def wrapped(text):
    """Text in lines of at most 120 columns; tables stay."""
    lines = []
    for line in text.splitlines():
        while not line.startswith("|") and len(line) > 120:
            cut = line.rindex(" ", 0, 121)
            lines.append(line[:cut])
            line = line[cut + 1 :]  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines)


def section(page, name):
    """The generated part of the page between its markers."""
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"\n<!-- end of {name} -->")[0]


def main():
    """Runs all cases, and writes the results."""
    outcomes = {kind: {c.name: outcome(c) for c in cases(kind)} for kind in KINDS}
    passed = [n for by in outcomes.values() for n, o in by.items() if o.kind == "passed"]
    PASSING.write_text("".join(f"{n}\n" for n in sorted(passed)), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    table = conformance_table(outcomes)
    for name, text in {"conformance": table, "operators": operators_table()}.items():
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- end of {name} -->")
        page = before + start + wrapped(text) + end + after
    PAGE.write_text(page, encoding="utf-8")
    print(table)  # noqa: T201  it reports what it found


if __name__ == "__main__":
    main()

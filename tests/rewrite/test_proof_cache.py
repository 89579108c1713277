"""A proof is void once anything that it rests on is changed, and only then."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from liftpy.errors import RuleRefused
from liftpy.primitives import PRIMITIVES
from liftpy.rewrite import proof_cache
from liftpy.rewrite.proof_cache import (
    BEYOND,
    Grounds,
    is_recorded,
    recorded,
    text_of,
    written,
)
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategy import Success, outermost, rule
from liftpy.semantics import prove as proving
from liftpy.semantics.proof_recording import record
from liftpy.semantics.verdict import Proved
from tests.rewrite.fixtures import sections
from tests.trees import PACKAGE


def modules():
    """The name of every module of the package."""
    return [dotted(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))]


def dotted(file):
    """The name of a module."""
    return ".".join(("liftpy", *Path(file).with_suffix("").parts)).removesuffix(".__init__")


def functions(tree, name=""):
    """Every function of a module and of its classes, by name."""
    for node in tree.body:
        match node:
            case ast.FunctionDef():
                yield name + node.name, node
            case ast.ClassDef():
                yield from functions(node, f"{name}{node.name}.")
            case _:
                pass


def changed(module, wanted, change):
    """The text of a module in which every function with a wanted name has another body."""
    tree = ast.parse(text_of(module) or "")
    for name, node in functions(tree):
        if wanted(name):
            node.body = change(node.body)
    return ast.unparse(ast.fix_missing_locations(tree))


def with_step(body):
    return [*body, *ast.parse("print('mutated')").body]


def emptied(body):
    return ast.parse("'''Something else.'''\nraise NotImplementedError('mutated')").body


def void(texts):
    """The rules whose proofs do not hold with these texts of modules."""
    return invalidated(Grounds(lambda name: texts[name] if name in texts else text_of(name)))


def invalidated(found):
    """The rules whose recorded proofs are not valid on these grounds."""
    return {n for n, r in RULES.items() if found.of(r).digest != recorded()[n]["rests_on"]}


@pytest.fixture(scope="module")
def covered():
    """All that any proof of the catalogue rests on."""
    grounds = proof_cache.grounds()
    return {item for law in RULES.values() for item in grounds.of(law).items}


def test_every_rule_has_a_proof_as_it_stands():
    """`liftpy prove --record` writes them."""
    assert all(map(is_recorded, RULES.values()))
    assert void({}) == set()


# --- changed helpers -----------------------------------------------------------------------------


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "helper",
    [
        "liftpy.ir.nat.least",
        "liftpy.ir.nat._cancel",
        "liftpy.ir.polynomial.cut_by_number",
        "liftpy.ir.bounds.of_remainder",
        "liftpy.ir.call.fitted",
        "liftpy.ir.equality.alike",
        "liftpy.ir.constraint.Divides.compare",
        "liftpy.ir.constraint.AtMost.compare",
        "liftpy.semantics.smt.Terms.divide",
        "liftpy.semantics.dependence.replaced",
        "liftpy.rewrite.match.conditions",
        "liftpy.primitives.transpose.at_index",
        "liftpy.primitives.slide.Slide.windows",
    ],
)
def test_a_changed_helper_voids_the_proofs_that_rest_on_it(helper):
    module = max((m for m in modules() if helper.startswith(f"{m}.")), key=len)
    name = helper.removeprefix(f"{module}.")
    rests = {n for n, r in RULES.items() if (module, name) in proof_cache.grounds().of(r).items}
    assert rests
    if not module.startswith("liftpy.primitives") and name != "least":
        assert rests == set(RULES)  # prover and matcher
    assert void({module: changed(module, lambda n: n == name, with_step)}) == rests


def test_a_change_of_any_covered_function_is_seen_and_of_no_other(covered):
    """All are changed at once, each to something else; then all but these."""
    mine = {m: {n for where, n in covered if where == m} for m in modules()}

    def mutated(name):
        return changed(name, lambda n: n in mine[name], with_step) if name in mine else None

    def others(name):
        return changed(name, lambda n: n not in mine[name], emptied) if name in mine else None

    grounds = Grounds(mutated)
    before, after = ({}, {})
    for law in RULES.values():
        before |= proof_cache.grounds().of(law).items
        after |= grounds.of(law).items
    parsed = {m: ast.parse(text_of(m) or "") for m in mine if mine[m]}
    bodies = {(m, n) for m, tree in parsed.items() for n, _ in functions(tree)}
    assert len(covered & bodies) > 300
    for item in covered & bodies:
        assert before[item] != after[item], item
    assert invalidated(Grounds(others)) == set()


def test_a_covered_proof_cannot_be_used_after_a_change(monkeypatch):
    """From the files to the refusal."""
    text = changed("liftpy.ir.nat", lambda n: n == "_cancel", with_step)
    real = proof_cache.text_of

    def texts(name, folder=None):
        return text if name == "liftpy.ir.nat" else real(name, folder)

    law = replace(RULES["map_fusion"])
    monkeypatch.setattr(proof_cache, "text_of", texts)
    monkeypatch.setattr(proof_cache, "grounds", lambda: Grounds(texts))
    monkeypatch.setattr(proof_cache, "_session", set())
    proof_cache.is_unchanged.cache_clear()
    try:
        assert not proof_cache.is_unchanged()
        with pytest.raises(RuleRefused, match="no valid proof"):
            rule(law)
    finally:
        monkeypatch.undo()
        proof_cache.is_unchanged.cache_clear()
    assert is_recorded(law)


def test_the_cache_holds_the_files_as_they_are():
    """Otherwise, each process that applies rules parses them all, which takes most of a second."""
    files = proof_cache.proof_cache()["files"]
    edited = [name for name, known in files.items() if proof_cache.hash_of_file(name) != known]
    assert not edited, "`liftpy prove --record` records them"


def test_what_says_on_what_proofs_rest_is_noted_too():
    """Else another `BEYOND` or `ROOTS` would be seen at the next change of any other file only."""
    assert {"liftpy.rewrite.proof_cache", "liftpy.rewrite.sources"} <= proof_cache.proof_cache()[
        "files"
    ].keys()


@pytest.mark.parametrize(
    "change",
    [
        {"where": ()},
        {"assuming": ()},
        {"proof": "lockstep"},
        {"left": RULES["reduce_exchange"].right},
    ],
    ids=lambda c: next(iter(c)),
)
def test_another_law_has_no_proof(change):
    assert not is_recorded(replace(RULES["reduce_exchange"], **change))


# --- what runs is covered ------------------------------------------------------------------------


def chosen():
    """For each proof method and each primitive, a rule that is soon proved."""
    quick = sorted(RULES.values(), key=lambda r: (recorded()[r.name]["seconds"], r.name))
    found = {}
    for law in quick:
        found.setdefault(law.proof, law)
        for cls in proof_cache.classes_in(law):
            if cls in PRIMITIVES.values():
                found.setdefault(cls, law)
    return sorted({law.name for law in found.values()})


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", chosen())
def test_what_runs_while_a_rule_is_proved_and_applied_is_covered(name, monkeypatch):
    """Seen from outside: every function of the package that Python calls, but for printing."""
    monkeypatch.setattr(proving, "tried", lambda law: law)
    law = RULES[name]
    before = sections(name)["before"]
    expr = before.program.body.body
    modules_ = {text: m for m in modules() if (text := file_of(m))}
    of_program = sorted({(c.__module__, c.__qualname__) for c in proof_cache.kinds(expr)})
    items = proof_cache.grounds().sources.closure(of_program, proof_cache.grounds().of(law)).items
    missing = set()
    muted = []

    def look(frame, event, _):
        code = frame.f_code
        if muted:
            if event == "return" and muted[-1] is frame:
                muted.pop()
            return
        if event != "call" or code.co_filename not in modules_:
            return
        module = modules_[code.co_filename]
        where = code.co_qualname.split(".<locals>")[0]
        if where in {"<module>", "<lambda>"} or where in SEEN_ELSEWHERE:
            return
        full = f"{module}.{where}"
        beyond = any(full.startswith(start.rstrip("*")) for start in BEYOND)
        if beyond or where.rpartition(".")[2] in {"__str__", "__repr__", "__format__"}:
            muted.append(frame)
        elif (module, where) not in items:
            missing.add(full)

    sys.setprofile(look)
    try:
        verdict = proving.prove(law)
        result = outermost(rule(law, before.hints, **before.sizes))(expr)
    finally:
        sys.setprofile(None)
    assert isinstance(verdict, Proved)
    assert isinstance(result, Success)
    assert not {m for m in missing if not m.startswith("liftpy.rewrite.strategy.")}


#: Made by `dataclass` and by nothing that can be read.
SEEN_ELSEWHERE = {"__create_fn__"}


def file_of(module):
    """Where Python found a module, as its frames say it."""
    return getattr(sys.modules.get(module), "__file__", None)


# --- the proof cache itself ----------------------------------------------------------------------


@pytest.mark.parametrize("unchanged", [False, True])  # True: hashes of files of a merge
def test_recording_keeps_what_holds_and_proves_the_rest(unchanged, tmp_path, monkeypatch):
    kept, stale, new = (RULES[n] for n in ("map_fusion", "map_identity", "reorder_identity"))
    known = {n: recorded()[n] for n in (kept.name, stale.name)}
    known[stale.name] = known[stale.name] | {"rests_on": "something else"}
    old = {"files": {}, "rules": known}
    monkeypatch.setattr("liftpy.semantics.proof_recording.recorded", lambda: old["rules"])
    monkeypatch.setattr(proof_cache, "recorded", lambda: old["rules"])
    monkeypatch.setattr(proof_cache, "is_unchanged", lambda: unchanged)
    path = tmp_path / "proofs.json"
    done = record((kept, stale, new), path)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert done.kept == 1
    assert set(done.verdicts) == {stale.name, new.name}
    assert written["rules"][kept.name] == known[kept.name]
    assert set(written["rules"]) == {kept.name, stale.name, new.name}
    assert "liftpy.ir.nat" in written["files"]


def test_a_rule_that_is_not_proved_is_left_out_of_the_proof_cache(tmp_path):
    false = replace(RULES["map_of_crop"], where=())
    done = record((false,), tmp_path / "proofs.json")
    assert not isinstance(done.verdicts[false.name], Proved)
    assert not json.loads(done.path.read_text(encoding="utf-8"))["rules"]


def test_a_deep_value_is_written_without_recursion() -> None:
    """The programs of flat transforms are hundreds of nested lets."""
    levels = 10 * sys.getrecursionlimit()
    value: tuple = ()
    for _ in range(levels):
        value = (value,)
    assert written(value) == "(" * levels + "()" + ",)" * levels


def test_a_value_is_written_as_nested_tuples() -> None:
    assert (
        written((1, ["a", (2.5,)], None, {})) == "(1, ('a', (2.5,)), None, ('builtins.dict', ()))"
    )
    assert written(Fraction(1, 3)) == "('fractions.Fraction', 'Fraction(1, 3)')"

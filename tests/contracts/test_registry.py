"""What every registered primitive has; one that lacks something fails here by its name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import liftpy as lp
from liftpy.cli.primitives import page
from liftpy.ir.expr import Param
from liftpy.language.embedded import lang
from liftpy.language.embedded.words import snake
from liftpy.language.printing.usage import law
from liftpy.language.text.program import parse_expression, show_expr
from liftpy.primitives import LAYOUTS, PRIMITIVES
from liftpy.semantics.contract import general
from tests.docs.pages import files
from tests.primitives.examples import example

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "primitives.md"
UNIT_TESTS = sorted((ROOT / "tests" / "primitives").glob("test_*.py"))

primitives = pytest.mark.parametrize("name", PRIMITIVES)


@primitives
def test_it_has_a_general_instance_for_its_contract(name):
    primitive, params = general(PRIMITIVES[name])
    assert type(primitive) is PRIMITIVES[name]
    primitive.type_of(*(p.type for p in params))


@primitives
def test_it_says_its_conditions_or_why_it_has_none(name):
    primitive, params = general(PRIMITIVES[name])
    clauses = [str(c) for c in primitive.requires(*(p.type for p in params))]
    assert bool(clauses) != bool(primitive.unconditional), (clauses, primitive.unconditional)
    assert set(primitive.by_definition) <= set(clauses), "an excuse for a clause that is not there"


@primitives
def test_its_word_reads_back(name):
    expr = example(PRIMITIVES[name])
    text = show_expr(expr)
    if name != "get":  # printed as a component
        assert re.search(rf"\b{name}\b", text), text
    params: list[Param] = sorted(expr.free, key=lambda p: p.name)
    assert parse_expression(text, params) == expr


@primitives
def test_it_has_a_word_in_the_embedded_form(name):
    assert callable(getattr(lang, snake(name)))
    assert getattr(lp, snake(name)) is getattr(lang, snake(name))


@primitives
def test_it_states_its_law(name):
    assert law(PRIMITIVES[name])


@primitives
def test_it_has_an_entry_in_the_documentation(name):
    assert f"\n## {name}\n" in PAGE.read_text(encoding="utf-8")


@primitives
def test_a_unit_test_names_it(name):
    word = re.compile(rf"\b{name}\b")
    named = [p.name for p in UNIT_TESTS if word.search(p.read_text(encoding="utf-8"))]
    assert named, f"no file of tests/primitives mentions {name}"


def test_layouts_are_primitives():
    assert set(LAYOUTS) <= set(PRIMITIVES.values())


def test_the_page_of_primitives_is_what_the_registry_says():
    """`make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page()).rstrip() + "\n"


# --- three files --------------------------------------------------------------------------------

#: The example of the page on extending liftpy.
STRETCH = files(ROOT / "docs" / "extending.md")["liftpy/primitives/stretch.py"]
USE = """
import sys

import numpy as np

import liftpy as lp
from liftpy.cli.primitives import page
from liftpy.pipeline import compile_program
from liftpy.primitives import PRIMITIVES
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.proof_cache import is_recorded
from liftpy.rewrite.rules import RULES
from liftpy.semantics.contract import prove_primitive
from liftpy.semantics.reference import reference
from liftpy.semantics.verdict import Proved

assert lp.__file__.startswith(sys.argv[1]), lp.__file__
verdict = prove_primitive("stretch")
assert isinstance(verdict, Proved), verdict

text = "def p(xs: [5]f32) =\\n  xs |> stretch(3) |> mapGlb(0, x => x * 2)\\n"
program = lp.parse(text)
assert lp.show(program) == text
xs = np.arange(5, dtype=np.float32)
np.testing.assert_array_equal(lp.evaluate(program, xs), np.repeat(xs, 3) * 2)
np.testing.assert_array_equal(reference(program, xs), np.repeat(xs, 3) * 2)
assert program.body.params[0] >> lp.stretch(3) == program.body.body.args[0]
assert "xs[(gid0 / 3)]" in compile_program(LoweredProgram.of(program)).module.source
assert "## stretch" in page()
assert all(is_recorded(RULES[name]) for name in [*RULES][::9]), "a new layout invalidates a proof"
try:
    lp.parse("def p(xs: [5]f32) = xs |> stretch(0)")
except lp.LiftError as error:
    assert "it requires that 1 <= 0" in str(error) and "stretch(times) : [a]n" in str(error)
else:
    raise AssertionError("stretch(0) was not refused")
"""


def test_a_new_layout_is_its_class_and_its_line_in_the_registry(tmp_path):
    """With these two, and its test, it is proved, parsed, printed, compiled and documented."""
    package = tmp_path / "liftpy"
    shutil.copytree(ROOT / "liftpy", package)  # with `__pycache__`
    (package / "primitives" / "stretch.py").write_text(STRETCH, encoding="utf-8")
    registry = package / "primitives" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    text = text.replace(
        "\n#: Every", "\nfrom liftpy.primitives.stretch import Stretch\n\n#: Every", 1
    )
    text = text.replace("        Repeat,\n", "        Repeat,\n        Stretch,\n", 1)
    registry.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

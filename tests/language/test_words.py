"""Every word of the embedded form is listed, with its signature, meaning and an example."""

import doctest
import inspect
import tempfile

import numpy as np
import pytest

import liftpy as lp
from liftpy.language.embedded import lang
from liftpy.language.embedded.words import snake
from liftpy.language.text.compositions import ABBREVIATIONS
from liftpy.primitives import PRIMITIVES
from tests.docs.pages import DOCS

WORDS = sorted(n for n in dir(lp) if getattr(getattr(lp, n), "is_word", False))
words = pytest.mark.parametrize("name", WORDS)


def run(text, name):
    """Runs the examples of a text; how many there were."""
    globs = {"lp": lp, "np": np, "tempfile": tempfile, "__name__": "__main__"}
    test = doctest.DocTestParser().get_doctest(text, globs, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    said = []
    outcome = runner.run(test, out=said.append)
    assert outcome.failed == 0, "".join(said)
    return outcome.attempted


def test_every_primitive_and_every_abbreviation_is_a_word():
    assert {snake(name) for name in (*PRIMITIVES, *ABBREVIATIONS)} <= set(WORDS)
    assert set(lang.DERIVED) <= set(WORDS)


def test_what_is_listed_is_what_is_there_for_users():
    assert dir(lp) == sorted(lp.__all__)
    assert not [n for n in dir(lp) if n.startswith("_") and n != "__version__"]


@words
def test_it_says_what_it_does_with_an_example_that_works(name):
    word = getattr(lp, name)
    assert word.__doc__.splitlines()[0].endswith((".", "]`."))
    assert run(word.__doc__, name)


@words
def test_its_signature_names_what_it_takes(name):
    """Not the wrapper's `*args`."""
    parameters = inspect.signature(getattr(lp, name)).parameters
    assert not {"args", "named"} & set(parameters)


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_the_word_of_a_primitive_says_its_law_and_its_text(name):
    said = getattr(lp, snake(name)).__doc__
    assert "In the text form: `" in said
    assert " : " in said


def test_help_has_signature_law_and_example():
    assert str(inspect.signature(lp.slide)) == "(size: 'NatLike', step: 'NatLike' = 1) -> 'Section'"
    assert "slide(size, step) : [a]n -> [[a]size]w" in lp.slide.__doc__
    assert str(inspect.signature(lp.take)) == "(count: 'NatLike') -> 'Section'"


#: Functions that take a file, or need PyTorch: the examples of them are on pages of `docs/`.
ON_PAGES = {"export", "load", "network", "torch_backend", "torch_function", "torch_module"}
FUNCTIONS = [name for name in lp.__all__ if inspect.isfunction(getattr(lp, name))]
OTHERS = {*FUNCTIONS, "Nat", "Program", "Space"} - {*WORDS, *ON_PAGES}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_functions_have_examples(name, device):
    """Those that need a device are skipped by doctest, and run here."""
    assert run(getattr(lp, name).__doc__.replace("# doctest: +SKIP", ""), name)


@pytest.mark.parametrize("name", sorted(ON_PAGES))
def test_the_examples_of_other_functions_are_on_a_page(name):
    assert any(f"lp.{name}(" in page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))

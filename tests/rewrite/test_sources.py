"""What a definition rests on is found in the text of a package."""

from __future__ import annotations

import pytest

from liftpy.rewrite.sources import Sources

MAIN = """
from __future__ import annotations
from typing import TYPE_CHECKING
from p.other import helper as h, Shape
from p import third
if TYPE_CHECKING:
    from p.fourth import Only

LIMIT: int = 3

def root(x: Only, LIMIT=LIMIT):
    "What it does."
    def inner(third_):
        return h(third_)
    if x > 5:
        raise ValueError(spoken(x))
    return [third.used(y) for y in inner(x).area]

def spoken(x):
    return f"{x} is more than 5"

def local(shadow):
    return shadow + 1

def shadow():
    return 1
"""
OTHER = """
def helper(x):
    return Shape(x)

class Base:
    def area(self):
        return self.side() * 2
    def side(self):
        return 1
    def unused(self):
        return 2
    def __add__(self, other):
        return added(self, other)
    def __str__(self):
        return printed(self)

class Shape(Base):
    side_: int = 2
    def perimeter(self):
        return 4

def added(a, b): return a
def printed(a): return ""
"""
THIRD = """
def used(y): return y
def unused(y): return y
"""
TEXTS = {"p": "", "p.main": MAIN, "p.other": OTHER, "p.third": THIRD, "p.fourth": "class Only: 1"}


def closure(name, **texts):
    given = TEXTS | {f"p.{m}": t for m, t in texts.items()}
    return Sources(given.get).closure([("p.main", name)])


def test_names_are_followed_through_imports_bases_and_attributes():
    assert set(closure("root").items) == {
        ("p.main", "root"),
        ("p.main", "LIMIT"),
        ("p.third", "used"),
        ("p.other", "helper"),
        ("p.other", "Shape"),
        ("p.other", "Base"),
        ("p.other", "Base.area"),
        ("p.other", "Base.side"),
        ("p.other", "Base.__add__"),
        ("p.other", "added"),
    }


def test_a_local_name_is_no_mention():
    assert set(closure("local").items) == {("p.main", "local")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"What it does."', '"What else it does."'),
        ("x: Only", "x: int"),
        ("return f", "return 'no ' + f"),
        ("spoken(x))", "spoken(x + 1))"),
        ("    if x > 5:", "    # a comment\n    if (x\n        > 5):"),
    ],
    ids=["docstring", "annotation", "what is said", "the exception's words", "layout"],
)
def test_words_and_layout_are_no_part_of_a_text(old, new):
    assert old in MAIN
    assert closure("root", main=MAIN.replace(old, new)).digest == closure("root").digest


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("main", "x > 5", "x > 6"),
        ("main", "LIMIT: int = 3", "LIMIT: int = 4"),
        ("main", "ValueError", "TypeError"),
        ("main", "def spoken", "print(h)\n\ndef spoken"),
        ("other", "side() * 2", "side() * 3"),
        ("other", "side_: int = 2", "side_: float = 2"),
        ("other", "added(a, b): return a", "added(a, b): return b"),
        ("third", "used(y): return y", "used(y): return -y"),
    ],
)
def test_what_is_computed_is(module, old, new):
    text = TEXTS[f"p.{module}"]
    if "print(h)" in new:
        text, old, new = OTHER, "class Base:", "print(helper)\n\nclass Base:"
        module = "other"
    assert old in text
    assert closure("root", **{module: text.replace(old, new, 1)}).digest != closure("root").digest

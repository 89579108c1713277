"""`import liftpy`: names are looked up when they are used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import liftpy as lp

SOURCE = Path(lp.__file__).read_text()


def typed_names():
    """What the type checker is told: every name with its module and its name there."""
    (block,) = (node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            yield alias.asname or alias.name, node.module, alias.name


def test_every_name_is_what_the_types_say():
    found = {name: (module, there) for name, module, there in typed_names()}
    assert sorted(found) == sorted(lp.__all__)
    for name, (module, there) in found.items():
        assert getattr(lp, name) is getattr(import_module(module), there), name


def test_derived_words_are_names_too():
    assert lp.take is import_module("liftpy.language.embedded.lang").take
    assert "take" in lp.__all__


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module liftpy has no attribute 'fold'"):
        _ = lp.fold
    assert "explore" in dir(lp)


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )


def test_a_room_does_not_take_the_name_of_a_function():
    code = (
        "import liftpy.explore.campaign.campaign, liftpy.compile, liftpy as lp;"
        "print(lp.explore.__module__, lp.compile.__module__)"
    )
    done = run(code)
    assert done.stdout.split() == ["liftpy.explore.exploring", "liftpy.compile"], done.stderr


BOARD = """
import sys
sys.modules["z3"] = sys.modules["lark"] = None
import liftpy
import liftpy.explore.measure.bench, liftpy.explore.distributed.board
device = liftpy.find_device({selector!r})
print(device.name)
liftpy.parse
"""


@pytest.mark.sampled(2)
def test_a_board_needs_neither_solver_nor_parser(runtime):
    pytest.importorskip("distributed")
    selector = "intel" if "Intel" in runtime.platform else "pocl"
    done = run(BOARD.format(selector=selector))
    assert done.stdout.strip() == runtime.name, done.stderr
    assert "ModuleNotFoundError: import of" in done.stderr  # `parse` needs the parser

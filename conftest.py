"""What every example in a docstring of liftpy may use."""

import tempfile
from typing import Any

import numpy as np
import pytest

import liftpy as lp


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    """`lp`, `np` and `tempfile`, as in a user's file."""
    doctest_namespace.update(lp=lp, np=np, tempfile=tempfile)

"""What is exported is derived as anything is, and built by boards: tests/shared.py."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _shared(in_one_process):
    """What bundles have in common is made once."""

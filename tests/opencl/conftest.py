"""A session on each runtime, and the module of three kernels in it."""

import pytest

from liftpy.opencl.session import Session
from tests.opencl.modules import saxpy


@pytest.fixture(scope="module")
def session(runtime):
    with Session(runtime) as session:
        yield session


@pytest.fixture
def loaded(session):
    with session.load(saxpy()) as loaded:
        yield loaded

"""For `dask worker --preload`: `liftpy.explore.board` whose benches build plainly."""

from liftpy.explore import process
from liftpy.explore.board import dask_setup

__all__ = ["dask_setup"]

process.START = "tests.plainly"

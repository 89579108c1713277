"""For `dask worker --preload`: `liftpy.explore.distributed.board` whose benches build plainly."""

from liftpy.explore.distributed.board import dask_setup
from liftpy.explore.measure import process

__all__ = ["dask_setup"]

process.START = "tests.plainly"

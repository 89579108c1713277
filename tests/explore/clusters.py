"""A dask cluster in this process, whose workers have devices of these names."""

import re
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from distributed import Scheduler, SpecCluster, Worker

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import LiftError


def device(name):
    return replace(DEFAULT_DEVICE, name=name)


@contextmanager
def cluster(*names, resource="DEVICE", real=False, mute=(), **of):
    """The address of a scheduler, which is not in the messages of what is raised inside.

    The devices are pretended ones with these names, or `real` ones of this machine. `of` has
    further workers by name, with their devices. The workers named in `mute` offer no device.
    """
    selectors = dict(zip(names, names, strict=True)) | of
    here = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    own = {
        "nthreads": 1,
        "resources": {resource: 1},
        "preload": ["liftpy.explore.distributed.board"],
    }
    workers = {
        name: {
            "cls": Worker,
            "options": here | own | {"name": name, "preload_argv": ["--device", selector]},
        }
        for name, selector in selectors.items()
    }
    workers |= {
        name: {"cls": Worker, "options": here | {"name": name, "nthreads": 1}} for name in mute
    }
    slow = "Creating scratch directories"  # on a busy machine
    known = tuple((device(name), None) for name in names)
    with ExitStack() as opened:
        opened.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", slow, UserWarning)
        if not real:
            opened.enter_context(
                mock.patch("liftpy.opencl.devices._found", return_value=(known, ()))
            )
        scheduler = {"cls": Scheduler, "options": here | {"port": 0}}
        made = opened.enter_context(SpecCluster(workers, scheduler))
        try:
            yield made.scheduler_address
        except LiftError as error:
            error.args = (re.sub(r"tcp://127\.0\.0\.1:\d+", "tcp://HOST:PORT", str(error)),)
            raise

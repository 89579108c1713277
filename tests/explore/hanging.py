"""A worker that is ready and never answers, for test_limits.py."""

import time

from liftpy.explore.measure.serving import serve


def forever(_request):
    while True:
        time.sleep(1)


def work():
    serve(lambda _setup, _tell: forever)

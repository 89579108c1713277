"""A worker that is ready and never answers, for test_limits.py."""

import time

from liftpy.explore.measure.serving import serve


class Hanging:
    """It keeps the first request."""

    def answer(self, _request):
        while True:
            time.sleep(1)

    def close(self):
        """It has nothing to give back."""


def work():
    serve(lambda _setup, _tell: Hanging())

"""A worker that is ready and never answers, for test_limits.py."""

import time

from liftpy.explore.measure.serving import serve


class Hanging:
    """A worker that never answers its first request."""

    def answer(self, _request):
        while True:
            time.sleep(1)

    def close(self):
        """Does nothing: it holds nothing."""


def work():
    serve(lambda _setup, _tell: Hanging())

"""A worker that is never ready, for test_limits.py; it leaves when its starter does not want it."""

import time


def work():
    while True:
        time.sleep(1)

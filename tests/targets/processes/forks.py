# SPDX-License-Identifier: MIT
"""Works, and forks a child again and again, which works on at the same addresses."""
import os
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


def in_parent():
    work(time.monotonic() + 0.02)


def in_child():
    work(time.monotonic() + 0.05)
    os._exit(0)


ready.announce()
while True:
    if os.fork() == 0:
        in_child()
    in_parent()
    os.wait()

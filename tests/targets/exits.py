# SPDX-License-Identifier: MIT
"""Works for a second, then ends."""
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


ready.announce()
work(time.monotonic() + 1)

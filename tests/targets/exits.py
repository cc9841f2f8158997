# SPDX-License-Identifier: MIT
"""Works for a second, or, with an argument, until it gets SIGUSR1, then ends."""
import signal
import sys
import time

import ready


def work(until):
    while time.monotonic() < until and not signalled:
        sum(range(100))


signalled = []
signal.signal(signal.SIGUSR1, lambda *_: signalled.append(True))
ready.announce()
work(float("inf") if len(sys.argv) > 1 else time.monotonic() + 1)

# SPDX-License-Identifier: MIT
"""Works for a second, then becomes another program."""
import os
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


ready.announce()
work(time.monotonic() + 1)
os.execv("/bin/sleep", ["sleep", "60"])

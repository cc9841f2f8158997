# SPDX-License-Identifier: MIT
"""Works for a second, then becomes another program: its arguments, or sleep."""
import os
import sys
import time

import ready


def work(until):
    while time.monotonic() < until:
        sum(range(100))


ready.announce()
work(time.monotonic() + 1)
command = sys.argv[1:] or ["sleep", "60"]
os.execvp(command[0], command)

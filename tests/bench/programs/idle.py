# SPDX-License-Identifier: MIT
"""One thread that sleeps, a few calls deep, so that every look finds the same stack."""
import time


def recurse(depth):
    if depth:
        recurse(depth - 1)
    else:
        print("ready", flush=True)
        time.sleep(3600)


recurse(10)

# SPDX-License-Identifier: MIT
"""Threads that begin and end all the time, a few at once. Half of them live only for a moment. An
argument makes the others live that many times as long."""
import sys
import threading

import ready

LONGER = int(sys.argv[1]) if len(sys.argv) > 1 else 1


def leaf(steps):
    n = 0
    while n < steps:
        n += 1


def worker(depth, steps):
    if depth:
        worker(depth - 1, steps)
    else:
        leaf(steps)


def churn():
    depth = 0
    while True:
        threads = [threading.Thread(target=worker, args=(depth % 150, steps))
                   for steps in (0, 100, 1000, 20000 * LONGER, 40000 * LONGER, 60000 * LONGER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        depth += 7


ready.announce()
churn()

# SPDX-License-Identifier: MIT
"""Forks as many children as argv says, two at a time, each of which works for as many ms of its
CPU time as the second number says. Then it writes their process ids into a file beside it.

Possible stacks: <module>; start, then nothing or, in a child, work.
"""
import os
import sys
from time import thread_time

NR_AT_ONCE = 2


def work(seconds):
    until = thread_time() + seconds
    while thread_time() < until:
        for _ in range(100):
            pass


def start(count, milliseconds):
    """Returns the process ids."""
    pids = []
    for number in range(count):
        if number >= NR_AT_ONCE:
            os.wait()
        pid = os.fork()
        if not pid:
            work(milliseconds / 1000)
            os._exit(0)
        pids.append(pid)
    for _ in range(min(count, NR_AT_ONCE)):
        os.wait()
    return pids


started = start(int(sys.argv[1]), int(sys.argv[2]))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")
with open(path, "w", encoding="ascii") as file:
    file.write("".join("%d\n" % pid for pid in started))

# SPDX-License-Identifier: MIT
"""Programs that account for the time that they spend in each of their stacks.

They keep the account in a file beside them, which they map. It has a line for each stack,
"FRAME;FRAME SECONDS", always at the same place, with zero bytes between the lines of
different threads.
"""
import collections
import os
import time

import support


def read(target):
    """Returns {names, outermost first: seconds so far}."""
    path = os.path.join(target.outside, "account")
    text = support.read(path)
    while (again := support.read(path)) != text:  # it was just being written
        text = again
    spent_s = {}
    for line in text.replace("\0", "").splitlines():
        names, _, seconds = line.rpartition(" ")
        spent_s[tuple(names.split(";"))] = float(seconds)
    return spent_s


def since_last(target, nr_stacks, seconds):
    """The stacks that nr_stacks looks at each thread would have found since the last call, so
    that a sampler that ran meanwhile is compared with the same time. First waits that long."""
    before = target.stack_times or read(target)
    time.sleep(seconds)
    target.stack_times = read(target)
    spent_s = {names: end_s - before.get(names, 0) for names, end_s in target.stack_times.items()}
    total_s = sum(spent_s.values())
    return collections.Counter({
        names: round(nr_stacks * target.program.nr_threads * one_s / total_s)
        for names, one_s in spent_s.items()})

# SPDX-License-Identifier: MIT
"""Programs that tell themselves how long they have been in each of their stacks.

They keep it in a file beside them, which they map: a line a stack, "FRAME;FRAME SECONDS",
each time at the same place, with zero bytes between those of several threads.
"""
import collections
import os
import time

import support


def read(target):
    """{names, outermost first: seconds so far}."""
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
    """As so many looks at each of its threads would have found it since this was asked for last,
    so that whoever looked meanwhile is compared with the same time; at least those seconds."""
    before = target.account or read(target)
    time.sleep(seconds)
    target.account = read(target)
    spent_s = {names: end_s - before.get(names, 0) for names, end_s in target.account.items()}
    total_s = sum(spent_s.values())
    return collections.Counter({
        names: round(nr_stacks * target.program.nr_threads * one_s / total_s)
        for names, one_s in spent_s.items()})

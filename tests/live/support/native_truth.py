# SPDX-License-Identifier: MIT
"""An independent source for native stacks: libdw, on a process that is stopped for it."""
import os
import subprocess
import unittest

import support

UNWIND = os.path.join(os.path.dirname(support.PYSAMPLE), "tests", "unwind_cli")

# The threads of tests/targets/native/every_wait.py.
WAYS = ("lock", "timed_lock", "sleep", "select_select", "epoll", "poll", "read", "receive", "get",
        "get_simple", "condition", "event", "key_of_sort")


def all_wait(pid):
    """Whether all threads of tests/targets/native/every_wait.py are inside the kernel."""
    calls = [support.read("/proc/%d/task/%s/syscall" % (pid, tid))
             for tid in os.listdir("/proc/%d/task" % pid)]
    return len(calls) == len(WAYS) + 1 and "running\n" not in calls


def in_kernel(pid):
    """{tid: the kernel functions that the thread is in, outermost first}, as /proc shows them."""
    stacks = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            lines = support.read("/proc/%d/task/%s/stack" % (pid, tid)).splitlines()
        except OSError as error:
            raise unittest.SkipTest("not tested here: no kernel stacks: %s" % error)
        stacks[int(tid)] = [line.split()[1].partition("+")[0] for line in reversed(lines)]
    return stacks


class Stack:
    def __init__(self, error):
        self.error = error
        self.frames = {"ours": [], "libdw": []}  # (pc, sp), innermost first

    def pcs(self):
        return [pc for pc, _ in self.frames["ours"]]


def unwind(pid):
    """Unwind a process: {tid: Stack}."""
    if not os.path.exists(UNWIND):
        raise unittest.SkipTest("not tested here: unwinding (no libdw)")
    run = subprocess.run([UNWIND, str(pid)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise AssertionError("unwind_cli: %d, %s" % (run.returncode, run.stderr))
    stacks = {}
    for line in run.stdout.splitlines():
        what, one, two = line.split()
        if what == "thread":
            stack = stacks[int(one)] = Stack(int(two))
        else:
            stack.frames[what].append((int(one, 16), int(two, 16)))
    return stacks


def is_in_order(few, many):
    rest = iter(many)
    return all(one in rest for one in few)

# SPDX-License-Identifier: MIT
"""Whether anybody else uses the machine, before a measurement and during it."""
import os
import time

import support

from bench import say

TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# So much of a core is anybody else's before figures are not worth having: a quiet machine
# has 0.02 to 0.05, and one more program that runs has 1.
MAX_LOAD = 0.25

# Of the time, sampler or target waited for its core: beyond this a row is marked.
MAX_WAITED_PERCENT = 5.0

LOOK_S = 0.5
PATIENCE_S = 180


class Busy(Exception):
    """The figures would mean nothing; says why."""


def busy_s():
    """The CPU time of all cores so far; what the host took away counts, too."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, support.read("/proc/stat").split()[1:9])
    return (user + nice + system + irq + softirq + steal) * TICK_S


def process_s(pid):
    """The CPU time of a process; 0 if there is none."""
    if pid is None:
        return 0.0
    fields = support.read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def look(target_pid):
    """How many cores are busy with anything but us and the target."""
    begin = time.monotonic(), busy_s() - process_s(target_pid) - time.process_time()
    time.sleep(LOOK_S)
    others_s = busy_s() - process_s(target_pid) - time.process_time() - begin[1]
    return max(others_s, 0) / (time.monotonic() - begin[0])


def wait(anyway, target_pid=None):
    """Until the machine is quiet; its load, in cores. Busy if it never is, unless anyway."""
    deadline = time.monotonic() + PATIENCE_S
    load = look(target_pid)
    if load > MAX_LOAD and not anyway:
        say("waiting for a quiet machine: %.2f cores are busy" % load)
    while load > MAX_LOAD and not anyway:
        if time.monotonic() > deadline:
            raise Busy(
                "%.2f cores are busy with other work (%.2f are allowed) after %d s of waiting; "
                "--anyway measures all the same" % (load, MAX_LOAD, PATIENCE_S))
        load = look(target_pid)
    return load


def disturbed(*waited_percents):
    """Whether so much waiting is beyond what a figure can stand."""
    return any(percent is not None and percent > MAX_WAITED_PERCENT
               for percent in waited_percents)

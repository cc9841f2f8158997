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

# Of the time of all cores, what the host gave to others: beyond this a row is marked, and a program
# is measured again. An idle machine has nothing to take away, so waiting beforehand cannot show it.
MAX_STOLEN_PERCENT = 1.0

LOOK_S = 0.5
PATIENCE_S = 180


class Busy(Exception):
    """The figures would mean nothing; says why."""


def cpu_times_s():
    """Of all cores so far: (with anything to do, taken away by the host, altogether). What was
    taken away is a part of the first."""
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(ticks) * TICK_S for ticks in support.read("/proc/stat").split()[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy, steal, busy + idle + iowait


class Stolen:
    """What the host took away since this was made."""

    def __init__(self):
        self.begin = cpu_times_s()

    def percent(self):
        """Of the time of all cores."""
        _, stolen_s, all_s = (now - then for now, then in zip(cpu_times_s(), self.begin))
        return 100 * stolen_s / all_s if all_s > 0 else 0.0


def process_s(pid):
    """The CPU time of a process; 0 if there is none."""
    if pid is None:
        return 0.0
    fields = support.read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def look(target_pid):
    """How many cores are busy with anything but us and the target."""
    begin = time.monotonic(), cpu_times_s()[0] - process_s(target_pid) - time.process_time()
    time.sleep(LOOK_S)
    others_s = cpu_times_s()[0] - process_s(target_pid) - time.process_time() - begin[1]
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


# Of a row of either table, what it can stand.
LIMITS = {"load": MAX_LOAD, "waited_percent": MAX_WAITED_PERCENT,
          "target_waited_percent": MAX_WAITED_PERCENT, "stolen_percent": MAX_STOLEN_PERCENT}


def is_disturbed(row):
    """Whether the machine was too busy for a row to mean much. What is not known is no reason."""
    return any((getattr(row, field, None) or 0) > limit for field, limit in LIMITS.items())

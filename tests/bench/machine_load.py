# SPDX-License-Identifier: MIT
"""Whether anything else uses the machine, before and during a measurement."""
import os
import time

import support

from bench import say

TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# Limit on the load of other work, in cores, above which figures are worthless. A quiet machine
# has 0.02 to 0.05; one more running program has 1.
MAX_LOAD = 0.25

# The sampler or the target waited for a CPU for more than this share of the time: a row is marked.
MAX_WAITED_PERCENT = 5.0

# The host gave more than this share of the time of all cores to others: a row is marked, and a
# program is measured again. From an idle machine nothing can be taken, so waiting beforehand cannot
# show it.
MAX_STOLEN_PERCENT = 1.0

MEASURED_S = 0.5
PATIENCE_S = 180


class Busy(Exception):
    """The figures would mean nothing; the text says why."""


def cpu_times_s():
    """(busy, stolen, all) seconds of all cores so far. Time stolen by the host is part of busy."""
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(ticks) * TICK_S for ticks in support.read("/proc/stat").split()[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy, steal, busy + idle + iowait


class Stolen:
    """What the host took away since this was made."""

    def __init__(self):
        self.begin = cpu_times_s()

    def percent(self):
        """In percent of the time of all cores."""
        _, stolen_s, all_s = (now - then for now, then in zip(cpu_times_s(), self.begin))
        return 100 * stolen_s / all_s if all_s > 0 else 0.0


def process_s(pid):
    """The CPU time of a process; 0 if pid is None."""
    if pid is None:
        return 0.0
    fields = support.read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def load_of_others(target_pid):
    """How many cores are busy with anything but us and the target."""
    begin = time.monotonic(), cpu_times_s()[0] - process_s(target_pid) - time.process_time()
    time.sleep(MEASURED_S)
    others_s = cpu_times_s()[0] - process_s(target_pid) - time.process_time() - begin[1]
    return max(others_s, 0) / (time.monotonic() - begin[0])


def wait_until_quiet(anyway, target_pid=None):
    """Wait until the machine is quiet. Returns its load, in cores. Raises Busy if it does not get
    quiet, unless anyway."""
    deadline = time.monotonic() + PATIENCE_S
    load = load_of_others(target_pid)
    if load > MAX_LOAD and not anyway:
        say("waiting for a quiet machine: %.2f cores are busy" % load)
    while load > MAX_LOAD and not anyway:
        if time.monotonic() > deadline:
            raise Busy(
                "%.2f cores are still busy with other work (limit %.2f) after %d s of waiting; "
                "use --anyway to measure nevertheless" % (load, MAX_LOAD, PATIENCE_S))
        load = load_of_others(target_pid)
    return load


# Limits on the fields of a row of either table.
LIMITS = {"load": MAX_LOAD, "waited_percent": MAX_WAITED_PERCENT,
          "target_waited_percent": MAX_WAITED_PERCENT, "stolen_percent": MAX_STOLEN_PERCENT}


def is_disturbed(row):
    """Whether the machine was too busy for a row to mean much. Unknown values do not count."""
    return any((getattr(row, field, None) or 0) > limit for field, limit in LIMITS.items())

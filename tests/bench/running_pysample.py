# SPDX-License-Identifier: MIT
"""Runs pysample until the block ends, and reads the CPU time that it has used so far.

Its start, when it reads symbols and sees functions for the first time, does not count.
"""
import contextlib
import os
import subprocess
import time

from bench.processes import end, read_number, start
from bench.samplers import ENDLESS_S

BEGIN_S = 1.0  # until it does nothing but sample


@contextlib.contextmanager
def attached(tools, pid, *options, begin_s=BEGIN_S):
    process = start([tools.pysample, "attach", "-q", "-d", str(ENDLESS_S), "-f", "collapsed",
                     "--mode", "wall", *options, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        time.sleep(begin_s)
        if process.poll() is not None:
            raise RuntimeError("%s: %s" % (" ".join(process.args),
                                           process.stderr.read().decode().strip()))
        yield process.pid
    finally:
        end(process)
        process.stderr.close()


def cpu_s(pid):
    """CPU time of all threads of a process. schedstat has nanoseconds, stat only hundredths."""
    folder = "/proc/%d/task" % pid
    return sum(read_number("%s/%s/schedstat" % (folder, tid), r"^(\d+)") or 0
               for tid in os.listdir(folder)) / 1e9


def cpu_percent(pid, seconds):
    """CPU time in percent of a core, during the next seconds."""
    begin_s, first_s = time.monotonic(), cpu_s(pid)
    time.sleep(seconds)
    return 100 * (cpu_s(pid) - first_s) / (time.monotonic() - begin_s)

# SPDX-License-Identifier: MIT
"""How much less work a busy target does beside each way to sample its C frames than alone, and
how long it waits for its CPU.

All ways are measured in turn, again and again, and each is started anew: a sampler that is
stopped for the time without it (work.py) would find old copies of stacks when it continues. The
target has a CPU, and another one is idle.
"""
import dataclasses
import mmap
import os
import shutil
import subprocess
import time

from bench import machine_load
from bench.catalogue import WORKERS
from bench.estimates import median, median_interval
from bench.processes import Waiting, running, start
from bench.work import RECORD

TURNS = 14
PHASE_S = 1.2
BEGIN_S = 0.6  # until a sampler samples
END_S = 0.3

ALONE = "nothing"


@dataclasses.dataclass
class Loss:
    way: str
    percent: float  # of the work: the median of the turns
    low: float | None  # its 95 % interval
    high: float | None
    waited_percent: float | None  # of the time, for its CPU

    def __str__(self):
        interval = "" if self.low is None else " (%.1f to %.1f)" % (self.low, self.high)
        waited = ("" if self.waited_percent is None
                  else ", %.2f %% waiting for its CPU" % self.waited_percent)
        return "%.1f %%%s%s" % (self.percent, interval, waited)


def commands(tools, pid, rate_hz, stack_bytes):
    """{way: command}"""
    seconds = str(BEGIN_S + PHASE_S + END_S)
    ours = [tools.pysample, "attach", "-q", "-n", "-r", str(rate_hz), "-d", seconds, "-f",
            "collapsed"]
    found = {ALONE: None}
    for engine in "bpf", "preempt":
        found["attach -n --engine " + engine] = ours + ["--engine", engine, str(pid)]
    if shutil.which("perf"):
        found["perf record -g dwarf"] = [
            "perf", "record", "-q", "-F", str(rate_hz), "--call-graph", "dwarf,%d" % stack_bytes,
            "-p", str(pid), "-o", os.devnull, "--", "sleep", seconds]
    return found


def rounds_of(page):
    while True:
        number, _, again = RECORD.unpack(page[:RECORD.size])
        if number == again:
            return number


def measure_once(target, page, command):
    """(rounds per second, waiting %) of the target while the command runs."""
    process = command and start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(BEGIN_S)
    first, begin, waiting = rounds_of(page), time.monotonic(), Waiting(target.pid)
    time.sleep(PHASE_S)
    found = (rounds_of(page) - first) / (time.monotonic() - begin), waiting.percent()
    if process and process.wait() != 0:
        raise RuntimeError("%s failed" % command)
    return found


def measure(tools, interpreter, rate_hz, stack_bytes, args):
    """[Loss], one for each way but ALONE"""
    machine_load.wait_until_quiet(args.anyway)
    with running(interpreter, WORKERS[0]) as target, \
            open(os.path.join(target.outside, "work.count"), "rb") as file, \
            mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ) as page:
        ways = commands(tools, target.pid, rate_hz, stack_bytes)
        runs = {way: [] for way in ways}
        for turn in range(TURNS):
            for way in list(ways) if turn % 2 else reversed(ways):
                runs[way].append(measure_once(target, page, ways[way]))
    alone = [speed for speed, _ in runs.pop(ALONE)]
    return [Loss(way, *median_interval([100 - 100 * speed / other
                                        for (speed, _), other in zip(found, alone)]),
                 median(waited for _, waited in found))
            for way, found in runs.items()]

# SPDX-License-Identifier: MIT
"""Other samplers, each run by its own command line and read in its documented output format.

CPython 3.15's profiling.sampling is in the testbed. py-spy (0.4) and austin (3.x: text; 4.x
writes only its binary format) are measured if they are installed.
"""
import math
import os
import re
import shutil
import subprocess

import support

from bench import say, stacks
from bench.environment import NEWEST_PYTHON
from bench.processes import run
from bench.samplers import ENDLESS_S, IDLE_HZ, Run


def whole(seconds):
    """The others take no fractions."""
    return max(math.ceil(seconds), 1)


class Profiler:
    max_frames = None
    turns = 5  # they run in one turn of this many: they take long, and are only for comparison
    rates = ("max", "1 kHz")
    overhead_s = 0.5

    def __init__(self):
        self.start_cpu_s = 0.0

    @property
    def can_be_stopped(self):
        """Whether the target runs on when the sampler is stopped, which may itself have just
        stopped the target."""
        return True

    def endless_command(self, target, rate_hz):
        """The command that samples until it is killed."""
        return self.command(target, rate_hz, ENDLESS_S)

    def learn_start_cost(self, target):
        """Measure it on the first program only: it is nearly the same for all, and takes long."""
        if not self.start_cpu_s:
            self.start_cpu_s = min(self.run(target, IDLE_HZ, 1).cpu_s for _ in range(2))

    @staticmethod
    def seconds_of(seconds):
        return whole(seconds)

    def runs_in(self, turn, rate):
        return turn % self.turns == 0 and rate in self.rates


class ProfilingSampling(Profiler):
    """CPython 3.15's sampler, in its cheapest format. The recording is turned into stacks
    afterwards, at no charge."""

    max_frames = 256  # of a stack in that format
    overhead_s = 1.0
    max_hz = 1000000  # it counts in whole µs

    def __init__(self, blocking):
        super().__init__()
        self.name = "profiling.sampling" + (" --blocking" if blocking else "")
        self.options = ["--blocking"] if blocking else []

    @staticmethod
    def profiler(target):
        return target.interpreter.command() + ["-m", "profiling.sampling"]

    def command(self, target, rate_hz, seconds):
        threads = ["-a"] if target.program.nr_threads > 1 else []
        return self.profiler(target) + [
            "attach", "-r", "%dhz" % (rate_hz or self.max_hz), "-d", str(whole(seconds)),
            *threads, *self.options, "--binary", "-o", target.inside + "/sampling.bin",
            str(target.pid)]

    @property
    def can_be_stopped(self):
        return not self.options

    def run(self, target, rate_hz, seconds):
        finished = run(self.command(target, rate_hz, seconds), target)
        # Only stacks in the profile count; failed ones are not in it.
        run(self.profiler(target) + ["replay", "--collapsed", "-o", target.inside +
                                     "/sampling.collapsed", target.inside + "/sampling.bin"],
            target)
        return profiling_sampling_run(
            finished, support.read(os.path.join(target.outside, "sampling.collapsed")),
            target.program.nr_threads)


CAPTURED = re.compile(r"Captured ([\d,]+) samples in ([\d.]+) seconds")


def profiling_sampling_run(finished, collapsed, nr_threads):
    captured = CAPTURED.search(finished.stdout)
    if not captured:
        raise RuntimeError("profiling.sampling does not report its samples: "
                           + finished.stdout[-300:])
    nr_ticks = int(captured.group(1).replace(",", ""))
    seen = stacks.of_profiling_sampling(collapsed)
    return Run(nr_ticks * nr_threads, seen.total(), nr_ticks, float(captured.group(2)),
               finished.cpu_s, finished.rss_kib, finished.waited_percent,
               finished.target_waited_percent, seen)


class PySpy(Profiler):
    """`py-spy record -f raw`. It stops the target for every sample, unless it is asked not to."""

    max_hz = 100000

    def __init__(self, nonblocking):
        super().__init__()
        self.name = "py-spy" + (" --nonblocking" if nonblocking else "")
        self.options = ["--nonblocking"] if nonblocking else []

    def command(self, target, rate_hz, seconds):
        return [
            "py-spy", "record", "-f", "raw", "-o", target.outside + "/py-spy.raw", "-d",
            str(whole(seconds)), "-r", str(rate_hz or self.max_hz), "--idle", *self.options,
            "--pid", str(target.pid)]

    @property
    def can_be_stopped(self):
        return bool(self.options)

    def run(self, target, rate_hz, seconds):
        finished = run(self.command(target, rate_hz, seconds), target)
        path = target.outside + "/py-spy.raw"
        return py_spy_run(finished, support.read(path), target.program.nr_threads)


COUNTED = re.compile(r"Samples: ?(\d+) Errors: ?(\d+)")


def py_spy_run(finished, raw, nr_threads):
    """py-spy reports how often a sample failed; its -d counts intervals, not time."""
    seen = stacks.of_py_spy(raw)
    counted = COUNTED.search(finished.stdout + finished.stderr)
    nr_errors = int(counted.group(2)) if counted else 0
    return Run(seen.total() + nr_errors * nr_threads, seen.total(), seen.total() / nr_threads,
               finished.wall_s, finished.cpu_s, finished.rss_kib, finished.waited_percent,
               finished.target_waited_percent, seen)


class Austin(Profiler):
    """`austin -o`, which writes a line per sample."""

    name = "austin"

    def command(self, target, rate_hz, seconds):
        return [
            "austin", "-i", str(1000000 // rate_hz if rate_hz else 1), "-x",
            str(whole(seconds)), "-o", target.outside + "/austin.txt", "-p", str(target.pid)]

    def run(self, target, rate_hz, seconds):
        finished = run(self.command(target, rate_hz, seconds), target)
        path = target.outside + "/austin.txt"
        return austin_run(finished, support.read(path), target.program.nr_threads)


def austin_run(finished, text, nr_threads):
    """The metadata gives the errors as "3/1000" and the time in µs."""
    if text.startswith("MOJ"):
        raise RuntimeError("this austin writes its binary format, which is not supported")
    seen, nr_invalid, metadata = stacks.of_austin(text)
    nr_errors = int(metadata.get("errors", "0").partition("/")[0])
    lost = max(nr_errors, nr_invalid)
    sampled_s = int(metadata["duration"]) / 1e6 if "duration" in metadata else finished.wall_s
    return Run(seen.total() + lost, seen.total(), (seen.total() + lost) / nr_threads, sampled_s,
               finished.cpu_s, finished.rss_kib, finished.waited_percent,
               finished.target_waited_percent, seen)


def is_profiler(name, word):
    """Whether the program of that name is the profiler: other programs have such names, too."""
    if not shutil.which(name):
        return False
    finished = subprocess.run([name, "--help"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace")
    return word in (finished.stdout + finished.stderr).lower()


def report_missing():
    for name, word in INSTALLED.items():
        if not is_profiler(name, word):
            say("not measured: %s (not installed)" % name)


INSTALLED = {"py-spy": "python", "austin": "python"}


def profilers_of(interpreter, has_profiling_sampling):
    found = []
    if interpreter.minor == NEWEST_PYTHON and has_profiling_sampling:
        found += [ProfilingSampling(blocking) for blocking in (False, True)]
    if is_profiler("py-spy", INSTALLED["py-spy"]):
        found += [PySpy(nonblocking) for nonblocking in (False, True)]
    if is_profiler("austin", INSTALLED["austin"]):
        found.append(Austin())
    return found

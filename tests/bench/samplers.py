# SPDX-License-Identifier: MIT
"""Runs pysample, and what it is compared with: the truth, and a loop that only sleeps."""
import collections
import dataclasses
import json
import os

import support

from bench import stack_times, stacks
from bench.engines import NEED_RIGHTS, NO_SAMPLE
from bench.processes import run

# {name: ticks per second; None: as fast as possible}
RATES = {"max": None, "5 kHz": 5000, "1 kHz": 1000, "100 Hz": 100}
IDLE_HZ = 10
IDLE_SECONDS = 0.2
ENDLESS_S = 100000
OURS = "pysample"
RARE_RATES = ("max", "5 kHz")  # they have windows in a few turns only


@dataclasses.dataclass
class Run:
    """One run of one sampler. A field is None if the sampler does not report it."""
    tried: int
    complete: int  # stacks that reached the profile
    ticks: float  # samples of the whole process
    sampled_s: float  # from the first to the last of them
    cpu_s: float  # start and end of the program included
    rss_kib: int
    waited_percent: float | None
    target_waited_percent: float | None
    stacks: collections.Counter = dataclasses.field(repr=False)
    reads: int | None = None
    sleeps: int | None = None
    clock_reads: int | None = None
    late_ticks: int | None = None
    p99_late_us: float | None = None
    lost: dict | None = None  # {reason: how many}


def ours(engine):
    """The sampler's name in a row. In rows of older runs it has no engine."""
    return " ".join(filter(None, (OURS, engine)))


def is_ours(name):
    return name.split()[0] == OURS


def engine_of(name):
    return name.partition(" ")[2]


def thread_options(program):
    """Options of pysample and stopwalk alike: a root frame per thread, where that matters."""
    return ["-t"] if program.measures_threads else []


class Pysample:
    max_frames = None
    overhead_s = 0.06

    def __init__(self, path, name=None, wrapper=(), engine=None, turn=(0, 1)):
        """turn: (i, n), it runs in the i-th of every n turns."""
        self.path = path
        self.name = name or ours(engine)
        self.turn, self.nr_turns = turn
        self.wrapper = list(wrapper)
        self.engine = ["--engine", engine] if engine else []
        self.works_while_stopped = engine in NEED_RIGHTS  # its program in the interrupts does
        self.start_cpu_s = 0.0

    @staticmethod
    def seconds_of(seconds):
        return seconds

    def runs_in(self, turn, rate):
        return rate in RARE_RATES or turn % self.nr_turns == self.turn

    def learn_start_cost(self, target):
        """Measure the CPU time of a run that samples next to nothing, which is subtracted from the
        others. It depends on the program, whose stack has to be found and named."""
        self.start_cpu_s = min(self.run(target, IDLE_HZ, IDLE_SECONDS).cpu_s for _ in range(2))

    def command(self, target, rate_hz, seconds, *options):
        return [
            *self.wrapper, self.path, "attach", "-q", "--idle", "-f", "collapsed",
            "-r", "%d" % rate_hz if rate_hz else "max", "-d", "%.3f" % seconds, *self.engine,
            *thread_options(target.program), *options, str(target.pid)]

    def run(self, target, rate_hz, seconds):
        stats_path = os.path.join(target.outside, "stats.json")
        finished = run(self.command(target, rate_hz, seconds, "--stats-json", stats_path),
                       target, (0, NO_SAMPLE))
        return pysample_run(finished, json.loads(support.read(stats_path)))

    def endless_command(self, target, rate_hz):
        """The command that samples until it is killed."""
        return self.command(target, rate_hz, ENDLESS_S)


def first_value(stats, *keys):
    """The value of the first key that is there; older builds report less."""
    return next((stats[key] for key in keys if key in stats), None)


def p99_late_us(stats):
    late_ns = first_value(stats, "p99_lateness_ns")
    return None if late_ns is None else late_ns / 1e3


def pysample_run(finished, stats):
    lost = sum(stats["lost"].values())
    return Run(
        stats["samples"] + lost, stats["samples"], stats["ticks"], stats["wall_s"],
        finished.cpu_s, max(finished.rss_kib, stats["max_rss_kib"]), finished.waited_percent,
        finished.target_waited_percent, stacks.of_pysample(finished.stdout),
        first_value(stats, "reads"), first_value(stats, "other_syscalls"),
        first_value(stats, "clock_reads"), first_value(stats, "late_ticks"),
        p99_late_us(stats), stats["lost"])


def stop_hz(program):
    """The rate of stops: many threads take long to read, and everything stands still
    meanwhile."""
    return 2000 / (1 + program.nr_threads / 8)


def take_truth(tools, target, nr_stops, seconds):
    """The stacks of nr_stops moments, or of those that fit into the time."""
    if target.program.times_itself:
        return stack_times.since_last(target, nr_stops, seconds)
    finished = run([
        tools.stopwalk, *thread_options(target.program), "-d", "%.3f" % seconds,
        "-r", "%.3f" % stop_hz(target.program), str(target.pid), str(nr_stops)], target)
    return stacks.of_pysample(finished.stdout)


def sleep_cost(tools, target, rate_hz, seconds):
    """CPU µs per wake of a loop that sleeps at that rate and does nothing else."""
    finished = run([tools.sleeploop, str(rate_hz), "%.3f" % seconds],
                   target)
    nr_wakes, cpu_ns = map(int, finished.stdout.split())
    return cpu_ns / 1e3 / max(nr_wakes, 1)

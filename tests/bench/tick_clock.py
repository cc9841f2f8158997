# SPDX-License-Identifier: MIT
"""How far the kernel's tick, as a clock, is from the truth about programs in step with it.

The programs (programs/clocked.py) wait by a timer and work, and keep an account of the share of
the time in which they work, by the CPU clock of their thread. A profile should show that share.
One program never waits, but shares its CPU with a loop that sleeps at 1 kHz
(tests/bench/tools/sleeploop.c). All engines sample the same process in turn.
"""
import contextlib
import dataclasses
import math
import mmap
import os
import statistics
import struct
import subprocess

from bench import attach_run, machine_load, processes, say
from bench.catalogue import CLOCKED
from bench.processes import running
from bench.report import cell, print_table
from bench.stacks import percent, without_thread

ENGINES = ("tick", "bpf", "preempt")
HZ = 250  # the rate of the tick, where the kernel's HZ is the usual 250
SECONDS, QUICK_SECONDS = 4, 2
TURNS, QUICK_TURNS = 10, 4
RECORD = struct.Struct("=QdddQ")  # as in programs/clocked.py
NEIGHBOUR_HZ = 1000

# In percentage points above the floor. A program with more is misrepresented.
MAX_EXCESS = 1


@dataclasses.dataclass
class Window:
    """What one run showed, and what was true meanwhile."""
    nr_working: int  # samples
    nr_samples: int
    worked_s: float  # by the CPU clock of the thread
    worked_wall_s: float
    elapsed_s: float


@dataclasses.dataclass
class Row:
    """All in percent of the time, or in percentage points."""
    program: str
    engine: str
    shown: float
    true: float
    by_wall: float | None  # the same share, including the time in which others had the CPU
    floor: float  # the bias that chance alone causes, on average
    window_biases: list
    nr_samples: int

    @property
    def bias(self):
        return self.shown - self.true

    @property
    def unexplained(self):
        """The part of the bias that is left if others had the CPU during work: a profile by wall
        time may then show anything from the share by CPU time to that by wall time."""
        ends = self.true, self.true if self.by_wall is None else self.by_wall
        return self.shown - min(max(self.shown, min(ends)), max(ends))

    @property
    def is_met(self):
        return abs(self.unexplained) <= self.floor + MAX_EXCESS


def is_shared(program):
    """Whether it never waits, and shares its CPU with a neighbour."""
    return program.argument == "spin"


def is_working(names):
    """Whether alternate() has called work() in that stack. A rest that is spent with work does not
    count."""
    return without_thread(names)[2:3] == ("work",)


def chance_bias(share, nr_samples):
    """The mean of |shown - true| of nr_samples independent looks, in percentage points: for a
    normal distribution it is sqrt(2 / pi) of the deviation."""
    return 100 * math.sqrt(2 / math.pi * share * (1 - share) / nr_samples) if nr_samples else 0.0


def make_row(program, engine, windows):
    nr_samples = sum(one.nr_samples for one in windows)
    true = sum(one.worked_s for one in windows) / sum(one.elapsed_s for one in windows)
    return Row(program.name, engine, percent(sum(one.nr_working for one in windows), nr_samples),
               100 * true, None if is_shared(program) else percent(
                   sum(one.worked_wall_s for one in windows),
                   sum(one.elapsed_s for one in windows)), chance_bias(true, nr_samples),
               [percent(one.nr_working, one.nr_samples) - 100 * one.worked_s / one.elapsed_s
                for one in windows], nr_samples)


def account(page):
    """(seconds of work by CPU time, by wall time, seconds in all)"""
    while True:
        number, *seconds, again = RECORD.unpack(page[:RECORD.size])
        if number == again:
            return seconds


def measure_once(tools, target, page, engine, seconds):
    before = account(page)
    attached = attach_run.attach(tools, target.pid, seconds, HZ, "--engine", engine)
    after = account(page)
    return Window(sum(count for names, count in attached.stacks.items() if is_working(names)),
                  attached.stacks.total(), *(end - begin for begin, end in zip(before, after)))


@contextlib.contextmanager
def neighbour(tools, cpu):
    process = processes.start(["taskset", "-c", str(cpu), tools.sleeploop, str(NEIGHBOUR_HZ),
                               "100000"], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        processes.end(process)


def measure_program(tools, interpreter, program, args):
    """[Row], one for each engine"""
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    cpu = max(os.sched_getaffinity(0))
    wrapper = ("taskset", "-c", str(cpu)) if is_shared(program) else ()
    windows = {engine: [] for engine in args.engines}
    machine_load.wait_until_quiet(args.anyway)
    with neighbour(tools, cpu) if is_shared(program) else contextlib.nullcontext(), \
            running(interpreter, program, wrapper) as target, \
            open(os.path.join(target.outside, "clocked.account"), "rb") as file, \
            mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ) as page:
        for turn in range(QUICK_TURNS if args.quick else TURNS):
            for engine in args.engines[::1 if turn % 2 == 0 else -1]:
                windows[engine].append(measure_once(tools, target, page, engine, seconds))
                while not windows[engine][-1].elapsed_s:  # others had the CPU all of the time
                    windows[engine][-1] = measure_once(tools, target, page, engine, seconds)
    return [make_row(program, engine, found) for engine, found in windows.items()]


def measure(tools, interpreter, args):
    rows = []
    for program in CLOCKED:
        say("CPython %s, %s" % (interpreter, program.name))
        rows += measure_program(tools, interpreter, program, args)
    return rows


def spread_text(biases):
    return "%.1f to %.1f" % (min(biases), max(biases)) if biases else "–"


def print_rows(interpreter, rows):
    print("\n### In step with a timer, CPython %s: share of the time at work, %d Hz\n"
          % (interpreter.version, HZ))
    print_table(("program", "engine", "true %", "by wall", "shown %", "bias", "of the windows",
                 "unexplained", "floor", "≤ floor + %g" % MAX_EXCESS, "samples"), 2,
                [(row.program, row.engine, cell(row.true, 1), cell(row.by_wall, 1),
                  cell(row.shown, 1), "%+.1f" % row.bias, spread_text(row.window_biases),
                  "%+.1f" % row.unexplained, cell(row.floor, 1),
                  "yes" if row.is_met else "**no**", str(row.nr_samples))
                 for row in rows])
    for engine in dict.fromkeys(row.engine for row in rows):
        excess = [abs(row.unexplained) - row.floor for row in rows if row.engine == engine]
        print("\n%s: unexplained minus floor, median %.1f, worst %.1f" % (
            engine, statistics.median(excess), max(excess)))

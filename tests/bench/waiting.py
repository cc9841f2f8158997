# SPDX-License-Identifier: MIT
"""What waiting threads cost: the sampler's CPU time beside one thread that works, or several that
compete, and others that wait (tests/targets/threads/crowd.py), by each engine, with C frames and
without, in two modes, and in `top`, which draws a screen each second.

All cells of one process are measured in turn, and in the next turn in reverse order.
"""
import collections
import dataclasses
import itertools

import support

from bench import machine_load, running_pysample, say
from bench.report import print_table, spread

COUNTS = ((1, 1), (64, 1), (60, 4), (1000, 1))  # of threads that wait, and that work
MODES = ("wall", "cpu", "top")
ENGINES = ("bpf", "preempt", "tick")
HZ = 100
SECONDS, QUICK_SECONDS = 3, 2
MOST_RUNS, QUICK_RUNS = 5, 3
# Until pysample only samples: symbols take time, and an event is opened for each thread.
BEGIN_S, BEGIN_OF_THREAD_S = 1.5, 0.003

# What is aimed at, in percent of a core, without C frames.
AIMS = {(1, 1): 0.7, (64, 1): 1.5, (1000, 1): 5}
TOP_AIMS = {(64, 1): 2, (60, 4): 2}


@dataclasses.dataclass(frozen=True)
class Cell:
    engine: str
    native: bool
    mode: str

    @property
    def options(self):
        return ["--engine", self.engine, "-r", str(HZ), *(["-n"] if self.native else []),
                *([] if self.mode == "top" else ["--mode", self.mode])]

    def running(self, tools, pid, begin_s):
        run = running_pysample.shown if self.mode == "top" else running_pysample.attached
        return run(tools, pid, *self.options, begin_s=begin_s)

    def aim(self, count):
        """None: there is none."""
        return None if self.native else (TOP_AIMS if self.mode == "top" else AIMS).get(count)


def cells(engines):
    """All cells of these engines. Engine tick has no C frames."""
    return [Cell(engine, native, mode)
            for native, mode, engine in itertools.product((False, True), MODES, engines)
            if not (native and engine == "tick")]


def measure_count(tools, interpreter, count, args):
    """{Cell: [% of a core]}"""
    found = collections.defaultdict(list)
    measured = cells(args.engines)
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    begin_s = BEGIN_S + BEGIN_OF_THREAD_S * sum(count)
    with support.python_target(interpreter, "crowd", *count) as target:
        for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
            machine_load.wait_until_quiet(args.anyway, target.pid)
            for cell in measured[::1 if turn % 2 == 0 else -1]:
                with cell.running(tools, target.pid, begin_s) as pid:
                    found[cell].append(running_pysample.cpu_percent(pid, seconds))
    return found


def measure(tools, interpreter, args):
    """{((waiting threads, working threads), Cell): [% of a core]}"""
    found = {}
    for count in COUNTS:
        say("CPython %s, %d waiting and %d working threads" % (interpreter, *count))
        for cell, percents in measure_count(tools, interpreter, count, args).items():
            found[count, cell] = percents
    return found


def cell_text(count, cell, percents):
    """The median and the range."""
    return spread(percents, 2, cell.aim(count))


def print_figures(interpreter, engines, found):
    print("\n### Beside waiting threads, CPython %s: CPU at %d Hz, %% of a core\n"
          % (interpreter.version, HZ))
    lines = []
    for native, mode, count in itertools.product((False, True), MODES, COUNTS):
        aim = Cell(engines[0], native, mode).aim(count)
        lines.append((
            "-n" if native else "Python only", mode, "%d, %d" % count, "≤ %g" % aim if aim else "–",
            *(cell_text(count, cell, found.get((count, cell)))
              for cell in (Cell(engine, native, mode) for engine in engines))))
    print_table(("frames", "mode", "waiting, working", "aim", *engines), 3, lines)

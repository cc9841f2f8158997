# SPDX-License-Identifier: MIT
"""What it costs to sample workers of which one works and the others wait: pysample's CPU time, of
all its threads and after the beginning, and its peak of resident memory at the end of the window.
"""
import collections
import dataclasses

from bench import machine_load, running_pysample, say
from bench.catalogue import tree
from bench.processes import read_number, running
from bench.report import print_table, spread

COUNTS = (1, 8, 64)
HZ = 100
SECONDS = 10
MOST_RUNS, QUICK_RUNS = 5, 3
# Until pysample only samples: it searches each process for its interpreter.
BEGIN_S, BEGIN_OF_PROCESS_S = 1.5, 0.05

CPU_AIMS = {64: 3}  # by the number of workers, in percent of a core
PEAK_AIMS_KIB = {64: 20 << 10}


@dataclasses.dataclass
class Costs:
    """A value for each run."""
    cpu_percent: list = dataclasses.field(default_factory=list)
    peak_kib: list = dataclasses.field(default_factory=list)


def begin_s(nr_processes):
    return BEGIN_S + BEGIN_OF_PROCESS_S * nr_processes


def measure_count(tools, interpreter, count, args):
    """{engine: Costs}"""
    found = collections.defaultdict(Costs)
    machine_load.wait_until_quiet(args.anyway)
    with running(interpreter, tree("workers-waiting-%d" % count)) as target:
        for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
            for engine in args.engines[::1 if turn % 2 == 0 else -1]:
                with running_pysample.attached(
                        tools, target.pid, "-s", "--engine", engine, "-r", str(HZ), "--mode",
                        "busy", begin_s=begin_s(count)) as pid:
                    found[engine].cpu_percent.append(
                        running_pysample.cpu_percent(pid, args.seconds or SECONDS))
                    found[engine].peak_kib.append(
                        read_number("/proc/%d/status" % pid, r"VmHWM:\s+(\d+)"))
    return found


def measure(tools, interpreter, args):
    """{(workers, engine): Costs}"""
    found = {}
    for count in COUNTS:
        say("CPython %s, cost of %d workers" % (interpreter, count))
        for engine, costs in measure_count(tools, interpreter, count, args).items():
            found[count, engine] = costs
    return found


def aim_text(aims, count):
    return "≤ %d" % aims[count] if count in aims else "–"


def print_rows(interpreter, found):
    print("\n### Workers of which one is busy, CPython %s: attach -s at %d Hz\n"
          % (interpreter.version, HZ))
    print_table(("workers", "engine", "CPU, % of a core", "aim", "peak KiB", "aim"), 2,
                [(str(count), engine, spread(costs.cpu_percent, 2, CPU_AIMS.get(count)),
                  aim_text(CPU_AIMS, count), spread(costs.peak_kib, 0, PEAK_AIMS_KIB.get(count)),
                  aim_text(PEAK_AIMS_KIB, count)) for (count, engine), costs in found.items()])

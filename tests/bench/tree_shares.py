# SPDX-License-Identifier: MIT
"""How far the shares of processes and of their functions are from the truth, in a profile by CPU
time of workers that compete for two CPUs.

The truth of processes is the kernel's account of their CPU time (/proc/PID/schedstat), that of
functions the account that each worker keeps (programs/workers.py). Both are read while pysample
samples, one process after the other, and only samples between the two readings of their process
count.
"""
import collections
import contextlib
import dataclasses
import mmap
import os
import tempfile
import time

from bench import machine_load, recordings, say
from bench.catalogue import Program, tree
from bench.distances import chance_percent, total_variation_percent
from bench.estimates import median
from bench.processes import read_number, running
from bench.report import cell, print_table, spread
from bench.stacks import percent
from bench.tree_cost import begin_s

SECONDS, QUICK_SECONDS = 20, 10
MOST_RUNS, QUICK_RUNS = 5, 3
NR_CPUS = 2

# As in programs/workers.py
SLOT = 8
FUNCTIONS = ("parse", "compute", "render", "store")
OTHER = ""  # all other functions of a worker


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: Program
    hz: int
    # Aims, in percent: distances minus floors, and what is lost.
    max_processes: float
    max_functions: float | None
    max_lost: float | None


CASES = (Case("64 busy workers", tree("workers-busy-64"), 100, 2, 2, 2),
         Case("8 unequal workers", tree("workers-unequal-8"), 1000, 1, None, None))


@dataclasses.dataclass(frozen=True)
class Account:
    """What a process had used at one moment."""
    time_ns: int  # CLOCK_MONOTONIC
    run_ns: int  # CPU time, by the kernel
    spent_ns: collections.Counter  # CPU time in each function, by the worker

    def since(self, before):
        return Account(self.time_ns - before.time_ns, self.run_ns - before.run_ns,
                       self.spent_ns - before.spent_ns)


@dataclasses.dataclass
class Distance:
    """In percent, for one run."""
    profile: float
    floor: float

    @property
    def excess(self):
        return self.profile - self.floor


@dataclasses.dataclass
class Run:
    processes: Distance  # of shares of processes
    functions: Distance  # of shares of functions of each process
    nr_samples: int  # with CPU time
    cpu_percent: float  # of the CPU time that the profile has, of what there was
    lost_percent: float


def account_of(pid, slot=None):
    spent_ns = collections.Counter()
    if slot:
        for name, spent_s in zip(FUNCTIONS, slot[1:]):
            spent_ns[name] = round(1e9 * spent_s)
        spent_ns[OTHER] = round(1e9 * slot[1 + len(FUNCTIONS)]) - spent_ns.total()
    time_ns, run_ns = time.monotonic_ns(), read_number("/proc/%d/schedstat" % pid, r"^(\d+)")
    if run_ns is None:
        raise RuntimeError("process %d of the target has ended" % pid)
    return Account(time_ns, run_ns, spent_ns)


def accounts(target, page):
    """{process id: Account} of the parent and all workers"""
    found = {target.pid: account_of(target.pid)}
    for index in range(len(page) // SLOT):
        slot = page[SLOT * index:SLOT * (index + 1)].tolist()
        found[int(slot[0])] = account_of(int(slot[0]), slot)
    return found


@contextlib.contextmanager
def mapped_accounts(target):
    with open(os.path.join(target.outside, "workers.account"), "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as page, \
            memoryview(page) as view, view.cast("d") as doubles:
        yield doubles


def between(samples, before, after):
    """The samples with CPU time between the two accounts of their process."""
    return [sample for sample in samples if sample.cpu_ns and sample.pid in before
            and before[sample.pid].time_ns <= sample.time_ns < after[sample.pid].time_ns]


def distance(truth, profile, nr_samples):
    """Of Counters; None if one is empty."""
    found = total_variation_percent(truth, profile)
    return None if found is None else Distance(found, chance_percent(truth, nr_samples))


def make_run(samples, before, after, stats):
    spent = {pid: account.since(before[pid]) for pid, account in after.items()}
    processes, functions = collections.Counter(), collections.Counter()
    kept = between(samples, before, after)
    for sample in kept:
        processes[sample.pid] += sample.cpu_ns
        name = sample.name if sample.name in FUNCTIONS else OTHER
        functions[sample.pid, name] += sample.cpu_ns
    lost = sum(stats["lost"].values())
    return Run(
        distance(collections.Counter({pid: one.run_ns for pid, one in spent.items()}), processes,
                 len(kept)),
        distance(collections.Counter({(pid, name): spent_ns for pid, one in spent.items()
                                      for name, spent_ns in one.spent_ns.items()}), functions,
                 len(kept)),
        len(kept), percent(processes.total(), sum(one.run_ns for one in spent.values())),
        percent(lost, lost + stats["samples"]))


def measure_once(tools, target, page, case, engine, seconds):
    with tempfile.TemporaryDirectory() as folder:
        recording = recordings.Recording(os.path.join(folder, "tree.pysample"))
        with recordings.attached(tools, target.pid, recording, "--engine", engine, "-r",
                                 str(case.hz), begin_s=begin_s(len(page) // SLOT)):
            before = accounts(target, page)
            time.sleep(seconds)
            after = accounts(target, page)
            time.sleep(2 / case.hz)  # until the last samples of the window are taken
        return make_run(recording.samples(tools), before, after, recording.stats())


def measure_case(tools, interpreter, case, args):
    """{engine: [Run]}"""
    found = collections.defaultdict(list)
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    cpus = sorted(os.sched_getaffinity(0))[:NR_CPUS]
    machine_load.wait_until_quiet(args.anyway)
    with running(interpreter, case.program,
                 ("taskset", "-c", ",".join(map(str, cpus)))) as target, \
            mapped_accounts(target) as page:
        for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
            for engine in args.engines[::1 if turn % 2 == 0 else -1]:
                found[engine].append(measure_once(tools, target, page, case, engine, seconds))
    return found


def measure(tools, interpreter, args):
    """{(Case, engine): [Run]}"""
    found = {}
    for case in CASES:
        say("CPython %s, shares of %s" % (interpreter, case.name))
        for engine, runs in measure_case(tools, interpreter, case, args).items():
            found[case, engine] = runs
    return found


def aim_text(aim):
    return cell(aim, 0) if aim is None else "≤ %g" % aim


def distance_texts(distances, aim):
    known = [one for one in distances if one]
    return (spread([one.profile for one in known], 1), cell(median(one.floor for one in known), 1),
            spread([one.excess for one in known], 1, aim), aim_text(aim))


def line(case, engine, runs):
    return (case.name, str(case.hz), engine, spread([run.nr_samples for run in runs], 0),
            spread([run.cpu_percent for run in runs], 1),
            *distance_texts([run.processes for run in runs], case.max_processes),
            *distance_texts([run.functions for run in runs], case.max_functions),
            spread([run.lost_percent for run in runs], 2, case.max_lost), aim_text(case.max_lost))


def print_rows(interpreter, found):
    print("\n### Shares in a tree on %d CPUs, CPython %s: distance in %% from the truth\n"
          % (NR_CPUS, interpreter.version))
    print_table(("program", "Hz", "engine", "samples", "CPU time %", "processes", "floor",
                 "minus floor", "aim", "functions", "floor", "minus floor", "aim", "lost %", "aim"),
                3, [line(case, engine, runs) for (case, engine), runs in found.items()])

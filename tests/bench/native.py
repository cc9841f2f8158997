# SPDX-License-Identifier: MIT
"""Stacks with C frames: how many are right, how many are whole, and what they cost.

A stack is right if it agrees with the trampolines of -X perf in the same stack
(tests/live/support/trampoline_truth.py). The program is tests/targets/stacks/shortcalls.py, whose
functions last a microsecond. The cost of a frame is measured beside libdw on threads that stand
still (tests/targets/stacks/corpus.py): tests/tools/unwind_cli.c stops them and unwinds each stack
again and again, after it has compiled the unwind information and copied the memory. The cost is the
CPU time of the thread that unwinds.
"""
import collections
import dataclasses
import itertools
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

import support
from support import call_truth, trampoline_truth

from bench import attach_run, jit_names, machine_load, native_work, say

ROUNDS = 200
JIT_ROUNDS = 1000
SECONDS = 10
SHORT_S = 2
COMPILING_S = 2  # until hot code has been compiled
TRUTH_HZ = 500
COST_HZ = 100  # pysample's default rate
WARM_HZ = 1000  # the caches still hold the last sample
MOST_COST_RUNS = 5  # pairs of a short run and a long one
NR_WAITING = 200  # threads beside the busy one, as in a server
PERF_STACK_BYTES = 32768  # as pysample's

PERF_MAP = {"PYTHONPERFSUPPORT": "1"}
JIT = {"PYTHON_JIT": "1"}
NO_JIT = {"PYTHON_JIT": "0"}


@dataclasses.dataclass
class Row:
    what: str
    figure: str
    aim: str = ""


def percent(part, whole):
    return "%.2f %%" % (100 * part / whole) if whole else "no samples"


# What a frame costs.

def measure_once(unwind_cli, pid):
    """{who: [ns per frame, of each thread]}"""
    run = subprocess.run([unwind_cli, str(pid), str(ROUNDS)], capture_output=True, text=True,
                         check=True)
    found = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        who, nanoseconds, frames = line.split()
        found[who].append(int(nanoseconds) / int(frames))
    return found


def measure_frames(tools, interpreter, args):
    """What a frame costs pysample and libdw."""
    if not os.path.exists(tools.unwind_cli):
        say("not measured: what a frame costs (libdw-dev is not installed)")
        return []
    found = collections.defaultdict(list)
    with support.parked_target(interpreter, "corpus") as target:
        for _ in range(args.runs):
            machine_load.wait_until_quiet(args.anyway)
            for who, values in measure_once(tools.unwind_cli, target.pid).items():
                found[who] += values
        nr_threads = len(os.listdir("/proc/%d/task" % target.pid))
    rows = [Row("reading and compiling the unwind rules of all functions on %d stacks" % nr_threads,
                "%.1f ms" % (statistics.median(found.pop("compiling")) / 1e6))]
    for who, values in found.items():
        twentieths = statistics.quantiles(values, n=20)
        rows.append(Row("unwinding, by " + ("pysample" if who == "ours" else who),
                        "%.0f ns per frame (%.0f to %.0f)"
                        % (statistics.median(values), twentieths[0], twentieths[-1]),
                        "110 ns" if who == "ours" else ""))
    return rows


# Attaching.

def attach(tools, pid, seconds, hz, *options):
    return attach_run.attach(tools, pid, seconds, hz, "-n", "--plumbing", *options)


@dataclasses.dataclass
class Engine:
    """An engine, which merges C and Python frames in its own way, and its aims."""
    name: str
    whole_aim: str
    right_aim: str

    @property
    def options(self):
        return "--engine", self.name


ENGINES = (Engine("bpf", "99.5 %", "99.9 %"), Engine("preempt", "90 %", "99.5 %"))


def truth_rows(attached, perf_map, engine):
    counts, _ = trampoline_truth.judge(attached.labels, perf_map)
    activations = trampoline_truth.judge_frames(attached.labels, perf_map)
    nr_whole = counts["right"] + counts["wrong"]
    return [Row("stacks without a gap, by " + engine.name,
                percent(nr_whole, nr_whole + counts["with_gap"]), engine.whole_aim),
            Row("correct stacks among those, by " + engine.name, "%s (%d of %d are wrong)" % (
                percent(counts["right"], nr_whole), counts["wrong"], nr_whole), engine.right_aim),
            Row("correct activations among those named, by " + engine.name,
                percent(activations["right"], activations["right"] + activations["wrong"]))]


def measure_truth(tools, interpreter, args):
    """How many stacks are right, judged by the trampolines in them, which are new in 3.12."""
    if support.version_key(interpreter) < [3, 12]:
        return []
    rows = []
    for engine in ENGINES:
        machine_load.wait_until_quiet(args.anyway)
        with support.python_target(interpreter, "shortcalls", environment=PERF_MAP) as target:
            attached = attach(tools, target.pid, args.seconds or SECONDS, TRUTH_HZ,
                              "--trampolines", *engine.options)
            with trampoline_truth.map_of(target, interpreter) as read_map:
                rows += truth_rows(attached, read_map(), engine)
    return rows


def whole_row(name, attached, aim):
    native = attached.stats["native"]
    return Row("whole C stacks, " + name,
               "%s (%d of %d have a gap)" % (percent(native["stacks"] - native["c_gaps"],
                                                      native["stacks"]),
                                              native["c_gaps"], native["stacks"]), aim)


def gap_row(name, attached):
    native = attached.stats["native"]
    return Row("stacks with a gap instead of some Python frames, " + name,
               "%s of %d" % (percent(native["python_gaps"], native["stacks"]), native["stacks"]))


def impossible_row(name, attached):
    """Judged by the calls that the program has (tests/live/support/call_truth.py)."""
    counts, _ = call_truth.judge(attached.labels)
    return Row("stacks with a call that the program does not have, " + name,
               "%s of %d" % (percent(counts["impossible"], sum(counts.values())),
                             sum(counts.values())))


def multiplies_row(name, attached):
    """Only one function of the program multiplies, but executors may name another one."""
    who = call_truth.who_multiplies(attached.labels)
    wrong = sum(who.values()) - who["double"] - who[trampoline_truth.GAP]
    return Row("stacks in a multiplication that name another function, " + name,
               "%s of %d" % (percent(wrong, sum(who.values())), sum(who.values())), "3 %")


def measure_whole(tools, interpreter, args):
    """How many C stacks reach the start of their thread, and how many lack Python frames."""
    machine_load.wait_until_quiet(args.anyway)
    ways = [("plain", NO_JIT, "99.5 %")]
    if interpreter.minor in ("3.14", "3.15"):
        ways.append(("JIT", JIT, "97 %" if interpreter.minor == "3.14" else "99.5 %"))
    rows = []
    for engine in ENGINES:
        for name, environment, aim in ways:
            with support.python_target(interpreter, "shortcalls",
                                       environment=environment) as target:
                attached = attach(tools, target.pid, args.seconds or SECONDS, TRUTH_HZ,
                                  *engine.options)
            name += ", by " + engine.name
            judge = impossible_row if environment is NO_JIT else multiplies_row
            rows += [whole_row(name, attached, aim), gap_row(name, attached),
                     judge(name, attached)]
    return rows


# The names of code that is made at run time.

def measure_names(tools, interpreter, args):
    """The names of the trampolines of -X perf_jit, which is new in 3.13."""
    if support.version_key(interpreter) < [3, 13]:
        return []
    machine_load.wait_until_quiet(args.anyway)
    samples, in_file = jit_names.live(tools, interpreter, args.seconds or SECONDS, TRUTH_HZ)
    unnamed = jit_names.times_of_unnamed(samples)
    in_file_alone = sum(in_file.issuperset(names) for _, names in samples)
    expected, found, found_in_order = jit_names.damaged(tools, interpreter)
    nr_expected = len(expected)
    return [Row("samples whose trampolines are all named, live process",
                "%s of %d%s" % (
                    percent(len(samples) - len(unnamed), len(samples)), len(samples),
                    " (last unnamed one after %.2f s)" % unnamed[-1] if unnamed else ""),
                "100 %"),
            Row("the same, with the names in its jitdump only",
                "%s of %d" % (percent(in_file_alone, len(samples)), len(samples))),
            Row("functions in a jitdump that a fork has damaged",
                "%s of %d" % (percent(len(expected & found), nr_expected), nr_expected), "100 %"),
            Row("the same, for a reader that goes from record to record",
                "%s of %d" % (percent(len(expected & found_in_order), nr_expected), nr_expected))]


# What sampling costs.

def children_s():
    """CPU time of all commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def perf_cost(pid, seconds):
    """(CPU seconds of perf record and of perf script, number of whole stacks, of all stacks); None
    without perf."""
    if not shutil.which("perf"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        times = []
        for command in (
                ["perf", "record", "-q", "-F", str(COST_HZ), "--call-graph",
                 "dwarf,%d" % PERF_STACK_BYTES, "-p", str(pid), "-o", data, "--", "sleep",
                 str(seconds)],
                ["perf", "script", "-i", data, "-F", "comm,ip,sym"]):
            before_s = children_s()
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                say("not measured: perf: " + run.stderr.strip()[-200:])
                return None
            times.append(children_s() - before_s)
    stacks = [stack for stack in run.stdout.split("\n\n") if stack.strip()]
    whole = sum(bool(re.search(r" _start$", stack.rstrip())) for stack in stacks)
    return times, whole, len(stacks)


def cpu_pair(tools, pid, seconds, *options, rate_hz=COST_HZ):
    """CPU seconds of a short run, and of one that is longer by that many seconds."""
    return (attach(tools, pid, SHORT_S, rate_hz, *options).cpu_s,
            attach(tools, pid, SHORT_S + seconds, rate_hz, *options).cpu_s)


def shares_of(pairs, seconds):
    """The CPU time per second of a run, without its start, from each pair."""
    return [(long_s - short_s) / seconds for short_s, long_s in pairs]


def cost_row(engine, pairs, seconds):
    """The CPU time of a run per second, and at its start."""
    shares = shares_of(pairs, seconds)
    share = statistics.median(shares)
    start_s = statistics.median(short_s for short_s, _ in pairs) - SHORT_S * share
    return Row("CPU at %d Hz, one busy thread, by %s" % (COST_HZ, engine.name),
               "%.2f %% of a core (%.2f to %.2f), and %.0f ms at the start"
               % (100 * share, 100 * min(shares), 100 * max(shares), 1000 * start_s), "1 %")


def measure_cost(tools, interpreter, args):
    """CPU time of pysample beside one busy thread, and of perf on the same process, in turn."""
    machine_load.wait_until_quiet(args.anyway)
    seconds = int(args.seconds or SECONDS)
    pairs, perfs = collections.defaultdict(list), []
    with support.python_target(interpreter, "shortcalls", environment=NO_JIT) as target:
        for _ in range(min(args.runs, MOST_COST_RUNS)):
            for engine, rate_hz in itertools.product(ENGINES, (COST_HZ, WARM_HZ)):
                pairs[engine.name, rate_hz].append(cpu_pair(
                    tools, target.pid, seconds, *engine.options, rate_hz=rate_hz))
            perfs.append(perf_cost(target.pid, seconds))
        kernel = attach(tools, target.pid, SHORT_S, COST_HZ, "--kernel")
    short_s = statistics.median(short_s for short_s, _ in pairs["bpf", COST_HZ])
    rows = []
    for engine in ENGINES:
        rows += [cost_row(engine, pairs[engine.name, COST_HZ], seconds),
                 Row("CPU per sample at %d and at %d Hz, by %s" % (COST_HZ, WARM_HZ, engine.name),
                     "%.0f and %.0f us" % tuple(
                         1e6 * statistics.median(shares_of(pairs[engine.name, rate_hz], seconds))
                         / rate_hz for rate_hz in (COST_HZ, WARM_HZ)))]
    rows.append(Row("extra CPU time with --kernel, in %d s" % SHORT_S,
                    "%.0f ms" % (1000 * (kernel.cpu_s - short_s))))
    perf = all(perfs) and sorted(perfs)[len(perfs) // 2]
    if perf:
        (record_s, script_s), whole, nr_stacks = perf
        rows.append(Row("CPU of perf record -g dwarf, and of perf script to read it",
                        "%.2f %% of a core, and %.0f ms per stack"
                        % (100 * record_s / seconds, 1000 * script_s / max(nr_stacks, 1))))
        rows.append(Row("whole C stacks by perf script, which knows no Python frames",
                        "%s of %d" % (percent(whole, nr_stacks), nr_stacks)))
    return rows


def measure_crowd(tools, interpreter, args):
    """CPU time of pysample where one thread runs and many wait."""
    machine_load.wait_until_quiet(args.anyway)
    seconds = int(args.seconds or SECONDS)
    shares, times_s = [], []
    with support.python_target(interpreter, "crowd", NR_WAITING) as target:
        for _ in range(min(args.runs, MOST_COST_RUNS)):
            short, long = (attach(tools, target.pid, run_s, COST_HZ)
                           for run_s in (SHORT_S, SHORT_S + seconds))
            cpu_s = long.cpu_s - short.cpu_s
            shares.append(cpu_s / seconds)
            times_s.append(cpu_s / (long.stats["native"]["stacks"]
                                    - short.stats["native"]["stacks"]))
    return [Row("CPU at %d Hz, one busy and %d waiting threads" % (COST_HZ, NR_WAITING),
                "%.1f %% of a core (%.1f to %.1f), %.1f us per stack"
                % (100 * statistics.median(shares), 100 * min(shares), 100 * max(shares),
                   1e6 * statistics.median(times_s)))]


def measure_loss(tools, interpreter, args):
    """What the target loses by being sampled."""
    return [Row("work that a busy thread loses by %s at %d Hz" % (one.way, COST_HZ),
                str(one))
            for one in native_work.measure(tools, interpreter, COST_HZ, PERF_STACK_BYTES, args)]


def measure_list(tools, interpreter, args):
    """The cost of reading the list for debuggers, which 3.15 has."""
    if interpreter.minor != "3.15":
        return []
    machine_load.wait_until_quiet(args.anyway)
    with support.python_target(interpreter, "shortcalls", environment=JIT) as target:
        time.sleep(COMPILING_S)
        run = subprocess.run([tools.jit_times, str(target.pid), str(JIT_ROUNDS)],
                             capture_output=True, text=True, check=False)
    if run.returncode:
        say("not measured: the list for debuggers (%s)" % run.stderr.strip())
        return []
    rounds = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    return [Row("a look at the list for debuggers, of %d entries" % rounds[-1][1],
                "%.0f us" % (statistics.median(ns for ns, _ in rounds[1:]) / 1000),
                "150 us for 16")]


def measure(tools, interpreter, args):
    """[Row]"""
    rows = []
    for name, function in (("frames", measure_frames), ("truth", measure_truth),
                           ("whole stacks", measure_whole), ("names", measure_names),
                           ("cost", measure_cost), ("waiting threads", measure_crowd),
                           ("loss", measure_loss),
                           ("the list for debuggers", measure_list)):
        say("CPython %s, native stacks: %s" % (interpreter, name))
        rows += function(tools, interpreter, args)
    return rows


def print_figures(interpreter, rows):
    print("\n### Native stacks, CPython %s\n" % interpreter.version)
    print("| figure | | aim |")
    print("| --- | ---: | ---: |")
    for row in rows:
        print("| %s | %s | %s |" % (row.what, row.figure, row.aim))

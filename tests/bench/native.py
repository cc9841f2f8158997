# SPDX-License-Identifier: MIT
"""What it costs to unwind a native stack, a frame, beside libdw.

The stacks are those of threads that stand still (tests/targets/corpus.py), stopped by
tests/support/unwind_cli.c, which unwinds each again and again: information is compiled and
memory is copied before. CPU time of the thread that unwinds.
"""
import collections
import os
import statistics
import subprocess

import support

from bench import quiet, say

ROUNDS = 200


def measure_once(unwind_cli, pid):
    """{who: [ns a frame, of each thread]}"""
    run = subprocess.run([unwind_cli, str(pid), str(ROUNDS)], capture_output=True, text=True,
                         check=True)
    found = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        who, nanoseconds, frames = line.split()
        found[who].append(int(nanoseconds) / int(frames))
    return found


def measure(unwind_cli, interpreter, asked):
    """{who: [ns a frame, of each thread and run]}"""
    if not os.path.exists(unwind_cli):
        raise RuntimeError("%s is not built (libdw-dev is not installed)" % unwind_cli)
    say("CPython %s, native stacks" % interpreter)
    found = collections.defaultdict(list)
    with support.parked_target(interpreter, "corpus") as target:
        for _ in range(asked.runs):
            quiet.wait(asked.anyway)
            for who, values in measure_once(unwind_cli, target.pid).items():
                found[who] += values
    return found


def print_figures(interpreter, found, nr_runs):
    print("\n### Unwinding, CPython %s: ns a frame, of the threads of %d runs\n"
          % (interpreter.version, nr_runs))
    print("| by | median | 5 % | 95 % |")
    print("| --- | ---: | ---: | ---: |")
    for who, values in found.items():
        twentieths = statistics.quantiles(values, n=20)
        print("| %s | %.0f | %.0f | %.0f |" % ("pysample" if who == "ours" else who,
                                              statistics.median(values), twentieths[0],
                                              twentieths[-1]))

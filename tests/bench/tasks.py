# SPDX-License-Identifier: MIT
"""How far the shares of asyncio's tasks are from the truth, in a profile by CPU time of a server
with 200 tasks.

The truth is the account that each task keeps of its work (programs/task_server.py). It is read twice
while pysample samples. Only samples in between count, and only those of the work: what asyncio does
for a task is in no account.
"""
import collections
import dataclasses
import json
import mmap
import os
import tempfile
import time

from bench import machine_load, recordings, say
from bench.catalogue import TASK_SERVER
from bench.estimates import median
from bench.processes import running
from bench.report import cell, print_table, spread
from bench.stacks import percent
from bench.tree_shares import Distance, aim_text, distance

SECONDS, QUICK_SECONDS = 20, 10
MOST_RUNS, QUICK_RUNS = 5, 3
HZ = 1000
MODES = ("running", "all")
BEGIN_S = 1
MAX_EXCESS_PERCENT = 1
NAME, WORK = "handler-%d", "work"


@dataclasses.dataclass
class Run:
    tasks: Distance
    nr_samples: int  # of tasks
    cpu_percent: float  # of the tasks' CPU time that the profile has
    own_cpu_percent: float  # pysample's, of a CPU
    lost_percent: float


def accounts(page):
    """(CLOCK_MONOTONIC in ns, {name: CPU time in ns})"""
    spent = collections.Counter({NAME % number: round(1e9 * seconds)
                                 for number, seconds in enumerate(page.tolist())})
    return time.monotonic_ns(), spent


def task_of(frames):
    """The name of the innermost task, if it works."""
    tasks = [frame["name"] for frame in frames if frame["kind"] == "task"]
    return tasks[-1] if tasks and any(frame["name"] == WORK for frame in frames) else None


def spent_in(text, begin_ns, end_ns):
    """({name: CPU time in ns}, number of samples)"""
    spent, tasks, nr_samples = collections.Counter(), {}, 0
    for row in map(json.loads, text.splitlines()):
        if row["type"] == "stack":
            tasks[row["id"]] = task_of(row["frames"])
        elif row["type"] == "sample" and begin_ns <= row["time_ns"] < end_ns and row["cpu_ns"]:
            if tasks[row["stack"]]:
                spent[tasks[row["stack"]]] += row["cpu_ns"]
                nr_samples += 1
    return spent, nr_samples


def measure_once(tools, target, page, mode, seconds):
    with tempfile.TemporaryDirectory() as folder:
        recording = recordings.Recording(os.path.join(folder, "tasks.pysample"))
        with recordings.attached(tools, target.pid, recording, "--async=" + mode, "-r", str(HZ),
                                 begin_s=BEGIN_S):
            begin_ns, before = accounts(page)
            time.sleep(seconds)
            end_ns, after = accounts(page)
            time.sleep(2 / HZ)  # until the last samples of the window are taken
        stats = recording.stats()
        about = json.loads(recordings.output(
            [tools.pysample, "report", "-q", "--info", "--json", recording.path]))
        epoch_ns = about["epoch_us"] * 1000
        text = recordings.output([tools.pysample, "report", "-q", "-f", "jsonl", recording.path])
    after.subtract(before)
    profile, nr_samples = spent_in(text, begin_ns + epoch_ns, end_ns + epoch_ns)
    lost = sum(stats["lost"].values())
    return Run(distance(after, profile, nr_samples), nr_samples,
               percent(profile.total(), after.total()),
               percent(stats["cpu_user_s"] + stats["cpu_sys_s"], stats["wall_s"]),
               percent(lost, lost + stats["samples"]))


def measure(tools, interpreter, args):
    """{mode: [Run]}"""
    found = collections.defaultdict(list)
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    say("CPython %s, shares of tasks" % interpreter)
    machine_load.wait_until_quiet(args.anyway)
    with running(interpreter, TASK_SERVER) as target, \
            open(os.path.join(target.outside, "task_server.account"), "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as page, \
            memoryview(page) as view, view.cast("d") as doubles:
        for turn in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
            for mode in MODES[::1 if turn % 2 == 0 else -1]:
                found[mode].append(measure_once(tools, target, doubles, mode, seconds))
    return found


def line(mode, runs):
    distances = [run.tasks for run in runs if run.tasks]
    return ("--async=" + mode, spread([run.nr_samples for run in runs], 0),
            spread([run.cpu_percent for run in runs], 1),
            spread([one.profile for one in distances], 1),
            cell(median(one.floor for one in distances), 1),
            spread([one.excess for one in distances], 1, MAX_EXCESS_PERCENT),
            aim_text(MAX_EXCESS_PERCENT), spread([run.own_cpu_percent for run in runs], 2),
            spread([run.lost_percent for run in runs], 2))


def print_rows(interpreter, found):
    print("\n### Shares of %d tasks at %d Hz, CPython %s: distance in %% from the truth\n"
          % (TASK_SERVER.argument, HZ, interpreter.version))
    print_table(("option", "samples", "CPU time %", "tasks", "floor", "minus floor", "aim",
                 "pysample's CPU, %", "lost %"), 1,
                [line(mode, runs) for mode, runs in found.items()])

# SPDX-License-Identifier: MIT
"""How long it takes to report on a core file, and how much memory.

The kernel makes the cores during the run, so they are in the page cache. The programs are run
in turn, as at the start (startup.py).
"""
import contextlib
import dataclasses
import os
import shutil
import statistics
import subprocess

from support import core_files

from bench import machine_load, say, startup

MAX_GDB_RUNS = 3  # each takes seconds


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    situation: str  # of tests/targets/processes/crash.py
    aim_s: float
    aim_mib: float | None = None
    packed: bool = False


CASES = [
    Case("1 thread", "single", 0.02),
    Case("51 threads", "threads=50", 0.05),
    Case("1001 threads", "threads=1000", 0.3),
    Case("100,000 frames", "far=100000", 0.5),
    Case("51 threads, .zst", "threads=50", 0.3, 64, packed=True),
]
QUICK = CASES[:2]


@dataclasses.dataclass
class Figures:
    """The figures of one case."""

    case: Case
    core_bytes: int
    disk_bytes: int
    commands: list


def packed(path):
    subprocess.run(["zstd", "-q", "--sparse", path], check=True)
    return path + ".zst"


def with_gdb(interpreter, path):
    return ["gdb", "-nx", "-batch", "-iex", "set auto-load no", "-iex",
            "set debuginfod enabled off", "-ex", "thread apply all bt",
            os.path.realpath(interpreter.root + interpreter.path), path]


def measure_case(pysample, interpreter, case, nr_runs):
    with core_files.crashed(interpreter, case.situation) as core:
        status = os.stat(core.path)
        path = packed(core.path) if case.packed else core.path
        commands = startup.run_in_turn(
            [startup.TimedCommand("pysample core", [pysample, "core", path])], nr_runs)
        if shutil.which("gdb") and not case.packed:
            commands += startup.run_in_turn(
                [startup.TimedCommand("gdb thread apply all bt", with_gdb(interpreter, path))],
                min(nr_runs, MAX_GDB_RUNS))
        for command in commands:
            for _ in range(startup.NR_RSS_RUNS if command.name.startswith("pysample") else 1):
                command.watch()
    return Figures(case, status.st_size, status.st_blocks * 512, commands)


def measure(pysample, interpreter, args):
    """[Figures], one for each case"""
    found = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(core_files.kernel_cores())
        for case in QUICK if args.quick else CASES:
            say("CPython %s, %s" % (interpreter, case.name))
            machine_load.wait_until_quiet(args.anyway)
            found.append(measure_case(pysample, interpreter, case, args.runs))
    return found


def print_figures(interpreter, figures, nr_runs):
    print("\n### A core file of CPython %s: s of %d runs, median (5 %%–95 %%)\n"
          % (interpreter.version, nr_runs))
    print("| core | size, on disk | program | wall | aim | CPU | RSS MiB | aim |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for one in figures:
        for command in one.commands:
            ours = command.name.startswith("pysample")
            print("| %s | %d, %d MiB | %s | %s | %s | %.3f | %.0f | %s |" % (
                one.case.name, one.core_bytes >> 20, one.disk_bytes >> 20, command.name,
                seconds(command.wall_ms), "%.2f" % one.case.aim_s if ours else "",
                statistics.median(command.cpu_ms) / 1e3, command.rss_kib / 1024,
                "%d" % one.case.aim_mib if ours and one.case.aim_mib else ""))


def seconds(values_ms):
    if len(values_ms) < 2:
        return "%.3f" % (values_ms[0] / 1e3)
    twentieths = statistics.quantiles(values_ms, n=20)
    return "%.3f (%.3f–%.3f)" % (statistics.median(values_ms) / 1e3, twentieths[0] / 1e3,
                                 twentieths[-1] / 1e3)

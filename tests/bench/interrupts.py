# SPDX-License-Identifier: MIT
"""What a sample by BPF costs: the time of the BPF program in the target's interrupt, and the CPU
time of the pysample that reads its records, at several depths.

The kernel itself measures every run of a BPF program while somebody holds the descriptor that
BPF_ENABLE_STATS returns (bpf(2)), and shows the times in the fdinfo of the program's descriptors.
That adds two readings of the clock to a run.
"""
import contextlib
import ctypes
import dataclasses
import errno
import os
import re
import time

import support

from bench import machine_load, running_pysample, say
from bench.catalogue import program
from bench.processes import running
from bench.report import cell, print_table, spread
from bench.samplers import sleep_cost

ENGINE = "bpf"
HZ = 1000
SECONDS, QUICK_SECONDS = 4, 2
SLEEP_SECONDS = 1.0
MOST_RUNS, QUICK_RUNS = 9, 3

# Frames besides those of recurse(): <module>, calls, leaf_a, and sometimes leaf_b.
OTHER_FRAMES = 3

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS = 32  # include/uapi/linux/bpf.h
BPF_STATS_RUN_TIME = 0


@dataclasses.dataclass(frozen=True)
class Depth:
    nr_frames: int
    program_aim_us: float | None  # for a run of the BPF program
    sample_aim_us: float | None  # for pysample's CPU time per sample

    @property
    def target(self):
        depth = self.nr_frames - OTHER_FRAMES
        return program("calls", depth, r".*")


DEPTHS = (Depth(20, None, 2), Depth(100, 20, 5), Depth(1000, 150, None))


@contextlib.contextmanager
def run_times():
    """Inside this context the kernel measures BPF programs. RuntimeError if that is not allowed.

    Uses a descriptor and not kernel.bpf_stats_enabled, which would stay on if we were killed."""
    attributes = ctypes.c_uint32(BPF_STATS_RUN_TIME)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(SYS_BPF[os.uname().machine], BPF_ENABLE_STATS,
                              ctypes.byref(attributes), ctypes.sizeof(attributes))
    if descriptor < 0:
        raise RuntimeError("cannot measure BPF programs: %s" % errno.errorcode[ctypes.get_errno()])
    try:
        yield
    finally:
        os.close(descriptor)


@dataclasses.dataclass
class Times:
    """The sums over all BPF programs that a process has open."""
    run_ns: int = 0
    nr_runs: int = 0

    def since(self, before):
        return Times(self.run_ns - before.run_ns, self.nr_runs - before.nr_runs)


def times_in(texts):
    """The sums in the fdinfo of all descriptors. Each program counts once: it may have several
    descriptors, and links name it, too."""
    programs = {}
    for text in texts:
        fields = dict(re.findall(r"^(prog_id|run_time_ns|run_cnt):\s*(\d+)$", text, re.MULTILINE))
        if "run_cnt" in fields:
            programs[fields["prog_id"]] = int(fields["run_time_ns"]), int(fields["run_cnt"])
    return Times(*(sum(values) for values in zip(*programs.values()))) if programs else Times()


def times_of(pid):
    folder = "/proc/%d/fdinfo" % pid
    texts = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            texts.append(support.read(os.path.join(folder, name)))
    return times_in(texts)


@dataclasses.dataclass
class Row:
    python: str
    depth: Depth
    program_us: list  # of each run of the bench
    sample_us: list
    wake_us: list  # of a loop that only sleeps, at the same rate


def measure_once(tools, target, seconds):
    """(µs per run of the BPF program, CPU µs of pysample per run)"""
    with running_pysample.attached(tools, target.pid, "--engine", ENGINE, "-r", str(HZ)) as pid:
        first, first_s = times_of(pid), running_pysample.cpu_s(pid)
        time.sleep(seconds)
        times, cpu_s = times_of(pid).since(first), running_pysample.cpu_s(pid) - first_s
    if not times.nr_runs:
        raise RuntimeError("the BPF program never ran")
    return times.run_ns / 1e3 / times.nr_runs, 1e6 * cpu_s / times.nr_runs


def measure(tools, interpreter, args):
    """[Row]"""
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    rows = [Row(interpreter.version, depth, [], [], []) for depth in DEPTHS]
    for row in rows:
        say("CPython %s, interrupts at %d frames" % (interpreter, row.depth.nr_frames))
        with running(interpreter, row.depth.target) as target, run_times():
            for _ in range(min(args.runs, QUICK_RUNS if args.quick else MOST_RUNS)):
                machine_load.wait_until_quiet(args.anyway, target.pid)
                program_us, sample_us = measure_once(tools, target, seconds)
                row.program_us.append(program_us)
                row.sample_us.append(sample_us)
                row.wake_us.append(sleep_cost(tools, target, HZ, SLEEP_SECONDS))
    return rows


def print_rows(rows):
    print("\n### One sample by BPF at %d Hz: µs, median and range\n" % HZ)
    print_table(("python", "frames", "program in the interrupt", "aim",
                 "pysample's CPU per sample", "aim", "one wake of a sleeping loop"), 1,
                [(row.python, str(row.depth.nr_frames),
                  spread(row.program_us, 1, row.depth.program_aim_us),
                  cell(row.depth.program_aim_us, 0),
                  spread(row.sample_us, 1, row.depth.sample_aim_us),
                  cell(row.depth.sample_aim_us, 0), spread(row.wake_us, 1)) for row in rows])

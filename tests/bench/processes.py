# SPDX-License-Identifier: MIT
"""Starts what is measured and what measures, and accounts for it."""
import contextlib
import dataclasses
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

import support

from bench import ROOT
from bench.catalogue import Program

PROGRAMS = os.path.join(ROOT, "tests", "bench", "programs")
RSS_POLL_S = 0.1
SETTLE_S = 0.2  # in which the target's code is specialised
PATIENCE_S = 120  # a child that takes longer hangs


@dataclasses.dataclass
class Finished:
    stdout: str
    stderr: str
    cpu_s: float  # user and system
    wall_s: float
    waited_s: float | None  # ready to run but not running; None if the kernel does not count it
    rss_kib: int  # the highest seen
    target_waited_percent: float | None  # of wall_s: the same for the target's main thread

    @property
    def waited_percent(self):
        return None if self.waited_s is None else 100 * self.waited_s / self.wall_s


def read_number(path, pattern):
    """The first number that pattern finds in a file of /proc; None if there is none."""
    try:
        found = re.search(pattern, support.read(path))
    except OSError:
        return None
    return int(found.group(1)) if found else None


def start(command, stdin=subprocess.DEVNULL, **kwargs):
    """Start a process that ends with this one."""
    return subprocess.Popen(support.TIED_TO_US + command, stdin=stdin, **kwargs)


def wait_for_end(process):
    """Wait until a process is a zombie. Returns its resident peak in KiB."""
    deadline = time.monotonic() + PATIENCE_S
    peak_kib = 0
    descriptor = os.pidfd_open(process.pid)
    try:
        # The peak of getrusage(2) would include this script's, from before exec.
        while not select.select([descriptor], [], [], RSS_POLL_S)[0]:
            peak_kib = max(peak_kib, read_number("/proc/%d/status" % process.pid,
                                                 r"VmHWM:\s+(\d+)") or 0)
            if time.monotonic() > deadline:
                raise RuntimeError("%s did not end in time" % process.args)
    finally:
        os.close(descriptor)
    return peak_kib


class Waiting:
    """How long the main thread of a process has waited for a CPU since this was made."""

    def __init__(self, pid):
        self.path = "/proc/%d/task/%d/schedstat" % (pid, pid)
        self.begin_s, self.begin_ns = time.monotonic(), self.waited_ns()

    def waited_ns(self):
        return read_number(self.path, r"^\d+ (\d+)")

    def percent(self):
        """None if the kernel does not count it."""
        waited_ns = self.waited_ns()
        if waited_ns is None or self.begin_ns is None:
            return None
        return (waited_ns - self.begin_ns) / 1e7 / (time.monotonic() - self.begin_s)


def run(command, target, good=(0,)):
    """Run a command that examines the target to its end, and account for it. RuntimeError if
    its exit status is not in good."""
    with tempfile.TemporaryFile("w+", dir=target.outside) as stdout, \
            tempfile.TemporaryFile("w+", dir=target.outside) as stderr:
        target_waiting = Waiting(target.pid)
        begin = time.monotonic()
        process = start(command, stdout=stdout, stderr=stderr)
        try:
            rss_kib = wait_for_end(process)
            wall_s = time.monotonic() - begin
            target_waited_percent = target_waiting.percent()
            waited_ns = read_number("/proc/%d/schedstat" % process.pid, r"^\d+ (\d+)")
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            end(process)
        stdout.seek(0)
        stderr.seek(0)
        output, errors = stdout.read(), stderr.read()
    if process.returncode not in good:
        raise RuntimeError("%s: %s" % (" ".join(command), errors.strip()[-300:]))
    return Finished(output, errors, usage.ru_utime + usage.ru_stime, wall_s,
                    waited_ns / 1e9 if waited_ns is not None else None, rss_kib,
                    target_waited_percent)


def end(process):
    """Kill and reap a process, unless it was reaped already."""
    if process.returncode is None:
        process.kill()
        process.wait()


@dataclasses.dataclass
class Target:
    pid: int
    program: Program
    interpreter: support.Interpreter
    outside: str  # the folder of the programs and of all output
    inside: str  # the same folder, as seen from the interpreter's root
    stack_times: dict | None = None  # as it was last read: stack_times.py


@contextlib.contextmanager
def folder_of_programs(interpreter):
    """A copy of all programs: its path from outside the interpreter's root and from inside."""
    with support.fresh_folder(interpreter.root) as (outside, inside):
        os.chmod(outside, 0o777)  # a wrapper may change the user
        for name in os.listdir(PROGRAMS):
            if name.endswith(".py"):
                shutil.copy(os.path.join(PROGRAMS, name), outside)
        yield outside, inside


@contextlib.contextmanager
def running(interpreter, program, wrapper=()):
    """Run a program, started with the wrapper, until the block ends."""
    with folder_of_programs(interpreter) as (outside, inside):
        process = start([*wrapper, *program.command(interpreter, inside)],
                        stdout=subprocess.PIPE, env=support.target_environment(inside))
        try:
            if process.stdout.readline().strip() != b"ready":
                raise RuntimeError("%s did not start under %s" % (program.name, interpreter))
            time.sleep(SETTLE_S)
            yield Target(process.pid, program, interpreter, outside, inside)
        finally:
            end(process)
            process.stdout.close()

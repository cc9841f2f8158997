# SPDX-License-Identifier: MIT
"""Runs pysample until the block ends, and reads the CPU time that it has used so far.

Its start, when it reads symbols and sees functions for the first time, does not count.
"""
import contextlib
import os
import pty
import subprocess
import termios
import threading
import time

from bench.processes import end, read_number, start
from bench.samplers import ENDLESS_S

BEGIN_S = 1.0  # until it does nothing but sample
SCREEN = (40, 120)  # rows, columns


def attached(tools, pid, *options, begin_s=BEGIN_S):
    return running([tools.pysample, "attach", "-q", "-d", str(ENDLESS_S), "-f", "collapsed",
                    "--mode", "wall", *options, str(pid)], begin_s, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def shown(tools, pid, *options, begin_s=BEGIN_S):
    """pysample top on a terminal, from which its screens are read."""
    ours, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, SCREEN)
    reader = threading.Thread(target=read_all, args=(ours,))
    reader.start()
    try:
        with running([tools.pysample, "top", *options, str(pid)], begin_s, stdin=terminal,
                     stdout=terminal, env={**os.environ, "TERM": "xterm-256color"}) as found:
            yield found
    finally:
        os.close(terminal)
        reader.join()
        os.close(ours)


def read_all(terminal):
    with contextlib.suppress(OSError):  # nobody has its other side
        while os.read(terminal, 1 << 16):
            pass


@contextlib.contextmanager
def running(command, begin_s, **streams):
    process = start(command, stderr=subprocess.PIPE, **streams)
    try:
        time.sleep(begin_s)
        if process.poll() is not None:
            raise RuntimeError("%s: %s" % (" ".join(process.args),
                                           process.stderr.read().decode().strip()))
        yield process.pid
    finally:
        end(process)
        process.stderr.close()


def cpu_s(pid):
    """CPU time of all threads of a process. schedstat has nanoseconds, stat only hundredths."""
    folder = "/proc/%d/task" % pid
    return sum(read_number("%s/%s/schedstat" % (folder, tid), r"^(\d+)") or 0
               for tid in os.listdir(folder)) / 1e9


def cpu_percent(pid, seconds):
    """CPU time in percent of a core, during the next seconds."""
    begin_s, first_s = time.monotonic(), cpu_s(pid)
    time.sleep(seconds)
    return 100 * (cpu_s(pid) - first_s) / (time.monotonic() - begin_s)

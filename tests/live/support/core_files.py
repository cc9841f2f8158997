# SPDX-License-Identifier: MIT
"""Core files of targets, written by the kernel or by gdb, and their comparison with the truth.

A core is written to its target's folder and deleted with it: some cores are hundreds of megabytes
of holes, and one written by gdb has no holes.
"""
import contextlib
import dataclasses
import fcntl
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

import support
from support import Interpreter, pysample

CORE_PATTERN = "/proc/sys/kernel/core_pattern"
COREDUMP_FILTER = "/proc/self/coredump_filter"
ET_CORE = 4


# ---- what the kernel writes -------------------------------------------------------------


def is_core(path):
    with open(path, "rb") as file:
        header = file.read(18)
    return header[:4] == b"\x7fELF" and struct.unpack("<H", header[16:])[0] == ET_CORE


def _is_plain(pattern):
    """Whether the pattern names a file in the working directory."""
    return pattern[:1] not in ("", "|", "@") and "/" not in pattern


@contextlib.contextmanager
def _plain_core_pattern():
    pattern = support.read(CORE_PATTERN).rstrip("\n")
    if _is_plain(pattern):
        yield
        return
    # One process at a time. The next one finds the pattern restored.
    with open(os.path.join(tempfile.gettempdir(), "pysample-core-pattern.lock"), "w",
              encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(CORE_PATTERN, "w", encoding="ascii") as file:
                file.write("core")
        except OSError:
            raise unittest.SkipTest("not tested here: kernel cores (core_pattern is %s)"
                                    % pattern) from None
        try:
            yield
        finally:
            with open(CORE_PATTERN, "w", encoding="ascii") as file:
                file.write(pattern)


@contextlib.contextmanager
def core_limit(size_bytes):
    """Processes started in the block leave no larger core."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] not in (resource.RLIM_INFINITY, size_bytes) and os.geteuid() != 0:
        raise unittest.SkipTest("not tested here: kernel cores (ulimit -Hc)")
    resource.setrlimit(resource.RLIMIT_CORE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


@contextlib.contextmanager
def kernel_cores():
    """A process started in the block leaves its core in its working directory."""
    with _plain_core_pattern(), core_limit(resource.RLIM_INFINITY):
        yield


@contextlib.contextmanager
def coredump_filter(bits):
    """Set the filter of core(5) for processes started in the block."""
    before = support.read(COREDUMP_FILTER)

    def write(text):
        with open(COREDUMP_FILTER, "w", encoding="ascii") as file:
            file.write(text)

    write("%#x" % bits)
    try:
        yield
    finally:
        write("0x" + before)


class InItsFolder(Interpreter):
    """Runs in its program's folder, so that its core is written there."""

    script = 'cd "$TMPDIR" && exec "$0" "$@"'

    def command(self):
        return (["chroot", self.root] if self.root else []) + ["sh", "-c", self.script, self.path]


class BelowAShell(InItsFolder):
    """The same in a container, below a shell. As the container's init, the program would not die
    of its own signals, and unshare(1) would die with it and leave a core, too."""

    script = 'cd "$TMPDIR" && "$0" "$@"; exit $?'


def in_its_folder(interpreter, is_contained=False):
    return (BelowAShell if is_contained else InItsFolder)(**vars(interpreter))


# ---- cores --------------------------------------------------------------------------------


@dataclasses.dataclass
class Core:
    path: str
    target: support.Target

    @property
    def folder(self):
        return os.path.dirname(self.path)

    @property
    def report(self):
        return self.target.report


def folder_of(target):
    return os.path.dirname(target.errors)


def core_of_dead(target, number):
    """The core that the kernel wrote of a process killed by a signal, possibly below a shell."""
    status = target.process.wait(timeout=support.PATIENCE_S)
    if status not in (-number, 128 + number):
        raise AssertionError("the target ended with status %d: %s" % (status, target.stderr()))
    files = [entry.path for entry in os.scandir(folder_of(target)) if entry.is_file()]
    found = [path for path in files if is_core(path)]
    if len(found) != 1:
        raise AssertionError("expected exactly one core, found %s" % found)
    return Core(found[0], target)


SIGNALS = {"abort": signal.SIGABRT, "quit": signal.SIGQUIT, "segv": signal.SIGSEGV,
           "raised_again": signal.SIGSEGV}


@contextlib.contextmanager
def crashed(interpreter, situation, end="abort", *args, container=(), environment=None):
    """The core that the kernel writes of tests/targets/processes/crash.py. container: a command
    that makes one."""
    with support.python_target(in_its_folder(interpreter, bool(container)), "crash", situation,
                               end, *args, wrapper=container, environment=environment) as target:
        yield core_of_dead(target, signal.SIGSEGV if situation == "overflow" else SIGNALS[end])


def aborted(target):
    """Kill a live target and return its core."""
    os.kill(target.pid, signal.SIGABRT)
    return core_of_dead(target, signal.SIGABRT)


@contextlib.contextmanager
def killed(interpreter, name):
    """The core of a target built on parking.py, killed from outside."""
    with support.parked_target(in_its_folder(interpreter), name) as target:
        yield aborted(target)


@contextlib.contextmanager
def parked(interpreter, situation, container=(), environment=None):
    """tests/targets/processes/crash.py, parked instead of killed."""
    with support.python_target(in_its_folder(interpreter, bool(container)), "crash", situation,
                               "park", wrapper=container, environment=environment) as target:
        pid = support.descendant(target.pid)
        support.wait_until(
            lambda: support.reads_from(pid, pid, target.report["parking"]), "the target is parked")
        yield target


def gdb_writes_core(pid, path):
    if not shutil.which("gdb"):
        raise unittest.SkipTest("not tested here: gdb cores (gdb is not installed)")
    run = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off",
         "-iex", "set auto-solib-add off", "-p", str(pid), "-ex", "gcore " + path],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=support.PATIENCE_S)
    if not os.path.exists(path):
        raise AssertionError("gdb wrote no core: " + run.stderr)


def gcore(target, pid=None):
    """The core that gdb writes of a live target, or of pid, if that is another process."""
    path = os.path.join(folder_of(target), "gcore")
    gdb_writes_core(pid or target.pid, path)
    return Core(path, target)


# ---- notes -------------------------------------------------------------------------------

PT_NOTE, NT_FILE = 4, 0x46494C45


def notes_of(head):
    """Yield (type, offset of the note, offset of its content, size of its content) for each note.
    head is the beginning of a core that the kernel wrote, whose first program header names the
    notes."""
    (headers,) = struct.unpack_from("<Q", head, 0x20)
    kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", head, headers)
    if kind != PT_NOTE:
        raise AssertionError("the first program header is not PT_NOTE: no kernel core")
    end = offset + size
    while offset < end:
        name_size, content_size, kind = struct.unpack_from("<III", head, offset)
        content = offset + 12 + (name_size + 3 & ~3)
        yield kind, offset, content, content_size
        offset = content + (content_size + 3 & ~3)


def mapped_files(head):
    """The paths in NT_FILE. It has a count, the page size, then start, end and offset of each
    mapping, and then the paths."""
    for kind, _, content, size in notes_of(head):
        if kind == NT_FILE:
            (count,) = struct.unpack_from("<Q", head, content)
            paths = head[content + 16 + 24 * count:content + size].split(b"\0")
            return {os.fsdecode(path) for path in paths[:count]}
    raise AssertionError("no file is mapped")


# ---- pysample's report ------------------------------------------------------------------------


def core_json(*args, **kwargs):
    result = pysample("core", "--json", *args, **kwargs)
    if result.status:
        raise AssertionError("core ended with %d: %s" % (result.status, result.stderr))
    return json.loads(result.stdout)


def expanded(truth):
    """A thread's frames as the report must show them."""
    frames = [[entry, 1] if isinstance(entry, dict) else entry for entry in truth["frames"]]
    return support.expected_frames(
        {"frames": [frame for frame, nr in frames for _ in range(nr)]})


def frames_fault(thread, truth):
    """The first error in a thread's stack, or None."""
    frames, wanted = support.dumped_frames(thread), expanded(truth)
    for index, (one, other) in enumerate(zip(frames, wanted)):
        if one != other:
            return "frame %d: %r instead of %r" % (index, one, other)
    if len(frames) != len(wanted):
        return "%d frames, not %d" % (len(frames), len(wanted))
    return None

# SPDX-License-Identifier: MIT
"""How much of the code that CPython makes at run time gets its name: in a running process, whose
jitdump lacks what CPython has not written yet, and in a file that a fork has damaged. CPython
writes 4096 bytes at a time, and the child writes what its parent had buffered.
"""
import json
import os
import signal
import struct
import subprocess

import support
from support import trampoline_truth

PERF_JIT = {"PYTHON_PERF_JIT_SUPPORT": "1"}

HEADER_BYTES, PREFIX, LOAD = 40, struct.Struct("<IIQ"), 0
NAME_OFFSET = 56  # in a record LOAD
LAST_ID = 4  # of records


def path_of(interpreter, pid):
    """The jitdump of a process, in a folder that everybody shares."""
    return "%s/tmp/jit-%d.dump" % (interpreter.root, pid)


def names_in(tools, path):
    """The names that pysample finds in a file."""
    run = subprocess.run([tools.pysample, "jit", "--json", path], capture_output=True, text=True,
                         check=True)
    return {code["name"] for code in json.loads(run.stdout)["codes"]}


# A process that runs.

def attach(tools, pid, seconds, hz):
    """[(s since the first sample, names of trampolines)] for the samples that have any."""
    run = subprocess.run([tools.pysample, "attach", "-n", "--trampolines", "-d", str(seconds),
                          "-r", str(hz), "-f", "jsonl", str(pid)],
                         capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in run.stdout.splitlines()]
    trampolines = {record["id"]: [
        frame["name"] for frame in record["frames"] if frame["kind"] == "jit" and (
            frame["name"] == trampoline_truth.UNNAMED or frame["name"].startswith("py::"))]
                   for record in records if record["type"] == "stack"}
    samples = [record for record in records if record["type"] == "sample"]
    return [((sample["time_ns"] - samples[0]["time_ns"]) / 1e9, trampolines[sample["stack"]])
            for sample in samples if trampolines[sample["stack"]]]


def times_of_unnamed(samples):
    return [time_s for time_s, names in samples if trampoline_truth.UNNAMED in names]


def live(tools, interpreter, seconds, hz):
    """The samples of a process that has just started, and the names in its file at the end."""
    with support.python_target(interpreter, "shortcalls", environment=PERF_JIT) as target:
        path = path_of(interpreter, target.pid)
        try:
            return attach(tools, target.pid, seconds, hz), names_in(tools, path)
        finally:
            os.unlink(path)


# A file that a fork has damaged.

def names_in_order(path):
    """The names found by a reader that goes from record to record, up to the first invalid one."""
    with open(path, "rb") as file:
        data = file.read()
    names, offset = set(), HEADER_BYTES
    while offset + PREFIX.size <= len(data):
        number, nr_bytes, _ = PREFIX.unpack_from(data, offset)
        if number > LAST_ID or not PREFIX.size <= nr_bytes <= len(data) - offset:
            break
        if number == LOAD:
            name = data[offset + NAME_OFFSET:offset + nr_bytes].partition(b"\0")[0]
            names.add(name.decode(errors="replace"))
        offset += nr_bytes
    return names


def damaged(tools, interpreter):
    """For a process that has forked: the names of its functions as it reports them, those that
    pysample finds in its file, and those that a reader finds that stops at the damage."""
    with support.python_target(interpreter, "jitted", "fork", environment=PERF_JIT) as target:
        paths = [path_of(interpreter, pid) for pid in (target.pid, target.report["child"])]
        try:
            target.process.send_signal(signal.SIGTERM)  # to make it write what is buffered
            target.process.wait(timeout=support.PATIENCE_S)
            expected = {*target.report["before"], *target.report["after"]}
            return expected, names_in(tools, paths[0]), names_in_order(paths[0])
        finally:
            for path in paths:
                os.unlink(path)

# SPDX-License-Identifier: MIT
"""Recordings of process trees: makes them, and reads their samples, with the time of each."""
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
import typing

import support

from bench.engines import NO_SAMPLE
from bench.processes import PATIENCE_S, end, start
from bench.samplers import ENDLESS_S


class Sample(typing.NamedTuple):
    pid: int
    time_ns: int  # CLOCK_MONOTONIC
    cpu_ns: int  # since the thread's previous sample
    name: str  # of the innermost function; "" without a frame


@dataclasses.dataclass(frozen=True)
class Recording:
    """One that is being made, or was."""
    path: str

    @property
    def stats_path(self):
        return self.path + ".json"

    @property
    def options(self):
        return ["-o", self.path, "--stats-json", self.stats_path]

    def stats(self):
        return json.loads(support.read(self.stats_path))

    def samples(self, tools):
        """[Sample], in the order of time. Without a sample pysample writes no recording."""
        if not os.path.exists(self.path):
            return []
        about = json.loads(output([tools.pysample, "report", "-q", "--info", "--json", self.path]))
        text = output([tools.pysample, "report", "-q", "-f", "jsonl", self.path])
        return list(samples_in(text.splitlines(), about["epoch_us"] * 1000))


def output(command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if run.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), run.stderr.strip()[-300:]))
    return run.stdout


def samples_in(lines, epoch_ns):
    """The samples of a profile in jsonl. epoch_ns: CLOCK_REALTIME when CLOCK_MONOTONIC was 0, as
    the recording has it, with which its times became those of the profile."""
    pids, threads, stacks = {}, {}, {}
    for line in lines:
        row = json.loads(line)
        if row["type"] == "process":
            pids[row["id"]] = row["pid"]
        elif row["type"] == "thread":
            threads[row["id"]] = pids[row["process"]]
        elif row["type"] == "stack":
            stacks[row["id"]] = row["frames"][-1]["name"] if row["frames"] else ""
        elif row["type"] == "sample":
            yield Sample(threads[row["thread"]], row["time_ns"] - epoch_ns, row["cpu_ns"] or 0,
                         stacks[row["stack"]])


@contextlib.contextmanager
def attached(tools, pid, recording, *options, begin_s):
    """Record a process and all that it starts, from begin_s before the block until its end."""
    process = start([tools.pysample, "attach", "-q", "-s", "-d", str(ENDLESS_S),
                     *recording.options, *options, str(pid)], stderr=subprocess.PIPE)
    try:
        time.sleep(begin_s)
        yield
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        if process.returncode not in (0, NO_SAMPLE):
            raise RuntimeError("%s: %s" % (" ".join(process.args), errors.decode().strip()[-300:]))
    finally:
        end(process)
        process.stderr.close()


def run(tools, command, recording, *options):
    """Run a command under `pysample run`. Returns what pysample says."""
    process = start([tools.pysample, "run", "-v", *recording.options, *options, "--", *command],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
        process.stderr.close()
    if process.returncode:
        raise RuntimeError("%s: %s" % (" ".join(process.args), errors.decode().strip()[-300:]))
    return errors.decode()

# SPDX-License-Identifier: MIT
"""How long it takes to start, and to take one sample.

The target is one thread that sleeps. All programs are run in turn, again and again, so that a
busy machine affects all of them. Their files are in the page cache.
"""
import dataclasses
import json
import os
import re
import shutil
import statistics
import sys
import time

from bench.estimates import median

PATIENCE_S = 120
NR_RSS_RUNS = 3  # separate runs, because watching takes time

SHORT = ["-d", "0.05", "-f", "collapsed"]

# What `run` starts: it has nothing to import and ends soon after its interpreter has started.
SLEEPER = ["-I", "-S", "-c", "import time; time.sleep(0.1)"]

FIRST_SAMPLE_AIM_MS = 20
RSS_AIMS_MIB = {"bpf": 10, "tick": 10, "preempt": 5}

# {program: its arguments, which the process id follows}
OTHERS = {"py-spy": ["dump", "--pid"], "austin": ["--where"]}


@dataclasses.dataclass
class TimedCommand:
    """One command that examines the target."""

    name: str
    command: list
    stats_path: str | None = None
    rss_aim_mib: float | None = None
    first_sample_ms: list = dataclasses.field(default_factory=list)
    wall_ms: list = dataclasses.field(default_factory=list)
    cpu_ms: list = dataclasses.field(default_factory=list)
    rss_kib: int = 0

    def spawn(self, stdout):
        null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
        return os.posix_spawnp(self.command[0], self.command, os.environ, file_actions=null)

    def check(self, status):
        if status:
            raise RuntimeError("%s: status %d" % (" ".join(self.command),
                                                  os.waitstatus_to_exitcode(status)))

    def run(self, stdout):
        begin_ns = time.monotonic_ns()
        _, status, usage = os.wait4(self.spawn(stdout), 0)
        end_ns = time.monotonic_ns()
        self.check(status)
        self.wall_ms.append((end_ns - begin_ns) / 1e6)
        self.cpu_ms.append((usage.ru_utime + usage.ru_stime) * 1e3)
        if self.stats_path:
            with open(self.stats_path, encoding="utf-8") as file:
                self.first_sample_ms.append((json.load(file)["first_sample_ns"] - begin_ns) / 1e6)

    def watch(self):
        """Measure its resident peak, when it writes its result into a full pipe. The peak of
        getrusage(2) would include ours, from before exec."""
        reader, writer = full_pipe()
        pid = self.spawn(writer)
        os.close(writer)
        deadline = time.monotonic() + PATIENCE_S
        while not is_writing(pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        found = re.search(r"VmHWM:\s+(\d+)", read("/proc/%d/status" % pid))
        self.rss_kib = max(self.rss_kib, int(found.group(1)) if found else 0)
        while os.read(reader, 65536):
            pass
        os.close(reader)
        self.check(os.waitpid(pid, 0)[1])


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def is_writing(pid):
    """Whether a process is in a system call on its stdout, or has ended."""
    if re.search(r"State:\s+Z", read("/proc/%d/status" % pid)):
        return True
    return read("/proc/%d/syscall" % pid).split()[1:2] == ["0x1"]


def commands(pysample, target, has_profiling_sampling, engines):
    pid = str(target.pid)
    stats_path = os.path.join(target.outside, "stats.json")
    found = [
        TimedCommand("pysample dump", [pysample, "dump", pid]),
        *(command for engine in engines for command in (
            TimedCommand("pysample attach, " + engine, [
                pysample, "attach", "-q", "--engine", engine, *SHORT, "--stats-json", stats_path,
                pid], stats_path, RSS_AIMS_MIB.get(engine)),
            TimedCommand("pysample run, " + engine, [
                pysample, "run", "-q", "--engine", engine, *SHORT, "--stats-json", stats_path,
                "--", *target.interpreter.command(), *SLEEPER], stats_path,
                RSS_AIMS_MIB.get(engine)))),
        TimedCommand("the command of run alone", target.interpreter.command() + SLEEPER),
    ]
    if has_profiling_sampling:
        found.append(TimedCommand("profiling.sampling dump", target.interpreter.command() + [
            "-m", "profiling.sampling", "dump", pid]))
    found += [TimedCommand(name, [name, *arguments, pid]) for name, arguments in OTHERS.items()
              if shutil.which(name)]
    return found


def run_in_turn(measured, nr_runs):
    """Run all in turn. Returns those that did not fail; failures are reported. The first turn does
    not count, because it may have to read files from the disk."""
    with open(os.devnull, "wb") as null:
        for turn in range(nr_runs + 1):
            for command in measured[::1 if turn % 2 else -1]:
                try:
                    command.run(null.fileno())
                except RuntimeError as error:
                    print("bench: no figures: %s" % error, file=sys.stderr)
                    measured = [other for other in measured if other is not command]
            if turn == 0:
                for command in measured:
                    command.first_sample_ms, command.wall_ms, command.cpu_ms = [], [], []
    return measured


def measure(pysample, target, has_profiling_sampling, nr_runs, engines):
    measured = run_in_turn(commands(pysample, target, has_profiling_sampling, engines), nr_runs)
    for command in measured:
        for _ in range(NR_RSS_RUNS):
            command.watch()
    return measured


def spread(values):
    """The median, and the range of nine in ten."""
    if not values:
        return "–"
    tenths = statistics.quantiles(values, n=20)
    return "%.1f (%.1f–%.1f)" % (statistics.median(values), tenths[0], tenths[-1])


def missed(value, aim):
    return "" if value is None or aim is None or value <= aim else " **no**"


def print_commands(rows, nr_runs):
    """rows: [(version, TimedCommand)]"""
    print("\n### Start, and one look: ms of %d runs each, median (5 %%–95 %%)\n" % nr_runs)
    print("| python | program | first sample | wall | CPU | RSS MiB |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for version, command in rows:
        # How long attach runs is set by its options.
        wall = "–" if command.first_sample_ms else spread(command.wall_ms)
        print("| %s | %s | %s | %s | %s | %s |" % (
            version, command.name,
            spread(command.first_sample_ms) + missed(median(command.first_sample_ms),
                                                     FIRST_SAMPLE_AIM_MS),
            wall, spread(command.cpu_ms),
            "%.1f" % (command.rss_kib / 1024)
            + missed(command.rss_kib / 1024, command.rss_aim_mib)))
    for name in OTHERS:
        if not shutil.which(name):
            print("\nnot measured: %s (not installed)" % name)
    sys.stdout.flush()

# SPDX-License-Identifier: MIT
"""Long runs of pysample and what must not happen in them, for scripts/soak and test_soak.py.

Nothing here asserts: a run has a list of violations, each a sentence.
"""
import collections
import dataclasses
import glob
import json
import os
import re
import shutil
import signal
import statistics
import time

import support

PROGRAMS = ("code", "threads", "tasks", "recursion", "cached")
RATES = ("1khz", "max")
ENGINES = ("preempt", "bpf")
RATE_HZ = {"1khz": 1000, "max": 10000}

# What counts as growth after the warm-up: the median resident memory of the last third exceeds
# that of the first third by MAX_RISE_KIB, or a line through it rises by MAX_SLOPE_KIB_A_MINUTE
# and by MAX_RISE_KIB in total. Less is noise.
MAX_RISE_KIB = 128
MAX_SLOPE_KIB_A_MINUTE = 64

LAST_PROFILED_FRAME = 88  # in a thread state of 3.15; the only word that is written
WRITE = re.compile(r"process_vm_writev\(.*\[\{iov_base=(0x[0-9a-f]+), iov_len=8\}\], 1, 0\) = 8")

BEGIN_S = 0.5  # when memory is measured first
WARM_UP_S = 60  # caches fill, new stacks appear
WARM_UP_SHARE = 0.4  # of the run, at most

POLL_S = 0.25
LOOKS, LOOKS_APART_S = 3, 0.01
SETTLE_S = 1.0  # before the end of a run, when the profile is written


@dataclasses.dataclass
class Run:
    program: str
    rate: str
    seconds: float
    stats: dict = None
    nr_in_profile: int = 0
    report: dict = None  # the program's
    rss_kib: list = dataclasses.field(default_factory=list)  # (seconds, KiB) after the warm-up
    fds: list = dataclasses.field(default_factory=list)
    begin_kib: int = 0
    stderr: str = ""
    writes: dict = None  # {address: count}, as the kernel saw them; None: not traced
    word: int = 0  # the only address that may be written to

    @property
    def lost(self):
        return sum(self.stats["lost"].values())

    def thirds_kib(self):
        """Medians of the first and the last third."""
        sizes = [kib for _, kib in self.rss_kib]
        third = max(1, len(sizes) // 3)
        return statistics.median(sizes[:third]), statistics.median(sizes[-third:])

    def slope_kib_a_minute(self):
        """Slope of the least-squares line."""
        if len(self.rss_kib) < 2:
            return 0.0
        return 60 * statistics.linear_regression(*zip(*self.rss_kib)).slope

    def count_violations(self):
        """Violations by the counters, which must be exact."""
        stats = self.stats
        tried = stats["samples"] + self.lost
        begun = stats["ticks"] + stats["late_ticks"] + stats["failed_ticks"]
        if begun != RATE_HZ[self.rate] * self.seconds:
            yield "%d ticks were taken, late or failed, not %d" % (
                begun, RATE_HZ[self.rate] * self.seconds)
        if not stats["ticks"]:
            yield "there was no tick"
        most = self.report["max_threads"]
        # The last interrupt may come after the last tick; a wait is reported when it is over.
        least, possible = stats["ticks"], stats["ticks"]
        if stats["engine"] == "bpf":
            most += 2
            # Interrupts come whether or not pysample is late.
            least, possible = 1, begun
        if not least <= tried <= most * possible:
            yield "%d stacks do not fit %d ticks of 1 to %d threads" % (tried, possible, most)
        if self.nr_in_profile != stats["samples"]:
            yield "the profile has %d samples, not %d" % (self.nr_in_profile, stats["samples"])

    def harm_violations(self):
        """Harm done to the program, or a program that did nothing."""
        for size, offset, found in self.report["foreign"]:
            yield "a foreign write: %s at %d of a buffer of %d bytes" % (found, offset, size)
        if not self.report["turns"]:
            yield "the program did nothing"
        if self.program in ("threads", "cached") and not self.report["buffers"]:
            yield "no buffer was searched"
        yield from self.write_violations()

    def nr_foreign(self):
        """The number of writes into the program's buffers, and of writes elsewhere that the
        kernel saw."""
        return len(self.report["foreign"]) + sum(
            nr for addr, nr in (self.writes or {}).items() if addr != self.word)

    def write_violations(self):
        """Violations by the writes that the kernel saw, in any memory."""
        if self.writes is None:
            return
        for addr in self.writes:
            if addr != self.word:
                yield "%d writes to %#x, not to the main thread's word at %#x" % (
                    self.writes[addr], addr, self.word)
        if sum(self.writes.values()) != self.stats["writes"]:
            yield "the kernel saw %d writes, not %d" % (
                sum(self.writes.values()), self.stats["writes"])
        if self.program == "cached" and self.word and not self.writes:
            yield "nothing was written, so the test proves nothing"

    def growth_violations(self):
        slope = self.slope_kib_a_minute()
        first, last = self.thirds_kib()
        minutes = (self.rss_kib[-1][0] - self.rss_kib[0][0]) / 60
        if slope > MAX_SLOPE_KIB_A_MINUTE and slope * minutes > MAX_RISE_KIB:
            yield "memory grows by %.0f KiB a minute" % slope
        if last - first > MAX_RISE_KIB:
            yield "memory rose from %d to %d KiB" % (first, last)
        if max(self.fds) > self.fds[0]:
            yield "descriptors rose from %d to %d" % (self.fds[0], max(self.fds))

    def violations(self, growth=True):
        return [*self.count_violations(), *self.harm_violations(),
                *(self.growth_violations() if growth else ())]


def _rss_kib(pid):
    """Exact, unlike the value in status. The least of several measurements, between which buffers
    are freed."""
    sizes = []
    for _ in range(LOOKS):
        rollup = support.read("/proc/%d/smaps_rollup" % pid)
        sizes.append(int(re.search(r"^Rss:\s+(\d+)", rollup, re.M).group(1)))
        time.sleep(LOOKS_APART_S)
    return min(sizes)


def _nr_fds(pid):
    """The least of several counts: a thread's file may be open for a moment while its name is
    read."""
    numbers = []
    for _ in range(LOOKS):
        numbers.append(len(os.listdir("/proc/%d/fd" % pid)))
        time.sleep(LOOKS_APART_S)
    return min(numbers)


def _watch(process, run):
    """Record pysample's memory and descriptors from the warm-up to shortly before the end."""
    begin = time.monotonic()
    warm_up_s = min(WARM_UP_S, WARM_UP_SHARE * run.seconds)
    while process.poll() is None:
        now = time.monotonic() - begin
        if now > run.seconds - SETTLE_S and run.rss_kib:
            break
        if now > BEGIN_S and not run.begin_kib:
            run.begin_kib = _rss_kib(process.pid)
        if now > warm_up_s:
            run.rss_kib.append((now, _rss_kib(process.pid)))
            run.fds.append(_nr_fds(process.pid))
        time.sleep(POLL_S)


def _end(target):
    """End the program and return its last report."""
    target.process.send_signal(signal.SIGTERM)
    line = target.process.stdout.readline()
    target.process.wait(timeout=support.PATIENCE_S)
    if not line:
        raise RuntimeError("the program failed: " + target.stderr())
    return json.loads(line)


def _tracer(log):
    """A command to put in front of pysample, which keeps its process id. It logs every write."""
    if not shutil.which("strace") or support.is_sanitized():
        return ()  # LeakSanitizer fails under a tracer
    return ("strace", "--daemonize", "--follow-forks", "--seccomp-bpf", "--trace",
            "process_vm_writev", "--output", log)


def _writes_in(log):
    """Count the writes in the log, once the tracer has seen pysample's end."""
    support.wait_until(lambda: re.search(r"(?m)^\d+ +\+\+\+ ", support.read(log)), "strace ends")
    return dict(collections.Counter(int(addr, 16) for addr in WRITE.findall(support.read(log))))


def soak(interpreter, program, rate, seconds, *options, engine="preempt", arguments=(), loop=False):
    """One run, from the start of the program to its end. With loop, a profile and a page are
    written each second."""
    run = Run(program, rate, seconds)
    with support.fresh_folder() as (folder, _), \
            support.python_target(interpreter, "soak", program, *arguments) as target:
        profile, stats, log = (os.path.join(folder, name) for name in ("profile", "stats", "log"))
        wrapper = _tracer(log)
        process = support.start_pysample(
            "attach", target.pid, "--engine", engine, "-r", rate, "-d", seconds, *support.COLLAPSED,
            "-o", profile + "-%n" * loop, "--stats-json", stats,
            *(("--loop", "1s", "-o", os.path.join(folder, "page-%n.html")) if loop else ()),
            *options, wrapper=wrapper)
        _watch(process, run)
        result = support.finish(process)
        run.stderr = result.stderr
        if result.status:
            raise RuntimeError("pysample ended with %d: %s" % (result.status, result.stderr))
        run.report = _end(target)
        run.nr_in_profile = sum(sum(support.parse_collapsed(support.read(path)).values())
                                for path in glob.glob(profile + "*"))
        run.stats = json.loads(support.read(stats))
        if wrapper:
            run.writes = _writes_in(log)
        if target.report["thread_state"] and support.version_key(interpreter) >= [3, 15]:
            run.word = target.report["thread_state"] + LAST_PROFILED_FRAME
    return run

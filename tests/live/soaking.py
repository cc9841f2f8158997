# SPDX-License-Identifier: MIT
"""Long runs of pysample and what must not happen in them: for scripts/soak and test_soak.py.

Nothing here asserts: a run has a list of violations, each a sentence.
"""
import dataclasses
import json
import os
import re
import signal
import statistics
import time

import support

PROGRAMS = ("code", "threads", "tasks", "recursion")
RATES = ("1khz", "max")
RATE_HZ = {"1khz": 1000}  # those that are no "max"

# What counts as growth: behind the warm-up the last third of the resident memory lies so much
# above the first, or the line through it rises so fast, and by that much as a whole. Less is
# noise.
MAX_RISE_KIB = 128
MAX_SLOPE_KIB_A_MINUTE = 64

WARM_UP_S = 60  # the caches fill, new stacks are seen
WARM_UP_SHARE = 0.4  # of the run at most

POLL_S = 0.25
LOOKS, LOOKS_APART_S = 3, 0.01
SETTLE_S = 1.0  # before the end of a run: then the profile is written


@dataclasses.dataclass
class Run:
    program: str
    rate: str
    seconds: float
    stats: dict = None
    nr_in_profile: int = 0
    report: dict = None  # of the program
    rss_kib: list = dataclasses.field(default_factory=list)  # (seconds, KiB) behind the warm-up
    fds: list = dataclasses.field(default_factory=list)
    stderr: str = ""

    @property
    def lost(self):
        return sum(self.stats["lost"].values())

    def thirds_kib(self):
        """The medians of the first and the last third."""
        sizes = [kib for _, kib in self.rss_kib]
        third = max(1, len(sizes) // 3)
        return statistics.median(sizes[:third]), statistics.median(sizes[-third:])

    def slope_kib_a_minute(self):
        """Of the line with the least squares."""
        if len(self.rss_kib) < 2:
            return 0.0
        return 60 * statistics.linear_regression(*zip(*self.rss_kib)).slope

    def count_violations(self):
        """Of the counters: they are exact, or wrong."""
        stats = self.stats
        tried = stats["samples"] + self.lost
        begun = stats["ticks"] + stats["late_ticks"] + stats["failed_ticks"]
        if self.rate in RATE_HZ and begun != RATE_HZ[self.rate] * self.seconds:
            yield "%d ticks were taken, late or failed, not %d" % (
                begun, RATE_HZ[self.rate] * self.seconds)
        if self.rate not in RATE_HZ and stats["late_ticks"]:
            yield "%d ticks were late at full speed" % stats["late_ticks"]
        if not stats["ticks"]:
            yield "there was no tick"
        most = self.report["max_threads"]
        if not stats["ticks"] <= tried <= most * stats["ticks"]:
            yield "%d stacks of %d ticks and 1 to %d threads" % (tried, stats["ticks"], most)
        if self.nr_in_profile != stats["samples"]:
            yield "the profile has %d samples, not %d" % (self.nr_in_profile, stats["samples"])

    def harm_violations(self):
        """Of the program: nothing was done to it."""
        for size, offset, found in self.report["foreign"]:
            yield "a foreign write: %s at %d of a buffer of %d bytes" % (found, offset, size)
        if not self.report["turns"]:
            yield "the program did nothing"
        if self.program == "threads" and not self.report["buffers"]:
            yield "no buffer was looked through"

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
    """Exact, unlike that of status; the least of some looks, between which buffers are freed."""
    sizes = []
    for _ in range(LOOKS):
        rollup = support.read("/proc/%d/smaps_rollup" % pid)
        sizes.append(int(re.search(r"^Rss:\s+(\d+)", rollup, re.M).group(1)))
        time.sleep(LOOKS_APART_S)
    return min(sizes)


def _watch(process, run):
    """Look at pysample's memory and descriptors from the warm-up to shortly before the end."""
    begin = time.monotonic()
    warm_up_s = min(WARM_UP_S, WARM_UP_SHARE * run.seconds)
    while process.poll() is None:
        now = time.monotonic() - begin
        if now > run.seconds - SETTLE_S and run.rss_kib:
            break
        if now > warm_up_s:
            run.rss_kib.append((now, _rss_kib(process.pid)))
            run.fds.append(len(os.listdir("/proc/%d/fd" % process.pid)))
        time.sleep(POLL_S)


def _end(target):
    """End the program: what it reports last."""
    target.process.send_signal(signal.SIGTERM)
    line = target.process.stdout.readline()
    target.process.wait(timeout=support.PATIENCE_S)
    if not line:
        raise RuntimeError("the program did not end well: " + target.stderr())
    return json.loads(line)


def soak(interpreter, program, rate, seconds, *options, arguments=()):
    """One run, from the start of the program to its end."""
    run = Run(program, rate, seconds)
    with support.fresh_folder() as (folder, _), \
            support.python_target(interpreter, "soak", program, *arguments) as target:
        profile, stats = (os.path.join(folder, name) for name in ("profile", "stats"))
        process = support.start_pysample(
            "attach", target.pid, "-r", rate, "-d", seconds, "-f", "collapsed", "-o", profile,
            "--stats-json", stats, *options)
        _watch(process, run)
        result = support.finish(process)
        run.stderr = result.stderr
        if result.status:
            raise RuntimeError("pysample ended with %d: %s" % (result.status, result.stderr))
        run.report = _end(target)
        run.nr_in_profile = sum(support.parse_collapsed(support.read(profile)).values())
        run.stats = json.loads(support.read(stats))
    return run

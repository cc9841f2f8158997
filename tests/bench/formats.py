# SPDX-License-Identifier: MIT
"""What it costs to write each format, to record, and to open the page, and how large pages are.

The formats are written from a recording that tests/bench/tools/make_recording.c makes, always of
the same million samples. The cost of recording is measured on a program, in turns with collapsed
stacks, and its size beside profiling.sampling's.
"""
import dataclasses
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

import support

from bench import ROOT, machine_load, profilers, say
from bench.estimates import ratio
from bench.processes import Target, read_number, running, start
from bench.report import cell, print_table

# {name: suffix}
FORMATS = {"collapsed": ".collapsed", "summary": ".summary", "flamegraph": ".html", "svg": ".svg",
           "speedscope": ".speedscope.json", "pprof": ".pb.gz", "gecko": ".json.gz",
           "callgrind": ".callgrind", "json": ".profile.json", "jsonl": ".jsonl"}
SAMPLES = {False: 1000000, True: 100000}  # by args.quick, as below
NR_RUNS = 3
USAGE = 2  # pysample's exit status for a format that it does not have
POLL_S = 0.01
SLOW_HZ, FAST_HZ = 1000, 10000
SECONDS = {False: 10, True: 3}
NR_TURNS = {False: 5, True: 2}
NR_OPENINGS = 5
HOUR_SAMPLES = {False: 3600000, True: 360000}  # of one thread
GROWTH_S = {False: 600, True: 20}
GROWTH_READINGS = 6  # at the memory and the file of a long recording
SUFFIXES = (".collapsed", ".pysample")
PAGE_SECONDS = 4


@dataclasses.dataclass
class Cost:
    wall_s: float
    cpu_s: float
    rss_mib: float


def run_alone(command):
    """The cost of a command, and its exit status."""
    begin = time.monotonic()
    process = start(command, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
    path = "/proc/%d/status" % process.pid
    peak_kib = 0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        peak_kib = max(peak_kib, read_number(path, r"VmHWM:\s+(\d+)") or 0)
        time.sleep(POLL_S)
    wall_s = time.monotonic() - begin
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # Before exec the child's peak is ours, so ru_maxrss means something only if it is larger.
    if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        peak_kib = usage.ru_maxrss
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, peak_kib / 1024), process.returncode


def write_format(pysample, recording, name, suffix):
    """The median run, and the size of the file; None if there is no such format."""
    path = recording + suffix
    costs = []
    for _ in range(NR_RUNS):
        cost, status = run_alone([pysample, "report", recording, "-f", name, "-o", path])
        if status == USAGE:
            say("not measured: %s (this build does not write it)" % name)
            return None
        if status:
            raise RuntimeError("pysample report -f %s: exit status %d" % (name, status))
        costs.append(cost)
    costs.sort(key=lambda cost: cost.wall_s)
    return costs[NR_RUNS // 2], os.path.getsize(path)


def write_formats(tools, folder, nr_samples):
    recording = os.path.join(folder, "made.pysample")
    subprocess.run([tools.make_recording, recording, str(nr_samples)], check=True)
    rows = []
    for name, suffix in FORMATS.items():
        say("%s of %d samples" % (name, nr_samples))
        written = write_format(tools.pysample, recording, name, suffix)
        if written:
            cost, nr_bytes = written
            rows.append((name, cell(cost.wall_s, 2), cell(cost.cpu_s, 2), cell(cost.rss_mib, 0),
                         cell(nr_bytes / 1e6, 2)))
    print("\n### Formats of %d samples, from a recording of %.2f MB\n" % (
        nr_samples, os.path.getsize(recording) / 1e6))
    print_table(("format", "wall s", "CPU s", "RSS MiB", "size MB"), 1, rows)


# ---- recording -----------------------------------------------------------------------


def attach_command(tools, target, rate_hz, seconds, suffix, *options):
    return support.TIED_TO_US + [
        tools.pysample, "attach", "-q", "-r", str(rate_hz), "-d", str(seconds),
        "-o", os.path.join(target.outside, "out" + suffix), *options, str(target.pid)]


def attach(tools, target, rate_hz, seconds, suffix, *options):
    """The statistics of a run, and the size of its file."""
    stats_path = os.path.join(target.outside, "stats.json")
    subprocess.run(attach_command(tools, target, rate_hz, seconds, suffix, "--stats-json",
                                  stats_path, *options), check=True, stdin=subprocess.DEVNULL)
    return (json.loads(support.read(stats_path)),
            os.path.getsize(os.path.join(target.outside, "out" + suffix)))


def core_percent(stats):
    return 100 * (stats["cpu_user_s"] + stats["cpu_sys_s"]) / stats["wall_s"]


def record_sizes(tools, target, has_profiling_sampling, seconds):
    """Rows of the bytes per sample."""
    stats, nr_bytes = attach(tools, target, SLOW_HZ, seconds, ".pysample")
    rows = [(target.program.name, "pysample", str(stats["samples"]), str(nr_bytes),
             cell(ratio(nr_bytes, stats["samples"]), 2))]
    if has_profiling_sampling:
        seen = profilers.ProfilingSampling(False).run(target, SLOW_HZ, seconds)
        nr_bytes = os.path.getsize(os.path.join(target.outside, "sampling.bin"))
        rows.append((target.program.name, "profiling.sampling --binary", str(seen.complete),
                     str(nr_bytes), cell(ratio(nr_bytes, seen.complete), 2)))
    return rows


def record_costs(tools, target, seconds, nr_turns):
    """Rows of the share of a core that sampling takes into collapsed stacks and into a recording,
    in turns, without the CPU times of threads and with them."""
    kinds = [(suffix, cpu) for cpu in ("--no-cpu", "--cpu") for suffix in SUFFIXES]
    percents = {kind: [] for kind in kinds}
    rss_mib = {kind: [] for kind in kinds}
    for turn in range(nr_turns):
        for kind in kinds[::1 if turn % 2 else -1]:
            stats, _ = attach(tools, target, FAST_HZ, seconds, *kind)
            percents[kind].append(core_percent(stats))
            rss_mib[kind].append(stats["max_rss_kib"] / 1024)
    rows = []
    for cpu in ("--no-cpu", "--cpu"):
        collapsed, recording = (percents[suffix, cpu] for suffix in SUFFIXES)
        more = statistics.median(b - a for a, b in zip(collapsed, recording))
        rows.append((target.program.name, "measured" if cpu == "--cpu" else "not measured",
                     cell(statistics.median(collapsed), 1), cell(statistics.median(recording), 1),
                     cell(more, 1), *(cell(statistics.median(rss_mib[suffix, cpu]), 1)
                                      for suffix in SUFFIXES)))
    return rows


def record_growth(tools, target, seconds):
    """Rows of the memory and the file size of a long recording as it goes on."""
    with subprocess.Popen(attach_command(tools, target, FAST_HZ, seconds + 1, ".pysample"),
                          stdin=subprocess.DEVNULL) as process:
        rows = []
        begin = time.monotonic()
        for reading in range(1, GROWTH_READINGS + 1):
            time.sleep(max(0, begin + seconds * reading / GROWTH_READINGS - time.monotonic()))
            rss_kib = read_number("/proc/%d/status" % process.pid, r"VmRSS:\s+(\d+)")
            nr_bytes = os.path.getsize(os.path.join(target.outside, "out.pysample"))
            rows.append((cell(time.monotonic() - begin, 0), str(rss_kib), cell(nr_bytes / 1e6, 2)))
    if process.returncode:
        raise RuntimeError("pysample attach: exit status %d" % process.returncode)
    return rows


def record(tools, interpreter, programs, has_profiling_sampling, args):
    seconds, nr_turns = args.seconds or SECONDS[args.quick], args.turns or NR_TURNS[args.quick]
    sizes, costs = [], []
    for program in programs:
        say("recording %s" % program.name)
        with running(interpreter, program) as target:
            sizes += record_sizes(tools, target, has_profiling_sampling, seconds)
            costs += record_costs(tools, target, seconds, nr_turns)
    print("\n### Recordings at 1 kHz, CPython %s\n" % interpreter.version)
    print_table(("program", "sampler", "samples", "bytes", "bytes/sample"), 2, sizes)
    print("\n### Recording at 10 kHz, %% of a core, medians of %d\n" % nr_turns)
    print_table(("program", "CPU times", "collapsed", "recording", "more", "collapsed RSS MiB",
                 "recording RSS MiB"), 2, costs)
    say("a long recording")
    with running(interpreter, programs[0]) as target:
        rows = record_growth(tools, target, GROWTH_S[args.quick])
    print("\n### Growth of a recording of %s at 10 kHz\n" % programs[0].name)
    print_table(("after s", "RSS KiB", "file MB"), 0, rows)


# ---- the page ------------------------------------------------------------------------


def npm_folder():
    script = os.path.join(ROOT, "scripts", "consumers")
    if not os.path.exists(script):
        return None
    return subprocess.run([script, "--path"], check=True, capture_output=True,
                          text=True).stdout.strip()


def page_obstacle(npm):
    if not shutil.which("node"):
        return "no node"
    if not npm or not os.path.exists(os.path.join(npm, "node_modules", "playwright-core")):
        return "no playwright-core, which scripts/consumers installs"
    if not shutil.which(os.environ.get("PYSAMPLE_CHROMIUM", "chromium")):
        return "no chromium"
    return None


def page_row(tools, name, target):
    stats, nr_bytes = attach(tools, target, SLOW_HZ, PAGE_SECONDS, ".html")
    return name, str(stats["samples"]), cell(nr_bytes / 1e3, 1)


def page_sizes(tools, interpreter, programs):
    """The size of the page for some seconds of each program, and of one that does many things."""
    rows = []
    for program in programs:
        say("the page of %s" % program.name)
        with running(interpreter, program) as target:
            rows.append(page_row(tools, program.name, target))
    say("the page of demo")
    with support.python_target(interpreter, "demo") as demo, \
            tempfile.TemporaryDirectory() as folder:
        rows.append(page_row(tools, "demo", Target(demo.pid, None, interpreter, folder, folder)))
    print("\n### Pages of %d s at 1 kHz, CPython %s\n" % (PAGE_SECONDS, interpreter.version))
    print_table(("program", "samples", "size kB"), 1, rows)


def open_pages(tools, folder, quick):
    """How long the page of the formats takes to open, and that of an hour of one thread."""
    npm = npm_folder()
    obstacle = page_obstacle(npm)
    if obstacle:
        say("not measured: opening the page: " + obstacle)
        return
    hour = os.path.join(folder, "hour.pysample")
    subprocess.run([tools.make_recording, hour, str(HOUR_SAMPLES[quick]), "1"], check=True)
    subprocess.run([tools.pysample, "report", "-q", hour, "-o", hour + ".html"], check=True)
    rows = []
    for threads, nr_samples, page in (("16", SAMPLES[quick], "made.pysample.html"),
                                      ("1", HOUR_SAMPLES[quick], "hour.pysample.html")):
        say("opening the page of %d samples" % nr_samples)
        found = subprocess.run(
            ["node", os.path.join(ROOT, "tests", "bench", "tools", "open_page.mjs"), npm,
             os.path.join(folder, page), str(NR_OPENINGS)],
            check=True, capture_output=True, text=True)
        times_ms = json.loads(found.stdout)
        rows.append((threads, str(nr_samples), cell(statistics.median(times_ms), 0),
                     cell(min(times_ms), 0), cell(max(times_ms), 0)))
    print("\n### Opening the page, headless Chromium, ms, %d times\n" % NR_OPENINGS)
    print_table(("threads", "samples", "median", "min", "max"), 0, rows)


def measure(tools, interpreter, programs, has_profiling_sampling, args):
    with tempfile.TemporaryDirectory() as folder:
        machine_load.wait_until_quiet(args.anyway)
        write_formats(tools, folder, SAMPLES[args.quick])
        open_pages(tools, folder, args.quick)
    if interpreter:
        machine_load.wait_until_quiet(args.anyway)
        page_sizes(tools, interpreter, programs)
        record(tools, interpreter, programs, has_profiling_sampling, args)

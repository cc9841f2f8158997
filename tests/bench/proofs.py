# SPDX-License-Identifier: MIT
"""Checks the proofs of the instant against each other and against a counter that the target
increments in user mode. tests/bench/tools/proofs.c says what is wrong and what is a disagreement.
"""
import collections
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time

import support

from bench import ROOT, machine_load, say
from bench.stacks import percent

LOOKS, QUICK_LOOKS = 1_000_000, 20_000  # of all targets together
NOBODY = 65534

WITNESSES = ["rseq", "clock", "runs"]
WEAK_RULES = ["word, switches", "word alone", "count alone"]


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    mode: str  # of proofs_target
    has_rseq: bool = True
    is_musl: bool = False
    is_nobody: bool = False

    def obstacle(self):
        """Why it cannot be measured here, or None."""
        if self.is_musl and not shutil.which("musl-gcc"):
            return "musl-gcc is not installed"
        if self.is_nobody and os.geteuid() != 0:
            return "needs root; without root the other targets cover this case"
        if self.mode == "swapped" and len(support.read("/proc/swaps").splitlines()) < 2:
            return "no swap"
        return None


TARGETS = [
    Target("pinned", "pinned"),
    Target("moved between CPUs", "free"),
    Target("shares its CPUs", "shared"),
    Target("maps in a second thread", "mapping"),
    Target("blocks, wakes elsewhere", "blocking"),
    Target("forks", "fork"),
    Target("execs", "exec"),
    Target("threads end", "threads"),
    Target("is stopped", "stopped"),
    Target("paged out", "paged-out"),
    Target("swapped", "swapped"),
    Target("moved, as nobody", "free", is_nobody=True),
    Target("moved, glibc without rseq", "free", has_rseq=False),
    Target("moved, musl", "free", has_rseq=False, is_musl=True),
]


@dataclasses.dataclass
class ProofRow:
    target: str
    seconds: float
    load: float  # cores that were busy with other work just before
    counts: dict  # as proofs prints them


def without_rights(target):
    """The words before a command for that target, which make it end with this process and, if the
    target is nobody's, give up its rights."""
    rights = (["--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
              if target.is_nobody else [])
    return [support.TIED_TO_US[0], *rights, *support.TIED_TO_US[1:]]


def install(tools, target, folder):
    """Copy the programs to where anybody may run them."""
    for path in (tools.proofs, tools.proofs_target):
        shutil.copy(path, folder)
    if target.is_musl:
        subprocess.run(["musl-gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-I", ROOT, "-o",
                        os.path.join(folder, "proofs_target"),
                        os.path.join(ROOT, "tests", "bench", "tools", "proofs_target.c")],
                       check=True)
    board = os.path.join(folder, "board")
    with open(board, "wb") as file:
        file.truncate(4096)
    os.chmod(board, 0o666)


@contextlib.contextmanager
def running(target, folder):
    environment = {} if target.has_rseq else {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    with open(os.path.join(folder, "stderr"), "w+", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            without_rights(target) + ["./proofs_target", target.mode, "board"], cwd=folder,
            stdin=subprocess.DEVNULL, stderr=stderr, env={**os.environ, **environment})
        try:
            yield process.pid
        finally:
            process.kill()
            process.wait()
            stderr.seek(0)
            sys.stderr.write(stderr.read())


def measure_one(tools, target, nr_looks, options):
    load = machine_load.wait_until_quiet(options.anyway)
    with support.fresh_folder() as (folder, _):
        install(tools, target, folder)
        with running(target, folder) as pid:
            begin = time.monotonic()
            limit = ["-d", str(options.seconds)] if options.seconds else []
            done = subprocess.run(
                without_rights(target) + ["./proofs", "-n", str(nr_looks), *limit, str(pid),
                                          "board"],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError("no figures for %s" % target.name)
    return ProofRow(target.name, time.monotonic() - begin, load, json.loads(done.stdout))


def choose_targets():
    chosen = []
    for target in TARGETS:
        why = target.obstacle()
        if why:
            say("not measured: %s (%s)" % (target.name, why))
        else:
            chosen.append(target)
    return chosen


def save(path, machine, rows, stacks=()):
    """stacks: the rows of bpf_stacks.py"""
    content = {"machine": machine, "rows": [vars(row) for row in rows],
               "stacks": [vars(row) for row in stacks]}
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def measure(tools, options, machine):
    """The rows. With --json the file is written after each target."""
    targets = choose_targets()
    nr_looks = (QUICK_LOOKS if options.quick else LOOKS) // len(targets) + 1
    rows = []
    for target in targets:
        say("%s: %d looks" % (target.name, nr_looks))
        rows.append(measure_one(tools, target, nr_looks, options))
        if options.json:
            save(options.json, machine, rows)
    return rows


# Results.

def add(left, right):
    """Add numbers with the same names at every level."""
    if isinstance(left, dict):
        return {key: add(value, right[key]) for key, value in left.items()}
    return left + right


def total(rows):
    counts = rows[0].counts
    for row in rows[1:]:
        counts = add(counts, row.counts)
    return ProofRow("all", sum(row.seconds for row in rows), max(row.load for row in rows), counts)


def wrong(row):
    return sum(verdicts["wrong"] for verdicts in row.counts["witnesses"].values())


def disagreements(row):
    return sum(row.counts["disagreements"].values())


def proven_percent(verdicts):
    return "%.1f" % percent(verdicts["proven"], verdicts["asked"]) if verdicts["asked"] else "–"


def wrong_of_proven(verdicts):
    return "%d / %d" % (verdicts["wrong"], verdicts["proven"]) if verdicts["asked"] else "–"


def line(*cells):
    return "| %s |" % " | ".join(str(cell) for cell in cells)


def print_table(columns, rows):
    print("\n" + line(*columns))
    print(line("---", *["---:"] * (len(columns) - 1)))
    for row in rows:
        print(line(*row))


def print_rows(rows):
    """Print the rows, and their sum as the last one."""
    rows = [*rows, total(rows)]
    print_table(["target", "looks", "counter moved", "we slept",
                 *("%s proves %%" % name for name in WITNESSES), "wrong", "disagreements",
                 "kernel mode only"],
                [[row.target, row.counts["looks"], row.counts["moved"], row.counts["slept"],
                  *(proven_percent(row.counts["witnesses"][name]) for name in WITNESSES),
                  wrong(row), disagreements(row), row.counts["kernel"]] for row in rows])
    print("\nRules that prove nothing: wrong / accepted")
    print_table(["target", *WEAK_RULES],
                [[row.target, *(wrong_of_proven(row.counts["weak_rules"][name])
                                for name in WEAK_RULES)] for row in rows])
    pairs = rows[-1].counts["pairs"]
    print("\nLooks in which one proves and another does not:")
    print_table(["", "counter stood", "counter moved"],
                [[name, counts["stood"], counts["moved"]] for name, counts in pairs.items()])
    sys.stdout.flush()


def idle(rows):
    """The witnesses that were asked and never proved anything."""
    return [name for name, verdicts in total(rows).counts["witnesses"].items()
            if verdicts["asked"] and not verdicts["proven"]]


def check(rows):
    """RuntimeError if a proof was wrong or disputed, or if a witness never proved."""
    if idle(rows):
        raise RuntimeError("these witnesses proved nothing: %s" % ", ".join(idle(rows)))
    faults = collections.Counter({row.target: wrong(row) + disagreements(row) for row in rows})
    found = ["%s: %d" % (name, count) for name, count in faults.items() if count]
    if found:
        raise RuntimeError("wrong proofs or disagreements (%s)" % "; ".join(found))

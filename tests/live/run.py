#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run the live tests: run.py [-k PATTERN]... [--all | --shard K/N] [--jobs N] [--counts FILE]
[FOLDER]

By default the quick tests run, those of classes without `is_quick = False`, on few
versions (support.QUICK); with -k all that match. --shard K/N is the K-th of N parts of what
--all adds to the quick tests; with sanitizers that is everything.

PYSAMPLE is the program to test (default: build/pysample). Tests that cannot run
on this machine are listed. FILE gets the line "passed failed skipped". Another
FOLDER replaces the live tests by its own.
"""
import argparse
import concurrent.futures
import dataclasses
import heapq
import multiprocessing
import os
import sys
import time
import unittest
import zlib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import support  # noqa: E402

# More at once would starve the programs under test.
MAX_JOBS = 2
# Classes with `sleeps = True` wait nearly all of their time. One of them runs beside the others.
SLEEPING_JOBS = 1
NR_SLOWEST = 10  # tests whose durations are listed at the end


@dataclasses.dataclass
class Outcome:
    """The results of the tests of a class."""

    lines: list
    nr_passed: int
    failed: list  # test names
    nr_skipped: int
    seconds: dict  # by test name


class Lines(unittest.TestResult):
    """A line for each test, with its duration. A test fails once, however many of its sub-tests
    fail."""

    def __init__(self):
        super().__init__()
        self.lines, self.reports, self.reasons = [], [], []
        self.failed = set()
        self.seconds = {}
        self.nr_passed, self.begun = 0, 0.0

    def startTest(self, test):
        super().startTest(test)
        self.reports, self.reasons, self.begun = [], [], time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        end = "FAILED" if test.id() in self.failed else "ok"
        if end == "ok" and self.reasons:
            end = "skipped: " + ", ".join(dict.fromkeys(self.reasons))
        self.seconds[test.id()] = time.monotonic() - self.begun
        self.lines += ["%s ... %s (%.1f s)" % (test.id(), end, self.seconds[test.id()]),
                       *self.reports]
        self.reports = []

    def add_report(self, test, err):
        self.failed.add(getattr(test, "test_case", test).id())
        self.reports.append("%s\n%s" % (test, self._exc_info_to_string(err, test)))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.nr_passed += 1

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.add_report(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.add_report(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.add_report(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons.append(reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.failed.add(test.id())


def run_class(tests):
    result = Lines()
    unittest.TestSuite(tests).run(result)
    # What is reported outside a test comes from a class that could not be set up.
    return Outcome(result.lines + result.reports, result.nr_passed, sorted(result.failed),
                   len(result.skipped), result.seconds)


def by_class(suite):
    """Group the tests of a suite by class."""
    classes = {}

    def add(found):
        for test in found:
            if isinstance(test, unittest.TestSuite):
                add(test)
            else:
                classes.setdefault(type(test), []).append(test)

    add(suite)
    return list(classes.values())


def has_mark(tests, mark):
    """Whether the class of these tests sets the mark."""
    return getattr(tests[0], mark, False)


def run_parallel(classes, nr_jobs):
    """Yield each class's Outcome when it is done. nr_jobs run at once, beside those that sleep."""
    context = multiprocessing.get_context("fork")
    # Processes: no test sees another's descriptors, and each target dies with its own process.
    with concurrent.futures.ProcessPoolExecutor(nr_jobs, mp_context=context) as busy, \
            concurrent.futures.ProcessPoolExecutor(SLEEPING_JOBS, mp_context=context) as sleeping:
        jobs = [(sleeping if has_mark(tests, "sleeps") else busy).submit(run_class, tests)
                for tests in classes]
        for job in concurrent.futures.as_completed(jobs):
            yield job.result()


def outcomes(classes, nr_jobs):
    """Yield each class's Outcome when it is done. Classes that must run alone come last."""
    support.pysample_for_nobody()  # made here: a child could not delete it
    alone = [tests for tests in classes if nr_jobs < 2 or has_mark(tests, "alone")]
    yield from run_parallel([tests for tests in classes if tests not in alone], nr_jobs)
    yield from map(run_class, alone)


def shard(text):
    """K and N of "K/N"."""
    number, _, total = text.partition("/")
    if not 1 <= int(number) <= int(total):
        raise ValueError(text)
    return int(number), int(total)


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-k", dest="patterns", metavar="PATTERN", action="append",
                        help="only tests whose name matches (as unittest -k)")
    parser.add_argument("--all", action="store_true",
                        help="every test on every version (docs/testing.md)")
    parser.add_argument("--jobs", type=int, default=min(MAX_JOBS, os.cpu_count() or 1),
                        help="tests to run at once (default %(default)s)")
    parser.add_argument("--shard", type=shard, metavar="K/N",
                        help="the K-th of N parts of what --all adds to the quick tests")
    parser.add_argument("--counts", metavar="FILE", help="write: passed failed skipped (numbers)")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=HERE)
    return parser.parse_args()


def find_classes(args):
    loader = unittest.TestLoader()
    loader.testNamePatterns = args.patterns and [
        name if "*" in name else "*%s*" % name for name in args.patterns]
    if args.all or args.shard or args.patterns:
        os.environ[support.ALL] = "1"
    found = by_class(loader.discover(args.folder))
    if args.shard:
        found = [list(filter(is_beyond_quick, tests)) for tests in found
                 if could_not_be_loaded(tests) or is_in_shard(tests, *args.shard)]
    elif not os.environ.get(support.ALL):
        found = [list(filter(support.is_quick, tests)) for tests in found]
    return list(filter(None, found))


def could_not_be_loaded(tests):
    return type(tests[0]).__module__ == "unittest.loader"


def is_beyond_quick(test):
    """The quick tests never run with sanitizers, so with them every test is beyond."""
    return (could_not_be_loaded([test]) or support.is_sanitized()
            or not support.is_quick(test))


def is_in_shard(tests, number, total):
    """The same on every machine: depends only on the name of the class."""
    name = type(tests[0]).__module__ + "." + type(tests[0]).__qualname__
    return zlib.crc32(name.encode("ascii")) % total + 1 == number


def main():
    args = options()
    if not os.access(support.PYSAMPLE, os.X_OK):
        sys.exit("%s: no program to test; build it first" % support.PYSAMPLE)
    for line in support.absent_versions():
        print(line)
    print("testing %s with %s" % (support.PYSAMPLE, ", ".join(
        str(found) for found in support.supported_interpreters())), flush=True)
    begun = time.monotonic()
    counts, failed, seconds = [0, 0, 0], [], {}
    for outcome in outcomes(find_classes(args), args.jobs):
        print(*outcome.lines, sep="\n", flush=True)
        failed += outcome.failed
        seconds.update(outcome.seconds)
        counts = [sum(pair) for pair in zip(
            counts, (outcome.nr_passed, len(outcome.failed), outcome.nr_skipped))]
    for name in heapq.nlargest(NR_SLOWEST, seconds, key=seconds.get):
        print("slowest: %s (%.1f s)" % (name, seconds[name]))
    for name in failed:
        print("FAILED: " + name)
    print("%d passed, %d failed, %d skipped in %.0f s" % (*counts, time.monotonic() - begun))
    if args.counts:
        with open(args.counts, "w", encoding="ascii") as file:
            file.write("%d %d %d\n" % tuple(counts))
    sys.exit(bool(counts[1]))


if __name__ == "__main__":
    main()

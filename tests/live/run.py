#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the live tests: run.py [-k PATTERN]... [--counts FILE]

PYSAMPLE names the program to test (default: build/pysample). What cannot be
tested on this machine is named. FILE gets the line "passed failed skipped".
"""
import argparse
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import support  # noqa: E402


class CountingResult(unittest.TextTestResult):
    """A test fails once, however many of its sub-tests do."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.failed = set()
        self.nr_passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.nr_passed += 1

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed.add(test.id())

    def addError(self, test, err):
        super().addError(test, err)
        self.failed.add(test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.failed.add(test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.failed.add(test.id())


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-k", dest="patterns", metavar="PATTERN", action="append",
                        help="only tests whose name matches (as unittest -k)")
    parser.add_argument("--counts", metavar="FILE", help="write: passed failed skipped")
    return parser.parse_args()


def main():
    asked = options()
    if not os.access(support.PYSAMPLE, os.X_OK):
        sys.exit("%s: no program to test; build it first" % support.PYSAMPLE)
    for line in support.absent_versions():
        print(line)
    print("testing %s with %s" % (support.PYSAMPLE, ", ".join(
        str(found) for found in support.supported_interpreters())), flush=True)
    loader = unittest.TestLoader()
    loader.testNamePatterns = asked.patterns and [
        name if "*" in name else "*%s*" % name for name in asked.patterns]
    suite = loader.discover(HERE)
    runner = unittest.TextTestRunner(stream=sys.stdout, descriptions=False, verbosity=2,
                                     resultclass=CountingResult)
    result = runner.run(suite)
    nr_failed, nr_skipped = len(result.failed), len(result.skipped)
    if asked.counts:
        with open(asked.counts, "w", encoding="ascii") as file:
            file.write("%d %d %d\n" % (result.nr_passed, nr_failed, nr_skipped))
    sys.exit(bool(nr_failed))


if __name__ == "__main__":
    main()

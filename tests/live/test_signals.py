# SPDX-License-Identifier: MIT
"""How a run ends at a low rate, and what can be asked of it while it goes on."""
import json
import os
import signal
import time
import unittest

import support


def catches(process, number):
    for line in support.read("/proc/%d/status" % process.pid).splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (number - 1) & 1
    return False


class SignalsTestCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def path(self, name):
        return os.path.join(self.folder, name)

    def stats(self):
        return json.loads(support.read(self.path("stats")))

    def start(self, pid, *options, **kwargs):
        """A run that is sampling."""
        process = support.start_pysample("attach", pid, "-v", *options, **kwargs)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        line = b"-"
        while b"sampling process" not in line:
            line = process.stderr.readline()
            self.assertTrue(line)
        return process


class LowRate(SignalsTestCase):
    """Between two ticks, which are a minute and more apart."""

    def setUp(self):
        super().setUp()
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def attach(self, *options):
        process = self.start(self.target.pid, "-r", "0.01", "-o", self.path("profile"),
                             "--stats-json", self.path("stats"), *options)
        time.sleep(0.5)  # the first tick is at once
        return process

    def assert_ended(self, process, pattern):
        result = support.finish(process)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, pattern)
        # None was waited for, to see then that it failed.
        self.assertEqual((self.stats()["ticks"], self.stats()["failed_ticks"]), (1, 0))

    def test_the_process_ends(self):
        process = self.attach()
        self.target.process.kill()
        self.assert_ended(process, "the process has ended; ")

    def test_a_signal(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(number):
                process = self.attach()
                process.send_signal(number)
                self.assert_ended(process, "stopped; ")

    def test_the_duration(self):
        self.assert_ended(self.attach("-d", "1"), r"ticks? in 1\.[0-9] s")

    def test_another_program(self):
        with support.python_target(support.newest_interpreter(), "execs_itself") as target:
            self.target = target
            result = support.finish(self.attach())
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, "followed into [^\n]*again; the process has ended; ")


if __name__ == "__main__":
    unittest.main()

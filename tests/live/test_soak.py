# SPDX-License-Identifier: MIT
"""scripts/soak for some seconds: counters are exact, and the program is not touched."""
import unittest

import soaking
import support

SECONDS = 2  # of each run


class Soak(unittest.TestCase):
    def test_counters_are_exact_and_nothing_is_written(self):
        for program in soaking.PROGRAMS:
            for rate in soaking.RATES:
                with self.subTest(program=program, rate=rate):
                    run = soaking.soak(support.newest_interpreter(), program, rate, SECONDS)
                    self.assertEqual(run.violations(growth=False), [], run.stats)

    def test_foreign_writes_are_found(self):
        run = soaking.soak(support.newest_interpreter(), "threads", "1khz", SECONDS,
                           arguments=["poke"])
        self.assertRegex("\n".join(run.violations(growth=False)),
                         r"\Aa foreign write: 9000ff7f00000000 at 56 of a buffer of 560 bytes\Z")

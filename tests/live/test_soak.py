# SPDX-License-Identifier: MIT
"""scripts/soak for a few seconds: counters are exact, and the program is not touched."""
import dataclasses
import unittest

import support
from support import soak_run
from test_interrupts import why_not

SECONDS = 2  # each run


class Soak(unittest.TestCase):
    is_quick = False

    def test_counters_are_exact_without_foreign_writes(self):
        self.check("preempt", soak_run.PROGRAMS)

    def test_with_bpf(self):
        """This engine writes nothing at all, so there is nothing to be cached."""
        if why_not():
            self.skipTest(why_not())
        self.check("bpf", [program for program in soak_run.PROGRAMS if program != "cached"])

    def check(self, engine, programs):
        for program in programs:
            for rate in soak_run.RATES:
                with self.subTest(program=program, rate=rate):
                    run = soak_run.soak(support.newest_interpreter(), program, rate, SECONDS,
                                        engine=engine)
                    self.assertEqual(run.violations(growth=False), [], run.stats)

    def test_where_the_kernel_saw_writes(self):
        run = soak_run.soak(support.newest_interpreter(), "cached", "1khz", SECONDS)
        if run.writes is None:
            self.skipTest("needs strace, and a pysample without sanitizers")
        self.assertEqual((list(run.writes), run.nr_foreign()), ([run.word], 0))
        self.assertGreater(run.stats["writes"], 1)
        beside = dataclasses.replace(run, word=run.word + 8)
        self.assertEqual(beside.nr_foreign(), run.stats["writes"])
        self.assertRegex("\n".join(beside.violations(growth=False)),
                         r"\A\d+ writes to 0x[0-9a-f]+, not to the main thread's word at 0x")

    def test_foreign_writes_are_found(self):
        run = soak_run.soak(support.newest_interpreter(), "threads", "1khz", SECONDS,
                            arguments=["poke"])
        self.assertRegex("\n".join(run.violations(growth=False)),
                         r"\Aa foreign write: 9000ff7f00000000 at 56 of a buffer of 560 bytes\Z")

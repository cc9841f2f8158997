# SPDX-License-Identifier: MIT
"""From what the kernel reports of BPF programs to figures."""
import unittest

from bench import interrupts
from bench.tests.test_results import printed


class Interrupts(unittest.TestCase):
    LINK = "link_type:\ttracing\nprog_id:\t7\n"
    PROGRAM = "prog_type:\t7\nprog_id:\t%d\nrun_time_ns:\t%d\nrun_cnt:\t%d\n"

    def test_a_program_counts_once(self):
        texts = ["pos:\t0\n", self.LINK, self.PROGRAM % (7, 5000, 2), self.PROGRAM % (7, 5000, 2),
                 self.PROGRAM % (8, 1000, 1)]
        self.assertEqual(interrupts.times_in(texts), interrupts.Times(6000, 3))
        self.assertEqual(interrupts.times_in(texts[:2]), interrupts.Times())

    def test_depths_are_those_of_the_program(self):
        self.assertEqual([depth.target.name for depth in interrupts.DEPTHS],
                         ["calls-17", "calls-97", "calls-997"])

    def test_medians_are_compared_with_the_aims(self):
        row = interrupts.Row("3.15.2", interrupts.DEPTHS[1], [19.0, 90.0, 20.0], [5.1, 5.2, 1.0],
                             [17.0])
        text = printed(interrupts.print_rows, [row])
        self.assertIn("| 3.15.2 | 100 | 20.0 (19.0–90.0) | 20 | 5.1 (1.0–5.2) **no** | 5 "
                      "| 17.0 (17.0–17.0) |", text)


if __name__ == "__main__":
    unittest.main()

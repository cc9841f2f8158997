# SPDX-License-Identifier: MIT
"""From runs to a bias, and how much of it is chance."""
import types
import unittest

from bench import tick_clock
from bench.catalogue import CLOCKED
from bench.tests.test_results import printed

INTERPRETER = types.SimpleNamespace(version="3.15.2")


class Ticks(unittest.TestCase):
    def test_work_below_rest_is_rest(self):
        for text, is_working in (("<module>;alternate;work", True), ("<module>;alternate", False),
                                 ("<module>;alternate;rest_of.<locals>.rest", False),
                                 ("<module>;alternate;rest_of.<locals>.rest;x;work", False)):
            names = tuple(text.split(";"))
            self.assertEqual(tick_clock.is_working(names), is_working, text)
            self.assertTrue(CLOCKED[0].can_have(names), text)

    def row(self, *windows):
        return tick_clock.make_row(CLOCKED[0], "tick", [tick_clock.Window(*one) for one in windows])

    def test_bias_is_of_all_windows_together(self):
        row = self.row((10, 100, 0.2, 0.3, 1.0), (30, 100, 0.6, 0.7, 1.0))
        self.assertAlmostEqual(row.true, 40)
        self.assertAlmostEqual(row.by_wall, 50)
        self.assertAlmostEqual(row.shown, 20)
        self.assertAlmostEqual(row.bias, -20)
        self.assertEqual([round(bias) for bias in row.window_biases], [-10, -30])
        self.assertAlmostEqual(row.unexplained, -20)
        self.assertFalse(row.is_met)

    def test_time_of_others_is_no_fault(self):
        for shown, unexplained in ((25, -5), (30, 0), (38, 0), (40, 0), (41, 1)):
            row = self.row((shown, 100, 3.0, 4.0, 10.0))
            self.assertAlmostEqual(row.unexplained, unexplained)
            self.assertAlmostEqual(row.bias, shown - 30)

    def test_floor_is_what_chance_makes(self):
        """10,000 looks at a share of a half: a deviation of 0.5 points, and a mean of 0.4."""
        self.assertAlmostEqual(tick_clock.chance_bias(0.5, 10000), 0.3989, 3)
        self.assertTrue(self.row((5139, 10000, 5, 5, 10.0)).is_met)
        self.assertFalse(self.row((5141, 10000, 5, 5, 10.0)).is_met)

    def test_a_program_that_never_waits_has_no_share_by_wall_time(self):
        spin = next(one for one in CLOCKED if one.argument == "spin")
        row = tick_clock.make_row(spin, "bpf", [tick_clock.Window(3, 10, 3, 5, 10)])
        self.assertIsNone(row.by_wall)

    def test_table(self):
        text = printed(tick_clock.print_rows, INTERPRETER, [self.row((100, 1000, 3.0, 3.1, 10.0))])
        self.assertIn("| clocked-socket-1 | tick | 30.0 | 31.0 | 10.0 | -20.0 | -20.0 to -20.0 "
                      "| -20.0 | 1.2 | **no** | 1000 |", text)
        self.assertIn("tick: unexplained minus floor, median 18.8, worst 18.8", text)


if __name__ == "__main__":
    unittest.main()

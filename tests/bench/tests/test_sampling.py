# SPDX-License-Identifier: MIT
"""The table has processes that the host left alone."""
import contextlib
import io
import types
import unittest
from unittest import mock

from bench import sampling


class Undisturbed(unittest.TestCase):
    def tries(self, *percents, anyway=False):
        """(what the rows say, how often was measured), if the host takes that much each time."""
        found = [[types.SimpleNamespace(stolen_percent=percent)] for percent in percents]
        with mock.patch.object(sampling, "measure_unit", side_effect=found) as measure, \
                contextlib.redirect_stderr(io.StringIO()):
            rows = sampling.measure_undisturbed(None, None, [],
                                                types.SimpleNamespace(anyway=anyway))
        return rows[0].stolen_percent, measure.call_count

    def test_measured_once_without_stolen_time(self):
        self.assertEqual(self.tries(0.0), (0.0, 1))

    def test_measured_again_while_time_is_stolen(self):
        self.assertEqual(self.tries(5.0, 0.5), (0.5, 2))

    def test_the_best_of_a_few(self):
        self.assertEqual(self.tries(5.0, 3.0, 4.0), (3.0, 3))

    def test_measured_once_with_anyway(self):
        self.assertEqual(self.tries(5.0, anyway=True), (5.0, 1))


if __name__ == "__main__":
    unittest.main()

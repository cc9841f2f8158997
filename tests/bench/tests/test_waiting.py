# SPDX-License-Identifier: MIT
"""What is measured beside waiting threads, and how it is reported."""
import types
import unittest

from bench import waiting
from bench.tests.test_results import printed

INTERPRETER = types.SimpleNamespace(version="3.15.2")


class Waiting(unittest.TestCase):
    def test_cells(self):
        cells = waiting.cells(waiting.ENGINES)
        self.assertEqual(len(cells), 15)
        self.assertEqual({cell.mode for cell in cells}, {"wall", "cpu", "top"})
        self.assertFalse(any(cell.native and cell.engine == "tick" for cell in cells))
        self.assertEqual(waiting.Cell("bpf", True, "cpu").options,
                         ["--engine", "bpf", "-r", "100", "-n", "--mode", "cpu"])
        self.assertEqual(waiting.Cell("preempt", False, "top").options,
                         ["--engine", "preempt", "-r", "100"])

    def test_medians_are_compared_with_the_aim(self):
        found = {((64, 1), waiting.Cell("bpf", False, "wall")): [1.0, 9.0, 1.4],
                 ((64, 1), waiting.Cell("preempt", False, "wall")): [1.6, 1.5, 1.7],
                 ((64, 1), waiting.Cell("preempt", True, "wall")): [20.0, 30.0],
                 ((64, 1), waiting.Cell("bpf", False, "top")): [1.9, 2.1, 2.2]}
        text = printed(waiting.print_figures, INTERPRETER, ("bpf", "preempt"), found)
        self.assertIn("| Python only | wall | 64, 1 | ≤ 1.5 | 1.40 (1.00–9.00) "
                      "| 1.60 (1.50–1.70) **no** |", text)
        self.assertIn("| Python only | top | 64, 1 | ≤ 2 | 2.10 (1.90–2.20) **no** | – |", text)
        self.assertIn("| -n | wall | 64, 1 | – | – | 25.00 (20.00–30.00) |", text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""How starts are reported."""
import unittest

from bench import startup
from bench.tests.test_results import printed


class Starts(unittest.TestCase):
    def test_aims(self):
        command = startup.TimedCommand("pysample attach, bpf", [], "stats", 10)
        command.first_sample_ms, command.cpu_ms = [19.0, 30.0, 25.0], [1.0] * 3
        command.rss_kib = 10241
        text = printed(startup.print_commands, [("3.15.2", command)], 3)
        self.assertRegex(text, r"\| pysample attach, bpf \| 25\.0 \([^)]*\) \*\*no\*\* \| – "
                         r"\| [^|]* \| 10\.0 \*\*no\*\* \|")


if __name__ == "__main__":
    unittest.main()

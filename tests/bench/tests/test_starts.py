# SPDX-License-Identifier: MIT
"""How starts are reported."""
import unittest

from bench import starts
from bench.tests.test_results import printed


class Starts(unittest.TestCase):
    def test_aims(self):
        look = starts.Look("pysample attach, bpf", [], "stats", 10)
        look.first_sample_ms, look.cpu_ms, look.rss_kib = [19.0, 30.0, 25.0], [1.0] * 3, 10241
        text = printed(starts.print_looks, [("3.15.2", look)], 3)
        self.assertRegex(text, r"\| pysample attach, bpf \| 25\.0 \([^)]*\) \*\*no\*\* \| – "
                         r"\| [^|]* \| 10\.0 \*\*no\*\* \|")


if __name__ == "__main__":
    unittest.main()

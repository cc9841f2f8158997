# SPDX-License-Identifier: MIT
"""What is paged out, and how that is reported."""
import types
import unittest
from unittest import mock

from bench import pressure, processes
from bench.catalogue import named
from bench.tests.test_bpf_stacks import attached
from bench.tests.test_results import printed

INTERPRETER = types.SimpleNamespace(version="3.15.2")


class Pressure(unittest.TestCase):
    MAPS = """\
7f0000000000-7f0000002000 rw-s 00000000 fe:00 131 /tmp/pysample-test-x/#131 (deleted)
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
7f0000003000-7f0000004000 r-xp 00000000 fe:00 77 /usr/lib/x86_64-linux-gnu/libc.so.6
7fff00000000-7fff00021000 rw-p 00000000 00:00 0                          [stack]
"""

    def test_what_is_of_files(self):
        self.assertEqual(pressure.file_ranges(self.MAPS),
                         [(0x7f0000000000, 0x2000), (0x7f0000003000, 0x1000)])

    def test_faults_are_minor_and_major(self):
        stat = "1 (a b) R 2 3 4 5 6 7 %d 9 %d 11 12"
        with mock.patch.object(processes.support, "read", return_value=stat % (100, 20)):
            self.assertEqual(pressure.faults_of(1), (120, 20))

    def test_rows(self):
        calls = named(["calls-10"])[0]
        hot = "<module>" + ";recurse" * 10 + ";calls"
        runs = [attached({hot: 97, "calls": 1}, {"fault": 2, "moved": 0})]
        row = pressure.make_row(calls, 0.1, "bpf", runs, [(1000.0, 4.0), (1234.0, 5.0),
                                                          (2000.0, 6.0)])
        self.assertEqual((row.nr_samples, row.lost_percent, row.impossible), (98, 2, 1))
        text = printed(pressure.print_rows, INTERPRETER, [row])
        self.assertIn("| calls-10 | 0.1 s | bpf | 98 | 2.00 **no** | fault 2.00 | 1 | 1234 | 5 |",
                      text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""The tests' own cores, checked with readelf(1): their truth must be that of the core."""
import re
import shutil
import subprocess
import unittest

import support
from support import core_files


@unittest.skipUnless(shutil.which("readelf"), "not tested here: cores (no readelf)")
class MadeCores(unittest.TestCase):
    """They have as many threads as the truth."""

    def assert_threads(self, core, nr_threads):
        notes = subprocess.run(["readelf", "-nW", core.path], capture_output=True, text=True).stdout
        self.assertEqual(len(re.findall(r"\bNT_PRSTATUS\b", notes)), nr_threads)
        self.assertIn("NT_FILE", notes)

    def test_of_the_kernel(self):
        with core_files.kernel_cores():
            for end in core_files.SIGNALS:
                with self.subTest(end), \
                        core_files.crashed(support.newest_interpreter(), "threads", end) as core:
                    self.assertEqual(len(core.report["threads"]), 51)
                    self.assert_threads(core, 51)

    def test_killed_from_outside(self):
        with core_files.kernel_cores(), \
                core_files.killed(support.newest_interpreter(), "few_situations") as core:
            self.assert_threads(core, len(core.report["threads"]))

    def test_of_gdb(self):
        with core_files.parked(support.newest_interpreter(), "handled") as target:
            self.assert_threads(core_files.gcore(target), len(target.report["threads"]))

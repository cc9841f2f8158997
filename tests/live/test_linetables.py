# SPDX-License-Identifier: MIT
"""The line tables of each version, decoded as it does itself; see linetable_oracle.py."""
import os
import subprocess
import sys
import unittest

import support

ORACLE = os.path.join(support.HERE, "linetable_oracle.py")
CLI = os.path.join(os.path.dirname(support.PYSAMPLE), "tests", "linetable_cli")


class LineTables(unittest.TestCase):
    """One test for each version."""

    def check(self, interpreter):
        if not os.access(CLI, os.X_OK):
            self.skipTest("%s is not built" % CLI)
        with open(ORACLE, "rb") as source:
            cases = subprocess.run(
                interpreter.command() + ["-W", "ignore", "-", "--emit"], stdin=source,
                stdout=subprocess.PIPE, timeout=support.PATIENCE_S)
        self.assertEqual(cases.returncode, 0)
        checked = subprocess.run([sys.executable, ORACLE, "--check", CLI],
                                 input=cases.stdout, capture_output=True,
                                 timeout=support.PATIENCE_S)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertGreater(cases.stdout.count(b"\n"), 100000)


# The tables have another form since 3.10 and since 3.11. With sanitizers these are enough.
FORMS = ("3.9", "3.10", "3.11", "3.15")

# All builds of a version have the same compiler of bytecode.
ONE_OF_EACH = {found.minor: found for found in support.interpreters_since_36()
               if not found.path.endswith(("d", "t"))
               and (found.minor in FORMS or not support.is_sanitized())}
support.one_test_each(LineTables, LineTables.check, ONE_OF_EACH.values())

if __name__ == "__main__":
    unittest.main()

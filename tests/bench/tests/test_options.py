# SPDX-License-Identifier: MIT
"""The command line of scripts/bench."""
import contextlib
import io
import unittest

from bench import options


class Parse(unittest.TestCase):
    def test_options_may_stand_anywhere(self):
        for argv in ("compare --quick A B", "compare A --quick B", "--quick compare A B",
                     "compare A B --quick"):
            parsed = options.parse("", argv.split())
            self.assertEqual((parsed.what, parsed.builds, parsed.quick),
                             ("compare", ["A", "B"], True), argv)

    def test_the_default_is_attach(self):
        for argv in ("", "--quick", "--turns 2"):
            parsed = options.parse("", argv.split())
            self.assertEqual((parsed.what, parsed.builds), ("attach", []), argv)

    def test_the_number_of_builds_is_checked(self):
        for argv in ("compare A", "compare A B C", "show", "attach A", "no-command"):
            with self.assertRaises(SystemExit, msg=argv), \
                    contextlib.redirect_stderr(io.StringIO()):
                options.parse("", argv.split())


if __name__ == "__main__":
    unittest.main()

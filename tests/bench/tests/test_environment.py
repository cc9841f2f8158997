# SPDX-License-Identifier: MIT
"""Which interpreters are measured."""
import unittest
from unittest import mock

import support

from bench import environment

WITH_GIL = [support.Interpreter("/usr/bin/python3.13", "3.13.18", origin="testbed"),
            support.Interpreter("/usr/bin/python3", "3.11.2", origin="system")]
WITHOUT = [support.Interpreter("/usr/local/bin/python3.13t", "3.13.15", origin="testbed-nogil")]


class Interpreters(unittest.TestCase):
    def choose(self, *wanted):
        with mock.patch.object(support, "all_interpreters", lambda: WITH_GIL), \
                mock.patch.object(support, "free_threaded_interpreters", lambda: WITHOUT), \
                mock.patch.object(environment, "say", self.said.append):
            return environment.choose_interpreters(wanted)

    def setUp(self):
        self.said = []

    def test_free_threaded_builds_are_versions_of_their_own(self):
        chosen = self.choose("3.13", "3.13t", "3.11")
        self.assertEqual({minor: one.path for minor, one in chosen.items()},
                         {"3.13": "/usr/bin/python3.13", "3.13t": "/usr/local/bin/python3.13t",
                          "3.11": "/usr/bin/python3"})
        self.assertEqual([one.minor for one in chosen.values()], ["3.13", "3.13t", "3.11"])
        self.assertEqual(chosen["3.13t"].version, "3.13.15t")
        self.assertEqual(support.version_key(chosen["3.13t"]), [3, 13, 15])
        self.assertEqual(self.said, [])

    def test_what_is_missing_is_said(self):
        self.assertEqual(self.choose("3.14t", "3.9"), {})
        self.assertEqual(len(self.said), 2)
        self.assertIn("3.14t (scripts/testbed installs it", self.said[0])

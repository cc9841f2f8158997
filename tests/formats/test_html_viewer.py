# SPDX-License-Identifier: MIT
"""The viewer of the interactive flame graph without the C writer: a headless browser shows pages
of invented profiles, which page_fixture.mjs makes.
"""
import os
import sys
import tempfile
import unittest

import support
import tools

BUNDLE = os.path.join(support.ROOT, "output", "assets", "bundle.py")
FIXTURE = os.path.join(tools.HERE, "page_fixture.mjs")


class Viewer(unittest.TestCase):
    def check(self, kind):
        node, _ = tools.npm()
        with tempfile.TemporaryDirectory() as folder:
            page, answer, viewer, loader = (
                os.path.join(folder, name)
                for name in ("page.html", "page.json", "viewer", "loader"))
            tools.run(sys.executable, BUNDLE, "--parts", viewer, loader)
            tools.run(node, FIXTURE, kind, page, viewer, loader)
            failures = tools.in_browser("page_check.mjs", page,
                                        *filter(os.path.exists, [answer]))
            self.assertEqual(failures, [])

    def test_sums_and_names(self):
        self.check("nasty")

    def test_sources(self):
        self.check("demo")

    def test_comparison(self):
        self.check("diff")

    def test_deep_stack(self):
        self.check("deep")

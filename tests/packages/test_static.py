# SPDX-License-Identifier: MIT
"""The static program: what it needs, which is nothing, and that it runs where nothing is."""
import os
import shutil
import tempfile
import unittest

import roots
import support

MAX_PROGRAM_BYTES = 6 << 20


class StaticProgram(unittest.TestCase):
    is_quick = False

    def test_it_needs_nothing(self):
        for machine in roots.MACHINES:
            with self.subTest(machine=machine):
                program = roots.program(machine)
                headers = roots.run("readelf", "--wide", "--program-headers", "--dynamic", program)
                self.assertNotIn("INTERP", headers)
                self.assertNotIn("NEEDED", headers)
                self.assertLessEqual(os.path.getsize(program), MAX_PROGRAM_BYTES)

    def test_it_tells_no_path_of_the_machine_it_was_built_on(self):
        for machine in roots.MACHINES:
            with self.subTest(machine=machine), open(roots.program(machine), "rb") as file:
                program = file.read()
                self.assertNotIn(support.ROOT.encode(), program)
                self.assertNotIn(os.path.expanduser("~/.cache").encode(), program)

    def test_the_other_machines_program_starts(self):
        runner = shutil.which("qemu-aarch64-static")
        if not runner:
            raise unittest.SkipTest("no qemu-aarch64-static here (qemu-user-static)")
        self.assertEqual(roots.run(runner, roots.program("aarch64"), "--version"),
                         roots.run(roots.program(), "--version"))


class Roots(unittest.TestCase):
    """A target outside the root, whose libraries are not in it."""

    is_quick = False

    def check(self, root, interpreter=support.newest_interpreter()):
        with support.python_target(interpreter, "busy") as target, \
                tempfile.TemporaryDirectory() as folder:
            shutil.copy(roots.program(), folder)
            def pysample(*words, allowed=(0,)):
                printed = roots.in_root(root, "/packages/pysample-x86_64", *words, mounted=folder,
                                        allowed=allowed)
                self.assertNotIn("libbpf", printed)
                return printed

            def is_sampled(*words):
                """On a busy machine there may be no sample, which is status 5."""
                return "busy.py" in pysample("attach", *words, "-d", "1", target.pid, allowed=(0, 5))

            self.assertRegex(pysample("dump", target.pid), r"MainThread[^\0]*busy\.py")
            for options in ["-f", "collapsed"], ["-n", "-f", "collapsed"]:
                support.wait_until(lambda options=options: is_sampled(*options), "it is sampled")
            page = os.path.join(folder, "out.html")
            support.wait_until(lambda: pysample(
                "attach", "-o", "/packages/out.html", "-d", "1", target.pid, allowed=(0, 5))
                and os.path.exists(page), "a page is written")
            self.assertIn("<html", support.read(page))

    def test_debian_11(self):
        self.check(roots.root_of("bullseye"))

    def test_debian_12(self):
        self.check(roots.root_of("bookworm"))

    def test_sid(self):
        self.check(roots.root_of("sid"))

    def test_an_empty_root(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(folder)

    def test_a_target_on_musl(self):
        if not support.musl_interpreter():
            raise unittest.SkipTest("not tested here: musl (run scripts/testbed to see why)")
        self.check(roots.root_of("bookworm"), support.musl_interpreter())

    def test_users_are_named(self):
        """From the root's own /etc/passwd; in an empty root by number."""
        with support.python_target(support.newest_interpreter(), "busy") as target, \
                tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
            shutil.copy(roots.program(), folder)
            for root, name in (roots.root_of("bookworm"), "root"), (empty, "?"):
                self.assertIn("of user %s (0)" % name,
                              roots.in_root(root, "/packages/pysample-x86_64", "doctor", target.pid,
                                            mounted=folder))

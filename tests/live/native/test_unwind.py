# SPDX-License-Identifier: MIT
"""Native stacks of stopped processes, compared with libdw's and with the target's own report."""
import json
import os
import shutil
import subprocess
import unittest

import support
from support import per_interpreter
from support.native_truth import is_in_order, unwind

# Each build adds another way of making a function.
BUILDS = {
    "O2": ["-O2"],
    "O0": ["-O0"],
    "non-PIE": ["-O2", "-no-pie"],
    "frame_pointers": ["-O1", "-fno-omit-frame-pointer"],
    "static": ["-O2", "-static"],
    "debug_frame": ["-O2", "-g", "-gz=none", "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables"],
}


@per_interpreter
class Interpreters(unittest.TestCase):
    def test_same_as_libdw(self):
        with support.parked_target(self.interpreter, "corpus") as target:
            stacks = unwind(target.pid)
        self.assertEqual(set(stacks), {thread["tid"] for thread in target.report["threads"]})
        for tid, stack in stacks.items():
            self.assertEqual(stack.error, 0, tid)
            self.assertEqual(stack.frames["ours"], stack.frames["libdw"], tid)
            self.assertGreater(len(stack.frames["ours"]), 5)


class Functions(unittest.TestCase):
    """The functions of tests/targets/native/native_stacks.c."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("cc"):
            raise unittest.SkipTest("not tested here: stacks of C (no compiler)")

    def check(self, options):
        folder, _ = self.enterContext(support.fresh_folder())
        program = os.path.join(folder, "native_stacks")
        subprocess.run(["cc", "-w", *options, "-pthread", "-o", program,
                        os.path.join(support.TARGETS, "native", "native_stacks.c")], check=True)
        target = self.enterContext(subprocess.Popen([*support.TIED_TO_US, program],
                                                    stdout=subprocess.PIPE))
        truth = json.loads(target.stdout.readline())["threads"]
        stacks = unwind(target.pid)
        target.kill()
        for name, thread in truth.items():
            stack = stacks[thread["tid"]]
            with self.subTest(thread=name):
                self.assertEqual(stack.error, 0)
                self.assertTrue(is_in_order(reversed(thread["returns"]), stack.pcs()),
                                (thread["returns"], stack.pcs()))
        self.assertIn(0, stacks[truth["null"]["tid"]].pcs())


def add_builds():
    for name, options in BUILDS.items():
        def test(self, options=options):
            self.check(options)

        setattr(Functions, "test_" + name.replace("-", "_"), test)


add_builds()

# SPDX-License-Identifier: MIT
"""CPython versions that do not exist yet: the program file shows another version, or has more or
fewer fields in the table of its own structs, which nothing else in it reads.
"""
import contextlib
import json
import os
import shutil
import struct
import unittest

import support
from support import core_files, pysample
from test_dump import DumpTestCase

COOKIE = b"xdebugpy"
TABLE_BYTES = {"3.13": 584, "3.14": 760, "3.15": 888}
NEWER_MINOR = int(support.SUPPORTED[-1].partition(".")[2]) + 1
NEWER, PRE_RELEASE = 0x030000f0 | NEWER_MINOR << 16, 0xa1

# Changes to 3.15's table: (offset, number of words to insert before it, or to remove if negative).
CHANGES = {
    "a newer minor version": (NEWER, ()),
    "more fields in a newer one": (NEWER, ((376, 1), (240, 1), (176, 1))),
    "no last_profiled_frame": (PRE_RELEASE, ((224, -2),)),
    "no err_stackitem": (PRE_RELEASE, ((304, -1),)),
    "as between 3.14 and 3.15": (PRE_RELEASE, ((536, -2), (520, -2), (304, -1), (224, -2))),
}


def table_in(program):
    """The offset of the table. The cookie is also in the code that looks for it."""
    at = program.index(COOKIE)
    while struct.unpack_from("<Q", program, at + 8)[0] >> 24 != 3:
        at = program.index(COOKIE, at + 1)
    return at


def changed_table(table, changes):
    for at, words in changes:  # the last first
        if words < 0:
            table = table[:at] + table[at - 8 * words:] + bytes(-8 * words)
        else:
            # A plausible offset: slightly more than the one before.
            more = struct.unpack_from("<Q", table, at - 8)[0] + 4
            table = table[:at] + struct.pack("<Q", more) * words + table[at:-8 * words]
    return table


@contextlib.contextmanager
def changed_interpreter(interpreter, version_hex, changes):
    """A copy of the program with another version and table, in the same file system."""
    with support.fresh_folder(interpreter.root) as (outside, inside):
        name = os.path.basename(interpreter.path)
        path = os.path.join(outside, name)
        shutil.copy(interpreter.root + interpreter.path, path)
        with open(path, "r+b") as file:
            program = file.read()
            begin = table_in(program)
            table = program[begin:begin + TABLE_BYTES[interpreter.minor]]
            own = struct.unpack_from("<Q", table, 8)[0]
            if version_hex <= 0xff:
                version_hex |= own & 0xffff0000
            table = changed_table(table, changes)
            file.seek(begin)
            file.write(table[:8] + struct.pack("<Q", version_hex) + table[16:])
        yield support.Interpreter(inside + "/" + name, interpreter.version,
                                  root=interpreter.root, origin=interpreter.origin)


def interpreters(minor):
    return [found for found in support.all_interpreters()
            if found.minor == minor and found.origin.startswith("testbed")]


@unittest.skipIf(not interpreters("3.15"), "needs the testbed (scripts/testbed)")
class Newer(DumpTestCase):
    def check(self, target, version_hex):
        result = pysample("dump", "--json", target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        dumped = json.loads(result.stdout)
        self.assertEqual(dumped["python"],
                         f"3.{NEWER_MINOR}.0" if version_hex == NEWER else "3.15.0a1")
        self.assertIn("newer than this pysample was tested with", result.stderr)
        self.assertEqual("its asyncio tasks are not read" in result.stderr, version_hex == NEWER)
        self.assert_truth(dumped, target.report["threads"])
        result = pysample("doctor", target.pid)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stdout, r"\nversion +newer ")
        self.assertRegex(result.stdout, r"\nframe cache +none: not used in versions that were not ")

    def test_stacks_are_right(self):
        for interpreter in interpreters("3.15"):
            for name, (version_hex, changes) in CHANGES.items():
                with self.subTest(name, interpreter=interpreter), \
                        changed_interpreter(interpreter, version_hex, changes) as changed, \
                        support.parked_target(changed, "corpus") as target:
                    self.check(target, version_hex)

    def test_profile_says_it(self):
        with changed_interpreter(interpreters("3.15")[0], NEWER, ()) as changed, \
                support.python_target(changed, "busy") as target:
            result = support.run_with_samples(lambda: pysample(
                "attach", target.pid, "-d", "0.3", "-o", os.devnull, "--stats-json", "-"))
            self.assertEqual(result.status, 0, result.stderr)
            stats = json.loads(result.stdout)
            self.assertTrue(stats["python_newer_than_tested"])
            self.assertGreater(stats["samples"], 0)
            self.assertEqual(result.stderr.count("newer than this pysample was tested with"), 1)

    def test_core_says_it(self):
        with changed_interpreter(interpreters("3.15")[0], NEWER, ()) as changed, \
                core_files.parked(changed, "threads") as target:
            result = pysample("core", "--json", core_files.gcore(target).path)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("newer than this pysample was tested with", result.stderr)
        threads = {thread["tid"]: thread for thread in json.loads(result.stdout)["threads"]}
        self.assertEqual(set(threads), {truth["tid"] for truth in target.report["threads"]})
        for truth in target.report["threads"]:
            fault = core_files.frames_fault(threads[truth["tid"]], truth)
            self.assertIsNone(fault, fault)

    def test_table_that_makes_no_sense_is_refused(self):
        changes = ((312, 1), (320, -2))
        with changed_interpreter(interpreters("3.15")[0], NEWER, changes) as changed, \
                support.python_target(changed, "busy") as target:
            result = pysample("dump", target.pid)
            self.assertEqual(result.status, 3, result)
            self.assertRegex(result.stderr, rf"3\.{NEWER_MINOR}.*use a newer pysample")
            self.assertEqual(result.stdout, "")

# SPDX-License-Identifier: MIT
"""Frames that an extension module links are shown as what they run, and no stack is a mix of
two."""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import unittest

import support
from support import per_layout, pysample
from test_attach import AttachTestCase

# Before, a frame's executable is always a code object.
FIRST_WITH_OBJECTS = [3, 12]


def include_folders(interpreter):
    """(folders before the system's own, folders after them), or None without internal headers."""
    suffix = "d" if interpreter.path.endswith("d") else ""
    suffix = "m" if interpreter.minor in ("3.6", "3.7") else suffix
    prefix = interpreter.root + os.path.dirname(os.path.dirname(interpreter.path))
    folder = "%s/include/python%s%s" % (prefix, interpreter.minor, suffix)
    internal = os.path.join(folder, "internal")
    has_internal = os.path.isdir(internal) or support.version_key(interpreter) < [3, 7]
    if not os.path.exists(os.path.join(folder, "Python.h")) or not has_internal:
        return None
    # The folder of all headers also has a whole libc.
    return [folder, internal], ["%s/include" % prefix]


def build_module(interpreter, folder):
    """Compile frame_linker.c into folder. Skips the test where that is not possible."""
    folders, compiler = include_folders(interpreter), shutil.which("cc")
    if not folders or not compiler:
        raise unittest.SkipTest("not tested here: linked frames of %s (no %s)" % (
            interpreter, "compiler" if folders else "headers"))
    command = [compiler, "-w", "-O2", "-shared", "-fPIC",
               "-o", os.path.join(folder, "frame_linker.so"),
               os.path.join(support.TARGETS, "stacks", "frame_linker.c")]
    command += [flag for path in folders[0] for flag in ("-I", path)]
    command += [flag for path in folders[1] for flag in ("-idirafter", path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError("frame_linker.c: " + done.stderr)


def name_of(label):
    """A frame's name. Frames without a code object may have no line."""
    return re.fullmatch(r"(.*) \(.*\)", label).group(1)


def by_thread(profiled):
    """{thread id: {its stacks, as names}}"""
    stacks = collections.defaultdict(set)
    for stack in profiled:
        tid = re.search(r"\((\d+)\)$", stack[0])
        stacks[tid and int(tid.group(1))].add(tuple(
            name_of(label) for label in stack[1:] if label != support.NO_PYTHON_FRAMES))
    return stacks


@per_layout
class Linked(AttachTestCase):
    @contextlib.contextmanager
    def target(self, *args):
        with support.fresh_folder(self.interpreter.root) as (outside, inside):
            build_module(self.interpreter, outside)
            with support.python_target(self.interpreter, "linked_frames", inside, *args) as target:
                yield target

    def has_objects(self):
        return support.version_key(self.interpreter) >= FIRST_WITH_OBJECTS

    def has_known_end(self, truth):
        """Before 3.15 a stack ends at a call of the interpreter's loop. A stack that an extension
        has made of its own frames alone is unfinished, and so is one with more entry frames than
        calls (3.12)."""
        minor = self.interpreter.minor
        if minor == "3.12" and truth["what"].endswith("None, owner 3"):
            return False
        return minor in ("3.6", "3.7", "3.8", "3.9", "3.10", "3.15") or not truth[
            "what"].startswith("nothing else")

    def test_all_kinds_and_places(self):
        """In a dump, and in every sample."""
        with self.target("park") as target:
            truths = {truth["tid"]: truth for truth in target.report["threads"]
                      if self.has_known_end(truth)}
            result = pysample("dump", target.pid, "--json")
            self.assertEqual(result.status, 0, result.stderr)
            threads = {thread["tid"]: thread for thread in json.loads(result.stdout)["threads"]}
            profiled = self.stacks_until(
                target, lambda stacks: set(truths) <= set(by_thread(stacks)),
                "every thread is seen", "-r", "100", "-d", "0.3", "-t")
        stacks = by_thread(profiled)
        for tid, truth in truths.items():
            with self.subTest(truth["what"]):
                self.assertEqual([frame["name"] for frame in threads[tid]["frames"]],
                                 truth["names"])
                self.assertEqual(stacks[tid], {tuple(truth["names"])})
        if not self.has_objects():
            return
        linked = [frame for thread in threads.values() for frame in thread["frames"]
                  if frame["name"] == "translated"]
        self.assertTrue(linked)
        for frame in linked:
            self.assertEqual((frame["path"], frame["line"]), ("/src/translated.pyx", 1234567))

    def check_fast(self, mode, owner):
        """Every stack belongs to one chain, and both chains are seen to their ends."""
        chains = [("<module>", "fast", "alternate") + tuple(
            name + letter for name in ("low_", "high_", "middle_", "leaf_", "top_"))
            for letter in "ab"] + [("<module>", "fast", "announce")]

        def sample():
            stacks = collections.Counter()
            for stack, count in self.profile(target, "-r", "max", "-d", "0.4").stacks.items():
                stacks[tuple(map(name_of, stack))] += count
            impossible = {stack: count for stack, count in stacks.items()
                          if not any(chain[:len(stack)] == stack for chain in chains)}
            self.assertEqual(impossible, {})
            return stacks

        with self.target(mode, 40, owner) as target:
            support.sampled_until(sample, lambda stacks: all(
                chain[:length] in stacks for chain in chains[:2] for length in (7, 8)),
                "both leaves, and what they call, are seen")

    def test_code_objects_at_full_speed(self):
        self.check_fast("fast-code", 0)

    def test_tuples_at_full_speed(self):
        if not self.has_objects():
            self.skipTest("before 3.12 frames run only code objects")
        self.check_fast("fast-tuple", 3)

    def test_objects_that_are_made_and_freed(self):
        """Each object is made where the last one was."""
        if not self.has_objects():
            self.skipTest("before 3.12 frames run only code objects")
        def sample():
            stacks = self.profile(target, "-r", "max", "-d", "0.4").stacks
            wrong = [stack for stack in stacks if not self.belongs_together(stack)]
            self.assertEqual(wrong, [])
            return stacks

        for steps in (40, 4000):
            with self.target("fresh", steps, 3) as target:
                support.sampled_until(sample, lambda stacks: any(
                    "made_" in label for stack in stacks for label in stack), "such are seen")

    @staticmethod
    def belongs_together(stack):
        numbers = [set(map(int, re.findall(r"\d{7}", label))) for label in stack
                   if label.startswith("made_")]
        callers = [int(label[len("caller_")]) for label in stack if label.startswith("caller_")]
        return len(numbers) <= 1 and all(
            len(three) == 1 and callers == [min(three) % 3] for three in numbers)

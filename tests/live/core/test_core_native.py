# SPDX-License-Identifier: MIT
"""`pysample core --native`: the C frames are those that gdb finds in the same core, in the same
order, and gdb has the interpreter's loop where there are Python frames.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

import support
from support import core_files, libunwind_codes, python_copies
from support.core_files import core_json

LOOP = "_PyEval_EvalFrameDefault"
# "lt" and "mS" have the same hash in .gnu.hash (33 * h + c), so the dynamic linker still finds it.
HIDDEN_LOOP = "_PyEval_EvalFrameDefaumS"

# Prints {tid: [[pc, name], …]}, innermost first, without inlined functions and tail-call frames.
GDB_SCRIPT = """
import json
import gdb
SIGNAL = "<signal handler called>"
found = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, frames = gdb.newest_frame(), []
    while frame is not None and frame.is_valid():
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            is_signal = frame.type() == gdb.SIGTRAMP_FRAME
            frames.append([frame.pc(), SIGNAL if is_signal else frame.name()])
        frame = frame.older()
    found[thread.ptid[1]] = frames
print("FOUND " + json.dumps(found))
"""


def gdb_stacks(core, interpreter, executable):
    if not shutil.which("gdb"):
        raise unittest.SkipTest("not tested here: comparison with gdb (gdb is not installed)")
    script = os.path.join(core.folder, "stacks.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(GDB_SCRIPT)
    run = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off",
         "-iex", "set backtrace past-main on", "-iex", "set backtrace past-entry on",
         "-iex", "set sysroot " + (interpreter.root or "/"),
         "-ex", "file " + interpreter.root + executable, "-ex", "core-file " + core.path,
         "-x", script],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=support.PATIENCE_S)
    for line in run.stdout.splitlines():
        if line.startswith("FOUND "):
            return {int(tid): frames for tid, frames in json.loads(line[6:]).items()}
    raise AssertionError("gdb found no stacks: " + run.stdout + run.stderr)


def is_same_name(ours, theirs):
    """gdb takes names from debug information. A place can have others, such as __GI_raise."""
    bare = re.sub(r"\.(cold|part|isra|constprop|lto_priv|localalias)\b.*", "", ours)
    return ours.startswith("?? (") or theirs is None or bare == theirs or \
        bare.lstrip("_").removeprefix("GI_").lstrip("_") in theirs or theirs in bare


def runs(frames):
    """Yield each native frame, innermost first, and None for adjacent Python frames."""
    for index, frame in enumerate(reversed(frames)):
        if frame["kind"] == "native":
            yield frame
        elif index == 0 or frames[-index]["kind"] == "native":
            yield None


def native_fault(frames, theirs):
    """The first difference from gdb's stack, or None."""
    rest = list(theirs)
    in_python = False
    for frame in runs(frames):
        if frame is None:
            in_python = True
            continue
        loops = []
        while in_python and rest and rest[0][0] != int(frame["address"], 16):
            loops.append(rest.pop(0))
        if in_python and not loops or any(name not in (None, LOOP, HIDDEN_LOOP) for _, name in loops):
            return "%s: no loop, but %s before it" % (frame, loops)
        in_python = False
        if not rest or rest[0][0] != int(frame["address"] or "0", 16):
            return "%s, gdb has %s" % (frame, rest[:1])
        _, name = rest.pop(0)
        if not is_same_name(frame["name"], name):
            return "%s, gdb calls it %s" % (frame["name"], name)
    return "gdb goes on: %s" % rest if rest else None


class NativeTestCase(unittest.TestCase):
    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def sysroot(self):
        return ["--sysroot", self.interpreter.root] if self.interpreter.root else []

    def assert_native_frames(self, core, document, gdb):
        for thread in document["threads"]:
            with self.subTest(thread=thread["name"] or thread["tid"]):
                names = [frame["name"] for frame in thread["frames"]]
                self.assertNotIn("[unknown]", names)
                self.assertIsNone(native_fault(thread["frames"], gdb[thread["tid"]]))

    def assert_python_is_the_same(self, core, document, *arguments):
        """The Python frames with C frames are those without."""
        plain = {thread["tid"]: thread["frames"]
                 for thread in core_json(*arguments, core.path)["threads"]}
        for thread in document["threads"]:
            frames = [frame for frame in thread["frames"] if frame["kind"] not in ("native", "jit")]
            self.assertEqual(frames, plain.get(thread["tid"], []))


@support.per_layout
class Native(NativeTestCase):
    quick_on = ("3.11",)

    def check(self, situation, end="abort"):
        with core_files.crashed(self.interpreter, situation, end) as core:
            document = core_json("--native=all", *self.sysroot(), core.path)
            gdb = gdb_stacks(core, self.interpreter, core.report["executable"])
            self.assertEqual({thread["tid"] for thread in document["threads"]}, set(gdb))
            self.assert_native_frames(core, document, gdb)
            self.assert_python_is_the_same(core, document, *self.sysroot())
            self.assertEqual(document["problems"], [])
            return document

    def test_each_situation(self):
        for situation in ("single", "threads", "handled", "garbage"):
            with self.subTest(situation=situation):
                self.check(situation)

    def test_fault(self):
        document = self.check("single", "segv")
        self.assertEqual(document["threads"][0]["frames"][-1]["kind"], "native")

    def test_handler(self):
        """faulthandler's handler runs on an alternate stack."""
        document = self.check("single", "raised_again")
        names = [frame["name"] for frame in document["threads"][0]["frames"]]
        self.assertIn("<signal handler called>", names)


@support.per_minor("3.10", "3.11", "3.12")
class Nameless(NativeTestCase):
    """A loop of another name is recognised by its place in the stack."""

    def setUp(self):
        super().setUp()
        if support.version_key(self.interpreter) < [3, 10]:
            self.skipTest("before 3.10 CPython does not record its loops")

    def test_each_situation(self):
        with python_copies.copied(self.interpreter) as copy:
            python_copies.forget_build_ids(copy)
            python_copies.replace_bytes(copy, LOOP.encode(), HIDDEN_LOOP.encode())
            for situation in ("single", "threads", "handled", "garbage"):
                with self.subTest(situation=situation), core_files.crashed(
                        copy.interpreter, situation, environment=copy.environment) as core:
                    document = core_json("--native=all", *self.sysroot(), core.path)
                    gdb = gdb_stacks(core, copy.interpreter, core.report["executable"])
                    self.assert_native_frames(core, document, gdb)
                    names = {name for frames in gdb.values() for _, name in frames}
                    self.assertNotIn(LOOP, names)


class Made(NativeTestCase):
    """Code made at run time is named from the lists in the core."""

    def check(self, name, target_of, *args, **kwargs):
        """The target runs it nearly always, but may be between two calls."""
        found = []
        for _ in range(5):
            with target_of(core_files.in_its_folder(self.interpreter), *args, **kwargs) as target:
                support.wait_until(lambda: name in support.pysample("jit", target.pid).stdout,
                                   "there is code")
                core = core_files.aborted(target)
                document = core_json("--native", *self.sysroot(), core.path)
                self.assert_python_is_the_same(core, document, *self.sysroot())
            found.append([frame["name"] for frame in document["threads"][0]["frames"]])
            if name in found[-1]:
                return
        self.fail(found)

    def test_list_for_libunwind(self):
        self.interpreter = libunwind_codes.interpreter()
        self.check("hot", libunwind_codes.python_target)

    def test_list_for_debuggers(self):
        self.interpreter = next((found for found in support.tested_interpreters()
                                 if found.origin == "testbed" and found.minor == "3.15"), None)
        if not self.interpreter:
            self.skipTest("needs CPython 3.15 with a JIT, of the testbed")
        self.check("py::jit:executor", support.python_target, "jitted", "loop",
                   environment={"PYTHON_JIT": "1"})


@support.per_minor("3.8", "3.12", "3.14", "3.15")
class Missing(NativeTestCase):
    """The files of the modules are missing."""

    def test_gap(self):
        with core_files.crashed(self.interpreter, "threads") as core:
            # A root without files.
            document = core_json("--native", "--sysroot", core.folder, core.path)
            if self.interpreter.root:
                self.assertIn("gaps", " ".join(document["problems"]))
            self.assert_python_is_the_same(core, document, "--sysroot", core.folder)

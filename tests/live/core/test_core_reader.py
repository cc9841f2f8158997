# SPDX-License-Identifier: MIT
"""pysample reads from a core file what elfutils and gdb read from it."""
import os
import re
import shutil
import subprocess
import unittest

import support
from support import core_files, python_copies

CLI = os.path.join(os.path.dirname(support.PYSAMPLE), "tests", "core_cli")

# The first words of core_cli's lines.
KINDS = ("thread", "death", "process", "auxv", "file", "module", "memory")


def output_of(*command):
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         errors="surrogateescape", timeout=support.PATIENCE_S)
    if run.returncode:
        raise AssertionError("%s: %s" % (command, run.stderr))
    return run.stdout


def read(path, *addresses):
    """core_cli's output: the rest of each line, by its first word."""
    found = {kind: [] for kind in KINDS}
    for line in output_of(CLI, path, *addresses).splitlines():
        kind, rest = line.split(" ", 1)
        found[kind].append(rest)
    return found


class Notes:
    """The notes as eu-readelf prints them."""

    def __init__(self, path):
        self.text = output_of("eu-readelf", "--notes", path)
        self.statuses = re.split(r"^ +CORE +\d+ +PRSTATUS$", self.text, flags=re.M)[1:]

    def threads(self):
        number = r" +(-?(?:0x)?[0-9a-f]+)"
        for status in self.statuses:
            pid = re.search(r"\bpid: (\d+)", status)[1]
            pc, sp, pointer, first = (int(re.search(r"\b%s:" % name + number, status)[1], 0)
                                      for name in ("rip", "rsp", "fs.base", "r15"))
            yield "%s %#x %#x %#x %d" % (pid, pc, sp, pointer, first % 2**64)

    def files(self):
        for start, end, offset, path in re.findall(
                r"^ +([0-9a-f]+)-([0-9a-f]+) ([0-9a-f]+) \d+ +(\S.*)$", self.text, flags=re.M):
            yield "%x %x %x %s" % (int(start, 16), int(end, 16), int(offset, 16), path)

    def word(self, name):
        return int(re.search(r"^ +%s: +(0x[0-9a-f]+|\d+)$" % name, self.text, flags=re.M)[1], 0)


def modules_of(path):
    """Yield the start and build ID of each module, as listed by eu-unstrip."""
    for line in output_of("eu-unstrip", "--list-only", "--core=" + path).splitlines():
        place, build_id, *_, name = line.split(" ")
        if not name.startswith(("linux-vdso", "[vdso")):
            yield int(place.split("+")[0], 16), build_id.split("@")[0]


@unittest.skipUnless(shutil.which("eu-readelf"), "not tested here: elfutils is not installed")
class CoreReader(unittest.TestCase):
    """One interpreter is enough, since nothing of CPython is read."""

    maxDiff = 4000
    interpreter = next(one for one in support.supported_interpreters() if not one.root)

    def assert_read(self, path, is_whole_image):
        found = read(path)
        notes = Notes(path)
        self.assertEqual(list(notes.threads()), found["thread"])
        self.assertEqual(list(notes.files()), found["file"])
        self.assertEqual(["%#x %#x %#x %#x" % tuple(
            notes.word(name) for name in ("PHDR", "ENTRY", "BASE", "SYSINFO_EHDR"))],
            found["auxv"])
        modules = [line.split(" ", 2) for line in found["module"]]
        ours = {(int(start, 16), build_id) for start, build_id, _ in modules}
        self.assertEqual(set(modules_of(path)), ours)
        if is_whole_image:
            self.assertEqual({"used"}, {state for _, _, state in modules})

    def assert_memory(self, core):
        """Compare the memory at every thread's registers, from the core and from files, with
        gdb's."""
        addresses = []
        for thread in read(core.path)["thread"]:
            addresses += thread.split(" ")[1:4]
        found = read(core.path, *addresses)["memory"]
        commands = [option for address in addresses for option in ("-ex", "x/16xb " + address)]
        output = output_of("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
                           "-iex", "set auto-load no", "-core", core.path,
                           self.interpreter.path, *commands)
        lines = re.findall(r"^0x[0-9a-f]+.*:((?:\t0x[0-9a-f]{2}){8})$", output, flags=re.M)
        theirs = [line.replace("\t0x", "") for line in lines]
        self.assertEqual(["".join(pair) for pair in zip(theirs[::2], theirs[1::2])], found)

    def test_kernel(self):
        with core_files.kernel_cores(), \
                core_files.crashed(self.interpreter, "threads", "segv") as core:
            self.assert_read(core.path, True)
            self.assertEqual(1, len(read(core.path)["death"]))
            self.assertTrue(read(core.path)["death"][0].startswith("11 "))

    def test_memory(self):
        if not shutil.which("gdb"):
            self.skipTest("not tested here: gdb is not installed")
        with core_files.kernel_cores(), \
                core_files.crashed(self.interpreter, "threads") as core:
            self.assert_memory(core)

    def test_gdb(self):
        with core_files.parked(self.interpreter, "threads") as target:
            core = core_files.gcore(target)
            self.assert_read(core.path, True)
            self.assertEqual(["0 0 0"], read(core.path)["death"])

    def test_modules(self):
        """The command lists the modules that elfutils lists, and does not use another program."""
        with core_files.kernel_cores(), \
                core_files.crashed(self.interpreter, "single") as core:
            found = core_files.core_json(core.path, "--modules", core.report["executable"])
            self.assertEqual(set(modules_of(core.path)),
                             {(int(module["start"], 16), module["build_id"])
                              for module in found["modules"]})
            self.assertEqual({"used"}, {module["state"] for module in found["modules"]})
            self.assertEqual([], found["problems"])
            found = core_files.core_json(core.path, support.PYSAMPLE)
            self.assertNotIn("modules", found)
            self.assertEqual(1, len(found["problems"]), found["problems"])
            self.assertIn("%s was not used" % support.PYSAMPLE, found["problems"][0])

    def test_sysroot(self):
        """Files below it come first, even where leading folders are missing, if they are what was
        mapped."""
        with core_files.kernel_cores(), \
                core_files.crashed(self.interpreter, "single") as core:
            root = os.path.join(core.folder, "root")
            program = core.report["executable"]
            os.makedirs(root + os.path.dirname(program))
            shutil.copy(support.PYSAMPLE, root + program)
            library = next(path for path in (line.split(" ", 3)[3] for line in
                                             read(core.path)["file"]) if "/libc.so" in path)
            copy = os.path.join(root, os.path.basename(library))
            shutil.copy(library, copy)
            found = core_files.core_json(core.path, "--modules", "--sysroot", root)
            files = {module["path"]: module["file"] for module in found["modules"]}
            self.assertEqual(copy, files[library])
            self.assertEqual(program, files[program])

    def test_other_build(self):
        """A file that has replaced a library is not used, and the report says so."""
        with core_files.kernel_cores(), python_copies.copied(self.interpreter) as copy, \
                core_files.crashed(copy.interpreter, "single",
                                   environment=copy.environment) as core:
            for path in copy.files:
                os.unlink(path)
                shutil.copy(support.PYSAMPLE, path)
            problems = core_files.core_json(core.path, "--modules")["problems"]
            self.assertEqual({"%s was not used: another build of it was mapped" % path
                              for path in copy.files}, set(problems))

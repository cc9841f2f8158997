# SPDX-License-Identifier: MIT
"""`pysample core` on programs of other names that embed CPython, once or twice."""
import os
import signal
import subprocess
import unittest

import support
from support import core_files
from test_locator import LocatorTestCase, archives, elf_without, read_libraries, running


class EmbeddedTestCase(LocatorTestCase):
    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def core_of(self, program):
        """Kill the program and return the report on its core."""
        os.kill(program.pid, signal.SIGABRT)
        program.process.wait(timeout=support.PATIENCE_S)
        (path,) = [entry.path for entry in os.scandir(self.folder)
                   if entry.is_file() and core_files.is_core(entry.path)]
        try:
            return core_files.core_json(path)
        finally:
            os.unlink(path)

    def assert_dead(self, command, home, before_death=lambda: None):
        with running(command, home=home, cwd=self.folder) as program:
            truth = program.truth()
            before_death()
            document = self.core_of(program)
        self.assertEqual(document["python"], truth["python"])
        (thread,) = document["threads"]
        self.assertEqual(support.dumped_frames(thread, support.PLACE_KEYS), truth["frames"])
        self.assertTrue(thread["crashed"])


class Linked(EmbeddedTestCase):
    """CPython is linked into the program, whose symbols and section headers are stripped."""

    def test_stripped(self):
        for number, archive in enumerate(archives()):
            path = self.build("app%d" % number, *archive.options)
            subprocess.run(["strip", path], check=True)
            elf_without(path, sections=False)
            with self.subTest(str(archive)):
                self.assert_dead([path, "begin", "run", self.script], archive.home)


class Loaded(EmbeddedTestCase):
    """The program has loaded libpython."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.embed = cls.build("embed", "-ldl")
        if not read_libraries():
            raise unittest.SkipTest("not tested here: a loaded libpython (no pyenv)")

    def test_deleted(self):
        for library in read_libraries():
            copy = self.copied(library.path)
            with self.subTest(str(library)):
                self.assert_dead([self.embed, "load", copy, "begin", "run", self.script],
                                 library.home, lambda copy=copy: os.unlink(copy))

    def test_two(self):
        """The one that runs is reported."""
        by_version = {library.version: library for library in read_libraries()}
        for idle, used in (("3.10", "3.11"), ("3.13", "3.9"), ("3.6", "3.13")):
            if idle not in by_version or used not in by_version:
                continue
            idle, used = by_version[idle], by_version[used]
            with self.subTest(idle=str(idle), used=str(used)):
                self.assert_dead([self.embed, "load", idle.path, "load", used.path, "begin",
                                  "run", self.script], used.home)

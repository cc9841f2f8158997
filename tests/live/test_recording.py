# SPDX-License-Identifier: MIT
"""The file of a recording while it is written: its name and its place."""
import contextlib
import glob
import os
import signal
import unittest

import support


def info_of(path):
    """The result of --info for one recording, and its pairs."""
    result = support.pysample("report", "--info", path)
    pairs = (line.partition(": ") for line in result.stdout.splitlines())
    return result, {name: value for name, _, value in pairs}


class Gone(unittest.TestCase):
    """Another file takes the recording's name while it is written."""

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "busy"))
        self.path = os.path.join(self.folder, "profile.pysample")

    def check(self, take_name):
        process = support.start_pysample("attach", self.target.pid, "-o", self.path)
        support.wait_until(lambda: os.path.exists(self.path), "the recording has its name")
        take_name()
        process.send_signal(signal.SIGINT)
        result = support.finish(process)
        self.assertEqual(result.status, 1, result.stderr)
        self.assertIn("removed or replaced while it was being written", result.stderr)

    def test_removed(self):
        self.check(lambda: os.unlink(self.path))
        self.assertEqual(os.listdir(self.folder), [])

    def test_replaced(self):
        def replace():
            with open(self.path + ".other", "w", encoding="ascii") as file:
                file.write("other")
            os.rename(self.path + ".other", self.path)

        self.check(replace)
        self.assertEqual(support.read(self.path), "other")


class Elsewhere(unittest.TestCase):
    """Where the program has another root its paths mean other files, and the recording says so."""

    def test_host(self):
        for interpreter in support.newest_interpreter(), *filter(
                lambda one: not one.root, support.tested_interpreters()[:1]):
            with self.subTest(str(interpreter)), support.fresh_folder() as (folder, _), \
                    support.python_target(interpreter, "busy") as target:
                path = os.path.join(folder, "profile.pysample")
                support.run_with_samples(lambda target=target, path=path: support.pysample(
                    "attach", target.pid, "-d", "0.1", "-o", path))
                _, info = info_of(path)
                is_elsewhere = "mount namespace of process" in info["host"]
                self.assertEqual(is_elsewhere, bool(interpreter.root), info["host"])


def unnamed_file(pid, folder):
    """The path of a file without a name that a process writes in a folder, or None."""
    for path in glob.glob("/proc/%d/fd/*" % pid):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(path).startswith(folder + "/#"):
                return path
    return None


class Away(unittest.TestCase):
    """The folder is removed before the recording has its name."""

    def setUp(self):
        parent, _ = self.enterContext(support.fresh_folder())
        self.folder = os.path.join(parent, "folder")
        self.path = os.path.join(self.folder, "profile.pysample")
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "busy"))

    def start(self):
        """Start recording, remove the folder, and wait until samples are written."""
        while True:  # the recording may have its name at once
            os.mkdir(self.folder)
            process = support.start_pysample("attach", self.target.pid, "-o", self.path)
            self.addCleanup(process.kill)
            support.wait_until(lambda: unnamed_file(process.pid, self.folder), "a file is open")
            file = unnamed_file(process.pid, self.folder)
            process.send_signal(signal.SIGSTOP)
            if not os.listdir(self.folder):
                os.rmdir(self.folder)
                process.send_signal(signal.SIGCONT)
                support.wait_until(lambda: support.pysample("report", file).status == 0,
                                   "samples are written")
                return process, file
            process.kill()
            process.wait()
            os.unlink(self.path)
            os.rmdir(self.folder)

    def test_folder_is_made_again(self):
        process, file = self.start()
        size = os.stat(file).st_size
        support.wait_until(lambda: os.stat(file).st_size > size, "another flush")
        os.mkdir(self.folder)
        support.wait_until(lambda: os.path.exists(self.path), "the recording has its name")
        self.assertEqual(os.listdir(self.folder), [os.path.basename(self.path)])
        process.send_signal(signal.SIGINT)
        result = support.finish(process)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotIn("cannot", result.stderr)
        result, info = info_of(self.path)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(info["torn"], "no")
        self.assertEqual(info["samples"], info["sampled_samples"])

    def test_folder_stays_away(self):
        process, _ = self.start()
        process.send_signal(signal.SIGINT)
        result = support.finish(process)
        self.assertEqual(result.status, 1, result.stderr)
        self.assertEqual(result.stderr.count("No such file or directory"), 1, result.stderr)
        self.assertIn("what was written is lost", result.stderr)


if __name__ == "__main__":
    unittest.main()

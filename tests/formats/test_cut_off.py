# SPDX-License-Identifier: MIT
"""Outputs that nobody read to their end, or that there was no room for: a sentence, the exit
status 1, and what was written until then means what it says."""
import contextlib
import fcntl
import os
import unittest

import oracle
import recording_reader
import subjects
import support
from test_collapsed import expected

PIPE_BYTES = 4096
NR_FRAMES = 3  # that are read of a recording
TEXTS = "collapsed", "jsonl"
ROOM_BYTES = 32768

# A file system that has next to no room, and what is left there: SCRIPT FOLDER COPY COMMAND...
IN_NO_ROOM = ["unshare", "--mount", "--", "sh", "-c", """
mount -t tmpfs -o size=%d tmpfs "$1" || exit 99
folder=$1 copy=$2
shift 2
"$@" >"$folder/stdout"
status=$?
cp "$folder"/* "$copy"
exit "$status"
""" % ROOM_BYTES, "sh"]


class CutOff(unittest.TestCase):
    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())
        self.recording = os.path.join(self.folder, "profile.pysample")
        self.target = self.enterContext(
            support.python_target(support.newest_interpreter(), "nasty"))

    def assert_fails(self, result, reason):
        self.assertEqual(result.status, 1, result.stderr)
        self.assertEqual(result.stderr.count(reason), 1, result.stderr)
        self.assertRegex(result.stderr, "(?m)^pysample: [^\n]*cannot write [^\n]*: %s$" % reason)

    def assert_torn(self, path):
        """pysample reads of it what stands before the tear, as our own decoder does."""
        recording = recording_reader.read(path, torn=True)
        with open(path, "rb") as file:
            self.assertIsNone(recording_reader.outer(file.read()).seek_table)
        self.assertIn("torn: yes", support.pysample("report", "--info", path).stdout)
        text = support.read(subjects.report(path, form="collapsed"))
        subjects.assert_same(self, support.parse_collapsed(text),
                             expected(oracle.View(recording)))

    def assert_begins(self, text, form):
        """Its whole lines are lines of what the recording beside it gives, and its last one is
        a line's beginning."""
        self.assertIn("torn: no", support.pysample("report", "--info", self.recording).stdout)
        lines = support.read(subjects.report(self.recording, form=form)).split("\n")
        *whole, cut = text.split("\n")
        self.assertTrue(whole)
        self.assertLess(len(whole), len(lines) - 1)
        self.assertEqual(set(whole) - set(lines), set())
        self.assertTrue(any(line.startswith(cut) for line in lines), cut)


class ClosedPipe(CutOff):
    @contextlib.contextmanager
    def attach(self, *options):
        """A pysample that writes into a pipe with next to no room, and what comes out."""
        out, into = os.pipe()
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        process = support.start_pysample("attach", self.target.pid, "-q", *options, stdout=into)
        self.addCleanup(process.kill)
        os.close(into)
        with open(out, "rb", buffering=0) as stream:
            yield process, stream

    def test_recording(self):
        """Some frames and the beginning of the next one are read."""
        data = b""
        with self.attach("-f", "recording", "-o", "-") as (process, stream):
            while len(recording_reader.outer(data).frames) < NR_FRAMES:
                data += stream.read(100)
            data += stream.read(1)
        self.assert_fails(support.finish(process), "Broken pipe")
        with open(self.recording, "wb") as file:
            file.write(data)
        self.assert_torn(self.recording)

    def test_texts(self):
        for form in TEXTS:
            with self.subTest(form):
                with self.attach("-d", "1", "-f", form, "-o", "-", "-o",
                                 self.recording) as (process, stream):
                    data = stream.read(1)
                    data += stream.read(PIPE_BYTES - 1)
                self.assert_fails(support.finish(process), "Broken pipe")
                self.assert_begins(data.decode("utf-8", "surrogateescape"), form)


class NoRoom(CutOff):
    def attach(self, *options, wrapper):
        return support.pysample("attach", self.target.pid, "-q", *options, wrapper=wrapper)

    def test_recording_of_a_limited_size(self):
        result = self.attach("-o", self.recording,
                             wrapper=["prlimit", "--fsize=%d" % ROOM_BYTES, "--"])
        self.assert_fails(result, "File too large")
        self.assert_torn(self.recording)

    def in_no_room(self, options):
        if os.geteuid():
            self.skipTest("only root can mount")
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        result = self.attach(*options(small), wrapper=[*IN_NO_ROOM, small, self.folder])
        os.rmdir(small)
        self.assert_fails(result, "No space left on device")

    def test_recording_on_a_full_disk(self):
        self.in_no_room(lambda small: ["-o", os.path.join(small, "profile.pysample")])
        self.assert_torn(self.recording)

    def test_texts_on_a_full_disk(self):
        for form in TEXTS:
            with self.subTest(form):
                self.in_no_room(lambda small, form=form: [
                    "-d", "1", "-f", form, "-o", "-", "-o", self.recording])
                self.assert_begins(support.read(os.path.join(self.folder, "stdout")), form)
                os.unlink(self.recording)

# SPDX-License-Identifier: MIT
"""Outputs that are not read to their end, that run out of room, or whose writer is killed. Where
possible there is a sentence and the exit status 1, and what was written is correct as far as it
goes.
"""
import contextlib
import fcntl
import itertools
import os
import random
import re
import signal
import time
import unittest

import oracle
import recording_reader
import subjects
import support
from test_collapsed import expected

PIPE_BYTES = 4096
NR_FRAMES = 3  # read of a recording
TEXTS = "collapsed", "jsonl"
KILLS = 10
RATE_HZ = 1000
ROOM_BYTES = 32768

# A file system with next to no room, whose contents are copied: SCRIPT FOLDER COPY COMMAND...
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
        """pysample reads what is before the tear, as our own decoder does."""
        recording = recording_reader.read(path, torn=True)
        self.assert_flushed(recording)
        with open(path, "rb") as file:
            self.assertIsNone(recording_reader.outer(file.read()).seek_table)
        self.assertIn("torn: yes", support.pysample("report", "--info", path).stdout)
        text = support.read(subjects.report(path, form="collapsed", options=["--idle"]))
        subjects.assert_same(self, support.parse_collapsed(text),
                             expected(oracle.View(recording)))

    def assert_flushed(self, recording):
        """No frame of the file holds samples that are more than a second apart."""
        for begin, end in itertools.pairwise([0, *recording.flushes]):
            times = [sample.time for sample in recording.samples[begin:end]]
            self.assertLessEqual(max(times, default=0) - min(times, default=0), 1e9)

    def assert_begins(self, text, form):
        """Its whole lines are lines of a report on the recording beside it, and its last line is
        the beginning of one."""
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
        """A pysample that writes into a pipe with next to no room, and the pipe's output."""
        out, into = os.pipe()
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        process = support.start_pysample("attach", self.target.pid, "-q", *options, stdout=into)
        self.addCleanup(process.kill)
        os.close(into)
        with open(out, "rb", buffering=0) as stream:
            yield process, stream

    def test_recording(self):
        """The reader takes some frames and the beginning of the next one."""
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


def nr_sleeps(pid):
    """How often its main thread has waited for something, such as a tick."""
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", support.read(
        "/proc/%d/status" % pid), re.M).group(1))


class Killed(CutOff):
    def kill(self, process, seconds):
        """Kill it after this many seconds. Returns how often it slept since the file was last
        seen to grow. It sleeps before each tick, so no more ticks than that are missing, apart
        from those before the growth was seen."""
        size = nr_then = 0
        end = time.monotonic() + seconds
        while process.poll() is None:
            is_over = time.monotonic() >= end
            if is_over:
                process.send_signal(signal.SIGSTOP)
                support.wait_until(lambda: support.state(process.pid) == "T", "it stands still")
            if os.stat(self.recording).st_size != size:
                size, nr_then = os.stat(self.recording).st_size, nr_sleeps(process.pid)
            if is_over:
                break
            time.sleep(0.005)
        nr_since = nr_sleeps(process.pid) - nr_then
        process.kill()
        process.communicate()
        return nr_since

    def test_at_any_moment(self):
        """A second has no more ticks than were asked for, however busy the machine is."""
        for seed in range(KILLS):
            with self.subTest(seed=seed):
                process = support.start_pysample("attach", self.target.pid, "-q", "-r", RATE_HZ,
                                                 "-o", self.recording)
                self.addCleanup(process.kill)
                support.wait_until(lambda: os.path.exists(self.recording), "there is a file")
                nr_missing = self.kill(process, 2 * random.Random(seed).random())
                self.assertLess(nr_missing, RATE_HZ)
                self.assert_torn(self.recording)
                os.unlink(self.recording)

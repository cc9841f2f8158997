# SPDX-License-Identifier: MIT
"""The recording itself: the decoder, the document, the zstd tool, and the counters."""
import dataclasses
import os
import re
import unittest

import oracle
import recording_reader
import recording_writer
import subjects
import support
import synthetic
import tools


def plain(recording):
    """The samples without the indices of their stacks, which may differ."""
    return [dataclasses.replace(sample, stack=0) for sample in recording.samples]


class Decoder(unittest.TestCase):
    """Our decoder, on which every other test relies."""

    def test_made_up(self):
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                path = subjects.path_of("seed-%d.pysample" % seed)
                truth, read = synthetic.make(path, seed), recording_reader.read(path)
                self.assertEqual(read.info, truth.info)
                self.assertEqual(read.processes, truth.processes)
                self.assertEqual(read.threads, truth.threads)
                self.assertEqual(plain(read), plain(truth))
                for one, other in zip(read.samples, truth.samples):
                    self.assertEqual(read.stacks[one.stack], truth.stacks[other.stack])


class Names(unittest.TestCase):
    @support.thorough_with_all
    def test_functions(self):
        """Every name of the target is there, byte for byte."""
        for subject in subjects.lives():
            read = {(function.qualname, function.path) for frames in subject.recording.stacks
                    for function, _ in frames}
            reported = {tuple(map(support.shown, pair)) for pair in subject.report["functions"]}
            self.assertEqual(reported - read, set())

    @support.thorough_with_all
    def test_threads(self):
        for subject in subjects.lives():
            names = {str(thread.tid): thread.name for thread in subject.recording.threads}
            for tid, name in subject.report["threads"].items():
                if name not in ("worker 3 5", ""):  # the first has two, the other the kernel's
                    self.assertEqual(names[tid], support.shown(name))


class Figures(unittest.TestCase):
    """A recording's own figures are those of its contents."""

    @subjects.each
    def test_sums(self, subject):
        info, samples = subject.recording.info, subject.recording.samples
        whole = subject.view(mode=info["mode"]).whole()
        self.assertEqual(int(info["sampled_samples"]), len(samples))
        self.assertEqual(int(info["samples"]), len(samples))
        self.assertEqual(int(info["sampled_wall_ns"]), sum(one.wall for one in samples))
        self.assertEqual(int(info["sampled_cpu_ns"]), sum(one.cpu for one in samples))
        self.assertEqual(int(info["cpu_measured_samples"]), sum(
            bool(one.flags & oracle.CPU_MEASURED) for one in samples))
        self.assertEqual(int(info.get("jit_samples", 0)), sum(
            bool(one.flags & oracle.IN_JIT) for one in samples))
        self.assertEqual(int(info.get("approximate", 0)), sum(
            bool(one.flags & oracle.APPROXIMATE) for one in samples))
        self.assertEqual((int(info["shown_samples"]), int(info["shown_ns"])), whole)

    def test_times(self):
        recording = subjects.live().recording
        start = int(recording.info["start_unix_ns"])
        length = int(recording.info["end_ns"]) - int(recording.info["start_ns"])
        slack = 1000000  # the start and the epoch are read from the clock one after the other
        for sample in recording.samples:
            self.assertGreater(sample.time, start - slack)
            self.assertLess(sample.time, start + length + slack)


class Zstd(unittest.TestCase):
    @subjects.each
    def test_tool(self, subject):
        zstd = tools.program("zstd", "zstd")
        tools.run(zstd, "-tq", subject.path)
        with open(subject.path, "rb") as file:
            outer = recording_reader.outer(file.read())
        listed = tools.run(zstd, "-lv", subject.path)
        self.assertEqual(re.findall(r"# (?:Zstandard|Skippable) Frames: (\d+)", listed),
                         [str(len(outer.frames)), "1"])
        self.assertIn("Check: XXH64", listed)
        whole = recording_reader.decompress(b"".join(outer.frames))
        self.assertEqual(len(whole), sum(size for _, size in outer.seek_table))

    def test_torn_anywhere(self):
        """A file that was cut off is read up to its last whole frame, by pysample, too."""
        subject = subjects.live()
        with open(subject.path, "rb") as file:
            data = file.read()
        frames = recording_reader.outer(data).frames
        whole = len(frames[0]) + len(frames[1])
        for end in (len(data) - 1, max(len(data) // 2, whole), max(len(data) - 40, whole), whole + 1,
                    whole):
            path = subjects.path_of("torn-%d.pysample" % end)
            with open(path, "wb") as file:
                file.write(data[:end])
            with self.subTest(end=end):
                recording = recording_reader.read(path, torn=True)
                rows = support.read(subjects.report(path, form="collapsed"))
                self.assertEqual(sum(support.parse_collapsed(rows).values()),
                                 len(recording.samples))
                self.assertLess(0, len(recording.samples))
            os.unlink(path)


class Refusals(unittest.TestCase):
    def test_newer_version(self):
        with open(subjects.made_up().path, "rb") as file:
            outer = recording_reader.outer(file.read())
        first = bytearray(recording_reader.decompress(outer.frames[0]))
        first[8] = 2
        path = subjects.path_of("newer.pysample")
        with open(path, "wb") as file:
            file.write(recording_reader.compress(bytes(first)) + b"".join(outer.frames[1:]))
        result = support.pysample("report", path, "-f", "collapsed")
        self.assertEqual((result.status, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^pysample: [^\n]*version 2[^\n]*\n$")


def idle_samples(nr, slots=None):
    """A record of nr ticks in next to no bytes, each with one thread that goes on."""
    columns = [b""] * 11
    columns[3] = bytes([0, len(slots), *slots]) if slots else b""
    payload = (recording_writer.uint(nr) * 2 + recording_writer.uint(10 ** 18) + bytes(3)
               + recording_writer.columns(*columns))
    return b"\x09" + recording_writer.uint(len(payload)) + payload


class Limits(unittest.TestCase):
    def test_samples_of_a_frame(self):
        """A frame of a few bytes that stands for one sample too many ends the recording."""
        with open(subjects.made_up().path, "rb") as file:
            frames = recording_reader.outer(file.read()).frames[:-1]
        path = subjects.path_of("idle.pysample")
        nr_before = len(self.read_torn(path, frames).samples)
        for nr_more, is_good in ((2, True), (1 << 22, False)):
            content = idle_samples(1, [0]) + idle_samples(nr_more)
            with self.subTest(nr_more=nr_more):
                if is_good:
                    recording = self.read_torn(path, frames, content)
                    self.assertEqual(len(recording.samples), nr_before + 1 + nr_more)
                else:
                    with self.assertRaises(recording_reader.Broken):
                        self.read_torn(path, frames, content)
                rows = support.parse_collapsed(support.read(
                    subjects.report(path, form="collapsed")))
                self.assertEqual(sum(rows.values()), nr_before + is_good * (1 + nr_more))

    def read_torn(self, path, frames, *more):
        with open(path, "wb") as file:
            file.write(b"".join(frames) + b"".join(map(recording_reader.compress, more)))
        return recording_reader.read(path, torn=True)

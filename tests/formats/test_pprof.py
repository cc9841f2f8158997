# SPDX-License-Identifier: MIT
"""pprof, read by npm's pprof-format, by protoc and by pprof itself."""
import codecs
import collections
import gzip
import json
import os
import re
import subprocess
import unittest

import labels
import oracle
import subjects
import support
import tools


def name_of(frame):
    return labels.escaped(frame.function.qualname) or "?"


def line_key(frame):
    function = frame.function
    return (labels.decoded_by_javascript(name_of(frame)), labels.escaped(function.path),
            function.first_line, frame.line)


def thread_key(recording, sample):
    thread = recording.thread_of(sample)
    return (recording.process_of(sample).pid, thread.tid, labels.escaped(thread.name),
            "true" if sample.flags & oracle.IN_JIT else "",
            "true" if sample.flags & oracle.APPROXIMATE else "",
            "true" if sample.flags & oracle.WAITING else "")


def write(subject, *options):
    return subjects.report(subject.path, form="pprof", options=options, suffix=".pb.gz")


class PprofFormat(unittest.TestCase):
    """Decoded by an independent decoder."""

    def decoded(self, subject, *options):
        node, npm = tools.npm("pprof-format")
        return json.loads(tools.run(node, os.path.join(tools.HERE, "pprof_decode.mjs"), npm,
                                    write(subject, *options)))

    def stacks(self, decoded):
        """{(thread, frames): Weight}"""
        stacks = collections.defaultdict(lambda: oracle.NOTHING)
        for sample in decoded["samples"]:
            found = sample["labels"]
            thread = (found.get("pid", 0), found.get("thread_id", 0), found.get("thread", ""),
                      found.get("jit", ""), found.get("approximate", ""),
                      found.get("idle", ""))
            frames = tuple(tuple(frame[:4]) for frame in sample["stack"])
            stacks[(thread, *frames)] = oracle.plus(stacks[(thread, *frames)],
                                                    oracle.Weight(*sample["values"]))
        return dict(stacks)

    @subjects.each
    def check(self, subject, *options, **how):
        decoded = self.decoded(subject, *options)
        time = "cpu" if how.get("mode") == "cpu" else "wall"
        self.assertEqual(decoded["types"], [["samples", "count"], [time, "nanoseconds"]])
        self.assertEqual(decoded["systemNames"], [""])  # else <module> is taken for C++
        self.assertEqual(decoded["timeNanos"], subject.recording.info["start_unix_ns"])
        expected = collections.defaultdict(lambda: oracle.NOTHING)
        view = subject.view(**how)
        for (thread, *frames), weight in view.stacks(line_key, thread_key).items():
            expected[(thread, *(frames or (line_key(oracle.IDLE),)))] = weight
        subjects.assert_same(self, self.stacks(decoded), dict(expected))

    def test_modes(self):
        for mode in oracle.MODES:
            with self.subTest(mode):
                # Threads that wait are labelled, not hidden.
                self.check("--mode", mode, mode="wall" if mode == "busy" else mode)


class GoPprof(unittest.TestCase):
    """pprof itself."""

    ROW = re.compile(r" *(\S+) +[\d.]+% +[\d.]+% +(\S+) +[\d.]+%  (.*)")

    def top(self, path, index):
        """{name: (flat, cum)}"""
        go = tools.program("go", "golang-go")
        text = tools.run(go, "tool", "pprof", "-top", "-functions", "-nodefraction=0",
                         "-nodecount=0", "-sample_index=%d" % index, "-unit=ns", path,
                         env={"PATH": "/usr/bin:/bin", "HOME": subjects.FOLDER})
        rows = text.split("flat%   sum%        cum   cum%\n")[1].split("\n")[:-1]
        return {name: (self.number(flat), self.number(cum))
                for flat, cum, name in (self.ROW.fullmatch(row).groups() for row in rows)}

    @staticmethod
    def number(text):
        return int(text[:-2] if text.endswith("ns") else text)

    @subjects.each
    def test_top(self, subject):
        path = write(subject)
        totals = subject.view().totals(name_of)
        for index, of in enumerate(("samples", "ns")):
            subjects.assert_same(self, self.top(path, index), {
                name: (getattr(total.self, of), getattr(total.total, of))
                for name, total in totals.items() if getattr(total.total, of)})


TOKEN = re.compile(r'\s*(?:(\w+) \{|(\w+): ("(?:[^"\\]|\\.)*"|\S+)|(\}))')


def text_format(text):
    """{field: [values]} of protobuf's text format."""
    stack = [collections.defaultdict(list)]
    for message, name, value, end in TOKEN.findall(text):
        if message:
            stack.append(collections.defaultdict(list))
            stack[-2][message].append(stack[-1])
        elif end:
            stack.pop()
        else:
            stack[-1][name].append(
                codecs.escape_decode(value[1:-1].encode())[0].decode() if value[0] == '"'
                else value)
    return stack[0]


class Protoc(unittest.TestCase):
    """Checks the schema, and that strings are UTF-8: protoc prints other bytes in another way."""

    SCHEMA = os.path.join(support.ROOT, "output", "formats", "proto", "profile.proto")

    @subjects.each
    def test_decode(self, subject):
        protoc = tools.program("protoc", "protobuf-compiler")
        with gzip.open(write(subject)) as file:
            result = subprocess.run(
                [protoc, "--decode=perftools.profiles.Profile", "-I",
                 os.path.dirname(self.SCHEMA), self.SCHEMA], input=file.read(),
                capture_output=True, check=True)
        self.assertEqual(result.stderr, b"")
        message = text_format(result.stdout.decode())
        self.assertNotRegex(result.stdout.decode(), r"(?m)^ *\d+[ :]")  # unknown fields
        self.assertEqual(message["string_table"][0], "")
        self.assertLessEqual(
            {name_of(frame) for frames in subject.recording.stacks for frame in frames},
            set(message["string_table"]))
        sums = [sum(int(sample["value"][index]) for sample in message["sample"])
                for index in range(2)]
        self.assertEqual(tuple(sums), subject.view().whole())

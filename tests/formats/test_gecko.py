# SPDX-License-Identifier: MIT
"""The Firefox Profiler's format, read by its own code: npm's profiler-cli."""
import collections
import contextlib
import decimal
import gzip
import json
import os
import re
import shutil
import time
import unittest

import labels
import oracle
import subjects
import support
import tools

MIN_NODE = 24  # the oldest that profiler-cli supports
PATIENCE = 40  # in half seconds
SCRIPT = "@firefox-devtools/profiler-cli/dist"


class Session:
    """A profile that profiler-cli has loaded. folder holds its file, as node sees it."""

    def __init__(self, node, script, folder):
        self.command = [*node, script]
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder,
                            "PROFILER_CLI_SESSION_DIR": folder}

    def text(self, *words):
        return tools.run(*self.command, *words, env=self.environment)

    def json(self, *words):
        return json.loads(self.text(*words, "--json"))

    def load(self, path):
        """The daemon has half a second to start, which is not always enough: ask again."""
        try:
            self.text("load", path)
            return
        except AssertionError as error:
            late = re.search(r"([a-z0-9]+)\.log", str(error))
            if not late:
                raise
        for _ in range(PATIENCE):
            time.sleep(0.5)
            with contextlib.suppress(AssertionError):
                self.text("session", "use", late[1])
                self.text("status")
                return
        raise AssertionError("the daemon of profiler-cli did not start")


@contextlib.contextmanager
def own_node(path):
    """Uses the node of this system."""
    node, npm = tools.npm("@firefox-devtools/profiler-cli")
    with support.fresh_folder() as (folder, _):
        copy = shutil.copy(path, folder)
        yield Session([node], os.path.join(npm, "node_modules", SCRIPT, "profiler-cli.js"),
                      folder), copy


@contextlib.contextmanager
def testbed_node(path):
    """Uses the testbed's node, which is recent."""
    _, npm = tools.npm("@firefox-devtools/profiler-cli")
    root = tools.testbed_with("/usr/bin/node", "nodejs")
    with support.fresh_folder(root) as (outside, inside):
        shutil.copytree(os.path.join(npm, "node_modules", SCRIPT), outside + "/cli")
        shutil.copy(path, outside)
        yield (Session(["chroot", root, "/usr/bin/node"], inside + "/cli/profiler-cli.js", inside),
               os.path.join(inside, os.path.basename(path)))


@contextlib.contextmanager
def loaded(path):
    is_new = shutil.which("node") and tools.node_major(["node"]) >= MIN_NODE
    with (own_node if is_new else testbed_node)(path) as (session, seen):
        session.load(seen)
        try:
            yield session
        finally:
            session.text("stop", "--all")


def document(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=decimal.Decimal)


def thread_key(recording, sample):
    thread = recording.thread_of(sample)
    return recording.process_of(sample).pid, thread.tid, labels.thread_name(thread)


def expected(view):
    """{(thread, name, self ns, total ns): number of functions}, since several may have that
    name."""
    found = collections.Counter()
    for (thread, frame), total in view.totals(lambda frame: frame.function, thread_key).items():
        name = labels.as_json(frame.qualname) or "?"
        if total.total.ns:  # profiler-cli leaves out what weighs nothing
            found[thread, name, total.self.ns, total.total.ns] += 1
    return found


def to_ns(milliseconds):
    """Sums of binary fractions are off in the last place, but times are whole microseconds."""
    return round(milliseconds * 1000) * 1000


class Gecko(unittest.TestCase):
    def write(self, subject, *options):
        return subjects.report(subject.path, form="gecko", options=options, suffix=".json.gz")

    @subjects.each
    def test_profiler(self, subject):
        path, got = self.write(subject), collections.Counter()
        shared = document(path)["shared"]
        names = [shared["stringArray"][index] for index in shared["funcTable"]["name"]]
        with loaded(path) as session:
            for thread in session.json("thread", "list")["threads"]:
                who = int(thread["pid"]), thread["tid"], thread["name"]
                found = session.json("thread", "functions", "--include-idle", "--limit", "0",
                                     "--thread", thread["threadHandle"])
                self.assertEqual(found["weightType"], "tracing-ms")
                for row in found["functions"]:
                    # profiler-cli shows "<!--" as "--".
                    got[who, names[row["functionIndex"]], to_ns(row["selfSamples"]),
                        to_ns(row["totalSamples"])] += 1
        subjects.assert_same(self, got, expected(subject.view()))

    @subjects.each
    def test_samples(self, subject):
        """Every sample with its time, by our own reading of the file."""
        for mode in "wall", "cpu":
            with self.subTest(mode):
                subjects.assert_same(
                    self, self.rows(document(self.write(subject, "--mode", mode))),
                    self.expected_rows(subject.view(mode=mode)))

    @subjects.each
    def test_in_jit(self, subject):
        found = self.marker_ends(subject, "In JIT", oracle.IN_JIT)
        self.assertEqual(bool(found), bool(int(subject.recording.info.get("jit_samples", 0))))

    @subjects.each
    def test_idle(self, subject):
        found = self.marker_ends(subject, "Idle", oracle.WAITING)
        self.assertEqual(bool(found), any(sample.flags & oracle.WAITING
                                          for sample in subject.recording.samples))

    @subjects.each
    def test_approximate(self, subject):
        found = self.marker_ends(subject, "Approximate", oracle.APPROXIMATE)
        self.assertEqual(bool(found), bool(int(subject.recording.info.get("approximate", 0))))

    def marker_ends(self, subject, name, flag):
        """Markers of stretches of samples with the flag end where the last sample of a stretch
        does, and nowhere else."""
        read, expected = document(self.write(subject)), collections.Counter()
        runs = collections.defaultdict(list)
        for recording, sample in subject.view().samples:
            runs[recording.thread_of(sample).tid, sample.thread].append(sample)
        for (tid, _), samples in runs.items():
            for sample, after in zip(samples, samples[1:] + [None]):
                if sample.flags & flag and not (
                        after and after.flags & flag
                        and after.time - after.wall <= sample.time):
                    expected[tid, sample.time] += 1
        found = collections.Counter()
        for thread in read["threads"]:
            markers = thread["markers"]
            for index, end in zip(markers["name"], markers["endTime"]):
                if read["shared"]["stringArray"][index] == name:
                    found[thread["tid"], (end + read["meta"]["startTime"]) * 10**6] += 1
        self.assertEqual(subjects.different(found, expected), "")
        return found

    def rows(self, document):
        shared, found = document["shared"], collections.Counter()
        texts, functions, frames = (shared[name] for name in
                                    ("stringArray", "funcTable", "frameTable"))
        stacks = [()]
        for frame, prefix in zip(shared["stackTable"]["frame"], shared["stackTable"]["prefix"]):
            name = texts[functions["name"][frames["func"][frame]]]
            stacks.append(stacks[0 if prefix is None else prefix + 1]
                          + ((name, frames["line"][frame]),))
        for thread in document["threads"]:
            samples = thread["samples"]
            for stack, time, weight in zip(samples["stack"], samples["time"], samples["weight"]):
                time += document["meta"]["startTime"]
                found[thread["tid"], time * 10**6, weight * 10**6, stacks[stack + 1]] += 1
        return found

    def expected_rows(self, view):
        found = collections.Counter()
        for recording, sample in view.samples:
            frames = tuple((labels.as_json(frame.function.qualname) or "?", frame.line or None)
                           for frame in recording.stacks[sample.stack])
            found[recording.thread_of(sample).tid, sample.time, view.ns(sample),
                  frames or ((labels.IDLE, None),)] += 1
        return found
